# SPDX-License-Identifier: MIT
"""Vectors of output shapes: configured, half known, open, and fixed by the first batch."""

from vecbuild import Vector, adagrad, dense, feature, ragged, sparse, splits, table

SIX = [[1], [2, 3], [], [4, 4], [5], [6, 7, 0]]


FIXED = {"fixed_shapes": True}


def steps(name, about, features, good, bad, early=(), engine=None):
    """
    bad: (input, further strings of the message); refused before and after a good batch.
    early: refused before it alone.
    """
    v = Vector("shape_" + name, about, [table(combiner="sum")], features, engine)
    for first in (True, False):
        for source, contains in [*bad, *(early if first else ())]:
            v.enqueue({"f": source}, error={"errno": "EINVAL", "contains": ["f", *contains]})
        v.train({"f": good}, seed=1 + first)
        v.table()
    return v


def unknown_first():
    return steps("unknown_first_length", "A length of 0 is unknown: the first batch says it, the "
                 "others are compared.", [feature(output_shape=[0, 3])],
                 sparse([[0, 0, 0], [1, 2, 1]], [1, 5], [2, 3, 2]),
                 [(sparse([[0, 0, 0]], [1], [2, 4, 2]), ["inconsistent shape"])],
                 early=[(ragged(SIX), ["not fully defined"])], engine=FIXED)


def unknown_is_fixed():
    v = Vector("shape_unknown_is_fixed", "What the first batch said of an unknown length holds for "
               "the next, which may then be flat.", [table(combiner="sum")],
               [feature(output_shape=[0, 3])], FIXED)
    v.train({"f": sparse([[0, 0, 0], [1, 2, 1]], [1, 5], [2, 3, 2])}, seed=1)
    v.enqueue({"f": sparse([[0, 0, 0]], [1], [3, 3, 2])},
              error={"errno": "EINVAL", "contains": ["f", "inconsistent shape"]})
    v.train({"f": ragged(SIX)}, seed=2)
    v.table()
    return v


def unknown_rank_1():
    return steps("unknown_rank_1", "An output_shape of one unknown length takes any number of "
                 "samples, in one dimension.", [feature(output_shape=[0])], ragged(SIX),
                 [(sparse([[0, 0, 0]], [1], [2, 3, 2]), ["inconsistent shape"])])


def rank_3_flat():
    return steps("rank_3_from_rank_1_and_2", "Inputs of one or two dimensions fill an output_shape "
                 "of three in row-major order.", [feature(output_shape=[1, 3, 2])],
                 sparse([[0, 0, 0], [1, 2, 1]], [1, 5], [2, 3, 2]),
                 [(ragged(SIX[:5]), ["5"]),
                  (sparse([[0, 0, 0]], [1], [2, 2, 2]), ["4"])])


def rank_3_dense():
    v = Vector("shape_dense_fills_rank_3", "Dense ids of shape [6] and [2, 3, 1] fill an "
               "output_shape of three dimensions.", [table(combiner="sum")],
               [feature(output_shape=[2, 1, 3])])
    v.train({"f": dense([0, 1, 2, 3, 4, 5])}, seed=1)
    v.train({"f": dense([5, 4, 3, 2, 1, 0], [2, 3, 1])}, seed=2)
    v.table()
    return v


def same_rank():
    return steps("same_rank_is_compared", "As many positions in other lengths are no reshape.",
                 [feature(output_shape=[2, 3])],
                 sparse([[0, 0, 0], [1, 2, 1]], [1, 5], [2, 3, 2]),
                 [(sparse([[0, 0, 0]], [1], [3, 2, 2]), ["inconsistent shape"]),
                  (sparse([[0, 0, 0, 0]], [1], [1, 2, 3, 2]), ["inconsistent shape"])])


def first_batch():
    v = Vector("shape_of_first_batch", "The first batch fixes an open shape, its rank and all of "
               "its lengths: a later flat one fills it, another rank does not.",
               [table(combiner="sum")], [feature()], FIXED)
    v.train({"f": sparse([[0, 0, 0], [1, 2, 1]], [1, 5], [2, 3, 2])}, seed=1)
    v.enqueue({"f": sparse([[0, 0, 0]], [1], [3, 2, 2])},
              error={"errno": "EINVAL", "contains": ["f", "inconsistent shape"]})
    v.enqueue({"f": sparse([[0, 0, 0, 0]], [1], [1, 2, 3, 2])},
              error={"errno": "EINVAL", "contains": ["f", "inconsistent shape"]})
    v.train({"f": ragged(SIX)}, seed=2)
    v.table()
    return v


def inference_fixes():
    v = Vector("shape_fixed_by_inference", "An inference batch fixes an open shape as a training "
               "batch does.", [table(combiner="sum")], [feature()], FIXED)
    v.enqueue({"f": ragged(SIX)}, training=False)
    v.dequeue()
    v.enqueue({"f": ragged(SIX[:5])},
              error={"errno": "EINVAL", "contains": ["f", "inconsistent shape", "[5]", "[6]"]})
    v.train({"f": ragged(SIX)}, seed=1)
    v.table()
    return v


def opened_anew():
    v = Vector("shape_fixed_when_opened_anew", "What a batch fixed is forgotten with the handle, and "
               "a checkpoint may be restored with the option and without.",
               [table(combiner="sum")], [feature()])
    v.train({"f": ragged(SIX)}, seed=1)
    v.train({"f": dense([1])}, seed=2)
    v.save()
    v.reopen(**FIXED)
    v.restore()
    v.train({"f": ragged(SIX[:4])}, seed=3)
    v.enqueue({"f": ragged(SIX)},
              error={"errno": "EINVAL", "contains": ["f", "inconsistent shape"]})
    v.save("b")
    v.reopen()
    v.restore("b")
    for seed, source in ((4, ragged(SIX)), (5, ragged(SIX[:4]))):
        v.train({"f": source}, seed=seed)
    v.table()
    return v


NONE = {"ragged": ragged([]), "splits": splits([], [0]), "dense": dense([]),
        "sparse": sparse([], [], [0, 3])}


def any_size():
    v = Vector("shape_any_size", "Without an output_shape each batch has its own shape and form: "
               "training and inference, up, down, and none at all.", [table(combiner="mean")],
               [feature()])
    for seed, source in enumerate([ragged(SIX), ragged(SIX[:5]), dense([1]), ragged([]),
                                   sparse([[0, 0, 0], [1, 2, 1]], [1, 5], [2, 3, 2]),
                                   ragged(SIX + SIX[::-1]), splits([], [0])]):
        v.train({"f": source}, seed=seed)
        v.table()
        v.enqueue({"f": ragged(SIX[seed:])}, training=False)
        v.dequeue()
    return v


def any_size_in_flight():
    v = Vector("shape_any_size_in_flight", "Steps of several sizes are in flight together, and "
               "each has its own.", [table(combiner="sum")], [feature()])
    for source in (ragged(SIX), dense([3]), ragged([])):
        v.enqueue({"f": source})
    for seed in (1, 2, 3):
        v.dequeue()
        v.apply(v.grads(seed))
    v.table()
    return v


def any_size_of_features():
    v = Vector("shape_any_size_of_features", "Features of one batch may differ in their number of "
               "samples, none included.", [table(combiner="sum"), table("u")],
               [feature(), feature("g"), feature("h", "u", max_sequence_length=2)])
    v.train({"f": ragged(SIX), "g": dense([]), "h": ragged([[1, 2, 3], [4]])}, seed=1)
    v.train({"f": ragged([]), "g": dense([1, 2]), "h": ragged([])}, seed=2)
    v.train({"f": ragged([]), "g": dense([]), "h": ragged([[], [1, 2], [3]])}, seed=3)
    v.table()
    v.table("u")
    return v


def any_size_of_replicas():
    v = Vector("shape_any_size_of_replicas", "Replicas of one step may differ in their batch size, "
               "none included.", [table(combiner="sum", optimizer=adagrad())], [feature()],
               {"replicas": 2})
    for seed, (a, b) in enumerate([(ragged(SIX), dense([2])), (ragged([]), ragged(SIX[:3])),
                                   (dense([4, 4]), ragged([])), (ragged([]), ragged([]))]):
        for replica, source in enumerate((a, b)):
            v.enqueue({"f": source}, replica=replica)
        for replica in (0, 1):
            v.dequeue(replica=replica)
            v.apply(v.grads(2 * seed + replica, replica=replica), replica=replica)
        v.table()
    v.table(slot="accumulators")
    return v


def no_samples(form):
    v = Vector(f"shape_no_samples_{form}", f"A batch without samples, {form}: an empty view, no "
               "row changes, and the step counts.",
               [table(combiner="mean", optimizer=adagrad())], [feature()])
    v.train({"f": NONE[form]}, seed=1)
    v.table()
    v.train({"f": ragged(SIX)}, seed=2)
    v.train({"f": NONE[form]}, seed=3)
    v.enqueue({"f": NONE[form]}, training=False)
    v.dequeue()
    v.train({"f": dense([1, 2])}, seed=4)
    v.table()
    v.table(slot="accumulators")
    return v


def unknown_varies():
    return steps("unknown_length_varies", "An unknown length differs from batch to batch, the "
                 "others are compared; a flat input does not define it.",
                 [feature(output_shape=[0, 3])],
                 sparse([[0, 0, 0], [1, 2, 1]], [1, 5], [2, 3, 2]),
                 [(sparse([[0, 0, 0]], [1], [2, 4, 2]), ["inconsistent shape"]),
                  (ragged(SIX), ["not fully defined"])])


def vectors():
    yield from (make() for make in (
        unknown_first, unknown_is_fixed, unknown_rank_1, rank_3_flat, rank_3_dense, same_rank,
        first_batch, inference_fixes, opened_anew, any_size, any_size_in_flight, any_size_of_features,
        any_size_of_replicas, unknown_varies))
    yield from (no_samples(form) for form in NONE)

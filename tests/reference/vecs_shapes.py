# SPDX-License-Identifier: MIT
"""Vectors of output shapes: configured, half known, and fixed by the first batch."""

from vecbuild import Vector, dense, feature, ragged, sparse, table

SIX = [[1], [2, 3], [], [4, 4], [5], [6, 7, 0]]


def steps(name, about, features, good, bad, early=()):
    """
    bad: (input, further strings of the message); refused before and after a good batch.
    early: refused before it alone.
    """
    v = Vector("shape_" + name, about, [table(combiner="sum")], features)
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
                 early=[(ragged(SIX), ["not fully defined"])])


def unknown_is_fixed():
    v = Vector("shape_unknown_is_fixed", "What the first batch said of an unknown length holds for "
               "the next, which may then be flat.", [table(combiner="sum")],
               [feature(output_shape=[0, 3])])
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
               [table(combiner="sum")], [feature()])
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
               "batch does.", [table(combiner="sum")], [feature()])
    v.enqueue({"f": ragged(SIX)}, training=False)
    v.dequeue()
    v.enqueue({"f": ragged(SIX[:5])},
              error={"errno": "EINVAL", "contains": ["f", "inconsistent shape", "[5]", "[6]"]})
    v.train({"f": ragged(SIX)}, seed=1)
    v.table()
    return v


def vectors():
    yield from (make() for make in (
        unknown_first, unknown_is_fixed, unknown_rank_1, rank_3_flat, rank_3_dense, same_rank,
        first_batch, inference_fixes))

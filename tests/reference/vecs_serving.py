# SPDX-License-Identifier: MIT
"""Vectors of the lookup on the CPU: forms, pruning, shapes, errors, other features, drains."""

from vecbuild import Vector, adagrad, dense, feature, ragged, sparse, splits, table

TABLES = [table("s", combiner="sum"), table("m", combiner="mean", initial={"arange": [0.5, 0.25]}),
          table("q", combiner="sqrtn", initial={"arange": [2.0, -0.125]})]
BAGS = [feature("fs", "s"), feature("fm", "m"), feature("fq", "q")]
NAMES = ("fs", "fm", "fq")


def serving(name, about, features=None, tables=None, **more):
    return Vector("serving_" + name, about, tables or TABLES, features or BAGS, **more)


def all_of(spec):
    return {name: spec for name in NAMES}


def forms():
    v = serving("dense", "Dense ids of any rank are gathered; their shape is the output's, "
                "without a trailing 1 going away.")
    v.serve({"fs": dense([3, 0, 7]), "fm": dense([1, 1, 2, 3], [2, 2]),
             "fq": dense([1, 2, 3, 4, 5, 6], [3, 2, 1])})
    yield v
    v = serving("sparse", "Sparse bags are combined, empty ones are zeros.")
    v.serve(all_of(sparse([[0, 0], [0, 1], [2, 0], [2, 1], [2, 4]], [1, 5, 2, 2, 7], [4, 5])))
    yield v
    v = serving("sparse_weights", "Sparse bags with weights above 0.")
    v.serve(all_of(sparse([[0, 0], [0, 1], [2, 0], [2, 1]], [1, 5, 2, 7], [3, 2],
                          [0.5, 2, 1, 3])))
    yield v
    v = serving("sparse_rank_3", "Leading dimensions of a sparse input are the output's.")
    v.serve(all_of(sparse([[0, 0, 0], [0, 2, 0], [0, 2, 1], [1, 0, 3]], [4, 1, 2, 6],
                          [2, 3, 4])))
    yield v
    v = serving("sparse_rank_4", "So are those of rank 4, with weights and without.")
    places = [[0, 0, 1, 0], [0, 1, 0, 0], [0, 1, 0, 2], [1, 0, 1, 1], [1, 1, 1, 0]]
    v.serve(all_of(sparse(places, [4, 1, 2, 6, 6], [2, 2, 2, 3])))
    v.serve(all_of(sparse(places, [4, 1, 2, 6, 6], [2, 2, 2, 3], [1, 0.5, 2, 3, 1])))
    yield v
    v = serving("ragged", "Ragged bags by rows and by row_splits.")
    v.serve({"fs": ragged([[1, 2], [], [3]]), "fm": splits([1, 2, 3], [0, 0, 3, 3]),
             "fq": ragged([[5, 5, 6], [0]])})
    yield v
    v = serving("ragged_weights", "Ragged bags with weights.")
    v.serve(all_of(ragged([[1, 2], [], [3, 7]], [[0.5, 1.5], [], [4, 3]])))
    yield v


def pruning():
    v = serving("prunes_negative_ids", "A sparse input's negative ids are left out with their "
                "weights; a bag of nothing else is zeros.")
    places = [[0, 0], [0, 1], [1, 0], [2, 0], [2, 1]]
    v.serve(all_of(sparse(places, [-1, 3, -7, 2, 4], [3, 2])))
    v.serve(all_of(sparse(places, [-1, 3, -7, 2, 4], [3, 2], [9, 2, 1, 1, 3])))
    yield v
    v = serving("prunes_weights", "mean and sqrtn leave out ids whose weight is not above 0, sum "
                "keeps them with their sign.")
    places = [[0, 0], [0, 1], [1, 0], [2, 0], [2, 1]]
    v.serve(all_of(sparse(places, [1, 3, 5, 2, 4], [3, 2], [1, -2, 0, -1, 3])))
    yield v
    v = serving("prunes_before_ids_are_checked", "An id that its weight leaves out may be "
                "anything; with sum it is still looked at.")
    spec = sparse([[0, 0], [0, 1]], [1, 1000], [1, 2], [1, 0])
    v.serve({"fm": spec, "fq": spec})
    v.serve({"fs": spec}, error={"errno": "ERANGE", "contains": ["fs", "sample 0", "1000"]})
    yield v
    unchecked = [feature(f, t, validate_weights_and_indices=False)
                 for f, t in zip(NAMES, "smq")]
    v = serving("unchecked", "Without validation weights count as they are; a denominator of 0 "
                "gives zeros.", unchecked)
    v.serve(all_of(sparse([[0, 0], [0, 1], [2, 0], [2, 1]], [1, 3, 2, 4], [3, 2],
                          [3, -1, 1, -1])))
    v.serve(all_of(sparse([[0, 0], [0, 1]], [1, -3], [1, 2])),
            error={"errno": "ERANGE", "contains": ["-3"]})
    yield v
    v = serving("unchecked_rank_3", "From rank 3 on a sparse input is validated all the same.",
                unchecked)
    v.serve(all_of(sparse([[0, 0, 0], [0, 0, 1], [0, 1, 0]], [1, -3, 4], [1, 2, 2], [1, 1, -1])))
    yield v
    v = serving("ragged_never_prunes", "A ragged input's weights count as they are, and its "
                "negative ids are errors.")
    v.serve(all_of(ragged([[1, 2], [3, 4], [5]], [[3, -1], [1, -1], [0]])))
    v.serve({"fm": ragged([[1], [2, -1]])},
            error={"errno": "ERANGE", "contains": ["fm", "sample 1", "-1"]})
    yield v


def sequences():
    long = [feature("f", "m", max_sequence_length=3)]
    v = serving("sequence_sparse", "A sequence of a sparse input: the first ids in order, then "
                "zeros.", long)
    v.serve({"f": sparse([[0, 0], [0, 1], [2, 0], [2, 1], [2, 2], [2, 3]], [1, 2, 3, 4, 5, 6],
                         [4, 4])})
    yield v
    v = serving("sequence_ragged", "A sequence of a ragged input.", long)
    v.serve({"f": ragged([[1, 2], [], [3, 4, 5, 6], [7, 7, 7]])})
    yield v
    v = serving("sequence_refuses", "A sequence feature takes neither weights nor dense ids.",
                long)
    v.serve({"f": ragged([[1, 2]], [[1, 1]])},
            error={"errno": "EINVAL", "contains": ["f", "weights"]})
    v.serve({"f": sparse([[0, 0]], [1], [1, 2], [1])},
            error={"errno": "EINVAL", "contains": ["f", "weights"]})
    v.serve({"f": dense([1, 2])}, error={"errno": "EINVAL", "contains": ["sequence", "dense"]})
    v.serve({"f": ragged([[1]])})
    yield v
    v = serving("sequence_rank_3", "A sparse input of rank 3 is combined, whatever the feature's "
                "sequence length.", long)
    v.serve({"f": sparse([[0, 0, 0], [0, 0, 1], [1, 1, 0]], [1, 2, 3], [2, 2, 2])})
    yield v


def output_shapes():
    shaped = [feature("f", "m", output_shape=[2, 3])]
    v = serving("output_shape_ragged", "As many ragged rows as positions are combined and "
                "reshaped.", shaped)
    v.serve({"f": ragged([[1], [2, 3], [], [4], [5, 5], [6]], [[1], [1, 3], [], [2], [1, 1],
                                                               [-1]])})
    yield v
    v = serving("output_shape_ragged_sequence", "Rows that are a factor of the positions become "
                "sequences, weights are ignored.", shaped)
    v.serve({"f": ragged([[1, 2], [3, 4, 5, 6]])})
    v.serve({"f": ragged([[1, 2], [3, 4, 5, 6]], [[5, 0], [1, -1, 2, 2]])})
    v.serve({"f": ragged([[1, 2, 3, 4, 5, 6, 7]])})
    v.serve({"f": ragged([[1], [], [2, 3]])})
    yield v
    v = serving("output_shape_ragged_refuses", "Rows that are no factor of the positions.", shaped)
    words = {"errno": "EINVAL",
             "contains": ["Output shape set in the FeatureConfig should be the factor"]}
    v.serve({"f": ragged([[1], [2], [3], [4]])}, error=words)
    v.serve({"f": ragged([[1]] * 12)}, error=words)
    yield v
    v = serving("output_shape_not_of_others", "Dense and sparse inputs keep their own shape.",
                shaped)
    v.serve({"f": dense([1, 2, 3, 4])})
    v.serve({"f": sparse([[0, 0], [3, 0], [3, 1]], [1, 2, 3], [4, 2])})
    yield v


def errors():
    v = serving("error_ids", "An id at or beyond the vocabulary, or in a dense or ragged input "
                "below 0, names feature, sample and id.")
    v.serve({"fs": dense([1, 8])}, error={"errno": "ERANGE", "contains": ["fs", "sample 1", "8"]})
    v.serve({"fm": dense([1, -1])}, error={"errno": "ERANGE", "contains": ["fm", "sample 1", "-1"]})
    v.serve({"fm": ragged([[1], [], [2, 2 ** 40]])},
            error={"errno": "ERANGE", "contains": ["fm", "sample 2", str(2 ** 40)]})
    v.serve({"fq": sparse([[0, 0], [2, 0]], [1, 9], [3, 1]), "fs": dense([1])},
            error={"errno": "ERANGE", "contains": ["fq", "sample 2", "9"]})
    v.serve({"fs": dense([1])})
    yield v
    v = serving("error_inputs", "Inputs that do not fit together.")
    v.serve({"nobody": dense([1])}, error={"errno": "ENOENT", "contains": ["nobody"]})
    v.serve({"fs": {"dense": [1, 2], "weights": [1, 1]}},
            error={"errno": "EINVAL", "contains": ["fs", "weight", "input is dense"]})
    v.serve({"fs": dense([1, 2, 3], [2, 2])}, error={"errno": "EINVAL", "contains": ["fs"]})
    v.serve({"fs": splits([1, 2], [0, 2, 1])},
            error={"errno": "EINVAL", "contains": ["fs", "row_splits", "fall"]})
    v.serve({"fs": splits([1, 2], [0, 1])}, error={"errno": "EINVAL", "contains": ["fs"]})
    v.serve({"fs": splits([1, 2], [0, 2], [1])}, error={"errno": "EINVAL", "contains": ["fs"]})
    v.serve({"fs": sparse([[1, 0], [0, 0]], [1, 2], [2, 1])},
            error={"errno": "EINVAL", "contains": ["fs", "comes after"]})
    v.serve({"fs": sparse([[0, 1]], [1], [2, 1])}, error={"errno": "ERANGE", "contains": ["fs"]})
    v.serve({"fs": dense([1, 2])})
    yield v
    v = serving("out_of_range_policies_do_not_count", "A table's policy for ids is the engine's; "
                "here an id beyond the vocabulary is an error.",
                [feature("f", "c"), feature("g", "d")],
                [table("c", out_of_range="clamp"), table("d", out_of_range="drop")])
    for name in "fg":
        v.serve({name: ragged([[1, 8]])}, error={"errno": "ERANGE", "contains": [name, "8"]})
        v.serve({name: sparse([[0, 0], [0, 1]], [1, -8], [1, 2])})
    yield v


def configs():
    v = serving("config", "Other features over the same tables, with other shapes and lengths, "
                "and the vector's own again after them.")
    other = [feature("first", "m", max_sequence_length=2), feature("second", "m"),
             feature("third", "q", output_shape=[2, 1]),
             feature("fs", "q", validate_weights_and_indices=False)]
    v.serve({"first": ragged([[1, 2, 3], [4]]), "second": ragged([[1, 2, 3], [4]]),
             "third": ragged([[1], [2, 3]]), "fs": sparse([[0, 0], [0, 1]], [1, 2], [1, 2],
                                                          [2, -1])}, config=other)
    v.serve({"fm": dense([1])}, config=other, error={"errno": "ENOENT", "contains": ["fm"]})
    v.serve({"fs": dense([1])})
    yield v
    v = serving("config_refused", "A configuration of a table that is not there.")
    v.serve({"f": dense([1])}, config=[feature("f", "nowhere")],
            error={"errno": "ENOENT", "contains": ["nowhere"]})
    v.serve({"fs": dense([1])})
    yield v


def training():
    v = serving("after_training", "Lookups see each update that was handed in.", [feature()],
                [table(combiner="mean", optimizer=adagrad())])
    for seed in range(3):
        v.train({"f": ragged([[1, 2], [2, 2, 5], []], [[1, 3], [1, -0.5, 1], []])}, seed=seed)
        v.serve({"f": ragged([[1, 2], [5], [0]])})
    yield v
    v = serving("between_lookup_and_update", "A step that has only been looked up changes "
                "nothing, and serving does not disturb it.", [feature()], [table(combiner="sum")])
    v.enqueue({"f": ragged([[1], [2]])})
    v.serve({"f": dense([1, 2])})
    v.dequeue()
    v.serve({"f": dense([1, 2])})
    v.apply(v.grads(3))
    v.serve({"f": dense([1, 2])})
    yield v
    v = serving("drains_pipelining", "With pipelining a lookup drains: it sees the last update, "
                "and the next training lookup is stale by one step all the same.", [feature()], [table(combiner="sum")],
                engine={"pipelining": True})
    batch = {"f": ragged([[1], [2, 1]])}
    v.train(batch, seed=1)
    v.train(batch, seed=2)
    v.serve({"f": dense([1, 2])})
    v.train(batch, seed=3)
    v.train(batch, seed=4)
    v.serve({"f": dense([1, 2])})
    v.table()
    yield v
    v = serving("replicas", "All replicas' gradients of a step count, or none.", [feature()],
                [table(combiner="sum")], engine={"replicas": 2})
    batch = {"f": ragged([[1], [2]])}
    for r in (0, 1):
        v.lookup(batch, replica=r)
    v.apply(v.grads(1), replica=0)
    v.serve({"f": dense([1, 2])})
    v.apply(v.grads(2), replica=1)
    v.serve({"f": dense([1, 2])})
    yield v


def checkpoints():
    v = serving("of_a_restored_model", "A model opened for serving alone, without slots, serves "
                "what a training one saved, and a later one's values once they are restored.",
                [feature()], [table(combiner="mean", optimizer=adagrad())])
    bags = {"f": ragged([[1, 2], [2, 2, 5], []])}
    v.train(bags, seed=1)
    v.save()
    v.train(bags, seed=2)
    v.serve(bags)
    v.save("b")
    v.reopen(optimizer=False)
    v.serve(bags)
    v.restore()
    v.serve(bags)
    v.restore("b")
    v.serve(bags)
    yield v


def sizes():
    v = serving("long_bags", "Bags longer than any chunk that they may be walked in.",
                [feature("f", "m"), feature("g", "q"), feature("h", "s")])
    ids = [(7 * k) % 8 for k in range(1500)]
    weights = [((k * 5) % 7 + 1) / 8 for k in range(1500)]
    v.serve({"f": splits(ids, [0, 3, 1203, 1203, 1500], weights),
             "g": splits(ids, [0, 1023, 1500], weights), "h": splits(ids, [0, 512, 1024, 1500])},
            rtol=1e-5, atol=1e-4)
    yield v
    v = serving("dims", "Rows of 1, 17 and 64 columns.",
                [feature("a", "d1"), feature("b", "d17"), feature("c", "d64")],
                [table("d1", rows=4, dim=1), table("d17", rows=4, dim=17),
                 table("d64", rows=4, dim=64, initial={"arange": [-1.0, 0.0078125]})])
    v.serve({name: ragged([[1, 2], [3]], [[1, 3], [2]]) for name in "abc"})
    yield v


def vectors():
    for group in (forms, pruning, sequences, output_shapes, errors, configs, training, checkpoints,
                  sizes):
        yield from group()

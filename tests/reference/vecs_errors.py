# SPDX-License-Identifier: MIT
"""Vectors of batches that must be refused, with the state as it was.

Each vector trains a step, has its bad batches refused, reads the table, and
trains on: a batch that left anything behind shows in one of the last three.
"""

from vecbuild import Vector, adagrad, dense, feature, ragged, sparse, splits, table

ROWS = 16
NAME = "friends"
FIXED = {"fixed_shapes": True}


def vector(name, about, good, bad, engine=None, **more):
    """bad: (input, errno or None, further strings of the message); the last for inference too."""
    v = Vector("error_" + name, about, [table(rows=ROWS, dim=2, optimizer=adagrad())],
               [feature(NAME, **more)], engine)
    v.train({NAME: good}, seed=1)
    for source, errno, contains in bad:
        error = {**({"errno": errno} if errno else {}), "contains": [NAME, *contains]}
        v.enqueue({NAME: source}, error=error)
    v.enqueue({NAME: source}, training=False, error=error)
    v.table()
    v.train({NAME: good}, seed=2)
    v.table()
    v.table(slot="accumulators")
    v.stats("t", "ids", "unique_ids")
    return v


def ids(name, about, bad):
    text = str(bad)
    return vector(f"id_{name}", f"An id {about} is refused in every input form, in the first "
                  "place and in the last.", ragged([[1, 2], [15]]), [
                      (dense([bad, 1]), "ERANGE", [text]),
                      (ragged([[1, 2], [3, bad]]), "ERANGE", [text]),
                      (splits([bad, 2, 3], [0, 1, 3]), "ERANGE", [text]),
                      (sparse([[0, 0], [1, 0]], [1, bad], [2, 2]), "ERANGE", [text])])


def all_ids():
    yield ids("negative", "below 0", -1)
    yield ids("vocabulary", "equal to the vocabulary", ROWS)
    yield ids("huge_32", "whose low 32 bits are a row", 4294967297)
    yield ids("huge_64", "at the end of 64 bits", 9223372036854775807)
    yield ids("negative_64", "at the other end of 64 bits", -9223372036854775808)


def row_splits():
    good = splits([1, 2, 3], [0, 2, 3])
    return vector("row_splits", "row_splits that do not start at 0, fall, or end before or beyond "
                  "the values.", good, [
                      (splits([1, 2, 3], [1, 2, 3]), None, []),
                      (splits([1, 2, 3], [0, 3, 2]), None, []),
                      (splits([1, 2, 3], [0, 1, 2]), None, []),
                      (splits([1, 2, 3], [0, 2, 4]), None, []),
                      (splits([1, 2, 3], [0, -1, 3]), None, []),
                      (splits([1, 2, 3], [0, 5, 3]), None, []),
                      (splits([1, 2, 3], [0, 4294967298, 3]), None, [])])


def sparse_indices():
    good = sparse([[0, 0], [1, 0], [1, 1]], [1, 2, 3], [2, 2])
    return vector("sparse_indices", "Sparse indices out of order, outside of the shape, or of "
                  "another rank or count.", good, [
                      (sparse([[1, 0], [0, 0]], [1, 2], [2, 2]), None, []),
                      (sparse([[0, 0], [2, 0]], [1, 2], [2, 2]), "ERANGE", ["2"]),
                      (sparse([[0, 0], [1, 7]], [1, 2], [2, 2]), "ERANGE", ["7"]),
                      (sparse([[-1, 0], [1, 0]], [1, 2], [2, 2]), "ERANGE", ["-1"]),
                      (sparse([[0, 0, 0], [1, 0, 0]], [1, 2], [2, 2]), None, []),
                      (sparse([[0, 0]], [1, 2], [2, 2]), None, []),
                      (sparse([[0, 0], [1, 0], [1, 1]], [1, 2], [2, 2]), None, [])])


def sparse_rank_3_indices():
    good = sparse([[0, 0, 0], [1, 1, 1]], [1, 2], [2, 2, 2])
    return vector("sparse_rank_3_indices", "The middle index of rank 3 is checked like the others.",
                  good, [
                      (sparse([[0, 2, 0], [1, 1, 1]], [1, 2], [2, 2, 2]), "ERANGE", ["2"]),
                      (sparse([[0, 1, 0], [0, 0, 0]], [1, 2], [2, 2, 2]), None, []),
                      (sparse([[0, 0, 0], [0, 1, 4294967296]], [1, 2], [2, 2, 2]), "ERANGE",
                       ["4294967296"])])


def sparse_rank_1():
    return vector("sparse_rank_1", "A sparse input has two dimensions at least.",
                  sparse([[0, 0]], [1], [2, 2]), [(sparse([[0], [1]], [1, 2], [2]), "EINVAL", [])])


def weight_counts():
    good = ragged([[1, 2], [3]], [[1, 2], [3]])
    where = [[0, 0], [0, 1], [1, 0]]
    return vector("weights_count", "Weights that are fewer or more than the ids, in every form; "
                  "nested weights match row by row, also where the total fits.", good, [
                      (ragged([[1, 2], [3]], [[1], [3]]), "EINVAL", []),
                      (ragged([[1, 2], [3]], [[1], [2, 3]]), "EINVAL", []),
                      (ragged([[1, 2], [3]], [[1, 2]]), "EINVAL", []),
                      (ragged([[1, 2], [3]], [[1, 2], [3], []]), "EINVAL", []),
                      (splits([1, 2, 3], [0, 2, 3], [1, 2]), "EINVAL", []),
                      (splits([1, 2, 3], [0, 2, 3], [1, 2, 3, 4]), "EINVAL", []),
                      (sparse(where, [1, 2, 3], [2, 2], [1]), "EINVAL", []),
                      (sparse(where, [1, 2, 3], [2, 2], [1, 2, 3, 4]), "EINVAL", [])])


def weights_with_dense():
    return vector("weights_with_dense", "A dense input takes no weights, be they as many as ids.",
                  dense([1, 2]), [({"dense": [1, 2], "weights": [1, 1]}, "EINVAL", [])])


def dense_shape():
    return vector("dense_shape", "A dense shape that is not that of the ids, or whose last "
                  "dimension is not 1.", dense([1, 2, 3, 4]), [
                      (dense([1, 2, 3, 4], [3]), "EINVAL", []),
                      (dense([1, 2, 3, 4], [5, 1]), "EINVAL", []),
                      (dense([1, 2, 3, 4], [2, 2]), "EINVAL", [])])


def batch_size():
    return vector("batch_size_changes", "With fixed_shapes the first batch fixes the batch size: "
                  "another one is refused, in every form, and one without samples.",
                  ragged([[1], [2], [3]]), [
                      (ragged([]), "EINVAL", ["empty"]),
                      (ragged([[1], [2]]), "EINVAL", []),
                      (ragged([[1], [2], [3], [4]]), "EINVAL", []),
                      (splits([1], [0, 1]), "EINVAL", []),
                      (dense([1, 2]), "EINVAL", []),
                      (sparse([[0, 0]], [1], [4, 2]), "EINVAL", [])], FIXED)


def sequence_batch():
    return vector("sequence_batch_size", "With fixed_shapes a sequence feature too keeps its batch "
                  "size, and its ids are checked.", ragged([[1, 2, 3], [4]]), [
                      (ragged([[1], [2], [3]]), "EINVAL", []),
                      (ragged([[1, 16], [2]]), "ERANGE", ["16"])], FIXED,
                  max_sequence_length=2)


def output_shape():
    return vector("output_shape", "Samples that do not fill the output shape.",
                  ragged([[1], [2], [3], [4]]), [
                      (dense([1, 2, 3, 4, 5]), "EINVAL", []),
                      (ragged([[1], [2], [3], [4], [5]]), "EINVAL", []),
                      (sparse([[0, 0]], [1], [5, 2]), "EINVAL", [])], output_shape=[2, 2])


def first_batch():
    v = Vector("error_first_batch_fixes_nothing", "A refused first batch does not fix the batch "
               "size.", [table()], [feature("likes"), feature("views")], FIXED)
    v.enqueue({"likes": dense([1, 2, 3]), "views": dense([1, 2, 33])},
              error={"errno": "ERANGE", "contains": ["views", "33"]})
    v.train({"likes": dense([1, 2]), "views": ragged([[1], [], [5, 6], [0]])})
    v.table()
    return v


def good_beside_bad():
    v = Vector("error_one_bad_feature", "One bad feature refuses the whole batch: nothing of the "
               "good ones is looked up, counted or trained.",
               [table("t"), table("u")], [feature("likes"), feature("views", "u")])
    good = {"likes": dense([1, 2]), "views": dense([3, 4])}
    v.enqueue(good)
    v.enqueue({**good, "views": dense([3, -4])},
              error={"errno": "ERANGE", "contains": ["views", "-4"]})
    v.enqueue({**good, "likes": dense([1, 8])},
              error={"errno": "ERANGE", "contains": ["likes", "8"]})
    v.dequeue()
    v.apply(v.grads(1))
    v.dequeue(error={})
    v.stats("t", "ids", "unique_ids")
    v.stats("u", "ids", "unique_ids")
    v.train(good, seed=2)
    v.table("t")
    v.table("u")
    return v


def unknown_feature():
    v = Vector("error_unknown_feature", "A feature that the model does not have.",
               [table()], [feature("likes")])
    v.enqueue({"likes": dense([1]), "shares": dense([1])},
              error={"errno": "ENOENT", "contains": ["shares"]})
    v.train({"likes": dense([1])})
    v.table()
    return v


def mid_pipeline():
    v = Vector("error_while_pipelined", "A refused batch between pipelined steps is no step: the "
               "next lookup sees what it would have seen.",
               [table()], [feature()], {"pipelining": True})
    for seed in range(3):
        v.train({"f": dense([1, 2])}, seed=seed)
        v.enqueue({"f": dense([1, 99])}, error={"errno": "ERANGE", "contains": ["f", "99"]})
    v.lookup({"f": dense([1, 2])})
    v.apply(v.grads(4))
    v.table()
    return v


def vectors():
    yield from all_ids()
    yield from (make() for make in (
        row_splits, sparse_indices, sparse_rank_3_indices, sparse_rank_1, weight_counts,
        weights_with_dense, dense_shape, batch_size, sequence_batch, output_shape, first_batch,
        good_beside_bad, unknown_feature, mid_pipeline))

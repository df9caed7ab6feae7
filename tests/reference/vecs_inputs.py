# SPDX-License-Identifier: MIT
"""Vectors of input forms, output shapes and sequence features that must work."""

from vecbuild import Vector, adagrad, dense, feature, nested, numbers, ragged, sparse, splits, table


def dense_ranks():
    v = Vector("dense_rank_1_and_2", "Dense ids: one per position, whatever the combiner; a last "
               "dimension of 1 goes away.", [table(combiner="sum")],
               [feature("plain"), feature("column"), feature("cube")])
    v.train({"plain": dense([1, 7, 1]), "column": dense([2, 3, 4, 2], [4, 1]),
             "cube": dense([0, 1, 2, 3, 4, 5], [2, 3, 1])})
    v.table()
    return v


def sparse_rank_2():
    v = Vector("sparse_rank_2", "Sparse ids with gaps, empty samples in the middle and at the end, "
               "and a weight each.", [table(combiner="mean")], [feature("f"), feature("w")])
    where = [[0, 0], [0, 3], [2, 1], [3, 0], [3, 1], [3, 2]]
    v.train({"f": sparse(where, [1, 2, 7, 3, 3, 4], [5, 4]),
             "w": sparse(where, [1, 2, 7, 3, 3, 4], [5, 4], [1, 0.5, 3, 1, -0.5, 2])})
    v.table()
    return v


def sparse_rank_3():
    v = Vector("sparse_rank_3", "The leading dimensions of a sparse input are samples in row-major "
               "order, the last is the bag.", [table(combiner="sqrtn")], [feature()])
    v.train({"f": sparse([[0, 0, 0], [0, 0, 1], [0, 2, 4], [1, 1, 0], [1, 1, 2], [1, 2, 3]],
                         [5, 1, 2, 7, 7, 0], [2, 3, 5], [1, 2, 1, 0.5, -1, 4])})
    v.table()
    return v


def sparse_rank_4():
    v = Vector("sparse_rank_4", "Rank 4: three leading dimensions of samples.",
               [table(dim=2, combiner="sum")], [feature()])
    v.train({"f": sparse([[0, 0, 1, 0], [0, 1, 0, 0], [0, 1, 0, 1], [1, 1, 1, 0]],
                         [3, 4, 5, 6], [2, 2, 2, 2])})
    v.table()
    return v


def sparse_empty():
    v = Vector("sparse_without_values", "A sparse input with no values has its samples all the "
               "same.", [table()], [feature()])
    v.train({"f": sparse([], [], [3, 4])})
    v.table()
    return v


def ragged_forms():
    v = Vector("ragged_both_forms", "Rows, and values with row_splits, say the same; both with and "
               "without weights.", [table(combiner="mean")],
               [feature(name) for name in ("rows", "split", "rows_w", "split_w")])
    rows, weights = [[1, 2], [], [3, 3, 6], [7]], [[1, 2], [], [0.5, 1, -0.25], [3]]
    flat, flat_w = [1, 2, 3, 3, 6, 7], [1, 2, 0.5, 1, -0.25, 3]
    v.train({"rows": ragged(rows), "split": splits(flat, [0, 2, 2, 5, 6]),
             "rows_w": ragged(rows, weights),
             "split_w": splits(flat, [0, 2, 2, 5, 6], flat_w)})
    v.table()
    return v


def all_forms():
    v = Vector("input_forms_in_one_batch", "Dense, sparse and ragged features of one table in one "
               "batch, of other batch sizes.", [table(combiner="sum", optimizer=adagrad())],
               [feature("d"), feature("s"), feature("r")])
    v.train({"d": dense([5, 5]), "s": sparse([[1, 0], [2, 0], [2, 1]], [5, 1, 2], [3, 2]),
             "r": ragged([[5, 1], [], [2], [5]], [[2, 1], [], [1], [-1]])})
    v.table()
    v.table(slot="accumulators")
    return v


def forms_may_change():
    v = Vector("input_form_may_change", "Batches may come in any form, one after "
               "another.", [table(combiner="sum")], [feature()])
    v.train({"f": ragged([[1, 2], [3], []])}, seed=1)
    v.train({"f": sparse([[0, 0], [2, 1]], [4, 5], [3, 2])}, seed=2)
    v.train({"f": dense([6, 6, 0])}, seed=3)
    v.table()
    return v


def sequence(name, source, about):
    v = Vector(f"sequence_{name}", about + " as a sequence: truncated to 3, padded with zeros. The "
               "combiner is not applied; gradients at padding and beyond max_sequence_length "
               "are dropped.",
               [table()], [feature(max_sequence_length=3)])
    v.train({"f": source})
    v.stats("t", "ids", "unique_ids")
    v.table()
    return v


def sequences():
    rows = [[1, 2], [3, 4, 5, 6, 7], [], [2, 2, 2]]
    yield sequence("ragged", ragged(rows), "Ragged rows")
    yield sequence("row_splits", splits(sum(rows, []), [0, 2, 7, 7, 10]), "row_splits")
    yield sequence("sparse", sparse(
        [[i, j] for i, row in enumerate(rows) for j in range(len(row))], sum(rows, []), [4, 5]),
        "Sparse ids")


def sequence_untouched():
    v = Vector("sequence_truncated_id_untouched", "Row 7 is asked for only beyond "
               "max_sequence_length: no weight decay reaches it.",
               [table(optimizer={"kind": "sgd", "learning_rate": 0.5,
                                 "weight_decay_factor": 0.25})],
               [feature(max_sequence_length=2)], requires=["options"])
    v.train({"f": ragged([[1, 2, 7], [3], [4, 5, 7, 7]])}, {"f": {"fill": 0}})
    v.table()
    return v


def sequence_beside_bag():
    v = Vector("sequence_and_bag_share_table", "A sequence feature and a mean feature of one "
               "table: the row gradients add up.", [table(optimizer=adagrad())],
               [feature("seq", max_sequence_length=2), feature("bag")])
    for seed in (1, 2):
        v.train({"seq": ragged([[1, 2, 3], [4]]), "bag": ragged([[1, 4], [2, 2, 7]])}, seed=seed)
    v.table()
    v.table(slot="accumulators")
    return v


def sequence_rank_3():
    v = Vector("sequence_length_ignored_at_rank_3", "max_sequence_length does not apply to a "
               "sparse input of rank 3: bags are combined.",
               [table(combiner="sum")], [feature(max_sequence_length=2)])
    v.train({"f": sparse([[0, 0, 0], [0, 0, 1], [0, 0, 2], [1, 1, 0]], [1, 2, 3, 4], [2, 2, 3])})
    v.table()
    return v


def sequence_gaps():
    v = Vector("sequence_of_sparse_with_gaps", "Position j is the j-th id of the sample, wherever "
               "its index stands.", [table()], [feature(max_sequence_length=2)])
    v.train({"f": sparse([[0, 1], [0, 3], [0, 4], [2, 2]], [1, 2, 3, 4], [3, 5])})
    v.table()
    return v


def sequence_output_shape():
    v = Vector("sequence_length_ignored_with_output_shape", "With an output_shape a feature is no "
               "sequence: its bags are combined.",
               [table()], [feature(max_sequence_length=2, output_shape=[2])])
    v.train({"f": ragged([[1, 2, 3], [4]])})
    v.table()
    return v


def output_shapes():
    features = [feature("wide", output_shape=[2, 3]), feature("tall", output_shape=[3, 2]),
                feature("flat", output_shape=[6])]
    v = Vector("output_shape_reshapes", "output_shape orders the samples row-major: ragged and "
               "dense inputs of 6 samples, sparse of rank 3.",
               [table(dim=2, combiner="sum")], features)
    v.train({"wide": ragged([[1], [2, 3], [], [4, 4], [5], [6, 7, 0]]),
             "tall": sparse([[0, 0, 0], [0, 1, 1], [2, 1, 0]], [1, 5, 7], [3, 2, 2]),
             "flat": dense([0, 1, 2, 3, 4, 5])})
    v.table()
    return v


def output_shape_sparse():
    v = Vector("output_shape_of_sparse_rank_2", "A sparse input of rank 2 with 4 samples takes the "
               "shape [2, 2]; weights stay with their ids.", [table(combiner="mean")],
               [feature(output_shape=[2, 2])])
    v.enqueue({"f": sparse([[0, 0], [1, 0], [1, 1], [3, 0]], [1, 2, 3, 4], [4, 2],
                           [1, 1, 3, 2])})
    v.dequeue()
    v.apply({"f": nested(numbers(12, 4), [2, 2, 3])})
    v.table()
    return v


def output_shape_mismatch():
    v = Vector("output_shape_wrong_count", "5 samples do not fill the shape [2, 2]; the next batch "
               "is as if the refused one had never been.", [table()],
               [feature("lists", output_shape=[2, 2])])
    v.enqueue({"lists": ragged([[1], [2], [3], [4], [5]])},
              error={"errno": "EINVAL", "contains": ["lists"]})
    v.train({"lists": ragged([[1], [2], [3], [4]])})
    v.table()
    return v


def vectors():
    yield from (make() for make in (
        dense_ranks, sparse_rank_2, sparse_rank_3, sparse_rank_4, sparse_empty, ragged_forms,
        all_forms, forms_may_change))
    yield from sequences()
    yield from (make() for make in (
        sequence_untouched, sequence_beside_bag, sequence_rank_3, sequence_gaps,
        sequence_output_shape, output_shapes, output_shape_sparse, output_shape_mismatch))

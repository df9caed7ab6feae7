# SPDX-License-Identifier: MIT
"""Vectors of combiners, weights, denominators, dims and row access."""

from vecbuild import Vector, adagrad, dense, feature, numbers, ragged, sparse, table

BAGS = [[1, 2, 5], [7], [], [3, 3, 3], [0, 6]]
PLAIN = [[1, 0.5, 2], [3], [], [1, 1, 0.25], [0.5, 0.5]]
MIXED = [[1, -0.5, 2], [-3], [], [1, -1.5, 0.25], [0.5, -1.5]]


def combiner(kind, name, weights, what):
    v = Vector(f"combiner_{kind}_{name}", f"{kind} combiner, {what}; an empty bag reads zeros, "
               "and its gradient reaches no row.", [table(combiner=kind)], [feature()])
    v.train({"f": ragged(BAGS, weights)})
    v.table()
    return v


def combiners():
    for kind in ("sum", "mean", "sqrtn"):
        yield combiner(kind, "unweighted", None, "no weights")
        yield combiner(kind, "weighted", PLAIN, "positive weights")
        yield combiner(kind, "mixed_signs", MIXED, "weights of both signs")


def default_combiner():
    v = Vector("combiner_default_is_mean", "A table that names no combiner takes the mean.",
               [table()], [feature()])
    v.train({"f": ragged(BAGS)})
    v.table()
    return v


def zero_denominator(kind, weights):
    v = Vector(f"zero_denominator_{kind}", f"A {kind} bag whose denominator is 0 reads zeros, not "
               "nan, and its gradient leaves the values of its rows; the bag beside it is not "
               "disturbed.", [table(combiner=kind)], [feature()])
    v.train({"f": ragged([[1, 2], [3, 4], [5]], weights)})
    v.table()
    return v


def tiny_weights():
    """Powers of two of the smallest floats, which text and f32 hold exactly enough."""
    low, cancel = 2.0 ** -149, 2.0 ** -140
    bags = [[1, 2], [3, 4], [5, 6, 0], [7], [2, 7, 1]]
    weights = [[2.0 ** -130, 0], [low, 3 * low], [-2.0 ** -128, -2.0 ** -129, 0], [3],
               [cancel, -cancel / 2, 0]]
    for kind in ("sum", "mean", "sqrtn"):
        v = Vector(f"tiny_weights_{kind}", f"{kind} of weights so small that 1 over their sum is no "
                   "f32: what weights have in common does not matter to mean and sqrtn, forward "
                   "and backward, and the bag and the weight of 0 beside them stay what they are.",
                   [table(combiner=kind)], [feature()])
        v.train({"f": ragged(bags, weights)})
        v.train({"f": ragged(bags, weights)}, seed=2)
        v.table()
        yield v


def huge_weights():
    """The sum is 1.0 * 2^127, so that nothing on the way overflows; its inverse is no normal f32."""
    for kind in ("mean", "sqrtn"):
        v = Vector(f"huge_weights_{kind}", f"{kind} of weights near the largest float, alone and "
                   "beside tiny ones and 0.", [table(combiner=kind)], [feature()])
        v.train({"f": ragged([[1], [2, 3], [4, 5], [6]],
                             [[2.0 ** 126], [2.0 ** 125, 2.0 ** -149], [2.0 ** 126, 0], [1]])})
        v.table()
        yield v


def zero_weight_touches():
    v = Vector("zero_weight_touches_row", "An id with weight 0 and the ids of a sample with "
               "denominator 0 count as touched rows.", [table(combiner="mean")], [feature()])
    v.train({"f": ragged([[1, 2], [4, 4], [6]], [[0, 2], [0, 0], [1]])})
    v.stats("t", "ids", "unique_ids")
    v.table()
    return v


def empty_batch():
    v = Vector("empty_bags_only", "A batch without a single id: zeros come out, the tables stay.",
               [table("a", combiner="sum"), table("b", combiner="mean"),
                table("c", combiner="sqrtn")],
               [feature("fa", "a"), feature("fb", "b"), feature("fc", "c")])
    v.train({name: ragged([[], [], []]) for name in ("fa", "fb", "fc")})
    for name in "abc":
        v.stats(name, "ids", "unique_ids")
        v.table(name)
    return v


def dims(dim):
    v = Vector(f"dim_{dim}", f"Rows of {dim} columns: no column is lost or shared between rows.",
               [table(rows=4, dim=dim, combiner="mean",
                      initial={"arange": [-1.0, 0.03125 if dim < 20 else 0.0078125]})],
               [feature()])
    v.enqueue({"f": ragged([[1, 2], [3]], [[1, 3], [2]])})
    v.dequeue()
    v.apply({"f": [numbers(dim, 1), numbers(dim, 2)]})
    v.table(rows=[1, 3, 0])
    return v


def wide_dim(dim):
    v = Vector(f"dim_{dim}", f"Rows of {dim} columns: no column is lost or shared between rows.",
               [table(rows=3, dim=dim, combiner="sum", initial={"arange": [-1.0, 0.0078125]})],
               [feature()])
    v.lookup({"f": ragged([[0, 2]], [[1, 0.5]])})
    v.apply({"f": [numbers(dim, 1)]})
    v.table(rows=[2, 1])
    return v


def big_vocabulary():
    rows = [0, 1, 65535, 65536, 99998, 99999]
    v = Vector("big_vocabulary", "Rows far apart in a table of 100000: each id reaches its own "
               "row and the neighbours stay.",
               [table(rows=100000, dim=2, combiner="sum", initial={"row_id": 0.5})], [feature()])
    v.train({"f": ragged([[99999], [0, 65536], [50000, 49999]])})
    v.table(rows=rows + [49998, 49999, 50000, 50001])
    return v


def matrices():
    spec = {"listed": [[1, 2], [3, 4.5], [-5, 0.25]], "filled": {"fill": 0.75},
            "ranged": {"arange": [2, -0.5]}, "numbered": {"row_id": -1}}
    tables = [table(name, rows=3, dim=2, initial=m) for name, m in spec.items()]
    v = Vector("initial_matrix_forms", "Every form of a matrix, as initial values and through "
               "a lookup.", tables, [feature("f_" + name, name) for name in spec])
    for name in spec:
        v.table(name)
    v.lookup({"f_" + name: dense([2, 0, 1]) for name in spec}, training=False)
    return v


def default_initial():
    spec = table(rows=200, dim=4)
    del spec["initial"]
    v = Vector("initial_default_is_bounded", "Rows without initial values come from a normal of "
               "deviation 1/sqrt(dim) cut at twice that: for dim 4 all are within 1 of 0. The "
               "numbers themselves are the engine's.", [spec], [feature()])
    v.steps.append({"expect_table": {"table": "t", "values": {"fill": 0}, "atol": 1.000001,
                                     "rtol": 0}})
    return v


def not_finite():
    v = Vector("rows_not_finite", "nan and inf in a row come out where the row is read and "
               "nowhere else.", [table(rows=4, dim=2, combiner="mean", initial=[
                   [1, 2], ["nan", 3], ["inf", "-inf"], [4, 5]])], [feature()],
               {"non_finite": "allow"})
    v.lookup({"f": ragged([[0, 3], [1, 0], [2, 3], []])}, training=False)
    v.table()
    return v


def weights_not_finite():
    """validate_weights_and_indices is the serving lookup's alone."""
    for combiner in ("sum", "mean", "sqrtn"):
        v = Vector(f"weights_not_finite_{combiner}", "A weight that is not finite goes into the "
                   "sums of its own sample, and nowhere else.",
                   [table(rows=4, dim=2, combiner=combiner)], [feature()],
                   {"non_finite": "allow"})
        v.lookup({"f": ragged([[0, 3], [1, 2], [2, 3], [3]],
                              [["nan", 1], [1, 2], ["inf", 1], ["-inf"]])}, training=False)
        v.train({"f": ragged([[0, 3], [1], [], []], [["nan", 1], [2], [], []])})
        v.table()
        yield v


def weights_refused():
    """By every policy but allow, in training and inference; then the step is given again."""
    for policy in ("error", "drop"):
        v = Vector(f"weights_refused_{policy}", "A weight that is not finite is refused and named; "
                   "nothing has changed, and finite weights of any size are taken.",
                   [table(rows=4, dim=2, combiner="mean")], [feature()], {"non_finite": policy})
        for training in (False, True):
            for bad in ("nan", "inf", "-inf"):
                v.enqueue({"f": ragged([[0, 3], [1]], [[1, 0], [bad]])}, training=training,
                          error={"errno": "ERANGE", "contains": ["feature f", "weight", "finite"]})
            v.enqueue({"f": sparse([[0, 0], [1, 1]], [1, 2], [2, 2], ["inf", 1])},
                      training=training, error={"errno": "ERANGE", "contains": ["feature f"]})
        v.train({"f": ragged([[0, 3], [1]], [[0, 1], [2]])})
        v.table()
        yield v


def duplicates():
    v = Vector("duplicates_in_bag_and_samples", "An id twice in a bag weighs twice; over samples "
               "its gradients add up before the one update.",
               [table(combiner="mean", optimizer=adagrad(0.5))],
               [feature()])
    v.train({"f": ragged([[2, 2, 5], [2], [5, 2]], [[1, 0.5, 2], [1], [3, 1]])})
    v.table()
    v.table(slot="accumulators")
    return v


def shared_table():
    v = Vector("two_features_one_table", "Two features read one table; a row that both touch is "
               "updated once, with the sum.",
               [table(combiner="sum", optimizer=adagrad(0.25))],
               [feature("a"), feature("b")])
    v.train({"a": ragged([[1, 2], [3]]), "b": ragged([[3, 1], [1], [6]], [[1, 2], [0.5], [1]])})
    v.table()
    v.table(slot="accumulators")
    return v


def unused_table():
    v = Vector("table_without_features", "A table that no feature uses is legal and stays.",
               [table("used"), table("idle", rows=3, dim=2)], [feature("f", "used")])
    v.train({"f": dense([1, 4])})
    v.table("idle")
    v.table("used")
    v.stats("idle", "ids", "unique_ids")
    return v


def many_tables():
    tables = [table("a", rows=3, dim=1, combiner="sum"), table("b", rows=5, dim=4),
              table("c", rows=2, dim=2, combiner="sqrtn",
                    optimizer=adagrad(1))]
    v = Vector("three_tables_mixed", "Tables of other sizes, combiners and optimizers in one step; "
               "features in another order than tables.", tables,
               [feature("z", "c"), feature("y", "a"), feature("x", "b"), feature("w", "a")])
    for seed in (1, 2):
        v.train({"z": ragged([[0, 1, 1], [1]]), "y": dense([2, 0, 2]),
                 "x": ragged([[4], [0, 4]], [[2], [1, 3]]), "w": dense([1])}, seed=seed)
    for name in "abc":
        v.table(name)
    v.table("c", slot="accumulators")
    return v


def row_list():
    v = Vector("expect_rows_in_any_order", "Rows are read by logical id, in the order asked for, "
               "also twice.", [table()], [feature()])
    v.table(rows=[7, 0, 3, 3, 1])
    v.table(rows=[8], error={"errno": "ERANGE", "contains": ["8"]})
    v.table("nowhere", error={"errno": "ENOENT", "contains": ["nowhere"]})
    v.table(slot="accumulators", error={"errno": "ENOENT", "contains": ["accumulators"]})
    v.table(rows=[7])
    return v


def inference_only():
    spec = table(rows=4, dim=2)
    del spec["optimizer"]
    v = Vector("inference_without_optimizer", "A table of an inference-only model needs no "
               "optimizer.", [spec], [feature()])
    for ids in ([0, 3], [2, 1]):
        v.lookup({"f": dense(ids)}, training=False)
    v.table()
    return v


def vectors():
    yield from combiners()
    yield default_combiner()
    yield zero_denominator("mean", [[1, -1], [0, 0], [2]])
    yield zero_denominator("sqrtn", [[0, 0], [3, 4], [0]])
    yield from tiny_weights()
    yield from huge_weights()
    yield zero_weight_touches()
    yield empty_batch()
    yield from weights_not_finite()
    yield from weights_refused()
    yield from (dims(dim) for dim in (1, 3, 8, 17))
    yield from (wide_dim(dim) for dim in (64, 130))
    yield from (make() for make in (
        big_vocabulary, matrices, default_initial, not_finite, duplicates, shared_table,
        unused_table, many_tables, row_list, inference_only))

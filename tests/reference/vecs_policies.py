# SPDX-License-Identifier: MIT
"""Vectors of ids outside their table: what each policy does, and what is counted."""

from vecbuild import Vector, dense, feature, ragged, sparse, table
from vecs_optimizers import ADAM, FTRL, read

KINDS = ("clamp", "drop", "zero")
HUGE = 1099511627776


OUTSIDE = [[1, -1, 2], [8], [1099511627776, 3], [7, -9223372036854775808], [4, 5]]
WEIGHTS = [[1, 2, 1], [1], [3, 1], [1, 1], [1, -0.5]]


def policy(kind, combiner, weights, name=None):
    v = Vector(f"policy_{kind}_{name or combiner}", {
        "clamp": "Ids outside of the table read and train the nearest row, and are counted.",
        "drop": "Ids outside of the table are as if absent, in the denominator too, and counted.",
        "zero": "Ids outside of the table read zeros, keep their weight in the denominator, train "
                "no row, and are counted."}[kind],
               [table(combiner=combiner, out_of_range=kind)], [feature()], requires=["policies"])
    v.train({"f": ragged(OUTSIDE, weights)})
    v.stats("t")
    v.table()
    return v


def policy_dense(kind):
    v = Vector(f"policy_{kind}_dense", f"The policy {kind} for dense ids; nothing but ids outside "
               "changes.", [table(out_of_range=kind)], [feature()], requires=["policies"])
    v.train({"f": dense([0, -3, 7, 8, 1099511627776])})
    v.stats("t")
    v.table()
    return v


def policies_by_table():
    kinds = [*KINDS, "error"]
    v = Vector("policies_are_per_table", "Each table has its own policy; the one with error "
               "refuses the batch and then nothing is counted.",
               [table(kind, rows=4, dim=2, out_of_range=kind) for kind in kinds],
               [feature("f_" + kind, kind) for kind in kinds], requires=["policies"])
    bad = {"f_" + kind: ragged([[1, 9], [2]]) for kind in kinds}
    v.enqueue(bad, error={"errno": "ERANGE", "contains": ["f_error", "9"]})
    v.train({**bad, "f_error": ragged([[1, 3], [2]])})
    for kind in kinds:
        v.stats(kind)
        v.table(kind)
    return v


def policy_inference():
    v = Vector("policy_counts_inference", "Ids that a policy took are counted for inference too; "
               "ids and unique_ids are not.",
               [table("a", out_of_range="drop"), table("b", out_of_range="clamp"),
                table("c", out_of_range="zero")],
               [feature("f" + n, n) for n in "abc"], requires=["policies"])
    v.lookup({"f" + n: ragged([[1, 9, -1], [2]]) for n in "abc"}, training=False)
    for name in "abc":
        v.stats(name)
    return v


def sequence(kind):
    v = Vector(f"policy_{kind}_sequence", "Ids outside of the table in a sequence: a dropped one "
               "lets the next move up, a zero one keeps its place, a clamped one is the nearest "
               "row; those beyond the length are not counted.",
               [table(out_of_range=kind)], [feature(max_sequence_length=3)],
               requires=["policies"])
    v.train({"f": ragged([[1, -1, 2, 3], [HUGE], [4, 5, 6, -7], [], [8, 9, 10]])})
    v.stats("t")
    v.table()
    return v


def replicas(kind):
    v = Vector(f"policy_{kind}_two_replicas", "Counts of all replicas add up, over both features "
               "of the table and over steps.", [table(combiner="sum", out_of_range=kind)],
               [feature(), feature("g")], engine={"replicas": 2}, requires=["policies"])
    for step in range(2):
        for r, ids in enumerate(([1, -2], [8 + step, 3])):
            v.lookup({"f": dense(ids), "g": sparse([[0, 0], [0, 1]], [HUGE, 2], [1, 2])},
                     replica=r)
        for r in (0, 1):
            v.apply(v.grads(step + r), replica=r)
    v.stats("t")
    v.stats("t")
    v.table()
    return v


def optimizers(kind):
    v = Vector(f"policy_{kind}_optimizers", "A row that only ids outside of the table ask for is "
               "the nearest one under clamp, and none under drop and zero: FTRL and non-lazy Adam, "
               "which move rows without a gradient, show it.",
               [table("a", optimizer=FTRL, out_of_range=kind),
                table("b", optimizer={**ADAM, "lazy_adam": False}, out_of_range=kind)],
               [feature("fa", "a"), feature("fb", "b")], requires=["policies"])
    for seed in (1, 2):
        v.train({"fa": ragged([[1, 99], [-5]]), "fb": ragged([[1, 99], [-5]])}, seed=seed)
    for name, optimizer in (("a", FTRL), ("b", ADAM)):
        v.stats(name)
        read(v, name, optimizer)
    return v


def error():
    v = Vector("policy_error_counts_nothing", "An id outside of a table whose policy is error is "
               "refused, in training and inference, and leaves no count.",
               [table(out_of_range="error")], [feature()], requires=["policies"])
    for training in (True, False):
        v.enqueue({"f": ragged([[1, 2], [8]])}, training=training,
                  error={"errno": "ERANGE", "contains": ["f", "8"]})
    v.stats("t")
    v.train({"f": ragged([[1, 2], [7]])})
    v.stats("t")
    v.table()
    return v


def vectors():
    for kind in KINDS:
        yield policy(kind, "mean", WEIGHTS)
        yield policy(kind, "sqrtn", WEIGHTS)
        yield policy(kind, "sum", None, "unweighted")
        yield policy_dense(kind)
        yield sequence(kind)
        yield replicas(kind)
        yield optimizers(kind)
    yield error()
    yield policies_by_table()
    yield policy_inference()

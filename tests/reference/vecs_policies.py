# SPDX-License-Identifier: MIT
"""Vectors of ids outside their table: what each policy does, and what is counted."""

from vecbuild import Vector, dense, feature, ragged, sparse, table
from vecs_optimizers import ADAM, FTRL, read

KINDS = ("clamp", "drop", "zero")
HUGE = 1099511627776


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
        yield sequence(kind)
        yield replicas(kind)
        yield optimizers(kind)
    yield error()

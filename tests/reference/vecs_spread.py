# SPDX-License-Identifier: MIT
"""Vectors of tables whose rows are spread over hosts: lists, activations and sums."""

from vecbuild import Vector, adagrad, dense, feature, nested, numbers, ragged, splits, table

BAGS = [[7, 2, 7], [], [0, 4, 7], [4, 2, 2, 5]]
WEIGHTS = [[0.5, 2, -1], [], [1, 0, 0.25], [3, 0.5, 0.5, 1]]
OUTSIDE = [[9, 2, 7], [-1], [0, 8, 7], [4, -5, 2, 5]]
OUTSIDE_WEIGHTS = [[0.5, 2, -1], [3], [1, 0.5, 0.25], [3, 0.5, 0.5, 1]]


def gradients(samples, dim, seed=3, length=0):
    shape = [samples, length, dim] if length else [samples, dim]
    count = samples * dim * (length or 1)
    return nested(numbers(count, seed), shape)


def one_host():
    v = Vector("spread_one_host", "On one host a batch's list has its rows in ascending order.",
               [table(combiner="mean")], [feature()])
    v.spread({"f": dense([5, 1, 5])}, {"f": gradients(3, 3)})
    v.spread({"f": ragged(BAGS)}, {"f": gradients(4, 3)})
    v.spread({"f": splits([3, 6, 3], [0, 2, 2, 3])})
    v.spread({"f": ragged([[], []])}, {"f": gradients(2, 3)})
    v.spread({"f": dense([])})
    return v


def over(hosts, sharding, combiner):
    v = Vector(f"spread_{sharding}_{hosts}_{combiner}", "Rows of each host together; two features of "
               "a table share its list, and their gradients its sums.",
               [table(combiner=combiner), table("u", 5, 2, combiner="sum")],
               [feature("a"), feature("b"), feature("c", "u")])
    v.spread({"a": ragged(BAGS, WEIGHTS), "b": dense([1, 7]), "c": ragged([[4], [0, 4], [2]])},
             {"a": gradients(4, 3), "b": gradients(2, 3, 8), "c": gradients(3, 2, 5)},
             hosts=hosts, sharding=sharding)
    return v


def policies():
    for policy in ("clamp", "drop", "zero"):
        v = Vector(f"spread_{policy}", "An id outside its table has the row that its policy gives it, "
                   "or none.", [table(combiner="mean", out_of_range=policy)], [feature()])
        v.spread({"f": ragged(OUTSIDE, OUTSIDE_WEIGHTS)}, {"f": gradients(4, 3)}, hosts=2, sharding="mod")
        v.spread({"f": dense([8, 1, -1])}, {"f": gradients(3, 3)})
        yield v


def sequences():
    for policy in ("error", "drop", "zero"):
        v = Vector(f"spread_sequence_{policy}", "Ids behind the length of a sequence have no row.",
                   [table(combiner="sum", **({} if policy == "error" else
                                             {"out_of_range": policy}))],
                   [feature(max_sequence_length=2)])
        bags = BAGS if policy == "error" else OUTSIDE
        v.spread({"f": ragged(bags)}, {"f": gradients(4, 3, length=2)}, hosts=3, sharding="div")
        v.spread({"f": ragged([[1, 2, 3], [3]])}, {"f": gradients(2, 3, length=2)})
        yield v


def largest():
    v = Vector("spread_max", "The first of the largest numbers has the gradient.",
               [table(combiner="max", initial=[[1, -2, 3], [1, 4, -5], [0, 4, 3], [2, -2, -2]],
                      rows=4)], [feature()])
    v.spread({"f": ragged([[0, 1, 2], [3, 0], [], [2, 2]])}, {"f": gradients(4, 3)}, hosts=2,
             sharding="mod")
    return v


def hot_row():
    v = Vector("spread_hot_row", "A row of more occurrences than a run has.",
               [table(combiner="sum", dim=2)], [feature()])
    v.spread({"f": dense([3] * 300 + [6, 3])}, {"f": gradients(302, 2)}, hosts=2, sharding="mod",
             tolerance={"atol": 0.00001, "rtol": 0})
    return v


def quantized():
    v = Vector("spread_quantized", "Rows are quantized once, where they are gathered.",
               [table(combiner="mean",
                      quantization={"num_buckets": 4, "lower": -0.5, "upper": 1.0})], [feature()])
    v.spread({"f": ragged(BAGS, WEIGHTS)}, {"f": gradients(4, 3)}, hosts=2)
    return v


def between_steps():
    v = Vector("spread_between_steps", "Steps go on as if nothing had been asked in between, and rows are "
               "as the last one left them.", [table(optimizer=adagrad(0.25))], [feature()],
               {"replicas": 1, "pipelining": True})
    v.train({"f": dense([1, 2])})
    v.spread({"f": dense([2, 1, 3])}, {"f": gradients(3, 3)}, hosts=2, sharding="mod")
    v.train({"f": dense([2, 3])}, seed=4)
    v.spread({"f": dense([2, 1, 3])}, {"f": gradients(3, 3)})
    v.table()
    return v


def refused():
    v = Vector("spread_refused", "Each call says what is wrong.",
               [table(), table("m", combiner="max")], [feature(), feature("g", "m")])
    good = {"f": dense([1, 2]), "g": dense([3])}
    v.spread({**good, "f": ragged([[1], [2, 8]])},
             error={"errno": "ERANGE", "contains": ["feature f, sample 1", "id 8", "table t"]})
    v.spread({**good, "g": ragged([[1]], [[2.0]])}, error={"errno": "EINVAL", "contains": ["g"]})
    v.spread({**good, "f": ragged([[1]], [["inf"]])}, error={"errno": "ERANGE"})
    v.spread(good, {"g": [[1, "nan", 0]]}, error={"errno": "ERANGE", "contains": ["g"]})
    v.spread(good, hosts=65537, error={"errno": "ERANGE", "contains": ["65537 hosts"]})
    v.spread(good, sharding="mad", error={"errno": "EINVAL", "contains": ["mad"]})
    v.spread(good, {"f": gradients(2, 3)}, hosts=65536)
    return v


def vectors():
    yield one_host()
    for hosts, sharding, combiner in ((2, "mod", "mean"), (3, "mod", "sqrtn"), (3, "div", "sum"),
                                      (12, "div", "mean"), (12, "mod", "sum")):
        yield over(hosts, sharding, combiner)
    yield from policies()
    yield from sequences()
    yield largest()
    yield hot_row()
    yield quantized()
    yield between_steps()
    yield refused()

# SPDX-License-Identifier: MIT
"""Vectors of the format itself: forms of keys that no other vector happens to have."""

from vecbuild import Vector, dense, feature, ragged, sgd, table

NAMES = ["checkpoint", "config", "hosts", "optimizer:sgd", "options", "partition", "policies",
         "quantization", "serving", "shards", "slots", "stacking"]


def all_named():
    v = Vector("keys_requires", "Every capability that there is, named.", [table()], [feature()],
               requires=NAMES)
    v.doc["source"] = "the format's own list"
    v.train({"f": dense([1, 2])})
    v.table()
    return v


def tolerances():
    v = Vector("keys_tolerances", "Tolerances of activations, rows and lookups, by atol alone, by "
               "rtol alone and both 0.", [table()], [feature()])
    v.enqueue({"f": ragged([[1, 2], [3]])})
    v.dequeue(atol=0.5, rtol=0)
    body = v.steps[-1]["dequeue"]["expect"]
    body["f"] = [[x + 0.4 for x in row] for row in body["f"]]
    v.apply(v.grads(2))
    v.table(atol=0, rtol=0.25)
    values = v.steps[-1]["expect_table"]["values"]
    values[:] = [[x * 1.125 for x in row] for row in values]
    v.table(atol=0, rtol=0)
    v.serve({"f": ragged([[5], [6, 7]])}, atol=0, rtol=0)
    return v


def matrices():
    v = Vector("keys_matrices", "Rows that are told by a formula: of all rows, and of some.",
               [table("a", dim=2, initial={"arange": [0.5, 0.25]}),
                table("b", dim=2, initial={"row_id": 3}), table("c", dim=2, initial={"fill": -2})],
               [feature("f", "a")])
    for name, values in (("a", {"arange": [0.5, 0.25]}), ("b", {"row_id": 3}), ("c", {"fill": -2})):
        for rows in (None, [4, 5]):
            v.table(name, rows=rows)
            given = {"arange": [2.5, 0.25]} if rows and name == "a" else values
            assert v.steps[-1]["expect_table"]["values"] == formula(given, rows or range(8))
            v.steps[-1]["expect_table"]["values"] = given
    return v


def formula(values, rows):
    """Returns the values that a formula stands for: arange counts positions of the rows that are
    read, row_id their numbers in the table."""
    if "arange" in values:
        start, step = values["arange"]
        return [[start + step * (2 * k + c) for c in (0, 1)] for k in range(len(rows))]
    return [[values["fill"] if "fill" in values else r + values["row_id"]] * 2 for r in rows]


def nothing_said():
    v = Vector("keys_null", "null is what a key left out is: of an output shape, a rotation, a "
               "buffer and a gradient.", [table(rows=64), table("u", rows=64)],
               [feature(output_shape=None), feature("g", "u", output_shape=None)])
    v.partition({"f": ragged([[1, 2], [], [9], [1]]), "g": ragged([[5], [6], [7], [8, 9]])},
                flavour="tf", sparse_cores=4, cores_per_device=4, max_ids_per_partition=8,
                max_unique_ids_per_partition=8, suggested_buffer_size=None, rotation=None,
                device=0, minibatching=False, allow_id_dropping=False)
    v.train({"f": dense([1, 2]), "g": dense([3, 4])}, {"f": None, "g": {"fill": 1}})
    v.table()
    v.table("u")
    return v


def whole_numbers():
    v = Vector("keys_numbers", "Whole numbers where others may stand, and texts for what JSON "
               "cannot say.", [table(optimizer=sgd(1, clip_weight_max="inf"), dim=2,
                                     initial=[[1, "inf"], [2, "-inf"], [3, "nan"]], rows=3)],
               [feature()], {"non_finite": "allow"})
    v.lookup({"f": ragged([[0, 1], [2]], [[1, 2], [1]])})
    v.apply({"f": [[1, 0], [2, "nan"]]})
    v.table()
    return v


def vectors():
    return [all_named(), tolerances(), matrices(), nothing_said(), whole_numbers()]

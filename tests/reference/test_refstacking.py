#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The reference of table stacking against numbers worked out by hand."""

import hashlib
import unittest

from embref import Engine
from referror import RefError
from refstacking import shards, stacking

GRID = {"flavour": "tf", "sparse_cores": 8, "cores_per_device": 4}


def model(*tables, shape=(64,)):
    """Tables (name, rows, dim, combiner), each with one feature, in reverse order."""
    specs = [{"name": name, "vocabulary_size": rows, "dim": dim, "combiner": combiner,
              "optimizer": {"kind": "sgd", "learning_rate": 0.5}}
             for name, rows, dim, combiner in tables]
    features = [{"name": "f_" + spec["name"], "table": spec["name"], "output_shape": list(shape)}
                for spec in reversed(specs)]
    return Engine(specs, features).model


class Stacks(unittest.TestCase):
    def test_numbers(self):
        m = model(("b", 65, 8, "sum"), ("a", 10, 3, "mean"), ("c", 1, 5, "sum"))
        self.assertEqual(stacking(m, GRID), [{
            "name": "a_b_c", "width": 8, "tables": ["a", "b", "c"], "row_offsets": [0, 8, 24],
            "rotations": [0, 4, 0], "sample_offsets": [0, 64, 128]}])

    def test_jax_by_use_and_combiner(self):
        m = model(("b", 65, 8, "sum"), ("a", 10, 3, "mean"), ("c", 1, 5, "sum"))
        out = stacking(m, {**GRID, "flavour": "jax"})
        self.assertEqual([(s["name"], s["sample_offsets"]) for s in out],
                         [("c_b", [0, 64]), ("a", [0])])

    def test_limit(self):
        m = model(("a", 8, 8, "sum"), ("b", 8, 8, "sum"))
        for flavour, limit, stacks in (("tf", 1024, 2), ("tf", 1025, 1), ("jax", 1023, 2),
                                       ("jax", 1024, 1)):
            out = stacking(m, {**GRID, "flavour": flavour, "activation_limit_bytes": limit})
            self.assertEqual(len(out), stacks, (flavour, limit))

    def test_long_name(self):
        m = model(("a" * 30, 8, 8, "sum"), ("b" * 30, 8, 8, "sum"))
        whole = "b" * 30 + "_" + "a" * 30
        digest = hashlib.sha256(whole.encode()).hexdigest()
        self.assertEqual(stacking(m, {**GRID, "flavour": "jax"})[0]["name"],
                         "b" * 30 + "_" + "a" * 19 + "..." + digest[:12])
        self.assertEqual(stacking(m, GRID)[0]["name"], "a" * 30 + "_" + "b" * 30)

    def test_errors(self):
        m = model(("a", 8, 8, "sum"))
        for change in ({"sparse_cores": 0}, {"cores_per_device": 3}, {"flavour": "torch"},
                       {"activation_limit_bytes": 0}):
            with self.assertRaises(RefError):
                stacking(m, {**GRID, **change})
        with self.assertRaises(RefError):
            stacking(model(("a", 8, 8, "sum"), shape=()), GRID)


class Shards(unittest.TestCase):
    def test_rows_of_a_core(self):
        # full[(k - rotation) % S :: S] of two tables on two cores, the second rotated by one.
        a, b = [[1.0], [2.0], [3.0]], [[10.0], [20.0]]
        out = shards([a, b], [(0, 0, 4), (2, 1, 2)], 2, 3, 2, -1.0)
        self.assertEqual(out[0], [[1.0, -1.0], [3.0, -1.0], [20.0, -1.0]])
        self.assertEqual(out[1], [[2.0, -1.0], [-1.0, -1.0], [10.0, -1.0]])


if __name__ == "__main__":
    unittest.main()

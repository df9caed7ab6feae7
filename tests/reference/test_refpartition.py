#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The reference of partitioned CSR against numbers worked out by hand, and published ones."""

import unittest

from embref import Engine
from referror import RefError
from refhighway import highway64
from refpartition import BUCKETS, cuts_jax, cuts_tf, halves, joined, pairs, partition

GRID = {"flavour": "tf", "sparse_cores": 4, "cores_per_device": 2,
        "max_ids_per_partition": 64, "max_unique_ids_per_partition": 64}


def model(*rows, combiner="sum"):
    tables = [{"name": f"t{i}", "vocabulary_size": n, "dim": 1, "combiner": combiner,
               "optimizer": {"kind": "sgd"}} for i, n in enumerate(rows)]
    features = [{"name": f"f{i}", "table": f"t{i}"} for i in range(len(rows))]
    return Engine(tables, features).model


def run(m, features, **options):
    return partition(m, features, {**GRID, **options})


class Limits:
    def __init__(self, ids, unique=10**9):
        self.max_ids, self.max_unique = ids, unique


def counts(**at):
    return [(at.get(f"b{b}", 0), at.get(f"b{b}", 0)) for b in range(BUCKETS)]


class Hash(unittest.TestCase):
    def test_published_values(self):
        key = (0x0706050403020100, 0x0f0e0d0c0b0a0908, 0x1716151413121110, 0x1f1e1d1c1b1a1918)
        self.assertEqual(highway64(bytes(range(4)), key), 0xf205a46893007eda)
        self.assertEqual(highway64(bytes(range(8)), key), 0xe1205108e55f3171)


class Layout(unittest.TestCase):
    def test_columns_of_the_specification(self):
        # S = 4: (127, shift 1, offset 32) -> 156, (70, 0, 0) -> 70.
        out = run(model(32, 128), {"f0": {"dense": [0, 0]}, "f1": {"dense": [127, 70]}},
                  rotation=1)
        self.assertEqual(out["items"][0][0][1:], [0, 0, 1.0])
        self.assertEqual(out["items"][0][1][1:], [1, 156 // 4, 1.0])
        self.assertEqual(out["items"][1][1][1:], [1, 32 // 4 + 68 // 4, 1.0])

    def test_pointers_and_padding(self):
        rows = [[0, 4, 8], [1], [], [3]]
        out = run(model(64), {"f0": {"ragged": {"rows": rows}}})
        self.assertEqual(out["row_pointers"], [[3, 9, 16, 16, 16, 16, 16, 16],
                                               [16, 16, 16, 17, 24, 24, 24, 24]])
        self.assertEqual(out["items"][1], [[0, 1, 0, 1.0]])
        self.assertEqual(out["required_buffer"], [16, 8])
        self.assertEqual(out["padding"], {"id": 2147483647, "gain": 2147483648.0})

    def test_jax_segments(self):
        out = run(model(64), {"f0": {"dense": [0, 5]}}, flavour="jax", max_ids_per_partition=8)
        self.assertEqual(out["row_pointers"], [[1, 8, 8, 8, 8, 8, 8, 8],
                                               [0, 1, 8, 8, 8, 8, 8, 8]])
        self.assertEqual(out["items"], [[[0, 0, 0, 1.0]], [[0, 0, 1, 1.0]]])

    def test_gains(self):
        rows, weights = [[7, 3, 7], [5]], [[1, 2, 5], [0]]
        out = run(model(64, combiner="mean"), {"f0": {"ragged": {"rows": rows},
                                                      "weights": weights}})
        self.assertEqual(out["items"], [[[0, 0, 0, 0.25], [1, 0, 1, 0.75]], [[0, 0, 1, 0.0]]])

    def test_dropped(self):
        rows = [[0, 4, 4, 8, 8, 8], []]
        for flavour, lost in (("tf", 1), ("jax", 3)):
            out = run(model(64), {"f0": {"ragged": {"rows": rows}}}, flavour=flavour,
                      max_ids_per_partition=2, allow_id_dropping=True)
            self.assertEqual(out["dropped_ids"], lost)
            self.assertEqual([item[2] for item in out["items"][0]], [0, 1])

    def test_limit(self):
        with self.assertRaises(RefError):
            run(model(64), {"f0": {"dense": [0, 0, 4, 4]}}, max_ids_per_partition=1)


class Splits(unittest.TestCase):
    def test_jax_example(self):
        # Buckets 2 5 1 6 3 4 2 0 and a limit of 7: parted at 4, 2 and 6 of eight.
        numbers = [2, 5, 1, 6, 3, 4, 2, 0]
        spread = [n for n in numbers for n in [n] + [0] * 7]
        self.assertEqual(pairs(spread, 7)[1], {16, 32, 48})

    def test_tf_halves_and_joins(self):
        def fits(part):
            return sum(ids for ids, _ in part) <= 25

        # The left half is too large: its quarters are 15 and 15; the right half has 10.
        crowded = counts(b0=15, b16=15, b32=10)
        self.assertEqual(halves(crowded, fits, 0, BUCKETS), {16, 32})
        self.assertEqual(joined(crowded, fits, {16, 32}), {16})

    def test_all_partitions_agree(self):
        both = [counts(b0=20, b40=20), counts(b0=20, b20=20)]
        self.assertEqual(cuts_tf(both, Limits(30)), {32, 16})
        self.assertEqual(cuts_jax(both, Limits(30)), {32, 16})


if __name__ == "__main__":
    unittest.main()

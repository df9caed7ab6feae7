#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The reference against numbers worked out by hand."""

import unittest

from embref import Engine
from referror import RefError


def engine(rows, optimizer=None, table=None, **options):
    spec = {"name": "t", "vocabulary_size": len(rows), "dim": len(rows[0]), "initial": rows,
            "combiner": "sum", "optimizer": optimizer or {"kind": "sgd", "learning_rate": 1}}
    return Engine([{**spec, **(table or {})}], [{"name": "f", "table": "t"}], **options)


def rows_of(ids, weights=None):
    source = {"ragged": {"rows": ids}}
    return {"f": source if weights is None else {**source, "weights": weights}}


def train(e, ids, gradient, weights=None):
    e.enqueue(rows_of(ids, weights))
    out = e.dequeue()["f"]
    e.apply_gradients({"f": gradient})
    return out


class Numbers(unittest.TestCase):
    def close(self, got, want):
        for g, w in zip(got, want):
            for a, b in zip(g, w):
                self.assertAlmostEqual(a, b, places=12)

    def test_mean(self):
        e = engine([[8.0], [16.0]], table={"combiner": "mean"})
        self.close(train(e, [[0, 1], []], [[4.0], [9.0]], [[1, 3], []]), [[14.0], [0.0]])
        self.close(e.read_table("t"), [[7.0], [13.0]])

    def test_sqrtn(self):
        e = engine([[10.0], [20.0]], table={"combiner": "sqrtn"})
        self.close(train(e, [[0, 1]], [[5.0]], [[3, 4]]), [[22.0]])
        self.close(e.read_table("t"), [[7.0], [16.0]])

    def test_zero_denominator(self):
        e = engine([[1.0], [2.0]], table={"combiner": "mean"})
        self.close(train(e, [[0, 1]], [[1.0]], [[1, -1]]), [[0.0]])
        self.close(e.read_table("t"), [[1.0], [2.0]])
        self.assertEqual(e.read_stats("t")["unique_ids"], 2)

    def test_adagrad_sums_first(self):
        e = engine([[1.0]], {"kind": "adagrad", "learning_rate": 1,
                             "initial_accumulator_value": 7})
        train(e, [[0], [0]], [[1.0], [2.0]])
        self.close(e.read_table("t"), [[0.25]])
        self.close(e.read_table("t", "accumulators"), [[16.0]])

    def test_adagrad_without_accumulation(self):
        e = engine([[0.0]], {"kind": "adagrad", "learning_rate": 6,
                             "initial_accumulator_value": 1, "use_gradient_accumulation": False},
                   {"slots": {"accumulators": [[3.0]]}})
        train(e, [[0], [0]], [[1.0], [3 ** 0.5 * 2]])
        self.close(e.read_table("t"), [[-3.0 - 6 * 3 ** 0.5 * 2 / 4]])
        self.close(e.read_table("t", "accumulators"), [[16.0]])

    def test_pipeline_of_gradient(self):
        e = engine([[8.0]], {"kind": "sgd", "learning_rate": 1, "clipvalue": [None, 2],
                             "weight_decay_factor": 0.5, "clip_weight_min": 3})
        train(e, [[0], [0]], [[2.0], [2.0]])
        self.close(e.read_table("t"), [[3.0]])

    def test_zero_policy(self):
        e = engine([[9.0]], table={"combiner": "mean", "out_of_range": "zero"})
        self.close(train(e, [[0, 5]], [[3.0]], [[1, 2]]), [[3.0]])
        self.close(e.read_table("t"), [[8.0]])

    def test_drop_policy(self):
        e = engine([[9.0]], table={"combiner": "mean", "out_of_range": "drop"})
        self.close(train(e, [[0, 5]], [[3.0]], [[1, 2]]), [[9.0]])
        self.close(e.read_table("t"), [[6.0]])


class Quantization(unittest.TestCase):
    FIVE = {"quantization": {"num_buckets": 5, "lower": -1, "upper": 2.5}}

    def test_levels(self):
        given = [-1.0, -0.5625, -0.5703125, 0.75, 2.5, 2.0625, -9.0, 0.3125, 1.1875]
        e = engine([[x] for x in given], table=self.FIVE)
        e.enqueue(rows_of([[i] for i in range(len(given))]))
        self.assertEqual(e.dequeue()["f"], [[-1.0], [-0.125], [-1.0], [0.75], [2.5], [2.5],
                                            [-1.0], [0.75], [1.625]])

    def test_rows_and_gradients_are_not_quantized(self):
        e = engine([[0.25]], table=self.FIVE)
        self.assertEqual(train(e, [[0, 0]], [[0.125]], [[1, 2]]), [[-0.125 * 3]])
        self.assertEqual(e.read_table("t"), [[0.25 - 0.375]])

    def test_what_reads_no_row(self):
        e = engine([[9.0]], table={"out_of_range": "zero", **self.FIVE})
        self.assertEqual(train(e, [[5], []], [[1.0], [1.0]]), [[0.0], [0.0]])


class Steps(unittest.TestCase):
    def test_pipelining_is_stale_by_one(self):
        e = engine([[0.0]], pipelining=True)
        seen = [train(e, [[0]], [[-(10.0 ** n)]])[0][0] for n in range(4)]
        self.assertEqual(seen, [0.0, 0.0, 1.0, 11.0])
        self.assertEqual(e.read_table("t"), [[1111.0]])
        self.assertEqual(train(e, [[0]], [[0.0]]), [[111.0]])

    def test_replicas_sum(self):
        e = engine([[0.0]], replicas=2)
        for r in (0, 1):
            e.enqueue(rows_of([[0]]), r)
            e.dequeue(r)
        e.apply_gradients({"f": [[1.0]]}, 0)
        self.assertEqual(e.read_table("t"), [[0.0]])
        e.apply_gradients({"f": [[2.0]]}, 1)
        self.assertEqual(e.read_table("t"), [[-3.0]])

    def test_gradients_belong_to_a_dequeued_step(self):
        e = engine([[0.0]])
        e.enqueue(rows_of([[0]]))
        with self.assertRaises(RefError) as caught:
            e.apply_gradients({"f": [[1.0]]})
        self.assertEqual(caught.exception.errno, "EPROTO")
        e.dequeue()
        e.apply_gradients({"f": [[1.0]]})


if __name__ == "__main__":
    unittest.main()

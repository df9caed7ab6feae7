#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The optimizers of the reference against numbers worked out by hand."""

import unittest

from embref import Engine
from referror import RefError


def engine(rows, optimizer, rate=1, **options):
    return Engine([{"name": "t", "vocabulary_size": len(rows), "dim": 1, "combiner": "sum",
                    "initial": [[row] for row in rows],
                    "optimizer": {"learning_rate": rate, **optimizer}}],
                  [{"name": "f", "table": "t"}], **options)


class Rule(unittest.TestCase):
    KIND = None

    def make(self, w, rate=1, **settings):
        return engine([w], {"kind": self.KIND, **settings}, rate)

    def steps(self, e, *gradients):
        for g in gradients:
            e.enqueue({"f": {"dense": [0]}})
            e.dequeue()
            e.apply_gradients({"f": [[g]]})

    def holds(self, e, row=0, **values):
        for slot, value in values.items():
            self.assertAlmostEqual(e.read_table("t", slot)[row][0], value, places=12, msg=slot)


class AdagradMomentum(Rule):
    KIND = "adagrad_momentum"

    def test_square_root(self):
        e = self.make(2.0, epsilon=7)
        self.steps(e, 3)                                   # 3 / sqrt(9 + 7)
        self.holds(e, parameters=1.25, accumulators=9, momenta=0.75)

    def test_momentum(self):
        e = self.make(0.0, exponent=1, epsilon=3, momentum=0.5)
        self.steps(e, 3, 6)                                # 3/12, then 0.125 + 6/48
        self.holds(e, parameters=-0.5, accumulators=45, momenta=0.25)

    def test_nesterov(self):
        e = self.make(0.0, exponent=1, epsilon=3, momentum=0.5, use_nesterov=True)
        self.steps(e, 3, 6)                                # 0.125 + 0.25, then 0.125 + 0.125
        self.holds(e, parameters=-0.625, momenta=0.25)

    def test_beta2(self):
        e = self.make(0.0, exponent=1, epsilon=0.5, beta2=0.75)
        self.steps(e, 4, 0)                                # a = 4, then 3
        self.holds(e, parameters=-4 / 4.5, accumulators=3, momenta=0)

    def test_cube_root(self):
        e = self.make(0.0, exponent=3, epsilon=2)
        self.steps(e, 5)                                   # 27 ^ (1/3) = 3
        self.holds(e, parameters=-5 / 3)


class Ftrl(Rule):
    KIND = "ftrl"
    BASE = {"rate": 0.5, "learning_rate_power": -1, "initial_accumulator_value": 1}

    def after(self, linear, parameter, **settings):
        e = self.make(3.0, **{**self.BASE, **settings})
        self.steps(e, 2)                                   # a = 1 -> 5
        self.holds(e, accumulators=5, linears=linear, parameters=parameter)

    def test_normal(self):
        self.after(-22, 2.2)                               # 2 - 4 * 3 / 0.5; 22 / (5 / 0.5)

    def test_l2_and_beta(self):
        self.after(-22, 22 / 12, l2_regularization_strength=1)
        self.after(-22, 22 / 12, beta=1)

    def test_l1(self):
        self.after(-22, 2.0, l1_regularization_strength=2)
        self.after(-22, 0.0, l1_regularization_strength=22)

    def test_multiplied(self):
        more = {"multiply_linear_by_learning_rate": True}
        self.after(-11, 2.2, **more)                       # 0.5 * 2 - 4 * 3; 11 / 5
        self.after(-11, 2.0, l1_regularization_strength=2, **more)
        self.after(-11, 11 / 6, l2_regularization_strength=1, **more)
        self.after(-11, 11 / 6, beta=1, **more)

    def test_square_root(self):
        e = self.make(3.0, rate=0.5, initial_accumulator_value=4)
        self.steps(e, 12 ** 0.5)                           # roots 2 -> 4
        linear = 12 ** 0.5 - 2 * 3 / 0.5
        self.holds(e, accumulators=16, linears=linear, parameters=-linear / 8)

    def test_zero_gradient_overwrites(self):
        e = self.make(3.0, **self.BASE)
        self.steps(e, 0)
        self.holds(e, accumulators=1, linears=0, parameters=0)


class Adam(Rule):
    KIND = "adam"
    BASE = {"beta_1": 0.5, "beta_2": 0.75}

    def test_inside_and_outside(self):
        e = self.make(0.0, epsilon=5 ** 0.5, **self.BASE)
        self.steps(e, 4)                                   # m = 2, v = 4; 2 / sqrt(4 + 5)
        self.holds(e, parameters=-2 / 3, momenta=2, velocities=4)
        e = self.make(0.0, epsilon=2, sum_inside_sqrt=False, **self.BASE)
        self.steps(e, 4)                                   # 2 / (2 + 2)
        self.holds(e, parameters=-0.5)

    def test_corrected(self):
        e = self.make(0.0, epsilon=4, bias_correction=True, **self.BASE)
        self.steps(e, 4)                                   # 4 / (4 + 4)
        self.holds(e, parameters=-0.5)
        self.steps(e, 0)                                   # m = 1, v = 3, t = 2
        self.holds(e, parameters=-0.5 - (4 / 3) / ((3 / 0.4375) ** 0.5 + 4), momenta=1,
                   velocities=3)

    def test_all_rows(self):
        e = engine([0.0, 0.0, 7.0], {"kind": "adam", "epsilon": 1, "lazy_adam": False, **self.BASE})
        for row in (0, 1):
            e.enqueue({"f": {"dense": [row]}})
            e.dequeue()
            e.apply_gradients({"f": [[4.0]]})
        self.holds(e, 0, parameters=-2 / 5 ** 0.5 - 1 / 4 ** 0.5, momenta=1, velocities=3)
        self.holds(e, 1, parameters=-2 / 5 ** 0.5, momenta=2, velocities=4)
        self.holds(e, 2, parameters=7)
        self.assertEqual(e.read_stats("t")["unique_ids"], 2)

    def test_epsilon_by_form(self):
        for corrected, epsilon in ((False, 1e-7), (True, 1e-8)):
            e = self.make(0.0, bias_correction=corrected)
            self.assertEqual(e.model.tables["t"].optimizer.h["epsilon"], epsilon)


class Refused(unittest.TestCase):
    def refused(self, errno, **optimizer):
        with self.assertRaises(RefError) as caught:
            engine([0.0], optimizer)
        self.assertEqual(caught.exception.errno, errno)

    def test_combinations(self):
        self.refused("EINVAL", kind="adam", lazy_adam=False, use_gradient_accumulation=False)
        self.refused("EINVAL", kind="ftrl", low_dimensional_packing_status=True)
        self.refused("ERANGE", kind="ftrl", learning_rate=0)
        self.refused("ERANGE", kind="sgd", weight_decay_factor=-1)
        engine([0.0], {"kind": "ftrl", "learning_rate": 0,
                       "multiply_linear_by_learning_rate": True})


if __name__ == "__main__":
    unittest.main()

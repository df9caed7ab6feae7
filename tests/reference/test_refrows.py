#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The reference's row-wise optimizers, and the options of all kinds, worked out by hand."""

import unittest

from refoptim import Optimizer


class Rows(unittest.TestCase):
    def touch(self, spec, row, slots, *occurrences, step=1):
        row = list(row)
        Optimizer({"learning_rate": 1, **spec}, "table", len(row)).touch(
            {}, row, slots, occurrences, step)
        return row

    def near(self, got, want):
        self.assertEqual(len(got), len(want))
        for a, b in zip(got, want):
            self.assertAlmostEqual(a, b, places=12)

    def test_rowwise_adagrad(self):              # mean 8 of 16, 0, 0, 16: 4 / (sqrt(8 + 8) + 4)
        slots = {"accumulators": [8]}
        spec = {"kind": "rowwise_adagrad", "learning_rate": 4, "epsilon": 4}
        self.near(self.touch(spec, [10, 20, 30, 40], slots, [4, 0, 0, -4]), [8, 20, 30, 42])
        self.near(slots["accumulators"], [16])

    def test_mean_gradient(self):                # mean 4, squared 16: 4 / (sqrt(16) + 4) * 4
        slots = {"accumulators": [0]}
        spec = {"kind": "rowwise_adagrad", "learning_rate": 4, "epsilon": 4, "mean_gradient": True}
        self.near(self.touch(spec, [10, 20, 30, 40], slots, [4, 8, 0, 4]), [8, 18, 28, 38])
        self.near(slots["accumulators"], [16])

    def test_partial_rowwise_adam(self):         # v = 2 + 2, corrected 16; m corrected 6, 2, 2, -2
        slots = {"momenta": [2] * 4, "velocities": [8 / 3]}
        spec = {"kind": "partial_rowwise_adam", "learning_rate": 6, "beta_1": 0.5, "beta_2": 0.75,
                "epsilon": 8}
        self.near(self.touch(spec, [10, 20, 30, 40], slots, [4, 0, 0, -4]), [7, 19, 29, 41])
        self.near(slots["momenta"], [3, 1, 1, -1])
        self.near(slots["velocities"], [4])

    def test_adagrad_epsilon(self):
        slots = {"accumulators": [9]}
        spec = {"kind": "adagrad", "learning_rate": 2, "epsilon": 3}
        self.near(self.touch(spec, [10], slots, [4]), [9])
        self.near(slots["accumulators"], [25])

    def test_adam_epsilon_hat(self):             # v 16 is not corrected, nor is 3
        slots = {"momenta": [2], "velocities": [16]}
        spec = {"kind": "adam", "learning_rate": 7, "beta_1": 0.5, "beta_2": 0.75, "epsilon": 3,
                "bias_correction": True, "epsilon_hat": True}
        self.near(self.touch(spec, [10], slots, [4]), [7])

    def test_decay_in_gradient(self):            # 2 + 0.5 * 10, after the clip to 1
        spec = {"kind": "sgd", "weight_decay_factor": 0.5, "weight_decay_in_gradient": True}
        self.near(self.touch(spec, [10], {}, [2]), [3])
        self.near(self.touch({**spec, "clipvalue": 1}, [10], {}, [2]), [4])
        slots = {"accumulators": [9]}
        self.near(self.touch({**spec, "kind": "adagrad"}, [8], slots, [0]), [8 - 4 / 5])
        self.near(slots["accumulators"], [25])

    def test_scale_by_frequency(self):
        spec = {"kind": "sgd", "scale_by_frequency": True}
        self.near(self.touch(spec, [10, 10], {}, [1, 3], [2, 6], [3, 9]), [8, 4])
        self.near(self.touch({**spec, "clipvalue": 1}, [10], {}, [3], [9]), [9])

    def test_max_norm(self):
        spec = {"kind": "sgd", "max_norm": 2.5}
        self.near(self.touch(spec, [7, 20], {}, [4, 16]), [1.5, 2])
        self.near(self.touch({**spec, "max_norm": 5}, [7, 20], {}, [4, 16]), [3, 4])
        self.near(self.touch({**spec, "max_norm": 5, "clip_weight_max": 3}, [7, 20], {}, [4, 16]),
                  [3, 3])


if __name__ == "__main__":
    unittest.main()

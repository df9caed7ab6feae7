# SPDX-License-Identifier: MIT
"""Optimizers with one number a row in a slot, in plain f64.

As in refkinds.py, but that update() takes a whole row with its gradients. ONE_NUMBER names the
slots that have one number a row. Sources: rowwise_adagrad() and partial_rowwise_adam() of the
generator of FBGEMM's optimizers; the class RowWiseAdagrad of torchrec.
"""

import math

from refchecks import above_0, below_1, from_0


def mean(numbers):
    return sum(numbers) / len(numbers)


class RowwiseAdagrad:
    DEFAULTS = {"learning_rate": 0.001, "epsilon": 1e-8, "mean_gradient": False,
                "initial_accumulator_value": 0.0}
    SLOTS = {"accumulators": "initial_accumulator_value"}
    ONE_NUMBER = ("accumulators",)
    IDLE = False

    @staticmethod
    def check(h, where):
        above_0(h, "epsilon", where)
        from_0(h, "initial_accumulator_value", where)

    @staticmethod
    def update_row(h, lr, row, gradient, slots, step):
        if h["mean_gradient"]:
            gradient = [mean(gradient)] * len(gradient)
        a = slots["accumulators"][0] + mean([g * g for g in gradient])
        multiplier = lr / (math.sqrt(a) + h["epsilon"])
        return [w - multiplier * g for w, g in zip(row, gradient)], {"accumulators": [a]}


class PartialRowwiseAdam:
    DEFAULTS = {"learning_rate": 0.001, "beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-8}
    SLOTS = {"momenta": 0.0, "velocities": 0.0}
    ONE_NUMBER = ("velocities",)
    IDLE = False

    @staticmethod
    def check(h, where):
        for key in ("beta_1", "beta_2"):
            below_1(h, key, where)
        above_0(h, "epsilon", where)

    @staticmethod
    def update_row(h, lr, row, gradient, slots, step):
        b1, b2 = h["beta_1"], h["beta_2"]
        v = b2 * slots["velocities"][0] + (1 - b2) * mean([g * g for g in gradient])
        m = [b1 * x + (1 - b1) * g for x, g in zip(slots["momenta"], gradient)]
        root = math.sqrt(v / (1 - b2 ** step)) + h["epsilon"]
        row = [w - lr * (x / (1 - b1 ** step)) / root for w, x in zip(row, m)]
        return row, {"momenta": m, "velocities": [v]}


ROW_KINDS = {"rowwise_adagrad": RowwiseAdagrad, "partial_rowwise_adam": PartialRowwiseAdam}

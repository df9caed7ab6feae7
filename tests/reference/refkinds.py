# SPDX-License-Identifier: MIT
"""Update rules of the optimizers (docs/spec/semantics.md 2.2, 2.6) in plain f64.

A kind is a class with DEFAULTS, SLOTS (name -> hyperparameter or number that the
slot starts with), IDLE (a gradient of 0 changes nothing), check() of the
hyperparameters, and update() of one element, or update_row() of one row as in
refrows.py: step is the number of this update, from 1. A new one is added to KINDS; nothing else needs to know it.
"""

import math

from refchecks import above_0, below_1, finite, from_0, to_0, up_to_1
from referror import require
from refproto import PROTO_KINDS
from refrows import ROW_KINDS


class Sgd:
    DEFAULTS = {"learning_rate": 0.01}
    SLOTS = {}
    IDLE = True

    @staticmethod
    def check(h, where):
        pass

    @staticmethod
    def update(h, lr, w, g, slots, step):
        return w - lr * g, {}


class Adagrad:
    DEFAULTS = {"learning_rate": 0.001, "initial_accumulator_value": 0.1, "epsilon": 0.0}
    SLOTS = {"accumulators": "initial_accumulator_value"}
    IDLE = True

    @staticmethod
    def check(h, where):
        from_0(h, "epsilon", where)
        (from_0 if h["epsilon"] else above_0)(h, "initial_accumulator_value", where)

    @staticmethod
    def update(h, lr, w, g, slots, step):
        a = slots["accumulators"] + g * g
        return w - lr * g / (math.sqrt(a) + h["epsilon"]), {"accumulators": a}


class AdagradMomentum:
    DEFAULTS = {"learning_rate": 0.001, "momentum": 0.0, "use_nesterov": False, "exponent": 2,
                "beta2": 1, "epsilon": 1e-10}
    SLOTS = {"accumulators": 0.0, "momenta": 0.0}
    IDLE = False

    @staticmethod
    def check(h, where):
        finite(h, where, "momentum")
        above_0(h, "exponent", where)
        above_0(h, "epsilon", where)
        up_to_1(h, "beta2", where)

    @staticmethod
    def update(h, lr, w, g, slots, step):
        a, beta2, momentum = slots["accumulators"], h["beta2"], h["momentum"]
        a = a + g * g if beta2 == 1 else beta2 * a + (1 - beta2) * g * g
        s = g * (a + h["epsilon"]) ** (-1 / h["exponent"])
        m = momentum * slots["momenta"] + s
        u = momentum * m + s if h["use_nesterov"] else m
        return w - lr * u, {"accumulators": a, "momenta": m}


class Ftrl:
    DEFAULTS = {"learning_rate": 0.001, "learning_rate_power": -0.5,
                "l1_regularization_strength": 0.0, "l2_regularization_strength": 0.0, "beta": 0.0,
                "initial_accumulator_value": 0.1, "multiply_linear_by_learning_rate": False,
                "allow_zero_accumulator": False}
    SLOTS = {"accumulators": "initial_accumulator_value", "linears": 0.0}
    IDLE = False

    @staticmethod
    def check(h, where):
        above_0(h, "initial_accumulator_value", where)
        to_0(h, "learning_rate_power", where)
        for key in ("l1_regularization_strength", "l2_regularization_strength", "beta"):
            from_0(h, key, where)
        if not isinstance(h["learning_rate"], dict):
            if h["multiply_linear_by_learning_rate"]:
                from_0(h, "learning_rate", where)
            else:
                above_0(h, "learning_rate", where)

    @staticmethod
    def update(h, lr, w, g, slots, step):
        l1, l2 = h["l1_regularization_strength"], h["l2_regularization_strength"]
        a, power = slots["accumulators"], -h["learning_rate_power"]
        p = a ** power
        a += g * g
        change = a ** power - p
        p = a ** power
        if h["multiply_linear_by_learning_rate"]:
            linear = slots["linears"] + lr * g - change * w
            limit, denominator = lr * l1, p + h["beta"] + 2 * lr * l2
        else:
            linear = slots["linears"] + g - change * w / lr
            limit, denominator = l1, (p + h["beta"]) / lr + 2 * l2
        clamped = min(max(linear, -limit), limit)
        return (clamped - linear) / denominator, {"accumulators": a, "linears": linear}


class Adam:
    DEFAULTS = {"learning_rate": 0.001, "beta_1": 0.9, "beta_2": 0.999, "epsilon": None,
                "lazy_adam": True, "sum_inside_sqrt": True, "bias_correction": False,
                "epsilon_hat": False}
    SLOTS = {"momenta": 0.0, "velocities": 0.0}
    IDLE = False

    @staticmethod
    def check(h, where):
        if h["epsilon"] is None:
            h["epsilon"] = 1e-8 if h["bias_correction"] else 1e-7
        for key in ("beta_1", "beta_2"):
            below_1(h, key, where)
        above_0(h, "epsilon", where)
        require(h["lazy_adam"] or h["use_gradient_accumulation"], "EINVAL",
                f"{where}: lazy_adam off needs use_gradient_accumulation")

    @staticmethod
    def update(h, lr, w, g, slots, step):
        b1, b2, epsilon = h["beta_1"], h["beta_2"], h["epsilon"]
        m = b1 * slots["momenta"] + (1 - b1) * g
        v = b2 * slots["velocities"] + (1 - b2) * g * g
        if h["bias_correction"] and h["epsilon_hat"]:
            # as they name it in section 2: epsilon hat beside the root that is not corrected
            u = m / (1 - b1 ** step) * math.sqrt(1 - b2 ** step) / (math.sqrt(v) + epsilon)
        elif h["bias_correction"]:
            # as Kingma and Ba print it: both moments corrected, then epsilon beside the root
            u = m / (1 - b1 ** step) / (math.sqrt(v / (1 - b2 ** step)) + epsilon)
        elif h["sum_inside_sqrt"]:
            u = m / math.sqrt(v + epsilon * epsilon)
        else:
            u = m / (math.sqrt(v) + epsilon)
        return w - lr * u, {"momenta": m, "velocities": v}


KINDS = {"sgd": Sgd, "adagrad": Adagrad, "adagrad_momentum": AdagradMomentum, "ftrl": Ftrl,
         "adam": Adam, **PROTO_KINDS, **ROW_KINDS}

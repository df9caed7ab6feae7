# SPDX-License-Identifier: MIT
"""Optimizers of the protocol buffer and of the second library alone, in plain f64.

As in refkinds.py. DIM, where there is one, is the only dim that the kind takes.
Where docs/spec/semantics.md 2.3 has no verified formula it is that of the cited paper.
"""

import math

from refchecks import above_0, below_1, finite, from_0, to_0, up_to_1
from referror import require


def sign(x):
    return math.copysign(1.0, x) if x else 0.0


def proximal(p, n, h):
    """The l1 and l2 of one proximal step (Duchi, Singer 2009)."""
    p = sign(p) * max(abs(p) - n * h["l1"], 0.0) if h["l1"] > 0 else p
    return p / (1 + n * h["l2"])


def yogi(v, g, beta2):
    """Zaheer et al. 2018, algorithm 2."""
    return v - (1 - beta2) * sign(v - g * g) * g * g


class Momentum:
    DEFAULTS = {"learning_rate": 0.001, "momentum": 0.9, "use_nesterov": False}
    SLOTS = {"momenta": 0.0}
    IDLE = False

    @staticmethod
    def check(h, where):
        finite(h, where, "momentum")

    @staticmethod
    def update(h, lr, w, g, slots, step):
        m = h["momentum"] * slots["momenta"] + g
        return w - lr * (g + h["momentum"] * m if h["use_nesterov"] else m), {"momenta": m}


class Lion:
    """Chen et al. 2023."""
    DEFAULTS = {"learning_rate": 0.001, "beta1": 0.9, "beta2": 0.99, "use_non_lazy": False}
    SLOTS = {"momenta": 0.0}
    IDLE = False

    @staticmethod
    def check(h, where):
        below_1(h, "beta1", where)
        below_1(h, "beta2", where)
        require(h["use_gradient_accumulation"] or not h["use_non_lazy"], "EINVAL",
                f"{where}: use_non_lazy needs use_gradient_accumulation")

    @staticmethod
    def update(h, lr, w, g, slots, step):
        m, b1, b2 = slots["momenta"], h["beta1"], h["beta2"]
        return w - lr * sign(b1 * m + (1 - b1) * g), {"momenta": b2 * m + (1 - b2) * g}


class RmsProp:
    DEFAULTS = {"learning_rate": 0.001, "rho": 0.9, "momentum": 0.0, "epsilon": 1e-10}
    SLOTS = {"ms": 0.0, "mom": 0.0}
    IDLE = False

    @staticmethod
    def check(h, where):
        up_to_1(h, "rho", where)
        finite(h, where, "momentum")
        above_0(h, "epsilon", where)

    @staticmethod
    def update(h, lr, w, g, slots, step):
        ms = slots["ms"] + (1 - h["rho"]) * (g * g - slots["ms"])
        mom = h["momentum"] * slots["mom"] + lr * g / math.sqrt(ms + h["epsilon"])
        return w - mom, {"ms": ms, "mom": mom}


class CenteredRmsProp:
    DEFAULTS = RmsProp.DEFAULTS
    SLOTS = {"ms": 0.0, "mom": 0.0, "mg": 0.0}
    IDLE = False
    check = RmsProp.check

    @staticmethod
    def update(h, lr, w, g, slots, step):
        ms = slots["ms"] + (1 - h["rho"]) * (g * g - slots["ms"])
        mg = slots["mg"] + (1 - h["rho"]) * (g - slots["mg"])
        root = math.sqrt(ms - mg * mg + h["epsilon"])
        mom = h["momentum"] * slots["mom"] + lr * g / root
        return w - mom, {"ms": ms, "mom": mom, "mg": mg}


class Adadelta:
    """Zeiler 2012."""
    DEFAULTS = {"learning_rate": 0.001, "rho": 0.95, "epsilon": 1e-8}
    SLOTS = {"accumulators": 0.0, "updates": 0.0}
    IDLE = False

    @staticmethod
    def check(h, where):
        up_to_1(h, "rho", where)
        above_0(h, "epsilon", where)

    @staticmethod
    def update(h, lr, w, g, slots, step):
        rho, epsilon = h["rho"], h["epsilon"]
        a = rho * slots["accumulators"] + (1 - rho) * g * g
        u = g * math.sqrt(slots["updates"] + epsilon) / math.sqrt(a + epsilon)
        updates = rho * slots["updates"] + (1 - rho) * u * u
        return w - lr * u, {"accumulators": a, "updates": updates}


class ProximalAdagrad:
    DEFAULTS = {"learning_rate": 0.001, "l1": 0.0, "l2": 0.0, "initial_accumulator_value": 0.1}
    SLOTS = {"accumulators": "initial_accumulator_value"}
    IDLE = False

    @staticmethod
    def check(h, where):
        from_0(h, "l1", where)
        from_0(h, "l2", where)
        above_0(h, "initial_accumulator_value", where)

    @staticmethod
    def update(h, lr, w, g, slots, step):
        a = slots["accumulators"] + g * g
        n = lr / math.sqrt(a)
        return proximal(w - n * g, n, h), {"accumulators": a}


class Assign:
    DEFAULTS = {"learning_rate": 0.001}
    SLOTS = {}
    IDLE = False

    @staticmethod
    def check(h, where):
        pass

    @staticmethod
    def update(h, lr, w, g, slots, step):
        return g, {}


class LaProp:
    """Ziyin et al. 2020, in the form of docs/spec/semantics.md 2.6; its step counts from 0."""
    DEFAULTS = {"learning_rate": 0.001, "b1": 0.9, "b2": 0.95, "eps": 1e-30}
    SLOTS = {"mu": 0.0, "nu": 0.0}
    IDLE = False

    @staticmethod
    def check(h, where):
        below_1(h, "b1", where)
        below_1(h, "b2", where)
        above_0(h, "eps", where)

    @staticmethod
    def update(h, lr, w, g, slots, step):
        b1, b2 = h["b1"], h["b2"]
        decay = b2 * (1 - b2 ** (step - 1)) / (1 - b2 ** step)
        nu = decay * slots["nu"] + (1 - decay) * (g * g + h["eps"])
        mu = b1 * slots["mu"] + math.sqrt(1 - b1 * b1) * g / math.sqrt(nu)
        return w - lr * mu, {"mu": mu, "nu": nu}


class ProximalYogi:
    """From the literature: Zaheer et al. 2018 and a proximal step."""
    DEFAULTS = {"learning_rate": 0.01, "l1": 0.0, "l2": 0.0, "beta1": 0.9, "beta2": 0.999,
                "epsilon": 1e-3, "initial_accumulator_value": 1e-6}
    SLOTS = {"v": "initial_accumulator_value", "m": 0.0}
    IDLE = False

    @staticmethod
    def check(h, where):
        ProximalAdagrad.check(h, where)
        below_1(h, "beta1", where)
        below_1(h, "beta2", where)
        above_0(h, "epsilon", where)

    @staticmethod
    def update(h, lr, w, g, slots, step):
        m = h["beta1"] * slots["m"] + (1 - h["beta1"]) * g
        v = yogi(slots["v"], g, h["beta2"])
        n = lr / (math.sqrt(v) + h["epsilon"])
        return proximal(w - n * m, n, h), {"v": v, "m": m}


class BoundedAdagrad:
    """From the literature: Duchi, Hazan, Singer 2011 with the bounds of the protocol buffer."""
    DEFAULTS = {"learning_rate": 0.001, "update_accumulator_first": False, "max_var_update": 0.0,
                "max_accumulator": 0.0, "initial_accumulator_value": 0.1}
    SLOTS = {"accumulators": "initial_accumulator_value"}
    IDLE = False

    @staticmethod
    def check(h, where):
        from_0(h, "max_var_update", where)
        from_0(h, "max_accumulator", where)
        above_0(h, "initial_accumulator_value", where)

    @staticmethod
    def update(h, lr, w, g, slots, step):
        old = slots["accumulators"]
        a = min(old + g * g, h["max_accumulator"] or math.inf)
        limit = h["max_var_update"] or math.inf
        u = lr * g / math.sqrt(a if h["update_accumulator_first"] else old)
        return w - min(max(u, -limit), limit), {"accumulators": a}


class OnlineYogi:
    """From the literature: the v of Zaheer et al. 2018 under the leader of McMahan et al. 2013."""
    DEFAULTS = {"learning_rate": 0.01, "l1": 0.0, "l2": 0.0, "beta2": 0.999}
    SLOTS = {"vs": 0.1, "linears": 0.0}
    IDLE = False

    @staticmethod
    def check(h, where):
        from_0(h, "l1", where)
        from_0(h, "l2", where)
        below_1(h, "beta2", where)
        if not isinstance(h["learning_rate"], dict):
            above_0(h, "learning_rate", where)

    @staticmethod
    def update(h, lr, w, g, slots, step):
        v = yogi(slots["vs"], g, h["beta2"])
        sigma = (math.sqrt(v) - math.sqrt(slots["vs"])) / lr
        linear = slots["linears"] + g - sigma * w
        over = sign(linear) * max(abs(linear) - h["l1"], 0.0)
        return -over / (math.sqrt(v) / lr + 2 * h["l2"]), {"vs": v, "linears": linear}


class FrequencyEstimator:
    """Yi et al. 2019, algorithm 2; the rate is the step."""
    DEFAULTS = {"learning_rate": 0.001, "tau": 0.01, "max_delta": 10000.0,
                "outlier_threshold": 100.0, "weight_exponent": 1.0}
    SLOTS = {"last_hit_step": 0.0}
    IDLE = False
    DIM = 1

    @staticmethod
    def check(h, where):
        up_to_1(h, "tau", where)
        above_0(h, "max_delta", where)
        from_0(h, "outlier_threshold", where)
        finite(h, where, "weight_exponent")

    @staticmethod
    def update(h, lr, w, g, slots, step):
        delta = lr - slots["last_hit_step"]
        c = min(delta, h["max_delta"])
        if delta < h["outlier_threshold"] * w:
            c = (1 - h["tau"]) * w + h["tau"] * c
        return c, {"last_hit_step": lr}


class FrequencyAwareAdagrad:
    """docs/spec/semantics.md 2.6, with the decay and the least accumulator of 2.3."""
    DEFAULTS = {"learning_rate": 0.01, "l1_regularization_strength": 0.0,
                "l2_regularization_strength": 0.0, "max_lr_multiplier": 1e6,
                "probability_exponent": 0.5, "accumulator_decay": 1.0,
                "initial_accumulator_value": 0.1, "step_counter": None}
    SLOTS = {"accumulators": "initial_accumulator_value", "counters": 0.0}
    IDLE = False

    @staticmethod
    def check(h, where):
        from_0(h, "l1_regularization_strength", where)
        from_0(h, "l2_regularization_strength", where)
        above_0(h, "max_lr_multiplier", where)
        finite(h, where, "probability_exponent")
        up_to_1(h, "accumulator_decay", where)
        above_0(h, "initial_accumulator_value", where)

    @staticmethod
    def update(h, lr, w, g, slots, step):
        count = slots["counters"] + 1
        a = max(h["accumulator_decay"] * slots["accumulators"] + g * g,
                h["initial_accumulator_value"])
        rare = min((step / count) ** h["probability_exponent"], h["max_lr_multiplier"])
        u = g * rare / math.sqrt(a) + h["l1_regularization_strength"] * sign(w)
        u += h["l2_regularization_strength"] * w
        return w - lr * u, {"accumulators": a, "counters": count}


class MdlAdagradLight:
    """After Shamir 2015; what the settings do is embeng-optimizers(7)'s reading of their names."""
    DEFAULTS = {"learning_rate": 0.001, "l2": 0.0, "lr_power": -0.5,
                "min_servable_mdl_benefit": 0.0, "mdl_mix_in_margin": 0.0,
                "mdl_benefit_rampup_coeff": 0.0, "mdl_min_weight": 0.0,
                "benefit_revisit_scale": 0.0, "max_event_benefit": 0.0, "max_total_benefit": 0.0,
                "mdl_hard_limit": 0.0, "hard_limit_min_benefit": False, "mdl_regularize": False}
    SLOTS = {"accumulators": 0.1, "weights": 0.0, "benefits": 0.0}
    IDLE = False

    @staticmethod
    def check(h, where):
        for key in ("l2", "mdl_mix_in_margin", "mdl_benefit_rampup_coeff", "max_event_benefit",
                    "max_total_benefit", "mdl_hard_limit"):
            from_0(h, key, where)
        to_0(h, "lr_power", where)
        finite(h, where, "min_servable_mdl_benefit")
        up_to_1(h, "mdl_min_weight", where)
        up_to_1(h, "benefit_revisit_scale", where)

    @staticmethod
    def benefit(h, event, before):
        least, most = h["min_servable_mdl_benefit"], h["max_event_benefit"] or math.inf
        b = before + min(max(event, -most), most)
        b += h["benefit_revisit_scale"] * max(least - b, 0.0)
        most = h["max_total_benefit"] or math.inf
        b = min(max(b, -most), most)
        return max(b, least - h["mdl_hard_limit"]) if h["hard_limit_min_benefit"] else b

    @staticmethod
    def share(h, benefit):
        over = benefit - h["min_servable_mdl_benefit"]
        if h["mdl_mix_in_margin"]:
            m = min(max(over / h["mdl_mix_in_margin"], 0.0), 1.0)
        else:
            m = float(over >= 0)
        return h["mdl_min_weight"] + (1 - h["mdl_min_weight"]) * m

    @classmethod
    def update(cls, h, lr, w, g, slots, step):
        trained = w + slots["weights"]
        a = slots["accumulators"] + g * g
        event = -g * trained * a / (a + h["mdl_benefit_rampup_coeff"])
        b = cls.benefit(h, event, slots["benefits"])
        n = lr * a ** h["lr_power"]
        trained = (trained - n * g) / (1 + 2 * h["l2"] * n)
        w = trained * (cls.share(h, b) if h["mdl_regularize"] else 1)
        return w, {"accumulators": a, "weights": trained - w, "benefits": b}


PROTO_KINDS = {"momentum": Momentum, "lion": Lion, "rms_prop": RmsProp,
               "centered_rms_prop": CenteredRmsProp, "adadelta": Adadelta,
               "proximal_adagrad": ProximalAdagrad, "assign": Assign, "laprop": LaProp,
               "proximal_yogi": ProximalYogi, "bounded_adagrad": BoundedAdagrad,
               "online_yogi": OnlineYogi, "frequency_estimator": FrequencyEstimator,
               "frequency_aware_adagrad": FrequencyAwareAdagrad,
               "mdl_adagrad_light": MdlAdagradLight}

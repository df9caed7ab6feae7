# SPDX-License-Identifier: MIT
"""Optimizers of tables: common keys and the gradient pipeline (docs/spec/semantics.md 2.1, 2.5)."""

import math

from refchecks import from_0
from referror import require
from refkinds import KINDS

COMMON = {
    "clip_weight_min": None,
    "clip_weight_max": None,
    "clipvalue": None,
    "weight_decay_factor": None,
    "multiply_weight_decay_factor_by_learning_rate": None,
    "use_gradient_accumulation": True,
    "low_dimensional_packing_status": False,
    "weight_decay_in_gradient": False,
    "scale_by_frequency": False,
    "max_norm": 0.0,
    "dynamic": None,
}
# Members of the library's structure that stand in clipvalue, low and high.
CLIPS = ("clip_min", "clip_max")
# Numbers that every kind has, by the library's names.
EVERY = ("weight_decay_factor", "clip_weight_min", "clip_weight_max", "max_norm", *CLIPS)
# Keys that no update computes with.
STRUCTURE = ("learning_rate", "step_counter", "lazy_adam", "use_non_lazy",
             "allow_zero_accumulator")


def clip_limits(clipvalue):
    """clipvalue as (low, high): one number c stands for (-c, c)."""
    if clipvalue is None:
        return None, None
    if isinstance(clipvalue, (list, tuple)):
        return clipvalue[0], clipvalue[1]
    return -clipvalue, clipvalue


def clamp(x, low, high):
    if low is not None and x < low:
        return low
    if high is not None and x > high:
        return high
    return x


class Optimizer:
    """One table's optimizer: its kind, its numbers, its pipeline."""

    def __init__(self, spec, where, dim):
        self.made = spec, where, dim
        kind = spec.get("kind")
        require(kind in KINDS, "EINVAL", f"{where}: unknown optimizer {kind}")
        self.rule = KINDS[kind]
        self.h = {**COMMON, **self.rule.DEFAULTS}
        for key, value in spec.items():
            if key == "kind":
                continue
            require(key in self.h, "EINVAL", f"{where}: {kind} has no {key}")
            self.h[key] = float(value) if isinstance(value, str) else value  # "inf", "nan"
        self.rule.check(self.h, where)
        self._check_numbers(where)
        self._check_decay(where, kind)
        self._check_limits(where)
        self._check_packing(where, kind, dim)
        self._check_dynamic(where, kind)
        only = getattr(self.rule, "DIM", dim)
        require(dim == only, "EINVAL", f"{where}: {kind} with dim {dim}, not {only}")

    def _check_numbers(self, where):
        h = self.h
        require(self.dynamic_rate() is not None or math.isfinite(h["learning_rate"]), "ERANGE",
                f"{where}: learning_rate {h['learning_rate']} must be finite")
        if h["weight_decay_factor"] is not None:
            from_0(h, "weight_decay_factor", where)
        from_0(h, "max_norm", where)
        require(h["use_gradient_accumulation"] or not h["scale_by_frequency"], "EINVAL",
                f"{where}: scale_by_frequency needs use_gradient_accumulation")

    def _check_decay(self, where, kind):
        if not self.h["weight_decay_in_gradient"]:
            return
        require(kind not in ("assign", "frequency_estimator"), "EINVAL",
                f"{where}: weight_decay_in_gradient with {kind}")
        require(not self.h["multiply_weight_decay_factor_by_learning_rate"], "EINVAL",
                f"{where}: weight_decay_in_gradient with multiply_weight_decay_by_rate")

    def _check_dynamic(self, where, kind):
        for name in self.h["dynamic"] or {}:
            known = name in EVERY or (name in self.rule.DEFAULTS and name not in STRUCTURE)
            start = name == "initial_accumulator_value" and kind != "frequency_aware_adagrad"
            require(known and not start, "ENOENT", f"{where}: {kind} computes with no {name}")
            require(name not in CLIPS or self.h["use_gradient_accumulation"], "EINVAL",
                    f"{where}: {name} needs gradient accumulation")

    def _check_packing(self, where, kind, dim):
        if not self.h["low_dimensional_packing_status"]:
            return
        require(self.rule.IDLE, "EINVAL", f"{where}: low_dimensional_packing with {kind}")
        require(dim in (1, 2, 4), "EINVAL", f"{where}: low_dimensional_packing with dim {dim}")

    def _check_limits(self, where):
        h = self.h
        for name, (low, high) in (
                ("clip_weight", (h["clip_weight_min"], h["clip_weight_max"])),
                ("clipvalue", clip_limits(h["clipvalue"]))):
            require(low is None or high is None or low <= high, "ERANGE",
                    f"{where}: {name} {low} above {high}")
        require(h["clipvalue"] is None or h["use_gradient_accumulation"], "EINVAL",
                f"{where}: clipvalue needs gradient accumulation")

    def dynamic_rate(self):
        """Name of the learning rate that each step must give, or None."""
        rate = self.h["learning_rate"]
        return rate["dynamic"] if isinstance(rate, dict) else None

    def step_counter(self):
        """Name of the rate that is the step, or None."""
        counter = self.h.get("step_counter")
        return None if counter is None else counter["dynamic"]

    def dynamic_rates(self):
        names = [self.dynamic_rate(), self.step_counter(), *(self.h["dynamic"] or {}).values()]
        return [name for name in names if name is not None]

    def at(self, rates):
        """The optimizer that has the values of a step as constants."""
        spec, where, dim = self.made
        if not self.h["dynamic"]:
            return self
        spec = {key: value for key, value in spec.items() if key != "dynamic"}
        if self.dynamic_rate() is not None:
            spec["learning_rate"] = rates[self.dynamic_rate()]
        clip = list(clip_limits(self.h["clipvalue"]))
        for key, name in self.h["dynamic"].items():
            value = float(rates[name])
            if isinstance(self.rule.DEFAULTS.get(key), bool):
                require(value in (0, 1), "ERANGE", f"{where}: {key} {value} is not 0 or 1")
                value = bool(value)
            if key in CLIPS:
                clip[CLIPS.index(key)] = value
            else:
                spec[key] = value
        if clip != [None, None]:
            spec["clipvalue"] = clip
        return Optimizer(spec, where, dim)

    def rate(self, rates):
        name = self.dynamic_rate()
        return self.h["learning_rate"] if name is None else rates[name]

    def slot_start(self, slot):
        start = self.rule.SLOTS[slot]
        return self.h[start] if isinstance(start, str) else start

    def runs_over_all_rows(self):
        return self.h.get("use_non_lazy", False) or not self.h.get("lazy_adam", True)

    def _taken(self, lr, w, g):
        """Row and gradient as the rule takes them."""
        h = self.h
        g = clamp(g, *clip_limits(h["clipvalue"]))
        factor = h["weight_decay_factor"]
        if factor and h["weight_decay_in_gradient"]:
            g = g + factor * w
        elif factor:
            by_rate = h["multiply_weight_decay_factor_by_learning_rate"]
            w = w - factor * (lr if by_rate else 1.0) * w
        return w, g

    def _elements(self, lr, row, gradient, slots, step):
        out, after = [], {name: [] for name in slots}
        for i, (w, g) in enumerate(zip(row, gradient)):
            old = {name: values[i] for name, values in slots.items()}
            w, new = self.rule.update(self.h, lr, w, g, old, step)
            out.append(w)
            for name in slots:
                after[name].append(new[name])
        return out, after

    def _row(self, lr, row, slots, gradient, step):
        h = self.h
        taken = [self._taken(lr, w, g) for w, g in zip(row, gradient)]
        rows, gradients = [w for w, _ in taken], [g for _, g in taken]
        if hasattr(self.rule, "update_row"):
            rows, after = self.rule.update_row(h, lr, rows, gradients, slots, step)
        else:
            rows, after = self._elements(lr, rows, gradients, slots, step)
        rows = [clamp(w, h["clip_weight_min"], h["clip_weight_max"]) for w in rows]
        norm = math.sqrt(sum(w * w for w in rows))
        if 0 < h["max_norm"] < norm < math.inf:
            rows = [w * (h["max_norm"] / norm) for w in rows]
        row[:] = rows
        for name, values in after.items():
            slots[name][:] = values

    def touch(self, rates, row, slots, occurrences, step, multiplier=1.0):
        """Update one row in place from its gradients, in their fixed order.

        step counts updates from 1; a row without gradients has one of zeros."""
        if self.h["dynamic"]:
            self.at(rates).touch(rates, row, slots, occurrences, step, multiplier)
            return
        lr = self.rate(rates)
        if self.step_counter() is not None:
            step = max(int(rates[self.step_counter()]), 1)
        if not self.h["use_gradient_accumulation"]:
            for gradient in occurrences:
                self._row(lr, row, slots, [g * multiplier for g in gradient], step)
            return
        total = [0.0] * len(row)
        for gradient in occurrences:
            total = [t + g for t, g in zip(total, gradient)]
        if self.h["scale_by_frequency"] and occurrences:
            total = [t / len(occurrences) for t in total]
        self._row(lr, row, slots, [t * multiplier for t in total], step)

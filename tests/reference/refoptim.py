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
}


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
        self._check_limits(where)
        self._check_packing(where, kind, dim)
        only = getattr(self.rule, "DIM", dim)
        require(dim == only, "EINVAL", f"{where}: {kind} with dim {dim}, not {only}")

    def _check_numbers(self, where):
        h = self.h
        require(self.dynamic_rate() is not None or math.isfinite(h["learning_rate"]), "ERANGE",
                f"{where}: learning_rate {h['learning_rate']} must be finite")
        if h["weight_decay_factor"] is not None:
            from_0(h, "weight_decay_factor", where)

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
        return [name for name in (self.dynamic_rate(), self.step_counter()) if name is not None]

    def rate(self, rates):
        name = self.dynamic_rate()
        return self.h["learning_rate"] if name is None else rates[name]

    def slot_start(self, slot):
        start = self.rule.SLOTS[slot]
        return self.h[start] if isinstance(start, str) else start

    def runs_over_all_rows(self):
        return self.h.get("use_non_lazy", False) or not self.h.get("lazy_adam", True)

    def _element(self, lr, w, g, slots, step):
        h = self.h
        g = clamp(g, *clip_limits(h["clipvalue"]))
        factor = h["weight_decay_factor"]
        if factor:
            by_rate = h["multiply_weight_decay_factor_by_learning_rate"]
            w = w - factor * (lr if by_rate else 1.0) * w
        w, slots = self.rule.update(h, lr, w, g, slots, step)
        return clamp(w, h["clip_weight_min"], h["clip_weight_max"]), slots

    def _row(self, lr, row, slots, gradient, step):
        for i, g in enumerate(gradient):
            old = {name: values[i] for name, values in slots.items()}
            row[i], new = self._element(lr, row[i], g, old, step)
            for name, value in new.items():
                slots[name][i] = value

    def touch(self, rates, row, slots, occurrences, step, multiplier=1.0):
        """Update one row in place from its gradients, in their fixed order.

        step counts updates from 1; a row without gradients has one of zeros."""
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
        self._row(lr, row, slots, [t * multiplier for t in total], step)

# SPDX-License-Identifier: MIT
"""Norms of gradients, and gradients of weights, in plain f64 (docs/spec/decisions.md 5).

The gradients of weights are slopes that go along with each number of the forward; no formula of the
combiners' derivatives is used.
"""

import math
from typing import NamedTuple

from refinput import kept_ids
from referror import require


class Dual(NamedTuple):
    """A number, and how fast it grows with one weight."""

    value: float
    slope: float

    def plus(self, other):
        return Dual(self.value + other.value, self.slope + other.slope)

    def times(self, other):
        return Dual(self.value * other.value,
                    self.value * other.slope + self.slope * other.value)

    def over(self, other):
        value = self.value / other.value
        return Dual(value, (self.slope - value * other.slope) / other.value)

    def root(self):
        value = math.sqrt(self.value)
        return Dual(value, self.slope / (2 * value))


ZERO, ONE = Dual(0.0, 0.0), Dual(1.0, 0.0)


def _denominator(combiner, weights):
    if combiner == "sum":
        return ONE
    total = ZERO
    for w in weights:
        total = total.plus(w if combiner == "mean" else w.times(w))
    return total.root() if combiner == "sqrtn" and total.value else total


def _loss(table, entries, gradient, varied):
    """The loss of one bag: the sum of its activation times the gradient."""
    weights = [Dual(w, float(k == varied)) for k, (_, w) in enumerate(entries)]
    denominator, loss = _denominator(table.combiner, weights), ZERO
    if not denominator.value:
        return ZERO
    for (row, _), w in zip(entries, weights):
        for x, g in zip([] if row is None else table.read(row), gradient):
            loss = loss.plus(w.times(Dual(x * g, 0.0)))
    return loss.over(denominator)


def _of_bag(lookup, sample, bag, gradient):
    """A slope for each id that was given; 0 for one that is dropped."""
    out, entries = [0.0] * len(bag), []
    places = []
    for k, entry in enumerate(bag):
        found = kept_ids(lookup.feature, sample, entry)
        entries += found
        places += [k] * len(found)
    for varied, k in enumerate(places):
        out[k] = _loss(lookup.feature.table, entries, gradient, varied).slope
    return out


def weight_gradients(lookup, gradients):
    """[ids] of one feature; gradients: a row for each sample."""
    require(lookup.weighs, "EINVAL",
            f"feature {lookup.feature.name}: its input takes no weights")
    out = []
    for s, (bag, gradient) in enumerate(zip(lookup.bags, gradients)):
        out += _of_bag(lookup, s, bag, gradient)
    return out


def table_norms(model, lookups, flat):
    """Table -> L2 norm of its rows' summed gradients; flat: feature -> rows of gradients."""
    sums = {name: {} for name in model.tables}
    for name, lookup in lookups.items():
        rows = sums[lookup.feature.table.name]
        for row, g in lookup.occurrences(flat[name]):
            total, count = rows.get(row, ([0.0] * len(g), 0))
            rows[row] = [t + x for t, x in zip(total, g)], count + 1
    norms = {}
    for name, rows in sums.items():
        table, square = model.tables[name], 0.0
        for total, count in rows.values() if table.trains() else ():
            by = count if table.optimizer.h["scale_by_frequency"] else 1
            square += sum((t / by) ** 2 for t in total)
        norms[name] = math.sqrt(square)
    return norms

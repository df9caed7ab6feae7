# SPDX-License-Identifier: MIT
"""A second implementation of lookups and updates, in numpy and float64, to test the engine against.

The formulas are those of embeng-optimizers(7): a row's gradient is the sum over the batch of its
sample's gradient times its factor in the activation.
"""
from dataclasses import dataclass, field
from typing import Any

import numpy

Array = numpy.ndarray[Any, Any]


@dataclass
class Bags:
    """Bags of ids with weights; padding is already taken out."""

    ids: list[list[int]]
    weights: list[list[float]] | None = None
    sequence: int = 0  # rows that are kept of each bag; 0 combines them


def factors(combiner: str, weights: list[float]) -> Array:
    """Return the factor of each row of a bag in its activation."""
    w = numpy.array(weights, float)
    if combiner == "sum":
        return w
    denominator = w.sum() if combiner == "mean" else numpy.sqrt((w * w).sum())
    return w / denominator if denominator else numpy.zeros_like(w)


@dataclass
class ReferenceTable:
    """Rows and slots of one table."""

    rows: Array
    combiner: str
    optimizer: str
    rate: float
    slots: dict[str, Array] = field(default_factory=dict)
    steps: int = 0

    def __post_init__(self) -> None:
        self.rows = self.rows.astype(float)
        names = {"adagrad": ["accumulators"], "adam": ["momenta", "velocities"]}
        for name in names.get(self.optimizer, []):
            start = 0.1 if name == "accumulators" else 0.0
            self.slots[name] = numpy.full(self.rows.shape, start)

    def _weights(self, bags: Bags, sample: int) -> list[float]:
        return bags.weights[sample] if bags.weights else [1.0] * len(bags.ids[sample])

    def lookup(self, bags: Bags) -> Array:
        """Return the activations of bags."""
        dim = self.rows.shape[1]
        if bags.sequence:
            out = numpy.zeros((len(bags.ids), bags.sequence, dim))
            for sample, bag in enumerate(bags.ids):
                kept = bag[:bags.sequence]
                out[sample, :len(kept)] = self.rows[kept]
            return out
        out = numpy.zeros((len(bags.ids), dim))
        for sample, bag in enumerate(bags.ids):
            if not bag:
                continue
            if self.combiner == "max":
                out[sample] = self.rows[bag].max(axis=0)
            else:
                out[sample] = factors(self.combiner, self._weights(bags, sample)) @ self.rows[bag]
        return out

    def _add(self, sums: dict[int, Array], bags: Bags, gradients: Array) -> None:
        for sample, bag in enumerate(bags.ids):
            if bags.sequence:
                for at, row in enumerate(bag[:bags.sequence]):
                    sums.setdefault(row, numpy.zeros(self.rows.shape[1]))
                    sums[row] += gradients[sample, at]
                continue
            for row in bag:
                sums.setdefault(row, numpy.zeros(self.rows.shape[1]))
            if self.combiner == "max" and bag:
                first = self.rows[bag].argmax(axis=0)
                for column, at in enumerate(first):
                    sums[bag[at]][column] += gradients[sample, column]
            elif bag:
                shares = factors(self.combiner, self._weights(bags, sample))
                for row, share in zip(bag, shares, strict=True):
                    sums[row] += share * gradients[sample]

    def update(self, batch: list[tuple[Bags, Array]]) -> None:
        """Apply the gradients of all features of the table, in one step."""
        sums: dict[int, Array] = {}
        for bags, gradients in batch:
            self._add(sums, bags, gradients)
        self.steps += 1
        for row, gradient in sums.items():
            self._move(row, gradient)

    def _move(self, row: int, g: Array) -> None:
        if self.optimizer == "sgd":
            self.rows[row] -= self.rate * g
        elif self.optimizer == "adagrad":
            self.slots["accumulators"][row] += g * g
            self.rows[row] -= self.rate * g / numpy.sqrt(self.slots["accumulators"][row])
        else:
            m, v = self.slots["momenta"], self.slots["velocities"]
            m[row] = 0.9 * m[row] + (1 - 0.9) * g
            v[row] = 0.999 * v[row] + (1 - 0.999) * g * g
            c = numpy.sqrt(1 - 0.999 ** self.steps)
            rate = self.rate * c / (1 - 0.9 ** self.steps)
            self.rows[row] -= rate * m[row] / (numpy.sqrt(v[row]) + 1e-8 * c)

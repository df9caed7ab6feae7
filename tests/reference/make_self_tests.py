#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write firmware-loader/embeng/self-tests.txt: what every kernel must compute, to the bit.

    make_self_tests.py [--check]

It follows docs/spec/decisions.md 16 with exact arithmetic and shares no code with the engine.
--check writes nothing: exit status 1 when the file is not what comes out here.
"""

import math
import pathlib
import random
import struct
import sys
from fractions import Fraction

import written

FILE = (pathlib.Path(__file__).resolve().parents[2]
        / "firmware-loader" / "embeng" / "self-tests.txt")
RUN = 256
LANES = 16
HEAD = """\
# SPDX-License-Identifier: MIT
# What every kernel variant must compute, to the bit: one training step each, lookup then
# update. Made by tests/reference/make_self_tests.py; embeng-firmware(5) has the format.
"""


def f32(x):
    """A double rounded to f32: exact for + - * / and sqrt of f32 that come as doubles."""
    try:
        return struct.unpack("<f", struct.pack("<f", x))[0]
    except OverflowError:
        return math.copysign(math.inf, x)


def exact_f32(x):
    """A fraction, not 0, rounded once to f32, halves to even."""
    exponent = max(math.frexp(float(x))[1] - 24, -149)
    scaled = x / Fraction(2) ** exponent
    return f32(math.ldexp(round(scaled), exponent))


def fma(a, b, c):
    if not all(map(math.isfinite, (a, b, c))):
        return f32(a * b + c)
    total = Fraction(a) * Fraction(b) + Fraction(c)
    return exact_f32(total) if total else f32(a * b + c)


def add(a, b):
    return f32(a + b)


def sub(a, b):
    return f32(a - b)


def mul(a, b):
    return f32(a * b)


def div(a, b):
    return f32(a / b)


def root(x):
    return f32(math.sqrt(x))


def sgd(w, g, s, lr, h):
    return sub(w, mul(lr, g)), s


def adagrad(w, g, s, lr, h):
    acc = add(s[0], mul(g, g))
    return sub(w, div(mul(lr, g), root(acc))), [acc]


def adam(w, g, s, lr, h):
    momentum = add(mul(h["beta_1"], s[0]), mul(sub(1, h["beta_1"]), g))
    velocity = add(mul(h["beta_2"], s[1]), mul(sub(1, h["beta_2"]), mul(g, g)))
    inside = mul(h["epsilon"], h["epsilon"])
    return sub(w, div(mul(lr, momentum), root(add(velocity, inside)))), [momentum, velocity]


def adagrad_momentum(w, g, s, lr, h):
    acc = add(s[0], mul(g, g))
    g = mul(g, div(1, root(add(acc, h["epsilon"]))))
    momentum = add(mul(h["momentum"], s[1]), g)
    return sub(w, mul(lr, add(mul(h["momentum"], momentum), g))), [acc, momentum]


def ftrl(w, g, s, lr, h):
    before = root(s[0])
    acc = add(s[0], mul(g, g))
    after = root(acc)
    linear = sub(add(s[1], g), div(mul(sub(after, before), w), lr))
    l1 = h["l1_regularization_strength"]
    bottom = add(div(add(after, h["beta"]), lr), mul(2, h["l2_regularization_strength"]))
    clipped = min(max(linear, -l1), l1)
    return div(sub(clipped, linear), bottom), [acc, linear]


def rowwise_adagrad(row, gradient, s, lr, h):
    """A whole row, whose slot is one number; squares and their sums are exact or rounded in f64."""
    lanes = [0.0] * LANES
    for c, g in enumerate(gradient):
        lanes[c % LANES] += g * g
    while len(lanes) > 1:
        half = len(lanes) // 2
        lanes = [a + b for a, b in zip(lanes[:half], lanes[half:])]
    acc = add(s[0], f32(lanes[0] / len(gradient)))
    step = div(lr, add(root(acc), h["epsilon"]))
    return [sub(w, mul(step, g)) for w, g in zip(row, gradient)], [acc]


ROWWISE = (rowwise_adagrad,)


def scale_of(combiner, weights):
    if combiner == "sum":
        return 1.0
    total = 0.0
    for w in weights:
        total += w if combiner == "mean" else w * w
    if combiner == "sqrtn":
        total = math.sqrt(total)
    return f32(1.0 / total) if total else 0.0


def pooled(table, ids, weights, scale, dim):
    out = []
    for column in range(dim):
        acc = 0.0
        for row, w in zip(ids, weights):
            acc = fma(w, table[row][column], acc)
        out.append(mul(acc, scale))
    return out


def summed(terms, dim):
    """Rows times coefficients, in runs."""
    total = None
    for first in range(0, len(terms), RUN):
        run = [0.0] * dim
        for coef, row in terms[first:first + RUN]:
            run = [fma(coef, g, acc) for g, acc in zip(row, run)]
        total = run if total is None else [add(a, b) for a, b in zip(total, run)]
    return total


class Test:
    """One step: bags of ids, weights or None, and the tables before and after."""

    def __init__(self, about, optimizer, combiner, dim, rows, bags, **more):
        self.about, self.optimizer, self.combiner, self.dim = about, optimizer, combiner, dim
        self.bags, self.weights = bags, more.get("weights")
        self.h = {key: f32(value) for key, value in more.get("h", {}).items()}
        self.lr, self.step = f32(more.get("lr", 0.1)), more.get("step", 1)
        draw = random.Random(about)
        self.table = more.get("table") or self.draw(draw, rows, -1, 1, dim)
        width = 1 if optimizer in ROWWISE else dim
        self.slots = [self.draw(draw, rows, low, high, width)
                      for low, high in more.get("slots", ())]
        self.gradients = self.draw(draw, len(bags), -1, 1, dim)

    @staticmethod
    def draw(draw, rows, low, high, width):
        return [[f32(low + (high - low) * draw.random()) for _ in range(width)]
                for _ in range(rows)]

    def update(self, row, gradient, slots):
        """Row and slots after the update."""
        if self.optimizer in ROWWISE:
            row, after = self.optimizer(row, gradient, [slot[0] for slot in slots], self.lr, self.h)
            return row, [[value] for value in after]
        out, columns = [], []
        for c, g in enumerate(gradient):
            w, after = self.optimizer(row[c], g, [slot[c] for slot in slots], self.lr, self.h)
            out.append(w)
            columns.append(after)
        return out, [list(values) for values in zip(*columns)]

    def weights_of(self, sample):
        return self.weights[sample] if self.weights else [1.0] * len(self.bags[sample])

    def run(self):
        """Activations, table and slots after the step."""
        out, terms = [], {}
        for s, ids in enumerate(self.bags):
            weights = self.weights_of(s)
            scale = scale_of(self.combiner, weights)
            out.append(pooled(self.table, ids, weights, scale, self.dim))
            for row, w in zip(ids, weights):
                terms.setdefault(row, []).append((mul(scale, w), self.gradients[s]))
        table = [list(row) for row in self.table]
        slots = [[list(row) for row in slot] for slot in self.slots]
        for row, its in terms.items():
            table[row], after = self.update(table[row], summed(its, self.dim),
                                            [slot[row] for slot in slots])
            for slot, values in zip(slots, after):
                slot[row] = values
        return out, table, slots

    def text(self):
        out, table, slots = self.run()
        offsets = [0]
        for bag in self.bags:
            offsets.append(offsets[-1] + len(bag))
        lines = [f"\n# {self.about}\n[self-test]", f"combiner = {self.combiner}",
                 f"optimizer = {self.optimizer.__name__}", f"learning_rate = {number(self.lr)}",
                 f"step = {self.step}", f"rows = {len(self.table)}", f"dim = {self.dim}"]
        lines += [f"{key} = {number(value)}" for key, value in self.h.items()]
        lines += array("offsets", offsets) + array("ids", sum(self.bags, []))
        lines += array("weights", sum(self.weights, [])) if self.weights else []
        for name, rows in (("table", self.table), ("slots", sum(self.slots, [])),
                           ("gradients", self.gradients), ("activations", out),
                           ("table_after", table), ("slots_after", sum(slots, []))):
            lines += array(name, sum(rows, []))
        return "\n".join(lines) + "\n"


def number(x):
    return str(x) if isinstance(x, int) else f"{x:.9g}"


def array(name, values):
    """Lines of an array: the name, then values in lines of their own."""
    lines, line = [], " "
    for text in map(number, values):
        if len(line) + len(text) > 98:
            lines.append(line)
            line = " "
        line += " " + text
    return [f"{name} ="] + lines + [line] if values else []


def bags_of(draw, sizes, rows):
    return [[draw.randrange(rows) for _ in range(size)] for size in sizes]


def weights_of(draw, bags):
    return [[f32(draw.uniform(0.25, 2)) for _ in bag] for bag in bags]


def tests():
    draw = random.Random(4)
    yield Test("SGD; sum; a row that fills more than one run of 256", sgd, "sum", 19, 3,
               [[1] * 15 for _ in range(20)] + [[0, 1, 0], []], lr=0.01)
    bags = bags_of(draw, (4, 0, 1, 7), 5)
    yield Test("Adagrad; mean with weights; an empty bag", adagrad, "mean", 3, 5, bags,
               weights=weights_of(draw, bags), slots=((0.1, 2),))
    bags = bags_of(draw, (9, 3, 1, 12, 2), 6)
    yield Test("Adam; sqrtn with weights", adam, "sqrtn", 17, 6, bags, step=3, lr=0.001,
               weights=weights_of(draw, bags), slots=((-1, 1), (0, 1)),
               h={"beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-7})
    yield Test("FTRL; mean; l1, l2 and beta", ftrl, "mean", 8, 4, bags_of(draw, (5, 2, 6), 4),
               slots=((0.1, 2), (-1, 1)),
               h={"l1_regularization_strength": 0.25, "l2_regularization_strength": 0.125,
                  "beta": 1.0})
    yield Test("AdagradMomentum; sum; Nesterov", adagrad_momentum, "sum", 33, 3,
               bags_of(draw, (2, 8, 3), 3), slots=((0, 2), (-1, 1)),
               h={"momentum": 0.75, "use_nesterov": 1.0, "epsilon": 1e-10})
    yield Test("SGD; mean whose weights add up to 0 gives zeros; denormals stay", sgd, "mean", 7,
               2, [[0, 1], [1]], weights=[[1.0, -1.0], [1.0]],
               table=[[1e-40] * 7, [3e-39] * 7], lr=2.0 ** -126)
    yield Test("SGD; sqrtn; infinity takes part, NaN comes out", sgd, "sqrtn", 5, 2,
               [[0, 1], [0, 0]], table=[[math.inf, -math.inf, math.inf, 1.0, 0.0],
                                        [math.inf, 1.0, -math.inf, 1.0, -0.0]])
    bags = bags_of(draw, (3, 9, 1, 6), 5)
    yield Test("RowwiseAdagrad; mean with weights; sums over more lanes than one vector has",
               rowwise_adagrad, "mean", 70, 5, bags, weights=weights_of(draw, bags),
               slots=((0, 2),), h={"epsilon": 1e-8})


if __name__ == "__main__":
    sys.exit(written.main(__doc__, FILE, HEAD + "".join(test.text() for test in tests())))

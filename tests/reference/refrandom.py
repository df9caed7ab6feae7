# SPDX-License-Identifier: MIT
"""Rows that start at random, written from their sources and from docs/spec/decisions.md 12.

A number depends on the seed, the name of the table, the slot, the row and the column: Philox4x32-10
(Salmon, Moraes, Dror, Shaw, SC 2011) is keyed with the first three, and its counter is made of row,
column and slot. Part says where a table lies in a larger one.
"""

import math
from statistics import NormalDist

from referror import require

MASK = 2 ** 64 - 1
KINDS = ("default", "constant", "uniform", "truncated_normal")


def philox(counter, key):
    """Four words of 32 bits."""
    c, k = list(counter), list(key)
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [b >> 32 ^ c[1] ^ k[0], b & 0xFFFFFFFF, a >> 32 ^ c[3] ^ k[1], a & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def mix(x):
    """The finalizer of splitmix64."""
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ x >> 27) * 0x94D049BB133111EB & MASK
    return x ^ x >> 31


def fnv1a(text):
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 & MASK
    return value


def key_of(name, slot, seed):
    return mix((mix((fnv1a(name) + slot) & MASK) + seed) & MASK)


def truncated_normal(word):
    """The inverse of a normal distribution of mean 0 and deviation 1, cut off at two deviations."""
    normal = NormalDist()
    low, high = normal.cdf(-2), normal.cdf(2)
    return min(max(normal.inv_cdf(low + (high - low) * ((word + 0.5) / 2 ** 32)), -2.0), 2.0)


class Initializer:
    def __init__(self, spec, where):
        self.kind = spec.get("kind", "default")
        require(self.kind in KINDS, "EINVAL", f"{where}: unknown initializer {self.kind}")
        self.a, self.b = float(spec.get("a", 0)), float(spec.get("b", 0))
        self.seed = spec.get("seed", 0)
        for x in (self.a, self.b):
            require(math.isfinite(x), "ERANGE", f"{where}: initializer {x} is not finite")

    def number(self, word):
        if self.kind == "uniform":
            return self.a + word / 2 ** 32 * (self.b - self.a)
        return self.a + self.b * truncated_normal(word)

    def row(self, name, slot, row, columns):
        """Numbers of these columns of a row, all counted in the whole table."""
        if self.kind == "constant":
            return [self.a] * len(columns)
        key = key_of(name, slot, self.seed)
        words = {}
        for column in columns:
            if column // 4 not in words:
                words[column // 4] = philox([row & 0xFFFFFFFF, row >> 32, column // 4, slot],
                                            [key & 0xFFFFFFFF, key >> 32])
        return [self.number(words[column // 4][column % 4]) for column in columns]


class Part:
    """The rows and columns of a larger table that a table is; spec None: all of its own."""

    def __init__(self, spec, where, rows, dim):
        given = spec or {"rows": rows}
        self.rows, self.dim = given["rows"], given.get("dim", 0) or dim
        self.first_row, self.first_column = given.get("first_row", 0), given.get("first_column", 0)
        self.step = given.get("row_step", 0) or 1
        self.width = dim
        where = f"{where}: part"
        require(self.rows >= rows, "ERANGE", f"{where}: {self.rows} rows, fewer than {rows}")
        require(0 <= self.first_row <= self.rows - rows, "ERANGE",
                f"{where}: first_row {self.first_row} must be 0 to {self.rows - rows}")
        require(self.step >= 1 and self.first_row + (rows - 1) * self.step < self.rows, "ERANGE",
                f"{where}: row_step {self.step}")
        require(dim <= self.dim < 2 ** 32, "ERANGE", f"{where}: dim {self.dim}")
        require(0 <= self.first_column <= self.dim - dim, "ERANGE",
                f"{where}: first_column {self.first_column} must be 0 to {self.dim - dim}")

    def row(self, row):
        return self.first_row + row * self.step

    def columns(self, narrow):
        """narrow: of a slot that has one number a row, which no part cuts."""
        return [0] if narrow else range(self.first_column, self.first_column + self.width)

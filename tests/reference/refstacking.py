# SPDX-License-Identifier: MIT
"""Table stacking and device layout (docs/spec/semantics.md 7.2 and 7.6), from the text.

Tables are dealt to lists; layouts come out of what the lists hold.
"""

import hashlib
import math

from refoptim import clip_limits
from refpartition import up
from referror import require

MOST = {"tf": 2**21 - 1, "jax": 2**21}  # at the limit tf parts, jax stacks
SHARD_LIMIT = 2**31
ROW_LIMIT = 2**31 - 1


class Grid:
    """The keys of a stacking step, checked."""

    def __init__(self, spec):
        self.flavour = spec["flavour"]
        self.cores = spec["sparse_cores"]
        self.each = spec.get("cores_per_device", 4)
        self.tf = self.flavour == "tf"
        limit = spec.get("activation_limit_bytes")
        require(self.flavour in MOST, "EINVAL", f"there is no flavour {self.flavour}")
        for key, value in (("sparse_cores", self.cores), ("cores_per_device", self.each),
                           ("activation_limit_bytes", 1 if limit is None else limit)):
            require(value >= 1, "ERANGE", f"{key} {value} is below 1")
        require(self.cores % self.each == 0, "EINVAL",
                f"{self.cores} sparse_cores are no multiple of {self.each} cores_per_device")
        require(self.tf or self.cores & (self.cores - 1) == 0, "EINVAL",
                f"{self.cores} sparse_cores are no power of two")
        self.most = MOST[self.flavour] if limit is None else limit - self.tf


def samples_of(feature):
    shape = feature.output_shape
    require(shape and all(shape), "EINVAL",
            f"feature {feature.name}: its shape is not fully defined")
    return math.prod(shape)


def settings_of(optimizer):
    """Returns the settings by which two optimizers are compared."""
    if optimizer is None:
        return None
    h = dict(optimizer.h)
    h["clipvalue"] = clip_limits(h["clipvalue"])
    h["weight_decay_factor"] = h["weight_decay_factor"] or 0.0
    by_rate = "multiply_weight_decay_factor_by_learning_rate"
    h[by_rate] = bool(h[by_rate])
    return optimizer.rule, h


def levels_of(quantization):
    return quantization and (quantization.buckets, quantization.lower, quantization.upper)


def alike(a, b, grid):
    """Tables that may stand in one stack."""
    return (up(a.dim, 8) == up(b.dim, 8)
            and settings_of(a.optimizer) == settings_of(b.optimizer)
            and levels_of(a.quantization) == levels_of(b.quantization)
            and (grid.tf or a.combiner == b.combiner))


def per_core(table, model, grid):
    """Samples of one core as the limit counts them."""
    counts = [samples_of(f) for f in model.features.values() if f.table is table]
    return sum(counts) // 4 if grid.tf else sum(n // grid.each for n in counts)


def in_order(model, grid):
    if grid.tf:
        return sorted(model.tables.values(), key=lambda t: t.name.encode())
    used = list(dict.fromkeys(f.table.name for f in model.features.values()))
    return [model.tables[name] for name in
            used + [name for name in model.tables if name not in used]]


def fits(tables, model, grid):
    width, height = up(tables[0].dim, 8), sum(up(t.vocabulary_size, 8 * grid.cores)
                                              for t in tables)
    if 4 * width * sum(per_core(t, model, grid) for t in tables) > grid.most:
        return False
    return not grid.tf or (4 * width * height // (grid.cores // grid.each) < SHARD_LIMIT
                           and height < ROW_LIMIT)


def name_of(tables, grid):
    name = "_".join(t.name for t in tables)
    if grid.tf or len(name) <= 50:
        return name
    return name[:50] + "..." + hashlib.sha256(name.encode()).hexdigest()[:12]


def describe(tables, model, grid):
    """A stack as a stacking step has it."""
    rows = [up(t.vocabulary_size, 8 * grid.cores) // grid.cores for t in tables]
    counts = [samples_of(f) for f in model.features.values() if f.table in tables]
    return {
        "name": name_of(tables, grid),
        "width": up(tables[0].dim, 8),
        "tables": [t.name for t in tables],
        "row_offsets": [sum(rows[:k]) for k in range(len(rows))],
        "rotations": [k * grid.each % grid.cores for k in range(len(rows))],
        "sample_offsets": [sum(counts[:k]) for k in range(len(counts))],
    }


def stacking(model, spec):
    """Returns all that a stacking step must give."""
    grid = Grid(spec)
    for table in model.tables.values():
        require(table.combiner != "max", "ENOTSUP", f"table {table.name}: the combiner max")
    for feature in model.features.values():
        samples_of(feature)
    stacks = []
    for table in in_order(model, grid):
        for stack in stacks:
            if alike(stack[0], table, grid) and fits(stack + [table], model, grid):
                stack.append(table)
                break
        else:
            stacks.append([table])
    out = [describe(stack, model, grid) for stack in stacks]
    names = [stack["name"] for stack in out]
    require(len(set(names)) == len(names), "EEXIST", "two stacks are named alike: "
            + ", ".join(names))
    return out


def shards(tables, places, cores, per_core_rows, width, padding):
    """[core][row][column] of tables [(rows of numbers, row offset, rotation, padded rows)]."""
    out = [[[None] * width for _ in range(per_core_rows)] for _ in range(cores)]
    for rows, (offset, rotation, padded) in zip(tables, places):
        for r in range(padded):
            row = rows[r] if r < len(rows) else []
            out[(r + rotation) % cores][offset + r // cores] = row + [padding] * (width - len(row))
    return out

# SPDX-License-Identifier: MIT
"""Specifications of features with the attributes of jax-tpu-embedding's, and tables in stacks."""
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy


class Case(NamedTuple):
    """Features of one stack, their inputs, and the tables that they look up."""

    specs: dict[str, Any]
    ids: dict[str, Any]
    weights: dict[str, Any]
    tables: list[Any]
    devices: int
    cores: int
    combiner: str


def make_optimizer(kind: str, *settings: Any, **more: Any) -> Any:
    """Return an optimizer's specification: its name, and its hyperparameters."""
    numbers = tuple(numpy.float32(s) for s in settings)
    return SimpleNamespace(short_name=lambda: kind, get_hyperparameters=lambda step: numbers,
                           **more)


def make_case(rng: numpy.random.Generator, devices: int, cores: int, combiner: str = "sum",
              limit: int = 1000, optimizer: Any = None, tables: int = 2) -> Case:
    """Make tables in a stack, a feature for each, and a ragged or dense batch."""
    total, dim = devices * cores, 8
    sizes = [int(rng.integers(1, 60)) for _ in range(tables)]
    padded = [-(-size // (8 * total)) * 8 * total for size in sizes]
    counts = [int(rng.integers(1, 4)) * total for _ in range(tables)]
    stack = SimpleNamespace(
        stack_name="stack", stack_vocab_size=sum(padded), stack_embedding_dim=dim,
        combiner=combiner, optimizer=optimizer or make_optimizer("sgd", 0.5),
        total_sample_count=sum(counts), max_ids_per_partition=limit,
        max_unique_ids_per_partition=limit, suggested_coo_buffer_size_per_device=None)
    specs: dict[str, Any] = {}
    ids: dict[str, Any] = {}
    weights: dict[str, Any] = {}
    for k in range(tables):
        name = f"f{k}"
        change = SimpleNamespace(row_offset=sum(counts[:k]), col_offset=sum(padded[:k]),
                                 col_shift=k * cores % total)
        setting = SimpleNamespace(stack_name="stack", padded_embedding_dim=dim)
        table = SimpleNamespace(name=f"t{k}", vocabulary_size=sizes[k], embedding_dim=dim - k,
                                stacked_table_spec=stack, setting_in_stack=setting)
        specs[name] = SimpleNamespace(name=name, table_spec=table, input_shape=[counts[k], 4],
                                      output_shape=[counts[k], dim - k], id_transformation=change,
                                      _id_transformation=change)
        lengths = rng.integers(1, 6, counts[k]) if k % 2 else numpy.full(counts[k], 4)
        rows = [rng.integers(0, sizes[k], n).astype(numpy.int32) for n in lengths]
        factors = [rng.uniform(0.5, 2, n).astype(numpy.float32) for n in lengths]
        ids[name] = as_input(rows, k % 2 == 1)
        weights[name] = as_input(factors, k % 2 == 1)
    values = [rng.normal(size=(size, dim - k)).astype(numpy.float32)
              for k, size in enumerate(sizes)]
    return Case(specs, ids, weights, values, devices, cores, combiner)


def as_input(rows: list[Any], ragged: bool) -> Any:
    """Return arrays as a matrix, or as an array of arrays."""
    if not ragged:
        return numpy.stack(rows)
    found = numpy.empty(len(rows), object)
    for k, row in enumerate(rows):
        found[k] = row
    return found


def row_in_stack(spec: Any, row: int, total: int) -> int:
    """Return where a row of a table stands in the stacked array."""
    change = spec.id_transformation
    stacked = (row + change.col_shift) % total + row // total * total + change.col_offset
    per_core: int = spec.table_spec.stacked_table_spec.stack_vocab_size // total
    return stacked % total * per_core + stacked // total


def stack_tables(case: Case) -> Any:
    """Return the stacked array of a case's tables."""
    total = case.devices * case.cores
    spec = next(iter(case.specs.values())).table_spec.stacked_table_spec
    found = numpy.zeros((spec.stack_vocab_size, spec.stack_embedding_dim), numpy.float32)
    for one, table in zip(case.specs.values(), case.tables, strict=True):
        for row in range(len(table)):
            found[row_in_stack(one, row, total), :table.shape[1]] = table[row]
    return found


def factors_of(weights: Any, combiner: str) -> Any:
    """Return the factor of each row of a sample."""
    weights = numpy.asarray(weights, numpy.float64)
    divisor = {"sum": 1, "mean": weights.sum(), "sqrtn": numpy.sqrt((weights ** 2).sum())}[combiner]
    return weights / divisor

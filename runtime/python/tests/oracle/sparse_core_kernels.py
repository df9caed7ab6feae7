# SPDX-License-Identifier: MIT
"""TensorFlow's operators that prepare batches for SparseCores, computed by embeng.

Their names and arguments are those of ``tensorflow.python.tpu.ops.gen_xla_ops``. All rows, samples,
gains and counts come from :meth:`Engine.partition`, which does in one call what these do in three.
So some of them make a batch again of what the one before returned, which is in two forms: a list
of entries has (sample, column, gain), and a sorted list has the row within its core in place of the
column, with the ends of its partitions as `id_counts`.
"""
import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy

from embeng import Engine, Feature, Ragged, Sparse, Table
from embeng.initializers import constant

LANES = 8
STACKED = ("before", "feature", "after")  # the features of a stack, in its order
Array = Any


class Partitioned(NamedTuple):
    """The arrays of a device, and what :meth:`Engine.partition` says of them."""

    row_pointers: Array
    tokens: Array
    samples: Array
    gains: Array
    max_ids: Array
    max_unique_ids: Array
    facts: dict[str, int]


class Items(NamedTuple):
    """The items of a device's partitions, without padding."""

    cores: Array
    columns: Array
    samples: Array
    gains: Array


class Grid(NamedTuple):
    """SparseCores, and the options of a partition."""

    total: int
    cores: int
    max_ids: int = 0
    max_unique_ids: int = 0
    buffer_size: int = 0
    dropping: bool = False
    splits: int = 0
    rotation: int = 0


@functools.cache
def _open(rows_before: int, rows: int, combiner: str) -> Engine:
    tables = [Table(name, count, 1, combiner, None, constant(0.0))
              for name, count in (("table_before", rows_before), ("table", rows)) if count]
    first = tables[0].name
    return Engine(tables, [Feature("before", first), Feature("feature", "table"),
                           Feature("after", first)], cores=1)


def _partition(engine: Engine, features: dict[str, Any], grid: Grid) -> Partitioned:
    options = (grid.total, grid.cores, 0, grid.max_ids, grid.max_unique_ids, grid.buffer_size,
               bool(grid.splits), grid.dropping, grid.splits, "tf", grid.rotation)
    pointers, items = engine.partition(features, None, *options)
    arrays = (numpy.zeros(pointers, numpy.int32), numpy.zeros(items, numpy.int32),
              numpy.zeros(items, numpy.int32), numpy.zeros(items, numpy.float32),
              numpy.zeros(grid.total, numpy.uint32), numpy.zeros(grid.total, numpy.uint32),
              *(numpy.zeros(grid.cores, numpy.uint64) for _ in range(3)))
    facts = engine.partition(features, arrays, *options)
    return Partitioned(*arrays[:6], facts)


def _list_items(found: Partitioned, grid: Grid) -> Items:
    """List the items of a device that has one minibatch."""
    stride = found.facts["row_stride"]
    places, cores, partitions = [], [], []
    end = 0
    for core in range(grid.cores):
        for partition in range(grid.total):
            start = -(-end // LANES) * LANES
            end = int(found.row_pointers[core * stride + partition])
            places.append(numpy.arange(start, end))
            cores.append(numpy.full(end - start, core))
            partitions.append(numpy.full(end - start, partition))
        end = int(found.row_pointers[(core + 1) * stride - 1])
    at = numpy.concatenate(places)
    columns = found.tokens[at].astype(numpy.int64) * grid.total + numpy.concatenate(partitions)
    return Items(numpy.concatenate(cores), columns, found.samples[at], found.gains[at])


def _entries(samples: Array, columns: Array, gains: Array, count: int) -> Sparse:
    """Make bags of a list of entries."""
    order = numpy.argsort(samples, kind="stable")
    indices = numpy.stack([samples[order], numpy.arange(len(order))], 1).astype(numpy.int64)
    return Sparse(indices, columns[order].astype(numpy.int64), (count, max(len(order), 1)),
                  gains[order].astype(numpy.float32))


def _runs(samples: Array, ids: Array) -> Array:
    """Say for each id which run of equal neighbours it is in."""
    first = (numpy.diff(samples) != 0) | (numpy.diff(ids) != 0)
    return numpy.concatenate([[0], numpy.cumsum(first)]).astype(numpy.int64)


def convert_to_list_of_sparse_core_coo_tensors(
        *, indices_or_row_splits: Any, values: Any, weights: Any, sample_count: int, combiner: str,
        num_sc_per_chip: int, row_offset: int, col_offset: int, col_shift: int, num_sc_shards: int,
        stacked_table_sample_count: int) -> tuple[list[Array], list[Array], list[Array]]:
    """List the entries of a sparse feature of a stack, in the order of its ids.

    The stack has other features before and after this one, which are empty, and a table before this
    one's, by whose place it is rotated. Its length is one that a stack may have; columns are told
    from `col_offset` on. Equal ids of a sample that are no neighbours are entries of their own
    here, and one of ours: they have parts of its gain.
    """
    samples, ids = numpy.asarray(indices_or_row_splits)[:, 0], numpy.asarray(values)
    given = numpy.broadcast_to(numpy.asarray(weights, numpy.float32), ids.shape)
    before = LANES * num_sc_shards if col_offset or col_shift or row_offset else 0
    counts = (row_offset, sample_count, stacked_table_sample_count - row_offset - sample_count)
    features: dict[str, Any] = {
        name: Ragged(numpy.zeros(0, numpy.int32), lengths=numpy.zeros(count, numpy.int64))
        for name, count in zip(STACKED, counts, strict=True) if count}
    indices = numpy.stack([samples, numpy.arange(len(ids))], 1).astype(numpy.int64)
    features["feature"] = Sparse(indices, ids, (sample_count, len(ids)), given)
    grid = Grid(num_sc_shards, num_sc_per_chip, rotation=col_shift)
    rows = 1 << int(ids.max()).bit_length()
    items = _list_items(_partition(_open(before, rows, combiner), features, grid), grid)
    each, skipped = sample_count // num_sc_per_chip, row_offset // num_sc_per_chip
    columns = items.columns - before
    wheres = columns // num_sc_shards * num_sc_shards + (columns - col_shift) % num_sc_shards
    found = items.cores * each + items.samples - skipped
    keys = zip(found.tolist(), wheres.tolist(), strict=True)
    place = {key: number for number, key in enumerate(keys)}
    which = numpy.array([place[key] for key in zip(samples.tolist(), ids.tolist(), strict=True)])
    assert len(numpy.unique(which)) == len(items.gains), "an entry is of no id"
    total = numpy.bincount(which, given, len(items.gains))
    runs = _runs(samples, ids)
    first = numpy.unique(runs, return_index=True)[1]
    chosen = which[first]
    parts = numpy.bincount(runs, given) / total[chosen]
    stacked = items.cores * (stacked_table_sample_count // num_sc_per_chip) + items.samples
    core = items.cores[chosen]
    made = (stacked[chosen].astype(numpy.int32), (columns + col_offset)[chosen].astype(numpy.int32),
            (items.gains[chosen] * parts).astype(numpy.float32))
    lists = [[array[core == c] for c in range(num_sc_per_chip)] for array in made]
    return lists[0], lists[1], lists[2]


def _one_core(row_ids_list: Sequence[Any], col_ids_list: Sequence[Any], gains_list: Sequence[Any],
              sample_count_list: Sequence[int], rows: int, grid: Grid) -> Partitioned:
    """Partition the entries of one core of a device."""
    (samples,), (columns,), (gains,) = row_ids_list, col_ids_list, gains_list
    (count,) = sample_count_list
    batch = _entries(numpy.asarray(samples) % count, numpy.asarray(columns), numpy.asarray(gains),
                     count)
    return _partition(_open(0, rows, "sum"), {"feature": batch}, grid)


def get_stats_from_list_of_sparse_core_coo_tensors(
        *, row_ids_list: Sequence[Any], col_ids_list: Sequence[Any], gains_list: Sequence[Any],
        sample_count_list: Sequence[int], col_offset_list: Sequence[int], num_replica: int,
        table_vocab_size: int, feature_width: int, num_sc_per_chip: int,
        table_name: str) -> tuple[int, int]:
    """Say how many entries, and how many different rows, the fullest partition has."""
    found = _one_core(row_ids_list, col_ids_list, gains_list, sample_count_list, table_vocab_size,
                      Grid(num_replica * num_sc_per_chip, 1))
    return int(found.max_ids.max()), int(found.max_unique_ids.max())


def sort_list_of_sparse_core_coo_tensors(
        *, row_ids_list: Sequence[Any], col_ids_list: Sequence[Any], gains_list: Sequence[Any],
        sample_count_list: Sequence[int], col_offset_list: Sequence[int], num_replica: int,
        table_vocab_size: int, feature_width: int, num_sc_per_chip: int,
        max_ids_per_sparse_core: int, max_unique_ids_per_sparse_core: int,
        table_name: str) -> tuple[Array, Array, Array, Array]:
    """Sort the entries of a core by their partition, then their row, then their sample."""
    grid = Grid(num_replica * num_sc_per_chip, 1, max_ids_per_sparse_core,
                max_unique_ids_per_sparse_core)
    found = _one_core(row_ids_list, col_ids_list, gains_list, sample_count_list, table_vocab_size,
                      grid)
    items = _list_items(found, grid)
    ends = numpy.cumsum(numpy.bincount(items.columns % grid.total, minlength=grid.total))
    return (items.samples, (items.columns // grid.total).astype(numpy.int32), items.gains, ends)


def convert_to_sparse_core_csr_wrapped_coo_tensor(
        *, sorted_row_ids_list: Sequence[Array], sorted_col_ids_list: Sequence[Array],
        sorted_gains_list: Sequence[Array], id_counts_list: Sequence[Array], splits: Any,
        sample_count_per_sc: int, max_minibatches_per_sc: int, max_ids_per_chip_per_sample: int,
        table_vocab_size: int, feature_width: int, num_replica: int, allow_id_dropping: bool,
        table_name: str) -> tuple[Array, ...]:
    """Make the partitioned CSR of a device of the sorted lists of its cores."""
    cores = len(sorted_row_ids_list)
    total = num_replica * cores
    samples = numpy.concatenate([rows + core * sample_count_per_sc
                                 for core, rows in enumerate(sorted_row_ids_list)])
    columns = numpy.concatenate([
        tokens * total + numpy.repeat(numpy.arange(total), numpy.diff(ends, prepend=0))
        for tokens, ends in zip(sorted_col_ids_list, id_counts_list, strict=True)])
    count = cores * sample_count_per_sc
    batch = _entries(samples, columns, numpy.concatenate(sorted_gains_list), count)
    size = max_ids_per_chip_per_sample * count
    grid = Grid(total, cores, buffer_size=size, dropping=allow_id_dropping, splits=int(splits))
    found = _partition(_open(0, table_vocab_size, "sum"), {"feature": batch}, grid)
    if found.facts["minibatches"] > max_minibatches_per_sc:
        raise ValueError(f"{found.facts['minibatches']} minibatches are more than the "
                         f"{max_minibatches_per_sc} that are allowed")
    used = int(found.row_pointers[found.facts["row_pointer_count"] - 1])
    return (found.row_pointers, found.samples[:size], found.tokens[:size], found.gains[:size],
            numpy.int32(found.facts["row_pointer_count"]), numpy.int32(-(-used // LANES) * LANES),
            numpy.int32(found.facts["minibatches"]))

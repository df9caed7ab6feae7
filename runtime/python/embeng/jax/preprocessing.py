# SPDX-License-Identifier: MIT
"""Batches as SparseCores take them, under the names of jax-tpu-embedding.

The specifications of features are jax-tpu-embedding's own, or any objects with the same attributes;
its functions prepare them (stacking, transformations). The partitioned arrays are computed by the
engine, and are those of its function bit for bit as far as a consumer reads them: what stands
between the partitions is padding, which row pointers leave out. Functions are thread-safe, and keep
nothing of a batch.
"""
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import numpy

from .._engine import Engine, Feature, Table
from .._errors import InvalidError, NotSupportedError, OutOfRangeError
from .._inputs import Ragged
from ..initializers import constant

BUCKETS = 64
LANES = 8


class SparseDenseMatmulInput(NamedTuple):
    """Partitioned arrays by the names of stacks, those of all local devices in each."""

    lhs_row_pointers: dict[str, Any]
    lhs_embedding_ids: dict[str, Any]
    lhs_sample_ids: dict[str, Any]
    lhs_gains: dict[str, Any]


@jax.tree_util.register_dataclass
@dataclass
class PreprocessedInput:
    """The input of :func:`embeng.jax.tpu_sparse_dense_matmul`.

    Attributes
    ----------
    sparse_dense_matmul_input : SparseDenseMatmulInput
        The arrays.
    num_minibatches : ndarray
        Minibatches, for each local device.
    """

    sparse_dense_matmul_input: SparseDenseMatmulInput
    num_minibatches: Any

    @property
    def lhs_row_pointers(self) -> dict[str, Any]:
        """The row pointers by stack."""
        return self.sparse_dense_matmul_input.lhs_row_pointers

    @property
    def lhs_embedding_ids(self) -> dict[str, Any]:
        """The rows within their core by stack."""
        return self.sparse_dense_matmul_input.lhs_embedding_ids

    @property
    def lhs_sample_ids(self) -> dict[str, Any]:
        """The samples within their core by stack."""
        return self.sparse_dense_matmul_input.lhs_sample_ids

    @property
    def lhs_gains(self) -> dict[str, Any]:
        """The factors of the rows by stack."""
        return self.sparse_dense_matmul_input.lhs_gains


@dataclass
class SparseDenseMatmulInputStats:
    """Demands of a batch by the names of stacks, before ids are dropped."""

    max_ids_per_partition: dict[str, Any] = field(default_factory=dict)
    max_unique_ids_per_partition: dict[str, Any] = field(default_factory=dict)
    required_buffer_size_per_sc: dict[str, Any] = field(default_factory=dict)
    id_drop_counters: dict[str, int] = field(default_factory=dict)


class _Grid(NamedTuple):
    local: int
    devices: int
    cores: int  # on each device

    @property
    def total(self) -> int:
        return self.devices * self.cores


class _Limits(NamedTuple):
    """The numbers of a stack that options of the engine are made of."""

    rows: int
    combiner: str
    max_ids: int
    max_unique_ids: int
    buffer_size: int


class _Part(NamedTuple):
    """One feature of a stack: its ids in the stack, lengths of its samples, and weights."""

    ids: Any
    lengths: Any
    weights: Any


_engines: dict[tuple[int, str], Engine] = {}
_lock = threading.Lock()


def _find_engine(limits: _Limits) -> Engine:
    """Return the engine that partitions ids of so many rows: it has one table, of zeros."""
    rows = 1 << max(limits.rows - 1, 1).bit_length()
    with _lock:
        engine = _engines.get((rows, limits.combiner))
        if engine is None:
            table = Table("stack", rows, 1, limits.combiner, None, constant(0.0))
            engine = Engine([table], [Feature("ids", "stack")], cores=1)
            _engines[rows, limits.combiner] = engine
    return engine


# -- features


def _flatten_ids(array: Any, name: str, what: str, dtype: Any) -> tuple[Any, Any]:
    """Return values and lengths of a matrix, or of an array of arrays."""
    array = numpy.asarray(array)
    if array.dtype != object:
        if array.ndim == 1:
            array = array[:, None]
        if array.ndim != 2:
            raise InvalidError(f"feature {name}: {what} have {array.ndim} dimensions; give 2, or a "
                               "list of arrays")
        lengths = numpy.full(len(array), array.shape[1], numpy.int64)
        return numpy.ascontiguousarray(array.reshape(-1), dtype), lengths
    lengths = numpy.array([len(row) for row in array], numpy.int64)
    values: Any = numpy.concatenate([numpy.asarray(row) for row in array]) if len(array) else []
    return numpy.ascontiguousarray(values, dtype), lengths


def _change_of(spec: Any) -> Any:
    """Return how ids of a feature become rows of its stack, or None."""
    if hasattr(spec, "_id_transformation"):
        return spec._id_transformation  # the public one raises where there is none
    return spec.id_transformation


def _transform_ids(ids: Any, spec: Any, grid: _Grid) -> Any:
    """Return the rows of the stack: tables are rotated over the cores, and stand behind others."""
    change = _change_of(spec)
    if change is None:
        return ids
    total = grid.total
    return (ids + change.col_shift) % total + ids // total * total + change.col_offset


def _read_feature(spec: Any, ids: Any, weights: Any, grid: _Grid, check: bool) -> _Part:
    values, lengths = _flatten_ids(ids, spec.name, "ids", numpy.int64)
    table = spec.table_spec
    rows = table.vocabulary_size if check else table.stacked_table_spec.stack_vocab_size
    outside = numpy.flatnonzero((values < 0) | (values >= rows))
    if len(outside):
        sample = int(numpy.searchsorted(numpy.cumsum(lengths), outside[0], "right"))
        raise InvalidError(f"feature {spec.name}, sample {sample}: id {values[outside[0]]} is "
                           f"outside table {table.name}, which has rows 0 to {rows - 1}")
    found = None
    if weights is not None:
        found, widths = _flatten_ids(weights, spec.name, "weights", numpy.float32)
        if len(widths) != len(lengths) or (widths != lengths).any():
            raise InvalidError(f"feature {spec.name}: weights have other lengths than ids")
        wrong = numpy.flatnonzero(~numpy.isfinite(found))
        if len(wrong):
            sample = int(numpy.searchsorted(numpy.cumsum(lengths), wrong[0], "right"))
            raise OutOfRangeError(f"feature {spec.name}, sample {sample}: a weight is "
                                  f"{found[wrong[0]]}, which is not finite")
    per_device = grid.local * grid.cores
    if len(lengths) % per_device:
        raise InvalidError(f"feature {spec.name}: {len(lengths)} samples are no multiple of the "
                           f"{per_device} cores of {grid.local} devices")
    return _Part(_transform_ids(values, spec, grid), lengths, found)


def _block(part: _Part, device: int, core: int, grid: _Grid) -> _Part:
    """Return the samples of one core."""
    splits = numpy.concatenate([[0], numpy.cumsum(part.lengths)])
    size = len(part.lengths) // (grid.local * grid.cores)
    first = (device * grid.cores + core) * size
    start, end = splits[first], splits[first + size]
    return _Part(part.ids[start:end], part.lengths[first:first + size],
                 None if part.weights is None else part.weights[start:end])


def _divide_weights(weights: Any, lengths: Any, combiner: str) -> Any:
    """Divide weights as jax-tpu-embedding does: sums in f32, one weight after another."""
    if combiner == "sum":
        return weights
    starts = numpy.cumsum(lengths) - lengths
    sums = numpy.zeros(len(lengths), numpy.float32)
    for place in range(int(lengths.max(initial=0))):
        there = lengths > place
        one = weights[starts[there] + place]
        if combiner == "mean":
            sums[there] += one
        else:
            squares = one.astype(numpy.float64) ** 2
            sums[there] = (sums[there].astype(numpy.float64) + squares).astype(numpy.float32)
    divisors = sums if combiner == "mean" else numpy.sqrt(sums)
    return weights / numpy.repeat(divisors, lengths)


def _gather_device(parts: Sequence[_Part], device: int, grid: _Grid, combiner: str) -> Ragged:
    """Return the samples of a device as one feature: core by core those of all features."""
    blocks = [_block(part, device, core, grid) for core in range(grid.cores) for part in parts]
    lengths = numpy.concatenate([block.lengths for block in blocks])
    weights = None
    if any(block.weights is not None for block in blocks):
        weights = numpy.concatenate([numpy.ones(len(b.ids), numpy.float32) if b.weights is None
                                     else b.weights for b in blocks])
        weights = _divide_weights(weights, lengths, combiner)
    return Ragged(numpy.concatenate([block.ids for block in blocks]), lengths=lengths,
                  weights=weights)


# -- stacks


def read_limits(spec: Any, cores: int) -> _Limits:
    stack = spec.table_spec.stacked_table_spec
    if stack is None:
        raise InvalidError(f"table {spec.table_spec.name} is in no stack; prepare the feature "
                           "specifications for training first")
    suggested = getattr(stack, "suggested_coo_buffer_size_per_device", None)
    size = int(suggested) if suggested else 0
    return _Limits(stack.stack_vocab_size, stack.combiner, stack.max_ids_per_partition,
                   stack.max_unique_ids_per_partition, -(-size // (LANES * cores)) * LANES * cores)


def _group_specs(specs: Sequence[Any]) -> dict[str, list[int]]:
    """Return the features of each stack, in the order of their samples; stacks by name."""
    stacks: dict[str, list[int]] = {}
    for number, spec in enumerate(specs):
        stacks.setdefault(spec.table_spec.setting_in_stack.stack_name, []).append(number)

    def place(number: int) -> int:
        change = _change_of(specs[number])
        return 0 if change is None else int(change.row_offset)

    return {name: sorted(stacks[name], key=place) for name in sorted(stacks)}


@dataclass
class _Device:
    """The partitioned arrays of one stack on one device, and what they demand."""

    arrays: tuple[Any, ...]
    facts: dict[str, Any]


def _partition(limits: _Limits, batch: Ragged, device: int, grid: _Grid, minibatching: bool,
               dropping: bool, splits: int) -> _Device:
    # Weights come divided: their sum is what the combiner makes of them.
    engine = _find_engine(limits if batch.weights is None else limits._replace(combiner="sum"))
    options = (grid.total, grid.cores, device, limits.max_ids, limits.max_unique_ids,
               limits.buffer_size, minibatching, dropping, splits)
    pointers, items = engine.partition({"ids": batch}, None, *options)
    if minibatching:
        pointers = max(grid.total, LANES) * grid.cores * BUCKETS
    arrays = (numpy.zeros(pointers, numpy.int32),
              numpy.full(items, 2**31 - 1, numpy.int32), numpy.full(items, 2**31 - 1, numpy.int32),
              numpy.full(items, numpy.nan, numpy.float32),
              numpy.zeros(grid.total, numpy.uint32), numpy.zeros(grid.total, numpy.uint32),
              *(numpy.zeros(grid.cores, numpy.uint64) for _ in range(3)))
    facts = engine.partition({"ids": batch}, arrays, *options)
    size = facts["buffer_size"]
    return _Device((arrays[0], *(_fit(array, size) for array in arrays[1:4]), *arrays[4:]), facts)


def _fit(array: Any, size: int) -> Any:
    """Return the first items of an array, or the array with padding behind it."""
    if len(array) >= size:
        return array[:size]
    fitted = numpy.full(size, 2**31 - 1 if array.dtype == numpy.int32 else numpy.nan, array.dtype)
    fitted[:len(array)] = array
    return fitted


def _run_stacks(specs: Sequence[Any], parts: Sequence[_Part], grid: _Grid, minibatching: bool,
                dropping: bool) -> dict[str, list[_Device]]:
    """Partition all stacks on all devices, again where others part their buckets."""
    groups = _group_specs(specs)
    limits = {name: read_limits(specs[group[0]], grid.cores) for name, group in groups.items()}
    batches = {name: [_gather_device([parts[k] for k in group], device, grid, limits[name].combiner)
                      for device in range(grid.local)] for name, group in groups.items()}

    def run(splits: int) -> dict[str, list[_Device]]:
        return {name: [_partition(limits[name], batch, device, grid, minibatching, dropping, splits)
                       for device, batch in enumerate(batches[name])] for name in groups}

    done = run(0)
    while minibatching:
        masks = [device.facts["splits"] for devices in done.values() for device in devices]
        agreed = 0
        for mask in masks:
            agreed |= mask
        if all(mask == agreed for mask in masks):
            break
        done = run(agreed)
    return done


def _join_devices(devices: list[_Device], which: int, leading: bool) -> Any:
    return (numpy.stack if leading else numpy.concatenate)([d.arrays[which] for d in devices])


def _sum_stats(done: dict[str, list[_Device]]) -> SparseDenseMatmulInputStats:
    stats = SparseDenseMatmulInputStats()
    for name, devices in done.items():
        for which, found in ((4, stats.max_ids_per_partition),
                             (5, stats.max_unique_ids_per_partition),
                             (6, stats.required_buffer_size_per_sc)):
            found[name] = numpy.concatenate([d.arrays[which] for d in devices]).astype(numpy.int32)
        stats.id_drop_counters[name] = sum(d.facts["dropped_ids"] for d in devices)
    return stats


def _check_counts(local: int, devices: int, cores: int | None) -> None:
    if cores is None:
        raise InvalidError("num_sc_per_device: there is no SparseCore here to be asked; give it")
    for name, count in (("local_device_count", local), ("global_device_count", devices),
                        ("num_sc_per_device", cores)):
        if count < 1:
            raise InvalidError(f"{name} must be greater than 0, and is {count}")
    if devices < local:
        raise InvalidError(f"global_device_count must be greater than or equal to "
                           f"local_device_count; they are {devices} and {local}")
    total = devices * cores
    if total & (total - 1):
        raise InvalidError(f"the SparseCores of all devices, {total}, must be a power of 2")


def _check_options(strategy: Any, minibatching: bool, reduce: Any, alone: bool) -> None:
    if str(strategy).upper() != "MOD":
        raise InvalidError(f"sharding_strategy {strategy!r}: there is 'MOD' alone")
    if reduce is not None or (minibatching and not alone):
        raise NotSupportedError("minibatching over several hosts needs their all-reduce, which is "
                                "not here: local_device_count must be global_device_count")


def flatten_like(specs: Any, given: Any, what: str) -> list[Any]:
    """Return what a structure has in the places of the specifications."""
    structure: Any = jax.tree.structure(specs)
    try:
        return list(structure.flatten_up_to(given))
    except ValueError as error:
        raise ValueError(f"Pytree structures of {what} and feature_specs do not match: "
                         f"{error}") from None


class _Options(NamedTuple):
    leading: bool
    dropping: bool
    minibatching: bool
    check: bool


def _preprocess(features: Any, features_weights: Any, feature_specs: Any, grid: _Grid,
                options: _Options) -> tuple[PreprocessedInput, SparseDenseMatmulInputStats]:
    specs = jax.tree.leaves(feature_specs)
    if not specs:
        raise InvalidError("input_batches cannot be empty: no feature is specified")
    given = flatten_like(feature_specs, features, "features")
    weights = [None] * len(given) if features_weights is None else \
        flatten_like(feature_specs, features_weights, "features_weights")
    parts = [_read_feature(spec, ids, w, grid, options.check)
             for spec, ids, w in zip(specs, given, weights, strict=True)]
    done = _run_stacks(specs, parts, grid, options.minibatching, options.dropping)
    arrays = [{name: _join_devices(devices, which, options.leading)
               for name, devices in done.items()} for which in range(4)]
    count = max(d.facts["minibatches"] for devices in done.values() for d in devices)
    minibatches = numpy.full((grid.local, 1) if options.leading else grid.local, count)
    return (PreprocessedInput(SparseDenseMatmulInput(*arrays), minibatches), _sum_stats(done))


def preprocess_sparse_dense_matmul_input(
        features: Any, features_weights: Any, feature_specs: Any, local_device_count: int,
        global_device_count: int, *, num_sc_per_device: int | None = None,
        sharding_strategy: str = "MOD", has_leading_dimension: bool = False,
        allow_id_dropping: bool = False, batch_number: int = 0, enable_minibatching: bool = False,
        all_reduce_interface: Any = None, check_tables: bool = True) -> tuple[
            PreprocessedInput, SparseDenseMatmulInputStats]:
    """Partition a batch over the SparseCores of devices, as jax-tpu-embedding's function does.

    Parameters
    ----------
    features : nested array_like
        In a structure of dicts, lists and tuples: ids ``[samples, ids]``, or arrays of them.
    features_weights : nested array_like or None
        Weights in the same structure; 1 without them.
    feature_specs : nested FeatureSpec
        In the same structure, prepared for training.
    local_device_count, global_device_count : int
        Devices of this host and of all.
    num_sc_per_device : int
        SparseCores of a device. There is none to be asked here, so it must be given.
    sharding_strategy : {"MOD"}
        The only one.
    has_leading_dimension : bool
        Give arrays a first dimension of local devices, for :func:`jax.pmap`.
    allow_id_dropping : bool
        Leave ids out that are beyond the limits, and count them; without it they are an error.
    enable_minibatching : bool
        Make minibatches of what is beyond the limits.
    batch_number, all_reduce_interface
        Not used; there is no all-reduce.
    check_tables : bool
        Refuse ids outside of their table. Without it, as in jax-tpu-embedding, an id up to the
        stack's last row is taken, and reads padding or a row of another table.

    Returns
    -------
    PreprocessedInput
        The arrays by the names of stacks.
    SparseDenseMatmulInputStats
        The demands of the batch.

    Raises
    ------
    InvalidError
        Structures, lengths or ids do not fit.
    OutOfRangeError
        A partition is larger than its limit.

    """
    _check_counts(local_device_count, global_device_count, num_sc_per_device)
    _check_options(sharding_strategy, enable_minibatching, all_reduce_interface,
                   local_device_count == global_device_count)
    grid = _Grid(local_device_count, global_device_count, num_sc_per_device or 1)
    return _preprocess(features, features_weights, feature_specs, grid, _Options(
        has_leading_dimension, allow_id_dropping, enable_minibatching, check_tables))

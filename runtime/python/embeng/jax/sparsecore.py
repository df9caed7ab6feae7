# SPDX-License-Identifier: MIT
# mypy: allow-untyped-calls
"""The functional lookup and gradient of jax-tpu-embedding on a CPU, under their names.

Tables are values of JAX, as there: they come in and go out, sharded over the SparseCores as its
stacks are. Arrays hold all devices of the grid, or inside of shard_map those of one: then rows of
others are gathered over the mapped axes, and gradients are scattered back.
"""
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from .._errors import InvalidError, NotSupportedError

LANES = 8


class EmbeddingVariables(NamedTuple):
    """A stack's table ``[rows, width]`` and the slots of its optimizer."""

    table: Any
    slot: tuple[Any, ...]


class _Items(NamedTuple):
    """The meaning of each place of the buffers of a stack; gain 0 where it is padding."""

    row: Any
    sample: Any
    gain: Any
    there: Any


class _Grid(NamedTuple):
    devices: int
    cores: int
    here: int  # devices whose arrays these are: all, or one
    axes: tuple[str, ...]  # over which the others are

    @property
    def total(self) -> int:
        return self.devices * self.cores


def _stacks_of(specs: list[Any]) -> dict[str, list[Any]]:
    """Return the features of each stack, in the order of their samples."""
    stacks: dict[str, list[Any]] = {}
    for spec in specs:
        stacks.setdefault(spec.table_spec.stacked_table_spec.stack_name, []).append(spec)
    return {name: sorted(found, key=lambda spec: spec.id_transformation.row_offset)
            for name, found in stacks.items()}


def _check_call(name: str, stacks: Mapping[str, Any], variables: Mapping[str, Any], cores: Any,
                strategy: str, inputs: Any) -> None:
    if cores is None:
        raise InvalidError(f"{name}: there is no SparseCore here to be asked; give "
                           "num_sc_per_device")
    if strategy.upper() != "MOD":
        raise NotSupportedError(f"{name}: sharding_strategy {strategy!r}: there is 'MOD' alone")
    for what, found in (("embedding_variables", variables),
                        ("preprocessed_inputs", inputs.lhs_row_pointers)):
        if set(found) != set(stacks):
            raise InvalidError(f"{name}: {what} are of {', '.join(sorted(found))}; the features "
                               f"have the stacks {', '.join(sorted(stacks))}")


def _table_of(variables: Any) -> Any:
    """Return the table of a stack's variables: EmbeddingVariables, or a tuple that begins so."""
    return jax.tree.leaves(variables)[0]


def _find_grid(name: str, table: Any, devices: int | None, cores: int) -> _Grid:
    """Return the grid: its whole arrays, or in mapped axes those of one device."""
    mesh = jax.sharding.get_abstract_mesh()
    axes = tuple(mesh.manual_axes)
    mapped = math.prod(mesh.shape[axis] for axis in axes)
    if devices is None:
        devices = mapped
    if devices == 1:
        axes = ()
    if axes and devices != mapped:
        raise InvalidError(f"stack {name}: global_device_count is {devices}, the mapped axes "
                           f"{', '.join(axes)} have {mapped} devices")
    grid = _Grid(devices, cores, 1 if axes else devices, axes)
    if table.shape[0] % (grid.here * cores):
        raise InvalidError(f"stack {name}: the table's {table.shape[0]} rows are no multiple of "
                           f"{grid.here * cores} cores")
    return grid


def _refuse_quantized(name: str, spec: Any) -> None:
    if getattr(spec, "quantization_config", None) is not None:
        raise NotSupportedError(f"stack {name}: lookups of quantized tables are not here; "
                                "embeng.Quantization of a table of an engine has them")


def _gather(array: Any, grid: _Grid) -> Any:
    return jax.lax.all_gather(array, grid.axes, axis=0, tiled=True) if grid.axes else array


def _scatter(array: Any, grid: _Grid) -> Any:
    """Sum over devices, and return the part of this one."""
    if not grid.axes:
        return array
    return jax.lax.psum_scatter(array, grid.axes, scatter_dimension=0, tiled=True)


def _find_items(ends: Any, places: Any) -> tuple[Any, Any]:
    """Return the partition that ends behind each place, and whether the place is an item of it."""
    at = jnp.searchsorted(ends, places, side="right")
    before = jnp.where(at > 0, ends[jnp.maximum(at - 1, 0)], 0)
    begin = (before + LANES - 1) // LANES * LANES
    return at, (at < len(ends)) & (places >= begin)


def _decode_whole(pointers: Any, size: int, grid: _Grid, count: Any) -> tuple[Any, Any, Any]:
    """Return core, partition and whether it is an item, of places of buffers with minibatches."""
    stride = max(grid.total, LANES)
    limit = grid.cores * count * stride
    last = jnp.iinfo(pointers.dtype).max
    ends = jnp.where(jnp.arange(pointers.shape[1]) < limit, pointers, last)
    at, there = jax.vmap(lambda row: _find_items(row, jnp.arange(size)))(ends)
    return at // (count * stride), at % stride, there & (at < limit)


def _decode_by_core(pointers: Any, size: int, grid: _Grid) -> tuple[Any, Any, Any]:
    """Likewise where each core has a part of the buffer, from which its pointers count."""
    stride = max(grid.total, LANES)
    ends = pointers[:, :grid.cores * stride].reshape(-1, stride)[:, :grid.total]
    places = jnp.arange(size // grid.cores)
    at, there = jax.vmap(lambda row: _find_items(row, places))(ends)
    core = jnp.repeat(jnp.arange(grid.cores), len(places))[None]
    return core, at.reshape(grid.here, -1), there.reshape(grid.here, -1)


def _decode(inputs: Any, name: str, spec: Any, height: int, grid: _Grid,
            minibatching: bool) -> _Items:
    """Return what each item of the devices here stands for, in the order of the buffers."""
    ids = jnp.asarray(inputs.lhs_embedding_ids[name]).reshape(grid.here, -1)
    pointers = jnp.asarray(inputs.lhs_row_pointers[name]).reshape(grid.here, -1)
    if minibatching:
        count = jnp.asarray(inputs.num_minibatches).reshape(-1)[0]
        core, partition, there = _decode_whole(pointers, ids.shape[1], grid, count)
    else:
        core, partition, there = _decode_by_core(pointers, ids.shape[1], grid)
    samples = spec.total_sample_count // grid.devices
    first = jnp.arange(grid.here)[:, None] * samples + core * (samples // grid.cores)
    sample = first + jnp.asarray(inputs.lhs_sample_ids[name]).reshape(ids.shape)
    row = partition * (height // (grid.here * grid.cores)) + ids
    gain = jnp.asarray(inputs.lhs_gains[name]).reshape(ids.shape)
    row, sample, gain = (jnp.where(there, array, 0).reshape(-1) for array in (row, sample, gain))
    return _Items(row, sample, gain, there.reshape(-1))


def _place_of(spec: Any, grid: _Grid) -> tuple[int, int]:
    """Return the first sample of a feature on a core of its stack, and how many they are."""
    return (spec.id_transformation.row_offset // grid.total, spec.output_shape[0] // grid.total)


def _unstack(activations: Mapping[str, Any], spec: Any, grids: Mapping[str, _Grid]) -> Any:
    name = spec.table_spec.stacked_table_spec.stack_name
    found, grid = activations[name], grids[name]
    first, count = _place_of(spec, grid)
    by_core = found.reshape(grid.here * grid.cores, -1, found.shape[-1])
    part = by_core[:, first:first + count, :spec.output_shape[-1]]
    return part.reshape(-1, part.shape[-1])


def tpu_sparse_dense_matmul(
        preprocessed_inputs: Any, embedding_variables: Mapping[str, Any], feature_specs: Any, *,
        global_device_count: int, sharding_strategy: str = "MOD",
        num_sc_per_device: int | None = None, enable_minibatching: bool = False,
        perform_unstacking: bool = True, use_activation_unstack_primitive: bool = False) -> Any:
    """Look rows up in stacked tables.

    Parameters
    ----------
    preprocessed_inputs : PreprocessedInput
        The result of preprocessing, ours or jax-tpu-embedding's.
    embedding_variables : mapping of str to EmbeddingVariables
        By stack: the table f32 ``[rows, width]``, in the order of its shards.
    feature_specs : nested FeatureSpec
        As for preprocessing.
    global_device_count : int
        Devices.
    sharding_strategy : {"MOD"}
        The only one.
    num_sc_per_device : int
        SparseCores of a device. There is none to be asked here, so it must be given.
    enable_minibatching : bool
        Whether the inputs were preprocessed with it.
    perform_unstacking : bool
        Return activations by feature; otherwise those of stacks.
    use_activation_unstack_primitive : bool
        Not used: the result is the same.

    Returns
    -------
    nested jax.Array
        f32 ``[samples, dim]`` in the structure of the specifications, or by stack.

    Raises
    ------
    InvalidError
        Stacks or rows of tables do not fit, or num_sc_per_device is missing.
    NotSupportedError
        The sharding strategy is another one.
    """
    stacks = _stacks_of(jax.tree.leaves(feature_specs))
    _check_call("tpu_sparse_dense_matmul", stacks, embedding_variables, num_sc_per_device,
                sharding_strategy, preprocessed_inputs)
    activations, grids = {}, {}
    for name, features in stacks.items():
        spec = features[0].table_spec.stacked_table_spec
        _refuse_quantized(name, spec)
        table = _table_of(embedding_variables[name])
        grid = _find_grid(name, table, global_device_count, num_sc_per_device or 1)
        items = _decode(preprocessed_inputs, name, spec, len(table), grid, enable_minibatching)
        samples = spec.total_sample_count // grid.devices * grid.here
        rows = _gather(table, grid)[items.row]
        found = jnp.zeros((samples, table.shape[1]), table.dtype)
        activations[name] = found.at[items.sample].add(items.gain[:, None] * rows)
        grids[name] = grid
    if not perform_unstacking:
        return activations
    return jax.tree.map(lambda spec: _unstack(activations, spec, grids), feature_specs)


# -- updates


def _sgd(rows: Any, slots: Any, g: Any, rate: Any) -> Any:
    return rows - rate * g, ()


def _adagrad(rows: Any, slots: Any, g: Any, rate: Any) -> Any:
    accumulator = slots[0] + g * g
    return rows - rate * g / jnp.sqrt(accumulator), (accumulator,)


def _adam(rows: Any, slots: Any, g: Any, rate: Any, beta_1: Any, beta_2: Any, epsilon: Any) -> Any:
    momentum = slots[0] + (1 - beta_1) * (g - slots[0])
    velocity = slots[1] + (1 - beta_2) * (g * g - slots[1])
    return rows - rate * momentum / (jnp.sqrt(velocity) + epsilon), (momentum, velocity)


def _adagrad_momentum(rows: Any, slots: Any, g: Any, rate: Any, factor: Any, beta_2: Any,
                      epsilon: Any, exponent: Any, nesterov: Any) -> Any:
    squares = g * g
    accumulator = jnp.where(beta_2 == 1, slots[0] + squares,
                            beta_2 * slots[0] + (1 - beta_2) * squares)
    scaled = jnp.power(accumulator + epsilon, -1 / exponent) * g
    momentum = factor * slots[1] + scaled
    update = jnp.where(nesterov, factor * momentum + scaled, momentum)
    return rows - rate * update, (accumulator, momentum)


def _ftrl(rows: Any, slots: Any, g: Any, rate: Any, power: Any, l1: Any, l2: Any, beta: Any,
          multiply: bool = False) -> Any:
    accumulator = slots[0] + g * g
    new = jnp.power(accumulator, -power)
    change = new - jnp.power(slots[0], -power)
    scale = rate if multiply else 1.0
    linear = slots[1] + scale * g - change * rows * (scale / rate)
    threshold = scale * l1
    numerator = jnp.clip(linear, -threshold, threshold) - linear
    denominator = scale / rate * (new + beta) + 2 * scale * l2
    return numerator / denominator, (accumulator, linear)


def _laprop(rows: Any, slots: Any, g: Any, rate: Any, beta_1: Any, decay: Any, epsilon: Any) -> Any:
    nu = decay * slots[1] + (1 - decay) * (g * g + epsilon)
    mu = beta_1 * slots[0] + jnp.sqrt(1 - beta_1 ** 2) * g / jnp.sqrt(nu)
    return rows - rate * mu, (mu, nu)


FORMULAS: dict[str, Callable[..., Any]] = {
    "sgd": _sgd, "adagrad": _adagrad, "adam": _adam, "adagrad_momentum": _adagrad_momentum,
    "ftrl": _ftrl, "laprop": _laprop}


def _stack_gradients(gradients: list[Any], specs: list[Any], name: str, grid: _Grid) -> Any:
    found = [(spec, gradient) for spec, gradient in zip(specs, gradients, strict=True)
             if spec.table_spec.stacked_table_spec.stack_name == name]
    found.sort(key=lambda pair: pair[0].id_transformation.row_offset)
    width = found[0][0].table_spec.stacked_table_spec.stack_embedding_dim
    parts = []
    for spec, gradient in found:
        array = jnp.asarray(gradient).reshape(-1, spec.table_spec.embedding_dim)
        array = jnp.pad(array, ((0, 0), (0, width - array.shape[1])))
        parts.append(array.reshape(grid.here * grid.cores, -1, width))
    return jnp.concatenate(parts, 1).reshape(-1, width)


def _find_formula(optimizer: Any, name: str) -> Callable[..., Any]:
    kind = optimizer.short_name()
    if kind not in FORMULAS:
        raise NotSupportedError(f"stack {name}: the optimizer {kind!r} is a program of its own for "
                                f"SparseCores; there are {', '.join(FORMULAS)}")
    formula = FORMULAS[kind]
    if kind == "ftrl" and optimizer.multiply_linear_by_learning_rate:
        return lambda *arguments: formula(*arguments, multiply=True)
    return formula


def _update_stack(items: _Items, variables: Any, gradient: Any, formula: Callable[..., Any],
                  settings: Any, limits: Any, grid: _Grid) -> Any:
    """Return new variables: rows that no item touches stay as they are."""
    leaves, structure = jax.tree.flatten(variables)
    table, *slots = leaves
    weighted = items.gain[:, None] * gradient[items.sample]
    height = table.shape[0] * (grid.devices // grid.here)
    summed = jnp.zeros((height, table.shape[1]), table.dtype).at[items.row].add(weighted)
    counted = jnp.zeros(height, jnp.int32).at[items.row].add(items.there.astype(jnp.int32))
    summed, touched = _scatter(summed, grid), _scatter(counted, grid)[:, None] > 0
    rows, changed = formula(table, slots, summed, *settings)
    if limits is not None:
        rows = jnp.clip(rows, limits[0], limits[1])
    new = [jnp.where(touched, after, before)
           for before, after in zip(leaves, [rows, *changed], strict=True)]
    return jax.tree.unflatten(structure, new)


def tpu_sparse_dense_matmul_grad(
        activation_gradients: Any, preprocessed_inputs: Any,
        embedding_variables: Mapping[str, Any], feature_specs: Any, *,
        global_device_count: int | None = None, sharding_strategy: str = "MOD", label: str = "",
        step: Any = None, num_sc_per_device: int | None = None, enable_minibatching: bool = False,
        perform_stacking: bool = True, use_gradient_stacking_primitive: bool = False,
        embedding_var_limits: Mapping[str, tuple[float | None, float | None]] | None = None) -> Any:
    """Update stacked tables by the gradients of their activations.

    Parameters
    ----------
    activation_gradients : nested array_like
        In the structure of the specifications, or by stack without `perform_stacking`.
    preprocessed_inputs, embedding_variables, feature_specs, sharding_strategy, num_sc_per_device
        As for :func:`tpu_sparse_dense_matmul`.
    global_device_count : int, optional
        Devices; those of the mapped axes by default, or 1.
    step : int or jax.Array, optional
        The number of the step, for rates and for Adam's correction.
    enable_minibatching : bool
        Whether the inputs were preprocessed with it.
    perform_stacking : bool
        Whether gradients come by feature.
    label, use_gradient_stacking_primitive
        Not used: the result is the same.
    embedding_var_limits : mapping of str to (float, float), optional
        By stack the least and the greatest number of a row that is updated.

    Returns
    -------
    mapping of str to EmbeddingVariables
        New tables and slots, of the types that were given.

    Raises
    ------
    NotSupportedError
        An optimizer is a program of its own (F2A, custom ones).
    """
    specs = jax.tree.leaves(feature_specs)
    stacks = _stacks_of(specs)
    _check_call("tpu_sparse_dense_matmul_grad", stacks, embedding_variables, num_sc_per_device,
                sharding_strategy, preprocessed_inputs)
    cores = num_sc_per_device or 1
    given = None
    if perform_stacking:
        structure: Any = jax.tree.structure(feature_specs)
        given = structure.flatten_up_to(activation_gradients)
    updated = {}
    for name, features in stacks.items():
        spec = features[0].table_spec.stacked_table_spec
        table = _table_of(embedding_variables[name])
        grid = _find_grid(name, table, global_device_count, cores)
        gradient = activation_gradients[name] if given is None else \
            _stack_gradients(given, specs, name, grid)
        items = _decode(preprocessed_inputs, name, spec, len(table), grid, enable_minibatching)
        limits = embedding_var_limits.get(name) if embedding_var_limits else None
        updated[name] = _update_stack(items, embedding_variables[name], gradient,
                                      _find_formula(spec.optimizer, name),
                                      spec.optimizer.get_hyperparameters(step), limits, grid)
    return updated

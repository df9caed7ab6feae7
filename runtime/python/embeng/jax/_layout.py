# SPDX-License-Identifier: MIT
# mypy: allow-untyped-calls
"""Inputs of features as XLA's functions take them: static layouts, and arrays.

A layout says how the arrays of a feature are read; it is hashable, and so part of a trace. The
arrays are what changes from call to call.
"""
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy

from .._engine import Engine
from .._errors import InvalidError, OutOfRangeError, UnknownNameError
from .._inputs import Keyed, Ragged, Sparse

PADDING = -1

# Bits of a form, which core/xla.c knows, too.
SPLITS, STARTS, LENGTHS = 1, 2, 3
BOUNDS, WEIGHTS, PADDED, POSITIONS = 3, 4, 8, 16


class FeatureInfo(NamedTuple):
    """The facts of an engine's feature that shapes depend on."""

    number: int
    dim: int
    sequence_length: int


class FeatureLayout(NamedTuple):
    """How the arrays of one feature are read, and the shape of its activations."""

    name: str
    number: int
    form: int
    padding: int
    shape: tuple[int, ...]


class Bags(NamedTuple):
    """Arrays of one feature, without weights."""

    ids: Any
    bounds: Any


def read_features(engine: Engine) -> dict[str, FeatureInfo]:
    """Return what shapes depend on, by the name of each feature."""
    dims = {table.name: table.dim for table in engine.tables}
    return {feature.name: FeatureInfo(number, dims[feature.table], feature.max_sequence_length)
            for number, feature in enumerate(engine.features)}


def _refuse_kind(name: str, part: str, array: Any) -> InvalidError:
    return InvalidError(f"feature {name}: {part} are {array.dtype} of shape {array.shape}; give "
                        "int32 or int64")


def _as_integers(array: Any, name: str, part: str) -> Any:
    if not isinstance(array, jax.Array):
        array = numpy.asarray(array)
        if array.size == 0 and array.dtype.kind == "f":
            array = array.astype(numpy.int32)
        if array.dtype.kind in "iu" and array.size and not jax.config.read("jax_enable_x64"):
            most = max(int(array.max()), -int(array.min()) - 1)
            if most > 2**31 - 1:
                raise OutOfRangeError(f"feature {name}: {part} have {most}, which needs int64; JAX "
                                      "has it after jax.config.update('jax_enable_x64', True)")
    array = jnp.asarray(array)
    if array.dtype in (jnp.int32, jnp.int64):
        return array
    if array.dtype in (jnp.int8, jnp.int16, jnp.uint8, jnp.uint16):
        return array.astype(jnp.int32)
    raise _refuse_kind(name, part, array)


def _as_weights(weights: Any, ids: Any, name: str) -> Any:
    weights = jnp.asarray(weights)
    if not jnp.issubdtype(weights.dtype, jnp.floating):
        weights = weights.astype(jnp.float32)
    if weights.shape != ids.shape:
        raise InvalidError(f"feature {name}: weights have the shape {weights.shape}, its ids have "
                           f"{ids.shape}")
    return weights.astype(jnp.float32)


def _read_padding(padding: Any, name: str) -> int | None:
    if padding is None or isinstance(padding, (int, numpy.integer)):
        return None if padding is None else int(padding)
    raise InvalidError(f"feature {name}: padding is {padding!r}; make the Ragged inside the "
                       "function that is traced, with a number of Python")


def _find_bounds(ragged: Ragged, name: str) -> tuple[Any, int]:
    given = [(array, kind) for array, kind in ((ragged.splits, SPLITS), (ragged.starts, STARTS),
                                               (ragged.lengths, LENGTHS)) if array is not None]
    if len(given) > 1:
        raise InvalidError(f"feature {name}: a ragged input has two of splits, lengths and starts")
    if not given:
        return None, 0
    return _as_integers(given[0][0], name, "bounds"), given[0][1]


def _count_samples(ids: Any, bounds: Any, form: int, name: str) -> int:
    if bounds is None:
        if ids.ndim not in (1, 2):
            raise InvalidError(f"feature {name}: ids have the shape {ids.shape}; give [samples] or "
                               "[samples, ids]")
        return int(ids.shape[0])
    if ids.ndim != 1 or bounds.ndim != 1:
        raise InvalidError(f"feature {name}: ids of shape {ids.shape} with bounds of shape "
                           f"{bounds.shape}; both have one dimension")
    if form == SPLITS and bounds.shape[0] == 0:
        raise InvalidError(f"feature {name}: splits are empty; they begin with 0")
    return int(bounds.shape[0]) - (form == SPLITS)


def _describe_feature(name: str, info: FeatureInfo, given: Any) -> tuple[FeatureLayout, Bags, Any]:
    if isinstance(given, (Sparse, Keyed)):
        raise InvalidError(f"feature {name}: {type(given).__name__} is no input of JAX; give an "
                           "array or embeng.Ragged")
    plain = not isinstance(given, Ragged)
    ragged = Ragged(given) if plain else given
    ids = _as_integers(ragged.values, name, "ids")
    bounds, form = _find_bounds(ragged, name)
    samples = _count_samples(ids, bounds, form, name)
    padding = PADDING if plain and ids.ndim == 2 else _read_padding(ragged.padding, name)
    weights = None if ragged.weights is None else _as_weights(ragged.weights, ids, name)
    positions = plain and ids.ndim == 1 and info.sequence_length > 0
    shape: tuple[int, ...] = (samples, info.dim)
    if info.sequence_length and not positions:
        shape = (samples, info.sequence_length, info.dim)
    form |= (weights is not None) * WEIGHTS | (padding is not None) * PADDED | positions * POSITIONS
    return FeatureLayout(name, info.number, form, padding or 0, shape), Bags(ids, bounds), weights


def describe_inputs(infos: Mapping[str, FeatureInfo], inputs: Mapping[str, Any]) -> tuple[
        tuple[FeatureLayout, ...], tuple[Bags, ...], tuple[Any, ...]]:
    """Return the layouts of the features that are given, their arrays, and weights or None.

    Raises
    ------
    UnknownNameError
        A name is no feature's.
    InvalidError
        An array has a type or shape that is not allowed.
    """
    if not isinstance(inputs, Mapping):
        raise InvalidError(f"inputs are {type(inputs).__name__}; give a dict from names of "
                           "features to ids")
    for name in inputs:
        if name not in infos:
            raise UnknownNameError(f"inputs: there is no feature {name!r}; the features are "
                                   f"{', '.join(infos)}")
    if not inputs:
        return (), (), ()
    described = [_describe_feature(name, infos[name], inputs[name])
                 for name in infos if name in inputs]
    layouts, bags, weights = zip(*described, strict=True)
    return layouts, bags, weights


def flatten_arrays(layouts: tuple[FeatureLayout, ...], bags: tuple[Bags, ...],
                   weights: tuple[Any, ...], gradients: tuple[Any, ...] | None = None) -> list[Any]:
    """Return arrays in the order in which core/xla.c takes them."""
    found: list[Any] = []
    for k in range(len(layouts)):
        found.append(bags[k].ids)
        found += [] if bags[k].bounds is None else [bags[k].bounds]
        found += [] if weights[k] is None else [weights[k]]
        found += [] if gradients is None else [gradients[k]]
    return found

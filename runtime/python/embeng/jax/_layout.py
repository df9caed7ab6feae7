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


def _refuse_kind(what: str, kind: Any, shape: tuple[int, ...]) -> InvalidError:
    return InvalidError(f"{what} are {kind} of shape {shape}; give int32 or int64")


def _read_array(given: Any, what: str) -> Any:
    """Return an array of JAX, or one of numpy that holds numbers."""
    if not isinstance(given, jax.Array) and hasattr(given, "__jax_array__"):
        given = given.__jax_array__()
    if isinstance(given, jax.Array):
        return given
    try:
        array = numpy.asarray(given)
    except ValueError as error:  # lists of different lengths
        raise InvalidError(f"{what}: {error}") from None
    if array.dtype.kind in "OSUmM":
        raise InvalidError(f"{what}: numpy makes an array of {array.dtype} of what is given, a "
                           f"{type(given).__name__}; give numbers")
    return array


def _as_integers(given: Any, name: str, part: str) -> Any:
    what = f"feature {name}: {part}"
    array = _read_array(given, what)
    if not isinstance(array, jax.Array):
        if array.size == 0 and array.dtype.kind == "f":
            array = array.astype(numpy.int32)
        if array.dtype == numpy.int64 and array.size and not jax.config.read("jax_enable_x64"):
            wrong = [one for one in (int(array.max()), int(array.min()))
                     if not -2**31 <= one < 2**31]
            if wrong:
                raise OutOfRangeError(f"{what} have {wrong[0]}, which needs int64; JAX has it "
                                      "after jax.config.update('jax_enable_x64', True)")
    if array.dtype in (jnp.int32, jnp.int64):
        return jnp.asarray(array)
    if array.dtype in (jnp.int8, jnp.int16, jnp.uint8, jnp.uint16):
        return jnp.asarray(array).astype(jnp.int32)
    raise _refuse_kind(what, array.dtype, array.shape)


def as_floats(given: Any, what: str) -> jax.Array:
    """Return real numbers as an array of f32; `what` stands before the refusal of others."""
    if isinstance(given, (list, tuple)):
        try:
            given = jnp.asarray(given)  # it takes traced values, too
        except (TypeError, ValueError) as error:
            raise InvalidError(f"{what}: {str(error).splitlines()[0]}") from None
    array = _read_array(given, what)
    if jnp.iscomplexobj(array):
        raise InvalidError(f"{what}: numbers of {array.dtype} are given; give f32")
    return jnp.asarray(array).astype(jnp.float32)


def as_number(given: Any, what: str) -> jax.Array:
    """Return one real number as f32 of no dimension."""
    array = as_floats(given, what)
    if array.size != 1:
        raise InvalidError(f"{what} has the shape {array.shape}; it is one number")
    return array.reshape(())


def _as_weights(given: Any, ids: Any, name: str) -> Any:
    weights = as_floats(given, f"feature {name}: weights")
    if weights.shape != ids.shape:
        raise InvalidError(f"feature {name}: weights have the shape {weights.shape}, its ids have "
                           f"{ids.shape}")
    return weights


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

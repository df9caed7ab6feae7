# SPDX-License-Identifier: MIT
"""Differentiable lookups on the JAX backend of Keras: callbacks of the host below a custom_vjp.

The layer's counter is an input of each lookup, and its gradient is the count after the update, so
that the lookups of a step come after the updates of the steps before also inside of jit. The
lookup returns a token, which the update takes: an update comes after the lookup of its own step.
The probe is a zero that the layer adds to the losses: its gradient is the number by which the
program multiplied the loss.
"""
import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy
from jax.experimental import io_callback

from ._inputs import DENSE, RAGGED, Layout
from ._tables import Tables

_Shape: Any = jax.ShapeDtypeStruct


def _count_samples(layout: Layout, tensors: Sequence[Any], outer: int | None) -> int:
    if layout.form == DENSE:
        return int(tensors[0].shape[0])
    if layout.form == RAGGED:
        return int(tensors[1].shape[0]) - 1
    assert outer is not None
    return outer


def _join(layouts: Sequence[Layout], ids: Sequence[Any], weights: Sequence[Any]) -> list[Any]:
    """Put the tensors of features and their weights behind each other."""
    rest_ids, rest_weights = iter(ids), iter(weights)
    joined = []
    for layout in layouts:
        joined += [next(rest_ids) for _ in range(layout.tensor_count)]
        if layout.weighted:
            joined.append(next(rest_weights))
    return joined


def _split(layouts: Sequence[Layout], tensors: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    ids: list[Any] = []
    weights: list[Any] = []
    at = 0
    for layout in layouts:
        ids += tensors[at:at + layout.tensor_count]
        at += layout.tensor_count
        if layout.weighted:
            weights.append(tensors[at])
            at += 1
    return ids, weights


def _call_lookup(tables: Tables, layouts: tuple[Layout, ...], samples: tuple[int, ...],
                 counter: Any, tensors: Sequence[Any]) -> tuple[Any, list[Any]]:
    shapes = [_Shape((), jnp.float32)]
    shapes += [_Shape((count, tables.dims[layout.feature]), jnp.float32)
               for count, layout in zip(samples, layouts, strict=True)]

    def run(count: Any, *arrays: Any) -> list[Any]:
        found = tables.look_up(layouts, [numpy.asarray(array) for array in arrays])
        return [numpy.float32(0), *found]

    token, *found = jax.pure_callback(run, shapes, counter, *tensors, vmap_method="sequential")
    return token, found


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1, 2))
def _look_up(tables: Tables, layouts: tuple[Layout, ...], samples: tuple[int, ...], counter: Any,
             ids: Sequence[Any], weights: Sequence[Any]) -> Any:
    _, found = _call_lookup(tables, layouts, samples, counter, _join(layouts, ids, weights))
    return jnp.zeros((), jnp.float32), found


def _forward(tables: Tables, layouts: tuple[Layout, ...], samples: tuple[int, ...], counter: Any,
             ids: Sequence[Any], weights: Sequence[Any]) -> Any:
    # symbolic_zeros=True: each array comes with whether its gradient is wanted.
    values = [part.value for part in ids], [part.value for part in weights]
    token, found = _call_lookup(tables, layouts, samples, counter.value,
                                _join(layouts, *values))
    marks = [() if part.perturbed else None for part in (counter, *weights)]
    return (jnp.zeros((), jnp.float32), found), (counter.value, token, *values, marks)


def _backward(tables: Tables, layouts: tuple[Layout, ...], samples: tuple[int, ...],
              residuals: Any, gradients: Any) -> Any:
    counter, token, ids, weights, marks = residuals
    scale, given = gradients
    given = [jnp.zeros(part.shape, jnp.float32) if isinstance(part, _SymbolicZero) else part
             for part in given]
    if isinstance(scale, _SymbolicZero):
        scale = jnp.zeros((), jnp.float32)
    trained = marks[0] is not None
    wanted = any(mark is not None for mark in marks[1:])
    shapes = [_Shape((), jnp.float32)]
    if wanted:
        shapes += [_Shape((part.size,), jnp.float32) for part in weights]
    tensors = _join(layouts, ids, weights)

    def run(count: Any, unused: Any, factor: Any, *rest: Any) -> list[Any]:
        arrays = [numpy.asarray(array) for array in rest]
        parts = arrays[len(tensors):]
        del arrays[len(tensors):]
        found = tables.weight_gradients(layouts, arrays, parts) if wanted else []
        applied = not trained or tables.update(layouts, arrays, parts, float(factor))
        return [numpy.float32(float(count) + 1 if applied else numpy.nan), *found]

    count, *found = io_callback(run, shapes, counter, token, scale, *tensors, *given)
    if not wanted:
        return count, None, [jnp.zeros_like(part) for part in weights]
    return count, None, [part.reshape(held.shape)
                         for part, held in zip(found, weights, strict=True)]


_SymbolicZero = jax.custom_derivatives.SymbolicZero
_look_up.defvjp(_forward, _backward, symbolic_zeros=True)


def look_up(tables: Tables, layouts: Sequence[Layout], counter: Any, tensors: Sequence[Any],
            outers: Sequence[Any]) -> tuple[Any, list[Any]]:
    """Look features up, differentiably, eagerly or inside of jit.

    Parameters
    ----------
    tables : Tables
        The engine's.
    layouts : sequence of Layout
        The features.
    counter : Array
        Value of the layer's counter.
    tensors : sequence of Array
        Inputs and weights of the features, one after another.
    outers : sequence of int
        Samples of each feature, for sparse inputs.

    Returns
    -------
    (Array, list of Array)
        The probe, and activations ``[samples, dim]`` of each feature.
    """
    ids, weights = _split(layouts, tensors)
    samples, at = [], 0
    for layout, outer in zip(layouts, outers, strict=True):
        samples.append(_count_samples(layout, ids[at:at + layout.tensor_count], outer))
        at += layout.tensor_count
    found: tuple[Any, list[Any]] = _look_up(tables, tuple(layouts), tuple(samples), counter, ids,
                                            weights)
    return found


def synchronize() -> None:
    """Wait for updates that are under way."""
    barrier: Any = jax.effects_barrier
    barrier()

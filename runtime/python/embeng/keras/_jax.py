# SPDX-License-Identifier: MIT
# mypy: allow-untyped-calls
"""Differentiable lookups on the JAX backend of Keras: calls of :mod:`embeng.jax` in a custom_vjp.

The token of the calls is the layer's counter, so that the lookups of a step come after the updates
of the steps before also inside of jit, and an update comes after the lookup of its own step. XLA's
foreign functions read and write its buffers. Callbacks of Python are in their place where a program
runs on several devices or on another one than a CPU, or where jaxlib has no such functions.

Callbacks that carry a few numbers ask Python for learning rates of optimizers of Keras, which the
program may change at any time, and for factors of ``clipnorm``.
"""
import errno
import functools
import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy
from jax.custom_derivatives import SymbolicZero

from .._errors import DeviceError
from .._inputs import Ragged
from ..jax._callbacks import read_inputs, remember_engine, tell
from ..jax._calls import TOKEN, Call, choose_backend, find_backend
from ..jax._derivatives import as_array, refuse_derivative, select_features
from ..jax._derivatives import look_up as look_up_features
from ..jax._layout import describe_inputs, flatten_arrays, read_features
from ..jax.errors import raising
from ._framework import keras
from ._inputs import PADDING, RAGGED, SPARSE, Layout
from ._tables import Plan, Tables

# A compiled step knows its tables by the handle of their engine, and does not keep them.
_known: "weakref.WeakValueDictionary[int, Tables]" = weakref.WeakValueDictionary()


def _find_tables(handle: int) -> Tables:
    tables = _known.get(handle)
    if tables is None:
        error = DeviceError("the layer whose tables a program uses is gone; keep the layer, or "
                            "trace the program again")
        error.code = -errno.ENODEV
        raise error
    return tables


class _Steps(NamedTuple):
    """The static part of a lookup and its update."""

    call: Call
    plan: Plan


# -- inputs ------------------------------------------------------------------------------

def _sort_samples(rows: Any, columns: Any) -> Any:
    """Give the places of coordinates in the order of samples."""
    def keep() -> Any:
        return jnp.arange(rows.shape[0])

    return jax.lax.cond((rows[1:] >= rows[:-1]).all(), keep,
                        lambda: jnp.lexsort((columns, rows)).astype(keep().dtype))


def _read_coordinates(tensors: Sequence[Any], weights: Any, samples: int) -> Ragged:
    """Make bags of coordinates; those outside of the shape become padding of the last sample."""
    indices, ids, _ = tensors
    if not samples:
        ids, weights = ids[:0], weights if weights is None else weights[:0]
        return Ragged(ids, splits=jnp.zeros((1,), jnp.int32), weights=weights, padding=PADDING)
    order = _sort_samples(indices[:, 0], indices[:, 1])
    rows = indices[order, 0]
    splits = jnp.searchsorted(rows, jnp.arange(samples), side="left")
    splits = jnp.append(splits, ids.shape[0]).astype(jnp.int32)
    return Ragged(jnp.where(rows < samples, ids[order], PADDING), splits=splits,
                  weights=None if weights is None else weights[order], padding=PADDING)


def _read_bags(layouts: Sequence[Layout], tensors: Sequence[Any],
               outers: Sequence[Any]) -> dict[str, Ragged]:
    bags, at = {}, 0
    for layout, outer in zip(layouts, outers, strict=True):
        end = at + layout.tensor_count
        weights = tensors[end] if layout.weighted else None
        if layout.form == SPARSE:
            bags[layout.feature] = _read_coordinates(tensors[at:end], weights, outer[0])
        elif layout.form == RAGGED:
            bags[layout.feature] = Ragged(tensors[at], splits=tensors[at + 1], weights=weights,
                                          padding=PADDING)
        else:
            bags[layout.feature] = Ragged(tensors[at], weights=weights, padding=PADDING)
        at = end + layout.weighted
    return bags


def _choose_calls() -> str:
    """Give the way of calls: programs of several devices, or of no CPU, call Python."""
    spread = keras.distribution.distribution()
    several = spread is not None and numpy.size(spread.device_mesh.devices) > 1
    if several or jax.default_backend() != "cpu":
        return "callback"
    return choose_backend(None)


# -- calls -------------------------------------------------------------------------------

def _ask_host(steps: _Steps, counter: Any) -> Any:
    """Give the token of a lookup, and the learning rates of the step that comes next.

    XLA runs a program that calls Python at once, so that the error of a batch is raised where the
    program is called. Otherwise it would come with a value of the program, and ``fit()`` goes on
    where it cannot read one.
    """
    handle, count = steps.call.engine, steps.plan.rate_count

    @tell
    def run(token: Any) -> Any:
        rates = _find_tables(handle).read_rates() if count else numpy.zeros(0, numpy.float32)
        return numpy.float32(token), rates

    shapes = TOKEN, jax.ShapeDtypeStruct((count,), jnp.float32)
    return jax.pure_callback(run, shapes, jax.lax.stop_gradient(counter), vmap_method="sequential")


def _look_up_once(steps: _Steps, counter: Any, bags: Any, weights: Any) -> Any:
    """Give the activations of the features, the token, and learning rates."""
    token, numbers = _ask_host(steps, counter)
    *found, token = look_up_features(steps.call, token, bags, weights)
    return found, token, numbers


# -- updates -----------------------------------------------------------------------------

def _ask_clipping(steps: _Steps, table: str, chosen: Sequence[int], factor: Any,
                  *lists: Any) -> Any:
    """Ask for the factor by which ``clipnorm`` multiplies the gradients of a table."""
    call, *given = select_features(steps.call, list(chosen), *lists)

    @tell
    def run(by: Any, *arrays: Any) -> Any:
        tables = _find_tables(call.engine)
        return numpy.float32(tables.clip(table, *read_inputs(call, list(arrays), True), float(by)))

    return jax.pure_callback(run, TOKEN, factor, *flatten_arrays(call.layouts, *given),
                             vmap_method="sequential")


def _apply(steps: _Steps, token: Any, numbers: Any, factor: Any, bags: Any, weights: Any,
           gradients: Any) -> Any:
    """Make a step of the tables that have an optimizer; return the count after it."""
    plan, call = steps.plan, steps.call
    if not plan.trained:
        return token + 1
    made = list(gradients)
    for table, features, place, clipped in plan.changed:
        by = jnp.float32(1) if place is None else numbers[place]
        if clipped:
            by = by * _ask_clipping(steps, table, features, factor, bags, weights, gradients)
        for k in features:
            made[k] = gradients[k] * by
    values = jnp.stack([numbers[place] for _, place in plan.rates]) if plan.rates else numbers[:0]
    names = tuple(name for name, _ in plan.rates)
    call, *given = select_features(call, list(plan.trained), bags, weights, made)
    return find_backend(call.backend).update(call, token, factor, names, values, *given)


@functools.partial(jax.jit, static_argnums=0)
def _update(steps: _Steps, token: Any, numbers: Any, scale: Any, bags: Any, weights: Any,
            gradients: Any) -> Any:
    """Make a step, unless the loss was scaled and a gradient is not finite: then give NaN."""
    scaled = (scale != 0) & (scale != 1)

    def find_finite() -> Any:
        return jnp.stack([jnp.isfinite(gradient).all() for gradient in gradients]).all()

    def apply() -> Any:
        factor = jnp.where(scaled, 1 / scale, 1)
        return _apply(steps, token, numbers, factor, bags, weights, gradients)

    wanted = jax.lax.cond(scaled, find_finite, lambda: jnp.array(True))
    return jax.lax.cond(wanted, apply, lambda: jnp.full_like(token, jnp.nan))


# -- lookups -----------------------------------------------------------------------------

@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _look_up(steps: _Steps, counter: Any, bags: Any, weights: Any) -> Any:
    found, _, _ = _look_up_once(steps, counter, bags, weights)
    return jnp.zeros((), jnp.float32), found


def _forward(steps: _Steps, counter: Any, bags: Any, weights: Any) -> Any:
    # symbolic_zeros=True: each array comes with whether its gradient is wanted.
    marks = [() if part is not None and part.perturbed else None for part in (counter, *weights)]
    counter, bags, weights = jax.tree.map(lambda part: part.value, (counter, bags, weights),
                                          is_leaf=lambda part: hasattr(part, "perturbed"))
    found, token, numbers = _look_up_once(steps, counter, bags, weights)
    return (jnp.zeros((), jnp.float32), found), (token, numbers, bags, weights, marks)


def _backward(steps: _Steps, residuals: Any, gradients: Any) -> Any:
    token, numbers, bags, weights, marks = residuals
    # Where no loss has the probe in it, its gradient is 0, which is no scale.
    scale, given = jax.tree.map(as_array, gradients,
                                is_leaf=lambda part: isinstance(part, SymbolicZero))
    scale, given = refuse_derivative("the gradient of a lookup", (scale, given))
    found = [None if part is None else jnp.zeros_like(part) for part in weights]
    chosen = [k for k, mark in enumerate(marks[1:]) if mark is not None]
    if chosen:
        call, *lists = select_features(steps.call, chosen, bags, weights, given)
        # The update comes after, since it changes the rows.
        *made, token = find_backend(call.backend).weights(call, token, *lists)
        for k, part in zip(chosen, made, strict=True):
            found[k] = part
    if marks[0] is not None:
        token = _update(steps, token, numbers, scale, bags, weights, tuple(given))
    return token, None, tuple(found)


_look_up.defvjp(_forward, _backward, symbolic_zeros=True)


def look_up(tables: Tables, layouts: Sequence[Layout], counter: Any, tensors: Sequence[Any],
            outers: Sequence[Any], trained: bool) -> tuple[Any, list[Any]]:
    """Look features up, as :class:`._backends.Backend` says."""
    engine = tables.engine
    _known[engine.handle] = tables
    remember_engine(engine)
    inputs = _read_bags(layouts, tensors, outers)
    described, bags, weights = describe_inputs(read_features(engine), inputs)
    steps = _Steps(Call(_choose_calls(), engine.handle, described), tables.plan(layouts))
    with raising():
        found: tuple[Any, list[Any]] = _look_up(steps, counter, bags, weights)
    return found


def synchronize() -> None:
    """Wait for updates that are under way."""
    barrier: Any = jax.effects_barrier
    barrier()

# SPDX-License-Identifier: MIT
# mypy: allow-untyped-calls
"""Calls of the engine by callbacks of Python, where XLA's foreign functions are not to be had.

Arrays are copied to the host and back. Callbacks are ordered by their tokens, as foreign functions
are, so that they need no order of JAX's own.
"""
import errno
import threading
import weakref
from collections.abc import Callable
from functools import wraps
from typing import Any

import jax
import numpy
from jax.experimental import io_callback

from .._engine import Engine
from .._errors import DeviceError, EmbengError, StepOrderError
from .._inputs import Ragged
from ._calls import TOKEN, Arrays, Call, weight_shapes
from ._layout import (BOUNDS, LENGTHS, PADDED, POSITIONS, SPLITS, STARTS, WEIGHTS, Bags,
                      flatten_arrays)

_engines: "weakref.WeakValueDictionary[int, Engine]" = weakref.WeakValueDictionary()
_lock = threading.Lock()
_pending: dict[int, list[tuple[float, dict[str, Ragged], dict[str, Any]]]] = {}

_BOUNDS = {SPLITS: "splits", STARTS: "starts", LENGTHS: "lengths"}


def remember_engine(engine: Engine) -> None:
    """Let callbacks find an engine by its handle, as long as it lives."""
    _engines[engine.handle] = engine


def _find_engine(call: Call) -> Engine:
    engine = _engines.get(call.engine)
    if engine is None or engine.closed:
        error = DeviceError(f"there is no open engine with the handle {call.engine}: it was closed "
                            "or freed; open it again, and trace the program again")
        error.code = -errno.ENODEV
        raise error
    return engine


def tell(run: Callable[..., Any]) -> Callable[..., Any]:
    """Give the code of an error its place in the sentence, as foreign functions do."""
    @wraps(run)
    def told(*arrays: Any) -> Any:
        try:
            return run(*arrays)
        except EmbengError as error:
            raise RuntimeError(f"embeng error {error.code}: {error}") from None

    return told


def _count(token: Any, more: int) -> Any:
    """Return a token that is larger. A callback may not wait for a program of JAX, as a sum is."""
    return numpy.float32(float(token) + more)


def read_inputs(call: Call, arrays: list[Any], gradients: bool) -> tuple[
        dict[str, Any], dict[str, Any]]:
    """Return inputs and gradients of the core, of arrays in the order of flatten_arrays()."""
    rest = iter([numpy.asarray(array) for array in arrays])
    inputs: dict[str, Any] = {}
    found: dict[str, Any] = {}
    for layout in call.layouts:
        ids = next(rest)
        given: dict[str, Any] = {}
        if layout.form & BOUNDS:
            given[_BOUNDS[layout.form & BOUNDS]] = next(rest)
        if layout.form & WEIGHTS:
            given["weights"] = next(rest)
        if layout.form & PADDED:
            given["padding"] = layout.padding
        inputs[layout.name] = ids if layout.form & POSITIONS else Ragged(ids, **given)
        if gradients:
            found[layout.name] = next(rest)
    return inputs, found


def _as_splits(bags: Any) -> tuple[Any, Any, Any]:
    """Return ids, lengths and weights of bags of any form, without padding."""
    if not isinstance(bags, Ragged):
        bags = Ragged(bags)
    ids = bags.values
    if bags.lengths is not None:
        lengths = bags.lengths
    elif bags.splits is not None:
        lengths = numpy.diff(bags.splits)
    elif bags.starts is not None:
        lengths = numpy.diff(bags.starts, append=len(ids))
    else:
        lengths = numpy.full(len(ids), ids.shape[1] if ids.ndim == 2 else 1)
    ids = ids.reshape(-1)
    weights = numpy.ones(len(ids), numpy.float32) if bags.weights is None \
        else bags.weights.reshape(-1)
    if bags.padding is not None:
        kept = ids != bags.padding
        samples = numpy.repeat(numpy.arange(len(lengths)), lengths)
        lengths = numpy.bincount(samples[kept], minlength=len(lengths))
        ids, weights = ids[kept], weights[kept]
    return ids, lengths, weights


def _join(pushes: list[tuple[float, dict[str, Ragged], dict[str, Any]]]) -> tuple[
        dict[str, Any], dict[str, Any]]:
    if len(pushes) == 1:
        return pushes[0][1], pushes[0][2]
    inputs: dict[str, Any] = {}
    gradients: dict[str, Any] = {}
    for name in dict.fromkeys(name for push in pushes for name in push[1]):
        parts = [push for push in pushes if name in push[1]]
        ids, lengths, weights = zip(*(_as_splits(push[1][name]) for push in parts), strict=True)
        inputs[name] = Ragged(numpy.concatenate(ids), lengths=numpy.concatenate(lengths),
                              weights=numpy.concatenate(weights))
        gradients[name] = numpy.concatenate([push[2][name] for push in parts])
    return inputs, gradients


def _take_pending(call: Call, expected: float) -> list[Any]:
    with _lock:
        waiting = _pending.get(call.engine, [])
        if len(waiting) != expected:
            error = StepOrderError(
                f"{len(waiting)} gradients of lookups wait for an update, but this one was given "
                f"those of {expected:g}: a gradient was computed and not applied, or that of the "
                "state was scaled, averaged or clipped; discard() drops what waits")
            error.code = -errno.EPROTO
            raise error
        return sorted(_pending.pop(call.engine, []), key=lambda push: push[0])


class Callbacks:
    """Callbacks of Python. :class:`._calls.Backend` says what each does."""

    def lookup(self, call: Call, token: Any, bags: tuple[Bags, ...], weights: Arrays) -> Arrays:
        """Look up in a pure callback."""
        @tell
        def run(token: Any, *arrays: Any) -> Any:
            inputs, _ = read_inputs(call, list(arrays), False)
            found = _find_engine(call).lookup(inputs)
            return *(found[f.name] for f in call.layouts), numpy.float32(token)

        results = [jax.ShapeDtypeStruct(f.shape, numpy.float32) for f in call.layouts]
        arrays = flatten_arrays(call.layouts, bags, weights)
        return tuple(jax.pure_callback(run, (*results, TOKEN), token, *arrays,
                                       vmap_method="sequential"))

    def push(self, call: Call, before: Any, part: Any, bags: tuple[Bags, ...], weights: Arrays,
             gradients: Arrays) -> Any:
        """Keep copies of the arrays."""
        @tell
        def run(before: Any, part: Any, *arrays: Any) -> Any:
            engine = _find_engine(call)
            inputs, found = read_inputs(call, [numpy.array(a) for a in arrays], True)
            with _lock:
                _pending.setdefault(engine.handle, []).append((float(part), inputs, found))
            return _count(before, 1)

        arrays = flatten_arrays(call.layouts, bags, weights, gradients)
        return io_callback(run, TOKEN, before, part, *arrays)

    def weights(self, call: Call, token: Any, bags: tuple[Bags, ...], weights: Arrays,
                gradients: Arrays) -> Arrays:
        """Differentiate weights in a pure callback."""
        @tell
        def run(token: Any, *arrays: Any) -> Any:
            inputs, found = read_inputs(call, list(arrays), True)
            wanted = {f.name: None for f in call.layouts if f.form & WEIGHTS}
            got = _find_engine(call).weight_gradients(inputs, found, wanted)
            weighted = [f.name for f in call.layouts if f.form & WEIGHTS]
            return *(got[name].reshape(shape.shape)
                     for name, shape in zip(weighted, shapes, strict=True)), numpy.float32(token)

        shapes = weight_shapes(call, weights)
        arrays = flatten_arrays(call.layouts, bags, weights, gradients)
        return tuple(jax.pure_callback(run, (*shapes, TOKEN), token, *arrays,
                                       vmap_method="sequential"))

    def apply(self, call: Call, token: Any, expected: Any, multiplier: Any, names: tuple[str, ...],
              rates: Any) -> Any:
        """Join what waits, and update."""
        @tell
        def run(token: Any, expected: Any, multiplier: Any, rates: Any) -> Any:
            engine = _find_engine(call)
            pushes = _take_pending(call, float(expected))
            if pushes:
                engine.update(*_join(pushes), _name_rates(names, rates), float(multiplier))
            return _count(token, bool(pushes))

        return io_callback(run, TOKEN, token, expected, multiplier, rates)

    def update(self, call: Call, token: Any, multiplier: Any, names: tuple[str, ...], rates: Any,
               bags: tuple[Bags, ...], weights: Arrays, gradients: Arrays) -> Any:
        """Update at once."""
        @tell
        def run(token: Any, multiplier: Any, rates: Any, *arrays: Any) -> Any:
            inputs, found = read_inputs(call, list(arrays), True)
            _find_engine(call).update(inputs, found, _name_rates(names, rates), float(multiplier))
            return _count(token, 1)

        arrays = flatten_arrays(call.layouts, bags, weights, gradients)
        return io_callback(run, TOKEN, token, multiplier, rates, *arrays)

    def drop(self, call: Call, token: Any) -> Any:
        """Forget what waits."""
        @tell
        def run(token: Any) -> Any:
            engine = _find_engine(call)
            with _lock:
                _pending.pop(engine.handle, None)
            return numpy.float32(token)

        return io_callback(run, TOKEN, token)


def _name_rates(names: tuple[str, ...], rates: Any) -> dict[str, float]:
    return {name: float(rate) for name, rate in zip(names, rates, strict=True)}

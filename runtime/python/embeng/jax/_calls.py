# SPDX-License-Identifier: MIT
"""Calls of the engine from traced programs: XLA's foreign functions, or callbacks of Python.

Both backends have the same functions. The first argument and the last result of each is a token, an
f32 number whose value means little: XLA runs calls in the order of their tokens.
"""
from functools import cache
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy

from .. import _core
from .._errors import NotSupportedError
from ._layout import WEIGHTS, Bags, FeatureLayout, flatten_arrays

Arrays = tuple[Any, ...]
TOKEN = jax.ShapeDtypeStruct((), jnp.float32)


class Call(NamedTuple):
    """The static part of a call: an engine, and the layouts of features."""

    backend: str
    engine: int
    layouts: tuple[FeatureLayout, ...]
    axis: str | tuple[str, ...] | None = None


class Backend(Protocol):
    """The functions of a backend. Gradients and results are in the order of the layouts."""

    def lookup(self, call: Call, token: Any, bags: tuple[Bags, ...], weights: Arrays) -> Arrays:
        """Return the activations of each feature, then the token."""

    def push(self, call: Call, before: Any, part: Any, bags: tuple[Bags, ...], weights: Arrays,
             gradients: Arrays) -> Any:
        """Keep gradients for :meth:`apply`; return how many pushes there were with this one."""

    def weights(self, call: Call, token: Any, bags: tuple[Bags, ...], weights: Arrays,
                gradients: Arrays) -> Arrays:
        """Return the gradients of the weights of each feature that has weights."""

    def apply(self, call: Call, token: Any, expected: Any, multiplier: Any, names: tuple[str, ...],
              rates: Any) -> Any:
        """Make one update of all pushes; return the token."""

    def update(self, call: Call, token: Any, multiplier: Any, names: tuple[str, ...], rates: Any,
               bags: tuple[Bags, ...], weights: Arrays, gradients: Arrays) -> Any:
        """Make an update of these gradients; return the token."""

    def drop(self, call: Call, token: Any) -> Any:
        """Drop all pushes; return the token."""


def weight_shapes(call: Call, weights: Arrays) -> list[jax.ShapeDtypeStruct]:
    """Return the shapes of the gradients of weights."""
    return [jax.ShapeDtypeStruct(w.shape, jnp.float32)
            for layout, w in zip(call.layouts, weights, strict=True) if layout.form & WEIGHTS]


@cache
def register_targets() -> None:
    """Register the functions of the extension with XLA, once.

    Raises
    ------
    NotSupportedError
        This jaxlib does not take them.
    """
    try:
        for name, capsule in _core.xla_targets().items():
            jax.ffi.register_ffi_target(name, capsule, platform="cpu")
    except Exception as error:
        raise NotSupportedError(f"jaxlib {jax.lib.__version__} does not take foreign functions of "
                                f"version 0.1: {error}") from error


class Foreign:
    """XLA's foreign functions: they read and write the buffers of XLA, without Python."""

    def _run(self, name: str, call: Call, results: Any, arguments: list[Any], effect: bool,
             **attributes: Any) -> Any:
        function = jax.ffi.ffi_call(name, results, has_side_effect=effect,
                                    vmap_method="sequential")
        if call.layouts:
            attributes["features"] = numpy.array([f.number for f in call.layouts], numpy.int64)
            attributes["forms"] = numpy.array([f.form for f in call.layouts], numpy.int64)
            attributes["padding"] = numpy.array([f.padding for f in call.layouts], numpy.int64)
        return function(*arguments, engine=numpy.int64(call.engine), **attributes)

    def lookup(self, call: Call, token: Any, bags: tuple[Bags, ...], weights: Arrays) -> Arrays:
        """Look up without an effect: XLA may leave it out where nobody wants the activations."""
        results = [jax.ShapeDtypeStruct(f.shape, jnp.float32) for f in call.layouts]
        arguments = [token, *flatten_arrays(call.layouts, bags, weights)]
        return tuple(self._run("embeng_lookup", call, [*results, TOKEN], arguments, False))

    def push(self, call: Call, before: Any, part: Any, bags: tuple[Bags, ...], weights: Arrays,
             gradients: Arrays) -> Any:
        """Push with an effect: XLA neither leaves it out nor runs it twice."""
        arguments = [before, part, *flatten_arrays(call.layouts, bags, weights, gradients)]
        return self._run("embeng_push", call, TOKEN, arguments, True)

    def weights(self, call: Call, token: Any, bags: tuple[Bags, ...], weights: Arrays,
                gradients: Arrays) -> Arrays:
        """Differentiate weights without an effect."""
        arguments = [token, *flatten_arrays(call.layouts, bags, weights, gradients)]
        results = [*weight_shapes(call, weights), TOKEN]
        return tuple(self._run("embeng_weights", call, results, arguments, False))[:-1]

    def apply(self, call: Call, token: Any, expected: Any, multiplier: Any, names: tuple[str, ...],
              rates: Any) -> Any:
        """Apply with an effect."""
        return self._run("embeng_apply", call, TOKEN, [token, expected, multiplier, rates], True,
                         rates="\n".join(names))

    def update(self, call: Call, token: Any, multiplier: Any, names: tuple[str, ...], rates: Any,
               bags: tuple[Bags, ...], weights: Arrays, gradients: Arrays) -> Any:
        """Update with an effect."""
        arguments = [token, multiplier, rates,
                     *flatten_arrays(call.layouts, bags, weights, gradients)]
        return self._run("embeng_update", call, TOKEN, arguments, True, rates="\n".join(names))

    def drop(self, call: Call, token: Any) -> Any:
        """Drop with an effect."""
        return self._run("embeng_drop", call, TOKEN, [token], True)


def find_backend(name: str) -> Backend:
    """Return a backend by its name: "ffi" or "callback"."""
    if name == "ffi":
        register_targets()
        return Foreign()
    from ._callbacks import Callbacks

    return Callbacks()


def choose_backend(name: str | None) -> str:
    """Return the name of a backend that works: what is asked for, or the best there is."""
    if name not in (None, "ffi", "callback"):
        raise NotSupportedError(f"calls is {name!r}; give 'ffi', 'callback' or None")
    if name == "callback":
        return name
    try:
        register_targets()
    except NotSupportedError:
        if name:
            raise
        return "callback"
    return "ffi"

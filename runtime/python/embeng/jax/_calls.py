# SPDX-License-Identifier: MIT
# mypy: allow-untyped-calls
"""Calls of the engine from traced programs: XLA's foreign functions, or callbacks of Python.

Both backends have the same functions. The first argument and the last result of each is a token, an
f32 number whose value means little: XLA runs calls in the order of their tokens.
"""
import os
from functools import cache
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp

from .. import _core
from .._errors import NotSupportedError
from ._effects import Attributes, read_attributes, run_effect
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
        ...

    def push(self, call: Call, before: Any, part: Any, bags: tuple[Bags, ...], weights: Arrays,
             gradients: Arrays) -> Any:
        """Keep gradients for :meth:`apply`; return how many pushes there were with this one."""
        ...

    def weights(self, call: Call, token: Any, bags: tuple[Bags, ...], weights: Arrays,
                gradients: Arrays) -> Arrays:
        """Return the gradients of the weights of each feature that has some, then the token."""
        ...

    def apply(self, call: Call, token: Any, expected: Any, multiplier: Any, names: tuple[str, ...],
              rates: Any) -> Any:
        """Make one update of all pushes; return the token."""
        ...

    def update(self, call: Call, token: Any, multiplier: Any, names: tuple[str, ...], rates: Any,
               bags: tuple[Bags, ...], weights: Arrays, gradients: Arrays) -> Any:
        """Make an update of these gradients; return the token."""
        ...

    def drop(self, call: Call, token: Any) -> Any:
        """Drop all pushes; return the token."""
        ...


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
        raise NotSupportedError(f"jax {jax.__version__} does not take foreign functions of "
                                f"version 0.1: {error}") from error


def describe_call(call: Call) -> Attributes:
    """Return the attributes of a call, as core/xla.c reads them."""
    found: Attributes = (("engine", call.engine),)
    if call.layouts:
        found += (("features", tuple(f.number for f in call.layouts)),
                  ("forms", tuple(f.form for f in call.layouts)),
                  ("padding", tuple(f.padding for f in call.layouts)))
    return found


class Foreign:
    """XLA's foreign functions: they read and write the buffers of XLA, without Python."""

    def _look(self, name: str, call: Call, results: Any, arguments: list[Any]) -> Any:
        """Call a function without an effect: XLA leaves it out where nobody wants its results."""
        function = jax.ffi.ffi_call(name, results, vmap_method="sequential")
        return function(*arguments, **read_attributes(describe_call(call)))

    def _change(self, name: str, arguments: list[Any], attributes: Attributes) -> Any:
        """Call a function with an effect: neither JAX nor XLA leave it out, or run it twice."""
        function = jax.ffi.ffi_call(name, TOKEN, has_side_effect=True, vmap_method="sequential")
        return function(*arguments, **read_attributes(attributes))

    def lookup(self, call: Call, token: Any, bags: tuple[Bags, ...], weights: Arrays) -> Arrays:
        """Look up without an effect."""
        results = [jax.ShapeDtypeStruct(f.shape, jnp.float32) for f in call.layouts]
        arguments = [token, *flatten_arrays(call.layouts, bags, weights)]
        return tuple(self._look("embeng_lookup", call, [*results, TOKEN], arguments))

    def push(self, call: Call, before: Any, part: Any, bags: tuple[Bags, ...], weights: Arrays,
             gradients: Arrays) -> Any:
        """Push with an effect."""
        arguments = [before, part, *flatten_arrays(call.layouts, bags, weights, gradients)]
        return self._change("embeng_push", arguments, describe_call(call))

    def weights(self, call: Call, token: Any, bags: tuple[Bags, ...], weights: Arrays,
                gradients: Arrays) -> Arrays:
        """Differentiate weights without an effect."""
        arguments = [token, *flatten_arrays(call.layouts, bags, weights, gradients)]
        results = [*weight_shapes(call, weights), TOKEN]
        return tuple(self._look("embeng_weights", call, results, arguments))

    def apply(self, call: Call, token: Any, expected: Any, multiplier: Any, names: tuple[str, ...],
              rates: Any) -> Any:
        """Apply with an effect."""
        return self._change("embeng_apply", [token, expected, multiplier, rates],
                            (*describe_call(call), ("rates", "\n".join(names))))

    def update(self, call: Call, token: Any, multiplier: Any, names: tuple[str, ...], rates: Any,
               bags: tuple[Bags, ...], weights: Arrays, gradients: Arrays) -> Any:
        """Update with an effect."""
        arguments = [token, multiplier, rates,
                     *flatten_arrays(call.layouts, bags, weights, gradients)]
        return self._change("embeng_update", arguments,
                            (*describe_call(call), ("rates", "\n".join(names))))

    def drop(self, call: Call, token: Any) -> Any:
        """Drop with an effect."""
        return self._change("embeng_drop", [token], describe_call(call))


class Pure(Foreign):
    """The same with effects of which JAX knows nothing."""

    def _change(self, name: str, arguments: list[Any], attributes: Attributes) -> Any:
        return run_effect(name, arguments, attributes)


def find_backend(name: str) -> Backend:
    """Return a backend by its name: "ffi", "pure" or "callback"."""
    if name == "callback":
        from ._callbacks import Callbacks

        return Callbacks()
    register_targets()
    return Pure() if name == "pure" else Foreign()


def choose_backend(name: str | None) -> str:
    """Return the name of a backend that works: what is asked for, or the best there is.

    None is what the variable ``EMBENG_JAX_CALLS`` of the environment says.
    """
    name = name or os.environ.get("EMBENG_JAX_CALLS") or None
    if name not in (None, "ffi", "pure", "callback"):
        raise NotSupportedError(f"calls is {name!r}; give 'ffi', 'pure', 'callback' or None")
    if name == "callback":
        return name
    try:
        register_targets()
    except NotSupportedError:
        if name:
            raise
        return "callback"
    return name or "ffi"

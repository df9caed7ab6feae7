# SPDX-License-Identifier: MIT
# mypy: allow-untyped-calls
"""Calls with an effect of which JAX knows nothing: XLA neither leaves them out nor merges two.

They are a primitive of their own and not :func:`jax.ffi.ffi_call`, whose effects JAX tracks: a
program with such effects is dispatched by Python, which costs more than a small step. JAX takes
these for pure, and so leaves one out whose token is not used.
"""
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy
from jax.extend.core import Primitive
from jax.interpreters import batching, mlir

Attributes = tuple[tuple[str, Any], ...]

_effect_p = Primitive("embeng_effect")


def read_attributes(attributes: Attributes) -> dict[str, Any]:
    """Return what XLA takes: a text, a number of 64 bits, or an array of them."""
    read: dict[str, Any] = {}
    for name, value in attributes:
        if isinstance(value, tuple):
            read[name] = numpy.array(value, numpy.int64)
        else:
            read[name] = value if isinstance(value, str) else numpy.int64(value)
    return read


def _evaluate_shape(*arguments: Any, target: str, attributes: Attributes) -> Any:
    """Return the aval of a token, which varies over all axes that an argument varies over."""
    axes = frozenset().union(*(getattr(one, "vma", ()) for one in arguments))
    token = arguments[0].update(shape=(), dtype=numpy.dtype(numpy.float32), weak_type=False)
    return token.update(vma=axes) if hasattr(token, "vma") else token


def _lower(context: Any, *operands: Any, target: str, attributes: Attributes) -> Any:
    rule = jax.ffi.ffi_lowering(target, has_side_effect=True)
    return rule(context, *operands, **read_attributes(attributes))


def _batch(arguments: Any, dims: Any, **parameters: Any) -> Any:
    """Run a batch one after another."""
    batched = [jnp.moveaxis(one, dim, 0) for one, dim in zip(arguments, dims, strict=True)
               if dim is not None]

    def run(given: Any) -> Any:
        rest = iter(given)
        return _effect_p.bind(*(one if dim is None else next(rest)
                                for one, dim in zip(arguments, dims, strict=True)), **parameters)
    return jax.lax.map(run, batched), 0


def _evaluate(*arguments: Any, **parameters: Any) -> Any:
    """Run a call outside of a trace, as under jax.disable_jit()."""
    with jax.disable_jit(False):
        return jax.jit(partial(_effect_p.bind, **parameters))(*arguments)


_effect_p.def_impl(_evaluate)
_effect_p.def_abstract_eval(_evaluate_shape)
mlir.register_lowering(_effect_p, _lower, platform="cpu")
batching.primitive_batchers[_effect_p] = _batch


def run_effect(target: str, arguments: list[Any], attributes: Attributes) -> Any:
    """Call a function of the extension that has an effect, and return its token."""
    return _run(tuple(arguments), target, attributes)


@partial(jax.jit, static_argnums=(1, 2))
def _run(arguments: tuple[Any, ...], target: str, attributes: Attributes) -> Any:
    return _effect_p.bind(*arguments, target=target, attributes=attributes)

# SPDX-License-Identifier: MIT
"""Derivatives of lookups: what the backward pass computes, and what is refused."""
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero

from .._errors import NotSupportedError
from ._calls import Arrays, Call, find_backend
from ._layout import WEIGHTS, Bags


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def refuse_derivative(what: str, value: Any) -> Any:
    """Return `value`; a program that differentiates by it is refused with a sentence."""
    return value


@refuse_derivative.defjvp
def _refuse(what: str, primals: Any, tangents: Any) -> Any:
    raise NotSupportedError(f"{what} has no derivative: gradients of embeddings are computed in "
                            "reverse mode, once; take jax.grad outside of updates, and no grad of "
                            "grad")


@contextmanager
def refusing_forward() -> Iterator[None]:
    """Say in embeng's words that a lookup has no derivative in forward mode."""
    try:
        yield
    except TypeError as error:
        if "forward-mode" not in str(error):
            raise
        raise NotSupportedError("a lookup has no derivative in forward mode (jvp, jacfwd, "
                                "linearize); take jax.grad or jax.vjp") from error


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def look_up(call: Call, token: Any, bags: tuple[Bags, ...], weights: Arrays) -> Arrays:
    """Return the activations of each feature, then the token. Differentiable, once."""
    return find_backend(call.backend).lookup(call, token, bags, weights)


@jax.tree_util.register_static
class _Wanted:
    """The derivatives that a backward pass has to compute. Equal ones have the same hash."""

    def __init__(self, state: bool, weights: tuple[bool, ...]):
        self.state, self.weights = state, weights

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Wanted) and (self.state, self.weights) == (
            other.state, other.weights)

    def __hash__(self) -> int:
        return hash((self.state, self.weights))


def _look_up_forward(call: Call, token: Any, bags: Any, weights: Any) -> Any:
    plain = jax.tree.map(lambda given: given.value, (token, bags, weights),
                         is_leaf=lambda given: hasattr(given, "perturbed"))
    wanted = _Wanted(token.perturbed, tuple(w is not None and w.perturbed for w in weights))
    found: Any = look_up(call, *plain)
    part = jnp.zeros((), jnp.float32)
    if call.axis is not None and wanted.state:
        part = jax.lax.axis_index(call.axis).astype(jnp.float32)
    return found, (wanted, found[-1], part, plain[1], plain[2])


def as_array(gradient: Any) -> Any:
    """Return a gradient, where JAX knows that it is zero, as an array of zeros."""
    if isinstance(gradient, SymbolicZero):
        aval: Any = gradient.aval
        return jnp.zeros(aval.shape, jnp.float32)
    return gradient


def select_features(call: Call, chosen: list[int], *lists: Any) -> tuple[Any, ...]:
    """Return a call of some of its features, and their entries of lists."""
    layouts = tuple(call.layouts[k] for k in chosen)
    return call._replace(layouts=layouts), *(tuple(one[k] for k in chosen) for one in lists)


def _look_up_backward(call: Call, saved: Any, gradients: Any) -> Any:
    wanted, token, part, bags, weights = saved
    *arrays, before = gradients
    backend = find_backend(call.backend)
    before = as_array(before)
    live = [k for k, array in enumerate(arrays) if not isinstance(array, SymbolicZero)]
    found: list[Any] = [None if w is None else jnp.zeros(w.shape, jnp.float32) for w in weights]
    if not live:
        return before, None, tuple(found)
    arrays = refuse_derivative("the gradient of a lookup", tuple(map(as_array, arrays)))
    chosen = [k for k in live if wanted.weights[k]]
    if chosen:
        part_call, *given = select_features(call, chosen, bags, weights, arrays)
        *made, after = backend.weights(part_call, token, *given)
        for k, one in zip(chosen, made, strict=True):
            assert call.layouts[k].form & WEIGHTS
            found[k] = one
        # The rows that this reads change in an update, which waits for the push.
        part = part + 0 * after
    if wanted.state:
        part_call, *given = select_features(call, live, bags, weights, arrays)
        before = backend.push(part_call, before, part, *given)
    return before, None, tuple(found)


look_up.defvjp(_look_up_forward, _look_up_backward, symbolic_zeros=True)

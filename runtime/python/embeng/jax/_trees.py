# SPDX-License-Identifier: MIT
"""States of embeddings within trees of parameters, as libraries of layers hold them."""
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from .._errors import InvalidError
from .embedding import Axis, Embedding, EmbeddingState


def is_state(leaf: Any) -> bool:
    """Return whether a part of a tree is the state of an embedding."""
    return isinstance(leaf, EmbeddingState)


def find_states(tree: Any) -> list[EmbeddingState]:
    """Return the states of a tree, in its order."""
    return [leaf for leaf in jax.tree.leaves(tree, is_leaf=is_state) if is_state(leaf)]


def sum_tokens(tokens: list[Any]) -> Any:
    """Return a token that comes after all of these."""
    return jnp.stack(tokens).sum()


def apply_states(emb: Embedding, params: Any, gradients: Any, *,
                 rates: Mapping[str, Any] | None = None, multiplier: Any = 1.0,
                 axis_name: Axis = None) -> Any:
    """Apply the gradients of all states of a tree: one step of an embedding's optimizers.

    Parameters
    ----------
    emb : Embedding
        The embedding to which all states of the tree belong.
    params : pytree
        Parameters, in which modules keep states.
    gradients : pytree
        The gradient of the loss by them.
    rates, multiplier, axis_name
        As for :meth:`Embedding.apply`.

    Returns
    -------
    pytree
        `params` with new states, and everything else as it was.

    Raises
    ------
    InvalidError
        There is no state in a tree, or there are not as many in both.
    """
    states, counts = find_states(params), find_states(gradients)
    if not states or len(states) != len(counts):
        raise InvalidError(f"the parameters have {len(states)} states of embeddings, the gradients "
                           f"{len(counts)}")
    one = EmbeddingState(sum_tokens([state.token for state in states]))
    after = emb.apply(one, EmbeddingState(sum_tokens([count.token for count in counts])),
                      rates=rates, multiplier=multiplier, axis_name=axis_name)
    # The token of a tree does not grow with the number of its states.
    token = after.token / len(states)
    return jax.tree.map(lambda leaf: EmbeddingState(token) if is_state(leaf) else leaf, params,
                        is_leaf=is_state)

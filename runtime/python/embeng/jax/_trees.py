# SPDX-License-Identifier: MIT
"""States of embeddings within parameters, as libraries of layers hold them."""
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


def look_up_feature(emb: Embedding, state: EmbeddingState, feature: str, ids: Any,
                    axis_name: Axis) -> jax.Array:
    """Return the activations of one feature, as :meth:`Embedding.lookup` does."""
    found, _ = emb.lookup(state, {feature: ids}, axis_name=axis_name)
    return found[feature]


def _sum_all(arrays: list[Any]) -> EmbeddingState:
    return EmbeddingState(sum(jnp.sum(jnp.asarray(array, jnp.float32)) for array in arrays))


def apply_tokens(emb: Embedding, tokens: list[Any], counts: list[Any],
                 **options: Any) -> list[Any]:
    """Apply the gradients of all layers of an embedding as one step.

    Parameters
    ----------
    emb : Embedding
        The embedding.
    tokens, counts : list of jax.Array
        The token of each layer's state, and the gradient by it. Layers that are mapped or scanned
        over have an array of them.
    **options
        For :meth:`Embedding.apply`.

    Returns
    -------
    list of jax.Array
        The next token of each layer, of its shape. It does not grow with the number of layers.

    Raises
    ------
    InvalidError
        There is no token, or there are not as many in both.
    """
    if not tokens or len(tokens) != len(counts):
        raise InvalidError(f"the parameters have {len(tokens)} states of embeddings, the gradients "
                           f"{len(counts)}")
    after = emb.apply(_sum_all(tokens), _sum_all(counts), **options)
    share = after.token / sum(jnp.size(token) for token in tokens)
    return [jnp.broadcast_to(share, jnp.shape(token)).astype(jnp.result_type(token))
            for token in tokens]


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
    tokens, counts = ([state.token for state in find_states(tree)] for tree in (params, gradients))
    after = iter(apply_tokens(emb, tokens, counts, rates=rates, multiplier=multiplier,
                              axis_name=axis_name))
    return jax.tree.map(lambda leaf: EmbeddingState(next(after)) if is_state(leaf) else leaf,
                        params, is_leaf=is_state)

# SPDX-License-Identifier: MIT
"""Optimizers of optax beside embeddings."""
import importlib
from typing import Any

import jax

from ._trees import apply_states, is_state

optax: Any = importlib.import_module("optax")

__all__ = ["apply_gradients", "split_embeddings"]

apply_gradients = apply_states


def split_embeddings(transformation: Any) -> Any:
    """Return a transformation that leaves the states of embeddings alone.

    The gradient of a state counts lookups; norms, averages and clips must not see it. Apply it by
    :func:`apply_gradients`.

    Parameters
    ----------
    transformation : optax.GradientTransformation
        The optimizer of all other parameters.

    Returns
    -------
    optax.GradientTransformation
        It has no state for, and makes no change of, an :class:`EmbeddingState` in the parameters.
    """
    def label(params: Any) -> Any:
        return jax.tree.map(lambda leaf: "embeddings" if is_state(leaf) else "dense", params,
                            is_leaf=is_state)

    return optax.transforms.partition(
        {"dense": transformation, "embeddings": optax.set_to_zero()}, label)

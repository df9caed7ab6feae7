# SPDX-License-Identifier: MIT
"""Layers of flax.linen.

>>> emb = embeng.jax.Embedding([embeng.Table("items", 1000, 16, "sum", embeng.optimizers.sgd(0.1))])
>>> class Model(linen.Module):
...     @linen.compact
...     def __call__(self, ids):
...         return linen.Dense(1)(Embed(emb, "items")(ids))
"""
from typing import Any

import jax
from flax import linen

from ._trees import apply_states, look_up_feature
from .embedding import Axis, Embedding, EmbeddingState

__all__ = ["Embed", "apply_gradients"]


class Embed(linen.Module):
    """Look one feature up. Its parameter is the state of an embedding, and not the rows.

    Attributes
    ----------
    embedding : Embedding
        The tables, which any number of layers share.
    feature : str
        Name of the feature.
    axis_name : str or tuple of str, optional
        The mapped axes in which the layer runs.
    """

    embedding: Embedding
    feature: str
    axis_name: Axis = None

    @linen.compact
    def __call__(self, ids: Any) -> jax.Array:
        """Return the activations of ids, as :meth:`Embedding.lookup` does."""
        state = self.param("state", lambda key: EmbeddingState(jax.numpy.zeros(())))
        return look_up_feature(self.embedding, state, self.feature, ids, self.axis_name)


apply_gradients = apply_states

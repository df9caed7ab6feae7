# SPDX-License-Identifier: MIT
"""Layers of flax.nnx.

>>> layer = embeng.jax.nnx.Embed(emb, "items")
>>> gradients = nnx.grad(loss, argnums=nnx.DiffState(0, nnx.Param))(model)
>>> embeng.jax.nnx.apply_gradients(emb, model, gradients)
>>> optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=embeng.jax.nnx.DENSE)
"""
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from ._trees import apply_tokens, look_up_feature
from .embedding import Axis, Embedding, EmbeddingState

__all__ = ["DENSE", "Embed", "EmbeddingParam", "apply_gradients"]


class EmbeddingParam(nnx.Param[Any]):
    """The state of an embedding as a variable: f32 of no dimension."""


# Parameters that optimizers of optax change.
DENSE = nnx.All(nnx.Param, nnx.Not(EmbeddingParam))


class Embed(nnx.Module):
    """Look one feature up.

    Parameters
    ----------
    embedding : Embedding
        The tables, which any number of layers share.
    feature : str
        Name of the feature.
    axis_name : str or tuple of str, optional
        The mapped axes in which the layer runs.
    """

    def __init__(self, embedding: Embedding, feature: str, *, axis_name: Axis = None):
        self.embedding = embedding
        self.feature = feature
        self.axis_name = axis_name
        self.token = EmbeddingParam(jnp.zeros((), jnp.float32))

    def __call__(self, ids: Any) -> jax.Array:
        """Return the activations of ids, as :meth:`Embedding.lookup` does."""
        return look_up_feature(self.embedding, EmbeddingState(self.token[...]), self.feature, ids,
                               self.axis_name)


def apply_gradients(emb: Embedding, model: Any, gradients: Any, *,
                    rates: Mapping[str, Any] | None = None, multiplier: Any = 1.0,
                    axis_name: Axis = None) -> None:
    """Apply the gradients of all layers of an embedding in a model, in place: one step.

    Parameters
    ----------
    emb : Embedding
        The embedding of all layers :class:`Embed` of the model.
    model : nnx.Module
        The model.
    gradients : nnx.State
        The gradient by its parameters.
    rates, multiplier, axis_name
        As for :meth:`Embedding.apply`.
    """
    tokens, structure = jax.tree.flatten(nnx.state(model, EmbeddingParam))
    counts = jax.tree.leaves(nnx.filter_state(gradients, EmbeddingParam))
    after = apply_tokens(emb, tokens, counts, rates=rates, multiplier=multiplier,
                         axis_name=axis_name)
    nnx.update(model, jax.tree.unflatten(structure, after))

# SPDX-License-Identifier: MIT
"""Embedding tables in programs of JAX, looked up and updated inside jit.

>>> emb = embeng.jax.Embedding([embeng.Table("items", 1000, 16, "sum", embeng.optimizers.sgd(0.1))])
>>> state = emb.init()
>>> @jax.jit
... def step(state, ids):
...     def loss(state):
...         found, after = emb.lookup(state, {"items": ids})
...         return found["items"].sum(), after
...     (value, after), gradient = jax.value_and_grad(loss, has_aux=True)(state)
...     return value, emb.apply(after, gradient)
"""
from .embedding import Embedding, EmbeddingState
from .errors import find_error, raising

__all__ = ["Embedding", "EmbeddingState", "find_error", "raising"]

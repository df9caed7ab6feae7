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

``embeng.jax.flax``, ``embeng.jax.nnx`` and ``embeng.jax.optax`` are for those libraries, and
``embeng.jax.orbax`` reads and writes stacks of jax-tpu-embedding.
"""
from .coordinates import preprocess_sparse_dense_matmul_input_from_sparse_tensor
from .embedding import Embedding, EmbeddingState
from .errors import find_error, raising
from .preprocessing import (PreprocessedInput, SparseDenseMatmulInput, SparseDenseMatmulInputStats,
                            preprocess_sparse_dense_matmul_input)
from .sparsecore import (EmbeddingVariables, tpu_sparse_dense_matmul,
                         tpu_sparse_dense_matmul_grad)

__all__ = ["Embedding", "EmbeddingState", "EmbeddingVariables", "PreprocessedInput",
           "SparseDenseMatmulInput", "SparseDenseMatmulInputStats", "find_error",
           "preprocess_sparse_dense_matmul_input",
           "preprocess_sparse_dense_matmul_input_from_sparse_tensor", "raising",
           "tpu_sparse_dense_matmul", "tpu_sparse_dense_matmul_grad"]

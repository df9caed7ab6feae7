# SPDX-License-Identifier: MIT
"""Embeddings of an engine for Keras 3, on its torch, JAX and TensorFlow backends.

:class:`DistributedEmbedding` has the constructor and the methods of keras-rs' layer of this name.
Its tables are in an engine, each with the optimizer of its own :class:`TableConfig`; a backward
applies the gradients to the rows that the batch touches. keras-rs need not be installed.
:class:`EmbedReduce` is a layer of Keras' own variables for tables that stay on the default device.
"""
from . import optimizers
from .configs import FeatureConfig, TableConfig
from .embed_reduce import EmbedReduce
from .files import list_keras_tables, load_keras_tables
from .layer import DistributedEmbedding

__all__ = ["DistributedEmbedding", "EmbedReduce", "FeatureConfig", "TableConfig",
           "list_keras_tables", "load_keras_tables", "optimizers"]

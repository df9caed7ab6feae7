# SPDX-License-Identifier: MIT
"""TensorFlow, with the engine in the place of a TPU's embedding hardware.

``import embeng.tf as tf`` in a program that was written for ``TPUEmbedding`` runs it on this
machine. Every name of this module is TensorFlow's own, but for these:

- ``tf.tpu.experimental.embedding.TPUEmbedding``, ``TPUEmbeddingV2``, ``TPUEmbeddingV0`` and
  ``TPUEmbeddingForServing``;
- ``tf.tpu.experimental.initialize_tpu_system`` and ``shutdown_tpu_system``;
- ``tf.distribute.TPUStrategy``, ``tf.distribute.InputOptions`` and
  ``tf.distribute.cluster_resolver.TPUClusterResolver``.

Configurations (``TableConfig``, ``FeatureConfig``, ``QuantizationConfig``), optimizers,
initializers and ``serving_embedding_lookup`` are TensorFlow's, so that objects of a program that
imports ``tensorflow`` itself fit, too. Beside them this module has:

- :class:`EngineInitializer`: starts a table with the engine's own numbers, which depend on the seed
  and the table's name alone, and so are those of a program in numpy or PyTorch;
- :class:`EngineOptimizer`: gives a table an optimizer that TensorFlow does not have;
- :mod:`embeng.tf.checkpoint`: rows and slots from ``tf.train.Checkpoint`` into an engine and back.

TensorFlow is imported when this module is.
"""
from typing import Any

import tensorflow as _tensorflow

from . import checkpoint as checkpoint
from ._overlay import Overlay
from ._settings import EngineInitializer as EngineInitializer
from ._settings import EngineOptimizer as EngineOptimizer
from ._strategy import InputOptions, TPUStrategy
from ._system import TPUClusterResolver, initialize_tpu_system, shutdown_tpu_system
from .embedding import TPUEmbedding
from .serving import TPUEmbeddingForServing, TPUEmbeddingV0
from .sparse_core import TPUEmbeddingV2

_embedding = Overlay(_tensorflow.tpu.experimental.embedding, {
    "TPUEmbedding": TPUEmbedding, "TPUEmbeddingV0": TPUEmbeddingV0,
    "TPUEmbeddingV2": TPUEmbeddingV2, "TPUEmbeddingForServing": TPUEmbeddingForServing})
_tpu_experimental = Overlay(_tensorflow.tpu.experimental, {
    "embedding": _embedding, "initialize_tpu_system": initialize_tpu_system,
    "shutdown_tpu_system": shutdown_tpu_system})
tpu = Overlay(_tensorflow.tpu, {"experimental": _tpu_experimental})
_cluster_resolver = Overlay(_tensorflow.distribute.cluster_resolver, {
    "TPUClusterResolver": TPUClusterResolver})
_distribute_experimental = Overlay(_tensorflow.distribute.experimental, {
    "TPUStrategy": TPUStrategy})
distribute = Overlay(_tensorflow.distribute, {
    "TPUStrategy": TPUStrategy, "InputOptions": InputOptions,
    "cluster_resolver": _cluster_resolver, "experimental": _distribute_experimental})

_OURS = ("EngineInitializer", "EngineOptimizer", "checkpoint", "distribute", "tpu")


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return [known for known in __dir__() if not known.startswith("_")]
    return getattr(_tensorflow, name)


def __dir__() -> list[str]:
    return sorted({*dir(_tensorflow), *_OURS})

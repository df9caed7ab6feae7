# SPDX-License-Identifier: MIT
"""Tables as variables of TensorFlow: TPUEmbeddingForServing, and TPUEmbeddingV0."""
from typing import Any

import tensorflow as tf

from ._private import TPUEmbeddingBase
from ._strategy import TPUStrategy

_Base: Any = tf.tpu.experimental.embedding.TPUEmbeddingForServing
_BaseV0: Any = tf.tpu.experimental.embedding.TPUEmbeddingV0


class TPUEmbeddingForServing(_Base):
    """TensorFlow's class of this name: exports hold variables and ops of TensorFlow alone.

    Checkpoints of :class:`embeng.tf.embedding.TPUEmbedding` fit, so a model that was trained by the
    engine is served where embeng is not installed.

    Parameters
    ----------
    feature_config : nested structure of FeatureConfig
        The features, and through them the tables.
    optimizer : optimizer, optional
        For tables that name none. Without one there are no slots.

    Raises
    ------
    RuntimeError
        It was looked up or built under a TPUStrategy, which is for training.
    """

    def __init__(self, feature_config: Any, optimizer: Any = None):
        if isinstance(tf.distribute.get_strategy(), TPUStrategy):
            raise RuntimeError("Serving on TPU is not yet supported. Make the "
                               "TPUEmbeddingForServing outside of the scope of a TPUStrategy.")
        super().__init__(feature_config, optimizer)


class TPUEmbeddingV0(_BaseV0):
    """TensorFlow's class of this name, under our strategy: dense variables, and no engine.

    It is for TPUs without embedding hardware. Its tables are variables with dense gradients, which
    an optimizer of Keras updates.

    Parameters
    ----------
    feature_config : nested structure of FeatureConfig
        The features, and through them the tables.
    optimizer : optimizer or None
        Names the slots.

    Raises
    ------
    RuntimeError
        It is not made under a TPUStrategy.
    """

    def __init__(self, feature_config: Any, optimizer: Any):
        self._strategy = tf.distribute.get_strategy()
        if not isinstance(self._strategy, TPUStrategy):
            raise RuntimeError("TPUEmbeddingV0 should be created under TPUStrategy but found "
                               f"{self._strategy}.")
        TPUEmbeddingBase.__init__(self, feature_config, optimizer)
        self._built = False

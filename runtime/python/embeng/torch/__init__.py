# SPDX-License-Identifier: MIT
"""Modules and optimizers of PyTorch over embedding engines.

Two lines change a program::

    model.items = embeng.torch.EmbeddingBag(1_000_000, 64, mode="sum")    # for nn.EmbeddingBag
    optimizer = embeng.torch.optim.Adagrad(model.parameters(), lr=0.05)   # for torch.optim.Adagrad

or :func:`convert` does it to a model and an optimizer that there are.
"""
from . import optim
from ._clip import clip_grad_norm_
from ._distributed import distribute
from ._group import feeding, replica
from ._hosted import HostedParameter, gather_state_dict, local_state_dict
from ._table import TableParameter
from .collections import EmbeddingBagCollection, EmbeddingCollection
from .configs import DataType, EmbeddingBagConfig, EmbeddingConfig, PoolingType
from .convert import convert
from .fused import (FusedEmbeddingBagCollection, FusedEmbeddingCollection,
                    fuse_embedding_optimizer)
from .jagged import JaggedTensor
from .keyed_jagged import KeyedJaggedTensor
from .keyed_tensor import KeyedTensor
from .modules import Embedding, EmbeddingBag
from .optim import is_table

__all__ = ["DataType", "Embedding", "EmbeddingBag", "EmbeddingBagCollection", "EmbeddingBagConfig",
           "EmbeddingCollection", "EmbeddingConfig", "FusedEmbeddingBagCollection",
           "FusedEmbeddingCollection", "HostedParameter", "JaggedTensor", "KeyedJaggedTensor",
           "KeyedTensor", "PoolingType", "TableParameter", "clip_grad_norm_", "convert",
           "distribute", "feeding", "fuse_embedding_optimizer", "gather_state_dict", "is_table",
           "local_state_dict", "optim", "replica"]

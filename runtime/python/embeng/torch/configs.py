# SPDX-License-Identifier: MIT
"""Tables of collections, with the fields that torchrec's configurations have.

Collections take torchrec's own configurations as well: they read fields by their names.
"""
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import torch
from torch import Tensor, nn

from .._engine import Table
from .._errors import InvalidError, NotSupportedError
from ._hosted import HostedParameter

Init = Callable[[Tensor], Any]


class DataType(Enum):
    """Types of the numbers of a table, by torchrec's names. Tables are FP32."""

    FP32 = "FP32"
    FP16 = "FP16"
    BF16 = "BF16"
    FP8 = "FP8"
    INT64 = "INT64"
    INT32 = "INT32"
    INT8 = "INT8"
    UINT8 = "UINT8"
    INT4 = "INT4"
    INT2 = "INT2"


class PoolingType(Enum):
    """How the rows of a bag become one."""

    SUM = "SUM"
    MEAN = "MEAN"
    NONE = "NONE"


@dataclass
class _Config:
    num_embeddings: int
    embedding_dim: int
    name: str = ""
    data_type: Any = DataType.FP32
    feature_names: list[str] = field(default_factory=list)
    weight_init_max: float | None = None
    weight_init_min: float | None = None
    num_embeddings_post_pruning: int | None = None
    init_fn: Init | None = None
    need_pos: bool = False
    input_dim: int | None = None
    total_num_buckets: int | None = None
    use_virtual_table: bool = False
    virtual_table_eviction_policy: Any = None
    enable_embedding_update: bool = False
    stash_weights: bool = False

    def get_weight_init_max(self) -> float:
        """Return the upper bound of the uniform numbers with which rows start."""
        return _init_bounds(self)[1]

    def get_weight_init_min(self) -> float:
        """Return the lower bound of them."""
        return _init_bounds(self)[0]

    def num_features(self) -> int:
        """Return how many features are looked up in the table."""
        return len(self.feature_names)


@dataclass
class EmbeddingBagConfig(_Config):
    """A table whose rows are pooled.

    Parameters
    ----------
    num_embeddings : int
        Rows.
    embedding_dim : int
        Columns.
    name : str
        Unique in its collection; ``t_0``, ``t_1``, ... where it is empty.
    data_type : DataType
        FP32; others are refused.
    feature_names : list of str
        The features that are looked up in the table; the name of the table if there are none.
    weight_init_max, weight_init_min : float, optional
        Bounds of the uniform numbers with which rows start; ``+-1 / sqrt(num_embeddings)`` without
        them.
    init_fn : callable, optional
        Fills the weight in place instead.
    pooling : PoolingType
        SUM or MEAN. A mean of weighted ids is divided by the sum of their weights.
    need_pos, input_dim, total_num_buckets
        Taken for compatibility: they are about sharding.
    num_embeddings_post_pruning, use_virtual_table, virtual_table_eviction_policy,
    enable_embedding_update, stash_weights
        Refused unless they are as torchrec has them by default.
    """

    pooling: Any = PoolingType.SUM


@dataclass
class EmbeddingConfig(_Config):
    """A table each of whose ids has a row of its own in the output. Fields are those above."""


_REFUSED = ("num_embeddings_post_pruning", "use_virtual_table", "virtual_table_eviction_policy",
            "enable_embedding_update", "stash_weights")


def _init_bounds(config: Any) -> tuple[float, float]:
    bound = 1 / math.sqrt(config.num_embeddings)
    low, high = config.weight_init_min, config.weight_init_max
    return (-bound if low is None else low), (bound if high is None else high)


def _name_of(choice: Any) -> str:
    """Name of an enumeration's member, also of torchrec's, or a text."""
    return str(getattr(choice, "name", choice))


def _check(config: Any, name: str) -> None:
    if _name_of(config.data_type) != "FP32":
        raise NotSupportedError(f"table {name}: data_type is {_name_of(config.data_type)}; tables "
                                "are FP32")
    for option in _REFUSED:
        if getattr(config, option, None):
            raise NotSupportedError(f"table {name}: {option} is {getattr(config, option)!r}; "
                                    "tables do not have it, leave it out")
    pooling = _name_of(getattr(config, "pooling", PoolingType.SUM))
    if pooling not in ("SUM", "MEAN"):
        raise NotSupportedError(f"table {name}: pooling is {pooling}; it may be SUM or MEAN")


def init_rows(config: Any, weight: Tensor) -> None:
    """Start the rows of a table as its configuration says."""
    init = getattr(config, "init_fn", None)
    rows = torch.empty(weight.shape, dtype=torch.float32, device="cpu") \
        if isinstance(weight, HostedParameter) else weight
    if init is not None:
        init(rows)
    else:
        nn.init.uniform_(rows, *_init_bounds(config))
    if rows is not weight:
        weight.data = rows


class TablePlan:
    """Tables and features of a collection, after a look at their configurations.

    Parameters
    ----------
    kind : str
        How messages call the collection.
    configs : sequence of EmbeddingBagConfig or EmbeddingConfig
        Its tables.
    merge : bool
        Configurations of one name and shape are one table; else they are refused.

    Attributes
    ----------
    configs : list
        One for each table.
    tables : list of embeng.Table
        Likewise, without optimizers.
    names : list of list of str
        For each table, the names of its outputs: of its feature, or ``feature@table`` where several
        tables have that.
    keys : list of list of str
        Likewise, the keys of inputs.
    """

    def __init__(self, kind: str, configs: Sequence[Any], merge: bool = False) -> None:
        if not configs:
            raise InvalidError(f"{kind}: there are no tables; give some")
        named = [(config.name or f"t_{at}", config) for at, config in enumerate(configs)]
        self.configs: list[Any] = []
        self.tables: list[Table] = []
        self.keys: list[list[str]] = []
        for name, config in named:
            self._add(kind, name, config, merge)
        everyone = [key for keys in self.keys for key in keys]
        shared = {key for key in everyone if everyone.count(key) > 1}
        self.names = [[f"{key}@{table.name}" if key in shared else key for key in keys]
                      for table, keys in zip(self.tables, self.keys, strict=True)]

    def _add(self, kind: str, name: str, config: Any, merge: bool) -> None:
        _check(config, name)
        keys = list(config.feature_names) or [name]
        pooling = _name_of(getattr(config, "pooling", PoolingType.SUM)).lower()
        table = Table(name, config.num_embeddings, config.embedding_dim, pooling)
        same = next((at for at, old in enumerate(self.tables) if old.name == name), None)
        if same is not None and not (merge and self.tables[same] == table):
            raise InvalidError(f"{kind}: there are two tables {name}; give tables different names")
        if same is None:
            self.configs.append(config)
            self.tables.append(table)
            self.keys.append([])
            same = len(self.keys) - 1
        for key in keys:
            if key in self.keys[same]:
                raise InvalidError(f"{kind}: table {name} has the feature {key} twice; give it "
                                   "once")
            self.keys[same].append(key)

# SPDX-License-Identifier: MIT
"""Collections of tables with torchrec's interfaces, over one engine each.

A forward of all features is one call of the engine, which writes activations where they stay.
Inputs are :class:`embeng.torch.KeyedJaggedTensor` or torchrec's own: what is asked of them are
their methods.
"""
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor, nn

from .._engine import Engine, Feature
from .._errors import InvalidError, NotSupportedError, UnknownNameError
from ..optimizers import Optimizer
from ._group import Group, Update
from ._keyed_ops import KeyedPlan, lookup_keyed, make_plan
from ._placed import Placed
from ._table import TableParameter
from .configs import TablePlan, init_rows
from .jagged import JaggedTensor, to_lengths
from .keyed_tensor import KeyedTensor


class _Rows(nn.Module):
    """Holds the parameter of one table, so that it has torchrec's name in the state."""

    _ddp_params_and_buffers_to_ignore = ("weight",)

    def __init__(self, weight: nn.Parameter) -> None:
        super().__init__()
        self.weight = weight

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        return self

    def register_parameter(self, name: str, param: nn.Parameter | None) -> None:
        """Register a parameter; one that is assigned to a table's is copied into the table."""
        known = self._parameters.get(name)
        if isinstance(known, TableParameter) and param is not known:
            if param is None:
                raise InvalidError("weight is None; a table has rows")
            with torch.no_grad():
                known.data = param
            known.requires_grad_(param.requires_grad)
            return
        super().register_parameter(name, param)

    def extra_repr(self) -> str:
        """Describe the table in one line."""
        return "{}, {}".format(*self.weight.shape)


class _Input:
    """Contents of a keyed jagged tensor, on the processor."""

    __slots__ = ("keys", "values", "lengths", "weights", "samples", "inverse", "device")

    def __init__(self, features: Any, weighted: bool) -> None:
        self.keys: tuple[str, ...] = tuple(features.keys())
        values = features.values()
        lengths = features.lengths_or_none()
        if lengths is None:
            offsets = features.offsets_or_none()
            if offsets is None:
                raise InvalidError("features: they have neither lengths nor offsets; give one of "
                                   "them")
            lengths = to_lengths(offsets)
        weights = None
        if weighted:
            weights = features.weights_or_none()
            if weights is None:
                raise InvalidError("features: the collection is weighted, and they have no "
                                   "weights; give weights, or make the collection with "
                                   "is_weighted=False")
            weights = weights.float()
        self.device: torch.device | None = None
        if not values.is_cpu and not values.is_meta:
            self.device = values.device
            values, lengths = values.cpu(), lengths.cpu()
            weights = None if weights is None else weights.cpu()
        self.values: Tensor = values
        self.lengths: Tensor = lengths if lengths.dim() == 1 else lengths.reshape(-1)
        self.weights: Tensor | None = weights
        self.samples: list[int] | None = None
        self.inverse: Any = None
        varies = getattr(features, "variable_stride_per_key", None)
        if varies is not None and varies():
            self._take_strides(features)

    def _take_strides(self, features: Any) -> None:
        strides = [int(samples) for samples in features.stride_per_key()]
        known = getattr(features, "inverse_indices_or_none", None)
        self.inverse = known() if known is not None else None
        if self.inverse is not None or len(set(strides)) > 1:
            self.samples = strides

    def strides(self) -> list[int]:
        """Samples of each key."""
        if self.samples is not None:
            return self.samples
        return [self.lengths.numel() // max(len(self.keys), 1)] * len(self.keys)

    def count_ids(self, features: Any) -> list[int]:
        """Ids of each key."""
        known = getattr(features, "length_per_key", None)
        if known is not None:
            return [int(count) for count in known()]
        parts = torch.split(self.lengths, self.strides())
        return [int(part.sum()) for part in parts]


class _Collection(Placed):
    """Base of collections: a group, a parameter for each table, and plans for keys of inputs."""

    _holder: str
    _update: Update = "step"
    _merge = False
    """Whether configurations of one name are one table."""
    _settings: Optimizer | None = None
    """The optimizer with which the engine is opened."""

    def __init__(self, tables: Sequence[Any], device: Any, **options: Any) -> None:
        super().__init__()
        plan = TablePlan(type(self).__name__, tables, self._merge)
        place = torch.device(device) if device is not None else torch.empty(0).device
        follows = place.type == "meta" or (device is None and place.type == "cpu")
        self._start_at(None if follows else place)
        self._configs = plan.configs
        self._names_by_table = plan.names
        self._names = [name for names in plan.names for name in names]
        self._dims = [table.dim for table, names in zip(plan.tables, plan.names, strict=True)
                      for _ in names]
        self._wanted: dict[str, tuple[str, ...]] = {}
        for keys, names in zip(plan.keys, plan.names, strict=True):
            for key, name in zip(keys, names, strict=True):
                self._wanted[key] = (*self._wanted.get(key, ()), name)
        self._plans: dict[tuple[str, ...], KeyedPlan] = {}
        self._group: Group | None = None
        rows = nn.ModuleDict()
        if place.type == "meta":
            for table in plan.tables:
                rows[table.name] = _Rows(nn.Parameter(torch.empty(
                    table.vocabulary_size, table.dim, device=place)))
        else:
            features = [Feature(name, table.name)
                        for table, names in zip(plan.tables, plan.names, strict=True)
                        for name in names]
            tables = [table._replace(optimizer=self._settings) for table in plan.tables]
            self._group = Group(tables, features, update=self._update, **options)
            for table in plan.tables:
                rows[table.name] = _Rows(self._group.parameter(table.name))
        self.add_module(self._holder, rows)
        self._weights = [weight for _, weight in rows.named_parameters()]
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Start all rows again, as their configurations say, by torch's generator."""
        with torch.no_grad():
            for config, weight in zip(self._configs, self._weights, strict=True):
                init_rows(config, weight)

    @property
    def device(self) -> torch.device:
        """The device of activations; of a collection on meta, that."""
        if self._group is None:
            return torch.device("meta")
        return self._place or torch.device("cpu")

    @property
    def engine(self) -> Engine:
        """The engine that has the tables. Another one after an optimizer was attached."""
        if self._group is None:
            raise NotSupportedError("a collection on meta has no engine; make it on cpu")
        return self._group.engine

    @property
    def embedding_names(self) -> list[str]:
        """Names of the outputs: of features, or ``feature@table`` where several tables have one."""
        return self._names

    def embedding_names_by_table(self) -> list[list[str]]:
        """Return the names of the outputs of each table."""
        return self._names_by_table

    def _plan(self, keys: tuple[str, ...]) -> KeyedPlan:
        missing = [key for key in self._wanted if key not in keys]
        if missing:
            raise UnknownNameError(
                f"features: there is no key '{missing[0]}'; they have {', '.join(keys)}, and the "
                f"collection looks up {', '.join(self._wanted)}")
        plan = make_plan(keys, self._wanted, tuple(self._names), tuple(self._dims))
        self._plans[keys] = plan
        return plan

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_plans": {}}


# -- pooled ----------------------------------------------------------------------------------


class EmbeddingBagCollection(_Collection):
    """Pooled embeddings of many features, as ``torchrec.EmbeddingBagCollection``, over an engine.

    Parameters
    ----------
    tables : sequence of EmbeddingBagConfig
        Ours or torchrec's, of different names.
    is_weighted : bool
        Ids have weights. A mean of them is divided by the sum of weights.
    device : torch.device, optional
        Where activations are wanted; rows are in the processor's memory. On meta there is no
        engine, and forward gives shapes alone.
    **options
        Options of :class:`embeng.Engine`, among them `cores`.

    Attributes
    ----------
    embedding_bags : nn.ModuleDict
        For each table its name, and a module with the parameter ``weight``: live memory of the
        engine.

    Raises
    ------
    InvalidError
        Two tables have one name; it is a ValueError, too.
    NotSupportedError
        A table is not FP32, or has an option that is not here.

    Notes
    -----
    Optimizers of :mod:`embeng.torch.optim` train it. Forward may be called from any number of
    threads; one thread at a time goes backward.
    """

    _holder = "embedding_bags"
    def __init__(self, tables: Sequence[Any], is_weighted: bool = False, device: Any = None,
                 **options: Any) -> None:
        self._is_weighted = is_weighted
        super().__init__(tables, device, **options)

    def forward(self, features: Any) -> KeyedTensor:
        """Look up and pool all features.

        Parameters
        ----------
        features : KeyedJaggedTensor
            Ours or torchrec's. Keys come in any order, and those that no table has are left alone.

        Returns
        -------
        KeyedTensor
            ``[batch, sum of dims]`` float32, the features of the first table first. A variable
            batch is spread over the whole one by its inverse indices.

        Raises
        ------
        UnknownNameError
            A feature is missing; it is a KeyError, too.
        OutOfRangeError
            An id is outside its table; it is an IndexError, too.
        """
        given = _Input(features, self._is_weighted)
        plan = self._plans.get(given.keys) or self._plan(given.keys)
        if self._group is None:
            shape = (given.strides()[0] if given.keys else 0, sum(self._dims))
            return KeyedTensor(self._names, self._dims, torch.empty(shape, device="meta"))
        output = lookup_keyed(self._group, plan, given.values, given.lengths, given.weights,
                              given.samples, self._weights)
        if given.samples is not None:
            output = self._spread(plan, given, output)
        if given.device is not None or not self._plain:
            output = self._deliver(output, given.device)
        return KeyedTensor(self._names, self._dims, output)

    def _spread(self, plan: KeyedPlan, given: _Input, output: Tensor) -> Tensor:
        """Give the blocks of a variable batch as one tensor of the whole batch."""
        if given.inverse is None:
            raise InvalidError(f"features: keys have {given.samples} samples, and there are no "
                               "inverse indices that say which of them each sample of the batch "
                               "is; give inverse_indices=(keys, Tensor)")
        assert given.samples is not None
        names, indices = list(given.inverse[0]), given.inverse[1].to("cpu", torch.int64)
        counts = [given.samples[key] for key in plan.keys]
        blocks = torch.split(output, [n * dim for n, dim in zip(counts, plan.dims, strict=True)])
        columns = []
        for block, key, dim in zip(blocks, plan.keys, plan.dims, strict=True):
            if given.keys[key] not in names:
                raise UnknownNameError(f"features: their inverse indices lack '{given.keys[key]}'; "
                                       f"they have {', '.join(names)}")
            row = indices[names.index(given.keys[key])]
            columns.append(block.reshape(-1, dim).index_select(0, row))
        return torch.cat(columns, 1)

    def is_weighted(self) -> bool:
        """Return whether ids have weights."""
        return self._is_weighted

    def embedding_bag_configs(self) -> list[Any]:
        """Return the configurations of the tables."""
        return self._configs


# -- not pooled ------------------------------------------------------------------------------------


class EmbeddingCollection(_Collection):
    """Rows of the ids of many features, as ``torchrec.EmbeddingCollection``, over an engine.

    Parameters
    ----------
    tables : sequence of EmbeddingConfig
        Ours or torchrec's, of different names. Unlike torchrec's they may have different dims.
    device : torch.device, optional
        As for :class:`EmbeddingBagCollection`.
    need_indices : bool
        Outputs have the ids as their weights.
    **options
        Options of :class:`embeng.Engine`.

    Attributes
    ----------
    embeddings : nn.ModuleDict
        For each table its name, and a module with the parameter ``weight``.
    """

    _holder = "embeddings"
    def __init__(self, tables: Sequence[Any], device: Any = None, need_indices: bool = False,
                 **options: Any) -> None:
        self._need_indices = need_indices
        super().__init__(tables, device, **options)

    def forward(self, features: Any) -> dict[str, JaggedTensor]:
        """Look up all features.

        Parameters
        ----------
        features : KeyedJaggedTensor
            Ours or torchrec's. Keys come in any order, and those that no table has are left alone.

        Returns
        -------
        dict of str to JaggedTensor
            For each output its name, and ``[ids, dim]`` float32 values with the lengths of the
            input.

        Raises
        ------
        UnknownNameError, OutOfRangeError
            As :meth:`EmbeddingBagCollection.forward`.
        """
        given = _Input(features, False)
        plan = self._plans.get(given.keys) or self._plan(given.keys)
        if self._group is None:
            raise NotSupportedError("a collection on meta cannot count ids; make it on cpu")
        counts = given.count_ids(features)
        output = self._deliver(lookup_keyed(self._group, plan, given.values, None, None, counts,
                                            self._weights), given.device)
        blocks = torch.split(output, [counts[key] * dim for key, dim in
                                      zip(plan.keys, plan.dims, strict=True)])
        bags, ids = [0, *accumulate(given.strides())], [0, *accumulate(counts)]
        found = {}
        for name, block, key, dim in zip(plan.names, blocks, plan.keys, plan.dims, strict=True):
            weights = given.values[ids[key]:ids[key + 1]] if self._need_indices else None
            lengths = given.lengths[bags[key]:bags[key + 1]]
            found[name] = JaggedTensor(block.view(-1, dim), _to(weights, output.device),
                                       lengths.to(output.device))
        return found

    def need_indices(self) -> bool:
        """Return whether outputs have ids as their weights."""
        return self._need_indices

    def embedding_dim(self) -> int:
        """Return the columns of the tables, which must be the same of all."""
        if len(set(self._dims)) > 1:
            raise InvalidError(f"the tables have {sorted(set(self._dims))} columns; ask "
                               "embedding_configs() for those of each")
        return self._dims[0]

    def embedding_configs(self) -> list[Any]:
        """Return the configurations of the tables."""
        return self._configs


def _to(tensor: Tensor | None, device: torch.device) -> Tensor | None:
    return None if tensor is None else tensor.to(device)

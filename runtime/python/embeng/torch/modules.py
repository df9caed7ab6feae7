# SPDX-License-Identifier: MIT
"""``EmbeddingBag`` and ``Embedding`` with the signatures of ``torch.nn``, over an engine."""
from typing import Any

import torch
from torch import Tensor, nn

from .. import optimizers
from .._engine import Engine, Feature, Table
from .._errors import InvalidError, NotSupportedError
from ..initializers import Initializer
from . import ops
from ._group import FLAT, MATRIX, SPLITS, STARTS, Group, Layout, Update
from ._placed import Placed
from ._table import TableParameter

OptimizerLike = optimizers.Optimizer | type[torch.optim.Optimizer] | None


def _check_dtype(dtype: Any, weight: Tensor | None) -> None:
    given = weight.dtype if weight is not None else dtype
    if given not in (None, torch.float32):
        raise NotSupportedError(f"dtype is {given}; tables are torch.float32. Activations come in "
                                "another dtype after module.to(dtype)")


def _check_device(device: Any) -> torch.device | None:
    if device is None:
        return None
    found = torch.device(device)
    if found.type == "meta":
        raise NotSupportedError("device is meta; the rows of a table are in the processor's "
                                "memory. Make the module on cpu, or on the device that wants "
                                "activations")
    return found


def _fixed_optimizer(optimizer: OptimizerLike) -> optimizers.Optimizer | None:
    if optimizer is None or isinstance(optimizer, optimizers.Optimizer):
        return optimizer
    from .optim import settings_of_class

    return settings_of_class(optimizer)


class _TableModule(Placed):
    """The base of both modules: one table, one feature, its parameter ``weight``."""

    weight: TableParameter
    _group: Group
    num_embeddings: int
    embedding_dim: int
    padding_idx: int | None
    max_norm: float | None
    norm_type: float
    scale_grad_by_freq: bool
    sparse: bool

    # For a module that DDP wraps itself; distribute() tells DDP of those within a model.
    _ddp_params_and_buffers_to_ignore = ("weight",)

    def _open(self, combiner: str, weight: Tensor | None, device: Any, dtype: Any,
              settings: dict[str, Any], frozen: bool) -> None:
        _check_dtype(dtype, weight)
        self._start_at(_check_device(device))
        if self.num_embeddings < 1 or self.embedding_dim < 1:
            raise InvalidError(f"the table has the shape ({self.num_embeddings}, "
                               f"{self.embedding_dim}); both are at least 1")
        if weight is not None and tuple(weight.shape) != (self.num_embeddings,
                                                          self.embedding_dim):
            raise InvalidError(f"_weight has the shape {tuple(weight.shape)}; it is "
                               f"({self.num_embeddings}, {self.embedding_dim})")
        name: str = settings["name"] or "weight"
        initializer: Initializer | None = settings["initializer"]
        table = Table(name, self.num_embeddings, self.embedding_dim, combiner,
                      optimizer=_fixed_optimizer(settings["optimizer"]), initializer=initializer)
        if self.scale_grad_by_freq and table.optimizer:
            table = table._replace(optimizer=optimizers.Optimizer(
                table.optimizer.kind, table.optimizer.learning_rate,
                **{**table.optimizer.settings, "scale_by_frequency": True}))
        if settings["shared"] is not None:
            self._group, name = settings["shared"]
        else:
            self._group = Group([table], [Feature(name, name)], update=settings["update"],
                                engine=settings["engine"], **settings["options"])
        self._check_hosted()
        self._group.scales[name] = self.scale_grad_by_freq
        self.weight = self._group.parameter(name, not frozen)
        if weight is not None:
            self.weight.data = weight.detach()
        elif initializer is None:
            self.reset_parameters()

    def _check_hosted(self) -> None:
        if self._group.hosts > 1 and self.max_norm is not None:
            raise NotSupportedError(f"max_norm is {self.max_norm}; rows that lie on several "
                                    f"hosts are "
                                    "not shortened before a lookup. Leave it None")

    def _check_padding(self, padding_idx: int | None) -> int | None:
        if padding_idx is None:
            return None
        if not -self.num_embeddings <= padding_idx < self.num_embeddings:
            raise InvalidError(f"padding_idx is {padding_idx}; the table has the rows 0 to "
                               f"{self.num_embeddings - 1}")
        return padding_idx % self.num_embeddings

    def reset_parameters(self) -> None:
        """Draw the rows from a normal distribution by torch's generator, as ``torch.nn`` does."""
        hosted = self._group.hosts > 1
        rows: Tensor = torch.empty(self.weight.shape, dtype=torch.float32, device="cpu") \
            if hosted else self.weight
        nn.init.normal_(rows)
        if self.padding_idx is not None:
            with torch.no_grad():
                rows[self.padding_idx].fill_(0)
        if hosted:
            self.weight.data = rows

    @property
    def engine(self) -> Engine:
        """The engine that has the table. Another one after an optimizer was attached."""
        return self._group.engine

    @property
    def update(self) -> Update:
        """When gradients are applied."""
        return self._group.update

    # -- what torch does to all modules

    def register_parameter(self, name: str, param: nn.Parameter | None) -> None:
        """Register a parameter.

        One that is assigned to ``weight`` is copied into the table, unless it is the table of
        another module: then both have that one.
        """
        if name != "weight":
            super().register_parameter(name, param)
        elif isinstance(param, TableParameter):
            shared = param.group is not self._group
            if shared:
                self._check_sharing(param)
                self._group = param.group
            super().register_parameter(name, param)
            if shared:
                self._layouts_again()
        elif param is None:
            raise InvalidError("weight is None; a table has rows")
        else:
            self.weight.data = param.detach()
            self.weight.requires_grad_(param.requires_grad)

    def _check_sharing(self, param: TableParameter) -> None:
        if param.shape != self.weight.shape:
            raise InvalidError(f"the table of another module has the shape {tuple(param.shape)}; "
                               f"this module's is {tuple(self.weight.shape)}")
        mode = getattr(self, "mode", None)
        known = param.group.table(param.table).combiner
        if mode is not None and mode != known:
            raise NotSupportedError(f"the table of another module has the mode {known!r}, this "
                                    f"module {mode!r}; one table has one mode")

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        self._layouts_again()

    def _layouts_again(self) -> None:
        raise NotImplementedError

    # -- parts of forward()

    def _renormalize(self, ids: Tensor) -> None:
        """Shorten the rows that are looked up, as torch does. Ids that are wrong raise later."""
        if not ids.numel():
            return
        if ids.dtype in (torch.int32, torch.int64):
            low, high = torch.aminmax(ids)
            if int(low) >= 0 and int(high) < self.num_embeddings:
                torch.embedding_renorm_(self.weight.detach(), ids.detach().reshape(-1),
                                        float(self.max_norm or 0), self.norm_type)


class EmbeddingBag(_TableModule):
    """Sums, means or maxima of bags of rows, as ``torch.nn.EmbeddingBag``, over an engine.

    Parameters
    ----------
    num_embeddings, embedding_dim, max_norm, norm_type, scale_grad_by_freq, mode, sparse, _weight, \
include_last_offset, padding_idx, device, dtype
        As for ``torch.nn.EmbeddingBag``, with these rules. `sparse` has no effect: gradients never
        are of the table's size. `scale_grad_by_freq` divides by how often a row is in a step, which
        is how often it is in a batch unless backwards are accumulated. `dtype` is float32 or None.
        `device` says where activations are wanted; rows are in the processor's memory.
    optimizer : embeng.Optimizer, or a class of torch.optim or embeng.torch.optim, optional
        With which the engine is opened. Without it the engine is opened again, with a copy of all
        rows, when an optimizer gets the parameters; give it for tables that fill the memory.
    update : {"step", "backward"}
        Whether gradients wait for ``optimizer.step()``, or are applied by ``backward()``.
    engine : Engine, optional
        An open engine to which the table is added; by default the module opens one. Its optimizers
        are those of `optimizer=`.
    initializer : Initializer, optional
        The engine's own initializer, for large tables. By default rows are drawn by torch's
        generator: after ``torch.manual_seed()`` they are those of ``torch.nn.EmbeddingBag``.
    name : str, optional
        The name of the table and of its feature in the engine; ``weight`` by default.
    **options
        Options of the :class:`embeng.Engine` that the module opens. ``group=`` lays the table on
        the hosts of a group, or "mpi" or "torch", which opens one; ``replicas=`` is the number of
        hosts then, unless it is given. All hosts make the same calls of the module in the same
        order.

    Attributes
    ----------
    weight : TableParameter
        The rows, ``[num_embeddings, embedding_dim]`` of float32: the engine's own memory.

    Notes
    -----
    ``to()``, ``half()`` and their kin leave the table where it is, in float32. They say on which
    device and in which dtype activations come; without them that is the device of the ids.
    `max_norm` shortens rows before the lookup that finds them too long, as torch's does, in place;
    programs with it compile in parts. With `mode` "max" gradients go to the rows that hold the
    largest numbers when ``backward()`` runs. ``vmap`` and ``torch.func`` do not go through tables.
    Forward may be called from any number of threads; one thread at a time goes backward.
    """

    def __init__(self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None,
                 norm_type: float = 2.0, scale_grad_by_freq: bool = False, mode: str = "mean",
                 sparse: bool = False, _weight: Tensor | None = None,
                 include_last_offset: bool = False, padding_idx: int | None = None,
                 device: Any = None, dtype: Any = None, *, optimizer: OptimizerLike = None,
                 update: Update = "step", engine: Engine | None = None,
                 initializer: Initializer | None = None, name: str | None = None,
                 _freeze: bool = False, _shared: "tuple[Group, str] | None" = None,
                 **options: Any):
        super().__init__()
        if mode not in ("sum", "mean", "max"):
            raise InvalidError(f"mode is {mode!r}; it is \"sum\", \"mean\" or \"max\"")
        if mode == "max" and scale_grad_by_freq:
            raise InvalidError("mode \"max\" goes without scale_grad_by_freq, as in torch")
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq, self.mode, self.sparse = scale_grad_by_freq, mode, sparse
        self.include_last_offset = include_last_offset
        self.padding_idx = self._check_padding(padding_idx)
        self._open(mode, _weight, device, dtype,
                   {"optimizer": optimizer, "update": update, "engine": engine,
                    "initializer": initializer, "name": name, "shared": _shared,
                    "options": options}, _freeze)
        self._layouts_again()

    def _layouts_again(self) -> None:
        group, name = self._group, self._group.feature(self.weight.table)
        form = SPLITS if self.include_last_offset else STARTS
        self._matrix = group.layout(Layout(name, MATRIX, self.padding_idx))
        self._offset = group.layout(Layout(name, form, self.padding_idx))

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True,
                        max_norm: float | None = None, norm_type: float = 2.0,
                        scale_grad_by_freq: bool = False, mode: str = "mean",
                        sparse: bool = False, include_last_offset: bool = False,
                        padding_idx: int | None = None, **ours: Any) -> "EmbeddingBag":
        """Make a module with a copy of these rows, as ``torch.nn.EmbeddingBag`` does.

        `freeze` keeps the rows as they are. Arguments by keyword beyond torch's are the module's.
        """
        if embeddings.dim() != 2:
            raise InvalidError(f"embeddings have {embeddings.dim()} dimensions; they have 2")
        return cls(embeddings.shape[0], embeddings.shape[1], max_norm, norm_type,
                   scale_grad_by_freq, mode, sparse, embeddings, include_last_offset, padding_idx,
                   _freeze=freeze, **ours)

    def forward(self, input: Tensor, offsets: Tensor | None = None,
                per_sample_weights: Tensor | None = None) -> Tensor:
        """Look up bags.

        Parameters
        ----------
        input : Tensor of int32 or int64
            Ids ``[bags, ids]``, or ``[ids]`` with `offsets`.
        offsets : Tensor of int32 or int64, optional
            Where each bag begins, ``[bags]``; with `include_last_offset` ``[bags + 1]``.
        per_sample_weights : Tensor of float32, optional
            As many as ids. Torch has them with "sum" alone; here "mean" divides by their sum.

        Returns
        -------
        Tensor
            ``[bags, embedding_dim]``; an empty bag is zeros.

        Raises
        ------
        OutOfRangeError
            An id is outside the table; it is an IndexError, too.
        """
        device = None
        if per_sample_weights is not None:
            per_sample_weights = self._check_weights(input, per_sample_weights)
        if not input.is_cpu:
            device, input = input.device, input.cpu()
        dims = input.dim()
        if dims == 2:
            if offsets is not None:
                raise InvalidError("offsets go with ids of one dimension; the rows of a matrix are "
                                   "bags already")
            number = self._matrix
        elif dims == 1:
            if offsets is None:
                raise InvalidError("ids of one dimension need offsets: where each bag begins")
            if not offsets.is_cpu:
                offsets = offsets.cpu()
            number = self._offset
        else:
            raise InvalidError(f"input has {dims} dimensions; it has 1 or 2")
        if self.max_norm is not None:
            self._renormalize(input)
        weight = self._parameters.get("weight")
        output = ops.lookup_one(self._group, number, input, offsets, per_sample_weights,
                                weight)
        if device is None and self._plain:
            return output
        return self._deliver(output, device)

    def _check_weights(self, ids: Tensor, weights: Tensor) -> Tensor:
        if weights.shape != ids.shape:
            raise InvalidError(f"per_sample_weights have the shape {tuple(weights.shape)}; it is "
                               f"that of the ids, {tuple(ids.shape)}")
        if self.mode == "max":
            raise NotSupportedError("per_sample_weights go with mode \"sum\" and \"mean\"")
        weights = weights.float()
        return weights if weights.is_cpu else weights.cpu()

    def extra_repr(self) -> str:
        """Describe the module in one line, as torch does."""
        parts = [f"{self.num_embeddings}, {self.embedding_dim}"]
        if self.max_norm is not None:
            parts.append(f"max_norm={self.max_norm!r}")
        if self.norm_type != 2:
            parts.append(f"norm_type={self.norm_type!r}")
        if self.scale_grad_by_freq:
            parts.append("scale_grad_by_freq=True")
        parts.append(f"mode={self.mode!r}")
        if self.padding_idx is not None:
            parts.append(f"padding_idx={self.padding_idx!r}")
        if self.update != "step":
            parts.append(f"update={self.update!r}")
        return ", ".join(parts)


class Embedding(_TableModule):
    """Rows by their ids, as ``torch.nn.Embedding``, over an engine.

    Parameters
    ----------
    num_embeddings, embedding_dim, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse, \
_weight, _freeze, device, dtype
        As for ``torch.nn.Embedding``, with the rules of :class:`EmbeddingBag`. The row of
        `padding_idx` is looked up as any other, and gets no gradient.
    optimizer, update, engine, initializer, name, **options
        As for :class:`EmbeddingBag`.
    """

    def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None,
                 max_norm: float | None = None, norm_type: float = 2.0,
                 scale_grad_by_freq: bool = False, sparse: bool = False,
                 _weight: Tensor | None = None, _freeze: bool = False, device: Any = None,
                 dtype: Any = None, *, optimizer: OptimizerLike = None, update: Update = "step",
                 engine: Engine | None = None, initializer: Initializer | None = None,
                 name: str | None = None, _shared: "tuple[Group, str] | None" = None,
                 **options: Any):
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse
        self.padding_idx = self._check_padding(padding_idx)
        self._open("sum", _weight, device, dtype,
                   {"optimizer": optimizer, "update": update, "engine": engine,
                    "initializer": initializer, "name": name, "shared": _shared,
                    "options": options}, _freeze)
        self._layouts_again()

    def _layouts_again(self) -> None:
        name = self._group.feature(self.weight.table)
        self._flat = self._group.layout(Layout(name, FLAT, None, self.padding_idx))

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True,
                        padding_idx: int | None = None, max_norm: float | None = None,
                        norm_type: float = 2.0, scale_grad_by_freq: bool = False,
                        sparse: bool = False, **ours: Any) -> "Embedding":
        """Make a module with a copy of these rows, as ``torch.nn.Embedding`` does.

        `freeze` keeps the rows as they are. Arguments by keyword beyond torch's are the module's.
        """
        if embeddings.dim() != 2:
            raise InvalidError(f"embeddings have {embeddings.dim()} dimensions; they have 2")
        return cls(embeddings.shape[0], embeddings.shape[1], padding_idx, max_norm, norm_type,
                   scale_grad_by_freq, sparse, embeddings, freeze, **ours)

    def forward(self, input: Tensor) -> Tensor:
        """Look up rows.

        Parameters
        ----------
        input : Tensor of int32 or int64
            Ids, of any shape.

        Returns
        -------
        Tensor
            ``[*input.shape, embedding_dim]``.

        Raises
        ------
        OutOfRangeError
            An id is outside the table; it is an IndexError, too.
        """
        device = None
        if not input.is_cpu:
            device, input = input.device, input.cpu()
        if self.max_norm is not None:
            self._renormalize(input)
        weight = self._parameters.get("weight")
        output = ops.lookup_one(self._group, self._flat, input, None, None,
                                weight)
        if device is None and self._plain:
            return output
        return self._deliver(output, device)

    def extra_repr(self) -> str:
        """Describe the module in one line, as torch does."""
        parts = [f"{self.num_embeddings}, {self.embedding_dim}"]
        if self.padding_idx is not None:
            parts.append(f"padding_idx={self.padding_idx}")
        if self.max_norm is not None:
            parts.append(f"max_norm={self.max_norm}")
        if self.norm_type != 2:
            parts.append(f"norm_type={self.norm_type}")
        if self.scale_grad_by_freq:
            parts.append("scale_grad_by_freq=True")
        if self.sparse:
            parts.append("sparse=True")
        if self.update != "step":
            parts.append(f"update={self.update!r}")
        return ", ".join(parts)

# SPDX-License-Identifier: MIT
"""Collections whose tables are trained by backward(), with torchrec's interfaces.

The optimizer is a part of the collection. Its hyperparameters are in
``fused_optimizer().param_groups`` and may be changed between steps, by schedulers too.
"""
import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import nn

from .. import optimizers
from .._errors import InvalidError, NotSupportedError
from . import optim
from ._group import Update
from .collections import EmbeddingBagCollection, EmbeddingCollection
from .optim import TableOptimizer

# Names of FBGEMM's kinds, as torchrec has them in EmbOptimType, and their defaults.
_KINDS: dict[str, type[TableOptimizer]] = {
    "SGD": optim.SGD,
    "EXACT_SGD": optim.SGD,
    "EXACT_ADAGRAD": optim.Adagrad,
    "EXACT_ROWWISE_ADAGRAD": optim.RowWiseAdagrad,
    "EXACT_ROW_WISE_ADAGRAD": optim.RowWiseAdagrad,
    "ADAM": optim.Adam,
    "PARTIAL_ROWWISE_ADAM": optim.Tables,
    "PARTIAL_ROW_WISE_ADAM": optim.Tables,
}
_KIND_DEFAULTS = {"lr": 0.01, "eps": 1e-8}
# Classes of torchrec.optim, which stand for kinds without a formula of their own.
_BY_NAME: dict[str, type[TableOptimizer]] = {
    "SGD": optim.SGD, "Adagrad": optim.Adagrad, "RowWiseAdagrad": optim.RowWiseAdagrad,
    "Adam": optim.Adam, "PartialRowWiseAdam": optim.Tables,
}
# Settings of FBGEMM that change nothing for tables of float32.
_WITHOUT_EFFECT = ("stochastic_rounding",)


def _find_class(kind: Any) -> tuple[type[TableOptimizer], dict[str, Any]]:
    """Find the class of an optimizer type, and hyperparameters that are its own defaults."""
    if isinstance(kind, type):
        if issubclass(kind, TableOptimizer):
            return kind, {}
        if kind in optim.BY_TORCH:
            return optim.BY_TORCH[kind], {}
        if kind.__module__.split(".")[0] == "torchrec" and kind.__name__ in _BY_NAME:
            return _BY_NAME[kind.__name__], {}
        known = ", ".join(cls.__name__ for cls in optim.BY_TORCH)
        raise NotSupportedError(
            f"optimizer_type: {kind.__module__}.{kind.__name__} has no counterpart for tables; "
            f"those of torch.optim are {known}, and embeng.torch.optim has RowWiseAdagrad and "
            "Tables")
    name = str(getattr(kind, "name", kind)).upper()
    if name not in _KINDS:
        raise NotSupportedError(f"optimizer_type: {name} has no counterpart for tables; those by "
                                f"name are {', '.join(_KINDS)}")
    return _KINDS[name], dict(_KIND_DEFAULTS)


def _rename(given: Mapping[str, Any]) -> dict[str, Any]:
    """Give hyperparameters in torch's names, where they are in FBGEMM's."""
    found = {name: value for name, value in given.items() if name not in _WITHOUT_EFFECT}
    if "learning_rate" in found:
        found.setdefault("lr", found.pop("learning_rate"))
    if "beta1" in found or "beta2" in found:
        first, second = found.get("betas", (0.9, 0.999))
        found["betas"] = (found.pop("beta1", first), found.pop("beta2", second))
    return found


def _take_decay_mode(cls: type[TableOptimizer],
                     hyper: dict[str, Any]) -> type[TableOptimizer]:
    """Read FBGEMM's weight_decay_mode: in the gradient, or beside it."""
    mode = hyper.pop("weight_decay_mode", None)
    name = "NONE" if mode is None else str(getattr(mode, "name", mode)).upper()
    if name in ("NONE", "L2"):
        return cls
    if name == "DECOUPLE" and issubclass(cls, optim.Adam):
        return optim.AdamW
    raise NotSupportedError(f"optimizer_kwargs: weight_decay_mode is {name}; it may be NONE or L2, "
                            "and of Adam DECOUPLE")


def _describe_partial_adam(hyper: Mapping[str, Any]) -> dict[str, Any]:
    _check_names("PARTIAL_ROWWISE_ADAM", hyper, {"lr", "eps", "betas", "weight_decay"})
    first, second = hyper.get("betas", (0.9, 0.999))
    return {"optimizer": optimizers.partial_rowwise_adam(
        hyper.get("lr", 0.01), beta_1=first, beta_2=second, epsilon=hyper.get("eps", 1e-8),
        weight_decay_factor=hyper.get("weight_decay", 0.0), weight_decay_in_gradient=True)}


def _check_names(kind: str, given: Mapping[str, Any], known: Iterable[str]) -> None:
    strange = [name for name in given if name not in set(known)]
    if strange:
        raise InvalidError(f"optimizer_kwargs: {kind} has no '{strange[0]}'; it has "
                           f"{', '.join(sorted(known))}")


class FusedOptimizer(NamedTuple):
    """The optimizer of a fused collection, before its tables are there.

    Parameters
    ----------
    cls : type
        A class of :mod:`embeng.torch.optim`.
    kwargs : dict
        Its arguments behind the parameters.
    """

    cls: type[TableOptimizer]
    kwargs: dict[str, Any]

    @classmethod
    def choose(cls, kind: Any, given: Mapping[str, Any] | None) -> "FusedOptimizer":
        """Choose one as torchrec's programs name it.

        Parameters
        ----------
        kind : type or str or enum
            A class of torch.optim, of :mod:`embeng.torch.optim` or of torchrec.optim; or a member
            of EmbOptimType or its name, whose defaults are a learning rate of 0.01 and an epsilon
            of 1e-8.
        given : mapping, optional
            Its hyperparameters, in torch's names or FBGEMM's: lr or learning_rate, eps, betas or
            beta1 and beta2, weight_decay, weight_decay_mode.

        Raises
        ------
        NotSupportedError
            There is no such optimizer.
        InvalidError
            The optimizer has no such hyperparameter.
        """
        chosen, defaults = _find_class(kind)
        hyper = _rename(given or {})
        chosen = _take_decay_mode(chosen, hyper)
        if chosen is optim.Tables and "optimizer" not in hyper:
            return cls(chosen, _describe_partial_adam(hyper))
        known = set(inspect.signature(chosen).parameters) - {"params"}
        _check_names(chosen.__name__, hyper, known)
        start = {name: value for name, value in defaults.items() if name in known}
        return cls(chosen, {**start, **hyper})

    def settings(self) -> optimizers.Optimizer:
        """Return what the engine is opened with, so that it need not be opened again."""
        if issubclass(self.cls, optim.Tables):
            given: optimizers.Optimizer = self.kwargs["optimizer"]
            return optimizers.Optimizer(given.kind, "learning_rate", **given.settings)
        hyper = {name: parameter.default for name, parameter in
                 inspect.signature(self.cls).parameters.items() if name != "params"}
        hyper.update(self.kwargs)
        if issubclass(self.cls, optim.AdamW):
            hyper["decoupled_weight_decay"] = True
        return self.cls.settings(hyper)

    def make(self, params: Iterable[nn.Parameter]) -> TableOptimizer:
        """Make it for these tables."""
        return self.cls(params, **self.kwargs)


class _Fused:
    """Base of fused collections: it has their optimizer."""

    _update: Update = "backward"
    _merge = True
    _optimizer: TableOptimizer | None

    def fused_optimizer(self) -> TableOptimizer:
        """Return the optimizer, which backward() drives: step() of it has nothing to do.

        ``param_groups`` may be changed; ``state_dict()`` has torch's names.
        """
        if self._optimizer is None:
            raise NotSupportedError("a collection on meta has no optimizer; make it on cpu")
        return self._optimizer


class FusedEmbeddingBagCollection(_Fused, EmbeddingBagCollection):
    """Pooled embeddings that backward() trains, as torchrec's class of this name, over an engine.

    Parameters
    ----------
    tables : sequence of EmbeddingBagConfig
        Ours or torchrec's. Configurations of one name and one shape are one table with the features
        of all of them.
    optimizer_type, optimizer_kwargs
        As for :meth:`FusedOptimizer.choose`.
    is_weighted, device, **options
        As for :class:`EmbeddingBagCollection`.
    location
        Taken for compatibility: rows are in the processor's memory.

    Notes
    -----
    Each backward() is a step: what is accumulated over several is not one.
    """

    def __init__(self, tables: Sequence[Any], optimizer_type: Any,
                 optimizer_kwargs: Mapping[str, Any] | None = None, is_weighted: bool = False,
                 device: Any = None, location: Any = None, **options: Any) -> None:
        chosen = FusedOptimizer.choose(optimizer_type, optimizer_kwargs)
        self._settings = chosen.settings()
        EmbeddingBagCollection.__init__(self, tables, is_weighted, device, **options)
        self._optimizer = None if self._group is None else chosen.make(self.parameters())


class FusedEmbeddingCollection(_Fused, EmbeddingCollection):
    """Rows of ids that backward() trains, as torchrec's class of this name, over an engine.

    Parameters are those of :class:`FusedEmbeddingBagCollection` and :class:`EmbeddingCollection`.
    """

    def __init__(self, tables: Sequence[Any], optimizer_type: Any,
                 optimizer_kwargs: Mapping[str, Any] | None = None, device: Any = None,
                 need_indices: bool = False, location: Any = None, **options: Any) -> None:
        chosen = FusedOptimizer.choose(optimizer_type, optimizer_kwargs)
        self._settings = chosen.settings()
        EmbeddingCollection.__init__(self, tables, device, need_indices, **options)
        self._optimizer = None if self._group is None else chosen.make(self.parameters())


def _fuse(module: nn.Module, kind: Any, given: Mapping[str, Any] | None,
          device: Any) -> nn.Module | None:
    """Make the fused collection of a collection of ours or of torchrec's, with its rows."""
    made: FusedEmbeddingBagCollection | FusedEmbeddingCollection
    name = type(module).__name__
    if isinstance(module, _Fused):
        return None
    found: Any = module
    if name == "EmbeddingBagCollection" and hasattr(module, "embedding_bag_configs"):
        made = FusedEmbeddingBagCollection(found.embedding_bag_configs(), kind, given,
                                           found.is_weighted(), device)
    elif name == "EmbeddingCollection" and hasattr(module, "embedding_configs"):
        made = FusedEmbeddingCollection(found.embedding_configs(), kind, given, device,
                                        found.need_indices())
    else:
        return None
    rows = module.state_dict()
    if not any(tensor.is_meta for tensor in rows.values()):
        made.load_state_dict(rows)
    made.train(module.training)
    return made


def fuse_embedding_optimizer(model: nn.Module, optimizer_type: Any,
                             optimizer_kwargs: Mapping[str, Any] | None = None,
                             device: torch.device | None = None,
                             location: Any = None) -> nn.Module:
    """Replace the collections of a model by fused ones, in place, with their rows.

    Parameters
    ----------
    model : nn.Module
        Its collections are ours or torchrec's.
    optimizer_type, optimizer_kwargs
        As for :meth:`FusedOptimizer.choose`.
    device : torch.device, optional
        Where activations are wanted.
    location
        Taken for compatibility.

    Returns
    -------
    nn.Module
        The model, or what replaces it if it is a collection itself.
    """
    whole = _fuse(model, optimizer_type, optimizer_kwargs, device)
    if whole is not None:
        return whole
    for name, child in list(model.named_children()):
        setattr(model, name, fuse_embedding_optimizer(child, optimizer_type, optimizer_kwargs,
                                                      device))
    return model

# SPDX-License-Identifier: MIT
"""Swap the embeddings of a model, and the optimizer that trains them, for those of this package."""
from collections.abc import Callable
from typing import Any, overload

import torch
from torch import nn

from .._engine import Feature, Table
from .._errors import InvalidError, NotSupportedError
from ..optimizers import Optimizer as Settings
from . import optim
from ._group import Group, Update
from .modules import Embedding, EmbeddingBag

Choice = int | Callable[[str, nn.Module], bool]


def _settings(module: nn.Module) -> dict[str, Any]:
    names = ["max_norm", "norm_type", "scale_grad_by_freq", "sparse", "padding_idx"]
    if isinstance(module, nn.EmbeddingBag):
        names += ["mode", "include_last_offset"]
    return {name: getattr(module, name) for name in names}


_Shared = dict[int, tuple[Group, str]]


def _share(found: dict[str, Any], settings: dict[int, Any], update: Update,
           options: dict[str, Any]) -> _Shared:
    """Open one engine for all tables, so that one update of it is a step of the model."""
    if not options:
        return {}
    if update != "step":
        raise NotSupportedError(f'update is {update!r}; where tables share an engine, each of its '
                                'updates is a step of all, so that it is "step"')
    names: dict[int, str] = {}
    tables = []
    for path, module in found.items():
        if id(module.weight) in names:
            continue
        name = names[id(module.weight)] = path or "weight"
        optimizer = settings.get(id(module.weight))
        if optimizer and module.scale_grad_by_freq:
            optimizer = Settings(optimizer.kind, optimizer.learning_rate,
                                 **{**optimizer.settings, "scale_by_frequency": True})
        combiner = module.mode if isinstance(module, nn.EmbeddingBag) else "sum"
        tables.append(Table(name, module.num_embeddings, module.embedding_dim, combiner, optimizer))
    group = Group(tables, [Feature(t.name, t.name) for t in tables], update=update, **options)
    return {key: (group, name) for key, name in names.items()}


def _make(module: Any, optimizer: Any, update: Update,
          shared: _Shared) -> Embedding | EmbeddingBag:
    cls: Any = EmbeddingBag if isinstance(module, nn.EmbeddingBag) else Embedding
    weight = module.weight
    made = cls(module.num_embeddings, module.embedding_dim, **_settings(module),
               _weight=weight.detach().cpu(), _freeze=not weight.requires_grad,
               device=None if weight.device.type == "cpu" else weight.device,
               optimizer=optimizer, update=update, _shared=shared.get(id(weight)))
    made.train(module.training)
    return made  # type: ignore[no-any-return]


def _is_chosen(tables: Choice, name: str, module: nn.Module) -> bool:
    if type(module) not in (nn.Embedding, nn.EmbeddingBag):
        return False
    if callable(tables):
        return tables(name, module)
    return int(module.num_embeddings) >= tables  # type: ignore[arg-type]


def _find(model: nn.Module, tables: Choice) -> dict[str, Any]:
    return {name: module for name, module in model.named_modules(remove_duplicate=False)
            if _is_chosen(tables, name, module)}


def _users(model: nn.Module) -> dict[int, list[str]]:
    """Name who has each parameter, to find weights that are tied to other kinds of modules."""
    users: dict[int, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        users.setdefault(id(parameter), []).append(name)
    return users


def _check_sharing(found: dict[str, Any]) -> None:
    """Refuse weights that embeddings of different modes or settings share."""
    first: dict[int, Any] = {}
    for name, module in found.items():
        known = first.setdefault(id(module.weight), module)
        if known is not module and (type(known) is not type(module) or
                                    _settings(known) != _settings(module)):
            raise NotSupportedError(
                f"{name} shares its weight with an embedding of other settings; one table has one "
                "mode. Choose others by tables=")


def _settings_by_weight(optimizer: torch.optim.Optimizer | None) -> dict[int, Any]:
    """Compute the engine's optimizer of each table, so that each engine is opened once."""
    if optimizer is None:
        return {}
    cls = optim.counterpart(type(optimizer))  # refuses a class before anything is swapped
    return {id(p): cls.settings(hyper, f"{k}." if k else "")
            for k, hyper in enumerate(optimizer.param_groups) for p in hyper["params"]}


def _swap(model: nn.Module, found: dict[str, Any], settings: dict[int, Any],
          update: Update, shared: _Shared) -> dict[int, Any]:
    """Put new modules in place. Return parameters of before, by id, with those of now."""
    made: dict[int, Any] = {}
    changed: dict[int, Any] = {}
    users = _users(model)
    for name, module in found.items():
        old = module.weight
        if id(old) not in made:
            made[id(old)] = _make(module, settings.get(id(old)), update, shared)
            changed[id(old)] = (old, made[id(old)].weight)
        path, _, last = name.rpartition(".")
        setattr(model.get_submodule(path), last, made[id(old)])
    for key, (_, new) in changed.items():
        for user in users[key]:
            path, _, last = user.rpartition(".")
            if path not in found:
                setattr(model.get_submodule(path), last, new)
    return changed


def _move(optimizer: torch.optim.Optimizer, changed: dict[int, Any]) -> None:
    """Let an optimizer have the new parameters, with the state of the old ones."""
    for group in optimizer.param_groups:
        group["params"] = [changed[id(p)][1] if id(p) in changed else p for p in group["params"]]
    for old, new in changed.values():
        if old in optimizer.state:
            optimizer.state[new] = optimizer.state.pop(old)


@overload
def convert(model: nn.Module, optimizer: None = None, *, tables: Choice = 0,
            update: Update = "step", **options: Any) -> nn.Module: ...
@overload
def convert(model: nn.Module, optimizer: torch.optim.Optimizer, *, tables: Choice = 0,
            update: Update = "step", **options: Any) -> tuple[nn.Module, optim.TableOptimizer]: ...
def convert(model: nn.Module, optimizer: torch.optim.Optimizer | None = None, *,
            tables: Choice = 0, update: Update = "step", **options: Any) -> Any:
    """Swap ``nn.Embedding`` and ``nn.EmbeddingBag`` within a model, in place.

    ``model, optimizer = embeng.torch.convert(model, optimizer)`` is all that a program changes.

    Parameters
    ----------
    model : nn.Module
        The model. If it is an embedding itself, use what is returned.
    optimizer : torch.optim.Optimizer, optional
        Trains the model. It must be of a class that :mod:`embeng.torch.optim` has, too, and is not
        to be used any more. Make schedulers afterwards.
    tables : int or callable
        Swap tables of at least so many rows, or those for which ``tables(name, module)`` is true.
        All by default. Subclasses of torch's modules stay as they are.
    update : {"step", "backward"}
        As for :class:`EmbeddingBag`.
    **options
        Options of one :class:`embeng.Engine` that has all tables; without any, each table has an
        engine of its own. ``group=`` lays the tables on the hosts of a group, or "mpi" or "torch",
        which opens one; ``replicas=`` is the number of hosts then, unless it is given. All hosts
        convert the same model, and the rows of host 0 count.

    Returns
    -------
    nn.Module, or (nn.Module, TableOptimizer)
        The model, and with `optimizer` the one to use from now on, with the state of before.

    Notes
    -----
    Rows are equal to before, bit for bit. Modules that shared a weight become one module, and a
    weight that is tied to another kind of module, such as ``nn.Linear``, stays tied. State dicts
    keep their names. Each table is copied once, so that the memory of the largest is needed
    beside that of all.
    """
    found = _find(model, tables)
    if not found:
        raise InvalidError("the model has no nn.Embedding or nn.EmbeddingBag that tables= chooses")
    _check_sharing(found)
    settings = _settings_by_weight(optimizer)
    shared = _share(found, settings, update, options)
    if "" in found:
        made = _make(model, settings.get(id(model.weight)), update, shared)
        changed = {id(model.weight): (model.weight, made.weight)}
        model = made
    else:
        changed = _swap(model, found, settings, update, shared)
    if optimizer is None:
        return model
    _move(optimizer, changed)
    return model, optim.wrap(optimizer)

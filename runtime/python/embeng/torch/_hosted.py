# SPDX-License-Identifier: MIT
"""Tables that lie on the hosts of a group: parameters without memory, and states with rows.

No host has all rows, so that a table's parameter has a shape and nothing else here. Rows are read
and written by calls that all hosts make.
"""
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn

from .._errors import NotSupportedError
from ._table import TableParameter

if TYPE_CHECKING:
    from ._group import Group
    from .optim import TableOptimizer


class States(NamedTuple):
    """How states are to have tables that lie on several hosts.

    Parameters
    ----------
    tables : {"refuse", "leave", "gather"}
        "refuse" is what ``state_dict()`` by itself does.
    host : int, optional
        The one host that gets the rows; None is all of them.
    """

    tables: str = "refuse"
    host: int | None = None


states: "ContextVar[States]" = ContextVar("states", default=States())

# Properties of a tensor that need its memory, or are another view of it.
_MEMORY = frozenset({"T", "mT", "H", "mH", "real", "imag", "_base"})
_PROPERTIES = ("__get__", "__set__", "__delete__")
_SHAPE = frozenset({"size", "dim", "ndimension", "numel", "nelement", "element_size", "__len__",
                    "is_floating_point", "is_complex", "requires_grad_", "_is_view", "__hash__",
                    "register_hook", "register_post_accumulate_grad_hook"})


def _needs_no_memory(func: Any) -> bool:
    name = getattr(func, "__name__", "")
    if name in _PROPERTIES:
        return getattr(func.__self__, "__name__", "") not in _MEMORY
    return name in _SHAPE


class HostedParameter(TableParameter):
    """The parameter of a table whose rows lie on several hosts.

    It has the shape of the table, stands in ``parameters()``, and is trained as all tables are. Its
    numbers are not here: what needs them raises :class:`embeng.NotSupportedError`, which names the
    call to use.
    """

    def __new__(cls, group: "Group", table: str, requires_grad: bool = True) -> "HostedParameter":
        settings = group.table(table)
        shape = (settings.vocabulary_size, settings.dim)
        nothing = torch.zeros(1, 1, dtype=torch.float32, device="cpu").expand(shape)
        self = nn.Parameter.__new__(cls, nothing, requires_grad)
        self.group = group
        self.table = table
        return self

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (),
                           kwargs: Mapping[str, Any] | None = None) -> Any:
        if not _needs_no_memory(func):
            found = next((a for a in args if isinstance(a, HostedParameter)), None)
            if found is None:
                raise NotSupportedError("the rows of a table lie on several hosts")
            found.refuse(f"{getattr(func, '__name__', func)}()")
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))

    def refuse(self, what: str) -> None:
        """Raise the sentence for what needs memory that this host does not have."""
        raise NotSupportedError(
            f"{what}: the rows of table {self.table} lie on the {self.group.hosts} hosts of a "
            f"group; "
            f"all hosts together read them by engine['{self.table}'].read(rows) of the module")

    def detach(self) -> Any:
        """Give the rows to a state that is to have them; otherwise refuse."""
        wanted = states.get()
        if wanted.tables == "leave":
            return torch.empty(0, device="cpu")  # local_state_dict() leaves it out
        if wanted.tables == "gather":
            return self.group.read_rows(self.table, host=wanted.host)
        raise NotSupportedError(
            f"state_dict(): the rows of table {self.table} lie on the {self.group.hosts} hosts "
            f"of a "
            "group. embeng.torch.local_state_dict() leaves such tables out; all hosts together "
            "call "
            "embeng.torch.gather_state_dict() for a state with their rows, or engine.save() of the "
            "module for a checkpoint")

    def copy_(self, other: Tensor, non_blocking: bool = False) -> Any:
        """Write the rows, in a call that all hosts make; those of host 0 count."""
        if tuple(other.shape) != tuple(self.shape):
            raise ValueError(f"table {self.table} has the shape {tuple(self.shape)}, and cannot "
                             f"take "
                             f"{tuple(other.shape)}")
        self.group.write_rows(self.table, other)
        return self

    @property
    def data(self) -> Tensor:
        """Refused: there is no memory. Assigning writes rows, as :meth:`copy_` does."""
        self.refuse("data")
        raise AssertionError

    @data.setter
    def data(self, values: Tensor) -> None:
        self.copy_(values)

    def __deepcopy__(self, memo: dict[int, Any]) -> "TableParameter":
        self.refuse("deepcopy()")
        raise AssertionError

    def __reduce_ex__(self, protocol: Any) -> Any:
        self.refuse("pickle")

    def __repr__(self, **unused: Any) -> str:  # type: ignore[override]
        return (f"Table {self.table}, {self.shape[0]} x {self.shape[1]}, on {self.group.hosts} "
                f"hosts "
                "of an embeng group")


@contextmanager
def _as(wanted: States) -> Iterator[None]:
    token = states.set(wanted)
    try:
        yield
    finally:
        states.reset(token)


def _leave_out(thing: "nn.Module | TableOptimizer", state: dict[str, Any]) -> dict[str, Any]:
    if isinstance(thing, nn.Module):
        for name, parameter in thing.named_parameters(remove_duplicate=False):
            if isinstance(parameter, HostedParameter):
                state.pop(name, None)
        return state
    number = 0
    for group in thing.param_groups:
        for parameter in group["params"]:
            if isinstance(parameter, HostedParameter):
                state["state"].pop(number, None)
            number += 1
    return state


def local_state_dict(thing: "nn.Module | TableOptimizer") -> dict[str, Any]:
    """Return the state of a model or optimizer without tables that lie on several hosts.

    Parameters
    ----------
    thing : nn.Module or TableOptimizer
        A model, or an optimizer of :mod:`embeng.torch.optim`.

    Returns
    -------
    dict
        A state for ``load_state_dict()``, of a model with ``strict=False``. One host may call it
        alone.

    Notes
    -----
    ``engine.save()``, which all hosts call, has the tables with their slots and steps.
    """
    with _as(States("leave")):
        return _leave_out(thing, thing.state_dict())


def gather_state_dict(thing: "nn.Module | TableOptimizer",
                      host: int | None = None) -> dict[str, Any]:
    """Return the state of a model or optimizer with all rows of its tables. All hosts call it.

    Parameters
    ----------
    thing : nn.Module or TableOptimizer
        A model, or an optimizer of :mod:`embeng.torch.optim`.
    host : int, optional
        The one host that gets the rows and so needs memory for them; by default all hosts do.

    Returns
    -------
    dict
        That of one process, which ``load_state_dict()`` takes anywhere. On other hosts than `host`,
        that of :func:`local_state_dict`.
    """
    with _as(States("gather", host)):
        state: dict[str, Any] = thing.state_dict()
    mine = host is None or host == own_host(thing)
    return state if mine else _leave_out(thing, state)


def own_host(thing: "nn.Module | TableOptimizer") -> int:
    """Return the number of this host in the group over which tables of `thing` lie."""
    parameters = thing.parameters() if isinstance(thing, nn.Module) else (
        p for group in thing.param_groups for p in group["params"])
    return next((p.group.host for p in parameters if isinstance(p, HostedParameter)), 0)

# SPDX-License-Identifier: MIT
"""The parameter of a table: a ``torch.nn.Parameter`` whose memory is the engine's own."""
import sys
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from .._errors import NotSupportedError
from . import _gradient

if TYPE_CHECKING:
    from ._group import Entry, Group

_grad: Any = torch.Tensor.grad
_data: Any = torch.Tensor.data
_ZERO_GRAD = nn.Module.zero_grad.__code__


class TableParameter(nn.Parameter):
    """The rows of a table as a parameter, ``[num_embeddings, embedding_dim]`` of float32.

    It shares memory with the engine: what is written to it in place the next lookup sees, and what
    ``step()`` does to rows stands in it. A backward does not fill ``.grad``, whose gradients of
    activations wait in the module until ``step()``. They become a sparse gradient when ``.grad`` is
    read, with the meaning of ``torch.nn.EmbeddingBag(sparse=True)``: it may be changed in place,
    replaced, or set to None, and ``step()`` applies what it finds. That costs what torch's sparse
    gradients cost, and programs that never read ``.grad`` do not pay it. With ``update="backward"``
    ``.grad`` is always None.

    Attributes
    ----------
    group : Group
        The engine and what waits for it.
    table : str
        Name of the table in it.

    Notes
    -----
    Assigning to ``.data`` copies into the memory. Pickles and deep copies have a group of their
    own, which all parameters of one group share.
    """

    group: "Group"
    table: str

    def __new__(cls, group: "Group", table: str, requires_grad: bool = True) -> "TableParameter":
        self = super().__new__(cls, group.memory(table), requires_grad)
        self.group = group
        self.table = table
        return self

    def __init__(self, *unused: Any) -> None:
        super().__init__()

    @property
    def grad(self) -> Tensor | None:
        """The gradient that the next ``step()`` applies, as a sparse tensor, or None."""
        if self.group.queue and self._waits():
            if sys._getframe(1).f_code is _ZERO_GRAD:
                _gradient.drop(self.group, self.table)  # without computing it
            else:
                self._store()
        return self.stored()

    @grad.setter
    def grad(  # pyright: ignore[reportIncompatibleVariableOverride]
            self, gradient: Tensor | None) -> None:
        if self.group.queue and self._waits():
            _gradient.drop(self.group, self.table)
        _grad.__set__(self, gradient)

    def _waits(self) -> bool:
        group = self.group
        return any(group.table_of[name] == self.table
                   for entry in group.queue for name in entry.inputs)

    def _store(self) -> None:
        if self.group.all_replicas > 1:
            raise NotSupportedError(
                f"grad: the gradients of table {self.table} wait in {self.group.all_replicas} "
                f"replicas, "
                "and have no sum before step(); embeng.torch.clip_grad_norm_() clips them by their "
                "norm of order 2, and grad = None drops those of this process")
        found = _gradient.take_sparse(self.group, self.table)
        known = self.stored()
        if found is not None:
            _grad.__set__(self, found if known is None else known + found)

    def stored(self) -> Tensor | None:
        """Return what stands in ``.grad``, without what waits in the queue."""
        return _grad.__get__(self)  # type: ignore[no-any-return]

    def stored_gradient(self) -> "Entry":
        """Return what stands in ``.grad``, which is not None, as an entry of the queue."""
        gradient = self.stored()
        assert gradient is not None
        return _gradient.entry_of(self.group, self.table, gradient)

    def clear_stored(self) -> None:
        """Drop what stands in ``.grad``."""
        _grad.__set__(self, None)

    @property
    def data(self) -> Tensor:
        """The rows; assigning copies into them."""
        return _data.__get__(self)  # type: ignore[no-any-return]

    @data.setter
    def data(self, values: Tensor) -> None:
        if values.shape != self.shape:
            raise ValueError(f"table {self.table} has the shape {tuple(self.shape)}, and cannot "
                             f"take {tuple(values.shape)}; make a new module for another shape")
        _data.__get__(self).copy_(values)

    def register_hook(self, hook: Any) -> Any:
        """Refused: no gradient of this tensor runs through autograd."""
        raise NotSupportedError(
            f"table {self.table}: hooks of a table's weight are not called, as autograd never has "
            "its gradient. Register the hook with the activations, whose gradient it has, or read "
            "and change weight.grad before step()")

    register_post_accumulate_grad_hook = register_hook

    def point_at(self, memory: Tensor) -> None:
        """Change the memory, after the engine was opened again."""
        _data.__set__(self, memory)

    def __deepcopy__(self, memo: dict[int, Any]) -> "TableParameter":
        if id(self) not in memo:
            import copy

            group = copy.deepcopy(self.group, memo)
            memo[id(self)] = group.parameter(self.table, self.requires_grad)
        return memo[id(self)]  # type: ignore[no-any-return]

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _find, (self.group, self.table, self.requires_grad)

    def __repr__(self, **unused: Any) -> str:  # type: ignore[override]
        return f"Table {self.table} of an embeng engine:\n{self.data!r}"


def _find(group: "Group", table: str, requires_grad: bool) -> TableParameter:
    return group.parameter(table, requires_grad)

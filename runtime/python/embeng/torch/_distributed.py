# SPDX-License-Identifier: MIT
"""Tables under ``DistributedDataParallel``: all processes apply the gradients of all of them.

Tables have no gradients that an all-reduce could sum. Instead each process gathers the ids and the
gradients of activations of all processes before a step, and applies them in the order of ranks, so
that the tables of all processes keep the same bits.
"""
from typing import Any

import numpy
import torch
import torch.distributed as dist
from torch import Tensor, nn

from .._errors import StepOrderError
from .._inputs import Ragged
from ._group import Entry, Group, flatten_bags, groups_of, join_entries
from ._table import TableParameter


class Exchange:
    """Gathers what waits in a group from all processes.

    Parameters
    ----------
    process_group : ProcessGroup, optional
        One that moves tensors of the processor's memory, such as gloo.
    """

    def __init__(self, process_group: Any = None):
        self.process_group = process_group
        self.size = dist.get_world_size(process_group)

    def _gather(self, tensor: Tensor, counts: list[int]) -> list[Tensor]:
        """Gather tensors whose first dimensions differ: all are sent with that of the longest."""
        longest = max(counts)
        shape = (longest, *tensor.shape[1:])
        padded = torch.zeros(shape, dtype=tensor.dtype, device="cpu")
        padded[:len(tensor)] = tensor
        parts = [torch.empty_like(padded) for _ in range(self.size)]
        dist.all_gather(parts, padded, group=self.process_group)
        return [part[:count] for part, count in zip(parts, counts, strict=True)]

    def _gather_counts(self, bags: dict[str, Ragged], names: list[str]) -> Tensor:
        mine = torch.zeros(len(names), 4, dtype=torch.int64, device="cpu")
        for k, name in enumerate(names):
            if name in bags:
                one = bags[name]
                mine[k, 0], mine[k, 1] = len(one.values), len(one.lengths)
                mine[k, 2], mine[k, 3] = one.weights is not None, 1
        all_counts = [torch.empty_like(mine) for _ in range(self.size)]
        dist.all_gather(all_counts, mine, group=self.process_group)
        return torch.stack(all_counts)

    def __call__(self, group: Group, entries: list[Entry]) -> list[Entry]:
        """Return what waits in all processes, divided by their number."""
        inputs, gradients = join_entries(entries) if entries else ({}, {})
        bags = {name: flatten_bags(one) for name, one in inputs.items()}
        names = list(group.table_of)
        counts = self._gather_counts(bags, names)
        found_inputs: dict[str, Any] = {}
        found_gradients: dict[str, Any] = {}
        paddings = {layout.feature: layout.padding if layout.untrained is None
                    else layout.untrained for layout in group.layouts}
        for k, name in enumerate(names):
            if not counts[:, k, 3].any():
                continue
            one = self._gather_feature(bags.get(name), counts[:, k])
            found_inputs[name] = one._replace(padding=paddings.get(name))
            width = group.dims[name]
            given = torch.from_numpy(numpy.ascontiguousarray(gradients[name])) \
                if name in gradients else torch.zeros(0, width, dtype=torch.float32, device="cpu")
            parts = self._gather(given / self.size, counts[:, k, 1].tolist())
            found_gradients[name] = torch.cat(parts).numpy()
        return [Entry(found_inputs, found_gradients, (), True)] if found_inputs else []

    def _gather_feature(self, bags: Ragged | None, counts: Tensor) -> Ragged:
        ids, samples = counts[:, 0].tolist(), counts[:, 1].tolist()
        none = numpy.empty(0, numpy.int64)
        mine = bags or Ragged(none, lengths=none)
        values = torch.from_numpy(numpy.asarray(mine.values, numpy.int64))
        lengths = torch.from_numpy(numpy.asarray(mine.lengths, numpy.int64))
        weights = None
        if counts[:, 2].any():
            given = torch.ones(len(values), dtype=torch.float32, device="cpu") \
                if mine.weights is None \
                else torch.from_numpy(numpy.asarray(mine.weights, numpy.float32))
            weights = torch.cat(self._gather(given, ids)).numpy()
        return Ragged(torch.cat(self._gather(values, ids)).numpy(),
                      lengths=torch.cat(self._gather(lengths, samples)).numpy(), weights=weights)


def distribute(model: nn.Module, process_group: Any = None) -> nn.Module:
    """Make the tables of a model ready for ``DistributedDataParallel``; call it before that.

    Parameters
    ----------
    model : nn.Module
        Its tables are left out of DDP's own exchange, and get the rows of rank 0.
    process_group : ProcessGroup, optional
        One that moves tensors of the processor's memory, such as gloo; by default all processes.

    Returns
    -------
    nn.Module
        The model itself.

    Raises
    ------
    StepOrderError
        ``torch.distributed`` is not initialized.

    Notes
    -----
    Each ``step()`` is then a collective call: every process makes it, also one without gradients.
    Gradients are divided by the number of processes, as DDP does. Tables whose engine has several
    replicas, as those over a group of hosts, have the sum of theirs divided by their number; they
    need no ``torch.distributed``.
    """
    groups = groups_of(model.parameters())
    for group in groups:
        if group.all_replicas > 1:
            group.share = 1 / group.all_replicas
    alone = [group for group in groups if group.all_replicas == 1]
    names = [name for name, p in model.named_parameters() if isinstance(p, TableParameter)]
    known = list(getattr(model, "_ddp_params_and_buffers_to_ignore", ()))
    model._ddp_params_and_buffers_to_ignore = list(  # type: ignore[assignment]
        dict.fromkeys([*known, *names]))
    if alone or not groups:
        _exchange_alone(model, alone, process_group)
    return model


def _exchange_alone(model: nn.Module, groups: list[Group], process_group: Any) -> None:
    """Let tables that each process has whole begin alike, and exchange gradients."""
    if not dist.is_available() or not dist.is_initialized():
        raise StepOrderError("torch.distributed is not initialized; call init_process_group() "
                             "first")
    first = dist.get_global_rank(process_group, 0) if process_group is not None else 0
    for parameter in model.parameters():
        if isinstance(parameter, TableParameter) and parameter.group in groups:
            dist.broadcast(parameter.detach(), first, group=process_group)
    for group in groups:
        group.exchange = Exchange(process_group)

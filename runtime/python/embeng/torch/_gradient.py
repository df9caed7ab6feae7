# SPDX-License-Identifier: MIT
"""The gradients of a queue as torch has them: a row's number and a row of numbers for each id.

The engine takes gradients of activations, and never needs this. It is for programs that look at
``weight.grad``, and for :class:`torch.amp.GradScaler`, which does.
"""
from typing import Any

import numpy
import torch
from torch import Tensor

from ._group import Entry, Group, flatten_bags

# The program may have another default device or dtype.
_F32: Any = {"dtype": torch.float32, "device": "cpu"}


def _spread_max(ids: Tensor, bags: Tensor, gradient: Tensor, rows: Tensor) -> Tensor:
    """Give each column's gradient to the first id of the bag that holds the largest number."""
    found = rows[ids]
    shape = (gradient.shape[0], gradient.shape[1])
    spread = bags[:, None].expand_as(found)
    largest = torch.full(shape, -torch.inf, **_F32).scatter_reduce_(0, spread, found, "amax")
    place = torch.arange(len(ids), device="cpu")[:, None].expand_as(found)
    holds = torch.where(found == largest[bags], place, len(ids))
    first = torch.full(shape, len(ids), device="cpu").scatter_reduce_(0, spread, holds, "amin")
    return torch.where(first[bags] == place, gradient[bags], 0.0)


def _count_factors(combiner: str, weights: Tensor, bags: Tensor, samples: int) -> Tensor:
    """Compute by what each id's row enters the activation of its bag."""
    if combiner == "sum":
        return weights
    squared = combiner == "sqrtn"
    summed = weights.square() if squared else weights
    total = torch.zeros(samples, **_F32).index_add_(0, bags, summed)
    divisor = (total.sqrt() if squared else total)[bags]
    return torch.where(divisor == 0, 0.0, weights / divisor)


def expand(group: Group, name: str, bags: Any, gradient: Any) -> tuple[Tensor, Tensor]:
    """Compute the gradient of each id of one feature.

    Returns
    -------
    (Tensor, Tensor)
        Ids ``[n]`` and gradients ``[n, dim]``; ids that come several times are to be summed.
    """
    flat = flatten_bags(bags)
    ids = torch.from_numpy(flat.values).long()
    lengths = torch.from_numpy(flat.lengths).long()
    numbers = torch.repeat_interleave(torch.arange(len(lengths), device="cpu"), lengths)
    weights = torch.ones(len(ids), **_F32) if flat.weights is None \
        else torch.from_numpy(flat.weights)
    if flat.padding is not None:
        kept = ids != flat.padding
        ids, numbers, weights = ids[kept], numbers[kept], weights[kept]
    table = group.table(group.table_of[name])
    given = torch.from_numpy(gradient)
    if table.combiner == "max":
        return ids, _spread_max(ids, numbers, given, group.memory(table.name))
    factors = _count_factors(table.combiner, weights, numbers, len(lengths))
    return ids, given[numbers] * factors[:, None]


def settle_multiplier(group: Group) -> None:
    """Multiply what waits by the factor that the next update would apply."""
    factor = numpy.float32(group.multiplier)
    group.multiplier = 1.0
    if factor == 1:
        return
    group.queue[:] = [
        Entry(entry.inputs, {name: g * factor for name, g in entry.gradients.items()}, entry.held,
              replica=entry.replica)
        for entry in group.queue]
    for parameter in group.parameters():
        stored = parameter.stored()
        if stored is not None:
            stored.mul_(float(factor))


def take_sparse(group: Group, table: str) -> Tensor | None:
    """Take a table's gradients out of the queue, as one sparse tensor of its shape, or None."""
    settle_multiplier(group)
    ids, values, left = [], [], []
    for entry in group.queue:
        mine = [name for name in entry.inputs if group.table_of[name] == table]
        for name in mine:
            found = expand(group, name, entry.inputs[name], entry.gradients[name])
            ids.append(found[0])
            values.append(found[1])
        others = {name: bags for name, bags in entry.inputs.items() if name not in mine}
        if others:
            left.append(Entry(others, {name: entry.gradients[name] for name in others}, entry.held,
                              replica=entry.replica))
    if not ids:
        return None
    group.queue[:] = left
    config = group.table(table)
    return torch.sparse_coo_tensor(torch.cat(ids)[None], torch.cat(values),
                                   (config.vocabulary_size, config.dim), device="cpu",
                                   check_invariants=False)


def keep_maxima(group: Group, entry: Entry) -> Entry:
    """Say of features with the combiner max which rows get the gradients.

    The engine looks for the largest numbers at the update, when rows may be others than they were
    at the backward.
    """
    inputs, gradients = dict(entry.inputs), dict(entry.gradients)
    for name, bags in entry.inputs.items():
        if group.table(group.table_of[name]).combiner == "max":
            ids, values = expand(group, name, bags, gradients[name])
            inputs[name], gradients[name] = ids.numpy(), values.numpy()
    return entry._replace(inputs=inputs, gradients=gradients)


def entry_of(group: Group, table: str, gradient: Tensor) -> Entry:
    """Make an entry of a sparse or dense gradient of a table's shape."""
    if gradient.is_sparse:
        ids, values = gradient._indices()[0], gradient._values()
    else:
        ids = gradient.ne(0).any(1).nonzero()[:, 0]
        values = gradient[ids]
    feature = group.feature(table)
    return Entry({feature: ids.numpy()}, {feature: values.detach().numpy()}, ())


def drop(group: Group, table: str) -> None:
    """Take a table's gradients out of the queue without computing them."""
    left = []
    for entry in group.queue:
        kept = [name for name in entry.inputs if group.table_of[name] != table]
        if kept:
            left.append(Entry({name: entry.inputs[name] for name in kept},
                              {name: entry.gradients[name] for name in kept}, entry.held,
                              replica=entry.replica))
    group.queue[:] = left
    if not left:
        group.multiplier = 1.0

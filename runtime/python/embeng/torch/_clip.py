# SPDX-License-Identifier: MIT
"""Clipping by the global norm, over tables and other parameters."""
import math
from collections.abc import Iterable

import torch
from torch import Tensor
from torch.nn.utils import get_total_norm

from ._group import Group, join_entries
from ._table import TableParameter


def _measure(group: Group) -> float:
    """Compute the norm of all row gradients that wait in a group, by the engine."""
    entries = sorted(group.gather(), key=lambda entry: entry.replica)
    if group.exchange is not None:
        entries = group.exchange_now(entries)
    if not entries and group.hosts == 1:
        return 0.0
    norm, _ = group.engine.gradient_norm(*(join_entries(entries) if entries else ({}, {})))
    return float(norm) * abs(group.multiplier) * group.share


def _split(parameters: list[Tensor], norm_type: float) -> tuple[list[Group], list[Tensor]]:
    """Tell groups of which all tables are given from other parameters."""
    given = set(parameters)
    groups = list(dict.fromkeys(p.group for p in parameters if isinstance(p, TableParameter)))
    whole = [group for group in groups
             if norm_type == 2 and given.issuperset(group.parameters())]
    others = [p for p in parameters if not (isinstance(p, TableParameter) and p.group in whole)]
    return whole, others


def _gradients(parameters: list[Tensor]) -> list[Tensor]:
    """Gather gradients; of sparse ones the values, with each row once."""
    found = []
    for parameter in parameters:
        gradient = parameter.grad
        if gradient is not None and gradient.is_sparse:
            if not gradient.is_coalesced():
                parameter.grad = gradient = gradient.coalesce()
            gradient = gradient._values()
        if gradient is not None:
            found.append(gradient)
    return found


def clip_grad_norm_(parameters: Tensor | Iterable[Tensor], max_norm: float, norm_type: float = 2.0,
                    error_if_nonfinite: bool = False, foreach: bool | None = None) -> Tensor:
    """Clip gradients by their global norm, as ``torch.nn.utils.clip_grad_norm_``, tables included.

    Parameters
    ----------
    parameters : iterable of Tensor, or a Tensor
        Tables and other parameters. The gradient of a table is that of its rows, each summed over
        all that waits for the next step.
    max_norm : float
        The most that the norm may be.
    norm_type : float
        Any that torch has. The engine computes 2; for others ``.grad`` of tables is made.
    error_if_nonfinite : bool
        Raise a RuntimeError where the norm is not finite.
    foreach : bool, optional
        As torch has it, for parameters that are no tables.

    Returns
    -------
    Tensor
        The norm before.

    Notes
    -----
    Where tables lie on the hosts of a group, all hosts make the call, with order 2 and all tables
    of a module, and get the norm of the gradients of all replicas. Those of other parameters must
    be the same on all hosts by then, as DistributedDataParallel makes them.
    """
    listed = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    norm_type = float(norm_type)
    groups, others = _split(listed, norm_type)
    gradients = _gradients(others)
    norms = [torch.tensor(_measure(group), dtype=torch.float32, device="cpu")
             for group in groups]
    if gradients or not norms:
        norms.append(get_total_norm(gradients, norm_type, False, foreach).cpu().float())
    if norm_type == math.inf:
        total = torch.stack(norms).max()
    else:
        total = torch.linalg.vector_norm(torch.stack(norms), norm_type)
    if error_if_nonfinite and not bool(torch.isfinite(total)):
        raise RuntimeError(f"the total norm of order {norm_type} of the gradients is not finite; "
                           "with error_if_nonfinite=False they would be multiplied by it anyway")
    factor = torch.clamp(max_norm / (total + 1e-6), max=1.0)
    for group in groups:
        group.multiplier *= float(factor)
    for gradient in gradients:
        gradient.mul_(factor.to(gradient.device))
    return total

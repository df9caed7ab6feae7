# SPDX-License-Identifier: MIT
"""Differentiable lookups on the torch backend of Keras: an autograd function over the engine.

Tensors and arrays of numpy share their memory, so that nothing is copied on a CPU. torch.compile
leaves lookups out of its graphs.
"""
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .._errors import NotSupportedError
from ._inputs import Layout, find_weights
from ._tables import Tables


def _to_arrays(tensors: Sequence[Tensor]) -> list[Any]:
    return [tensor.detach().cpu().numpy() for tensor in tensors]


class _Lookup(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, counter: Tensor, tables: Tables, layouts: Sequence[Layout],
                *tensors: Tensor) -> Any:
        ctx.save_for_backward(counter, *tensors)
        ctx.rest = tables, layouts
        found = tables.look_up(layouts, _to_arrays(tensors))
        device = counter.device
        return (counter.new_zeros(()), *(torch.from_numpy(array).to(device) for array in found))

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        counter, *tensors = ctx.saved_tensors
        tables, layouts = ctx.rest
        if any(gradient.requires_grad for gradient in gradients):
            raise NotSupportedError("embeddings of an engine have no second derivatives; call "
                                    "backward() without create_graph=True")
        scale, *given = gradients
        arrays, parts = _to_arrays(tensors), _to_arrays(given)
        wanted = ctx.needs_input_grad[3:]
        found: list[Any] = [None] * len(tensors)
        if any(wanted):
            places = find_weights(layouts)
            made = tables.weight_gradients(layouts, arrays, parts)
            for place, array in zip(places, made, strict=True):
                held = tensors[place]
                found[place] = torch.from_numpy(array).reshape(held.shape).to(held.device)
        if not ctx.needs_input_grad[0]:
            return None, None, None, *found
        applied = tables.update(layouts, arrays, parts, scale.item())
        count = counter.detach() + 1 if applied else torch.full_like(counter, torch.nan)
        return count, None, None, *found


@torch.compiler.disable
def look_up(tables: Tables, layouts: Sequence[Layout], counter: Any, tensors: Sequence[Any],
            outers: Sequence[Any], trained: bool) -> tuple[Any, list[Any]]:
    """Look features up, as :class:`._backends.Backend` says."""
    if torch.is_grad_enabled():
        probe, *found = _Lookup.apply(counter, tables, layouts, *tensors)
        return probe, found
    found = [torch.from_numpy(array).to(counter.device)
             for array in tables.look_up(layouts, _to_arrays(tensors))]
    return counter.new_zeros(()), found


def synchronize() -> None:
    """Wait for updates that are under way: there are none, since nothing is asynchronous."""

# SPDX-License-Identifier: MIT
"""Differentiable lookups: autograd functions for eager programs, operators for compiled ones.

Modules and collections call :func:`lookup`. In eager mode it is an autograd function, which costs
less than the dispatch of an operator. While ``torch.compile`` or ``torch.export`` traces, it is the
custom operator ``embeng::lookup``, which finds its group by an integer handle.

Outputs are fresh tensors that the engine writes into. Ids, bounds and weights are read where they
are.
"""
import itertools
from collections.abc import Sequence
from typing import Any, NoReturn

import torch
from torch import Tensor

from .._errors import NotSupportedError
from .._inputs import Ragged
from ._group import FLAT, SPLITS, Entry, Group, Layout, find_group, make_bags


def count_samples(layout: Layout, ids: Tensor, bounds: Tensor | None) -> int:
    """Count the samples of an input."""
    if bounds is None:
        return ids.numel() if layout.form == FLAT else ids.shape[0]
    return bounds.shape[0] - 1 if layout.form == SPLITS else bounds.shape[0]


def shape_of(group: Group, layout: Layout, ids: Tensor, bounds: Tensor | None) -> list[int]:
    """Compute the shape of the activations of one input."""
    dim = group.dims[layout.feature]
    if layout.form == FLAT:
        return [*ids.shape, dim]
    return [max(count_samples(layout, ids, bounds), 0), dim]


def run_bags(group: Group, layout: Layout, ids: Tensor, bags: Any) -> Tensor:
    """Look up one feature whose bags were made."""
    name = layout.feature
    output = torch.from_numpy(group.engine.lookup({name: bags})[name])
    if layout.form == FLAT and ids.dim() != 1:
        return output.view(*ids.shape, group.dims[name])
    return output


def run_many(group: Group, layouts: Sequence[Layout], ids: Sequence[Tensor],
             bounds: Sequence[Tensor | None], weights: Sequence[Tensor | None],
             joined: bool) -> list[Tensor]:
    """Look up features in one call without a graph: an output each, or all side by side in one."""
    inputs = {layout.feature: make_bags(layout, ids[k], bounds[k], weights[k], layout.padding)
              for k, layout in enumerate(layouts)}
    if not joined:
        found = group.engine.lookup(inputs)
        outputs = [torch.from_numpy(found[layout.feature]) for layout in layouts]
        return [output.view(*ids[k].shape, output.shape[-1])
                if layouts[k].form == FLAT and ids[k].dim() != 1 else output
                for k, output in enumerate(outputs)]
    samples = max(count_samples(layouts[0], ids[0], bounds[0]), 0)
    dims = [group.dims[layout.feature] for layout in layouts]
    output = torch.empty(samples, sum(dims), dtype=torch.float32, device="cpu")
    ends = itertools.accumulate(dims)
    whole = output.numpy()
    places = {layout.feature: whole[:, end - dim:end]
              for layout, dim, end in zip(layouts, dims, ends, strict=True)}
    group.engine.lookup(inputs, places)
    return [output]


def refuse_second() -> None:
    """Refuse a backward that is to be differentiated itself."""
    raise NotSupportedError("embeddings of an engine have no second derivatives; call backward() "
                            "without create_graph=True")


_will_execute: Any = getattr(torch._C, "_will_engine_execute_node", None)


def is_wanted(leaf: Any) -> bool:
    """Return whether the backward that runs gives a parameter its gradient.

    ``torch.autograd.grad()`` and ``backward(inputs=)`` compute those of what they are given alone.

    Parameters
    ----------
    leaf : torch.autograd.graph.Node or None
        The node of a parameter that accumulates its gradient; None if it requires none.

    Raises
    ------
    NotSupportedError
        ``torch.autograd.grad()`` is to return the gradient of a table.
    """
    if leaf is None or _will_execute is None:
        return leaf is not None
    try:
        return bool(_will_execute(leaf))
    except RuntimeError as error:
        if "autograd.grad" not in str(error):
            return True  # no engine of autograd runs this, but a compiled program
    raise NotSupportedError("torch.autograd.grad() cannot return the gradient of a table; call "
                            "backward(), and read the weight's .grad")


def refuse_other_weight() -> NoReturn:
    """Refuse to look up in what a program put in place of a table."""
    raise NotSupportedError("weight is another tensor than the rows of the engine's table, in which "
                            "alone it looks up: torch.func.functional_call(), parametrizations and "
                            "pruning cannot replace them; write the numbers into weight.data")


def _version_of(*tensors: Tensor | None) -> tuple[tuple[Tensor, int], ...]:
    return tuple((tensor, tensor._version) for tensor in tensors if tensor is not None)


def _weight_gradient(group: Group, layout: Layout, bags: Any, gradient: Any,
                     weights: Tensor) -> Tensor:
    wanted: dict[str, Any] = {layout.feature: None}
    group.engine.weight_gradients({layout.feature: bags}, {layout.feature: gradient}, wanted)
    return torch.from_numpy(wanted[layout.feature]).reshape(weights.shape)


class _LookupOne(torch.autograd.Function):
    """One feature. The table's parameter comes first, and gets no gradient by autograd."""

    @staticmethod
    def forward(ctx: Any, parameter: Tensor, weights: Tensor | None, ids: Tensor,
                bounds: Tensor | None, group: Group, layout: Layout) -> Tensor:
        bags = make_bags(layout, ids, bounds, weights, layout.padding)
        # One saved tensor has torch notice a second backward without retain_graph=True.
        ctx.save_for_backward(ids)
        held = ((ids, ids._version),) if bounds is None and weights is None \
            else _version_of(ids, bounds, weights)
        ctx.rest = group, layout, bags, weights, held
        return run_bags(group, layout, ids, bags)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        gradient, = gradients
        ctx.saved_tensors  # noqa: B018
        group, layout, bags, weights, held = ctx.rest
        if gradient.requires_grad:
            refuse_second()
        name = layout.feature
        array = gradient.numpy()
        if array.ndim != 2:
            array = array.reshape(-1, group.dims[name])
        if layout.untrained is not None:
            bags = Ragged(bags, None, None, None, None, layout.untrained)
        found = None
        if weights is not None and ctx.needs_input_grad[1]:
            found = _weight_gradient(group, layout, bags, array, weights)
        if ctx.needs_input_grad[0] and is_wanted(ctx.next_functions[0][0]):
            group.push(Entry({name: bags}, {name: array},
                             (*held, (gradient, gradient._version)), replica=group.replica))
        return None, found, None, None, None, None


# Function.apply() looks for transforms of torch.func and then calls this; looking costs 3 us.
_apply_one: Any = getattr(super(torch.autograd.Function, _LookupOne), "apply")  # noqa: B009
_transforms_active: Any = getattr(torch._C, "_are_functorch_transforms_active", bool)


class _LookupMany(torch.autograd.Function):
    """Many features. Tensors stand behind each other: parameters or None, weights, ids, bounds."""

    @staticmethod
    def forward(ctx: Any, group: Group, layouts: Sequence[Layout], joined: bool,
                *tensors: Tensor | None) -> Any:
        count = len(layouts)
        weights, ids, bounds = (tensors[k * count:(k + 1) * count] for k in (1, 2, 3))
        ctx.save_for_backward(*tensors[count:])
        ctx.set_materialize_grads(False)
        ctx.group = group
        ctx.layouts = layouts
        ctx.joined = joined
        return tuple(run_many(group, layouts, ids, bounds, weights,  # type: ignore[arg-type]
                              joined))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> Any:
        count = len(ctx.layouts)
        saved = ctx.saved_tensors
        needs = ctx.needs_input_grad[3:]
        trained = [is_wanted(node) for node, _ in ctx.next_functions[:count]]
        parts = split_joined(ctx.group, ctx.layouts, gradients, ctx.joined)
        found = push_many(ctx.group, ctx.layouts, saved[count:2 * count], saved[2 * count:],
                          saved[:count], parts, trained, needs[count:2 * count])
        return (None, None, None, *([None] * count), *found, *([None] * 2 * count))


def split_joined(group: Group, layouts: Sequence[Layout], gradients: Sequence[Tensor | None],
                 joined: bool) -> Sequence[Tensor | None]:
    """Give the gradient of an output that is side by side as one of each feature."""
    if not joined:
        return gradients
    if gradients[0] is None:
        return [None] * len(layouts)
    return torch.split(gradients[0], [group.dims[layout.feature] for layout in layouts], 1)


def push_many(group: Group, layouts: Sequence[Layout], ids: Sequence[Tensor],
              bounds: Sequence[Tensor | None], weights: Sequence[Tensor | None],
              gradients: Sequence[Tensor | None], trained: Sequence[bool],
              wanted: Sequence[bool]) -> list[Tensor | None]:
    """Take the gradients of many features as one entry; return those of weights that are wanted."""
    inputs: dict[str, Any] = {}
    arrays: dict[str, Any] = {}
    held: list[tuple[Tensor, int]] = []
    found: list[Tensor | None] = [None] * len(layouts)
    for k, layout in enumerate(layouts):
        gradient, given = gradients[k], weights[k]
        if gradient is None or not (trained[k] or wanted[k]):
            continue
        if gradient.requires_grad:
            refuse_second()
        array = gradient.numpy().reshape(-1, group.dims[layout.feature])
        padding = layout.padding if layout.untrained is None else layout.untrained
        bags = make_bags(layout, ids[k], bounds[k], given, padding)
        if wanted[k] and given is not None:
            found[k] = _weight_gradient(group, layout, bags, array, given)
        if trained[k]:
            inputs[layout.feature], arrays[layout.feature] = bags, array
            held += _version_of(ids[k], bounds[k], given, gradient)
    if inputs:
        group.push(Entry(inputs, arrays, tuple(held), replica=group.replica))
    return found


def lookup_one(group: Group, number: int, ids: Tensor, bounds: Tensor | None,
               weights: Tensor | None, parameter: Any) -> Tensor:
    """Look up one feature: :func:`lookup` for modules of one table, with less work a call.

    Raises
    ------
    NotSupportedError
        Something else stands in place of the table's parameter.
    """
    if parameter is None:
        refuse_other_weight()
    if torch.compiler.is_compiling():
        return _call_operator(group, [number], [ids], [bounds], [weights], False,
                              parameter.requires_grad)[0]
    if getattr(parameter, "group", None) is not group:
        refuse_other_weight()
    layout = group.layouts[number]
    if torch.is_grad_enabled() and (parameter.requires_grad or
                                    (weights is not None and weights.requires_grad)):
        if _transforms_active():
            raise NotSupportedError("torch.func and vmap do not go through embeddings of an "
                                    "engine; look up outside of them")
        found: Tensor = _apply_one(parameter, weights, ids, bounds, group, layout)
        return found
    return run_bags(group, layout, ids, make_bags(layout, ids, bounds, weights, layout.padding))


def lookup(group: Group, numbers: Sequence[int], ids: Sequence[Tensor],
           bounds: Sequence[Tensor | None], weights: Sequence[Tensor | None], *,
           joined: bool = False) -> list[Tensor]:
    """Look up features of a group in one call of the engine, differentiably.

    Parameters
    ----------
    group : Group
        The tables.
    numbers : sequence of int
        Layouts, as :meth:`Group.layout` numbered them; each feature at most once.
    ids : sequence of Tensor
        int32 or int64 on the CPU, of the shapes that the layouts say.
    bounds : sequence of Tensor or None
        int32 or int64, of the layouts' forms; None for forms without bounds.
    weights : sequence of Tensor or None
        float32, as many as ids. Gradients are computed for those that require them.
    joined : bool
        Return one tensor ``[samples, sum of dims]``, with the features side by side. All of them
        have as many samples, and no form :attr:`Form.FLAT` with ids of more than one dimension.

    Returns
    -------
    list of Tensor
        An output for each feature, or the one that has all; fresh memory.

    Raises
    ------
    OutOfRangeError
        An id is outside its table. Nothing was queued.

    Notes
    -----
    The parameters of frozen tables (``requires_grad_(False)``) get no gradients. Thread-safe.
    """
    parameters = [group.parameter(group.table_of[group.layouts[k].feature]) for k in numbers]
    if torch.compiler.is_compiling():
        return _call_operator(group, list(numbers), list(ids), list(bounds), list(weights), joined,
                              any(p.requires_grad for p in parameters))
    layouts = [group.layouts[k] for k in numbers]
    if torch.is_grad_enabled() and (any(p.requires_grad for p in parameters) or any(
            w is not None and w.requires_grad for w in weights)):
        return list(_LookupMany.apply(  # type: ignore[no-untyped-call]
            group, layouts, joined, *parameters, *weights, *ids, *bounds))
    return run_many(group, layouts, ids, bounds, weights, joined)


class Move(torch.autograd.Function):
    """Copy activations to a device by pinned memory without waiting, and gradients back."""

    @staticmethod
    def forward(ctx: Any, output: Tensor, device: torch.device) -> Tensor:
        return output.detach().pin_memory().to(device, non_blocking=True)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        # The engine reads the gradient: this copy waits for the device.
        return gradients[0].cpu(), None


# -- custom operators -------------------------------------------------------------------------

_passes = itertools.count()


def _pack(weights: Sequence[Tensor | None], bounds: Sequence[Tensor | None]) -> tuple[
        list[Tensor], list[Tensor], list[int]]:
    """Leave None out of lists, which operators cannot differentiate, and say what is there."""
    return ([w for w in weights if w is not None], [b for b in bounds if b is not None],
            [(w is not None) + 2 * (b is not None) for w, b in zip(weights, bounds, strict=True)])


def _unpack(tensors: Sequence[Any], has: Sequence[int], bit: int) -> list[Any]:
    rest = iter(tensors)
    return [next(rest) if flags & bit else None for flags in has]


def _call_operator(group: Group, numbers: list[int], ids: list[Tensor],
                   bounds: list[Tensor | None], weights: list[Tensor | None], joined: bool,
                   trained: bool) -> list[Tensor]:
    given, places, has = _pack(weights, bounds)
    trained = trained and not torch.compiler.is_exporting()
    return torch.ops.embeng.lookup(  # type: ignore[no-any-return]
        group.anchor if trained else None, given, ids, places, has, group.handle, numbers, joined)


@torch.library.custom_op("embeng::lookup", mutates_args=())
def _lookup_op(anchor: Tensor | None, weights: Sequence[Tensor], ids: Sequence[Tensor],
               bounds: Sequence[Tensor], has: Sequence[int], handle: int, numbers: Sequence[int],
               joined: bool) -> list[Tensor]:
    group = find_group(handle)
    layouts = [group.layouts[k] for k in numbers]
    return run_many(group, layouts, ids, _unpack(bounds, has, 2), _unpack(weights, has, 1), joined)


@_lookup_op.register_fake
def _lookup_fake(anchor: Tensor | None, weights: Sequence[Tensor], ids: Sequence[Tensor],
                 bounds: Sequence[Tensor], has: Sequence[int], handle: int,
                 numbers: Sequence[int], joined: bool) -> list[Tensor]:
    group = find_group(handle)
    layouts = [group.layouts[k] for k in numbers]
    shapes = [shape_of(group, *one)
              for one in zip(layouts, ids, _unpack(bounds, has, 2), strict=True)]
    if joined:
        shapes = [[shapes[0][0], sum(shape[1] for shape in shapes)]]
    return [torch.empty(shape, dtype=torch.float32, device="cpu") for shape in shapes]


# Two backwards with equal inputs are two gradients: `number` keeps them from being taken for one.
# The first output is the gradient of the anchor, which keeps the operator in its graph. It has one
# element: compilers leave out what computes tensors of none.
@torch.library.custom_op("embeng::push", mutates_args=())
def _push_op(gradients: Sequence[Tensor | None], weights: Sequence[Tensor], ids: Sequence[Tensor],
             bounds: Sequence[Tensor], has: Sequence[int], handle: int, numbers: Sequence[int],
             joined: bool, trained: bool, wanted: Sequence[bool], number: int) -> list[Tensor]:
    group = find_group(handle)
    layouts = [group.layouts[k] for k in numbers]
    trained = trained and is_wanted(group.anchor_node)
    train = [trained and group.parameter(group.table_of[layout.feature]).requires_grad
             for layout in layouts]

    # The memory of a compiled program's tensors is used again: what waits has copies.
    def clone(tensors: Sequence[Tensor | None]) -> list[Any]:
        return [None if t is None else t.detach().clone() for t in tensors]

    parts = split_joined(group, layouts, clone(gradients), joined)
    given = _unpack(clone(weights), has, 1)
    found = push_many(group, layouts, clone(ids), _unpack(clone(bounds), has, 2), given, parts,
                      train, _unpack(wanted, has, 1))
    # None of torch's memory may come back: a gradient that is not there is zeros.
    return [torch.zeros(1, dtype=torch.float32, device="cpu"),
            *(torch.zeros_like(w) if g is None else g
              for w, g in zip(given, found, strict=True) if w is not None)]


@_push_op.register_fake
def _push_fake(gradients: Sequence[Tensor | None], weights: Sequence[Tensor],
               ids: Sequence[Tensor], bounds: Sequence[Tensor], has: Sequence[int], handle: int,
               numbers: Sequence[int], joined: bool, trained: bool, wanted: Sequence[bool],
               number: int) -> list[Tensor]:
    return [torch.empty(1, dtype=torch.float32, device="cpu"),
            *(torch.empty_like(w, memory_format=torch.contiguous_format) for w in weights)]


def _set_up(ctx: Any, inputs: Any, output: Any) -> None:
    anchor, weights, ids, bounds, has, handle, numbers, joined = inputs
    ctx.counts = len(weights), len(ids)
    ctx.wanted = [w.requires_grad for w in weights]
    ctx.trained = anchor is not None
    ctx.save_for_backward(*weights, *ids, *bounds)
    ctx.rest = list(has), handle, list(numbers), joined
    ctx.number = next(_passes)


def _differentiate(ctx: Any, gradients: Any) -> Any:
    saved = ctx.saved_tensors
    first, second = ctx.counts[0], sum(ctx.counts)
    weights, ids, bounds = saved[:first], saved[first:second], saved[second:]
    has, handle, numbers, joined = ctx.rest
    found = torch.ops.embeng.push(list(gradients), weights, ids, bounds, has, handle, numbers,
                                  joined, ctx.trained, ctx.wanted, ctx.number)
    return (found[0] if ctx.trained else None,
            [g if want else None for g, want in zip(found[1:], ctx.wanted, strict=True)],
            [None] * len(ids), [None] * len(bounds), None, None, None, None)


torch.library.register_autograd("embeng::lookup", _differentiate, setup_context=_set_up)

# SPDX-License-Identifier: MIT
"""Differentiable lookups of all features of a collection at once, from one tensor of ids.

:func:`lookup_keyed` is what collections call. In eager mode it is an autograd function around one
call of the engine; while a compiler traces, it is the operator ``embeng::lookup_keyed``.
Activations are one tensor: ``[samples, sum of dims]``, or ``[elements]`` with a feature's block
after another's where features have numbers of samples of their own.
"""
import functools
import itertools
from collections.abc import Sequence, Set
from typing import Any, NamedTuple

import numpy
import torch
from torch import Tensor, nn

from .._inputs import Keyed, Ragged
from ._group import Entry, Group, find_group
from .ops import is_wanted, refuse_second


class KeyedPlan(NamedTuple):
    """The features that the keys of an input are for.

    Parameters
    ----------
    features : tuple
        For each key the name of a feature, None, or a tuple of names, as :class:`embeng.Keyed` has
        them.
    names : tuple of str
        The features of the group, in its order; each is at exactly one key.
    keys : tuple of int
        For each of them, the number of its key.
    dims : tuple of int
        For each of them, the columns of its table.
    """

    features: tuple[Any, ...]
    names: tuple[str, ...]
    keys: tuple[int, ...]
    dims: tuple[int, ...]


def make_plan(keys: Sequence[str], wanted: dict[str, tuple[str, ...]], names: tuple[str, ...],
              dims: tuple[int, ...]) -> KeyedPlan:
    """Make a plan for the keys of an input. `wanted` has the features of each key."""
    features: list[Any] = []
    key_of = {}
    for at, key in enumerate(keys):
        found = wanted.get(key, ())
        features.append(found if len(found) > 1 else found[0] if found else None)
        key_of.update({name: at for name in found})
    return KeyedPlan(tuple(features), names, tuple(key_of[name] for name in names), dims)


def encode_plan(plan: KeyedPlan) -> list[int]:
    """Give a plan as numbers, for an operator: of each key how many features, and which."""
    numbers = {name: at for at, name in enumerate(plan.names)}
    codes: list[int] = []
    for item in plan.features:
        names = () if item is None else (item,) if isinstance(item, str) else item
        codes.append(len(names))
        codes.extend([numbers[name] for name in names])
    return codes


@functools.lru_cache(maxsize=256)
def _decode(codes: tuple[int, ...], names: tuple[str, ...], dims: tuple[int, ...]) -> KeyedPlan:
    features: list[Any] = []
    key_of: dict[str, int] = {}
    rest = iter(codes)
    for count in rest:
        found = tuple(names[next(rest)] for _ in range(count))
        key_of.update({name: len(features) for name in found})
        features.append(found if len(found) > 1 else found[0] if found else None)
    return KeyedPlan(tuple(features), names, tuple(key_of[name] for name in names), dims)


def decode_plan(group: Group, codes: Sequence[int]) -> KeyedPlan:
    """Find the plan of a group whose features are all looked up."""
    return _decode(tuple(codes), tuple(group.dims), tuple(group.dims.values()))


# -- gradients that wait --------------------------------------------------------------------------


def _bounds(counts: Sequence[int]) -> list[int]:
    return [0, *itertools.accumulate(int(count) for count in counts)]


def _count_samples(keyed: Keyed) -> Sequence[int]:
    if keyed.samples is not None:
        return keyed.samples  # type: ignore[no-any-return]
    keys = len(keyed.features)
    return [len(keyed.lengths) // keys] * keys


def count_ids(keyed: Keyed) -> list[int]:
    """Count the ids of each key."""
    if keyed.lengths is None:
        return list(keyed.samples)
    ends = numpy.concatenate([[0], numpy.cumsum(keyed.lengths, dtype=numpy.int64)])
    found: list[int] = numpy.diff(ends[_bounds(_count_samples(keyed))]).tolist()
    return found


def expand_inputs(plan: KeyedPlan, keyed: Keyed) -> dict[str, Ragged]:
    """Give a keyed input as one of each feature, without copies."""
    ids, bags = _bounds(count_ids(keyed)), _bounds(_count_samples(keyed))
    found = {}
    for name, key in zip(plan.names, plan.keys, strict=True):
        values = slice(ids[key], ids[key + 1])
        lengths = (numpy.ones(bags[key + 1] - bags[key], numpy.int64) if keyed.lengths is None
                   else keyed.lengths[bags[key]:bags[key + 1]])
        weights = None if keyed.weights is None else keyed.weights[values]
        found[name] = Ragged(keyed.values[values], lengths=lengths, weights=weights)
    return found


def expand_gradients(plan: KeyedPlan, keyed: Keyed, gradient: Any) -> dict[str, Any]:
    """Give the gradient of all features as one of each, without copies."""
    if keyed.samples is None:
        columns = _bounds(plan.dims)
        return {name: gradient[:, columns[at]:columns[at + 1]]
                for at, name in enumerate(plan.names)}
    samples = [keyed.samples[key] for key in plan.keys]
    places = _bounds([n * dim for n, dim in zip(samples, plan.dims, strict=True)])
    return {name: gradient[places[at]:places[at + 1]].reshape(-1, plan.dims[at])
            for at, name in enumerate(plan.names)}


class KeyedEntry(Entry):
    """Gradients of one backward of all features, which go to the engine as they are.

    :attr:`inputs` and :attr:`gradients` are views by feature, which are made when they are read.
    """

    _plan: KeyedPlan
    _inputs: dict[str, Any] | None
    _gradients: dict[str, Any] | None

    @classmethod
    def make(cls, plan: KeyedPlan, keyed: Keyed, gradient: Any,
             held: tuple[tuple[Tensor, int], ...], replica: int) -> "KeyedEntry":
        """Make an entry of a keyed input and the gradient of its activations."""
        self = cls(keyed, gradient, held, False, replica)  # type: ignore[arg-type]
        self._plan = plan
        self._inputs = self._gradients = None
        return self

    def whole(self) -> tuple[Any, Any]:
        """Return inputs and gradients as one update takes them."""
        return self[0], self[1]

    @property
    def inputs(self) -> dict[str, Any]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Inputs by feature."""
        if self._inputs is None:
            self._inputs = dict(expand_inputs(self._plan, self[0]))  # type: ignore[arg-type]
        return self._inputs

    @property
    def gradients(self) -> dict[str, Any]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Gradients by feature."""
        if self._gradients is None:
            self._gradients = expand_gradients(
                self._plan, self[0], self[1])  # type: ignore[arg-type]
        return self._gradients


# -- lookups -------------------------------------------------------------------------------------


def _array(tensor: Tensor | None) -> Any:
    return None if tensor is None else tensor.numpy()


def _describe(plan: KeyedPlan, values: Tensor, lengths: Tensor | None, weights: Tensor | None,
              samples: Sequence[int] | None) -> Keyed:
    return Keyed(plan.features, values.numpy(), _array(lengths),
                 None if weights is None else weights.detach().numpy(), samples)


def _shape(plan: KeyedPlan, lengths: Tensor | None,
           samples: Sequence[int] | None) -> list[int]:
    if samples is not None:
        return [sum(samples[key] * dim for key, dim in zip(plan.keys, plan.dims, strict=True))]
    assert lengths is not None
    return [lengths.shape[0] // max(len(plan.features), 1), sum(plan.dims)]


def run_keyed(group: Group, plan: KeyedPlan, values: Tensor, lengths: Tensor | None,
              weights: Tensor | None, samples: Sequence[int] | None) -> Tensor:
    """Look up all features without a graph."""
    # An array of numpy is had in half the time of a tensor, which matters for small batches.
    return torch.from_numpy(
        group.engine.lookup(_describe(plan, values, lengths, weights, samples)))


def _weight_gradient(group: Group, plan: KeyedPlan, keyed: Keyed, gradient: Any) -> Tensor:
    """Compute the gradient of weights, summed where several features look an id up."""
    wanted: dict[str, Any] = dict.fromkeys(plan.names)
    group.engine.weight_gradients(keyed, gradient, wanted)
    total = numpy.zeros(len(keyed.values), numpy.float32)
    places = _bounds(count_ids(keyed))
    for name, key in zip(plan.names, plan.keys, strict=True):
        total[places[key]:places[key + 1]] += wanted[name]
    return torch.from_numpy(total)


def _make_entry(group: Group, plan: KeyedPlan, keyed: Keyed, gradient: Any,
                held: tuple[tuple[Tensor, int], ...], trained: Set[str]) -> Entry | None:
    """Make the entry of a backward, without features whose tables are not trained."""
    entry = KeyedEntry.make(plan, keyed, gradient, held, group.replica)
    names = [name for name in plan.names if group.table_of[name] in trained]
    if len(names) == len(plan.names):
        return entry
    if not names:
        return None
    return Entry({name: entry.inputs[name] for name in names},
                 {name: entry.gradients[name] for name in names}, held,
                 replica=group.replica)


def push_keyed(group: Group, plan: KeyedPlan, values: Tensor, lengths: Tensor | None,
               weights: Tensor | None, samples: Sequence[int] | None, gradient: Tensor,
               trained: Set[str], wanted: bool) -> Tensor | None:
    """Take the gradient of all activations for the tables that are trained, by their names.

    Return the gradient of weights, if it is wanted.
    """
    if gradient.requires_grad:
        refuse_second()
    array = gradient.numpy()
    keyed = _describe(plan, values, lengths, weights, samples)
    found = _weight_gradient(group, plan, keyed, array) if wanted else None
    if trained:
        held = tuple((tensor, tensor._version) for tensor in (values, lengths, weights, gradient)
                     if tensor is not None)
        entry = _make_entry(group, plan, keyed, array, held, trained)
        if entry is not None:
            group.push(entry)
    return found


_Rest = tuple[Group, KeyedPlan, Tensor, Tensor | None, Sequence[int] | None]


class _LookupKeyed(torch.autograd.Function):
    """All features. The parameters of their tables come last, and get no gradient by autograd."""

    @staticmethod
    def forward(ctx: Any, rest: _Rest, weights: Tensor | None, *parameters: Any) -> Tensor:
        group, plan, values, lengths, samples = rest
        if weights is not None:
            ctx.save_for_backward(weights)
        ctx.rest = rest
        ctx.tables = [parameter.table for parameter in parameters]
        ctx.versions = values._version, 0 if lengths is None else lengths._version
        return run_keyed(group, plan, values, lengths, weights, samples)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        group, plan, values, lengths, samples = ctx.rest
        if ctx.versions != (values._version, 0 if lengths is None else lengths._version):
            raise RuntimeError(f"table {group.names[0]}: ids or lengths were changed in place "
                               "between forward and backward; give clones of them")
        weights, = ctx.saved_tensors or (None,)
        # Only tensors have nodes: the weights, if there are any, and the parameters.
        nodes = ctx.next_functions[weights is not None:]
        trained = {table for table, (node, _) in zip(ctx.tables, nodes, strict=True)
                   if is_wanted(node)}
        found = push_keyed(group, plan, values, lengths, weights, samples, gradients[0], trained,
                           ctx.needs_input_grad[1])
        return None, found, *(None for _ in ctx.tables)


def lookup_keyed(group: Group, plan: KeyedPlan, values: Tensor, lengths: Tensor | None,
                 weights: Tensor | None, samples: Sequence[int] | None,
                 parameters: Sequence[nn.Parameter]) -> Tensor:
    """Look up all features of a group in one call of the engine, differentiably.

    Parameters
    ----------
    group : Group
        The tables.
    plan : KeyedPlan
        The features that the keys are for.
    values : Tensor of int32 or int64
        Ids of all keys, one key after another, on the CPU.
    lengths : Tensor of int32 or int64, optional
        Ids of each bag, likewise; without them each id is a bag.
    weights : Tensor of float32, optional
        As many as ids. A gradient is computed if they require one.
    samples : sequence of int, optional
        Bags of each key; without them all keys have as many.
    parameters : sequence of nn.Parameter
        Those of all tables; one at least that requires a gradient has the tables trained.

    Returns
    -------
    Tensor
        ``[bags, sum of dims]``, or with `samples` ``[elements]``; fresh memory.

    Raises
    ------
    OutOfRangeError
        An id is outside its table. Nothing was queued.

    Notes
    -----
    Thread-safe.
    """
    if torch.compiler.is_compiling():
        return torch.ops.embeng.lookup_keyed(  # type: ignore[no-any-return]
            group.anchor if _any_trained(parameters) else None, weights, values, lengths,
            group.handle, encode_plan(plan), samples)
    if torch.is_grad_enabled():
        if _any_trained(parameters) or (weights is not None and weights.requires_grad):
            return _LookupKeyed.apply(  # type: ignore[no-any-return, no-untyped-call]
                (group, plan, values, lengths, samples), weights, *parameters)
    return run_keyed(group, plan, values, lengths, weights, samples)


def _any_trained(parameters: Sequence[nn.Parameter]) -> bool:
    for parameter in parameters:
        if parameter.requires_grad:
            return True
    return False


# -- custom operators ------------------------------------------------------------------------------

_passes = itertools.count()


@torch.library.custom_op("embeng::lookup_keyed", mutates_args=())
def _lookup_keyed_op(anchor: Tensor | None, weights: Tensor | None, values: Tensor,
                     lengths: Tensor | None, handle: int, plan: Sequence[int],
                     samples: Sequence[int] | None) -> Tensor:
    group = find_group(handle)
    return run_keyed(group, decode_plan(group, plan), values, lengths, weights, samples)


@_lookup_keyed_op.register_fake
def _lookup_keyed_fake(anchor: Tensor | None, weights: Tensor | None, values: Tensor,
                       lengths: Tensor | None, handle: int, plan: Sequence[int],
                       samples: Sequence[int] | None) -> Tensor:
    found = decode_plan(find_group(handle), plan)
    return torch.empty(_shape(found, lengths, samples), dtype=torch.float32, device="cpu")


# Two backwards with equal inputs are two gradients: `number` keeps them from being taken for one.
@torch.library.custom_op("embeng::push_keyed", mutates_args=())
def _push_keyed_op(anchor: Tensor | None, gradient: Tensor, weights: Tensor | None, values: Tensor,
                   lengths: Tensor | None, handle: int, plan: Sequence[int],
                   samples: Sequence[int] | None, wanted: bool, number: int) -> list[Tensor]:
    # The memory of a compiled program's tensors is used again: what waits has copies.
    copies = [None if t is None else t.detach().clone()
              for t in (values, lengths, weights, gradient)]
    assert copies[0] is not None and copies[3] is not None
    group = find_group(handle)
    trained = {parameter.table for parameter in group.parameters() if parameter.requires_grad} \
        if anchor is not None and is_wanted(group.anchor_node) else set()
    found = push_keyed(group, decode_plan(group, plan), copies[0], copies[1], copies[2], samples,
                       copies[3], trained, wanted)
    return [torch.zeros(1, dtype=torch.float32, device="cpu"),
            torch.zeros(0, device="cpu") if found is None else found]


@_push_keyed_op.register_fake
def _push_keyed_fake(anchor: Tensor | None, gradient: Tensor, weights: Tensor | None,
                     values: Tensor, lengths: Tensor | None, handle: int, plan: Sequence[int],
                     samples: Sequence[int] | None, wanted: bool, number: int) -> list[Tensor]:
    size = values.shape[0] if wanted else 0
    return [torch.empty(1, dtype=torch.float32, device="cpu"),
            torch.empty(size, dtype=torch.float32, device="cpu")]


def _set_up(ctx: Any, inputs: Any, output: Any) -> None:
    anchor, weights, values, lengths, handle, plan, samples = inputs
    ctx.save_for_backward(anchor, weights, values, lengths)
    ctx.rest = handle, list(plan), samples
    ctx.wanted = weights is not None and weights.requires_grad
    ctx.number = next(_passes)


def _differentiate(ctx: Any, gradient: Tensor) -> Any:
    anchor, weights, values, lengths = ctx.saved_tensors
    handle, plan, samples = ctx.rest
    found = torch.ops.embeng.push_keyed(anchor, gradient, weights, values, lengths, handle, plan,
                                        samples, ctx.wanted, ctx.number)
    return (found[0] if anchor is not None else None, found[1] if ctx.wanted else None, None, None,
            None, None, None)


torch.library.register_autograd("embeng::lookup_keyed", _differentiate, setup_context=_set_up)

# SPDX-License-Identifier: MIT
"""A group: one engine, its tables as parameters, and the gradients that wait for a step.

A module or a collection makes one :class:`Group`. The group has one engine with one or many tables
and features, so that a forward of all features is one crossing, and so is an update. A collection
does this with it::

    group = Group([Table("a", 100, 16, "sum"), Table("b", 50, 16, "sum")],
                  [Feature("f0", "a"), Feature("f1", "a"), Feature("f2", "b")], update="step")
    self.weight_a = group.parameter("a")            # a TableParameter: live memory of the engine
    self._layouts = [group.layout(Layout(f, LENGTHS)) for f in ("f0", "f1", "f2")]
    outputs = ops.lookup(group, self._layouts, ids, lengths, weights)  # [samples, dim] for each
    output = ops.lookup(group, self._layouts, ids, lengths, weights, joined=True)[0]

Nothing else is needed. A backward puts ids and gradients into ``group.queue``, or applies them at
once, with ``update="backward"``. An optimizer of :mod:`embeng.torch.optim` that gets the
parameters opens the engine again with what its class means, applies the queue in one
``Engine.update()`` at ``step()``, and drops it at ``zero_grad()``. ``state_dict()`` of a module has
each parameter under the name that the module gave it. Copies and pickles of the parameters copy
the group, once.

A queue is one thread's at a time, as ``.grad`` of torch is. Lookups may come from any number of
threads.
"""
import random
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy
import torch
from torch import Tensor

from .. import initializers
from .._engine import Engine, Feature, Table
from .._group import Group as Hosts
from .._errors import InvalidError, NotSupportedError, OutOfRangeError, StepOrderError
from .._inputs import Ragged
from ..optimizers import Optimizer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ._table import TableParameter
    from .optim import TableOptimizer

Update = Literal["step", "backward"]


_make_tuple: Any = tuple.__new__
_stored: Any = getattr(torch.Tensor.grad, "__get__")  # noqa: B009  # what stands in .grad


class Form(IntEnum):
    """How a tensor of bounds says where bags begin."""

    FLAT = 0
    """No bounds: each id is a sample, and the output has the shape of the ids and a dim behind."""
    MATRIX = 1
    """No bounds: ids are ``[bags, ids]``."""
    STARTS = 2
    """Bounds are ``[bags]`` starts."""
    SPLITS = 3
    """Bounds are ``[bags + 1]`` splits."""
    LENGTHS = 4
    """Bounds are ``[bags]`` lengths."""


# Members of an enumeration are slow to find, and these are looked at in each call.
FLAT, MATRIX, STARTS, SPLITS, LENGTHS = (int(form) for form in Form)


class Layout(NamedTuple):
    """How inputs of a feature come.

    Parameters
    ----------
    feature : str
        Its name in the group.
    form : int
        One of :class:`Form`: what bounds mean.
    padding : int, optional
        This id is left out of lookups and updates.
    untrained : int, optional
        This id is looked up, and gets no gradient.
    """

    feature: str
    form: int
    padding: int | None = None
    untrained: int | None = None


class Entry(NamedTuple):
    """Gradients of one backward, for one :meth:`Engine.update`."""

    inputs: dict[str, Any]
    gradients: dict[str, Any]
    held: tuple[tuple[Tensor, int], ...]
    shared: bool = False
    replica: int = 0

    def whole(self) -> tuple[Any, Any]:
        """Return inputs and gradients as one update takes them."""
        return self.inputs, self.gradients


def make_bags(layout: Layout, ids: Tensor, bounds: Tensor | None, weights: Tensor | None,
              padding: int | None) -> Any:
    """Describe ids to the engine, without a copy."""
    values = ids.numpy()
    form = layout.form
    if form == FLAT:
        if values.ndim != 1:
            values = values.reshape(-1)
        if padding is None and weights is None:
            return values
    given = None if weights is None else weights.detach().numpy()
    places = None if bounds is None else bounds.numpy()
    # This is Ragged(...) without its Python code.
    return _make_tuple(Ragged, (values, places if form == SPLITS else None,
                                places if form == LENGTHS else None,
                                places if form == STARTS else None, given, padding))


def count_lengths(bags: Any) -> "NDArray[Any]":
    """Count the ids of each bag."""
    if not isinstance(bags, Ragged):
        return numpy.ones(len(bags), numpy.int64)
    if bags.lengths is not None:
        return bags.lengths  # type: ignore[no-any-return]
    if bags.splits is not None:
        return numpy.diff(bags.splits)
    if bags.starts is not None:
        return numpy.diff(bags.starts, append=len(bags.values))
    if bags.values.ndim == 1:
        return numpy.ones(len(bags.values), numpy.int64)
    return numpy.full(bags.values.shape[0], bags.values.shape[1], numpy.int64)


def flatten_bags(bags: Any) -> Ragged:
    """Give bags of any form as values and lengths, with ids in one dimension."""
    if not isinstance(bags, Ragged):
        return Ragged(bags, lengths=count_lengths(bags))
    weights = None if bags.weights is None else bags.weights.reshape(-1)
    return Ragged(bags.values.reshape(-1), lengths=count_lengths(bags), weights=weights,
                  padding=bags.padding)


def _join_bags(parts: list[Any]) -> Any:
    if len(parts) == 1:
        return parts[0]
    if not any(isinstance(part, Ragged) for part in parts):
        return numpy.concatenate(parts)
    flat = [flatten_bags(part) for part in parts]
    weights = None
    if any(part.weights is not None for part in flat):
        weights = numpy.concatenate([numpy.ones(len(part.values), numpy.float32)
                                     if part.weights is None else part.weights for part in flat])
    return Ragged(numpy.concatenate([part.values for part in flat]),
                  lengths=numpy.concatenate([part.lengths for part in flat]), weights=weights,
                  padding=flat[0].padding)


def join_entries(entries: list[Entry]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Join entries into the inputs and gradients of one update."""
    if len(entries) == 1:
        return entries[0].inputs, entries[0].gradients
    inputs: dict[str, Any] = {}
    gradients: dict[str, Any] = {}
    for name in dict.fromkeys(name for entry in entries for name in entry.inputs):
        having = [entry for entry in entries if name in entry.inputs]
        inputs[name] = _join_bags([entry.inputs[name] for entry in having])
        gradients[name] = numpy.concatenate([entry.gradients[name] for entry in having])
    return inputs, gradients


# Programs that are exported and loaded elsewhere have a handle in them: none may come twice.
_handles = random.SystemRandom()
_groups: "weakref.WeakValueDictionary[int, Group]" = weakref.WeakValueDictionary()


def find_group(handle: int) -> "Group":
    """Return the group of a handle.

    Raises
    ------
    StepOrderError
        The module that had it is gone.
    """
    group = _groups.get(handle)
    if group is None:
        raise StepOrderError(f"the tables of the handle {handle} are gone with their module; run a "
                             "compiled or exported program while the module that it is of lives")
    return group


class Group:
    """Tables of one engine, and what waits for their optimizer.

    Parameters
    ----------
    tables : sequence of embeng.Table
        The tables. Without an initializer their rows start from zeros, for the module to fill.
    features : sequence of embeng.Feature
        The inputs.
    update : {"step", "backward"}
        When gradients are applied.
    engine : Engine, optional
        An open engine, to which the tables are added; else the group opens one of its own.
    **options
        Options of :class:`embeng.Engine`.

    Attributes
    ----------
    engine : Engine
        The engine. It is another one after an optimizer of another kind was attached.
    handle : int
        By which :func:`find_group` finds the group while it lives.
    queue : list of Entry
        Gradients that wait.
    multiplier : float
        By which the next update multiplies them, for :func:`embeng.torch.clip_grad_norm_`.
    hosts, host : int
        On how many hosts the tables lie, and the number of this one.
    replicas : range
        The replicas of the engine that this process feeds.
    replica : int
        The one that gradients of backwards are of.
    share : float
        By which each update is multiplied: 1, or for a mean over replicas their reciprocal.
    """

    def __init__(self, tables: Sequence[Table], features: Sequence[Feature], *,
                 update: Update = "step", engine: Engine | None = None, **options: Any):
        if update not in ("step", "backward"):
            raise InvalidError(f"update is {update!r}; it is \"step\" or \"backward\"")
        zeros = initializers.constant(0.0)
        given = [t if t.initializer else t._replace(initializer=zeros) for t in tables]
        self.owned = engine is None
        if isinstance(options.get("group"), str):
            name = options["group"]
            options["group"] = Hosts.torch() if name == "torch" else Hosts(name)
        if options.get("group") is not None:
            ranks = options["group"].ranks
            if options.setdefault("replicas", ranks) % ranks:
                raise InvalidError(
                    f"replicas is {options['replicas']}, and there are {ranks} hosts; each feeds "
                    f"as "
                    "many, since all hosts make the same calls: give a multiple of the hosts")
        if engine is None:
            engine = Engine(given, features, **options)
        else:
            engine.add(given, features)
        self.engine = engine
        self.names = [table.name for table in given]
        self.update: Update = update
        with torch.inference_mode(False), torch.enable_grad():
            self.anchor = torch.zeros(1, dtype=torch.float32, device="cpu", requires_grad=True)
            self.anchor_node = torch.autograd.graph.get_gradient_edge(self.anchor).node
        self._start()

    def _start(self) -> None:
        self.handle = _handles.getrandbits(62)
        _groups[self.handle] = self
        self.queue: list[Entry] = []
        self.multiplier = 1.0
        self.exchange: Any = None
        self.scales: dict[str, bool] = {}
        self.layouts: list[Layout] = []
        self._layout_numbers: dict[Layout, int] = {}
        self._optimizer: weakref.ref[TableOptimizer] | None = None
        self._parameters: dict[str, weakref.ref[TableParameter]] = {}
        info = self.engine.info()
        self.hosts, self.host = int(info["hosts"]), int(info["host"])
        self.replicas = self.engine.replicas
        self.all_replicas = int(self.engine._options["replicas"])
        self.replica = self.replicas.start
        self.share = 1.0
        self._note_engine()

    def _note_engine(self) -> None:
        self._tables = {table.name: table for table in self.engine.tables}
        self.table_of = {f.name: f.table for f in self.engine.features}
        self.dims = {f.name: self._tables[f.table].dim for f in self.engine.features}
        self.has_max = any(self._tables[name].combiner == "max" for name in self.names)
        self.has_fixed = any(self._tables[name].optimizer for name in self.names)

    # -- tables

    def table(self, name: str) -> Table:
        """Return a table's settings by its name."""
        return self._tables[name]

    def parameter(self, name: str, requires_grad: bool = True) -> "TableParameter":
        """Return the parameter of a table: always the same one, while it lives."""
        from ._hosted import HostedParameter
        from ._table import TableParameter

        known = self._parameters.get(name)
        found = None if known is None else known()
        if found is None:
            kind = HostedParameter if self.hosts > 1 else TableParameter
            found = kind(self, name, requires_grad)
            self._parameters[name] = weakref.ref(found)
        return found

    def memory(self, name: str, slot: str | None = None) -> Tensor:
        """Return the live memory of a table or slot as a tensor."""
        if self.hosts > 1:
            raise NotSupportedError(
                f"table {name} lies on {self.hosts} hosts, and has no memory of one process; all "
                f"hosts "
                f"together read rows by engine['{name}'].read()")
        return torch.from_numpy(self.engine[name].numpy(slot))

    def read_rows(self, name: str, slot: str | None = None, host: int | None = None) -> Tensor:
        """Copy all rows of a table or slot. All hosts make the call; of them `host` gets rows."""
        mine = host is None or host == self.host
        return torch.from_numpy(self.engine[name].read(None if mine else [], slot=slot))

    def write_rows(self, name: str, values: Tensor, slot: str | None = None) -> None:
        """Write all rows of a table or slot. All hosts make the call; those of host 0 count."""
        given = values.detach().to("cpu", torch.float32).contiguous().numpy()
        if self.host:
            self.engine[name].write(given[:0], [], slot=slot)
        else:
            self.engine[name].write(given, slot=slot)

    def feature(self, table: str) -> str:
        """Return the name of the first feature of a table."""
        return next(name for name, of in self.table_of.items() if of == table)

    def layout(self, layout: Layout) -> int:
        """Return the number by which compiled programs name a layout."""
        number = self._layout_numbers.get(layout)
        if number is None:
            number = self._layout_numbers[layout] = len(self.layouts)
            self.layouts.append(layout)
        return number

    # -- optimizers

    @property
    def optimizer(self) -> "TableOptimizer | None":
        """The optimizer of :mod:`embeng.torch.optim` that trains the tables."""
        return self._optimizer() if self._optimizer else None

    def attach(self, optimizer: "TableOptimizer", settings: Mapping[str, Optimizer]) -> None:
        """Make an optimizer the one of the group.

        The engine is opened again if tables have another kind of optimizer, or another setting that
        does not come with each step. Rows stay, slots too where the kind is the same.
        """
        known = self.optimizer
        if known is not None and known is not optimizer and not known.released(self):
            raise StepOrderError(
                f"table {self.names[0]} is trained by a {type(known).__name__} already, and all "
                "tables of a module have one optimizer; delete that one first, or call its "
                "detach()")
        self.reopen({**{name: None for name in self.names}, **settings})
        self._optimizer = weakref.ref(optimizer)

    def detach(self) -> None:
        """Let the optimizer go. Rows and slots stay."""
        self._optimizer = None

    def reopen(self, settings: Mapping[str, Optimizer | None]) -> None:
        """Open the engine again with these optimizers, where they differ."""
        if all(self._tables[name].optimizer == settings[name] for name in settings):
            return
        if self.hosts > 1:
            raise NotSupportedError(
                f"table {self.names[0]} lies on {self.hosts} hosts, whose engine is opened once: "
                f"give "
                "the kind of optimizer when it is, by optimizer= of the module or by "
                "embeng.torch.convert(model, optimizer, group=)")
        if not self.owned:
            raise NotSupportedError(
                f"table {self.names[0]} is in an engine that the program opened, whose optimizers "
                "stay; give the module optimizer= with the kind that trains it")
        tables = [table._replace(optimizer=settings.get(table.name, table.optimizer))
                  for table in self.engine.tables]
        self._replace_engine(tables)

    def _replace_engine(self, tables: list[Table]) -> None:
        old = self.engine
        old.flush()
        zeros = initializers.constant(0.0)
        engine = Engine([table._replace(initializer=zeros) for table in tables], old.features,
                        **old._options, **old._opening)
        for before, after in zip(old.tables, tables, strict=True):
            kept: list[str | None] = [None]
            if before.optimizer and after.optimizer and \
                    before.optimizer.kind == after.optimizer.kind:
                kept += old[before.name].slots
            for slot in kept:
                engine[after.name].numpy(slot)[:] = old[after.name].numpy(slot)
        engine.step = old.step
        self.engine = engine
        self._note_engine()
        for name, reference in self._parameters.items():
            parameter = reference()
            if parameter is not None:
                parameter.point_at(self.memory(name))

    # -- gradients

    def check_trained(self) -> None:
        """Raise where gradients come and nobody will apply them."""
        if self._optimizer is not None and self._optimizer() is not None:
            return
        if self.update == "backward" and self.has_fixed:
            return
        raise StepOrderError(
            f"table {self.names[0]} got a gradient and has no optimizer; give its parameters to "
            "one of embeng.torch.optim, or freeze it by requires_grad_(False)")

    def push(self, entry: Entry) -> None:
        """Take the gradients of a backward."""
        if self._optimizer is None or self._optimizer() is None:
            self.check_trained()
        if self.multiplier != 1.0:
            from ._gradient import settle_multiplier

            settle_multiplier(self)  # it was for the gradients before this one
        if self.update == "step":
            if self.has_max and self.all_replicas == 1:
                from ._gradient import keep_maxima

                entry = keep_maxima(self, entry)
            self.queue.append(entry)
        else:
            optimizer = self.optimizer
            rates, multiplier = optimizer.rates(self) if optimizer else (None, 1.0)
            self.apply([entry], rates, multiplier)

    def clear(self) -> None:
        """Drop the gradients that wait."""
        self.queue.clear()
        self.multiplier = 1.0
        for reference in self._parameters.values():
            parameter = reference()
            if parameter is not None and _stored(parameter) is not None:
                parameter.clear_stored()

    def parameters(self) -> "list[TableParameter]":
        """The parameters that live."""
        found = [reference() for reference in self._parameters.values()]
        return [parameter for parameter in found if parameter is not None]

    def gather(self) -> list[Entry]:
        """Return all gradients that wait: those of the queue, and those that stand in ``.grad``.

        Raises
        ------
        RuntimeError
            Ids or gradients were changed in place since the backward.
        """
        for entry in self.queue:
            for tensor, version in entry.held:
                if tensor._version != version:
                    raise RuntimeError(
                        f"table {self.names[0]}: ids, weights or gradients of a backward were "
                        "changed in place before step(); give clones of them")
        entries = self.queue
        for reference in self._parameters.values():
            parameter = reference()
            if parameter is not None and _stored(parameter) is not None:
                entries = [*entries, parameter.stored_gradient()]
        return entries

    def apply(self, entries: list[Entry], rates: dict[str, float] | None,
              multiplier: float) -> bool:
        """Apply gradients in one update, and wait until rows have them.

        Returns
        -------
        bool
            Whether there were any, here or in another process.
        """
        if self.all_replicas > 1:
            return self._apply_replicas(entries, rates, multiplier * self.share)
        if self.exchange is not None:
            entries = self.exchange_now(entries)
        if not entries:
            return False
        inputs, gradients = entries[0].whole() if len(entries) == 1 else join_entries(entries)
        engine = self.engine
        engine.update(inputs, gradients, rates, multiplier)
        engine.flush()
        return True

    def _apply_replicas(self, entries: list[Entry], rates: dict[str, float] | None,
                        multiplier: float) -> bool:
        """Have each replica of this process give its part of a step, or none."""
        if not entries and self.hosts == 1:
            return False
        parts = {replica: [e for e in entries if e.replica == replica] for replica in self.replicas}
        engine = self.engine
        if len(parts) > 1 and engine._options["non_finite"] == "error":
            self._check_finite(entries)
        for replica, mine in parts.items():
            if mine:
                inputs, gradients = mine[0].whole() if len(mine) == 1 else join_entries(mine)
                engine.update(inputs, gradients, rates, multiplier, replica=replica)
            else:
                engine.enqueue({}, replica=replica)
        for replica in (replica for replica, mine in parts.items() if not mine):
            engine.dequeue(replica)
            engine.discard(replica)
        engine.flush()
        return True

    def _check_finite(self, entries: list[Entry]) -> None:
        """Refuse a step before any replica gives its part, so that none is left half made."""
        for entry in entries:
            for name, gradient in entry.gradients.items():
                if not numpy.isfinite(gradient).all():
                    raise InvalidError(
                        f"replica {entry.replica}: feature {name}: a gradient is not finite; "
                        f"nothing "
                        "of the step was applied")

    def exchange_now(self, entries: list[Entry]) -> list[Entry]:
        """Gather the entries of all processes, which then wait in place of those of this one."""
        shared = [entry for entry in entries if entry.shared]
        mine = [entry for entry in entries if not entry.shared]
        found = [*shared, *self.exchange(self, mine)]
        if self.update == "step":
            multiplier = self.multiplier
            self.clear()
            self.queue[:] = found
            self.multiplier = multiplier
        return found

    # -- copies

    def _content(self) -> dict[str, Any]:
        if self.hosts > 1:
            raise NotSupportedError(
                f"table {self.names[0]} lies on {self.hosts} hosts, and cannot be copied or "
                f"pickled on "
                "one; all hosts together call engine.save()")
        engine = self.engine
        engine.flush()
        return {
            "tables": [engine[name]._table for name in self.names],
            "features": [f for f in engine.features if f.table in self.names],
            "update": self.update,
            "options": {**engine._options, **engine._opening},
            "layouts": list(self.layouts),
            "scales": self.scales,
            "step": engine.step,
            "memory": {(name, slot): self.memory(name, slot)
                       for name in self.names for slot in (None, *engine[name].slots)},
        }

    def __reduce__(self) -> Any:
        return _rebuild, (self._content(),)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Group":
        copy = _rebuild(self._content())
        memo[id(self)] = copy
        return copy


def _rebuild(content: dict[str, Any]) -> Group:
    group = Group([table._replace(initializer=None) for table in content["tables"]],
                  content["features"], update=content["update"], **content["options"])
    for (name, slot), values in content["memory"].items():
        group.memory(name, slot).copy_(values)
    group.scales.update(content["scales"])
    for layout in content["layouts"]:
        group.layout(layout)
    group.engine.step = content["step"]
    return group


def groups_of(parameters: Iterable[Any]) -> list[Group]:
    """Return the groups that the parameters are of, each once, in their order."""
    from ._table import TableParameter

    return list(dict.fromkeys(p.group for p in parameters if isinstance(p, TableParameter)))


def feeding(model: torch.nn.Module) -> range:
    """Return the replicas of a model's tables that this process feeds.

    Raises
    ------
    InvalidError
        The model has no tables, or some whose engines have other replicas.
    """
    found = {group.replicas for group in groups_of(model.parameters())}
    if len(found) != 1:
        raise InvalidError("the model has no tables" if not found else
                           "the tables of the model have engines of different replicas")
    return found.pop()


@contextmanager
def replica(model: torch.nn.Module, number: int) -> Iterator[None]:
    """Have the gradients of backwards within be those of one replica of a model's tables.

    Parameters
    ----------
    model : nn.Module
        It has tables whose engines have several replicas.
    number : int
        One of :func:`feeding`; without this call it is the first of them.

    Raises
    ------
    OutOfRangeError
        This process does not feed the replica.
    """
    groups = groups_of(model.parameters())
    for group in groups:
        if number not in group.replicas:
            raise OutOfRangeError(
                f"replica {number}: this process feeds {list(group.replicas)} of the "
                f"{group.all_replicas} of table {group.names[0]}")
    before = [group.replica for group in groups]
    for group in groups:
        group.replica = number
    try:
        yield
    finally:
        for group, known in zip(groups, before, strict=True):
            group.replica = known

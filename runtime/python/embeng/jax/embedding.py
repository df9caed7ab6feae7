# SPDX-License-Identifier: MIT
# mypy: allow-untyped-calls
"""Embedding tables in programs of JAX: init, lookup, apply."""
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy

from .._engine import Engine, Feature, Table, TableView
from .._errors import InvalidError, UnknownNameError
from ..initializers import Initializer
from ._calls import Arrays, Call, choose_backend, find_backend
from ._callbacks import remember_engine
from ._derivatives import look_up, refuse_derivative, refusing_forward
from ._layout import Bags, as_floats, as_number, describe_inputs, read_features
from .errors import raising

Axis = str | tuple[str, ...] | None
JaxInitializer = Callable[..., jax.Array]


class EmbeddingState(NamedTuple):
    """The place of the tables in the order of a program: a pytree of one f32 number.

    The rows are the engine's; they are not in here. A lookup sees the updates of the state that it
    is given, and an update comes after the lookups of its state. So pass states on, as any other value
    of JAX. The gradient of a state counts the lookups whose gradients wait for
    :meth:`Embedding.apply`.

    Attributes
    ----------
    token : jax.Array
        f32 of no dimension.
    """

    token: Any


def _stack_rates(rates: Mapping[str, Any] | None) -> tuple[tuple[str, ...], Any]:
    if rates is not None and not isinstance(rates, Mapping):
        raise InvalidError(f"rates are {type(rates).__name__}; give a dict from names to numbers")
    given = dict(rates or {})
    names = tuple(given)
    for name in names:
        if not isinstance(name, str) or "\n" in name or not name:
            raise UnknownNameError(f"rates: {name!r} is no name of a rate")
    values = [as_number(given[name], f"rates: {name!r}") for name in names]
    return names, jnp.stack(values) if values else jnp.zeros((0,), jnp.float32)


def _read_token(state: Any, what: str = "the state") -> jax.Array:
    """Return the token of a state as f32: programs cast states with their parameters."""
    if not isinstance(state, EmbeddingState):
        raise InvalidError(f"{what} is {type(state).__name__}; give an embeng.jax.EmbeddingState, "
                           "as EmbeddingState(**fields) makes it of a dict that was restored")
    token = as_floats(state.token, what)
    if token.shape:
        raise InvalidError(f"{what} has the shape {token.shape}; it is one number. Add up the "
                           "gradients that vmap or several layers give")
    return token


def _varies(value: Any, axis: str) -> bool:
    return axis in getattr(jax.typeof(value), "vma", ())


def _sum_count(count: Any, axis: Axis) -> Any:
    """Pushes of all devices. Where JAX tracks what varies, gradients of a state are summed."""
    for name in (axis,) if isinstance(axis, str) else axis or ():
        tracked = _varies(jax.lax.axis_index(name), name)
        if not tracked or _varies(count, name):
            count = jax.lax.psum(count, name)
    return count


def _is_first(axis: Axis) -> Any:
    return jax.lax.axis_index(axis) == 0


class Embedding:
    """Tables of an engine, for programs of JAX.

    It is static: close over it, or pass it as a static argument. The state is what programs carry.

    Parameters
    ----------
    tables : iterable of Table
        The tables, each with its optimizer.
    features : iterable of Feature, optional
        The inputs; by default each table has one of its own name.
    engine : Engine, optional
        An open engine in place of tables and features.
    initializers : mapping of str to callable, optional
        By the names of tables, initializers of JAX (``jax.nn.initializers``), with which
        :meth:`init` starts rows: they are called with a key, the shape and float32.
    calls : {"ffi", "pure", "callback"}, optional
        How programs call the engine. "ffi", the default where jaxlib takes it: foreign functions of
        XLA, with updates as effects that JAX tracks, so that one runs though nobody uses its state.
        "pure": the same, but JAX takes updates for pure and leaves out what is not used; programs
        are dispatched faster. "callback": callbacks of Python, which are slower. The variable
        ``EMBENG_JAX_CALLS`` of the environment has another default.
    **options
        Options of :class:`embeng.Engine`.

    Notes
    -----
    Thread-safe, but updates of several threads come in any order. Lookups run on CPU devices.
    """

    def __init__(self, tables: Iterable[Table] | None = None,
                 features: Iterable[Feature] | None = None, *, engine: Engine | None = None,
                 initializers: Mapping[str, JaxInitializer] | None = None,
                 calls: str | None = None, **options: Any):
        if (engine is None) == (tables is None):
            raise InvalidError("give tables, or an engine in their place")
        self._owns = engine is None
        if engine is None:
            engine = Engine(tables or (), features, **options)
        elif features is not None or options:
            raise InvalidError("features and options are those of the engine that is given")
        self.engine = engine
        self._features = read_features(engine)
        self._calls = choose_backend(calls)
        self._initializers = dict(initializers or {})
        remember_engine(engine)
        for name in self._initializers:
            engine[name]  # raises for a table that there is not

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the engine of a copy or a pickle."""
        self.__dict__.update(state)
        remember_engine(self.engine)

    @property
    def calls(self) -> str:
        """How programs call the engine."""
        return self._calls

    # -- states

    def init(self, key: jax.Array | None = None) -> EmbeddingState:
        """Start the tables again, and return the first state.

        Parameters
        ----------
        key : jax.Array, optional
            Random rows depend on it. Without one, the tables are left as they are: at first as
            their own initializers and seeds say, with the same bits as in every other framework.

        Returns
        -------
        EmbeddingState
            The state of a program that begins.

        Notes
        -----
        Runs outside of traced functions. With a key, slots and the step count start again, too.
        """
        if key is None:
            if self._initializers:
                raise InvalidError("initializers of JAX need a key: give init() one")
            return EmbeddingState(jnp.zeros((), jnp.float32))
        self.engine.flush()
        for number, table in enumerate(self.engine.tables):
            self._start_table(self.engine[table.name], table, jax.random.fold_in(key, number))
        self.engine.step = 0
        state = EmbeddingState(jnp.zeros((), jnp.float32))
        return self.discard(state)

    def _start_table(self, view: TableView, table: Table, key: jax.Array) -> None:
        function = self._initializers.get(table.name)
        if function is not None:
            view.write(numpy.asarray(function(key, view.shape, jnp.float32)))
        else:
            low, high = (int(bits) for bits in jax.random.bits(key, (2,), jnp.uint32))
            kind = table.initializer or Initializer()
            view.fill(kind._replace(seed=high << 32 | low))
        for slot in view.slots:
            starts = table.slot_starts or {}
            view.fill(starts.get(slot, Initializer()), slot=slot)

    def sync(self, state: EmbeddingState) -> None:
        """Wait until the tables have all updates of a state."""
        with raising():
            jax.block_until_ready(_read_token(state))
        self.engine.flush()

    # -- steps

    def _call(self, layouts: Any = (), axis: Axis = None) -> Call:
        return Call(self._calls, self.engine.handle, layouts, axis)

    def lookup(self, state: EmbeddingState, inputs: Mapping[str, Any], *,
               axis_name: Axis = None) -> tuple[dict[str, jax.Array], EmbeddingState]:
        """Look ids up.

        Parameters
        ----------
        state : EmbeddingState
            The state whose updates are seen.
        inputs : mapping of str to array or Ragged
            By the names of features: ids ``[samples]``, bags ``[samples, ids]`` in which -1 stands
            for no id, or :class:`embeng.Ragged`. int32 or int64.
        axis_name : str or tuple of str, optional
            The mapped axes of :func:`jax.pmap` or :func:`jax.shard_map` in which this runs.

        Returns
        -------
        dict of str to jax.Array
            f32 ``[samples, dim]``; of a sequence feature's bags ``[samples, length, dim]``.
        EmbeddingState
            The state for what comes after the lookup.

        Raises
        ------
        InvalidError, UnknownNameError
            A feature, shape or type is wrong. Wrong ids are an error of XLA when the program
            runs; :func:`embeng.jax.raising` makes it embeng's.

        Notes
        -----
        Differentiable in reverse mode, once, by the state and by weights. The gradient of the
        state is for :meth:`apply`.
        """
        layouts, bags, weights = describe_inputs(self._features, inputs)
        token = _read_token(state)
        with raising(), refusing_forward():
            looked_up: Any = look_up(self._call(layouts, axis_name), token, bags, weights)
        *found, token = looked_up
        names = [layout.name for layout in layouts]
        return dict(zip(names, found, strict=True)), EmbeddingState(token)

    def apply(self, state: EmbeddingState, gradients: EmbeddingState, *,
              rates: Mapping[str, Any] | None = None, multiplier: Any = 1.0,
              axis_name: Axis = None) -> EmbeddingState:
        """Give the rows the gradients that a backward pass computed: one step of the optimizers.

        Parameters
        ----------
        state : EmbeddingState
            The state that follows the lookups.
        gradients : EmbeddingState
            The gradient of the loss by the state, as :func:`jax.grad` returns it; several of them
            are added up for gradient accumulation.
        rates : mapping of str to float or jax.Array, optional
            Learning rates and hyperparameters that the tables' optimizers call by a name.
        multiplier : float or jax.Array
            All gradients are multiplied by it.
        axis_name : str or tuple of str, optional
            The mapped axes in which this runs: the gradients of all devices are one step.

        Returns
        -------
        EmbeddingState
            The state whose lookups see the update.

        Notes
        -----
        The gradients are those of all lookups since the last step, in the order of the backward
        pass. It is an error when they are more or fewer than `gradients` says. An update that the
        engine refuses, as for a rate that is not there, has dropped them. It runs exactly once,
        also where the returned state is not used, unless `calls` is "pure".
        """
        names, values = _stack_rates(rates)
        count = refuse_derivative("Embedding.apply()",
                                  _read_token(gradients, "the gradient of the state"))
        token, values, factor = refuse_derivative(
            "Embedding.apply()", (_read_token(state), values, as_number(multiplier, "multiplier")))
        call = self._call(axis=axis_name)
        backend = find_backend(self._calls)

        def run(token: Any, count: Any) -> Any:
            return backend.apply(call, token, count, factor, names, values)

        with raising():
            return EmbeddingState(_run_once(run, token, count, axis_name))

    def update(self, state: EmbeddingState, inputs: Mapping[str, Any],
               gradients: Mapping[str, Any], *, rates: Mapping[str, Any] | None = None,
               multiplier: Any = 1.0, axis_name: Axis = None) -> EmbeddingState:
        """Give the rows of a batch gradients that the program has: one step of the optimizers.

        Parameters
        ----------
        state : EmbeddingState
            The state that follows the lookups.
        inputs : mapping of str to array or Ragged
            As for :meth:`lookup`.
        gradients : mapping of str to array
            f32 of the activations' shapes, for each feature of `inputs`.
        rates, multiplier, axis_name
            As for :meth:`apply`.

        Returns
        -------
        EmbeddingState
            The state whose lookups see the update.
        """
        layouts, bags, weights = describe_inputs(self._features, inputs)
        call = self._call(layouts, axis_name)
        arrays = _order_gradients(call, gradients)
        names, values = _stack_rates(rates)
        backend = find_backend(self._calls)
        factor = as_number(multiplier, "multiplier")
        arguments = (_read_token(state), factor, values, weights, arrays)
        token, factor, values, weights, arrays = refuse_derivative("Embedding.update()", arguments)
        with raising():
            if axis_name is None:
                return EmbeddingState(backend.update(call, token, factor, names, values, bags,
                                                     weights, arrays))
            pushed = _push(call, bags, weights, arrays)
        counted = EmbeddingState(pushed)
        return self.apply(EmbeddingState(token), counted, rates=dict(zip(names, values,
                          strict=True)), multiplier=factor, axis_name=axis_name)

    def discard(self, state: EmbeddingState) -> EmbeddingState:
        """Drop the gradients that wait for :meth:`apply`."""
        with raising():
            return EmbeddingState(find_backend(self._calls).drop(self._call(), _read_token(state)))

    # -- tables

    def rows(self, state: EmbeddingState, table: str, *, slot: str | None = None) -> Any:
        """Return a copy of a table's rows, or of a slot, as a state has them."""
        self.sync(state)
        return self.engine[table].read(slot=slot)

    def save(self, state: EmbeddingState, target: Any, **options: Any) -> dict[str, Any]:
        """Save the tables of a state: :meth:`embeng.Engine.save`."""
        self.sync(state)
        return self.engine.save(target, **options)

    def restore(self, state: EmbeddingState, source: Any, **options: Any) -> EmbeddingState:
        """Restore tables after a state: :meth:`embeng.Engine.restore`. Return the next state."""
        self.sync(state)
        self.engine.restore(source, **options)
        return EmbeddingState(_read_token(state) + 0)

    def close(self) -> None:
        """Close the engine, unless it was given. Programs that still call it fail."""
        if self._owns:
            self.engine.close()

    def __enter__(self) -> "Embedding":
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<embeng.jax.Embedding of {self.engine!r}>"


def _order_gradients(call: Call, gradients: Mapping[str, Any]) -> Arrays:
    names = [layout.name for layout in call.layouts]
    if not isinstance(gradients, Mapping):
        raise InvalidError(f"gradients are {type(gradients).__name__}; give a dict from names of "
                           "features to arrays")
    if set(names) != set(gradients):
        raise InvalidError(f"gradients are of {', '.join(map(str, gradients)) or 'no features'}; "
                           f"the inputs are of {', '.join(names) or 'none'}")
    found = []
    for layout in call.layouts:
        array = as_floats(gradients[layout.name], f"feature {layout.name}: gradients")
        if array.shape != layout.shape:
            raise InvalidError(f"feature {layout.name}: gradients have the shape {array.shape}, "
                               f"its activations have {layout.shape}")
        found.append(array)
    return tuple(found)


def _push(call: Call, bags: tuple[Bags, ...], weights: Arrays, gradients: Arrays) -> Any:
    part = jax.lax.axis_index(call.axis).astype(jnp.float32)
    return find_backend(call.backend).push(call, jnp.zeros_like(part), part, bags, weights,
                                           gradients)


def _run_once(run: Callable[[Any, Any], Any], token: Any, count: Any, axis: Axis) -> Any:
    """Run an update on one device of mapped axes, between two points that all devices reach."""
    if axis is None:
        return run(token, count)
    total = _sum_count(count, axis)
    first = _is_first(axis)
    axes = (axis,) if isinstance(axis, str) else axis
    tracked = [name for name in axes if _varies(first, name)]
    if tracked:
        vary = partial(jax.lax.pcast, axis_name=tuple(tracked), to="varying")
        token, total = (vary(value) if not any(_varies(value, name) for name in tracked) else value
                        for value in (token, total))
    done = jax.lax.cond(first, run, lambda token, count: token, token, total)
    return jax.lax.psum(jnp.where(first, done, 0), axis)

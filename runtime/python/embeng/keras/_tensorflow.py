# SPDX-License-Identifier: MIT
"""Differentiable lookups on the TensorFlow backend of Keras: operators of :mod:`embeng.tf.ops`.

Lookups and updates are stateful, so that a tf.function runs them in the order of the program. They
run without Python; where TensorFlow does not take the operators, tf.py_function is in their place.
Learning rates that are numbers are read in the graph; for schedules and callables the host is asked
by a function that carries a few numbers.
"""
import io
from collections.abc import Sequence
from typing import Any

import numpy

from .._inputs import Ragged, Sparse
from ..tf import ops
from ..tf._forms import Call, read_call
from ..tf._strategy import do_not_convert
from ._framework import load_module
from ._inputs import DENSE, PADDING, RAGGED, Layout
from ._saving import load_tables, save_tables
from ._tables import Plan, Tables

tf = load_module("tensorflow")


# -- inputs ------------------------------------------------------------------------------

def _read_coordinates(tensors: Sequence[Any], weights: Any) -> Sparse:
    """Make bags of coordinates, in the order of samples."""
    indices, ids, shape = tensors
    parts = [indices, ids] if weights is None else [indices, ids, weights]

    def sort() -> Any:
        order = tf.argsort(indices[:, 0] * shape[1] + indices[:, 1], stable=True)
        return [tf.gather(part, order) for part in parts]

    samples = indices[:, 0]
    made = tf.cond(tf.reduce_all(samples[1:] >= samples[:-1]), lambda: parts, sort)
    return Sparse(made[0], made[1], shape, made[2] if weights is not None else None)


def _read_bags(layouts: Sequence[Layout], tensors: Sequence[Any]) -> dict[str, Any]:
    bags: dict[str, Any] = {}
    at = 0
    for layout in layouts:
        end = at + layout.tensor_count
        weights = tensors[end] if layout.weighted else None
        if layout.form == DENSE:
            bags[layout.feature] = Ragged(tensors[at], weights=weights, padding=PADDING)
        elif layout.form == RAGGED:
            bags[layout.feature] = Ragged(tensors[at], splits=tensors[at + 1], weights=weights,
                                          padding=PADDING)
        else:
            bags[layout.feature] = _read_coordinates(tensors[at:end], weights)
        at = end + layout.weighted
    return bags


# -- updates -----------------------------------------------------------------------------

def _read_rates(tables: Tables) -> list[Any]:
    """Read the learning rates of the step that comes next, as scalars."""
    found: list[Any] = []
    asked: Any = None
    for place, rate in enumerate(tables.rates):
        if rate.variable is not None:
            found.append(tf.cast(tf.convert_to_tensor(rate.variable._value), tf.float32))
            continue
        if asked is None:
            asked = tf.numpy_function(tables.read_rates, [], tf.float32)
            asked.set_shape((len(tables.rates),))
        found.append(asked[place])
    return found


def _clip(tables: Tables, call: Call, table: str, factor: Any, gradients: Sequence[Any]) -> Any:
    """Compute the factor by which ``clipnorm`` multiplies gradients, as :meth:`Tables.clip`."""
    most = tf.constant(tables.largest_norm(table), tf.float64)
    norm = ops.measure_norm(tables.engine, call, gradients) * tf.cast(factor, tf.float64)
    # A norm that is NaN stays one, as in max() of Python.
    return tf.cast(most / tf.where(norm < most, most, norm), tf.float32)


def _apply(tables: Tables, plan: Plan, call: Call, factor: Any, gradients: Sequence[Any]) -> Any:
    """Make a step of the tables that have an optimizer."""
    if not plan.trained:
        return
    numbers = _read_rates(tables)
    made = list(gradients)
    for table, features, place, clipped in plan.changed:
        by = tf.ones(()) if place is None else numbers[place]
        if clipped:
            by = by * _clip(tables, call.select(features), table, factor,
                            [gradients[k] for k in features])
        for k in features:
            made[k] = gradients[k] * by
    ops.hand_in(tables.engine, call.select(plan.trained), [made[k] for k in plan.trained],
                {name: numbers[place] for name, place in plan.rates}, factor)


def _update(tables: Tables, plan: Plan, call: Call, counter: Any, scale: Any,
            gradients: Sequence[Any]) -> Any:
    """Return the count after a step; NaN if the loss was scaled and a gradient is not finite."""
    scaled = tf.logical_and(scale != 0, scale != 1)

    def find_finite() -> Any:
        return tf.reduce_all([tf.reduce_all(tf.math.is_finite(part)) for part in gradients])

    def apply() -> Any:
        _apply(tables, plan, call, tf.where(scaled, 1 / scale, 1.0), gradients)
        return counter + 1

    wanted = tf.cond(scaled, find_finite, lambda: tf.constant(True))
    return tf.cond(wanted, apply, lambda: tf.fill([], numpy.float32(numpy.nan)))


# -- lookups -----------------------------------------------------------------------------

@do_not_convert
def look_up(tables: Tables, layouts: Sequence[Layout], counter: Any, tensors: Sequence[Any],
            outers: Sequence[Any], trained: bool) -> tuple[Any, list[Any]]:
    """Look features up, as :class:`._backends.Backend` says."""
    plan = tables.plan(layouts)
    call = read_call(tables.engine, _read_bags(layouts, tensors))

    @tf.custom_gradient
    def differentiable(count: Any, *weights: Any) -> Any:
        def differentiate(scale: Any, *gradients: Any) -> Any:
            found = ops.weigh(tables.engine, call, gradients)
            if not trained:
                return count, *found
            with tf.control_dependencies(found):
                return _update(tables, plan, call, count, scale, gradients), *found

        return (tf.zeros((), tf.float32), *ops.look_up(tables.engine, call)), differentiate

    # A tape runs all that it has seen: it is not to see a layer that is not trained.
    probe, *found = differentiable(counter if trained else tf.stop_gradient(counter),
                                   *call.weights)
    return probe, found


# -- checkpoints -------------------------------------------------------------------------

_State: Any = tf.train.experimental.PythonState


class Rows(_State):
    """Rows, slots and the count of updates of an engine in a ``tf.train.Checkpoint``.

    Parameters
    ----------
    engine : embeng.Engine
        The layer's.
    """

    def __init__(self, engine: Any):
        super().__init__()
        self._engine = engine

    def serialize(self) -> bytes:
        """Give them as the bytes of a .npz file."""
        store: dict[str, Any] = {}
        save_tables(self._engine, store)
        file = io.BytesIO()
        numpy.savez(file, **store)
        return file.getvalue()

    def deserialize(self, string_value: bytes) -> None:
        """Write them to the engine."""
        with numpy.load(io.BytesIO(string_value)) as store:
            load_tables(self._engine, store)


def synchronize() -> None:
    """Wait for updates that are under way: there are none, since a step ends before it returns."""

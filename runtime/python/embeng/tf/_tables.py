# SPDX-License-Identifier: MIT
"""Variables of TensorFlow that show the memory of tables and slots.

On a soft device a variable's value is the table's own memory: it has no copy that gets old, and
checkpoints, exports and lookups of TensorFlow read it where it is. On other devices it is a copy, as
it is on a TPU, which is renewed when the variable is saved or asked for.
"""
from collections.abc import Callable, Mapping
from typing import Any

import numpy
import tensorflow as tf

from .._engine import Engine
from .._errors import NotSupportedError
from ._ops import view_array
from ._private import ResourceVariable
from ._settings import EngineInitializer

Place = tuple[str, str | None]
_SETTINGS = ("initial_value", "trainable", "name", "dtype", "constraint", "synchronization",
             "aggregation", "shape")


def _show_memory(engine: Engine, place: Place) -> Any:
    table, slot = place
    try:
        return engine[table].numpy(slot)
    except NotSupportedError:
        return None


def _wrap_memory(memory: Any) -> Any:
    return tf.experimental.dlpack.from_dlpack(memory.__dlpack__())


def _address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


class LiveVariable(ResourceVariable):  # type: ignore[misc]
    """A variable of a table's parameters or of a slot, ``[rows, dim]``, float32.

    In eager mode, assigning to it and restoring a checkpoint into it write the table. It is not
    copied to the replicas of a strategy.
    """

    _engine: Engine | None = None
    _place: Place = ("", None)

    def attach(self, engine: Engine, table: str, slot: str | None) -> None:
        """Write the value to a table, and show the table's rows from now on.

        Parameters
        ----------
        engine : embeng.Engine
            The engine.
        table : str
            Name of the table.
        slot : str or None
            Name of a slot, or the parameters.
        """
        self._engine, self._place = engine, (table, slot)
        self.push()

    def push(self) -> None:
        """Write the value to the table, if it is not the table's memory anyway."""
        if self._engine is None:
            return
        memory = _show_memory(self._engine, self._place)
        value = view_array(self.read_value())
        if memory is not None and _address(value) == _address(memory):
            return
        table, slot = self._place
        self._engine[table].write(value, slot=slot)
        if memory is not None:
            super().assign(_wrap_memory(memory))

    def pull(self, engine: Engine | None = None) -> None:
        """Show the table's rows of now: its memory, or a copy.

        Parameters
        ----------
        engine : embeng.Engine, optional
            An engine in place of the one that was attached.
        """
        engine = self._engine = engine or self._engine
        if engine is None:
            return
        engine.flush()
        table, slot = self._place
        memory = _show_memory(engine, self._place)
        if memory is None:
            super().assign(engine[table].read(slot=slot))
        elif _address(view_array(self.read_value())) != _address(memory):
            super().assign(_wrap_memory(memory))

    def assign(self, value: Any, *args: Any, **named: Any) -> Any:
        """Assign a value, and write it to the table."""
        found = super().assign(value, *args, **named)
        if tf.executing_eagerly():
            self.push()
        return found

    def _serialize_to_tensors(self) -> Any:
        if tf.executing_eagerly() and self._engine is not None and not self._engine.closed:
            self.pull()
        return super()._serialize_to_tensors()

    def _restore_from_tensors(self, restored_tensors: Any) -> Any:
        found = super()._restore_from_tensors(restored_tensors)
        if tf.executing_eagerly():
            self.push()
        return found


def make_creator(engine: Engine, places: Mapping[str, Place]) -> Callable[..., Any]:
    """Make a creator of variables, for ``tf.variable_creator_scope``.

    Parameters
    ----------
    engine : embeng.Engine
        Its memory is the value of variables whose initializer is an :class:`EngineInitializer`.
    places : mapping of str to Place
        Names of variables and what they show.
    """
    def create(next_creator: Any, **settings: Any) -> Any:
        kept = {key: settings[key] for key in _SETTINGS if key in settings}
        initializer = getattr(kept.get("initial_value"), "func", None)
        if isinstance(initializer, EngineInitializer) and kept.get("name") in places:
            place = places[kept["name"]]
            memory = _show_memory(engine, place)
            if memory is None:
                memory = engine[place[0]].read(slot=place[1])
            kept["initial_value"] = _wrap_memory(numpy.asarray(memory))
        return LiveVariable(**kept)

    return create


def find_shard(variable: Any) -> Any:
    """Return the variable that has all rows of a table's variable."""
    shards = getattr(variable, "variables", None)
    return shards[0] if shards else variable

# SPDX-License-Identifier: MIT
"""Variables of TensorFlow that show the memory of tables and slots.

On a soft device a variable's value is the table's own memory: it has no copy that gets old, and
checkpoints, exports and lookups of TensorFlow read it where it is. On other devices it is a copy,
as it is on a TPU, which is renewed when the variable is saved or asked for.
"""
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from .._engine import Engine
from .._errors import NotSupportedError
from ._ops import view_array
from ._private import NoDependency, ResourceVariable, TPUEmbeddingBase
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


class LiveVariable(ResourceVariable):
    """A variable of a table's parameters or of a slot, ``[rows, dim]``, float32.

    In eager mode, assigning to it and restoring a checkpoint into it write the table. It is not
    copied to the replicas of a strategy.
    """

    _engine: Engine | None = None
    _place: Place = ("", None)

    @property
    def variables(self) -> list[Any]:
        """The shards of a table's variable, of which there is this one."""
        return [self]

    def attach(self, engine: Engine, table: str, slot: str | None, write: bool) -> None:
        """Show the rows of a table from now on.

        Parameters
        ----------
        engine : embeng.Engine
            The engine.
        table : str
            Name of the table.
        slot : str or None
            Name of a slot, or the parameters.
        write : bool
            Write the variable's value to the table before.
        """
        self._engine, self._place = engine, (table, slot)
        if write:
            self.push()
        else:
            self.pull()

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


def _make_creator(engine: Engine, places: Mapping[str, Place]) -> Callable[..., Any]:
    """Make a creator of live variables; those of an EngineInitializer start as the table is."""
    def create(next_creator: Any, **settings: Any) -> Any:
        kept = {key: settings[key] for key in _SETTINGS if key in settings}
        if not callable(kept.get("initial_value")):
            raise ValueError(f"Unable to extract initializer function of the variable "
                             f"{kept.get('name')}. Give a callable of shape and dtype as its "
                             "initial value, as a TPU needs one for each shard.")
        initializer = getattr(kept.get("initial_value"), "func", None)
        if isinstance(initializer, EngineInitializer) and kept.get("name") in places:
            table, slot = place = places[kept["name"]]
            memory = _show_memory(engine, place)
            kept["initial_value"] = (tf.constant(engine[table].read(slot=slot)) if memory is None
                                     else _wrap_memory(memory))
        return LiveVariable(**kept)

    return create


def create_variables(owner: Any, tables: Sequence[Any], engine: Engine,
                     write: bool = True) -> dict[str, dict[str, Any]]:
    """Create the variables of tables and slots, with the edges that checkpoints know.

    Parameters
    ----------
    owner : TPUEmbeddingBase
        The trackable object that has them.
    tables : sequence of TableConfig
        The tables, which have names.
    engine : embeng.Engine
        The engine that has the tables.
    write : bool
        Start the rows as the initializers say. Otherwise they stay as they are.

    Returns
    -------
    dict
        By name of the table, then by slot or "parameters".
    """
    found = {}
    for table in tables:
        slots = table.optimizer._slot_names() if table.optimizer else []
        places: dict[str, Place] = {f"{table.name}/{slot}": (table.name, slot) for slot in slots}
        places[table.name] = table.name, None
        with tf.variable_creator_scope(_make_creator(engine, places)):
            found[table.name] = TPUEmbeddingBase._create_variables(owner, table, False)
        for slot, variable in found[table.name].items():
            # A slot that an optimizer of Keras keeps comes wrapped.
            held = variable.value if isinstance(variable, NoDependency) else variable
            held.attach(engine, table.name, None if slot == "parameters" else slot, write)
    return found

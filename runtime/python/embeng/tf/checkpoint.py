# SPDX-License-Identifier: MIT
"""Rows and slots between ``tf.train.Checkpoint`` and engines.

A checkpoint of a TPUEmbedding has a tensor for each table and one for each slot, on a TPU and here
alike. These functions find them by the names of tables and slots, so that a table that was trained
by TensorFlow goes on in any program of embeng, and the other way round.
"""
import operator
from collections.abc import Iterable, Mapping
from os import PathLike, fspath
from typing import Any

import tensorflow as tf

from .._engine import Engine
from .._errors import (CheckpointError, CheckpointNotFoundError, InvalidError, OutOfRangeError,
                       UnknownNameError)
from .._formats import Tensor, array_tensor
from .._load import Write, check_types, write_tensors
from ._private import TrackableObjectGraph
from .embedding import TPUEmbedding

_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"


# TensorFlow's reader raises any of these where a file is damaged.
_DAMAGES = (tf.errors.OpError, IndexError, RuntimeError, ValueError)


class _Reader:
    """The tensors of a checkpoint. An error names the one that cannot be read."""

    def __init__(self, path: str | PathLike[str]):
        self.path = tf.train.latest_checkpoint(fspath(path)) or fspath(path)
        try:
            self._reader = tf.train.load_checkpoint(self.path)
            self.shapes = self._reader.get_variable_to_shape_map()
            self.types = self._reader.get_variable_to_dtype_map()
        except _DAMAGES as error:
            raise CheckpointNotFoundError(
                f"{path}: there is no checkpoint of TensorFlow, or its index is damaged; give its "
                f"folder, or its path without .index ({_first_line(error)})") from error

    def read(self, key: str) -> Any:
        """Return a tensor as numpy has it."""
        try:
            return self._reader.get_tensor(key)
        except _DAMAGES as error:
            raise CheckpointError(f"{self.path}: {key} cannot be read: {_first_line(error)}"
                                  ) from error

    def find_tables(self) -> dict[str, dict[str, str]]:
        """Find the variables of TPUEmbedding objects by the edges of the object graph."""
        if _GRAPH not in self.shapes:
            raise CheckpointError(f"{self.path}: it has no graph of objects, as "
                                  "tf.train.Checkpoint writes it; a Saver of TensorFlow 1 does not")
        return _find_tables(TrackableObjectGraph.FromString(self.read(_GRAPH)).nodes)

    def describe(self, key: str, shape: tuple[int, int]) -> Tensor:
        """Return a tensor that is read when its first row is, and forgotten after its last one."""
        kept: list[Tensor] = []

        def read(first: int, count: int) -> Any:
            if first == 0:
                kept[:] = [array_tensor(key, key, self.read(key))]
            part = kept[0].read(first, count)
            if first + count >= shape[0]:
                kept.clear()
            return part

        return Tensor(key, f"{self.path}: tensor '{key}'", shape, self.types[key].name, read)


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def list_tables(path: str | PathLike[str]) -> dict[str, dict[str, str]]:
    """List the tables that a checkpoint of a TPUEmbedding has.

    Parameters
    ----------
    path : path
        A folder, whose newest checkpoint counts, or a checkpoint's prefix.

    Returns
    -------
    dict
        From names of tables to a dict from "parameters" and slots to keys of the checkpoint.

    Raises
    ------
    CheckpointNotFoundError
        There is no checkpoint.
    CheckpointError
        It has no graph of objects.
    """
    return _Reader(path).find_tables()


def _find_tables(nodes: Any) -> dict[str, dict[str, str]]:
    def children(node: Any) -> dict[str, Any]:
        return {child.local_name: nodes[child.node_id] for child in node.children}

    tables: dict[str, dict[str, str]] = {}
    for node in nodes:
        variables = children(node).get("_variables")
        for table, slots in (children(variables) if variables is not None else {}).items():
            keys = {slot: attribute.checkpoint_key
                    for slot, variable in children(slots).items()
                    for attribute in variable.attributes if attribute.name == "VARIABLE_VALUE"}
            if "parameters" in keys:
                tables[table] = keys
    return tables


def load(engine: Engine, path: str | PathLike[str], *,
         names: Mapping[str, str] | None = None, slots: bool = True,
         step: int | None = None) -> list[str]:
    """Read tables and slots of a checkpoint into an engine.

    Parameters
    ----------
    engine : embeng.Engine
        The engine.
    path : path
        A folder, whose newest checkpoint counts, or a checkpoint's prefix.
    names : mapping of str to str, optional
        From tables of the engine to tables of the checkpoint; by default those of the same names.
    slots : bool
        Read the slots, too, of tables whose optimizers have slots of these names.
    step : int, optional
        Steps that the optimizers have counted. TPUEmbedding does not count them; they matter to
        schedules and bias corrections.

    Returns
    -------
    list of str
        Tables that were read. All is checked before the first row is written.

    Raises
    ------
    CheckpointNotFoundError, CheckpointError
        There is no checkpoint, or a file of it is damaged.
    UnknownNameError
        The checkpoint has no table of a name, or not a slot that the engine's table has.
    InvalidError, OutOfRangeError
        A table has another shape, or numbers that it cannot have.

    Notes
    -----
    Numbers of other types are rounded to float32. They are read twice: first to check them.
    """
    reader = _Reader(path)
    found = reader.find_tables()
    if step is not None and not 0 <= operator.index(step) < 2**64:
        raise OutOfRangeError(f"step is {step}; give a whole number from 0 to 2**64 - 1")
    if names is not None and not isinstance(names, Mapping):
        raise InvalidError(f"names are {type(names).__name__}; give a dict from tables of the "
                           "engine to tables of the checkpoint")
    if names is None:
        names = {table.name: table.name for table in engine.tables if table.name in found}
    if not names:
        raise UnknownNameError(f"{path}: no table of the engine is in the checkpoint, which has "
                               f"{', '.join(sorted(found)) or 'none'}")
    writes = [write for ours, theirs in names.items()
              for write in _plan_table(engine, reader, found, ours, theirs, slots)]
    write_tensors(engine, writes)
    if step is not None:
        engine.step = step
    return list(names)


def _plan_table(engine: Engine, reader: _Reader, found: Mapping[str, Mapping[str, str]], ours: str,
                theirs: str, slots: bool) -> list[Write]:
    view = engine[ours]
    if theirs not in found:
        raise UnknownNameError(f"the checkpoint has no table {theirs!r}; it has "
                               f"{', '.join(sorted(found)) or 'none'}")
    keys = found[theirs]
    missing = [slot for slot in view.slots if slot not in keys] if slots else []
    if missing:
        raise UnknownNameError(f"table {ours}: the checkpoint has no slot {missing[0]!r} of table "
                               f"{theirs}; give slots=False to start slots anew")
    writes = []
    for slot in (None, *(view.slots if slots else ())):
        key, wanted = keys[slot or "parameters"], (view.shape[0], view._width(slot))
        shape = tuple(reader.shapes[key])
        if shape != wanted:
            raise InvalidError(f"table {ours}: {slot or 'parameters'} of the checkpoint have the "
                               f"shape {shape}, and the table has {wanted}")
        writes.append(Write(ours, slot, wanted, reader.describe(key, wanted)))
    check_types(writes, cast=True)
    return writes


_Module: Any = tf.Module


class _Rows(_Module):
    """Variables with the edges that those of a TPUEmbedding have."""

    def __init__(self, engine: Engine, tables: Iterable[str]):
        super().__init__()
        self._variables = {}
        for table in tables:
            view = engine[table]
            values = {"parameters": view.read(), **{s: view.read(slot=s) for s in view.slots}}
            made = {slot: tf.Variable(tf.constant(value), trainable=False)
                    for slot, value in values.items()}
            self._variables[table] = made
            for slot, variable in made.items():
                self._track_trackable(variable, table if slot == "parameters"
                                      else f"{table}/{slot}")


def save(engine: Engine, path: str | PathLike[str], *, tables: Iterable[str] | None = None,
         root: str = "embedding") -> str:
    """Write tables and slots of an engine as a checkpoint of a TPUEmbedding.

    ``tf.train.Checkpoint(embedding=TPUEmbedding(...)).restore(path)`` reads it, with TensorFlow's
    classes and with ours. The engine's step count is not in it.

    Parameters
    ----------
    engine : embeng.Engine
        The engine.
    path : path
        Prefix of the checkpoint's files.
    tables : iterable of str, optional
        Names of tables; all by default.
    root : str
        Name of the TPUEmbedding in the checkpoint.

    Returns
    -------
    str
        The prefix.
    """
    engine.flush()
    chosen = [table.name for table in engine.tables] if tables is None else list(tables)
    rows = _Rows(engine, chosen)
    return str(tf.train.Checkpoint(**{root: rows}).write(fspath(path)))


def engine_of(embedding: TPUEmbedding) -> Engine:
    """Return the engine of a TPUEmbedding that is built, for :meth:`embeng.Engine.save` and such.

    Raises
    ------
    RuntimeError
        It is not built, or its tables are gone.
    """
    return embedding._open().engine

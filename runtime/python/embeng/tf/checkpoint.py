# SPDX-License-Identifier: MIT
"""Rows and slots between ``tf.train.Checkpoint`` and engines.

A checkpoint of a TPUEmbedding has a tensor for each table and one for each slot, on a TPU and here
alike. These functions find them by the names of tables and slots, so that a table that was trained
by TensorFlow goes on in any program of embeng, and the other way round.
"""
from collections.abc import Iterable, Mapping
from os import PathLike, fspath
from typing import Any

import tensorflow as tf

from .._engine import Engine
from .._errors import CheckpointNotFoundError, InvalidError, UnknownNameError
from ._private import TrackableObjectGraph
from .embedding import TPUEmbedding

_VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"


def _open_reader(path: str | PathLike[str]) -> Any:
    found = tf.train.latest_checkpoint(fspath(path)) or fspath(path)
    try:
        return tf.train.load_checkpoint(found)
    except (ValueError, tf.errors.OpError) as error:
        raise CheckpointNotFoundError(f"{path}: there is no checkpoint of TensorFlow; give its "
                                      "folder, or its path without .index") from error


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
    """
    return _find_tables(_open_reader(path))


def _find_tables(reader: Any) -> dict[str, dict[str, str]]:
    """Find the variables of TPUEmbedding objects by the edges of the object graph."""
    graph = TrackableObjectGraph.FromString(
        reader.get_tensor("_CHECKPOINTABLE_OBJECT_GRAPH"))
    nodes = graph.nodes

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
    CheckpointNotFoundError
        There is no checkpoint.
    UnknownNameError
        The checkpoint has no table of a name, or not a slot that the engine's table has.
    InvalidError
        A table has another shape.
    """
    reader = _open_reader(path)
    found = _find_tables(reader)
    if names is None:
        names = {table.name: table.name for table in engine.tables if table.name in found}
    if not names:
        raise UnknownNameError(f"{path}: no table of the engine is in the checkpoint, which has "
                               f"{', '.join(sorted(found)) or 'none'}")
    moves = [move for ours, theirs in names.items()
             for move in _plan_table(engine, reader, found, ours, theirs, slots)]
    for table, slot, key in moves:
        engine[table].write(reader.get_tensor(key), slot=slot)
    if step is not None:
        engine.step = step
    return list(names)


def _plan_table(engine: Engine, reader: Any, found: Mapping[str, Mapping[str, str]], ours: str,
                theirs: str, slots: bool) -> list[tuple[str, str | None, str]]:
    view = engine[ours]
    if theirs not in found:
        raise UnknownNameError(f"the checkpoint has no table {theirs!r}; it has "
                               f"{', '.join(sorted(found)) or 'none'}")
    keys = found[theirs]
    missing = [slot for slot in view.slots if slot not in keys] if slots else []
    if missing:
        raise UnknownNameError(f"table {ours}: the checkpoint has no slot {missing[0]!r} of table "
                               f"{theirs}; give slots=False to start slots anew")
    wanted: list[tuple[str, str | None, str]] = [(ours, None, keys["parameters"])]
    wanted += [(ours, slot, keys[slot]) for slot in view.slots] if slots else []
    shapes = reader.get_variable_to_shape_map()
    for _, slot, key in wanted:
        if tuple(shapes[key]) != view.shape:
            raise InvalidError(f"table {ours}: {slot or 'parameters'} of the checkpoint have the "
                               f"shape {tuple(shapes[key])}, and the table has {view.shape}")
    return wanted


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

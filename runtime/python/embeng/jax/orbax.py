# SPDX-License-Identifier: MIT
"""Stacked tables of jax-tpu-embedding, as arrays and as checkpoints of orbax.

A stack holds tables over a grid of SparseCores: row r of a table is on the core
``(r + shard_rotation) % cores``, at ``r // cores + row_offset_in_shard`` of its shard. Here rows
come out of stacks into the tables of an engine of the same names, and back.
"""
import importlib
import os
from collections.abc import Mapping
from os import PathLike
from typing import Any

import jax
import numpy

from .._engine import Engine, TableView
from .._errors import InvalidError, UnknownNameError
from .sparsecore import EmbeddingVariables

__all__ = ["export_stacks", "import_stacks", "load_stacks", "save_stacks"]


def _find_rows(spec: Any, cores: int, height: int) -> Any:
    """Return where the rows of a table stand in the array of its stack."""
    setting = spec.setting_in_stack
    rows = numpy.arange(spec.vocabulary_size)
    core = (rows + setting.shard_rotation) % cores
    return core * (height // cores) + rows // cores + setting.row_offset_in_shard


def _specs_of(table_specs: Any) -> list[Any]:
    return list(jax.tree.leaves(table_specs))


def _list_slots(view: TableView, count: int) -> list[str]:
    if len(view.slots) != count:
        raise InvalidError(f"table {view.name}: its optimizer has the slots "
                           f"{', '.join(view.slots) or 'none'}, the stack has {count}")
    return list(view.slots)


def _read_slots(given: Any) -> list[Any]:
    """Return slots in their order: orbax gives tuples back as lists, or as dicts of fields."""
    if isinstance(given, Mapping):
        return [given[name] for name in given]
    return list(given)


def _read_stack(given: Any) -> tuple[Any, list[Any]]:
    if isinstance(given, Mapping):
        return given["table"], _read_slots(given.get("slot") or ())
    return given.table, _read_slots(given.slot)


def _check_height(name: str, height: int, cores: int) -> None:
    if cores < 1 or height % cores:
        raise InvalidError(f"stack {name}: its {height} rows are no multiple of {cores} cores")


def import_stacks(engine: Engine, stacks: Mapping[str, Any], table_specs: Any, *, cores: int,
                  slots: bool = True) -> None:
    """Write the rows of stacks into the tables of an engine that have the same names.

    Parameters
    ----------
    engine : Engine
        With the tables of the specifications.
    stacks : mapping of str to EmbeddingVariables
        By stack the table ``[rows, width]`` and its slots, or dicts of them.
    table_specs : nested TableSpec
        Specifications of the tables, prepared for training.
    cores : int
        SparseCores of the whole grid.
    slots : bool
        Write slots, too. Their order is that of jax-tpu-embedding's optimizers, which
        the engine's optimizers of the same name share.

    Raises
    ------
    UnknownNameError
        A stack or table is not there.
    InvalidError
        A shape or the number of slots does not fit. Nothing was written of that table.
    """
    for spec in _specs_of(table_specs):
        name = spec.setting_in_stack.stack_name
        if name not in stacks:
            raise UnknownNameError(f"table {spec.name}: there is no stack {name!r}; there are "
                                   f"{', '.join(stacks)}")
        table, given = _read_stack(stacks[name])
        view = engine[spec.name]
        if view.shape != (spec.vocabulary_size, spec.embedding_dim):
            raise InvalidError(f"table {spec.name} has the shape {view.shape}; its specification "
                               f"says {(spec.vocabulary_size, spec.embedding_dim)}")
        names: list[str | None] = [None]
        if slots:
            names += _list_slots(view, len(given))
        _check_height(name, table.shape[0], cores)
        places = _find_rows(spec, cores, table.shape[0])
        for slot, array in zip(names, [table, *given], strict=False):
            rows = numpy.asarray(array)[places, :spec.embedding_dim]
            view.write(numpy.ascontiguousarray(rows, numpy.float32), slot=slot)


def export_stacks(engine: Engine, table_specs: Any, *, cores: int,
                  slots: bool = True) -> dict[str, EmbeddingVariables]:
    """Return the tables of an engine as stacks; padding is zeros.

    Parameters
    ----------
    engine, table_specs, cores, slots
        As for :func:`import_stacks`.

    Returns
    -------
    dict of str to EmbeddingVariables
        By stack, f32 ``[rows, width]``.
    """
    found: dict[str, list[Any]] = {}
    for spec in _specs_of(table_specs):
        stack = spec.stacked_table_spec
        view = engine[spec.name]
        names: list[str | None] = [None, *(view.slots if slots else ())]
        shape = (stack.stack_vocab_size, stack.stack_embedding_dim)
        _check_height(stack.stack_name, shape[0], cores)
        arrays = found.setdefault(stack.stack_name,
                                  [numpy.zeros(shape, numpy.float32) for _ in names])
        if len(arrays) != len(names):
            raise InvalidError(f"stack {stack.stack_name}: table {spec.name} has another number of "
                               "slots than the tables before it")
        places = _find_rows(spec, cores, shape[0])
        for slot, array in zip(names, arrays, strict=True):
            array[places, :spec.embedding_dim] = view.read(slot=slot)
    return {name: EmbeddingVariables(table, tuple(rest)) for name, (table, *rest) in found.items()}


def _import_orbax() -> Any:
    """Import orbax, which only files of its own need."""
    return importlib.import_module("orbax.checkpoint")


def load_stacks(path: str | PathLike[str]) -> dict[str, Any]:
    """Return the stacks of a checkpoint of orbax, as numpy arrays.

    Parameters
    ----------
    path : path
        The folder of one checkpoint of a dict of EmbeddingVariables.
    """
    with _import_orbax().PyTreeCheckpointer() as checkpointer:
        tree = checkpointer.restore(os.path.abspath(path))
    found = {}
    for name, given in tree.items():
        table, slots = _read_stack(given)
        found[name] = EmbeddingVariables(numpy.asarray(table),
                                         tuple(numpy.asarray(slot) for slot in slots))
    return found


def save_stacks(path: str | PathLike[str], stacks: Mapping[str, EmbeddingVariables]) -> None:
    """Save stacks as a checkpoint of orbax.

    Parameters
    ----------
    path : path
        A folder that is not there yet.
    stacks : mapping of str to EmbeddingVariables
        The result of :func:`export_stacks`.
    """
    with _import_orbax().PyTreeCheckpointer() as checkpointer:
        checkpointer.save(os.path.abspath(path), dict(stacks))

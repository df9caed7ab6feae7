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
from .._errors import CheckpointError, EmbengError, InvalidError, UnknownNameError
from .._formats import Tensor
from .._load import Write, check_types, write_tensors
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


def _read_stack(name: str, given: Any) -> tuple[Any, list[Any]]:
    """Return the table of a stack and its slots, as arrays of numpy."""
    parts = given if isinstance(given, Mapping) else {
        part: getattr(given, part, None) for part in ("table", "slot")}
    if parts.get("table") is None:
        raise InvalidError(f"stack {name}: a {type(given).__name__} without a table is given; give "
                           "EmbeddingVariables, or a dict of table and slot")
    slots = [numpy.asarray(slot) for slot in _read_slots(parts.get("slot") or ())]
    return numpy.asarray(parts["table"]), slots


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
    InvalidError, OutOfRangeError
        A shape or the number of slots does not fit, or a number is none that the table can have.

    Notes
    -----
    All is checked before the first row is written.
    """
    if not isinstance(stacks, Mapping):
        raise InvalidError(f"stacks are {type(stacks).__name__}; give a dict of them by name")
    writes = [write for spec in _specs_of(table_specs)
              for write in _plan_table(engine[spec.name], stacks, spec, cores, slots)]
    check_types(writes, cast=True)
    write_tensors(engine, writes)


def _plan_table(view: TableView, stacks: Mapping[str, Any], spec: Any, cores: int,
                slots: bool) -> list[Write]:
    """Return what the arrays of a stack are for in one table."""
    name = spec.setting_in_stack.stack_name
    if name not in stacks:
        raise UnknownNameError(f"table {spec.name}: there is no stack {name!r}; there are "
                               f"{', '.join(map(str, stacks))}")
    table, given = _read_stack(name, stacks[name])
    if view.shape != (spec.vocabulary_size, spec.embedding_dim):
        raise InvalidError(f"table {spec.name} has the shape {view.shape}; its specification "
                           f"says {(spec.vocabulary_size, spec.embedding_dim)}")
    names: list[str | None] = [None]
    if slots:
        names += _list_slots(view, len(given))
    height = table.shape[0] if table.ndim else 0
    _check_height(name, height, cores)
    places = _find_rows(spec, cores, height)
    if int(places.max()) >= height:
        raise InvalidError(f"table {spec.name}: its specification wants row {places.max()} of "
                           f"stack {name}, which has {height}")
    return [_plan_write(view, slot, f"stack {name}", array, places, height)
            for slot, array in zip(names, [table, *given], strict=False)]


def _plan_write(view: TableView, slot: str | None, stack: str, array: Any, places: Any,
                height: int) -> Write:
    """Return what one array of a stack is for; its rows are copied piece by piece later."""
    rows, width = view.shape[0], view._width(slot)
    where = f"{stack}: its {slot or 'table'}"
    if array.ndim != 2 or array.shape[0] != height or array.shape[1] < width:
        raise InvalidError(f"{where} has the shape {array.shape}; table {view.name} needs "
                           f"{height} rows and {width} columns")

    def read(first: int, count: int) -> Any:
        part = array[places[first:first + count], :width]
        return numpy.ascontiguousarray(part, numpy.float32)

    return Write(view.name, slot, (rows, width),
                 Tensor(where, where, (rows, width), array.dtype.name, read))


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

    Raises
    ------
    FileNotFoundError
        There is no checkpoint.
    CheckpointError
        It is damaged, or not one of stacks.
    """
    orbax = _import_orbax()
    try:
        with orbax.PyTreeCheckpointer() as checkpointer:
            tree = checkpointer.restore(os.path.abspath(path))
        read = {name: _read_stack(name, given) for name, given in tree.items()}
    except EmbengError as error:
        raise CheckpointError(f"{path}: {error}") from None
    except FileNotFoundError:
        raise
    except Exception as error:  # orbax and tensorstore have no class for damage
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise CheckpointError(f"{path}: orbax cannot read it: {first}") from error
    return {name: EmbeddingVariables(table, tuple(slots)) for name, (table, slots) in read.items()}


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

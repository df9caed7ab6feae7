# SPDX-License-Identifier: MIT
"""Rows, slots and the count of updates of an engine as the entries of a file of Keras.

Entries are ``TABLE.parameters``, ``TABLE.SLOT`` and ``updates``, with the name of the table as URLs
have it. They do not depend on the backend.
"""
from collections.abc import MutableMapping
from typing import Any
from urllib.parse import quote

import numpy

from .._engine import Engine
from .._errors import CheckpointError

_STEP = "updates"


def _name_entry(table: str, slot: str | None) -> str:
    # HDF5 makes a group of what stands before a slash.
    return f"{quote(table, safe='')}.{slot or 'parameters'}"


def save_tables(engine: Engine, store: MutableMapping[str, Any]) -> None:
    """Write all tables into a store."""
    for table in engine:
        for slot in (None, *table.slots):
            store[_name_entry(table.name, slot)] = table.read(slot=slot)
    store[_STEP] = numpy.int64(engine.step)


def load_tables(engine: Engine, store: MutableMapping[str, Any]) -> None:
    """Read all tables out of a store.

    Raises
    ------
    CheckpointError
        An entry is not there, or has another shape. Nothing was changed then.
    """
    found: list[tuple[Any, str | None, Any]] = []
    for table in engine:
        for slot in (None, *table.slots):
            key = _name_entry(table.name, slot)
            if key not in store.keys():
                raise CheckpointError(f"the file has no {key}; it has {', '.join(store.keys())}")
            rows = store[key]
            wanted = table.shape[0], table._width(slot)
            if tuple(rows.shape) != wanted:
                raise CheckpointError(f"{key} is {list(rows.shape)} in the file, and "
                                      f"{list(wanted)} here")
            found.append((table, slot, rows))
    for table, slot, rows in found:
        table.write(numpy.asarray(rows, numpy.float32), slot=slot)
    engine.step = int(numpy.asarray(store[_STEP]))

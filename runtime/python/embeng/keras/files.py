# SPDX-License-Identifier: MIT
"""Tables and slots out of files of Keras that other layers wrote: ``.keras`` and ``.weights.h5``.

Such a file holds the variables of each layer below the layer's path, and those of the optimizer in
one list, in the order in which the model has its trainable variables. Reading needs h5py, which
Keras requires, and no class of the model that was saved.
"""
import io
import json
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from typing import Any

import numpy

from .._engine import TableView
from .._errors import CheckpointError, EmbengError
from .._formats import Tensor
from .._load import Write, check_types, write_tensors
from ._framework import load_module

# Slots of Keras' optimizers, in their order, as slots of the engine. An optimizer has those of one
# variable side by side, but RMSprop has one slot of all variables after another.
_SLOTS: dict[str, tuple[str, ...]] = {
    "SGD": ("momenta",), "Adagrad": ("accumulators",), "Adam": ("momenta", "velocities"),
    "AdamW": ("momenta", "velocities"), "Ftrl": ("accumulators", "linears"),
    "RMSprop": ("ms", "mom", "mg"), "Adadelta": ("accumulators", "updates"), "Lion": ("momenta",)}


# zipfile and h5py raise any of these where a file is damaged.
_DAMAGES = (OSError, EOFError, KeyError, RuntimeError, ValueError, zipfile.BadZipFile,
            zlib.error)


@contextmanager
def _naming_damage(source: "str | PathLike[str]") -> Iterator[None]:
    """Say of a file that cannot be read that it is damaged, or no file of Keras."""
    try:
        yield
    except (EmbengError, FileNotFoundError, IsADirectoryError, PermissionError):
        raise
    except _DAMAGES as error:
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise CheckpointError(f"{source}: it is damaged, or no file of Keras: {first}") from error


def _open_weights(source: "str | PathLike[str]") -> tuple[Any, dict[str, Any] | None]:
    """Open the HDF5 file and the configuration of the model, if the file has one."""
    h5py = load_module("h5py")
    if not zipfile.is_zipfile(source):
        return h5py.File(source, "r"), None
    with zipfile.ZipFile(source) as archive:
        config = json.loads(archive.read("config.json"))
        return h5py.File(io.BytesIO(archive.read("model.weights.h5")), "r"), config


def list_keras_tables(source: "str | PathLike[str]") -> dict[str, tuple[int, ...]]:
    """List the variables of layers in a file of Keras.

    Parameters
    ----------
    source : path
        A ``.keras`` or ``.weights.h5`` file.

    Returns
    -------
    dict of str to tuple of int
        Shapes of all variables that are matrices, by their path in the file.
    """
    with _naming_damage(source), _open_weights(source)[0] as file:
        return {path: tuple(file[path].shape) for path in _walk_variables(file)
                if file[path].ndim == 2}


def _read_optimizer(config: Mapping[str, Any] | None) -> tuple[str, dict[str, Any]] | None:
    """Find the optimizer that the model was compiled with."""
    given = ((config or {}).get("compile_config") or {}).get("optimizer")
    if not isinstance(given, dict):
        return None
    return given["class_name"], given["config"]


def _slot_names(kind: str, settings: Mapping[str, Any]) -> tuple[str, ...]:
    names = _SLOTS.get(kind, ())
    if kind == "SGD" and not settings["momentum"]:
        return ()
    if kind == "RMSprop":
        return ("ms", *(["mom"] if settings["momentum"] > 0 else []),
                *(["mg"] if settings["centered"] else []))
    return names


def _order_paths(paths: list[str], shape: tuple[int, ...]) -> list[str]:
    """Put the variables of one shape into the order in which the model has them.

    Keras numbers the layers of one class in their order: ``embedding``, ``embedding_1``, and so on.
    """
    kinds = {re.sub(r"_\d+(?=/|$)", "", path) for path in paths}
    if len(kinds) > 1:
        raise CheckpointError(f"the slots of {', '.join(paths)} cannot be told apart: all are "
                              f"{list(shape)}; give slots=False")
    return sorted(paths, key=lambda path: [int(n) for n in re.findall(r"_(\d+)(?=/|$)", path)])


def _find_slots(variables: Any, kind: str, names: tuple[str, ...], shape: tuple[int, ...],
                which: int, count: int) -> dict[str, Any]:
    """Take the slots of the `which`-th of `count` variables of a shape out of an optimizer's."""
    arrays = [variables[str(i)] for i in range(len(variables))]
    matching = [array for array in arrays if tuple(array.shape) == shape]
    if len(matching) != count * len(names):
        raise CheckpointError(f"the optimizer of the file has {len(matching)} slots of the shape "
                              f"{list(shape)}, and not {count * len(names)}; give slots=False")
    first, apart = (which, count) if kind == "RMSprop" else (which * len(names), 1)
    return {name: matching[first + k * apart] for k, name in enumerate(names)}


def _convert_slot(kind: str, settings: Mapping[str, Any], rows: Any) -> Any:
    """Give rows of a slot of Keras as the engine's."""
    if kind == "SGD":
        return -rows
    if kind == "Adagrad":
        return rows + numpy.float32(settings["epsilon"])
    return rows


def _plan_write(view: TableView, slot: str | None, where: str, dataset: Any,
                optimizer: tuple[str, dict[str, Any]] | None) -> Write:
    """Return what a variable of the file is for; its rows are read piece by piece later."""
    wanted = view.shape[0], view._width(slot)
    if tuple(dataset.shape) != wanted:
        raise CheckpointError(f"{where} is {list(dataset.shape)} in the file, and "
                              f"{f'slot {slot} of ' if slot else ''}table {view.name} is "
                              f"{list(wanted)}")

    def read(first: int, count: int) -> Any:
        rows = dataset[first:first + count]
        if optimizer is not None:
            rows = _convert_slot(*optimizer, rows)
        return numpy.ascontiguousarray(rows, numpy.float32)

    return Write(view.name, slot, wanted,
                 Tensor(where, where, wanted, str(dataset.dtype.name), read))


def load_keras_tables(layer: Any, source: "str | PathLike[str]", names: Mapping[str, str], *,
                      slots: bool = True) -> int:
    """Read tables of a layer out of a file that a model of Keras or keras-rs wrote.

    Parameters
    ----------
    layer : DistributedEmbedding
        The layer, whose tables are in the engine.
    source : path
        A ``.keras`` file, or a ``.weights.h5`` file, which has no slots that can be told apart.
    names : mapping of str to str
        From tables of the layer to paths in the file; :func:`list_keras_tables` lists those.
    slots : bool
        Read the slots of the model's optimizer and its count of steps as well, if the file has
        them and each table has the same optimizer.

    Returns
    -------
    int
        How many slots were read.

    Raises
    ------
    CheckpointError
        A path is not in the file, a shape is another one, slots are missing, or the file is
        damaged.
    UnknownNameError
        There is no such table, or its optimizer has other slots.
    OutOfRangeError
        A number is none that the table can have.

    Notes
    -----
    All is checked before the first row is written. The formulas are the same, and so are the
    numbers of the steps that follow, up to rounding, on the rows that a batch touches.
    """
    engine = layer.engine
    with _naming_damage(source):
        file, config = _open_weights(source)
        optimizer = _read_optimizer(config) if slots else None
        with file:
            writes = [write for table, path in names.items()
                      for write in _plan_table(engine[table], file, path, optimizer)]
            check_types(writes, cast=True)
            step = None
            if optimizer is not None and "optimizer/vars/0" in file:
                step = int(file["optimizer/vars/0"][()])
            write_tensors(engine, writes)
    if step is not None:
        engine.step = step
    return sum(write.slot is not None for write in writes)


def _plan_table(view: TableView, file: Any, path: str,
                optimizer: tuple[str, dict[str, Any]] | None) -> list[Write]:
    """Return what the variables of one table are for: its rows, and the slots of an optimizer."""
    paths = _walk_variables(file)
    if path not in paths:
        matrices = [other for other in paths if file[other].ndim == 2]
        raise CheckpointError(f"the file has no {path}; its matrices are {', '.join(matrices)}")
    writes = [_plan_write(view, None, path, file[path], None)]
    if optimizer is None or "optimizer/vars" not in file:
        return writes
    shape = view.shape
    same = _order_paths([other for other in paths if file[other].shape == shape], shape)
    found = _find_slots(file["optimizer/vars"], optimizer[0], _slot_names(*optimizer), shape,
                        same.index(path), len(same))
    return writes + [_plan_write(view, slot, dataset.name.lstrip("/"), dataset, optimizer)
                     for slot, dataset in found.items()]


def _walk_variables(file: Any) -> list[str]:
    """List the paths of the variables of layers."""
    h5py = load_module("h5py")
    found: list[str] = []

    def look(path: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and not path.startswith("optimizer/"):
            found.append(path)

    file.visititems(look)
    return found

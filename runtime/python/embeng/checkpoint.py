# SPDX-License-Identifier: MIT
"""Checkpoints: reading them without an engine, and exchanging tables with other frameworks.

:meth:`embeng.Engine.save` and :meth:`embeng.Engine.restore` write and read checkpoints of the
library. :func:`open` reads one without an engine. :func:`export` writes tables as npy, as
safetensors or as a state dict of PyTorch, and :func:`load` reads these back, or those of other
programs. Tables go piece by piece, in memory of 16 MiB, however large they are; npy and torch files
are mapped while they are read.

Files that export writes
------------------------
npy
    A folder with a file for each tensor, ``TABLE.npy`` and ``TABLE.SLOT.npy``, and an
    ``index.json`` with the step. Characters that names of files cannot have are written as in URLs.
safetensors
    One file, with the step as metadata; with ``shard_bytes`` a folder of files and Hugging Face's
    ``model.safetensors.index.json``. Keys are ``TABLE.weight`` and ``TABLE.SLOT``.
torch
    A file for ``torch.load``: a state dict with keys ``TABLE.weight``; with slots a dict of
    ``state_dict`` and ``optimizer``. The latter is for ``load_state_dict`` of the optimizer of
    torch.optim (of torchrec for row-wise kinds) that has the table's formula. Tables whose settings
    are equal are one param_group. Settings that updates give by name, such as a rate, are left out.

Keys that load finds
--------------------
The parameters of a table are ``TABLE``, ``TABLE.weight`` or ``TABLE/parameters``, or ``TABLE`` or
``TABLE.weight`` behind a prefix and a dot, such as torchrec's ``embedding_bags.TABLE.weight``. In
an engine with one table they may also be ``weight``. A key that fits several tables is that of
the longest name. Slots are ``TABLE.SLOT`` or ``TABLE/SLOT`` with the same prefix, or the state of
an optimizer. A state dict may be inside of a dict, as ``state_dict``, ``model_state_dict``,
``model_state`` or ``model``, beside the state dict of an optimizer, as ``optimizer``,
``optimizer_state_dict``, ``optimizer_state`` or ``optim``.

State of optimizers
-------------------
Slots of the engine and the state of optimizers hold the same numbers where their formulas are the
same (embeng-optimizers(7), and the formulas in the documentation of torch.optim):

====================  ============  ==============================  ===============================
kind                  slot          state                           formula of the state
====================  ============  ==============================  ===============================
adagrad               accumulators  sum (torch), momentum1 (FBGEMM) s += g * g
rowwise_adagrad       accumulators  sum (torchrec), momentum1       s += mean(g * g), one a row
adam                  momenta       exp_avg, momentum1              m = b1 * m + (1 - b1) * g
adam                  velocities    exp_avg_sq, momentum2           v = b2 * v + (1 - b2) * g * g
partial_rowwise_adam  momenta       exp_avg, momentum1              as adam
partial_rowwise_adam  velocities    exp_avg_sq, momentum2           with mean(g * g), one a row
momentum              momenta       momentum_buffer                 m = momentum * m + g
adadelta              accumulators  square_avg                      a = rho * a + (1 - rho) * g * g
adadelta              updates       acc_delta                       u = rho * u + (1 - rho) * d * d
rms_prop              ms            square_avg                      v = rho * v + (1 - rho) * g * g
centered_rms_prop     ms, mg        square_avg, grad_avg            likewise, and the mean of g
lion                  momenta       exp_avg                         m = b2 * m + (1 - b2) * g
====================  ============  ==============================  ===============================

The slot mom of rms_prop has no counterpart: it contains the learning rate, torch's momentum_buffer
does not.
"""
import os
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from os import PathLike
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from . import _core
from . import _formats as formats
from . import _torch_files as torch_files
from ._engine import Engine
from ._formats import Entry, SavedTable, describe_tables, invalid, shape_text, unknown
from ._load import load
from ._progress import Bar, Progress

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    FloatArray = NDArray[numpy.float32]

__all__ = ["Checkpoint", "SavedTable", "export", "load", "open"]

_Path = str | PathLike[str]


# -- checkpoints of the library


class Checkpoint:
    """A checkpoint that is open for reading. :func:`open` makes one; it is a context manager.

    Notes
    -----
    Any number of threads may read at once.
    """

    def __init__(self, source: "_Path | BinaryIO", back: int = 0, step: int | None = None):
        self._core: _core.Checkpoint | None = _core.Checkpoint(source, back, step)
        self._about = self._core.describe()
        self._tables = describe_tables(self._about["model"])

    def __enter__(self) -> "Checkpoint":
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()

    def __repr__(self) -> str:
        tables = ", ".join(f"{t.name} {t.shape[0]}x{t.shape[1]}" for t in self._tables.values())
        return f"<embeng.checkpoint.Checkpoint of step {self.step}: {tables}>"

    def close(self) -> None:
        """Close it. Reads that are under way end first."""
        self._core = None

    @property
    def tables(self) -> dict[str, SavedTable]:
        """Its tables by their names, in their order."""
        return dict(self._tables)

    @property
    def step(self) -> int:
        """How many updates were counted when it was saved."""
        return int(self._about["step"])

    @property
    def program_state(self) -> str | None:
        """The text that the program saved with it."""
        text: str | None = self._about["program_state"]
        return text

    @property
    def bytes(self) -> int:
        """Size of its files."""
        return int(self._about["bytes"])

    def describe(self) -> dict[str, Any]:
        """Return all that is known of it: its model, files, chunks and deltas."""
        return self._open().describe()

    def _open(self) -> _core.Checkpoint:
        if self._core is None:
            raise ValueError("the checkpoint is closed")
        return self._core

    def slots(self, table: str) -> dict[str, int]:
        """Return the slots of a table, with their columns."""
        return dict(self._table(table).slots)

    def _table(self, name: str) -> SavedTable:
        if name not in self._tables:
            raise unknown(f"the checkpoint has no table '{name}'; its tables are "
                          f"{', '.join(self._tables)}")
        return self._tables[name]

    def _width(self, table: SavedTable, slot: str | None) -> int:
        if slot is None or slot == "parameters":
            return table.shape[1]
        if slot not in table.slots:
            raise unknown(f"table {table.name} of the checkpoint has no slot '{slot}'; it has "
                          f"{', '.join(table.slots) or 'none'}")
        return table.slots[slot]

    def read(self, table: str, rows: "slice | range | None" = None, *, slot: str | None = None,
             out: "FloatArray | None" = None) -> "FloatArray":
        """Copy rows that follow each other.

        Parameters
        ----------
        table : str
            The table's name.
        rows : slice or range, optional
            Rows with a step of 1; all rows by default.
        slot : str, optional
            A slot's name; the parameters by default.
        out : ndarray of float32, optional
            Where they go, ``[rows, width]``, C-contiguous.

        Returns
        -------
        ndarray of float32
            ``[rows, width]``; `out` where it is given.

        Raises
        ------
        UnknownNameError, OutOfRangeError, ValueError
            There is no such table, slot or row, or `out` has another shape.
        CheckpointError
            The rows are damaged; the sentence names file and offset.
        """
        import numpy

        about = self._table(table)
        width = self._width(about, slot)
        first, count = _rows(about, rows)
        if out is None:
            out = numpy.empty((count, width), numpy.float32)
        elif out.shape != (count, width):
            raise invalid(f"out has the shape {shape_text(out.shape)}, the rows are "
                          f"{shape_text((count, width))}")
        if count:
            self._open().read(table, out, slot, first)
        return out

    def verify(self, progress: Progress = None) -> None:
        """Read everything and compare it with its checksums.

        Raises
        ------
        CheckpointError
            Something is damaged; the sentence names file and offset.
        """
        with Bar(progress) as tell:
            self._open().verify(tell)


def _rows(table: SavedTable, rows: "slice | range | None") -> tuple[int, int]:
    if isinstance(rows, range):
        first, last, step = rows.start, rows.stop, rows.step
        if len(rows) and (first < 0 or last > table.shape[0]):
            raise invalid(f"table {table.name}: rows {rows} are asked for; it has rows 0 to "
                          f"{table.shape[0] - 1}")
    elif rows is None or isinstance(rows, slice):
        first, last, step = (rows or slice(None)).indices(table.shape[0])
    else:
        raise TypeError(f"rows: a slice, a range or None is allowed, not {type(rows).__name__}")
    if step != 1:
        raise invalid(f"table {table.name}: rows have the step {step}; only 1 is allowed")
    return first, max(0, last - first)


def open(source: "_Path | BinaryIO", back: int = 0, step: int | None = None) -> Checkpoint:
    """Open a checkpoint for reading, without an engine.

    Parameters
    ----------
    source : path or file object
        A folder that :meth:`embeng.Engine.save` wrote, or a file that is open for reading bytes.
    back : int
        How many checkpoints of the folder before the newest.
    step : int, optional
        The newest checkpoint of this step.

    Returns
    -------
    Checkpoint
        A context manager.

    Raises
    ------
    CheckpointNotFoundError, CheckpointError
        There is none, or it is damaged.
    """
    return Checkpoint(source, back, step)


# -- export


class _Origin(NamedTuple):
    tables: dict[str, SavedTable]
    step: int
    read: Callable[[str, str | None, int, Any], object]


def _origin(source: "Engine | Checkpoint | _Path", stack: ExitStack) -> _Origin:
    if isinstance(source, Engine):
        engine = source
        engine.flush()
        return _Origin(describe_tables(engine.describe()), engine.step,
                       lambda table, slot, first, out:
                       engine.rows_read(table, out, None, slot, first))
    saved = source if isinstance(source, Checkpoint) else stack.enter_context(open(source))
    return _Origin(saved.tables, saved.step, lambda table, slot, first, out:
                   saved.read(table, slice(first, first + len(out)), slot=slot, out=out))


def _choose(origin: _Origin, tables: Iterable[str] | None) -> list[SavedTable]:
    names = list(origin.tables) if tables is None else list(tables)
    for name in names:
        if name not in origin.tables:
            raise unknown(f"tables: there is no table '{name}'; the tables are "
                          f"{', '.join(origin.tables)}")
        if names.count(name) > 1:
            raise invalid(f"tables: '{name}' is there twice")
    return [origin.tables[name] for name in names]


def _entry(origin: _Origin, key: str, table: SavedTable, slot: str | None) -> Entry:
    width = table.shape[1] if slot is None else table.slots[slot]
    return Entry(key, (table.shape[0], width),
                 lambda first, out: origin.read(table.name, slot, first, out))


def _entries(origin: _Origin, chosen: list[SavedTable], key: str, slots: bool) -> list[Entry]:
    found = []
    for table in chosen:
        name = key.replace("{table}", table.name)
        found.append(_entry(origin, name, table, None))
        for slot in table.slots if slots else ():
            found.append(_entry(origin, f"{name.removesuffix('.weight')}.{slot}", table, slot))
    keys = [entry.key for entry in found]
    twice = next((name for name in keys if keys.count(name) > 1), None)
    if twice is not None:
        raise invalid(f"key: '{twice}' would be the key of two tensors; give key a '{{table}}' "
                      "that tells them apart")
    return found


class _Work:
    """Counts the bytes that are written, and tells about them."""

    def __init__(self, entries: list[Entry], tell: Callable[[str, int, int], object] | None):
        self.total = sum(4 * entry.shape[0] * entry.shape[1] for entry in entries)
        self.done = 0
        self._tell = tell

    def tell(self, size: int) -> None:
        self.done += size
        if self._tell:
            self._tell("export", self.done, self.total)


def _shards(entries: list[Entry], shard_bytes: int) -> list[list[Entry]]:
    """Divide tensors, which stay whole, among files of at most so many bytes where they fit."""
    shards: list[list[Entry]] = [[]]
    size = 0
    for entry in entries:
        own = 4 * entry.shape[0] * entry.shape[1]
        if shards[-1] and size + own > shard_bytes:
            shards.append([])
            size = 0
        shards[-1].append(entry)
        size += own
    return shards


def _write_safetensors(files: formats.Files, path: _Path, entries: list[Entry], step: int,
                       shard_bytes: int, work: _Work) -> None:
    metadata = {"format": "pt", "step": str(step)}
    if not shard_bytes:
        file = files.create(os.path.basename(path))
        formats.write_safetensors(file, entries, metadata, work.tell)
        return
    import json

    shards = _shards(entries, shard_bytes)
    weights = {}
    for number, shard in enumerate(shards):
        name = f"model-{number + 1:05d}-of-{len(shards):05d}.safetensors"
        weights.update({entry.key: name for entry in shard})
        formats.write_safetensors(files.create(name), shard, metadata, work.tell)
    index = {"metadata": {"total_size": work.total}, "weight_map": weights}
    files.create(formats.HF_INDEX).write(json.dumps(index, indent=1).encode())


def _write_npy(files: formats.Files, entries: list[Entry], step: int, work: _Work) -> None:
    import json

    names = {entry.key: formats.npy_name(entry.key) for entry in entries}
    for entry in entries:
        formats.write_npy(files.create(names[entry.key]), entry, work.tell)
    index = {"format": formats.NPY_FORMAT, "step": step, "files": names}
    files.create("index.json").write(json.dumps(index, indent=1).encode())


def _torch_tables(origin: _Origin, chosen: list[SavedTable], entries: list[Entry],
                  key: str) -> list[torch_files.TorchTable]:
    by_key = {entry.key: entry for entry in entries}
    found = []
    for table in chosen:
        name = key.replace("{table}", table.name)
        slots = {slot: _entry(origin, slot, table, slot) for slot in table.slots}
        found.append(torch_files.TorchTable(name, by_key[name], slots, table.optimizer))
    return found


def _check_format(format: str, shard_bytes: int) -> None:
    if format not in formats.NAMES:
        raise invalid(f"format: '{format}' is not known; known are {', '.join(formats.NAMES)}")
    if shard_bytes < 0 or (shard_bytes and format != "safetensors"):
        raise invalid(f"shard_bytes: {shard_bytes} is given for format {format}; only safetensors "
                      "can be divided, by a number above 0")


def _folder(path: str, is_folder: bool, stack: ExitStack) -> formats.Files:
    if not is_folder and os.path.isdir(path):
        raise invalid(f"path: {path} is a folder; give the name of a file")
    folder = path if is_folder else os.path.dirname(path) or "."
    os.makedirs(folder, exist_ok=True)
    return stack.enter_context(formats.Files(folder))


def export(source: "Engine | Checkpoint | _Path", path: _Path, format: str = "npy",
           tables: Iterable[str] | None = None, slots: bool = False, progress: Progress = None, *,
           key: str | None = None, shard_bytes: int = 0) -> dict[str, Any]:
    """Write tables for other programs, one after another, in memory of 16 MiB.

    Parameters
    ----------
    source : Engine, Checkpoint or path
        The tables of an engine or of a checkpoint's folder. An engine's updates that were handed in
        are waited for; rows that are updated meanwhile may be old or new.
    path : path
        For "npy" and for shards a folder, which is made where it is missing; else a file. Files get
        their names when all of them are written.
    format : {"npy", "safetensors", "torch"}
        The formats are described above.
    tables : iterable of str, optional
        Names of the tables; all by default.
    slots : bool
        Write the slots of the optimizers, too.
    progress : callable or bool, optional
        Told ("export", done, total) in bytes; True or False shows a bar or none.
    key : str, optional
        Key of a table's parameters, with ``{table}`` for its name, such as torchrec's
        ``"embedding_bags.{table}.weight"``. Keys of slots have the slot's name instead of "weight".
    shard_bytes : int
        For safetensors: above 0, write files of at most so many bytes, unless one tensor is larger.

    Returns
    -------
    dict
        ``tables`` and ``tensors``, how many; ``bytes`` of numbers; ``files``, their paths.

    Raises
    ------
    InvalidError, UnknownNameError
        An argument is wrong, or an optimizer has no counterpart in torch.optim. Nothing is written.
    CheckpointNotFoundError, CheckpointError
        The source is no checkpoint, or it is damaged.
    """
    _check_format(format, shard_bytes)
    key = key or ("{table}" if format == "npy" else "{table}.weight")
    with ExitStack() as stack:
        origin = _origin(source, stack)
        chosen = _choose(origin, tables)
        entries = _entries(origin, chosen, key, slots)
        work = _Work(entries, stack.enter_context(Bar(progress)))
        files = _folder(os.fspath(path), format == "npy" or shard_bytes > 0, stack)
        if format == "npy":
            _write_npy(files, entries, origin.step, work)
        elif format == "safetensors":
            _write_safetensors(files, path, entries, origin.step, shard_bytes, work)
        else:
            torch_files.write_torch(files.create(os.path.basename(path)),
                                    _torch_tables(origin, chosen, entries, key), origin.step,
                                    slots, work.tell)
        return {"tables": len(chosen), "tensors": len(entries), "bytes": work.total,
                "files": files.commit()}

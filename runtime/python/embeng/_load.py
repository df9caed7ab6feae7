# SPDX-License-Identifier: MIT
"""Tables of other frameworks: finding and checking them, and writing them into an engine.

A source is read in three steps: its tensors are listed, each is given to the table or slot that its
key names, and after all of them were checked their rows are written.
"""
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

from . import _formats as formats
from . import _torch_files as torch_files
from ._engine import Engine
from ._errors import OutOfRangeError
from ._formats import SavedTable, Tensor, describe_tables, invalid, shape_text, unknown
from ._progress import Bar, Progress

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    FloatArray = NDArray[numpy.float32]

_Path = str | PathLike[str]


class _Found(NamedTuple):
    """Tensors of a source, states of parameters, and the step, with what messages call it."""

    where: str
    tensors: list[Tensor]
    states: dict[str, dict[str, Any]]
    step: int | None


class Write(NamedTuple):
    """A tensor, and the table or slot that it is for."""

    table: str
    slot: str | None
    shape: tuple[int, int]
    tensor: Tensor


def _guess_folder(path: str) -> str:
    if os.path.exists(os.path.join(path, formats.HF_INDEX)):
        return "sharded"
    names = os.listdir(path)
    if any(name.endswith(".npy") for name in names):
        return "npy"
    if "index.json" in names:
        raise invalid(f"{path}: it is a checkpoint of this library, which Engine.restore() reads")
    if "model.safetensors" in names:
        return "model"
    raise invalid(f"{path}: the folder has no {formats.HF_INDEX}, no model.safetensors and no npy "
                  "files")


def _guess(path: str) -> str:
    if os.path.isdir(path):
        return _guess_folder(path)
    with open(path, "rb") as file:
        begin = file.read(8)
    if begin[:6] == b"\x93NUMPY" or path.endswith(".npy"):
        return "npy"
    if path.endswith(".safetensors"):
        return "safetensors"
    if begin[:2] == b"PK" or path.endswith((".pt", ".pth", ".bin", ".ckpt")):
        return "torch"
    raise invalid(f"{path}: neither its name nor its first bytes tell what it is; give format, one "
                  f"of {', '.join(formats.NAMES)}")


def _read_path(path: str, format: str | None, params: Sequence[str] | None,
               stack: ExitStack) -> _Found:
    if format is not None and format not in formats.NAMES:
        raise invalid(f"format: '{format}' is not known; known are {', '.join(formats.NAMES)}")
    if format is None or os.path.isdir(path):
        guess = _guess(path)
        if format is not None and {"sharded": "safetensors", "model": "safetensors"}.get(
                guess, guess) != format:
            raise invalid(f"{path}: format {format} is given, the folder has {guess}")
        format = guess
    states: dict[str, dict[str, Any]] = {}
    metadata: dict[str, str] = {}
    if format == "torch":
        tensors, states = torch_files.read_torch(path, params)
    elif format == "npy" and os.path.isdir(path):
        tensors, metadata = formats.read_npy_folder(path)
    elif format == "npy":
        stem = os.path.basename(path).removesuffix(".npy")
        tensors = [formats.read_npy(unquote(stem), path)]
    elif format == "sharded":
        tensors, metadata = formats.read_sharded(path, stack)
    else:
        file = os.path.join(path, "model.safetensors") if format == "model" else path
        tensors, metadata = formats.read_safetensors(file, stack)
    step = torch_files.step_of(path, metadata["step"]) if "step" in metadata else None
    return _Found(path, tensors, states, step)


def _read_mapping(mapping: Mapping[str, Any], params: Sequence[str] | None) -> _Found:
    """Read a state dict, or arrays and paths of npy files by their keys."""
    paths = {key: os.fspath(value) for key, value in mapping.items()
             if isinstance(value, (str, PathLike))}
    rest = {key: value for key, value in mapping.items() if key not in paths}
    tensors, states = torch_files.states_of(rest, "the mapping", params)
    tensors += [formats.read_npy(str(key), path) for key, path in paths.items()]
    return _Found("the mapping", tensors, states, None)


def _fits(key: str, table: str) -> int:
    """Return 2 if a key is that of a table, 1 if it is so behind a prefix, else 0."""
    for ending in (f"{table}.weight", f"{table}/parameters", f"{table}.parameters", table):
        if key == ending:
            return 2
    for ending in (f"{table}.weight", table):
        if key.endswith("." + ending):
            return 1
    return 0


def _assign(found: _Found, tables: list[str]) -> dict[str, list[Tensor]]:
    """Give each tensor to the table that its key names; of several, to the longest name."""
    given: dict[str, dict[int, list[Tensor]]] = {table: {} for table in tables}
    for tensor in found.tensors:
        best = max(tables, key=lambda table: (bool(_fits(tensor.key, table)), len(table)))
        fit = _fits(tensor.key, best)
        if fit:
            given[best].setdefault(fit, []).append(tensor)
    if len(tables) == 1 and not given[tables[0]]:
        given[tables[0]][1] = [t for t in found.tensors if t.key == "weight"]
    return {table: fits.get(2) or fits.get(1) or [] for table, fits in given.items()}


def _match(found: _Found, engine: Engine, names: Mapping[str, str | None],
           missing_tables: bool) -> dict[str, Tensor]:
    """Return the tensor of each table's parameters."""
    tables = [table.name for table in engine.tables]
    wrong = [name for name in names if name not in tables]
    if wrong:
        raise unknown(f"names: there is no table '{wrong[0]}'; the tables are {', '.join(tables)}")
    keys = [tensor.key for tensor in found.tensors]
    by_key = {tensor.key: tensor for tensor in found.tensors}
    assigned = _assign(found, tables)
    matched = {}
    for table in tables:
        if table in names:
            name = names[table]
            if name is not None and name not in by_key:
                raise unknown(f"{found.where}: it has no tensor '{name}' for table {table}; it has "
                              f"{_few(keys)}")
            candidates = [] if name is None else [by_key[name]]
        else:
            candidates = assigned[table]
            if not candidates and not missing_tables:
                raise unknown(f"{found.where}: it has no tensor for table {table}, such as "
                              f"'{table}.weight'; it has {_few(keys)}. names says which it is, "
                              "missing_tables=True leaves the table as it is")
        if len(candidates) > 1:
            raise invalid(f"{found.where}: table {table} could be "
                          f"{' or '.join(repr(t.key) for t in candidates)}; say which by "
                          f"names={{'{table}': ...}}")
        if candidates:
            matched[table] = candidates[0]
    return matched


def _few(keys: Sequence[str]) -> str:
    shown = ", ".join(repr(key) for key in keys[:8])
    return f"{shown}, and {len(keys) - 8} more" if len(keys) > 8 else shown or "no tensors"


def _base(key: str) -> str:
    for ending in (".weight", "/parameters", ".parameters"):
        if key.endswith(ending):
            return key[:-len(ending)]
    return "" if key == "weight" else key


def _file_slots(found: _Found, table: SavedTable, key: str) -> dict[str, Tensor]:
    """Return slots that stand beside the parameters in a file, as TABLE.SLOT or TABLE/SLOT."""
    by_key = {tensor.key: tensor for tensor in found.tensors}
    base = _base(key)
    slots = {}
    for slot in table.slots:
        wanted = (f"{base}.{slot}", f"{base}/{slot}") if base else (slot,)
        names = [name for name in wanted if name in by_key]
        if len(names) > 1:
            raise invalid(f"{found.where}: {' and '.join(names)} are both slot {slot} of table "
                          f"{table.name}; keep one")
        if names:
            slots[slot] = by_key[names[0]]
    return slots


def _state_slots(found: _Found, table: SavedTable, key: str) -> tuple[dict[str, Tensor], Any]:
    """Return slots of an optimizer's state, and its step."""
    state = found.states.get(key)
    if not state or table.optimizer is None:
        return {}, None
    where = f"{found.where}: state of parameter '{key}'"
    slots = torch_files.slots_of_state(table.optimizer["kind"], where, state)
    step = state.get("step")
    return slots, None if step is None else torch_files.step_of(where, step)


def _slots(found: _Found, table: SavedTable, key: str) -> tuple[dict[str, Tensor], Any]:
    beside = _file_slots(found, table, key)
    state, step = _state_slots(found, table, key)
    both = [slot for slot in beside if slot in state]
    if both:
        raise invalid(f"{found.where}: slot {both[0]} of table {table.name} is there as "
                      f"'{beside[both[0]].key}' and in the optimizer's state; keep one")
    slots = {**beside, **state}
    optional = table.optimizer is not None and table.optimizer["kind"].endswith("rms_prop")
    missing = [slot for slot in table.slots
               if slots and slot not in slots and not (state and optional and slot == "mom")]
    if missing:
        raise invalid(f"{found.where}: table {table.name} has slots there ({', '.join(slots)}), "
                      f"but no {missing[0]}; load with slots=False, or complete it")
    return slots, step


def _check_shape(write: Write) -> None:
    shape, wanted = write.tensor.shape, write.shape
    if shape == wanted or (wanted[1] == 1 and shape == wanted[:1]):
        return
    what = f"slot {write.slot} of table {write.table}" if write.slot else f"table {write.table}"
    raise invalid(f"{write.tensor.where}: its shape is {shape_text(shape)}; {what} has "
                  f"{shape_text(wanted)}")


def _one_step(found: _Found, steps: dict[str, int]) -> int | None:
    if len(set(steps.values())) > 1:
        least, most = min(steps, key=lambda name: steps[name]), max(steps, key=lambda n: steps[n])
        raise invalid(f"{found.where}: table {least} is at step {steps[least]}, table {most} at "
                      f"step {steps[most]}; the engine counts one: give step, or step=False")
    return next(iter(steps.values()), found.step)


def _plan(engine: Engine, found: _Found, names: Mapping[str, str | None], slots: bool,
          missing_tables: bool, cast: bool) -> tuple[list[Write], int | None]:
    """Return what is to be written, and the step, after all of it was matched and checked."""
    described = describe_tables(engine.describe())
    writes, steps, has_slots = [], {}, False
    for name, tensor in _match(found, engine, names, missing_tables).items():
        table = described[name]
        writes.append(Write(name, None, table.shape, tensor))
        if not slots:
            continue
        given, step = _slots(found, table, tensor.key)
        has_slots = has_slots or bool(given)
        writes += [Write(name, slot, (table.shape[0], table.slots[slot]), tensor)
                   for slot, tensor in given.items()]
        if given and step is not None:
            steps[name] = step
    for write in writes:
        _check_shape(write)
    check_types(writes, cast)
    return writes, _one_step(found, steps) if has_slots else None


def check_types(writes: list[Write], cast: bool) -> None:
    """Refuse tensors whose numbers float32 does not hold, unless they may be rounded."""
    for write in writes:
        torch_files.check_dtype(write.tensor, cast)


def _pieces(write: Write) -> "Iterator[tuple[int, FloatArray]]":
    """Read a tensor from its first row to its last, with the number of each piece's first row."""
    rows, width = write.shape
    most = max(1, formats.PIECE_FLOATS // width)
    for first in range(0, rows, most):
        count = min(most, rows - first)
        yield first, write.tensor.read(first, count).reshape(count, width)


def _check_extremes(probe: Engine, write: Write, first: int, piece: "FloatArray") -> None:
    """Refuse numbers that the table or slot cannot have: the library says which these are.

    Allowed numbers are an interval, so that the least and the greatest tell of all; a NaN is
    either.
    """
    import numpy

    for at in (int(piece.argmin()), int(piece.argmax())):
        row, column = divmod(at, write.shape[1])
        value = numpy.full((1, write.shape[1]), piece[row, column], numpy.float32)
        try:
            probe.rows_write(write.table, value, None, write.slot)
        except OutOfRangeError as error:
            why = str(error).rpartition("column 0: ")[2]
            what = f"slot {write.slot} of table {write.table}" if write.slot else \
                f"table {write.table}"
            refused = OutOfRangeError(f"{write.tensor.where}, for {what}: row {first + row}, "
                                      f"column {column}: {why}")
            refused.code = error.code
            raise refused from None


def load(engine: Engine, source: "_Path | Mapping[str, Any]",
         names: Mapping[str, str | None] | None = None, format: str | None = None, *,
         params: Sequence[str] | None = None, slots: bool = True, step: int | bool = True,
         missing_tables: bool = False, cast: bool = False,
         progress: Progress = None) -> dict[str, Any]:
    """Write tables and slots of other programs into an engine, after all of them were checked.

    Parameters
    ----------
    engine : Engine
        The engine whose tables are written. Slots that the source does not have stay as they are.
    source : path or mapping
        A file of npy, safetensors or torch.save, or a folder of the former two; or arrays of numpy
        or torch and paths of npy files by their keys, such as ``model.state_dict()``.
    names : mapping of str to str or None, optional
        From tables to keys of the source, where they are not those that are described in
        :mod:`embeng.checkpoint`; None leaves a table as it is.
    format : {"npy", "safetensors", "torch"}, optional
        By default the file's name and its first bytes tell.
    params : sequence of str, optional
        Names of the parameters that an optimizer's state numbers, where it has no ``param_names``.
    slots : bool
        Write slots that the source has, too.
    step : int or bool
        A number to set the engine's step to; True is the source's, where it has slots and a step.
    missing_tables : bool
        Leave tables as they are that the source does not have.
    cast : bool
        Round float64 and whole numbers. Allowed else is what float32 holds exactly.
    progress : callable or bool, optional
        Told ("check" and then "load", done, total) in bytes; True or False shows a bar or none.

    Returns
    -------
    dict
        ``tables`` and ``slots`` (``TABLE/SLOT``) that were written; ``rows``, how many; ``step``,
        the step that was set, or None; ``unused``, keys of the source that were not used.

    Raises
    ------
    InvalidError, UnknownNameError, OutOfRangeError
        Something does not fit: the sentence names file, tensor, table, and shapes or row.
    CheckpointError, FileNotFoundError
        A file is damaged, truncated, or of another format, or is not there.

    Notes
    -----
    Files of torch are loaded with ``weights_only=True``. A file that changes while it is read may
    leave a table half written. Numbers are read twice: first to check them.
    """
    with ExitStack() as stack:
        found = _read(source, format, params, stack)
        writes, own_step = _plan(engine, found, names or {}, slots, missing_tables, cast)
        chosen = own_step if step is True else None
        if not isinstance(step, bool):
            chosen = torch_files.step_of("step", step)
        write_tensors(engine, writes, stack.enter_context(Bar(progress)))
    if chosen is not None:
        engine.step = chosen
    return _report(found, writes, chosen)


def _read(source: "_Path | Mapping[str, Any]", format: str | None, params: Sequence[str] | None,
          stack: ExitStack) -> _Found:
    if isinstance(source, Mapping):
        return _read_mapping(source, params)
    return _read_path(os.fspath(source), format, params, stack)


def write_tensors(engine: Engine, writes: list[Write],
                  tell: Callable[[str, int, int], object] | None = None) -> None:
    """Read everything once to check it, and once more to write it."""
    tables = [table._replace(vocabulary_size=1) for table in engine.tables]
    with Engine(tables, cores=1, non_finite=engine._options["non_finite"]) as probe:
        for write, first, piece in _walk(writes, "check", tell):
            _check_extremes(probe, write, first, piece)
    for write, first, piece in _walk(writes, "load", tell):
        engine.rows_write(write.table, piece, None, write.slot, first)


def _walk(writes: list[Write], what: str, tell: Callable[[str, int, int], object] | None
          ) -> "Iterator[tuple[Write, int, FloatArray]]":
    total = sum(4 * write.shape[0] * write.shape[1] for write in writes)
    done = 0
    for write in writes:
        for first, piece in _pieces(write):
            yield write, first, piece
            done += piece.nbytes
            if tell:
                tell(what, done, total)


def _report(found: _Found, writes: list[Write], step: int | None) -> dict[str, Any]:
    used = {id(write.tensor) for write in writes}
    return {"tables": [write.table for write in writes if write.slot is None],
            "slots": [f"{write.table}/{write.slot}" for write in writes if write.slot],
            "rows": sum(write.shape[0] for write in writes), "step": step,
            "unused": [tensor.key for tensor in found.tensors if id(tensor) not in used]}

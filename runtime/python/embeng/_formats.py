# SPDX-License-Identifier: MIT
"""Files of tensors that other programs read and write: safetensors and npy.

Readers check the whole header against the size of the file before they return, and read rows when
they are asked for. Writers take rows piece by piece. Neither holds a whole table in memory.

A safetensors file is an unsigned 64-bit length in little-endian order, that many bytes of JSON, and
the data (the format's own description: https://github.com/huggingface/safetensors). The JSON names
each tensor's dtype, shape and range of bytes; ranges follow each other without holes. numpy's NEP 1
describes npy files.
"""
import errno
import json
import math
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple
from urllib.parse import quote, unquote

from ._errors import CheckpointError, InvalidError, UnknownNameError

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    FloatArray = NDArray[numpy.float32]

NAMES = ("npy", "safetensors", "torch")
PIECE_FLOATS = 4 << 20  # 16 MiB
HEADER_BYTES = 100_000_000  # most that the safetensors format allows
NPY_FORMAT = "embeng-npy-1"
HF_INDEX = "model.safetensors.index.json"

# Bytes of an element by dtype, as safetensors files call it, and the name of numpy or torch.
DTYPES = {
    "BOOL": (1, "bool"), "U8": (1, "uint8"), "I8": (1, "int8"), "F8_E5M2": (1, "float8_e5m2"),
    "F8_E4M3": (1, "float8_e4m3"), "I16": (2, "int16"), "U16": (2, "uint16"),
    "F16": (2, "float16"), "BF16": (2, "bfloat16"), "I32": (4, "int32"), "U32": (4, "uint32"),
    "F32": (4, "float32"), "F64": (8, "float64"), "I64": (8, "int64"), "U64": (8, "uint64"),
    "C64": (8, "complex64"),
}

EXACT = ("float32", "float16", "bfloat16")  # float32 holds them without rounding


class Tensor(NamedTuple):
    """A tensor of a file or of a mapping, whose header was checked.

    `read(first, count)` returns rows of the first dimension as float32, with the other dimensions
    as they are.
    """

    key: str
    where: str
    shape: tuple[int, ...]
    dtype: str
    read: "Callable[[int, int], FloatArray]"


class Entry(NamedTuple):
    """A tensor that is written: `read(first, out)` fills rows of a float32 array [rows, width]."""

    key: str
    shape: tuple[int, int]
    read: "Callable[[int, FloatArray], object]"


class SavedTable(NamedTuple):
    """A table of a checkpoint.

    Attributes
    ----------
    name : str
        The table's name.
    shape : tuple of int
        Rows and columns.
    slots : dict of str to int
        Slots of its optimizer, with their columns: dim, or 1 for one number a row.
    optimizer : dict or None
        Kind and settings of its optimizer.
    """

    name: str
    shape: tuple[int, int]
    slots: dict[str, int]
    optimizer: dict[str, Any] | None


def describe_tables(model: dict[str, Any]) -> dict[str, SavedTable]:
    """Return the tables of a model that the extension describes."""
    return {t["name"]: SavedTable(t["name"], (t["vocabulary_size"], t["dim"]), dict(t["slots"]),
                                  t["optimizer"]) for t in model["tables"]}


def invalid(text: str) -> InvalidError:
    """Return an error about what the caller gave."""
    error = InvalidError(text)
    error.code = -errno.EINVAL
    return error


def damaged(text: str) -> CheckpointError:
    """Return an error about the content of a file."""
    error = CheckpointError(text)
    error.code = -errno.EBADMSG
    return error


def unknown(text: str) -> UnknownNameError:
    """Return an error about a name."""
    error = UnknownNameError(text)
    error.code = -errno.ENOENT
    return error


def shape_text(shape: tuple[int, ...]) -> str:
    """Return a shape as messages show it: [3, 4]."""
    return "[" + ", ".join(str(n) for n in shape) + "]"


def pieces(entry: Entry) -> "Iterator[FloatArray]":
    """Read an entry from its first row to its last. A piece is valid until the next one is read."""
    import numpy

    rows, width = entry.shape
    most = max(1, PIECE_FLOATS // max(1, width))
    buffer = numpy.empty((min(rows, most), width), numpy.float32)
    for first in range(0, rows, most):
        piece = buffer[:min(most, rows - first)]
        entry.read(first, piece)
        yield piece


class Files:
    """New files of a folder, which get their names when all of them are written.

    A context manager: without :meth:`commit` nothing stays.
    """

    def __init__(self, folder: str):
        self.folder = folder
        self.open: list[tuple[str, str, BinaryIO]] = []
        self.names: list[str] = []

    def __enter__(self) -> "Files":
        return self

    def create(self, name: str) -> BinaryIO:
        """Return a new file for writing and reading, which is to be called `name`."""
        path = os.path.join(self.folder, name)
        temporary = os.path.join(self.folder, f".{name[:200]}.{os.getpid()}-{id(self):x}.tmp")
        file = open(temporary, "w+b")
        self.open.append((temporary, path, file))
        return file

    def commit(self) -> list[str]:
        """Name the files, and return their paths."""
        for _, _, file in self.open:
            file.flush()
            os.fsync(file.fileno())
            file.close()
        while self.open:
            temporary, path, _ = self.open.pop(0)
            os.replace(temporary, path)
            self.names.append(path)
        return self.names

    def __exit__(self, *unused: object) -> None:
        for temporary, _, file in self.open:
            file.close()
            with suppress(FileNotFoundError):
                os.unlink(temporary)


# -- safetensors


def safetensors_header(entries: list[Entry], metadata: dict[str, str]) -> bytes:
    """Return the length and the JSON that stand before the data of float32 `entries`."""
    header: dict[str, Any] = {"__metadata__": metadata} if metadata else {}
    at = 0
    for entry in entries:
        size = 4 * entry.shape[0] * entry.shape[1]
        header[entry.key] = {"dtype": "F32", "shape": list(entry.shape),
                             "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > HEADER_BYTES:
        raise invalid(f"safetensors: the header of {len(entries)} tensors takes {len(text)} bytes, "
                      f"the format allows {HEADER_BYTES}; write several files")
    return len(text).to_bytes(8, "little") + text


def write_safetensors(file: BinaryIO, entries: list[Entry], metadata: dict[str, str],
                      tell: Callable[[int], object]) -> None:
    """Write `entries` as one safetensors file; `tell` is called with the bytes of each piece."""
    file.write(safetensors_header(entries, metadata))
    write_data(file, entries, tell)


def write_data(file: BinaryIO, entries: list[Entry], tell: Callable[[int], object]) -> None:
    """Write the numbers of `entries` one after another, as little-endian float32."""
    for entry in entries:
        for piece in pieces(entry):
            file.write(piece.astype("<f4", copy=False).data)
            tell(piece.nbytes)


def _no_duplicates(where: str) -> Callable[[list[tuple[str, Any]]], dict[str, Any]]:
    def build(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise damaged(f"{where}: the header has '{twice}' twice")
        return found
    return build


def parse_json(text: bytes, where: str) -> dict[str, Any]:
    """Return a JSON object whose names are unique."""
    try:
        found = json.loads(text.decode(), object_pairs_hook=_no_duplicates(where))
    except (ValueError, RecursionError) as error:
        raise damaged(f"{where}: the JSON cannot be read: {error}") from None
    if not isinstance(found, dict):
        raise damaged(f"{where}: the JSON is no object, but {type(found).__name__}")
    return found


def _are_numbers(value: Any) -> bool:
    return isinstance(value, list) and all(type(n) is int and n >= 0 for n in value)


def _check_tensor(where: str, value: Any, data_bytes: int) -> tuple[str, tuple[int, ...], int, int]:
    if not isinstance(value, dict) or set(value) != {"dtype", "shape", "data_offsets"}:
        raise damaged(f"{where}: the header has not exactly dtype, shape and data_offsets for it")
    dtype, shape, offsets = value["dtype"], value["shape"], value["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise damaged(f"{where}: dtype {dtype!r} is not known; known are {', '.join(DTYPES)}")
    if not _are_numbers(shape) or not _are_numbers(offsets) or len(offsets) != 2:
        raise damaged(f"{where}: shape {shape!r} or data_offsets {offsets!r} is malformed")
    begin, end = offsets
    size = math.prod(shape) * DTYPES[dtype][0]
    if begin > end or end - begin != size:
        raise damaged(f"{where}: data_offsets {offsets} are of {end - begin} bytes, dtype {dtype} "
                      f"and shape {shape_text(tuple(shape))} are of {size}")
    if end > data_bytes:
        raise damaged(f"{where}: data_offsets {offsets} end behind the file, which has "
                      f"{data_bytes} bytes of data; the file is truncated or damaged")
    return DTYPES[dtype][1], tuple(shape), begin, end


def _check_ranges(path: str, ranges: list[tuple[int, int, str]], data_bytes: int) -> None:
    at = 0
    for begin, end, key in sorted(ranges):
        if begin != at:
            raise damaged(f"{path}: tensor '{key}' begins at byte {begin} of the data; the one "
                          f"before it ends at {at}")
        at = end
    if at != data_bytes:
        raise damaged(f"{path}: the tensors take {at} bytes, the file has {data_bytes} of data")


def _read_header(file: BinaryIO, path: str) -> tuple[dict[str, Any], int, int]:
    """Return the header, the place of the data, and their bytes."""
    size = os.fstat(file.fileno()).st_size
    begin = file.read(8)
    length = int.from_bytes(begin, "little")
    if len(begin) < 8 or length > size - 8:
        raise damaged(f"{path}: it has {size} bytes, a safetensors header of {length} is "
                      "announced; the file is truncated, or no safetensors file")
    if length > HEADER_BYTES:
        raise damaged(f"{path}: the header is of {length} bytes, the format allows {HEADER_BYTES}")
    return parse_json(file.read(length), path), 8 + length, size - 8 - length


def widen(raw: Any, dtype: str) -> Any:
    """Return raw little-endian elements as float32."""
    import numpy

    if dtype == "bfloat16":
        wide = raw.view("<u2").astype(numpy.uint32) << 16
        return wide.view(numpy.float32)
    return raw.view(numpy.dtype(dtype).newbyteorder("<")).astype(numpy.float32, copy=False)


def _reader(file: BinaryIO, where: str, dtype: str, shape: tuple[int, ...],
            begin: int) -> "Callable[[int, int], FloatArray]":
    size = next(bytes_ for bytes_, name in DTYPES.values() if name == dtype)
    row = math.prod(shape[1:])

    def read(first: int, count: int) -> "FloatArray":
        import numpy

        raw = numpy.empty(count * row * size, numpy.uint8)
        view, at = raw.data, 0
        file.seek(begin + first * row * size)
        while at < len(raw):
            got: int = file.readinto(view[at:])  # type: ignore[attr-defined]
            if not got:
                raise damaged(f"{where}: the file became shorter while it was read")
            at += got
        found: FloatArray = widen(raw, dtype).reshape((count, *shape[1:]))
        return found

    return read


def read_safetensors(path: str, stack: ExitStack) -> tuple[list[Tensor], dict[str, str]]:
    """Check a safetensors file, and return its tensors and metadata. `stack` keeps it open."""
    file = stack.enter_context(open(path, "rb", buffering=0))
    header, data, data_bytes = _read_header(file, path)
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise damaged(f"{path}: __metadata__ is no object of texts")
    tensors, ranges = [], []
    for key, value in header.items():
        where = f"{path}: tensor '{key}'"
        dtype, shape, begin, end = _check_tensor(where, value, data_bytes)
        ranges.append((begin, end, key))
        tensors.append(Tensor(key, where, shape, dtype,
                              _reader(file, where, dtype, shape, data + begin)))
    _check_ranges(path, ranges, data_bytes)
    return tensors, metadata


def _file_of_index(folder: str, index: str, key: str, name: Any) -> str:
    if not isinstance(name, str) or not name or os.path.basename(name) != name or \
            name in (".", "..") or "\0" in name:
        raise damaged(f"{index}: '{key}' is said to be in {name!r}, which is no file of the folder")
    return os.path.join(folder, name)


def read_sharded(folder: str, stack: ExitStack) -> tuple[list[Tensor], dict[str, str]]:
    """Read the safetensors files of a `model.safetensors.index.json`."""
    index = os.path.join(folder, HF_INDEX)
    with open(index, "rb") as file:
        content = parse_json(file.read(), index)
    weights = content.get("weight_map")
    if not isinstance(weights, dict):
        raise damaged(f"{index}: it has no object weight_map")
    paths = {key: _file_of_index(folder, index, key, name) for key, name in weights.items()}
    found: dict[str, Tensor] = {}
    metadata: dict[str, str] = {}
    for path in dict.fromkeys(paths.values()):
        if not os.path.exists(path):
            raise damaged(f"{index}: it names {os.path.basename(path)}, which is not there")
        tensors, its_metadata = read_safetensors(path, stack)
        metadata.update(its_metadata)
        for tensor in tensors:
            if paths.get(tensor.key) != path:
                raise damaged(f"{tensor.where} is not what {HF_INDEX} says: "
                              f"{os.path.basename(paths.get(tensor.key, 'not there'))}")
            found[tensor.key] = tensor
    missing = [key for key in weights if key not in found]
    if missing:
        raise damaged(f"{index}: tensor '{missing[0]}' is not in {weights[missing[0]]}")
    return list(found.values()), metadata


# -- npy


def npy_name(key: str) -> str:
    """Return the name of the file of a tensor."""
    return quote(key, safe=" +=@,").replace("/", "%2F") + ".npy"


def write_npy(file: BinaryIO, entry: Entry, tell: Callable[[int], object]) -> None:
    """Write one npy file of float32."""
    from numpy.lib import format as npy

    npy.write_array_header_1_0(
        file, {"descr": "<f4", "fortran_order": False, "shape": entry.shape})
    write_data(file, [entry], tell)


def array_tensor(key: str, where: str, array: Any) -> Tensor:
    """Return an array of numpy as a tensor; it is converted piece by piece."""
    import numpy

    def read(first: int, count: int) -> "FloatArray":
        return numpy.ascontiguousarray(array[first:first + count], numpy.float32)

    return Tensor(key, where, tuple(array.shape), str(array.dtype.newbyteorder("=").name), read)


def read_npy(key: str, path: str) -> Tensor:
    """Check one npy file, and return it as a tensor. Arrays of objects are refused."""
    import numpy

    try:
        array = numpy.load(path, mmap_mode="r", allow_pickle=False)
    except OSError as error:
        if error.errno:
            raise
        raise damaged(f"{path}: numpy cannot read it: {error}") from None
    except Exception as error:
        raise damaged(f"{path}: numpy cannot read it: {error}") from None
    if not isinstance(array, numpy.ndarray):
        raise damaged(f"{path}: it is no npy file, but {type(array).__name__}")
    return array_tensor(key, path, array)


def read_npy_folder(folder: str) -> tuple[list[Tensor], dict[str, str]]:
    """Read the npy files of a folder: those of its index.json, or else all of them."""
    index = os.path.join(folder, "index.json")
    files: dict[str, str] = {}
    metadata: dict[str, str] = {}
    if os.path.exists(index):
        with open(index, "rb") as file:
            content = parse_json(file.read(), index)
        named = content.get("files")
        if content.get("format") != NPY_FORMAT or not isinstance(named, dict):
            raise damaged(f"{index}: its format is {content.get('format')!r}, not {NPY_FORMAT}")
        files = {key: _file_of_index(folder, index, key, name) for key, name in named.items()}
        metadata = {"step": str(content["step"])} if "step" in content else {}
    else:
        names = sorted(name for name in os.listdir(folder) if name.endswith(".npy"))
        files = {unquote(name[:-4]): os.path.join(folder, name) for name in names}
    return [read_npy(key, path) for key, path in files.items()], metadata

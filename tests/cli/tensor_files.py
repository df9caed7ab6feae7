#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes files of tensors as NumPy, safetensors and torch do, into the current folder.

None of the three is needed. A file of torch is a zip whose pickle names functions of torch; modules
of these names stand in for them here.
"""
import collections
import io
import json
import pickle
import struct
import sys
import types
import zipfile

ROWS, DIM = 5, 3
VALUES = [(-1) ** i * (i + 0.5) for i in range(ROWS * DIM)]


class Storage:
    """Numbers in a member of the zip, known to the pickle by a tuple."""

    def __init__(self, kind, key, count):
        self.id = ("storage", kind, key, "cpu", count)


class Tensor:
    """An object that is pickled as torch pickles a tensor."""

    def __init__(self, storage, offset, shape, stride):
        self.arguments = (storage, offset, shape, stride, False, collections.OrderedDict())

    def __reduce__(self):
        return sys.modules["torch._utils"]._rebuild_tensor_v2, self.arguments


class Pickler(pickle.Pickler):
    """Writes storages as what they are known by."""

    def persistent_id(self, obj):
        return obj.id if isinstance(obj, Storage) else None


class Trap:
    """An object that makes a file if somebody unpickles it."""

    def __reduce__(self):
        return open, ("trapped", "w")


def module(name, **members):
    """A module that pickle finds under this name."""
    made = types.ModuleType(name)
    for key, value in members.items():
        value.__module__, value.__qualname__, value.__name__ = name, key, key
        setattr(made, key, value)
    sys.modules[name] = made
    return made


def write_torch(path, content, storages, protocol=2, compression=zipfile.ZIP_STORED):
    """A file of torch.save(): @storages has the bytes of each key."""
    text = io.BytesIO()
    Pickler(text, protocol=protocol).dump(content)
    with zipfile.ZipFile(path, "w", compression) as file:
        file.writestr("model/data.pkl", text.getvalue())
        file.writestr("model/byteorder", "little")
        for key, data in storages.items():
            file.writestr(f"model/data/{key}", data)
        file.writestr("model/version", "3\n")


def write_npy(path, descr, shape, data, fortran=False):
    """A .npy of version 1."""
    text = f"{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}"
    text += " " * (-(len(text) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + data)


def write_safetensors(path, tensors):
    """@tensors has a type, a shape and bytes for each name."""
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, (dtype, shape, part) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape,
                        "data_offsets": [len(data), len(data) + len(part)]}
        data += part
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def main():
    """Writes all files."""
    kinds = [type(name, (), {}) for name in ("FloatStorage", "HalfStorage", "LongStorage")]
    module("torch", **{kind.__name__: kind for kind in kinds})
    module("torch._utils", _rebuild_tensor_v2=lambda *arguments: arguments)
    count = ROWS * DIM
    f32, f16 = struct.pack(f"<{count}f", *VALUES), struct.pack(f"<{count}e", *VALUES)
    turned = [VALUES[row * DIM + column] for column in range(DIM) for row in range(ROWS)]

    write_npy("items.npy", "<f4", (ROWS, DIM), f32)
    write_npy("fortran.npy", "<f8", (ROWS, DIM), struct.pack(f"<{count}d", *turned), True)
    write_npy("big.npy", ">f2", (ROWS, DIM), struct.pack(f">{count}e", *VALUES))
    write_npy("vector.npy", "<f4", (count,), f32)
    write_npy("whole.npy", "<i8", (1, 2), struct.pack("<2q", 1, 2))
    write_npy("inf.npy", "<f4", (2, 1), struct.pack("<2f", 1, float("inf")))
    write_npy("cut.npy", "<f4", (ROWS, DIM), f32[:-1])
    brain = b"".join(struct.pack("<f", value)[2:] for value in VALUES)
    write_safetensors("some.safetensors", {
        "a.weight": ("F32", [ROWS, DIM], f32), "b": ("BF16", [ROWS, DIM], brain),
        "bias": ("F32", [DIM], f32[:12])})

    weight = Tensor(Storage(kinds[0], "0", count), 0, (ROWS, DIM), (DIM, 1))
    half = Tensor(Storage(kinds[1], "1", count), 0, (ROWS, DIM), (DIM, 1))
    column = Tensor(Storage(kinds[0], "0", count), 1, (ROWS, 1), (DIM, 1))
    ids = Tensor(Storage(kinds[2], "2", 4), 0, (2, 2), (2, 1))
    storages = {"0": f32, "1": f16, "2": bytes(32)}
    state = collections.OrderedDict([("emb.weight", weight), ("half", half), ("ids", ids)])
    write_torch("state.pt", state, storages)
    write_torch("deep.pth", {"epoch": 3, "state": state, "list": [None, column], 7: weight,
                             "rate": 0.1, "on": True, "large": 2 ** 70}, storages, protocol=4)
    write_torch("trap.pt", {"trap": Trap(), "w": weight}, storages)
    write_torch("packed.pt", state, storages, compression=zipfile.ZIP_DEFLATED)
    write_torch("lost.pt", state, {"1": f16})
    with open("old.pt", "wb") as file:
        file.write(pickle.dumps(0x1950A86A20F9469CFC6C, protocol=2))
    with zipfile.ZipFile("other.npz", "w") as file:
        file.writestr("a.npy", "x")


if __name__ == "__main__":
    main()

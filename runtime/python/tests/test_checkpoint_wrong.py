# SPDX-License-Identifier: MIT
"""embeng.checkpoint refuses files that are wrong or damaged, and then changes nothing.

Damaged files are made by hypothesis.
"""
import json
import os

import numpy as np
import pytest
from checkpoint_content import assert_untouched, content, engine, fresh, make_tables, same
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import embeng
from embeng import _formats, checkpoint

FUZZ = settings(deadline=None, max_examples=150, derandomize=False, print_blob=True,
                suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.parametrize("shape", [(8, 4), (7, 3), (24,), (8, 3, 1), (0, 3), ()])
def test_wrong_shapes(tmp_path, shape):
    np.save(tmp_path / "t.npy", np.zeros(shape, np.float32))
    with embeng.Engine([embeng.Table("t", 8, 3)]) as engine:
        assert_untouched(engine, content(engine),
                         lambda: checkpoint.load(engine, tmp_path / "t.npy"), ValueError, "t.npy",
                         _formats.shape_text(shape), "table t has [8, 3]")


@pytest.mark.parametrize("slot, value, words", [
    (None, np.nan, ("t.npy", "table t", "row 5, column 1: nan must be finite")),
    (None, -np.inf, ("t.npy", "row 5, column 1: -inf must be finite")),
    ("velocities", -0.5, ("t.velocities.npy", "slot velocities", "column 1: -0.5 must be 0 or")),
    ("momenta", np.inf, ("t.momenta.npy", "slot momenta", "row 5, column 1: inf")),
])
def test_numbers_that_a_table_cannot_have(tmp_path, slot, value, words):
    """The library's rule for each slot is asked before the first row is written."""
    table = embeng.Table("t", 8, 3, optimizer=embeng.optimizers.adam())
    with embeng.Engine([table]) as engine:
        checkpoint.export(engine, tmp_path, slots=True)
        path = tmp_path / (f"t.{slot}.npy" if slot else "t.npy")
        array = np.load(path)
        array[5, 1] = value
        np.save(path, array)
        for name in ("t.npy", "t.momenta.npy"):
            if path.name != name:
                np.save(tmp_path / name, np.ones((8, 3), np.float32))
        assert_untouched(engine, content(engine), lambda: checkpoint.load(engine, tmp_path),
                         IndexError, *words)
    with embeng.Engine([table], non_finite="allow") as engine:
        if value != -0.5:
            checkpoint.load(engine, tmp_path)
            same(engine["t"].read(slot=slot), array)


def test_last_wrong_tensor_stops_the_first(engine, tmp_path):
    """Nothing is written although the first table is right and only the last slot is wrong."""
    checkpoint.export(engine, tmp_path, slots=True)
    np.save(tmp_path / "shop%2Fitem.x.accumulators.npy", np.zeros((70, 2), np.float32))
    with embeng.Engine(make_tables()) as other:
        assert_untouched(other, content(other), lambda: checkpoint.load(other, tmp_path),
                         ValueError, "[70, 2]", "slot accumulators of table shop/item.x", "[70, 1]")
        (tmp_path / "users.momenta.npy").unlink()
        assert_untouched(other, content(other), lambda: checkpoint.load(other, tmp_path),
                         FileNotFoundError, "users.momenta.npy")
        (tmp_path / "index.json").unlink()
        assert_untouched(other, content(other), lambda: checkpoint.load(other, tmp_path),
                         ValueError, "no momenta", "slots=False")


def safetensors_of(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def tensor_of(begin=0, end=96, shape=(8, 3), dtype="F32"):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}


WRONG_SAFETENSORS = [
    (b"", "truncated"), (b"\x10\0\0\0", "truncated"),
    (b"\xff" * 8 + b"{}", "truncated"), (safetensors_of(b"[]"), "no object"),
    (safetensors_of(b"{" * 5000), "cannot be read"), (safetensors_of(b'\xff"'), "cannot be read"),
    (safetensors_of(b'{"t":' + b"[" * 100_000 + b"]" * 100_000 + b"}"), "cannot be read"),
    (safetensors_of(b'{"t": {}, "t": {}}'), "'t' twice"),
    (safetensors_of(b'{"t": ' + b"9" * 5000 + b"}"), "cannot be read"),
    (safetensors_of({"t": 3}), "not exactly dtype"),
    (safetensors_of({"t": {**tensor_of(), "more": 1}}, bytes(96)), "not exactly dtype"),
    (safetensors_of({"t": tensor_of(dtype="F31")}, bytes(96)), "F31"),
    (safetensors_of({"t": tensor_of(dtype=["F32"])}, bytes(96)), "not known"),
    (safetensors_of({"t": tensor_of(shape=(8, -3))}, bytes(96)), "malformed"),
    (safetensors_of({"t": tensor_of(shape=(8.0, 3))}, bytes(96)), "malformed"),
    (safetensors_of({"t": tensor_of(shape=(True, 24))}, bytes(96)), "malformed"),
    (safetensors_of({"t": tensor_of(shape=(2**62, 2**62))}, bytes(96)), "96 bytes"),
    (safetensors_of({"t": tensor_of(end=100)}, bytes(100)), "100 bytes"),
    (safetensors_of({"t": tensor_of(begin=96, end=0)}, bytes(96)), "bytes"),
    (safetensors_of({"t": tensor_of()}, bytes(95)), "truncated"),
    (safetensors_of({"t": tensor_of()}, bytes(97)), "97 of data"),
    (safetensors_of({"t": tensor_of(4, 100)}, bytes(100)), "begins at byte 4"),
    (safetensors_of({"t": tensor_of(), "u": tensor_of()}, bytes(96)), "begins at byte 0"),
    (safetensors_of({"t": tensor_of(), "__metadata__": {"a": 1}}, bytes(96)), "__metadata__"),
    (safetensors_of({"t": tensor_of(), "__metadata__": {"step": "-4"}}, bytes(96)), "step -4"),
    (safetensors_of({"t": tensor_of(), "__metadata__": {"step": "x"}}, bytes(96)), "step 'x'"),
]


@pytest.mark.parametrize("number", range(len(WRONG_SAFETENSORS)))
def test_wrong_safetensors(tmp_path, number):
    data, word = WRONG_SAFETENSORS[number]
    path = tmp_path / "bad.safetensors"
    path.write_bytes(data)
    with embeng.Engine([embeng.Table("t", 8, 3)]) as engine:
        assert_untouched(engine, content(engine), lambda: checkpoint.load(engine, path),
                         embeng.CheckpointError, word, "bad.safetensors")


@pytest.mark.parametrize("change, word", [
    (lambda index: index.pop("weight_map"), "weight_map"),
    (lambda index: index["weight_map"].update({"users.weight": "../evil.safetensors"}), "evil"),
    (lambda index: index["weight_map"].update({"users.weight": "/etc/passwd"}), "passwd"),
    (lambda index: index["weight_map"].update({"users.weight": "a\0b"}), "no file of the folder"),
    (lambda index: index["weight_map"].update({"users.weight": 7}), "no file of the folder"),
    (lambda index: index["weight_map"].update({"users.weight": "gone.safetensors"}), "gone"),
    (lambda index: index["weight_map"].update({"more.weight": "model-00001-of-00004.safetensors"}),
     "more.weight"),
    (lambda index: index["weight_map"].pop("shop/item.x.weight"), "item.x.weight"),
])
def test_wrong_shard_index(engine, fresh, tmp_path, change, word):
    checkpoint.export(engine, tmp_path, "safetensors", slots=True, shard_bytes=10000)
    path = tmp_path / "model.safetensors.index.json"
    index = json.loads(path.read_text())
    assert index["metadata"]["total_size"] == 4 * (300 * 8 * 3 + 70 * 5 + 70)
    change(index)
    path.write_text(json.dumps(index))
    assert_untouched(fresh, content(fresh), lambda: checkpoint.load(fresh, tmp_path),
                     embeng.CheckpointError, word)


def test_a_npy_index_cannot_leave_its_folder(engine, fresh, tmp_path):
    checkpoint.export(engine, tmp_path / "n")
    index = json.loads((tmp_path / "n" / "index.json").read_text())
    for name, word in (("../x.npy", "../x.npy"), (None, "None")):
        index["files"]["users"] = name
        (tmp_path / "n" / "index.json").write_text(json.dumps(index))
        assert_untouched(fresh, content(fresh), lambda: checkpoint.load(fresh, tmp_path / "n"),
                         embeng.CheckpointError, word)


def test_arrays_of_objects_are_not_unpickled(tmp_path):
    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "sprung"),)

    np.save(tmp_path / "t.npy", np.array([[Trap()]], object), allow_pickle=True)
    with embeng.Engine([embeng.Table("t", 1, 1)]) as engine:
        assert_untouched(engine, content(engine), lambda: checkpoint.load(
            engine, tmp_path / "t.npy"), embeng.CheckpointError, "t.npy")
        if torch := pytest.importorskip("torch"):
            torch.save({"t": Trap()}, tmp_path / "t.pt")
            assert_untouched(engine, content(engine), lambda: checkpoint.load(
                engine, tmp_path / "t.pt"), embeng.CheckpointError, "weights_only")
    assert not (tmp_path / "sprung").exists()


def test_kinds_of_paths(fresh, engine, tmp_path):
    for call, error, word in (
            (lambda: checkpoint.load(fresh, tmp_path / "none.npy"), FileNotFoundError, "none.npy"),
            (lambda: checkpoint.load(fresh, tmp_path / "none.pt"), FileNotFoundError, "none.pt"),
            (lambda: checkpoint.load(fresh, tmp_path), ValueError, "no npy files"),
            (lambda: checkpoint.load(fresh, tmp_path, format="h5"), ValueError, "'h5'"),
            (lambda: checkpoint.export(engine, tmp_path / "a", "h5"), ValueError, "'h5'"),
            (lambda: checkpoint.export(engine, tmp_path, "torch"), ValueError, "is a folder"),
            (lambda: checkpoint.export(engine, tmp_path, shard_bytes=9), ValueError, "shard_bytes"),
            (lambda: checkpoint.export(engine, tmp_path, tables=["x"]), KeyError, "users"),
            (lambda: checkpoint.export(engine, tmp_path, tables=["users", "users"]), ValueError,
             "twice"),
            (lambda: checkpoint.export(tmp_path / "none", tmp_path), FileNotFoundError, "none")):
        assert_untouched(fresh, content(fresh), call, error, word)
    (tmp_path / "what").write_bytes(b"12345678")
    assert_untouched(fresh, content(fresh), lambda: checkpoint.load(fresh, tmp_path / "what"),
                     ValueError, "give format")


def test_an_interrupted_export_leaves_nothing(engine, tmp_path):
    def stop(what, done, total):
        raise KeyboardInterrupt

    for format, name in (("npy", "n"), ("safetensors", "s"), ("torch", "t")):
        if format == "torch":
            pytest.importorskip("torch")
        with pytest.raises(KeyboardInterrupt):
            checkpoint.export(engine, tmp_path / name, format, progress=stop)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


# -- damage at random


def damage(data, draw):
    data = bytearray(data)
    if draw(st.booleans()):
        return bytes(data[:draw(st.integers(0, len(data) - 1))])
    end = len(data) - 1
    places = st.one_of(st.integers(0, min(end, 700)), st.integers(max(0, end - 700), end))
    for _ in range(draw(st.integers(1, 6))):
        data[draw(places)] = draw(st.integers(0, 255))
    return bytes(data)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """An engine, and the bytes of each format of its table."""
    folder = tmp_path_factory.mktemp("small")
    table = embeng.Table("t", 8, 3, optimizer=embeng.optimizers.adam())
    with embeng.Engine([table]) as engine:
        checkpoint.export(engine, folder / "npy")
        checkpoint.export(engine, folder / "t.safetensors", "safetensors", slots=True)
        found = {"npy": (folder / "npy" / "t.npy").read_bytes(),
                 "safetensors": (folder / "t.safetensors").read_bytes()}
        try:
            import torch
        except ImportError:
            pass
        else:
            checkpoint.export(engine, folder / "t.pt", "torch", slots=True)
            torch.save({"t": torch.zeros(8, 3)}, folder / "old.pt",
                       _use_new_zipfile_serialization=False)
            found["torch"] = (folder / "t.pt").read_bytes()
            found["old torch"] = (folder / "old.pt").read_bytes()
        yield engine, found


@pytest.mark.filterwarnings("ignore::UserWarning")  # torch's, of what it cannot read
@pytest.mark.parametrize("kind", ["npy", "safetensors", "torch", "old torch"])
@FUZZ
@given(data=st.data())
def test_damaged_files_never_crash(small, tmp_path, kind, data):
    """A damaged file is refused, or it has numbers of the right shape: nothing else happens."""
    engine, whole = small
    if kind not in whole:
        pytest.skip("torch is not installed")
    path = tmp_path / ("t." + kind[-5:])
    path.write_bytes(damage(whole[kind], data.draw))
    before = content(engine)
    try:
        report = checkpoint.load(engine, path, format=kind.split()[-1])
        assert report["tables"] == ["t"]
    except embeng.EmbengError:
        after = content(engine)
        for key in before:
            same(before[key], after[key])

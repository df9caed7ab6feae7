# SPDX-License-Identifier: MIT
"""embeng.checkpoint: reading checkpoints, and tables to and from npy and safetensors.

Numbers are compared bit by bit. numpy, safetensors and torch themselves are the oracles of what is
written, and write what is read.
"""
import io
import json
import os
import struct
import tracemalloc

import numpy as np
import pytest
from checkpoint_content import (assert_same_engines, assert_untouched, content, engine,
                                fresh, make_tables, same, train)

import embeng
from embeng import _formats, checkpoint


# -- reading checkpoints


def test_open_reads_rows_and_slots(engine, tmp_path):
    engine.save(tmp_path / "c", program_state="epoch 7")
    with checkpoint.open(tmp_path / "c") as saved:
        assert saved.step == 3
        assert saved.program_state == "epoch 7"
        assert saved.bytes == sum(f.stat().st_size for f in (tmp_path / "c").glob("*.safe*"))
        assert list(saved.tables) == ["users", "shop/item.x"]
        assert saved.tables["users"].shape == (300, 8)
        assert saved.tables["users"].optimizer["kind"] == "adam"
        assert saved.slots("users") == {"momenta": 8, "velocities": 8}
        assert saved.slots("shop/item.x") == {"accumulators": 1}
        for (name, slot), wanted in content(engine).items():
            same(saved.read(name, slot=slot), wanted)
        same(saved.read("users", slice(10, 25)), engine["users"][10:25])
        same(saved.read("users", range(299, 300)), engine["users"][299:])
        same(saved.read("users", slice(-2, None)), engine["users"][-2:])
        assert saved.read("users", slice(5, 5)).shape == (0, 8)
        out = np.zeros((4, 8), np.float32)
        assert saved.read("users", slice(0, 4), out=out) is out
        same(out, engine["users"][:4])


def test_open_chooses_the_checkpoint(engine, tmp_path):
    engine.save(tmp_path, keep=3)
    first = engine["users"].read()
    train(engine, seed=2)
    engine.save(tmp_path, keep=3)
    assert checkpoint.open(tmp_path).step == 6
    assert checkpoint.open(tmp_path, back=1).step == 3
    same(checkpoint.open(tmp_path, step=3).read("users"), first)
    stream = io.BytesIO()
    engine.save(stream)
    stream.seek(0)
    same(checkpoint.open(stream).read("users"), engine["users"].read())


@pytest.mark.parametrize("arguments, options, error, words", [
    (("nobody",), {}, KeyError, ("nobody", "users")),
    (("users",), {"slot": "linears"}, KeyError, ("linears", "momenta, velocities")),
    (("users", range(290, 301)), {}, ValueError, ("rows 0 to 299",)),
    (("users", range(-1, 3)), {}, ValueError, ("rows 0 to 299",)),
    (("users", slice(0, 9, 2)), {}, ValueError, ("step 2",)),
    (("users", [1, 2]), {}, TypeError, ("list",)),
    (("users",), {"out": np.zeros((300, 7), np.float32)}, ValueError, ("[300, 7]", "[300, 8]")),
])
def test_read_refuses(engine, tmp_path, arguments, options, error, words):
    engine.save(tmp_path)
    with checkpoint.open(tmp_path) as saved, pytest.raises(error) as caught:
        saved.read(*arguments, **options)
    for word in words:
        assert word in str(caught.value)


def test_closed_and_missing(engine, tmp_path):
    engine.save(tmp_path)
    saved = checkpoint.open(tmp_path)
    saved.close()
    with pytest.raises(ValueError, match="closed"):
        saved.read("users")
    with pytest.raises(FileNotFoundError):
        checkpoint.open(tmp_path / "none")
    with pytest.raises(embeng.CheckpointError, match="step 12"):
        checkpoint.open(tmp_path, step=12)


def test_verify_finds_a_flipped_bit(engine, tmp_path):
    engine.save(tmp_path)
    told = []
    with checkpoint.open(tmp_path) as saved:
        saved.verify(lambda what, done, total: told.append((what, done, total)))
    assert told[-1][0] == "verify" and told[-1][1] == told[-1][2] > 0
    shard = next(tmp_path.glob("*.safetensors"))
    data = bytearray(shard.read_bytes())
    data[-5] ^= 1
    shard.write_bytes(data)
    with checkpoint.open(tmp_path) as saved, pytest.raises(embeng.CheckpointError, match="crc|sum"):
        saved.verify()


# -- there and back


@pytest.mark.parametrize("format, name, options", [
    ("npy", "folder", {}), ("safetensors", "m.safetensors", {}), ("torch", "m.pt", {}),
    ("safetensors", "shards", {"shard_bytes": 10000}),
])
@pytest.mark.parametrize("saved", [False, True])
def test_round_trip(engine, fresh, tmp_path, format, name, options, saved):
    if format == "torch":
        pytest.importorskip("torch")
    source = engine
    if saved:
        engine.save(tmp_path / "checkpoint")
        source = tmp_path / "checkpoint"
    path = tmp_path / name
    told = []
    report = checkpoint.export(source, path, format, slots=True, **options,
                               progress=lambda *args: told.append(args))
    size = 4 * (300 * 8 * 3 + 70 * 5 + 70)
    assert (report["tables"], report["tensors"], report["bytes"]) == (2, 5, size)
    assert told[-1] == ("export", size, size)
    assert all(os.path.exists(file) for file in report["files"])
    assert not [file for file in tmp_path.rglob(".*.tmp")], "temporary files stay"
    found = checkpoint.load(fresh, path, progress=lambda *args: told.append(args))
    assert told[-1] == ("load", size, size)
    assert_same_engines(engine, fresh)
    assert found == {"tables": ["users", "shop/item.x"], "slots": [
        "users/momenta", "users/velocities", "shop/item.x/accumulators"],
        "rows": 3 * 300 + 2 * 70, "step": 3, "unused": []}
    assert fresh.step == 3


def test_tables_are_chosen_and_slots_left(engine, fresh, tmp_path):
    momenta = fresh["users"].read(slot="momenta")
    checkpoint.export(engine, tmp_path / "a.safetensors", "safetensors", tables=["users"])
    report = checkpoint.load(fresh, tmp_path / "a.safetensors", missing_tables=True)
    assert report == {"tables": ["users"], "slots": [], "rows": 300, "step": None, "unused": []}
    same(fresh["users"].read(), engine["users"].read())
    same(fresh["users"].read(slot="momenta"), momenta)
    assert fresh.step == 0


def test_npy_is_numpys(engine, tmp_path):
    checkpoint.export(engine, tmp_path, slots=True)
    for (name, slot), wanted in content(engine).items():
        key = name if slot is None else f"{name}.{slot}"
        found = np.load(tmp_path / (key.replace("/", "%2F") + ".npy"), allow_pickle=False)
        assert found.dtype == np.dtype("<f4")
        same(found, wanted)
    index = json.loads((tmp_path / "index.json").read_text())
    assert index["step"] == 3 and index["files"]["users"] == "users.npy"


def test_safetensors_is_the_packages(engine, tmp_path):
    numpy_files = pytest.importorskip("safetensors.numpy")
    import safetensors

    path = tmp_path / "m.safetensors"
    checkpoint.export(engine, path, "safetensors", slots=True)
    found = numpy_files.load_file(path)
    wanted = {f"{name}.{slot or 'weight'}": rows for (name, slot), rows in content(engine).items()}
    assert found.keys() == wanted.keys()
    for key in wanted:
        same(found[key], wanted[key])
    with safetensors.safe_open(path, "np") as file:
        assert file.metadata() == {"format": "pt", "step": "3"}


def test_safetensors_of_the_package_are_read(engine, fresh, tmp_path):
    numpy_files = pytest.importorskip("safetensors.numpy")
    wanted = {f"{name}/{slot or 'parameters'}": rows
              for (name, slot), rows in content(engine).items()}
    numpy_files.save_file({**wanted, "dense.bias": np.ones(3, np.float32)}, tmp_path / "a.bin",
                          metadata={"step": "41"})
    report = checkpoint.load(fresh, tmp_path / "a.bin", format="safetensors")
    assert_same_engines(engine, fresh)
    assert report["unused"] == ["dense.bias"] and fresh.step == 41


def test_our_own_shards_are_read(engine, fresh, tmp_path):
    engine.save(tmp_path)
    shard = next(tmp_path.glob("*.safetensors"))
    report = checkpoint.load(fresh, shard)
    assert_same_engines(engine, fresh)
    assert report["slots"][0] == "users/momenta"
    with pytest.raises(ValueError, match=r"Engine\.restore"):
        checkpoint.load(fresh, tmp_path)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_narrow_floats_are_widened_exactly(tmp_path, dtype):
    torch = pytest.importorskip("torch")
    files = pytest.importorskip("safetensors.torch")
    source = (torch.arange(24.).reshape(8, 3) * 1.7 - 9).to(getattr(torch, dtype))
    files.save_file({"t.weight": source}, tmp_path / "t.safetensors")
    torch.save({"t.weight": source}, tmp_path / "t.pt")
    for path in (tmp_path / "t.safetensors", tmp_path / "t.pt", {"t": source}):
        with embeng.Engine([embeng.Table("t", 8, 3)]) as engine:
            checkpoint.load(engine, path)
            same(engine["t"].read(), source.float().numpy())


@pytest.mark.parametrize("array", [
    np.arange(24.).reshape(8, 3), np.arange(24).reshape(8, 3), np.arange(24, dtype=np.int8)
    .reshape(8, 3)])
def test_rounding_must_be_asked_for(tmp_path, array):
    np.save(tmp_path / "t.npy", array)
    with embeng.Engine([embeng.Table("t", 8, 3)]) as engine:
        before = content(engine)
        assert_untouched(engine, before, lambda: checkpoint.load(engine, tmp_path / "t.npy"),
                         ValueError, str(array.dtype), "t.npy", "cast=True", "float16")
        checkpoint.load(engine, tmp_path / "t.npy", cast=True)
        same(engine["t"].read(), array.astype(np.float32))


def test_fortran_and_big_endian_arrays(tmp_path):
    wanted = np.random.default_rng(3).normal(size=(8, 3)).astype(np.float32)
    for source in (np.asfortranarray(wanted), wanted.astype(">f4"), wanted.astype(np.float32)):
        np.save(tmp_path / "t.npy", source)
        for given_ in (tmp_path / "t.npy", {"t": source}, {"t": tmp_path / "t.npy"}):
            with embeng.Engine([embeng.Table("t", 8, 3)]) as engine:
                checkpoint.load(engine, given_)
                same(engine["t"].read(), wanted)


def test_memory_is_bounded(tmp_path):
    table = embeng.Table("t", 300_000, 64)  # 73 MiB, in pieces of 16 MiB
    with embeng.Engine([table]) as engine, embeng.Engine([table]) as other:
        for format, name in (("npy", "n"), ("safetensors", "s.safetensors")):
            tracemalloc.start()
            checkpoint.export(engine, tmp_path / name, format)
            other["t"].fill(embeng.initializers.constant(0))
            checkpoint.load(other, tmp_path / name)
            most = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert most < 40 << 20, f"{format} took {most} bytes"
            same(engine["t"].numpy(), other["t"].numpy())


# -- names


def two_tables():
    return embeng.Engine([embeng.Table("a", 4, 2), embeng.Table("b.a", 4, 2)])


@pytest.mark.parametrize("keys", [
    ("a", "b.a"), ("a.weight", "b.a.weight"), ("a/parameters", "b.a/parameters"),
    ("embedding_bags.a.weight", "embedding_bags.b.a.weight"),
    ("model.ebc.embeddings.a.weight", "model.ebc.embeddings.b.a.weight"), ("x.a", "y.b.a.weight"),
])
def test_keys_find_their_tables(keys):
    rows = np.arange(16, dtype=np.float32).reshape(2, 4, 2)
    with two_tables() as engine:
        report = checkpoint.load(engine, {keys[0]: rows[0], keys[1]: rows[1], "over.dense": rows})
        same(engine["a"].read(), rows[0])
        same(engine["b.a"].read(), rows[1])
        assert report["unused"] == ["over.dense"]


def test_exact_keys_come_before_prefixed_ones():
    rows = np.ones((4, 2), np.float32)
    with embeng.Engine([embeng.Table("a", 4, 2)]) as engine:
        report = checkpoint.load(engine, {"tower.a.weight": rows * 2, "a.weight": rows})
        same(engine["a"].read(), rows)
        assert report["unused"] == ["tower.a.weight"]
        checkpoint.load(engine, {"weight": rows * 3})
        same(engine["a"].read(), rows * 3)


def test_ambiguous_and_missing_keys():
    rows = np.ones((4, 2), np.float32)
    with two_tables() as engine:
        before = content(engine)
        assert_untouched(engine, before, lambda: checkpoint.load(engine, {
            "x.a": rows, "y.a.weight": rows, "b.a": rows}), ValueError, "'x.a' or 'y.a.weight'",
            "names={'a'")
        assert_untouched(engine, before, lambda: checkpoint.load(engine, {"a": rows, "c": rows}),
                         KeyError, "'b.a.weight'", "'a', 'c'", "missing_tables")
        checkpoint.load(engine, {"a": rows * 5, "c": rows}, missing_tables=True)
        same(engine["a"].read(), rows * 5)
        same(engine["b.a"].read(), before["b.a", None])


def test_names_say_which(engine, fresh, tmp_path):
    checkpoint.export(engine, tmp_path, slots=True)
    (tmp_path / "index.json").unlink()
    for file in list(tmp_path.glob("users*")):
        file.rename(tmp_path / ("people" + file.name.removeprefix("users")))
    checkpoint.load(fresh, tmp_path, {"users": "people"})
    assert_same_engines(engine, fresh)
    with embeng.Engine(make_tables()) as other:
        before = content(other)
        checkpoint.load(other, tmp_path, {"users": None})
        same(other["users"].read(), before["users", None])
        same(other["shop/item.x"].read(), engine["shop/item.x"].read())
        for names, words in (({"nobody": "people"}, ("nobody", "users, shop/item.x")),
                             ({"users": "folk"}, ("folk", "'people'"))):
            assert_untouched(other, content(other), lambda names=names: checkpoint.load(
                other, tmp_path, names), KeyError, *words)


def test_keys_of_torchrec(engine, tmp_path):
    torch = pytest.importorskip("torch")
    key = "embedding_bags.{table}.weight"
    checkpoint.export(engine, tmp_path / "m.pt", "torch", key=key)
    found = torch.load(tmp_path / "m.pt", weights_only=True)
    assert list(found) == ["embedding_bags.users.weight", "embedding_bags.shop/item.x.weight"]
    for table in ("users", "shop/item.x"):
        same(found[key.replace("{table}", table)].numpy(), engine[table].read())
    with pytest.raises(ValueError, match="two tensors"):
        checkpoint.export(engine, tmp_path / "x.pt", "torch", key="same.weight")
    assert not (tmp_path / "x.pt").exists()


# -- large offsets


def test_offsets_of_64_bits(tmp_path):
    """A sparse file of 24 GiB: the header's offsets, and rows behind 2**34, are right."""
    rows = 3 * 2**31 // 2
    entry = _formats.Entry("t.weight", (rows, 2), lambda first, out: None)
    header = _formats.safetensors_header([entry], {})
    length = int.from_bytes(header[:8], "little")
    assert length == len(header) - 8 and len(header) % 8 == 0
    assert json.loads(header[8:])["t.weight"]["data_offsets"] == [0, 8 * rows]
    path = tmp_path / "large.safetensors"
    with open(path, "wb") as file:
        file.write(header)
        file.seek(len(header) + 8 * (rows - 1))
        file.write(struct.pack("<ff", 1.5, -2.25))
    from contextlib import ExitStack
    with ExitStack() as stack:
        (tensor,), _ = _formats.read_safetensors(str(path), stack)
        assert tensor.shape == (rows, 2) and 8 * rows > 2**34
        same(tensor.read(rows - 2, 2), [[0, 0], [1.5, -2.25]])
    os.truncate(path, len(header) + 8 * rows - 1)
    with embeng.Engine([embeng.Table("t", 4, 2)]) as engine:
        assert_untouched(engine, content(engine), lambda: checkpoint.load(engine, path),
                         embeng.CheckpointError, "truncated", "t.weight", "large.safetensors")

# SPDX-License-Identifier: MIT
"""embeng.checkpoint: reading checkpoints, and tables to and from npy, safetensors and torch.

Numbers are compared bit by bit. numpy, safetensors and torch themselves are the oracles of what is
written, and write what is read. Damaged files are made by hypothesis.
"""
import io
import json
import os
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import embeng
from embeng import _formats, checkpoint

RATE = 0.1
FUZZ = settings(deadline=None, max_examples=150, derandomize=False, print_blob=True,
                suppress_health_check=[HealthCheck.function_scoped_fixture])


def bits(array):
    return np.asarray(array, np.float32).view(np.uint32)


def same(one, other):
    one, other = np.asarray(one), np.asarray(other)
    assert one.shape == other.shape
    assert np.array_equal(bits(one), bits(other))


def make_tables(kinds=("adam", "rowwise_adagrad")):
    makers = {"adam": lambda: embeng.optimizers.adam_corrected(RATE),
              "adagrad": lambda: embeng.optimizers.adagrad_epsilon(RATE)}
    optimizers = [makers.get(kind, lambda kind=kind: embeng.Optimizer(kind, RATE))()
                  for kind in kinds]
    return [embeng.Table("users", 300, 8, optimizer=optimizers[0]),
            embeng.Table("shop/item.x", 70, 5, optimizer=optimizers[-1])]


def train(engine, seed=1, steps=3):
    random = np.random.default_rng(seed)
    print("seed", seed)
    for _ in range(steps):
        features, gradients = {}, {}
        for table in engine.tables:
            features[table.name] = random.integers(0, table.vocabulary_size, 40)
            gradients[table.name] = random.normal(size=(40, table.dim)).astype(np.float32)
        engine.update(features, gradients)
    return engine


@pytest.fixture
def engine():
    with embeng.Engine(make_tables()) as opened:
        yield train(opened)


@pytest.fixture
def fresh():
    with embeng.Engine(make_tables()) as opened:
        yield opened


def content(engine):
    found = {}
    for view in engine:
        for slot in (None, *view.slots):
            found[view.name, slot] = view.read(slot=slot)
    return found


def assert_same_engines(one, other):
    first, second = content(one), content(other)
    assert first.keys() == second.keys()
    for key in first:
        same(first[key], second[key])


def assert_untouched(engine, before, call, error, *words):
    """`call` fails, its sentence has all the words, and no number of the engine changed."""
    with pytest.raises(error) as caught:
        call()
    for word in words:
        assert word in str(caught.value)
    after = content(engine)
    for key in before:
        same(before[key], after[key])


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


# -- torch


def torch_optimizer(torch, kind, parameters):
    return {"adam": lambda: torch.optim.Adam(parameters, lr=RATE),
            "adagrad": lambda: torch.optim.Adagrad(parameters, lr=RATE),
            "momentum": lambda: torch.optim.SGD(parameters, lr=RATE, momentum=0.9),
            "adadelta": lambda: torch.optim.Adadelta(parameters, lr=RATE, rho=0.95, eps=1e-8),
            "rms_prop": lambda: torch.optim.RMSprop(parameters, lr=RATE, alpha=0.9)}[kind]()


STATES = {"adam": {"momenta": "exp_avg", "velocities": "exp_avg_sq"},
          "adagrad": {"accumulators": "sum"}, "momentum": {"momenta": "momentum_buffer"},
          "adadelta": {"accumulators": "square_avg", "updates": "acc_delta"},
          "rms_prop": {"ms": "square_avg"}}


def torch_training(torch, kind, seed=11, steps=3):
    print("seed", seed)
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    model = torch.nn.ModuleDict({"users": torch.nn.EmbeddingBag(300, 8),
                                 "books": torch.nn.Embedding(70, 5)})
    optimizer = torch_optimizer(torch, kind, model.parameters())
    for _ in range(steps):
        optimizer.zero_grad()
        loss = sum((m.weight * torch.randn_like(m.weight)).sum() for m in model.values())
        loss.backward()
        optimizer.step()
    return model, optimizer


def torch_engine(kind):
    made = {"adam": embeng.optimizers.adam_corrected, "adagrad": embeng.optimizers.adagrad_epsilon}
    rate = made.get(kind, lambda rate: embeng.Optimizer(kind, rate))(RATE)
    return embeng.Engine([embeng.Table("users", 300, 8, optimizer=rate),
                          embeng.Table("books", 70, 5, optimizer=rate)])


@pytest.mark.parametrize("kind", list(STATES))
def test_states_of_torch_optim_are_read(tmp_path, kind):
    torch = pytest.importorskip("torch")
    model, optimizer = torch_training(torch, kind)
    names = [name for name, _ in model.named_parameters()]
    both = {"epoch": 3, "model_state_dict": model.state_dict(),
            "optimizer_state_dict": optimizer.state_dict()}
    torch.save(both, tmp_path / "c.pt")
    torch.save(both, tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    for source in (both, tmp_path / "c.pt", tmp_path / "old.pt"):
        with torch_engine(kind) as engine:
            report = checkpoint.load(engine, source, params=names)
            for number, name in enumerate(("users", "books")):
                same(engine[name].read(), model[name].weight.detach().numpy())
                for slot, state in STATES[kind].items():
                    wanted = optimizer.state_dict()["state"][number][state]
                    same(engine[name].read(slot=slot), wanted.numpy())
            steps = 0 if kind == "momentum" else 3
            assert engine.step == steps and report["step"] == (steps or None)
            assert report["unused"] == []


@pytest.mark.parametrize("kind", ["adam", "adagrad", "momentum", "adadelta"])
def test_training_goes_on_in_torch(tmp_path, kind):
    """An engine's tables and slots, exported, train on in torch as they do in the engine."""
    torch = pytest.importorskip("torch")
    with torch_engine(kind) as engine:
        train(engine, seed=5)
        checkpoint.export(engine, tmp_path / "m.pt", "torch", slots=True)
        for mmap in (False, True):
            found = torch.load(tmp_path / "m.pt", weights_only=True, mmap=mmap)
            assert found["optimizer"]["param_groups"][0]["param_names"] == list(
                found["state_dict"])
        model = torch.nn.ModuleDict({"users": torch.nn.EmbeddingBag(300, 8),
                                     "books": torch.nn.Embedding(70, 5)})
        model.load_state_dict(found["state_dict"])
        optimizer = torch_optimizer(torch, kind, model.parameters())
        optimizer.load_state_dict(found["optimizer"])
        assert optimizer.param_groups[0]["lr"] == RATE
        random = np.random.default_rng(6)
        for _ in range(4):
            rows = {t.name: random.normal(size=(t.vocabulary_size, t.dim)).astype(np.float32)
                    for t in engine.tables}
            engine.update({name: np.arange(len(rows[name])) for name in rows}, rows)
            for name in rows:
                model[name].weight.grad = torch.from_numpy(rows[name].copy())
            optimizer.step()
        for name in rows:
            np.testing.assert_allclose(engine[name].read(), model[name].weight.detach().numpy(),
                                       rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("name", ["Adagrad", "Adam", "AdamW", "SparseAdam"])
def test_modules_of_embeng_torch(tmp_path, name):
    """State dicts of embeng.torch are torch's, and its engines are exported as any other."""
    torch = pytest.importorskip("torch")
    from embeng import torch as tables

    torch.manual_seed(13)
    bags = [tables.EmbeddingBag(50, 4, mode="sum") for _ in range(2)]
    optimizers = [getattr(tables.optim, name)(bag.parameters(), lr=0.1) for bag in bags]
    for _ in range(3):
        optimizers[0].zero_grad()
        bags[0](torch.randint(50, (20,)), torch.arange(0, 20, 4)).pow(2).sum().backward()
        optimizers[0].step()
    torch.save({"state_dict": bags[0].state_dict(), "optimizer": optimizers[0].state_dict()},
               tmp_path / "m.pt")
    checkpoint.load(bags[1].engine, tmp_path / "m.pt", params=["weight"])
    assert_same_engines(bags[0].engine, bags[1].engine)
    assert bags[1].engine.step == 3
    checkpoint.export(bags[0].engine, tmp_path / "x.pt", "torch", slots=True)
    state = torch.load(tmp_path / "x.pt", weights_only=True)["optimizer"]["state"][0]
    for part, value in optimizers[0].state_dict()["state"][0].items():
        same(np.float32(value), state[part].numpy())


@pytest.mark.parametrize("optimizer, wanted", [
    (embeng.optimizers.adamw(0.25, weight_decay_factor=0.5),
     {"lr": 0.25, "weight_decay": 0.5, "decoupled_weight_decay": True, "betas": (0.9, 0.999),
      "eps": 1e-8}),
    (embeng.optimizers.sgd(0.1, weight_decay_factor=0.01, weight_decay_in_gradient=True),
     {"lr": 0.1, "weight_decay": 0.01, "momentum": 0}),
    (embeng.optimizers.momentum(0.1, momentum=0.7, use_nesterov=True),
     {"momentum": 0.7, "nesterov": True, "weight_decay": 0}),
    (embeng.optimizers.adam_corrected("rate", dynamic={"epsilon": "e"}),
     {"betas": (0.9, 0.999), "lr": None, "eps": None}),
    (embeng.optimizers.rowwise_adagrad(0.1), {"eps": 1e-8, "lr_decay": 0}),
])
def test_groups_have_the_settings(tmp_path, optimizer, wanted):
    torch = pytest.importorskip("torch")
    with embeng.Engine([embeng.Table("t", 4, 2, optimizer=optimizer)]) as engine:
        checkpoint.export(engine, tmp_path / "m.pt", "torch", slots=True)
    (group,) = torch.load(tmp_path / "m.pt", weights_only=True)["optimizer"]["param_groups"]
    for name, value in wanted.items():
        assert group.get(name) == value, name
    assert group["params"] == [0] and group["param_names"] == ["t.weight"]


def test_groups_of_tables_that_differ(tmp_path):
    torch = pytest.importorskip("torch")
    optimizers = [embeng.optimizers.adagrad_epsilon(rate) for rate in (0.1, 0.2, 0.1)]
    tables = [embeng.Table(f"t{n}", 4, 2, optimizer=o) for n, o in enumerate(optimizers)]
    with embeng.Engine([*tables, embeng.Table("fixed", 3, 2)]) as engine:
        checkpoint.export(engine, tmp_path / "m.pt", "torch", slots=True)
    state = torch.load(tmp_path / "m.pt", weights_only=True)
    groups = state["optimizer"]["param_groups"]
    assert [(g["lr"], g["params"]) for g in groups] == [(0.1, [0, 2]), (0.2, [1])]
    assert list(state["optimizer"]["state"]) == [0, 1, 2]
    assert list(state["state_dict"]) == ["t0.weight", "t1.weight", "t2.weight", "fixed.weight"]


def test_weight_decay_without_counterpart(tmp_path):
    pytest.importorskip("torch")
    optimizer = embeng.optimizers.adagrad(0.1, weight_decay_factor=0.5)
    with embeng.Engine([embeng.Table("t", 4, 2, optimizer=optimizer)]) as engine:
        with pytest.raises(ValueError, match=r"t\.weight: the weight decay"):
            checkpoint.export(engine, tmp_path / "m.pt", "torch", slots=True)
        checkpoint.export(engine, tmp_path / "m.pt", "torch")


def test_imports_stay_light(run_python):
    """Modules for plots and files import numpy, torch and matplotlib when they are called."""
    done = run_python("import sys, embeng.checkpoint, embeng.plot; print([m for m in ('numpy', "
                      "'torch', 'matplotlib', 'zipfile') if m in sys.modules])")
    assert done.stdout == "[]\n", done.stderr


def test_kinds_without_counterpart(tmp_path):
    torch = pytest.importorskip("torch")
    tables = make_tables(("ftrl", "adam"))
    with embeng.Engine(tables) as engine:
        with pytest.raises(ValueError, match=r"users\.weight: optimizer ftrl has no counterpart"):
            checkpoint.export(engine, tmp_path / "m.pt", "torch", slots=True)
        assert not list(tmp_path.iterdir())
        state = {"state_dict": {n: torch.zeros(s) for n, s in (("users", (300, 8)),
                                                                ("shop/item.x", (70, 5)))},
                 "optimizer": {"state": {"users": {"z": torch.zeros(300, 8)}}, "param_groups": []}}
        assert_untouched(engine, content(engine), lambda: checkpoint.load(engine, state), KeyError,
                         "ftrl", "slots=False")
        checkpoint.load(engine, state, slots=False)
        assert not engine["users"].read().any()


def test_rowwise_state_of_fused_tables():
    """A row-wise sum may be [rows], as FBGEMM has it; names may have the table before them."""
    torch = pytest.importorskip("torch")
    table = embeng.Table("t", 6, 4, optimizer=embeng.optimizers.rowwise_adagrad(RATE))
    weight, state = torch.randn(6, 4), torch.rand(6)
    with embeng.Engine([table]) as engine:
        checkpoint.load(engine, {
            "state_dict": {"ebc.embedding_bags.t.weight": weight},
            "optimizer": {"state": {"ebc.embedding_bags.t.weight": {"t.momentum1": state}},
                          "param_groups": []}})
        same(engine["t"].read(slot="accumulators"), state.numpy()[:, None])
        same(engine["t"].read(), weight.numpy())


def optimizer_part(torch, **state):
    whole = {"step": torch.tensor(4.), "exp_avg": torch.ones(4, 2), "exp_avg_sq": torch.ones(4, 2)}
    return {"state": {0: {**whole, **state}}, "param_groups": [{"params": [0]}]}


@pytest.mark.parametrize("change, options, error, words", [
    ({}, {}, ValueError, ("numbers its parameters", "named_parameters")),
    ({}, {"params": ["t", "u"]}, ValueError, ("2 names", "1 parameters")),
    ({"exp_avg": None}, {"params": ["t"]}, ValueError, ("velocities", "no momenta")),
    ({"momentum1": 1}, {"params": ["t"]}, ValueError, ("exp_avg and momentum1", "momenta")),
    ({"exp_avg": 3}, {"params": ["t"]}, ValueError,
     ("[3, 2]", "slot momenta of table t", "[4, 2]")),
    ({"step": 1.5}, {"params": ["t"]}, embeng.CheckpointError, ("step 1.5",)),
    ({"step": float("nan")}, {"params": ["t"]}, embeng.CheckpointError, ("step nan",)),
    ({}, {"params": ["t"], "step": -1}, embeng.CheckpointError, ("step -1",)),
    ({}, {"params": ["t"], "step": 2**62 + 1}, embeng.CheckpointError, ("2**62",)),
])
def test_wrong_states(change, options, error, words):
    torch = pytest.importorskip("torch")
    made = {key: torch.ones(value, 2) if type(value) is int else
            value if value is None else torch.tensor(value) for key, value in change.items()}
    source = {"model": {"t": torch.ones(4, 2)}, "optimizer": optimizer_part(torch, **made)}
    with embeng.Engine([embeng.Table("t", 4, 2, optimizer=embeng.optimizers.adam())]) as engine:
        assert_untouched(engine, content(engine),
                         lambda: checkpoint.load(engine, source, **options), error, *words)
        assert engine.step == 0


def test_step_is_chosen(engine, fresh, tmp_path):
    checkpoint.export(engine, tmp_path / "m.safetensors", "safetensors", slots=True)
    assert checkpoint.load(fresh, tmp_path / "m.safetensors", step=False)["step"] is None
    assert fresh.step == 0
    assert checkpoint.load(fresh, tmp_path / "m.safetensors", step=2**40)["step"] == 2**40
    assert fresh.step == 2**40
    assert checkpoint.load(fresh, tmp_path / "m.safetensors", slots=False)["step"] is None


def test_steps_that_differ():
    torch = pytest.importorskip("torch")
    one = optimizer_part(torch)["state"][0]
    source = {"model": {"t": torch.ones(4, 2), "u": torch.ones(4, 2)}, "optimizer": {
        "state": {"t": one, "u": {**one, "step": torch.tensor(9.)}}, "param_groups": []}}
    adam = embeng.optimizers.adam()
    with embeng.Engine([embeng.Table(name, 4, 2, optimizer=adam) for name in "tu"]) as engine:
        assert_untouched(engine, content(engine), lambda: checkpoint.load(engine, source),
                         ValueError, "table t is at step 4, table u at step 9")


def test_sparse_and_meta_tensors_are_refused():
    torch = pytest.importorskip("torch")
    with embeng.Engine([embeng.Table("t", 4, 2)]) as engine:
        for tensor in (torch.ones(4, 2).to_sparse(), torch.ones(4, 2, device="meta")):
            assert_untouched(engine, content(engine), lambda t=tensor: checkpoint.load(
                engine, {"t": t}), ValueError, "tensor 't'", "dense")
        assert_untouched(engine, content(engine), lambda: checkpoint.load(
            engine, {"t": torch.ones(4, 2).to(torch.float8_e5m2)}), ValueError, "float8_e5m2")


def test_zip64_of_large_files(engine, fresh, tmp_path, monkeypatch):
    """Files above 2 GiB have a directory of another form, which a low limit forces here."""
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 1000)
    checkpoint.export(engine, tmp_path / "m.pt", "torch")
    monkeypatch.undo()
    with zipfile.ZipFile(tmp_path / "m.pt") as archive:
        assert archive.testzip() is None
        assert archive.infolist()[-1].extra[:2] == b"\1\0"  # a zip64 field
    for mmap in (False, True):
        found = torch.load(tmp_path / "m.pt", weights_only=True, mmap=mmap)
        same(found["users.weight"].numpy(), engine["users"].read())
        assert found["users.weight"].data_ptr() % 4 == 0
    checkpoint.load(fresh, tmp_path / "m.pt")
    same(fresh["shop/item.x"].read(), engine["shop/item.x"].read())


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


# -- files that are wrong


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

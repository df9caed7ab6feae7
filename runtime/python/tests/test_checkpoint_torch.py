# SPDX-License-Identifier: MIT
"""embeng.checkpoint and torch: states of modules and optimizers, in and out, bit by bit."""
import zipfile

import numpy as np
import pytest
from checkpoint_content import (RATE, assert_same_engines, assert_untouched, content,
                                engine, fresh, make_tables, same, train)

import embeng
from embeng import checkpoint


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

# SPDX-License-Identifier: MIT
"""Optimizers of tables: formulas, groups, schedulers, state both ways, scaling, clipping."""
import copy
import inspect
import io
import math

import pytest
import torch
from torch import nn

import embeng
import embeng.torch as et

torch.set_num_threads(1)
ROWS, DIM = 6, 4
ALL = torch.arange(ROWS)  # where each step touches each row, dense optimizers are lazy, too

CLASSES = [
    ("SGD", {"lr": 0.1}), ("SGD", {"lr": 0.1, "weight_decay": 0.2}),
    ("SGD", {"lr": 0.1, "momentum": 0.8}), ("SGD", {"lr": 0.1, "momentum": 0.8, "nesterov": True,
                                                    "weight_decay": 0.1, "maximize": True}),
    ("Adagrad", {"lr": 0.2, "lr_decay": 0.3, "weight_decay": 0.1, "eps": 1e-3}),
    ("Adam", {"lr": 0.05}), ("Adam", {"lr": 0.05, "betas": (0.5, 0.7), "eps": 1e-2,
                                      "weight_decay": 0.3}),
    ("Adam", {"lr": 0.05, "weight_decay": 0.3, "decoupled_weight_decay": True}),
    ("AdamW", {"lr": 0.05}), ("AdamW", {"lr": 0.05, "weight_decay": 0.4, "maximize": True}),
    ("RMSprop", {"lr": 0.05}), ("RMSprop", {"lr": 0.05, "momentum": 0.7, "weight_decay": 0.1}),
    ("RMSprop", {"lr": 0.05, "centered": True, "alpha": 0.8}),
    ("Adadelta", {"lr": 0.9}), ("Adadelta", {"rho": 0.8, "weight_decay": 0.1}),
    ("SparseAdam", {"lr": 0.05, "betas": (0.8, 0.95), "eps": 1e-3}),
]


class Pair:
    """A model of torch and one with a table, with the same numbers and optimizers of one name."""

    def __init__(self, name, settings, dense=True):
        self.models = []
        sparse = name == "SparseAdam"
        for cls, more in ((nn.Embedding, {"sparse": sparse}), (et.Embedding, {})):
            torch.manual_seed(5)
            parts = [cls(ROWS, DIM, **more)]
            if dense and not sparse:
                parts.append(nn.Linear(DIM, 2))
            self.models.append(nn.Sequential(*parts))
        self.optimizers = [getattr(library.optim, name)(model.parameters(), **settings)
                           for library, model in zip((torch, et), self.models)]

    def backward(self, seed, ids=ALL):
        for model in self.models:
            generator = torch.Generator().manual_seed(seed)
            output = model(ids)
            output.backward(torch.randn(output.shape, generator=generator))

    def step(self, seed, ids=ALL):
        self.backward(seed, ids)
        for optimizer in self.optimizers:
            optimizer.step()
            optimizer.zero_grad()

    def check(self, **limits):
        for theirs, ours in zip(self.models[0].parameters(), self.models[1].parameters()):
            torch.testing.assert_close(ours.detach(), theirs.detach(),
                                       **{"rtol": 1e-4, "atol": 1e-5, **limits})


@pytest.mark.parametrize("name,settings", CLASSES)
def test_formulas_are_those_of_torch(name, settings):
    pair = Pair(name, settings)
    for k in range(12):
        pair.step(k)
        pair.check()


@pytest.mark.parametrize("name,settings", CLASSES)
def test_state_goes_to_torch_and_back(name, settings):
    pair = Pair(name, settings)
    for k in range(3):
        pair.step(k)
    theirs, ours = (copy.deepcopy(o.state_dict()) for o in pair.optimizers)
    assert list(theirs["state"]) == list(ours["state"]) or name == "SGD"
    for k, state in theirs["state"].items():
        known = {key: value for key, value in state.items() if value is not None}
        for key in known:
            torch.testing.assert_close(torch.as_tensor(ours["state"][k][key]).float(),
                                       torch.as_tensor(known[key]).float(), rtol=1e-3, atol=1e-5)
    other = Pair(name, settings)
    for model, known in zip(other.models, pair.models):
        model.load_state_dict(known.state_dict())
    other.optimizers[0].load_state_dict(ours)
    other.optimizers[1].load_state_dict(theirs)
    for k in range(3, 6):
        pair.step(k)
        other.step(k)
        other.check()
    for model, known in zip(other.models, pair.models):
        torch.testing.assert_close(model[0].weight.detach(), known[0].weight.detach(), rtol=1e-4,
                                   atol=1e-5)


def test_an_older_state_takes_its_step_back():
    pair = Pair("Adam", {"lr": 0.1})
    pair.step(0)
    older = [copy.deepcopy((m.state_dict(), o.state_dict()))
             for m, o in zip(pair.models, pair.optimizers)]
    empty = [copy.deepcopy(o.state_dict()) | {"state": {}} for o in pair.optimizers]
    for k in range(1, 4):
        pair.step(k)
    for model, optimizer, (rows, state) in zip(pair.models, pair.optimizers, older):
        model.load_state_dict(rows)
        optimizer.load_state_dict(state)
    assert pair.models[1][0].engine.step == 1
    for k in range(4, 7):
        pair.step(k)
        pair.check()
    for optimizer, state in zip(pair.optimizers, empty):
        optimizer.load_state_dict(state)
    assert pair.models[1][0].engine.step == 0
    for k in range(3):
        pair.step(k)
        pair.check()


def test_groups_that_come_later_leave_the_steps():
    tables = [et.Embedding(ROWS, DIM) for _ in range(2)]
    optimizer = et.optim.Adam(tables[0].parameters(), lr=0.1)
    for _ in range(2):
        tables[0](ALL).sum().backward()
        optimizer.step()
    slot = optimizer.state[tables[0].weight]["exp_avg"].clone()
    optimizer.add_param_group({"params": tables[1].parameters()})
    assert [t.engine.step for t in tables] == [2, 0]
    assert torch.equal(optimizer.state[tables[0].weight]["exp_avg"], slot) and slot.any()
    optimizer.param_groups[0]["decoupled_weight_decay"] = True  # opens an engine again
    tables[0](ALL).sum().backward()
    optimizer.step()
    assert [t.engine.step for t in tables] == [3, 0]


def test_state_is_live():
    pair = Pair("Adam", {})
    optimizer = pair.optimizers[1]
    state = optimizer.state[pair.models[1][0].weight]
    assert not state["exp_avg"].any()
    pair.step(0)
    assert state["exp_avg"].any()
    state["exp_avg"].zero_()
    assert not pair.models[1][0].engine["weight"].read(slot="momenta").any()
    assert optimizer.state_dict()["state"][0]["step"].item() == 1


@pytest.mark.parametrize("name,settings,lazy", [
    ("SGD", {"lr": 0.1, "momentum": 0.8}, {"momentum_buffer"}), ("Adam", {"lr": 0.1}, None),
    ("SGD", {"lr": 0.1, "weight_decay": 0.5}, None)])
def test_other_rows_stay(name, settings, lazy):
    pair = Pair(name, settings)
    pair.step(0)
    before = pair.models[1][0].weight.detach().clone()
    pair.step(1, torch.tensor([2, 4]))
    moved = (pair.models[1][0].weight.detach() != before).any(1)
    assert moved.tolist() == [False, False, True, False, True, False]


def test_signatures_are_those_of_torch():
    for theirs, ours in et.optim.BY_TORCH.items():
        wanted = inspect.signature(theirs.__init__).parameters
        got = inspect.signature(ours.__init__).parameters
        assert [(p.name, p.default, p.kind) for p in wanted.values()] == \
            [(p.name, p.default, p.kind) for p in got.values()]
        assert set(torch.optim.Optimizer.__dict__) & {"step"} <= set(dir(ours))


def test_hyperparameters_may_change_between_steps():
    pair = Pair("Adam", {"lr": 0.1})
    for k in range(6):
        pair.step(k)
        for optimizer in pair.optimizers:
            optimizer.param_groups[0].update(lr=0.1 / (k + 1), betas=(0.5 + 0.05 * k, 0.9),
                                             eps=1e-6 * (k + 1), weight_decay=0.1 * k)
        pair.check()
    pair = Pair("SGD", {"lr": 0.1})
    engine = pair.models[1][0].engine
    for k in range(6):
        pair.step(k)
        if k == 2:  # another kind of the engine, whose slots start from zeros, as in torch
            for optimizer in pair.optimizers:
                optimizer.param_groups[0].update(momentum=0.5, nesterov=True)
        pair.check()
    assert pair.models[1][0].engine is not engine


@pytest.mark.parametrize("make", [
    lambda o: torch.optim.lr_scheduler.StepLR(o, 2, 0.3),
    lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 5),
    lambda o: torch.optim.lr_scheduler.OneCycleLR(o, 0.5, total_steps=8),
    lambda o: torch.optim.lr_scheduler.LambdaLR(o, lambda k: 1 / (k + 1))])
def test_schedulers(make, recwarn):
    pair = Pair("Adam", {"lr": 0.1})
    schedulers = [make(optimizer) for optimizer in pair.optimizers]
    for k in range(7):
        pair.step(k)
        for scheduler in schedulers:
            scheduler.step()
        pair.check()
    assert not [w for w in recwarn if "lr_scheduler.step()" in str(w.message)]


def test_groups_with_settings_of_their_own():
    made = []
    for library, cls in ((torch, nn.EmbeddingBag), (et, et.EmbeddingBag)):
        torch.manual_seed(6)
        model = nn.ModuleDict({"a": cls(ROWS, DIM), "b": cls(ROWS, DIM), "c": nn.Linear(DIM, DIM)})
        optimizer = library.optim.SGD([{"params": model["a"].parameters()}], lr=0.1)
        optimizer.add_param_group({"params": [model["b"].weight, model["c"].weight], "lr": 0.5})
        made.append((model, optimizer))
    ids = ALL.reshape(2, 3)
    for _ in range(3):
        for model, optimizer in made:
            (model["c"](model["a"](ids)) * model["b"](ids)).square().sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    for theirs, ours in zip(made[0][0].parameters(), made[1][0].parameters()):
        torch.testing.assert_close(ours.detach(), theirs.detach(), rtol=1e-4, atol=1e-5)


def test_a_new_optimizer_starts_anew():
    pair = Pair("Adam", {"lr": 0.1})
    for k in range(3):
        pair.step(k)
    pair.optimizers[1].detach()
    pair.optimizers = [library.optim.Adam(model.parameters(), lr=0.1)
                       for library, model in zip((torch, et), pair.models)]
    for k in range(3):
        pair.step(k)
        pair.check()


def test_closures_and_hooks():
    pair = Pair("SGD", {"lr": 0.1})
    calls = []
    for model, optimizer in zip(pair.models, pair.optimizers):
        handle = optimizer.register_step_post_hook(lambda o, a, k: calls.append(type(o).__module__))

        def closure(model=model, optimizer=optimizer):
            optimizer.zero_grad()
            loss = model(ALL).square().sum()
            loss.backward()
            return loss

        before = model(ALL).square().sum()
        assert torch.equal(optimizer.step(closure), before)
        handle.remove()
        optimizer.step(closure)
    pair.check()
    assert calls == ["torch.optim.sgd", "embeng.torch.optim"]


def test_row_wise_adagrad():
    for mean in (False, True):
        ours = et.Embedding(ROWS, DIM)
        optimizer = et.optim.RowWiseAdagrad(ours.parameters(), lr=0.3, lr_decay=0.5, eps=1e-4,
                                            weight_decay=0.1, mean_gradient=mean)
        rows, total = ours.weight.detach().clone(), torch.zeros(ROWS, 1)
        for k in range(4):
            gradient = torch.randn(ROWS, DIM, generator=torch.Generator().manual_seed(k))
            ours(ALL).backward(gradient)
            optimizer.step()
            optimizer.zero_grad()
            g = gradient + 0.1 * rows
            mean_square = g.mean(1, keepdim=True).square() if mean \
                else g.square().mean(1, keepdim=True)
            total += mean_square
            rows -= 0.3 / (1 + 0.5 * k) / (total.sqrt() + 1e-4) * (
                g.mean(1, keepdim=True) if mean else g)
            torch.testing.assert_close(ours.weight.detach(), rows, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(optimizer.state_dict()["state"][0]["sum"], total)


def test_kinds_of_the_engine():
    ours = et.Embedding(ROWS, DIM)
    kind = embeng.optimizers.lion(0.1, beta1=0.5, beta2=0.5)
    optimizer = et.optim.Tables(ours.parameters(), kind)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    before = ours.weight.detach().clone()
    for rate in (0.1, 0.05):
        ours(torch.tensor([1, 2])).backward(torch.tensor([[1.0] * DIM, [-2.0] * DIM]))
        optimizer.step()
        optimizer.zero_grad()
        scheduler.step()
        before[1] -= rate
        before[2] += rate
    torch.testing.assert_close(ours.weight.detach(), before)
    assert torch.equal(optimizer.state_dict()["state"][0]["momenta"][1], torch.full((DIM,), 0.75))
    file = io.BytesIO()
    torch.save(optimizer.state_dict(), file)
    file.seek(0)
    optimizer.load_state_dict(torch.load(file, weights_only=True))
    assert torch.equal(optimizer.state[ours.weight]["momenta"][1], torch.full((DIM,), 0.75))
    with pytest.raises(ValueError, match="the learning rate is 'rate'"):
        et.optim.Tables(ours.parameters(), embeng.optimizers.sgd("rate"))


def test_an_optimizer_that_the_module_names_keeps_its_memory():
    for named in (torch.optim.AdamW, et.optim.AdamW, embeng.optimizers.ftrl(0.1)):
        ours = et.EmbeddingBag(ROWS, DIM, optimizer=named)
        engine = ours.engine
        if isinstance(named, embeng.Optimizer):
            assert ours.engine["weight"].slots == ("accumulators", "linears")
        else:
            et.optim.AdamW(ours.parameters(), lr=0.5, eps=1e-3)
            assert ours.engine is engine


@pytest.mark.parametrize("name,settings,sentence", [
    ("SGD", {"momentum": 0.9, "dampening": 0.1}, "dampening is 0.1; with tables it is 0"),
    ("Adam", {"amsgrad": True}, "amsgrad is True; with tables it is False"),
    ("SGD", {"lr": -1.0}, "Invalid learning rate: -1.0"),
    ("Adam", {"betas": (1.0, 0.9)}, "Invalid beta parameter at index 0"),
    ("Adam", {"differentiable": True}, "differentiable=True")])
def test_what_is_refused_is_named(name, settings, sentence):
    with pytest.raises((ValueError, NotImplementedError), match=sentence):
        getattr(et.optim, name)(et.Embedding(ROWS, DIM).parameters(), **settings)


def test_dense_parameters_without_a_counterpart():
    with pytest.raises(NotImplementedError, match="RowWiseAdagrad trains tables alone"):
        et.optim.RowWiseAdagrad([nn.Parameter(torch.zeros(2))])
    with pytest.raises(NotImplementedError, match="Rprop has no counterpart for tables; those of "
                                                  "torch.optim are SGD, Adagrad, Adam, AdamW"):
        et.optim.wrap(torch.optim.Rprop([nn.Parameter(torch.zeros(2))]))


def test_torch_itself_does_not_train_a_table():
    model = nn.Sequential(et.Embedding(ROWS, DIM), nn.Linear(DIM, 2))
    ours = et.optim.SGD([model[0].weight], lr=0.1)
    theirs = torch.optim.SGD(model.parameters(), lr=0.1)
    model(ALL).sum().backward()
    before = model[0].weight.detach().clone()
    with pytest.raises(RuntimeError, match="SGD of torch.optim has the table weight"):
        theirs.step()
    assert torch.equal(model[0].weight, before)
    dense = torch.optim.SGD([p for p in model.parameters() if not et.is_table(p)], lr=0.1)
    dense.step()
    ours.step()
    assert not torch.equal(model[0].weight, before)


def test_wrap_takes_state_along():
    pair = Pair("Adam", {"lr": 0.1})
    for k in range(3):
        pair.step(k)
    table = pair.models[1][0]
    pair.optimizers[1].detach()
    given = torch.optim.Adam(pair.models[1].parameters(), lr=0.5)
    given.load_state_dict(copy.deepcopy(pair.optimizers[0].state_dict()))
    wrapped = et.optim.wrap(given)
    assert et.optim.wrap(wrapped) is wrapped and wrapped.param_groups[0]["lr"] == 0.1
    pair.optimizers[1] = wrapped
    for k in range(3, 6):
        pair.step(k)
        pair.check()
    assert table.engine.step == 6


# -- mixed precision and clipping


def scaled_pair():
    pair = Pair("SGD", {"lr": 0.1})
    return pair, [torch.amp.GradScaler("cpu", init_scale=64.0, growth_interval=2) for _ in range(2)]


def test_a_grad_scaler_scales_and_skips():
    pair, scalers = scaled_pair()
    for k, factor in enumerate([1.0, math.inf, 2.0, 1.0, math.nan, 1.0]):
        for model, optimizer, scaler in zip(pair.models, pair.optimizers, scalers):
            scaler.scale(model(ALL).square().sum() * factor).backward()
            if k % 2:
                scaler.unscale_(optimizer)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
        assert scalers[0].get_scale() == scalers[1].get_scale()
        pair.check()
    assert scalers[1].get_scale() != 64.0


def test_a_grad_scaler_of_a_table_alone():
    ours = et.EmbeddingBag(ROWS, DIM)
    optimizer = et.optim.SGD(ours.parameters(), lr=1.0)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    before = ours.weight.detach().clone()
    scaler.scale(ours(torch.tensor([[3]])).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    before[3] -= 1
    torch.testing.assert_close(ours.weight.detach(), before)


@pytest.mark.parametrize("norm_type", [2.0, 1.0, math.inf])
@pytest.mark.parametrize("limit", [0.01, 1e6])
def test_clipping_by_the_norm_of_everything(norm_type, limit):
    pair = Pair("SGD", {"lr": 1.0})
    ids = torch.tensor([1, 1, 3])
    for k in range(3):
        pair.backward(k, ids)
        pair.backward(k + 7, ids)
        norms = [clip(model.parameters(), limit, norm_type) for clip, model in
                 zip((nn.utils.clip_grad_norm_, et.clip_grad_norm_), pair.models)]
        torch.testing.assert_close(norms[1], norms[0], rtol=1e-5, atol=1e-5)
        pair.backward(k + 9, ids)  # gradients that come after a clip are not clipped
        for optimizer in pair.optimizers:
            optimizer.step()
            optimizer.zero_grad()
        pair.check()


def test_clipping_after_unscaling():
    pair, scalers = scaled_pair()
    clips = (nn.utils.clip_grad_norm_, et.clip_grad_norm_)
    for model, optimizer, scaler, clip in zip(pair.models, pair.optimizers, scalers, clips):
        scaler.scale(model(ALL).square().sum()).backward()
        scaler.unscale_(optimizer)
        clip(model.parameters(), 0.1)
        scaler.step(optimizer)
    pair.check()


def test_clipping_reads_gradients_afterwards():
    pair = Pair("SGD", {"lr": 1.0})
    pair.backward(0)
    for clip, model in zip((nn.utils.clip_grad_norm_, et.clip_grad_norm_), pair.models):
        clip(model.parameters(), 0.1)
    torch.testing.assert_close(pair.models[1][0].weight.grad.to_dense(),
                               pair.models[0][0].weight.grad, rtol=1e-4, atol=1e-6)
    for optimizer in pair.optimizers:
        optimizer.step()
    pair.check()


def test_norms_that_are_not_finite():
    ours = et.EmbeddingBag(ROWS, DIM)
    optimizer = et.optim.SGD(ours.parameters(), lr=1.0)
    ours(torch.tensor([[1]])).backward(torch.full((1, DIM), math.nan))
    with pytest.raises(RuntimeError, match="norm of order 2.0 of the gradients is not finite"):
        et.clip_grad_norm_(ours.parameters(), 1.0, error_if_nonfinite=True)
    optimizer.zero_grad()
    assert et.clip_grad_norm_(ours.parameters(), 1.0).item() == 0

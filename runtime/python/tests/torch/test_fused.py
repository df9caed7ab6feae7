# SPDX-License-Identifier: MIT
"""Fused collections against per-feature modules of torch with optimizers of torch."""
import copy

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

import embeng  # noqa: E402
from embeng.torch import (  # noqa: E402
    EmbeddingBagCollection, EmbeddingCollection, FusedEmbeddingBagCollection,
    FusedEmbeddingCollection, KeyedJaggedTensor, fuse_embedding_optimizer, optim)
from embeng.torch._group import Group  # noqa: E402

from collection_peers import (  # noqa: E402
    BAG, ROWS, Member, Peer, assert_rows_equal, bag_tables, copies_of, every_row, row_tables)


def row_wise_adagrad(parameter, state, lr, eps):
    gradient = parameter.grad
    state += gradient.square().mean(1)
    with torch.no_grad():
        parameter -= lr / (state.sqrt() + eps)[:, None] * gradient


FUSED = [
    (torch.optim.SGD, {"lr": 0.1}, lambda p: torch.optim.SGD(p, lr=0.1)),
    (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01},
     lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01)),
    (torch.optim.Adagrad, {"lr": 0.1, "eps": 1e-6}, lambda p: torch.optim.Adagrad(
        p, lr=0.1, eps=1e-6)),
    (torch.optim.Adam, {"lr": 0.05, "betas": (0.8, 0.95)},
     lambda p: torch.optim.Adam(p, lr=0.05, betas=(0.8, 0.95))),
    (torch.optim.AdamW, {"lr": 0.05}, lambda p: torch.optim.AdamW(p, lr=0.05)),
    (optim.Adagrad, {"learning_rate": 0.1, "weight_decay": 0.02},
     lambda p: torch.optim.Adagrad(p, lr=0.1, weight_decay=0.02)),
    ("EXACT_SGD", {"learning_rate": 0.2}, lambda p: torch.optim.SGD(p, lr=0.2)),
    ("exact_adagrad", {}, lambda p: torch.optim.Adagrad(p, lr=0.01, eps=1e-8)),
    ("ADAM", {"beta1": 0.8, "beta2": 0.9, "weight_decay": 0.1, "weight_decay_mode": "L2"},
     lambda p: torch.optim.Adam(p, lr=0.01, betas=(0.8, 0.9), weight_decay=0.1)),
    ("ADAM", {"lr": 0.02, "weight_decay": 0.1, "weight_decay_mode": "DECOUPLE",
              "stochastic_rounding": True},
     lambda p: torch.optim.AdamW(p, lr=0.02, weight_decay=0.1)),
]


@pytest.mark.parametrize("kind, kwargs, make_theirs", FUSED,
                         ids=[f"{getattr(k, '__name__', k)}-{n}" for n, (k, _, _) in
                              enumerate(FUSED)])
def test_fused_optimizer_is_that_of_torch(kind, kwargs, make_theirs, monkeypatch):
    again = []  # an engine that is opened twice has all rows twice
    monkeypatch.setattr(Group, "_replace_engine", lambda *given: again.append(given))
    collection = FusedEmbeddingBagCollection(bag_tables(), kind, kwargs, cores=1)
    peer = Peer(collection)
    assert again == []
    theirs = make_theirs(peer.parameters())
    start = {name: rows.clone() for name, rows in collection.state_dict().items()}
    keyed = every_row()
    for step in range(4):
        ours = collection(keyed).values()
        expected = torch.cat(peer(keyed), 1)
        torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-5)
        (ours - step).square().sum().backward()
        (expected - step).square().sum().backward()
        theirs.step()
        theirs.zero_grad()
        assert_rows_equal(collection, peer, rtol=1e-4, atol=1e-5)
        if step == 1:  # a schedule
            for optimizer in (collection.fused_optimizer(), theirs):
                optimizer.param_groups[0]["lr"] *= 0.5
    for name, rows in collection.state_dict().items():
        assert (rows != start[name]).any(), name


@pytest.mark.parametrize("kind", [optim.RowWiseAdagrad, "EXACT_ROWWISE_ADAGRAD",
                                  "exact_row_wise_adagrad"])
def test_fused_row_wise_adagrad(kind):
    collection = FusedEmbeddingBagCollection(bag_tables(), kind, {"lr": 0.1, "eps": 1e-5}, cores=1)
    peer = Peer(collection)
    states = [torch.zeros(ROWS) for _ in peer.parameters()]
    keyed = every_row()
    for step in range(4):
        (collection(keyed).values() - step).square().sum().backward()
        (torch.cat(peer(keyed), 1) - step).square().sum().backward()
        for parameter, state in zip(peer.parameters(), states, strict=True):
            row_wise_adagrad(parameter, state, 0.1, 1e-5)
            parameter.grad = None
        assert_rows_equal(collection, peer, rtol=1e-4, atol=1e-5)
    for name, state in zip(collection.embedding_bags, states):
        known = collection.fused_optimizer().state[collection.embedding_bags[name].weight]
        torch.testing.assert_close(known["sum"].reshape(-1), state)


def test_fused_partial_row_wise_adam(monkeypatch):
    again = []
    monkeypatch.setattr(Group, "_replace_engine", lambda *given: again.append(given))
    collection = FusedEmbeddingBagCollection(
        [BAG(ROWS, 3, "t", feature_names=["f1"])], "PARTIAL_ROWWISE_ADAM",
        {"lr": 0.1, "betas": (0.8, 0.9), "eps": 1e-6}, cores=1)
    assert again == []
    weight = collection.embedding_bags["t"].weight
    rows, first, second = weight.detach().clone(), torch.zeros(ROWS, 3), torch.zeros(ROWS)
    keyed = KeyedJaggedTensor.from_lengths_sync(["f1"], torch.arange(ROWS), torch.ones(
        ROWS, dtype=torch.int64))
    for step in range(1, 4):
        gradient = 2 * (rows - step)
        (collection(keyed).values() - step).square().sum().backward()
        first = 0.8 * first + 0.2 * gradient
        second = 0.9 * second + 0.1 * gradient.square().mean(1)
        moved = first / (1 - 0.8**step) / ((second / (1 - 0.9**step)).sqrt() + 1e-6)[:, None]
        rows -= 0.1 * moved
        torch.testing.assert_close(weight.detach(), rows, rtol=1e-4, atol=1e-5)


def test_optimizers_that_are_not_here_are_named():
    tables = bag_tables()
    assert FusedEmbeddingBagCollection(
        tables, Member("EXACT_SGD")).fused_optimizer().param_groups[0]["lr"] == 0.01
    with pytest.raises(embeng.NotSupportedError, match="optimizer_type: LARS_SGD has no counter"):
        FusedEmbeddingBagCollection(tables, Member("LARS_SGD"))
    with pytest.raises(embeng.NotSupportedError, match="torch.optim.*Rprop has no counterpart"):
        FusedEmbeddingBagCollection(tables, torch.optim.Rprop)
    with pytest.raises(ValueError, match="optimizer_kwargs: SGD has no 'beta'; it has"):
        FusedEmbeddingBagCollection(tables, torch.optim.SGD, {"beta": 1})
    with pytest.raises(ValueError, match="PARTIAL_ROWWISE_ADAM has no 'momentum'; it has"):
        FusedEmbeddingBagCollection(tables, "PARTIAL_ROWWISE_ADAM", {"momentum": 1})
    with pytest.raises(embeng.NotSupportedError, match="weight_decay_mode is COUNTER"):
        FusedEmbeddingBagCollection(tables, "ADAM", {"weight_decay_mode": "COUNTER"})


def test_fused_optimizer_state_goes_to_another():
    keyed = every_row()
    one = FusedEmbeddingBagCollection(bag_tables(), torch.optim.Adagrad, {"lr": 0.1}, cores=1)
    for _ in range(3):
        one(keyed).values().square().sum().backward()
    other = FusedEmbeddingBagCollection(bag_tables(), torch.optim.Adagrad, {"lr": 0.3}, cores=1)
    other.load_state_dict(one.state_dict())
    other.fused_optimizer().load_state_dict(one.fused_optimizer().state_dict())
    assert other.fused_optimizer().param_groups[0]["lr"] == 0.1
    for collection in (one, other):
        collection(keyed).values().square().sum().backward()
    for name, rows in one.state_dict().items():
        assert torch.equal(rows, other.state_dict()[name])
    state = torch.optim.Adagrad(Peer(one).parameters()).state_dict()
    assert one.fused_optimizer().state_dict()["state"].keys() == state["state"].keys()


def test_fused_rows_are_trained_by_backward():
    collection = FusedEmbeddingCollection(row_tables(), torch.optim.Adagrad, {"lr": 0.1}, cores=1)
    peer = Peer(collection)
    theirs = torch.optim.Adagrad(peer.parameters(), lr=0.1)
    keyed = every_row()
    for step in range(3):
        found = collection(keyed)
        sum((part.values() - step).square().sum() for part in found.values()).backward()
        loss = 0
        for name, (feature, table) in {"f1": ("f1", "t1"), "f2@t1": ("f2", "t1"),
                                       "f2@t2": ("f2", "t2"), "f3": ("f3", "t2")}.items():
            loss = loss + (peer.tables[table].weight[keyed[feature].values()] -
                           step).square().sum()
        loss.backward()
        theirs.step()
        theirs.zero_grad()
    assert_rows_equal(collection, peer, rtol=1e-4, atol=1e-5)
    assert not collection.need_indices()


@pytest.mark.parametrize("make", [
    lambda: FusedEmbeddingBagCollection(bag_tables(), torch.optim.Adagrad, {"lr": 0.1}, cores=1),
    lambda: FusedEmbeddingBagCollection(bag_tables(), "ADAM", {"lr": 0.1}, cores=1)])
def test_copies_of_fused_collections_train_on_apart(make):
    keyed, collection = every_row(), make()
    collection(keyed).values().square().sum().backward()
    at_copy = {name: rows.clone() for name, rows in collection.state_dict().items()}
    copies = copies_of(collection)
    collection(keyed).values().square().sum().backward()
    for found in copies.values():
        for name, rows in found.state_dict().items():
            assert torch.equal(rows, at_copy[name])
        found(keyed).values().square().sum().backward()
        for name, rows in found.state_dict().items():
            assert torch.equal(rows, collection.state_dict()[name])


def test_fused_configurations_of_one_name_are_one_table():
    collection = FusedEmbeddingBagCollection(
        [BAG(ROWS, 2, "t", feature_names=["a", "b"]), BAG(ROWS, 2, "t", feature_names=["c"])],
        torch.optim.SGD, {"lr": 1.0})
    keyed = KeyedJaggedTensor.from_lengths_sync(["a", "b", "c"], torch.tensor([0, 1, 1]),
                                                torch.tensor([1, 1, 1]))
    before = collection.embedding_bags["t"].weight.detach().clone()
    output = collection(keyed)
    assert output.keys() == ["a", "b", "c"]
    assert torch.equal(output["b"], output["c"])
    output.values().sum().backward()
    moved = before - collection.embedding_bags["t"].weight.detach()
    torch.testing.assert_close(moved[:3], torch.tensor([[1.0, 1], [2, 2], [0, 0]]))


@pytest.mark.parametrize("weighted", [False, True])
def test_compiled_collection_trains_as_the_other(weighted):
    eager = FusedEmbeddingBagCollection(bag_tables(), torch.optim.SGD, {"lr": 0.25}, weighted)
    other = copy.deepcopy(eager)

    def run(collection, keys, values, lengths, weights):
        keyed = KeyedJaggedTensor(keys, values, weights, lengths)
        return collection(keyed).values().square().sum()

    compiled = torch.compile(run, backend="aot_eager", fullgraph=True)
    given_keyed = every_row(weighted)
    for _ in range(3):
        found = []
        for function, collection in ((run, eager), (compiled, other)):
            weights = given_keyed.weights().clone().requires_grad_() if weighted else None
            loss = function(collection, given_keyed.keys(), given_keyed.values(),
                            given_keyed.lengths(), weights)
            loss.backward()
            found.append((loss.detach(), weights.grad if weighted else torch.zeros(0)))
        torch.testing.assert_close(*found)
    for name, rows in eager.state_dict().items():
        torch.testing.assert_close(rows, other.state_dict()[name])
    assert other.engine.step == 3


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.pooled = EmbeddingBagCollection(bag_tables())
        self.rows = nn.Sequential(EmbeddingCollection(row_tables(), need_indices=True))
        self.over = nn.Linear(13, 1)


def test_collections_of_a_model_are_fused_with_their_rows():
    model = Model().eval()
    rows = {name: value.clone() for name, value in model.state_dict().items()}
    names = [name for name, _ in model.named_modules()]
    assert fuse_embedding_optimizer(model, torch.optim.SGD, {"lr": 1.0}) is model
    assert isinstance(model.pooled, FusedEmbeddingBagCollection)
    assert isinstance(model.rows[0], FusedEmbeddingCollection)
    assert model.rows[0].need_indices() and not model.pooled.training
    assert [name for name, _ in model.named_modules()] == names
    assert model.state_dict().keys() == rows.keys()
    for name, value in model.state_dict().items():
        assert torch.equal(value, rows[name])
    whole = fuse_embedding_optimizer(EmbeddingBagCollection(bag_tables()), torch.optim.SGD)
    assert isinstance(whole, FusedEmbeddingBagCollection)
    assert fuse_embedding_optimizer(whole, torch.optim.SGD) is whole

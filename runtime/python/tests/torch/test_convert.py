# SPDX-License-Identifier: MIT
"""convert() swaps the embeddings of a model and its optimizer, and training goes on as it would."""
import copy

import pytest
import torch
from torch import nn

import embeng.torch as et
from embeng import Engine
from embeng.torch import _group

torch.set_num_threads(1)
SIZES, DIM = (50, 7, 20), 4


class Dlrm(nn.Module):
    """Bags of ids, a layer for numbers, and the products of their outputs."""

    def __init__(self, sparse):
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(rows, DIM, mode="sum", sparse=sparse)
                                    for rows in SIZES)
        self.user = nn.Embedding(30, DIM, padding_idx=0, sparse=sparse)
        self.bottom = nn.Linear(3, DIM)
        self.top = nn.Linear(15 + DIM, 1)

    def forward(self, numbers, bags, users):
        parts = [self.bottom(numbers), self.user(users).sum(1),
                 *(table(ids) for table, ids in zip(self.tables, bags, strict=True))]
        stacked = torch.stack(parts, 1)
        products = (stacked @ stacked.transpose(1, 2)).flatten(1)
        kept = torch.tril_indices(5, 5)
        chosen = products.reshape(-1, 5, 5)[:, kept[0], kept[1]]
        return self.top(torch.cat([parts[0], chosen], 1))[:, 0]


def batch(k):
    generator = torch.Generator().manual_seed(k)
    bags = [torch.randint(0, rows, (16, 3), generator=generator) for rows in SIZES]
    users = torch.randint(0, 30, (16, 2), generator=generator)
    numbers = torch.randn(16, 3, generator=generator)
    return numbers, bags, users, (numbers[:, 0] > 0).float()


def train(model, optimizer, steps):
    losses = []
    for k in steps:
        numbers, bags, users, labels = batch(k)
        optimizer.zero_grad()
        loss = nn.functional.binary_cross_entropy_with_logits(model(numbers, bags, users), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("make,sparse", [
    (lambda p: torch.optim.SGD(p, lr=0.2), False), (lambda p: torch.optim.SGD(p, lr=0.2), True),
    (lambda p: torch.optim.Adagrad(p, lr=0.1), True),
    (lambda p: torch.optim.Adagrad(p, lr=0.1, lr_decay=0.01), False)])
def test_training_goes_on_as_it_would(make, sparse):
    torch.manual_seed(9)
    model = Dlrm(sparse)
    optimizer = make(model.parameters())
    train(model, optimizer, range(3))
    other = copy.deepcopy(model)
    given = make(other.parameters())
    given.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    other, given = et.convert(other, given)
    assert [type(m) for m in other.tables] == [et.EmbeddingBag] * 3
    assert type(other.user) is et.Embedding
    for mine, theirs in zip(other.parameters(), model.parameters(), strict=True):
        assert torch.equal(mine, theirs)
    assert list(other.state_dict()) == list(model.state_dict())
    losses = [train(m, o, range(3, 9)) for m, o in ((model, optimizer), (other, given))]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
    assert losses[0][-1] < losses[0][0]
    for mine, theirs in zip(other.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(mine.detach(), theirs.detach(), rtol=1e-3, atol=1e-5)
    model.load_state_dict(other.state_dict())
    optimizer.load_state_dict(copy.deepcopy(given.state_dict()))
    other_losses = train(other, given, range(9, 12))
    assert train(model, optimizer, range(9, 12)) == pytest.approx(other_losses, rel=1e-4)


def test_two_lines_with_adam_train():
    torch.manual_seed(10)
    model = Dlrm(False)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    model, optimizer = et.convert(model, optimizer)
    losses = train(model, optimizer, [0] * 20)
    assert losses[-1] < 0.5 * losses[0]


def test_engines_are_opened_once(monkeypatch):
    opened = []
    monkeypatch.setattr(_group, "Engine", lambda *a, **k: opened.append(a) or Engine(*a, **k))
    model = nn.ModuleList([nn.Embedding(4, 2), nn.Embedding(6, 2)])
    optimizer = torch.optim.SGD([{"params": [model[0].weight], "momentum": 0.5},
                                 {"params": [model[1].weight], "lr": 1.0}], lr=0.5, momentum=0.9)
    model, optimizer = et.convert(model, optimizer)
    assert len(opened) == 2
    before = model[1].weight.detach().clone()
    model[1](torch.tensor([2])).sum().backward()
    optimizer.step()
    optimizer.step()
    before[2] -= 1.0 + 1.9
    torch.testing.assert_close(model[1].weight.detach(), before)


def test_only_large_tables():
    model = et.convert(Dlrm(False), tables=20)
    assert [type(m) for m in model.tables] == [et.EmbeddingBag, nn.EmbeddingBag, et.EmbeddingBag]
    model = et.convert(Dlrm(False), tables=lambda name, module: name == "tables.1")
    assert [type(m) for m in model.tables] == [nn.EmbeddingBag, et.EmbeddingBag, nn.EmbeddingBag]
    with pytest.raises(ValueError, match="no nn.Embedding or nn.EmbeddingBag that tables= chooses"):
        et.convert(nn.Linear(2, 2))


def test_what_was_shared_stays_shared():
    model = nn.ModuleDict({"a": nn.Embedding(5, 3), "b": nn.Embedding(5, 3),
                           "out": nn.Linear(3, 5, bias=False)})
    model["b"].weight = model["a"].weight
    model["out"].weight = model["a"].weight
    before = model["a"].weight.detach().clone()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    model, optimizer = et.convert(model, optimizer)
    assert model["a"] is model["b"] and model["out"].weight is model["a"].weight
    assert torch.equal(model["a"].weight, before)
    ids = torch.tensor([1, 2])
    loss = (model["a"](ids) + model["b"](ids) + model["out"].weight[ids]).sum()
    loss.backward()
    optimizer.step()
    before[1:3] -= 1.5
    torch.testing.assert_close(model["a"].weight.detach(), before)


def test_a_shared_weight_with_two_modes_is_refused():
    model = nn.ModuleDict({"a": nn.EmbeddingBag(5, 3, mode="sum"), "b": nn.EmbeddingBag(5, 3)})
    model["b"].weight = model["a"].weight
    with pytest.raises(NotImplementedError, match="b shares its weight with an embedding of other"):
        et.convert(model)
    assert type(model["a"]) is nn.EmbeddingBag


def test_an_optimizer_without_a_counterpart_leaves_the_model():
    model = Dlrm(False)
    optimizer = torch.optim.NAdam(model.parameters())
    with pytest.raises(NotImplementedError, match="NAdam has no counterpart"):
        et.convert(model, optimizer)
    assert type(model.user) is nn.Embedding


def test_a_model_that_is_an_embedding_and_subclasses():
    frozen = nn.EmbeddingBag(5, 3, mode="max").eval()
    frozen.weight.requires_grad_(False)
    made = et.convert(frozen)
    assert type(made) is et.EmbeddingBag and made.mode == "max" and not made.training
    assert not made.weight.requires_grad and torch.equal(made.weight, frozen.weight)

    class Mine(nn.Embedding):
        pass

    with pytest.raises(ValueError, match="no nn.Embedding"):
        et.convert(Mine(4, 2))


def test_updates_at_backward():
    model = Dlrm(False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = et.convert(model, optimizer, update="backward")
    before = model.user.weight.detach().clone()
    numbers, bags, users, labels = batch(1)
    model(numbers, bags, users).sum().backward()
    assert not torch.equal(model.user.weight, before)

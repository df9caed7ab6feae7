# SPDX-License-Identifier: MIT
"""torch.compile and torch.export trace modules; the program that they make trains as eager does."""
import copy
import gc
import shutil

import pytest
import torch
from torch import nn

import embeng
import embeng.torch as et
from embeng.torch import ops
from embeng.torch._group import FLAT, LENGTHS, Group, Layout

torch.set_num_threads(1)
ROWS, DIM = 13, 4
IDS = torch.tensor([1, 2, 2, 12, 0, 7])
STARTS = torch.tensor([0, 2, 2])


@pytest.fixture(autouse=True)
def forget_programs():
    """Let each test compile anew."""
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


class Model(nn.Module):
    """Bags, single rows and a layer, with one table used twice."""

    def __init__(self):
        super().__init__()
        self.bag = et.EmbeddingBag(ROWS, DIM, mode="sum")
        self.row = et.Embedding(ROWS, DIM, padding_idx=2)
        self.top = nn.Linear(DIM, 1)

    def forward(self, ids, starts, weights):
        twice = self.bag(ids, starts) + self.bag(ids, starts)
        return self.top(twice * self.row(ids[:3]) + self.bag(ids, starts, weights))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_compiled_model_trains_as_an_eager_one(backend):
    torch.manual_seed(8)
    model = Model()
    other = copy.deepcopy(model)
    compiled = torch.compile(other, backend=backend, fullgraph=True)
    optimizers = [et.optim.Adagrad(m.parameters(), lr=0.1) for m in (model, other)]
    for k in range(4):
        weights = [torch.linspace(-1, 1 + k, 6).requires_grad_() for _ in range(2)]
        for run, optimizer, given in zip((model, compiled), optimizers, weights):
            run(IDS, STARTS, given).square().sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        torch.testing.assert_close(weights[1].grad, weights[0].grad)
        for mine, eager in zip(other.parameters(), model.parameters()):
            torch.testing.assert_close(mine.detach(), eager.detach())
    other.eval()
    with torch.no_grad():
        torch.testing.assert_close(compiled(IDS, STARTS, weights[0]),
                                   model(IDS, STARTS, weights[0]))
    assert not other.bag._group.queue


def test_two_equal_backwards_are_two_gradients():
    bag = et.EmbeddingBag(ROWS, DIM, mode="sum")
    optimizer = et.optim.SGD(bag.parameters(), lr=1.0)
    before = bag.weight.detach().clone()

    @torch.compile(backend="aot_eager", fullgraph=True)
    def run(ids):
        return bag(ids) + bag(ids)

    run(torch.tensor([[4]])).sum().backward()
    optimizer.step()
    before[4] -= 2
    torch.testing.assert_close(bag.weight.detach(), before)


@pytest.mark.skipif(not shutil.which("c++"), reason="inductor needs a compiler of C++")
def test_no_gradient_is_optimized_away():
    bag = et.EmbeddingBag(ROWS, DIM, mode="sum")
    other = copy.deepcopy(bag)
    optimizers = [et.optim.SGD(m.parameters(), lr=1.0) for m in (bag, other)]
    ids = torch.arange(12).reshape(4, 3)
    compiled = torch.compile(lambda i: other(i) * other(i * 2 % ROWS), fullgraph=True)
    for run in (lambda i: bag(i) * bag(i * 2 % ROWS), compiled):
        run(ids).sum().backward()
    assert len(other._group.queue) == 2
    for optimizer in optimizers:
        optimizer.step()
    torch.testing.assert_close(other.weight.detach(), bag.weight.detach())


def test_sizes_may_change():
    bag = et.EmbeddingBag(ROWS, DIM)
    compiled = torch.compile(bag, backend="aot_eager", fullgraph=True, dynamic=True)
    for count in (3, 5, 2):
        ids = torch.arange(count * 2)
        starts = torch.arange(0, count * 2, 2)
        torch.testing.assert_close(compiled(ids, starts), bag(ids, starts))


def test_the_weights_of_a_frozen_table_train():
    bag = et.EmbeddingBag(ROWS, DIM, mode="sum")
    bag.weight.requires_grad_(False)
    compiled = torch.compile(bag, backend="aot_eager", fullgraph=True)
    weights = torch.ones(6, requires_grad=True)
    compiled(IDS, STARTS, weights).sum().backward()
    torch.testing.assert_close(weights.grad, bag.weight[IDS].sum(1))
    assert not bag._group.queue


@pytest.mark.parametrize("strict", [False, True])
def test_export(strict):
    model = Model().eval()
    weights = torch.ones(6)
    program = torch.export.export(model, (IDS, STARTS, weights), strict=strict)
    targets = [node.target for node in program.graph.nodes]
    assert torch.ops.embeng.lookup.default in targets
    torch.testing.assert_close(program.module()(IDS, STARTS, weights),
                               model(IDS, STARTS, weights))
    with pytest.raises(IndexError, match="id 13 is outside table weight"):
        program.module()(torch.tensor([1, 2, 2, 13, 0, 7]), STARTS, weights)


def test_a_program_keeps_its_tables_and_finds_no_others():
    bag = et.EmbeddingBag(ROWS, DIM)
    expected = bag(IDS, STARTS).detach()
    program = torch.export.export(bag, (IDS, STARTS)).module()
    handle = bag._group.handle
    del bag
    gc.collect()
    torch.testing.assert_close(program(IDS, STARTS).detach(), expected)
    del program
    torch._dynamo.reset()
    gc.collect()
    with pytest.raises(RuntimeError, match=f"the tables of the handle {handle} are gone"):
        torch.ops.embeng.lookup(None, [], [IDS], [STARTS], [2], handle, [1], False)
    assert et.EmbeddingBag(ROWS, DIM)._group.handle != handle


def make_group():
    """Make a group as a collection does: two tables, three features."""
    tables = [embeng.Table(name, ROWS, dim, "sum", initializer=embeng.initializers.default(seed))
              for name, dim, seed in (("a", 3, 1), ("b", 2, 2))]
    features = [embeng.Feature(name, table) for name, table in (("f", "a"), ("g", "b"), ("h", "a"))]
    group = Group(tables, features)
    numbers = [group.layout(Layout("f", LENGTHS)), group.layout(Layout("g", LENGTHS)),
               group.layout(Layout("h", FLAT))]
    return group, [group.parameter("a"), group.parameter("b")], numbers


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("joined", [False, True])
def test_many_features_in_one_call(compiled, joined):
    group, parameters, numbers = make_group()
    optimizer = et.optim.SGD(parameters, lr=1.0)
    ids = [torch.tensor([1, 2, 5]), torch.tensor([3, 3]), torch.tensor([7, 5])]
    bounds = [torch.tensor([2, 1]), torch.tensor([0, 2]), None]
    weights = [torch.tensor([1.0, 2.0, 3.0], requires_grad=True), None, None]
    rows = [p.detach().clone().requires_grad_() for p in parameters]
    given = weights[0].detach().clone().requires_grad_()
    lookup = torch.compile(ops.lookup, backend="aot_eager", fullgraph=True) if compiled \
        else ops.lookup
    outputs = lookup(group, numbers, ids, bounds, weights, joined=joined)
    expected = [
        torch.stack([(rows[0][ids[0][:2]] * given[:2, None]).sum(0), rows[0][5] * given[2]]),
        torch.stack([torch.zeros(2), 2 * rows[1][3]]), rows[0][ids[2]]]
    if joined:
        expected = [torch.cat(expected, 1)]
    for output, wanted in zip(outputs, expected, strict=True):
        torch.testing.assert_close(output, wanted.detach())
    for output in (outputs, expected):
        sum((one * (k + 1)).square().sum() for k, one in enumerate(output)).backward()
    assert len(group.queue) == 1
    optimizer.step()
    torch.testing.assert_close(weights[0].grad, given.grad)
    for parameter, row in zip(parameters, rows):
        torch.testing.assert_close(parameter.detach(), row.detach() - row.grad)


def test_features_whose_outputs_are_not_used():
    group, parameters, numbers = make_group()
    optimizer = et.optim.SGD(parameters[:1], lr=1.0)  # table b is in no optimizer
    before = [p.detach().clone() for p in parameters]
    one = torch.tensor([1])
    outputs = ops.lookup(group, numbers[:2], [one, one], [one, one], [None, None])
    outputs[0].sum().backward()
    assert list(group.queue[0].inputs) == ["f"]
    sum(o.sum() for o in ops.lookup(group, numbers[:2], [one, one], [one, one],
                                    [None, None])).backward()
    optimizer.step()
    before[0][1] -= 2
    for parameter, wanted in zip(parameters, before):
        torch.testing.assert_close(parameter.detach(), wanted)

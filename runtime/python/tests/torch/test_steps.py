# SPDX-License-Identifier: MIT
"""Any sequence of forwards, backwards and steps does to rows what torch.nn and torch.optim do."""
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import embeng.torch as et

torch.set_num_threads(1)
ROWS, DIM = 11, 3

# Torch's optimizers are lazy, as tables are, with sparse gradients, and with dense ones where they
# have no momentum and no decay. The engine has their formulas, so that rounding alone differs.
PAIRS = {
    "SGD": (lambda p: torch.optim.SGD(p, lr=0.5), lambda p: et.optim.SGD(p, lr=0.5), True),
    "Adagrad": (lambda p: torch.optim.Adagrad(p, lr=0.3, lr_decay=0.1),
                lambda p: et.optim.Adagrad(p, lr=0.3, lr_decay=0.1), True),
    "SparseAdam": (lambda p: torch.optim.SparseAdam(list(p), lr=0.1),
                   lambda p: et.optim.SparseAdam(p, lr=0.1), True),
    "dense SGD": (lambda p: torch.optim.SGD(p, lr=0.5, maximize=True),
                  lambda p: et.optim.SGD(p, lr=0.5, maximize=True), False),
    "dense Adagrad": (lambda p: torch.optim.Adagrad(p, lr=0.3, initial_accumulator_value=0.2),
                      lambda p: et.optim.Adagrad(p, lr=0.3, initial_accumulator_value=0.2), False),
}

bags = st.lists(st.lists(st.integers(0, ROWS - 1), max_size=4), max_size=5)
actions = st.lists(st.one_of(
    st.tuples(st.just("forward"), bags, st.integers(0, 9)),
    st.tuples(st.just("matrix"), st.integers(0, 4), st.integers(0, 9)),
    st.tuples(st.sampled_from(["step", "zero", "zero model", "eval", "train", "towers", "rate",
                               "no_grad", "abandon", "read grad", "twice"]))),
    min_size=4, max_size=14)


class Pair:
    """A module of torch and one of ours, to which the same is done."""

    def __init__(self, name, mode, padding):
        theirs, ours, sparse = PAIRS[name]
        sparse = sparse and mode != "max"  # for which torch has dense gradients alone
        if name == "SparseAdam" and mode == "max":
            mode = "sum"
            sparse = True
        torch.manual_seed(1)
        self.modules = [nn.EmbeddingBag(ROWS, DIM, mode=mode, sparse=sparse, padding_idx=padding),
                        et.EmbeddingBag(ROWS, DIM, mode=mode, padding_idx=padding)]
        with torch.no_grad():
            self.modules[1].weight.copy_(self.modules[0].weight)
        self.optimizers = [make(m.parameters()) for make, m in zip((theirs, ours), self.modules)]

    def inputs(self, lists):
        ids = torch.tensor([i for bag in lists for i in bag], dtype=torch.int64)
        lengths = torch.tensor([len(bag) for bag in lists], dtype=torch.int64)
        return ids, lengths.cumsum(0) - lengths

    def both(self, inputs, seed, repeat=1):
        generator = torch.Generator().manual_seed(seed)
        outputs = [m(*inputs) for m in self.modules]
        torch.testing.assert_close(outputs[1], outputs[0], rtol=1e-4, atol=1e-4)
        gradient = torch.randn(outputs[0].shape, generator=generator)
        for output in outputs:
            for k in range(repeat):
                output.backward(gradient, retain_graph=k + 1 < repeat)

    def do(self, action):
        kind = action[0]
        if kind == "forward":
            self.both(self.inputs(action[1]), action[2])
        elif kind == "matrix":
            ids = torch.arange(action[1] * 3).reshape(action[1], 3) * (action[2] + 1) % ROWS
            self.both((ids,), action[2])
        elif kind == "towers":
            one, two = (torch.tensor([[1, 2, 2]]), torch.tensor([[2, 7, 1], [0, 1, 1]]))
            for module in self.modules:
                (module(one) * module(two).tanh().sum(0)).sum().backward()
        elif kind == "no_grad":
            with torch.no_grad():
                self.modules[1](torch.tensor([[3, 4]]))
        elif kind == "abandon":
            self.modules[1](torch.tensor([[3, 4]]))
        elif kind == "twice":
            self.both((torch.tensor([[5, 6, 5]]),), 3, repeat=2)
        else:
            self.change(kind)

    def change(self, kind):
        for module, optimizer in zip(self.modules, self.optimizers):
            if kind == "step":
                optimizer.step()
            elif kind == "zero":
                optimizer.zero_grad()
            elif kind == "zero model":
                module.zero_grad()
            elif kind == "rate":
                optimizer.param_groups[0]["lr"] *= 0.9
            elif kind in ("eval", "train"):
                module.train(kind == "train")
        if kind == "read grad":
            grads = [m.weight.grad for m in self.modules]
            assert (grads[0] is None) == (grads[1] is None)
            if grads[0] is not None:
                torch.testing.assert_close(grads[1].to_dense(), grads[0].to_dense(), rtol=1e-4,
                                           atol=1e-5)

    def check(self):
        theirs, ours = (m.weight.detach() for m in self.modules)
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", PAIRS)
@settings(max_examples=40)
@given(actions, st.sampled_from(["sum", "mean", "max"]), st.sampled_from([None, 2]))
def test_any_sequence(name, todo, mode, padding):
    pair = Pair(name, mode, padding)
    for action in todo:
        pair.do(action)
        pair.check()
    pair.change("step")
    pair.check()


def test_a_step_without_zero_grad_applies_again():
    pair = Pair("SGD", "sum", None)
    pair.both((torch.tensor([[1, 2, 3]]),), 0)
    for _ in range(3):
        pair.change("step")
    pair.check()
    pair.both((torch.tensor([[1, 5]]),), 1)
    pair.change("step")
    pair.check()


def test_update_at_backward():
    torch.manual_seed(2)
    theirs, ours = nn.Embedding(ROWS, DIM, sparse=True), et.Embedding(ROWS, DIM, update="backward")
    with torch.no_grad():
        ours.weight.copy_(theirs.weight)
    reference = torch.optim.Adagrad(theirs.parameters(), lr=0.5)
    optimizer = et.optim.Adagrad(ours.parameters(), lr=0.5)
    scheduler = [torch.optim.lr_scheduler.StepLR(o, 2, 0.5) for o in (reference, optimizer)]
    for k in range(5):
        ids = torch.tensor([k, k, 2 * k, 3])
        for module in (theirs, ours):
            module(ids).square().sum().backward()
        assert not ours._group.queue and ours.weight.grad is None
        reference.step()
        torch.testing.assert_close(ours.weight.detach(), theirs.weight.detach(), rtol=1e-5,
                                   atol=1e-6)
        optimizer.step()
        torch.testing.assert_close(ours.weight.detach(), theirs.weight.detach(), rtol=1e-5,
                                   atol=1e-6)
        reference.zero_grad()
        for one in scheduler:
            one.step()
    assert optimizer.state_dict()["state"][0]["step"] == 5


def test_a_second_backward_needs_the_graph():
    ours = et.EmbeddingBag(ROWS, DIM)
    optimizer = et.optim.SGD(ours.parameters())
    loss = ours(torch.tensor([[1, 2]])).sum()
    loss.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        loss.backward()
    assert len(ours._group.queue) == 1
    optimizer.zero_grad()
    assert not ours._group.queue


def test_ids_that_change_before_backward_or_step_are_told():
    ours = et.EmbeddingBag(ROWS, DIM)
    optimizer = et.optim.SGD(ours.parameters())
    ids, starts = torch.tensor([1, 2, 3]), torch.tensor([0, 1])
    loss = ours(ids, starts).sum()
    ids[0] = 4
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
    before = ours.weight.detach().clone()
    for tensor in (ids, starts):
        ours(ids, starts).sum().backward()
        tensor += 1
        with pytest.raises(RuntimeError, match="table weight: ids, weights or gradients of a "
                                               "backward were changed in place before step"):
            optimizer.step()
        tensor -= 1
        optimizer.zero_grad()
    assert torch.equal(ours.weight, before)


def test_anomaly_detection_names_a_gradient():
    ours = et.EmbeddingBag(ROWS, DIM, mode="sum")
    et.optim.SGD(ours.parameters())
    ours.weight.requires_grad_(False)
    weights = torch.ones(1, 2, requires_grad=True)
    with torch.autograd.detect_anomaly(check_nan=True), \
            pytest.raises(RuntimeError, match="returned nan values"):
        ours(torch.tensor([[1, 2]]), per_sample_weights=weights).backward(
            torch.full((1, DIM), math.nan))


def test_training_without_an_optimizer_is_told():
    ours = et.EmbeddingBag(ROWS, DIM)
    loss = ours(torch.tensor([[1, 2]])).sum()
    with pytest.raises(RuntimeError, match="table weight got a gradient and has no optimizer"):
        loss.backward()
    optimizer = et.optim.SGD(ours.parameters())
    ours(torch.tensor([[1, 2]])).sum().backward()
    with pytest.raises(RuntimeError, match="is trained by a SGD already"):
        et.optim.Adam(ours.parameters())
    optimizer.detach()
    et.optim.Adam(ours.parameters())
    with pytest.raises(RuntimeError, match="has no optimizer"):
        ours(torch.tensor([[1, 2]])).sum().backward()  # that optimizer was dropped at once


def test_a_frozen_table_stays():
    ours = et.EmbeddingBag(ROWS, DIM)
    optimizer = et.optim.SGD(ours.parameters(), lr=1.0)
    before = ours.weight.detach().clone()
    ours.weight.requires_grad_(False)
    assert not ours(torch.tensor([[1, 2]])).requires_grad
    optimizer.step()
    assert torch.equal(ours.weight, before)


def test_gradients_may_be_changed_and_given():
    _, ours = pair = [cls(ROWS, DIM, **more) for cls, more in
                      ((nn.Embedding, {"sparse": True}), (et.Embedding, {}))]
    with torch.no_grad():
        ours.weight.copy_(pair[0].weight)
    optimizers = [torch.optim.SGD(pair[0].parameters(), 1.0), et.optim.SGD(ours.parameters(), 1.0)]
    for module in pair:
        module(torch.tensor([1, 1, 4])).square().sum().backward()
        module.weight.grad._values().mul_(0.25)
        module(torch.tensor([4, 5])).square().sum().backward()
    for optimizer in optimizers:
        optimizer.step()
    torch.testing.assert_close(ours.weight.detach(), pair[0].weight.detach())
    for module, optimizer in zip(pair, optimizers):
        module.weight.grad = torch.full((ROWS, DIM), 0.5)
        optimizer.step()
        module.weight.grad.zero_()
        optimizer.step()
        module.zero_grad(set_to_none=False)
        assert not module.weight.grad.to_dense().any()
        module.weight.grad = None
        optimizer.step()
    torch.testing.assert_close(ours.weight.detach(), pair[0].weight.detach())


def test_a_weight_that_is_tied_to_a_linear_layer():
    made = []
    for cls in (nn.Embedding, et.Embedding):
        torch.manual_seed(4)
        model = nn.Sequential(cls(ROWS, DIM), nn.Linear(DIM, ROWS, bias=False))
        with torch.no_grad():
            model[0].weight.copy_(torch.linspace(-1, 1, ROWS * DIM).reshape(ROWS, DIM))
        model[1].weight = model[0].weight
        library = torch if cls is nn.Embedding else et
        made.append((model, library.optim.SGD(model.parameters(), lr=0.1)))
    for _ in range(3):
        for model, optimizer in made:
            loss = nn.functional.cross_entropy(model(torch.tensor([1, 2, 2])),
                                               torch.tensor([2, 3, 4]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    torch.testing.assert_close(made[1][0][0].weight.detach(), made[0][0][0].weight.detach())


@pytest.mark.parametrize("how", ["grad", "inputs"])
@pytest.mark.parametrize("compiled", [False, True])
def test_gradients_of_other_tensors_alone_leave_nothing_that_waits(how, compiled):
    made = []
    for cls in (nn.EmbeddingBag, et.EmbeddingBag):
        torch.manual_seed(4)
        module = cls(ROWS, DIM, mode="sum")
        with torch.no_grad():
            module.weight.copy_(torch.linspace(-1, 1, ROWS * DIM).reshape(ROWS, DIM))
        kind = torch.optim.SGD if cls is nn.EmbeddingBag else et.optim.SGD
        optimizer = kind(module.parameters(), lr=1.0)
        run = torch.compile(module, backend="aot_eager") if compiled else module
        weights = torch.ones(2, 3, requires_grad=True)
        loss = run(torch.tensor([[1, 2, 2], [3, 0, 1]]), per_sample_weights=weights).square().sum()
        if how == "grad":
            found, = torch.autograd.grad(loss, weights)
        else:
            loss.backward(inputs=[weights])
            found = weights.grad
        optimizer.step()
        made.append((found, module.weight.detach()))
    torch.testing.assert_close(made[1], made[0])


def test_autograd_cannot_return_the_gradient_of_a_table():
    module = et.EmbeddingBag(ROWS, DIM, mode="sum")
    optimizer = et.optim.SGD(module.parameters(), lr=1.0)
    before = module.weight.detach().clone()
    loss = module(torch.tensor([[1, 2]])).sum()
    with pytest.raises(NotImplementedError, match=r"call backward\(\), and read the weight's"):
        torch.autograd.grad(loss, module.weight, allow_unused=True)
    optimizer.step()
    assert torch.equal(module.weight, before)
    module(torch.tensor([[1, 2]])).sum().backward(inputs=[module.weight])
    optimizer.step()
    assert not torch.equal(module.weight, before)


@pytest.mark.parametrize("name", ["register_hook", "register_post_accumulate_grad_hook"])
def test_hooks_of_a_weight_are_refused(name):
    module = et.Embedding(ROWS, DIM)
    with pytest.raises(NotImplementedError, match="hook with the activations"):
        getattr(module.weight, name)(lambda given: None)

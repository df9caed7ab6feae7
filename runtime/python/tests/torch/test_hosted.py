# SPDX-License-Identifier: MIT
"""Modules whose tables lie on several hosts, which are threads of this process."""
import copy
import io
import pickle

import pytest
from hosts import run_hosts
import torch
from torch import nn

import embeng
import embeng.torch as et

torch.set_num_threads(1)
REPLICAS, STEPS = 4, 3


class Model(nn.Module):
    """Bags, rows and a layer."""

    def __init__(self):
        super().__init__()
        self.bag = nn.EmbeddingBag(40, 32, mode="sum")
        self.mean = nn.EmbeddingBag(30, 8, mode="mean")
        self.row = nn.Embedding(20, 32)
        self.top = nn.Linear(8, 1)

    def forward(self, ids):
        product = self.bag(ids) * self.row(ids[:, 0] % 20)
        return self.top(self.mean(ids % 30))[:, 0] + product.sum(1)


def make_model():
    torch.manual_seed(11)
    return Model()


def batch_of(step, replica):
    random = torch.Generator().manual_seed(100 * step + replica)
    return torch.randint(0, 40, (6, 3), generator=random)


OPTIMIZERS = {"sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
              "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.1, lr_decay=0.1),
              "adam": lambda p: torch.optim.Adam(p, lr=0.01)}


def train(model, kind, group, clip=None, left_out=None):
    """Train tables alone. Return state of model and optimizer, and norms."""
    model = copy.deepcopy(model)
    model.top.requires_grad_(False)
    tables = [p for name, p in model.named_parameters() if not name.startswith("top")]
    model, optimizer = et.convert(model, OPTIMIZERS[kind](tables), group=group, replicas=REPLICAS,
                                  cores=1)
    et.distribute(model)
    norms = []
    for step in range(STEPS):
        optimizer.zero_grad()
        for replica in et.feeding(model):
            loss = model(batch_of(step, replica)).square().sum()
            with et.replica(model, replica):
                if replica != left_out:
                    loss.backward()
        if clip:
            norms.append(et.clip_grad_norm_(tables_of(model), clip))
        optimizer.step()
    states = et.gather_state_dict(model), et.gather_state_dict(optimizer)
    states = {name: t.clone() for name, t in states[0].items()}, copy.deepcopy(states[1])
    model.bag.engine.close()
    return *states, norms


def tables_of(model):
    return [p for p in model.parameters() if et.is_table(p)]


def check_equal(found, expected):
    rows, state, norms = found
    assert rows.keys() == expected[0].keys()
    for name in rows:
        assert torch.equal(rows[name], expected[0][name]), name
    assert state["state"].keys() == expected[1]["state"].keys() != set()
    for number, values in state["state"].items():
        for name, value in values.items():
            assert torch.equal(value, expected[1]["state"][number][name]), (number, name)
    assert norms == expected[2]


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("clip", [None, 0.5])
def test_the_bits_of_one_process(kind, clip):
    model = make_model()
    expected = train(model, kind, None, clip)
    for ranks in (1, 2, 4):
        for found in run_hosts(ranks, lambda group: train(model, kind, group, clip)):
            check_equal(found, expected)
    assert not clip or max(expected[2]) > clip


def test_a_replica_that_gives_nothing():
    """It has another result than all four, and that of one process with it."""
    model = make_model()
    whole, expected = train(model, "adam", None), train(model, "adam", None, left_out=3)
    for found in run_hosts(2, lambda group: train(model, "adam", group, left_out=3)):
        check_equal(found, expected)
    assert not torch.equal(whole[0]["bag.weight"], expected[0]["bag.weight"])


def open_bag(group, **options):
    bag = et.EmbeddingBag(40, 8, **{"mode": "sum", "optimizer": torch.optim.Adam, "group": group,
                                    "cores": 1, **options})
    return bag, et.optim.Adam(bag.parameters(), lr=0.1)


def test_a_step_without_gradients_counts_for_nothing():
    def act(group):
        bag, optimizer = open_bag(group)
        optimizer.step()
        assert bag.engine.step == 0
        before = torch.from_numpy(bag.engine["weight"].read())
        output = bag(torch.tensor([[1, 2]]))
        if group.rank:
            output.sum().backward()
        optimizer.step()
        assert bag.engine.step == 1
        after = torch.from_numpy(bag.engine["weight"].read())
        bag.engine.close()
        return before, after

    (before, after), other = run_hosts(2, act)
    assert torch.equal(after, other[1])
    assert (before != after).any(1).nonzero()[:, 0].tolist() == [1, 2]


def test_gradients_of_weights():
    """Each host has those of its own batch."""
    ids, rows = torch.tensor([[1, 2], [3, 1]]), torch.rand(40, 8)

    def weigh(bag, rank):
        weights = torch.full((2, 2), 0.5 + rank, requires_grad=True)
        (bag(ids + rank, per_sample_weights=weights).square()).sum().backward()
        return weights.grad

    def act(group):
        bag = et.EmbeddingBag(40, 8, mode="sum", _weight=rows, group=group, cores=1, _freeze=True)
        found = weigh(bag, group.rank)
        bag.engine.close()
        return found

    alone = et.EmbeddingBag(40, 8, mode="sum", _weight=rows, cores=1, _freeze=True)
    for rank, found in enumerate(run_hosts(2, act)):
        assert torch.equal(found, weigh(alone, rank))


def test_the_largest_numbers():
    """Gradients of mode "max" go where they go in one process."""
    rows = torch.rand(40, 8)

    def train_max(group):
        bag = et.EmbeddingBag(40, 8, mode="max", optimizer=torch.optim.SGD, _weight=rows,
                              group=group, replicas=2, cores=1)
        optimizer = et.optim.SGD(bag.parameters(), lr=0.5)
        for replica in et.feeding(bag):
            with et.replica(bag, replica):
                bag(batch_of(0, replica)).sum().backward()
        norm = et.clip_grad_norm_(bag.parameters(), 1.0)
        optimizer.step()
        found = et.gather_state_dict(bag)["weight"].clone()
        bag.engine.close()
        return found, norm

    expected = train_max(None)
    assert not torch.equal(expected[0], rows)
    for found in run_hosts(2, train_max):
        assert torch.equal(found[0], expected[0]) and found[1] == expected[1]


def test_collections():
    config = et.EmbeddingBagConfig(name="t", embedding_dim=8, num_embeddings=40,
                                   feature_names=["f", "g"])
    features = et.KeyedJaggedTensor(["f", "g"], torch.tensor([1, 2, 3, 4]),
                                    lengths=torch.tensor([1, 1, 2, 0]))

    def train_collection(group):
        torch.manual_seed(3)
        bags = et.FusedEmbeddingBagCollection([config], torch.optim.Adagrad, {"lr": 0.1},
                                              group=group, cores=1) \
            if group else et.FusedEmbeddingBagCollection([config], torch.optim.Adagrad, {"lr": 0.1},
                                                         cores=1)
        bags.load_state_dict({"embedding_bags.t.weight": rows})
        bags(features).values().square().sum().backward()
        found = et.gather_state_dict(bags)["embedding_bags.t.weight"].clone()
        bags.engine.close()
        return found

    rows = torch.rand(40, 8)
    alone = train_collection(None)
    hosted = run_hosts(2, train_collection)
    assert torch.equal(hosted[0], hosted[1])
    touched = (alone != rows).any(1).nonzero()[:, 0].tolist()
    assert touched == [1, 2, 3, 4] == (hosted[0] != rows).any(1).nonzero()[:, 0].tolist()


# -- states and refusals ---------------------------------------------------------------------------


def test_states():
    """They go from hosts to one process and back, with slots and steps."""
    model = make_model()
    rows, state, _ = train(model, "adam", None)

    def act(group):
        made = copy.deepcopy(model)
        mine, optimizer = et.convert(made, OPTIMIZERS["adam"](
            [p for n, p in made.named_parameters() if not n.startswith("top")]), group=group,
            cores=1)
        with pytest.raises(embeng.NotSupportedError, match="gather_state_dict"):
            mine.state_dict()
        with pytest.raises(embeng.NotSupportedError, match="local_state_dict"):
            optimizer.state_dict()
        mine.load_state_dict(rows)
        optimizer.load_state_dict(state)
        if group.rank:  # one host alone
            assert set(et.local_state_dict(mine)) == {"top.weight", "top.bias"}
            assert et.local_state_dict(optimizer)["state"] == {}
        again = et.gather_state_dict(mine, host=1), et.gather_state_dict(optimizer, host=1)
        if group.rank:
            check_equal((*again, []), (rows, state, []))
        else:
            assert set(again[0]) == {"top.weight", "top.bias"}
        mine.load_state_dict(et.local_state_dict(mine), strict=False)
        with pytest.raises(RuntimeError, match="size mismatch for bag.weight"):
            mine.load_state_dict({**rows, "bag.weight": torch.zeros(3, 3)})
        mine.bag.engine.close()

    run_hosts(2, act)


REFUSED = {
    "a number": (lambda bag: bag.weight + 1, "add.*engine\\['weight'\\].read"),
    "a row": (lambda bag: bag.weight[3], "getitem.*lie on the 2 hosts"),
    "an array": (lambda bag: bag.weight.numpy(), "numpy"),
    "data": (lambda bag: bag.weight.data, "data: the rows of table weight"),
    "a copy": (copy.deepcopy, "deepcopy|cannot be copied"),
    "a pickle": (pickle.dumps, "pickle"),
    "a file": (lambda bag: torch.save(bag, io.BytesIO()), "pickle"),
    "state": (lambda bag: bag.state_dict(), "gather_state_dict"),
    "another optimizer": (lambda bag: et.optim.Adagrad(bag.parameters()), "opened once"),
    "a view": (lambda bag: bag.engine["weight"].numpy(), "embeng_table_map"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name):
    """Each is a sentence, on each host alone, and nothing else ends."""
    call, text = REFUSED[name]

    def act(group):
        bag, optimizer = open_bag(group)
        optimizer.detach()
        with pytest.raises(embeng.NotSupportedError, match=text):
            call(bag)
        assert bag.weight.shape == (40, 8) and bag.weight.requires_grad
        assert "2 hosts" in repr(bag.weight) and "40, 8" in repr(bag)
        found = bag(torch.tensor([[3]]))
        bag.engine.close()
        return found

    found = run_hosts(2, act)
    assert torch.equal(found[0], found[1])


def test_gradients_that_wait_are_not_shown():
    def act(group):
        bag, optimizer = open_bag(group)
        bag(torch.tensor([[3]])).sum().backward()
        with pytest.raises(embeng.NotSupportedError, match="clip_grad_norm_"):
            bag.weight.grad  # noqa: B018
        with pytest.raises(embeng.NotSupportedError, match="norm of order 2"):
            et.clip_grad_norm_(bag.parameters(), 1.0, norm_type=1.0)
        bag.zero_grad()
        assert bag.weight.grad is None
        optimizer.step()
        assert bag.engine.step == 0
        bag.engine.close()

    run_hosts(2, act)


def test_options_that_are_refused():
    def act(group):
        with pytest.raises(embeng.InvalidError, match="give a multiple of the hosts"):
            open_bag(group, replicas=3)
        with pytest.raises(embeng.NotSupportedError, match="update is 'backward'"):
            et.convert(make_model_of(), group=group, update="backward")

    def make_model_of():
        return copy.deepcopy(model)

    model = make_model()
    run_hosts(2, act)
    with pytest.raises(embeng.OutOfRangeError, match="feeds \\[0\\]"):
        with et.replica(et.EmbeddingBag(4, 4), 1):
            pass
    with pytest.raises(embeng.InvalidError, match="has no tables"):
        et.feeding(nn.Linear(1, 1))


def test_max_norm_is_refused():
    def act(group):
        with pytest.raises(embeng.NotSupportedError, match="max_norm is 1.0"):
            open_bag(group, max_norm=1.0)

    run_hosts(2, act)


def test_one_process_refuses_a_step_whole():
    """A gradient that is not finite leaves no replica's part behind."""
    bag = et.EmbeddingBag(40, 8, mode="sum", optimizer=torch.optim.SGD, replicas=2, cores=1)
    optimizer = et.optim.SGD(bag.parameters(), lr=1.0)
    before = bag.weight.detach().clone()
    for replica, factor in enumerate((1.0, float("inf"))):
        with et.replica(bag, replica):
            (bag(torch.tensor([[replica]])).sum() * factor).backward()
    with pytest.raises(embeng.InvalidError, match="replica 1.*not finite"):
        optimizer.step()
    assert torch.equal(bag.weight.detach(), before)
    optimizer.zero_grad()
    for replica in et.feeding(bag):
        with et.replica(bag, replica):
            bag(torch.tensor([[replica]])).sum().backward()
    optimizer.step()
    assert torch.equal(bag.weight.detach()[:2], before[:2] - 1)

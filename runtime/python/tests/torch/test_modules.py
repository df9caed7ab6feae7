# SPDX-License-Identifier: MIT
"""EmbeddingBag and Embedding beside torch.nn: values, gradients, rows, copies, refusals."""
import copy
import gc
import inspect
import io
import pickle
import weakref

import numpy
import pytest
import torch
from torch import nn
from torch.nn.utils import prune

import embeng
import embeng.torch as et

torch.set_num_threads(1)
SEED = 20
ROWS, DIM = 23, 5


def make_pair(cls=nn.EmbeddingBag, **settings):
    """Make torch's module and ours with the same rows, and optimizers of a rate of 1."""
    torch.manual_seed(SEED)
    theirs = cls(ROWS, DIM, **settings)
    ours = getattr(et, cls.__name__)(ROWS, DIM, **settings)
    with torch.no_grad():
        ours.weight.copy_(theirs.weight)
    optimizers = (torch.optim.SGD(theirs.parameters(), lr=1.0),
                  et.optim.SGD(ours.parameters(), lr=1.0))
    return theirs, ours, optimizers


def check_step(theirs, ours, optimizers, *inputs, **more):
    """Go forward, backward and one step with both; compare outputs and rows."""
    outputs = [module(*inputs, **more) for module in (theirs, ours)]
    torch.testing.assert_close(outputs[1], outputs[0], rtol=1e-5, atol=1e-6)
    gradient = torch.randn(outputs[0].shape, generator=torch.Generator().manual_seed(SEED))
    for output, optimizer in zip(outputs, optimizers):
        output.backward(gradient)
        optimizer.step()
        optimizer.zero_grad()
    torch.testing.assert_close(ours.weight.detach(), theirs.weight.detach(), rtol=1e-5, atol=2e-6)


IDS = torch.tensor([1, 2, 2, 22, 0, 7, 7, 7, 3])
STARTS = torch.tensor([0, 2, 2, 6])


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("types", [(torch.int64, torch.int64), (torch.int32, torch.int32)])
def test_bags_of_offsets(mode, types):
    pair = make_pair(mode=mode)
    check_step(*pair, IDS.to(types[0]), STARTS.to(types[1]))


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_with_the_last_offset(mode):
    pair = make_pair(mode=mode, include_last_offset=True)
    check_step(*pair, IDS, torch.tensor([0, 2, 2, 6, 9]))


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_a_matrix_of_bags(mode):
    pair = make_pair(mode=mode)
    check_step(*pair, IDS.reshape(3, 3))


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_padding_is_left_out_of_bags(mode):
    pair = make_pair(mode=mode, padding_idx=7)
    assert not pair[1].weight[7].any()
    check_step(*pair, IDS, STARTS)
    check_step(*pair, torch.full((2, 3), 7))


def test_padding_from_the_end():
    assert et.EmbeddingBag(ROWS, DIM, padding_idx=-1).padding_idx == ROWS - 1
    with pytest.raises(ValueError, match="padding_idx is 23; the table has the rows 0 to 22"):
        et.Embedding(ROWS, DIM, padding_idx=ROWS)


def test_padding_of_an_embedding_is_looked_up_and_not_trained():
    theirs, ours, optimizers = make_pair(nn.Embedding, padding_idx=7)
    with torch.no_grad():
        theirs.weight[7] = ours.weight[7] = 3.0
    check_step(theirs, ours, optimizers, IDS)
    assert torch.equal(ours.weight[7], torch.full((DIM,), 3.0))


@pytest.mark.parametrize("shape", [(9,), (3, 3), (1, 3, 3), ()])
def test_an_embedding_keeps_the_shape_of_ids(shape):
    ids = IDS.reshape(shape) if shape else torch.tensor(4)
    check_step(*make_pair(nn.Embedding), ids)


def test_ids_that_do_not_follow_each_other():
    check_step(*make_pair(nn.Embedding), torch.arange(20).reshape(4, 5).t()[1:3])


def test_empty_inputs():
    none = torch.empty(0, dtype=torch.int64)
    for mode in ("sum", "mean", "max"):
        ours = et.EmbeddingBag(ROWS, DIM, mode=mode)
        assert torch.equal(ours(none, torch.zeros(3, dtype=torch.int64)), torch.zeros(3, DIM))
        assert ours(none, none).shape == (0, DIM)
        assert torch.equal(ours(none.reshape(2, 0)), torch.zeros(2, DIM))
        assert ours(none.reshape(0, 4)).shape == (0, DIM)
    assert et.Embedding(ROWS, DIM)(none.reshape(0, 3)).shape == (0, 3, DIM)


def test_an_empty_batch_trains_nothing():
    _, ours, (_, optimizer) = make_pair()
    before = ours.weight.detach().clone()
    none = torch.empty(0, dtype=torch.int64)
    ours(none, torch.zeros(3, dtype=torch.int64)).sum().backward()
    optimizer.step()
    assert torch.equal(ours.weight, before)


def test_weights_of_a_sum():
    theirs, ours, optimizers = make_pair(mode="sum")
    given = [torch.linspace(-1, 2, 9).requires_grad_() for _ in range(2)]
    outputs = [m(IDS, STARTS, w) for m, w in zip((theirs, ours), given)]
    torch.testing.assert_close(outputs[1], outputs[0])
    gradient = torch.arange(4.0 * DIM).reshape(4, DIM)
    for output, optimizer in zip(outputs, optimizers):
        output.backward(gradient)
        optimizer.step()
    torch.testing.assert_close(given[1].grad, given[0].grad, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(ours.weight.detach(), theirs.weight.detach(), rtol=1e-5, atol=1e-5)


def test_weights_of_a_matrix_train_alone():
    theirs, ours, _ = make_pair(mode="sum")
    theirs.weight.requires_grad_(False)
    ours.weight.requires_grad_(False)
    given = [torch.linspace(-1, 2, 9).reshape(3, 3).requires_grad_() for _ in range(2)]
    for module, weights in zip((theirs, ours), given):
        module(IDS.reshape(3, 3), per_sample_weights=weights).sum().backward()
    torch.testing.assert_close(given[1].grad, given[0].grad)
    assert ours.weight.grad is None


def test_a_weighted_mean_divides_by_the_sum_of_weights():
    ours = et.EmbeddingBag(ROWS, DIM, mode="mean")
    weights = torch.tensor([1.0, 3.0, 0.5, 2.0]).requires_grad_()
    ids = torch.tensor([1, 2, 5, 6])
    output = ours(ids, torch.tensor([0, 2]), weights)
    rows = ours.weight.detach()[ids]
    given = weights.detach().clone().requires_grad_()
    expected = torch.stack([(rows[k:k + 2] * given[k:k + 2, None]).sum(0) / given[k:k + 2].sum()
                            for k in (0, 2)])
    torch.testing.assert_close(output, expected)
    ours.weight.requires_grad_(False)
    ours(ids, torch.tensor([0, 2]), weights).square().sum().backward()
    expected.square().sum().backward()
    torch.testing.assert_close(weights.grad, given.grad)


def test_max_norm_shortens_rows_before_their_lookup():
    for cls, inputs in ((nn.EmbeddingBag, (IDS, STARTS)), (nn.Embedding, (IDS,))):
        for kind in (2.0, 1.0):
            theirs, ours, optimizers = make_pair(cls, max_norm=0.7, norm_type=kind)
            before = ours.weight.detach().clone()
            for _ in range(3):
                check_step(theirs, ours, optimizers, *inputs)
            assert torch.equal(ours.weight[20], before[20])  # no id asked for this row


def test_an_id_that_is_wrong_does_not_shorten_rows():
    ours = et.Embedding(ROWS, DIM, max_norm=0.01)
    before = ours.weight.detach().clone()
    with pytest.raises(IndexError, match="id 23 is outside table weight"):
        ours(torch.tensor([1, 23]))
    assert torch.equal(ours.weight, before)


def test_gradients_by_frequency():
    check_step(*make_pair(nn.Embedding, scale_grad_by_freq=True), IDS)
    # Torch 2.13 divides by the counts of other rows where bags are concerned: a formula is the
    # oracle.
    ours = et.EmbeddingBag(ROWS, DIM, mode="mean", scale_grad_by_freq=True)
    optimizer = et.optim.SGD(ours.parameters(), lr=1.0)
    expected = ours.weight.detach().clone()
    gradient = torch.arange(4.0 * DIM).reshape(4, DIM)
    bags, sizes = torch.tensor([0, 0, 2, 2, 2, 2, 3, 3, 3]), torch.tensor([2, 1, 4, 3])
    counts = torch.bincount(IDS, minlength=ROWS)[IDS]
    expected.index_add_(0, IDS, -gradient[bags] / (sizes[bags] * counts)[:, None])
    ours(IDS, STARTS).backward(gradient)
    optimizer.step()
    torch.testing.assert_close(ours.weight.detach(), expected, rtol=1e-5, atol=1e-5)


# -- rows


def test_rows_are_those_of_torch_after_the_same_seed():
    for cls in (nn.Embedding, nn.EmbeddingBag):
        made = []
        for module in (cls, getattr(et, cls.__name__)):
            torch.manual_seed(3)
            made.append(module(ROWS, DIM, padding_idx=4))
        assert torch.equal(made[0].weight, made[1].weight)


def test_an_initializer_of_the_engine():
    given = {"initializer": embeng.initializers.uniform(2.0, 3.0, seed=5)}
    one, two = et.EmbeddingBag(ROWS, DIM, **given), et.Embedding(ROWS, DIM, **given)
    assert one.weight.min() >= 2 and one.weight.max() < 3 and one.weight.std() > 0.1
    assert torch.equal(one.weight, two.weight)


def test_weight_is_the_memory_of_the_engine():
    ours = et.Embedding(ROWS, DIM)
    nn.init.constant_(ours.weight, 2.0)
    assert torch.equal(ours(torch.tensor([3])), torch.full((1, DIM), 2.0))
    ours.weight.data[3] = 5.0
    assert torch.equal(ours(torch.tensor([3])), torch.full((1, DIM), 5.0))
    ours.weight.data = torch.arange(float(ROWS * DIM)).reshape(ROWS, DIM)
    assert torch.equal(ours(torch.tensor([1])), torch.arange(5.0, 10.0)[None])
    ours.engine["weight"][1] = 9.0
    assert torch.equal(ours.weight[1], torch.full((DIM,), 9.0))
    ours.weight = nn.Parameter(torch.ones(ROWS, DIM))
    assert torch.equal(ours(torch.tensor([1])), torch.ones(1, DIM))
    assert isinstance(ours.weight, et.TableParameter)
    with pytest.raises(ValueError, match=r"table weight has the shape \(23, 5\)"):
        ours.weight.data = torch.zeros(3, DIM)


def test_modules_share_a_table():
    one, two = et.EmbeddingBag(ROWS, DIM, mode="sum"), et.EmbeddingBag(ROWS, DIM, mode="sum")
    row, mean = et.Embedding(ROWS, DIM), et.EmbeddingBag(ROWS, DIM)
    two.weight = row.weight = one.weight
    assert torch.equal(two(IDS, STARTS), one(IDS, STARTS))
    assert torch.equal(row(IDS), one.weight[IDS])
    optimizer = et.optim.SGD([one.weight], lr=1.0)
    before = one.weight.detach().clone()
    (one(IDS[None]).sum() + two(IDS[None]).sum() + row(torch.tensor(2)).sum()).backward()
    optimizer.step()
    before.index_add_(0, IDS, torch.full((9, DIM), -2.0))
    before[2] -= 1
    torch.testing.assert_close(row.weight.detach(), before)
    with pytest.raises(NotImplementedError, match="has the mode 'sum', this module 'mean'"):
        mean.weight = one.weight
    with pytest.raises(ValueError, match=r"has the shape \(2, 5\)"):
        row.weight = et.Embedding(2, DIM).weight


def test_engines_go_with_their_modules():
    model = et.EmbeddingBag(ROWS, DIM)
    optimizer = et.optim.Adam(model.parameters())
    model(IDS, STARTS).sum().backward()
    optimizer.step()
    rows = model.weight.detach()
    group, engine = weakref.ref(model._group), weakref.ref(model.engine)
    gc.disable()
    try:
        del model, optimizer
        assert group() is None and engine() is not None  # the rows are the engine's memory
        assert rows.isfinite().all()
        del rows
        assert engine() is None
    finally:
        gc.enable()


def test_weight_stays_itself_when_an_optimizer_comes():
    ours = et.Embedding(ROWS, DIM)
    weight, before = ours.weight, ours.weight.detach().clone()
    optimizer = et.optim.Adam(ours.parameters(), lr=0.1)
    assert ours.weight is weight and torch.equal(weight, before)
    ours(torch.tensor([2])).sum().backward()
    optimizer.step()
    assert not torch.equal(weight[2], before[2]) and torch.equal(weight[3], before[3])
    ours.engine["weight"][3] = 1.5
    assert torch.equal(weight[3], torch.full((DIM,), 1.5))


def test_from_pretrained():
    rows = torch.randn(7, 3, generator=torch.Generator().manual_seed(SEED))
    for cls in (et.Embedding, et.EmbeddingBag):
        frozen = cls.from_pretrained(rows)
        assert torch.equal(frozen.weight, rows) and not frozen.weight.requires_grad
        assert not frozen(torch.zeros(1, 1, dtype=torch.int64)).requires_grad
        assert cls.from_pretrained(rows, freeze=False).weight.requires_grad
    bag = et.EmbeddingBag.from_pretrained(rows, mode="max", padding_idx=2, include_last_offset=True)
    assert bag.mode == "max" and bag.padding_idx == 2 and bag.include_last_offset
    assert torch.equal(bag.weight, rows)  # torch leaves the padding row as it is given, too


def test_state_dicts_go_both_ways():
    theirs, ours, _ = make_pair()
    assert list(ours.state_dict()) == list(theirs.state_dict()) == ["weight"]
    with torch.no_grad():
        theirs.weight.add_(1)
    memory = ours.weight.data_ptr()
    ours.load_state_dict(theirs.state_dict())
    assert torch.equal(ours.weight, theirs.weight) and ours.weight.data_ptr() == memory
    assert torch.equal(ours(IDS, STARTS), theirs(IDS, STARTS))
    ours.load_state_dict({"weight": torch.ones(ROWS, DIM)}, assign=True)
    assert torch.equal(ours(IDS[None]), torch.ones(1, DIM))
    theirs.load_state_dict(ours.state_dict())
    assert torch.equal(theirs.weight, torch.ones(ROWS, DIM))
    with pytest.raises(RuntimeError, match="size mismatch for weight"):
        ours.load_state_dict({"weight": torch.ones(2, DIM)})
    with pytest.raises(RuntimeError, match="Missing key"):
        ours.load_state_dict({})


# -- copies


def copies():
    def by_torch(module):
        file = io.BytesIO()
        torch.save(module, file)
        file.seek(0)
        return torch.load(file, weights_only=False)

    return [copy.deepcopy, lambda module: pickle.loads(pickle.dumps(module)), by_torch]


@pytest.mark.parametrize("how", range(3))
def test_copies_have_rows_of_their_own(how):
    model = nn.Sequential(et.Embedding(ROWS, DIM, padding_idx=2), nn.Linear(DIM, 2))
    before = model[0].weight.detach().clone()
    other = copies()[how](model)
    assert torch.equal(other[0].weight, before) and other[0].padding_idx == 2
    assert torch.equal(other(IDS), model(IDS))
    with torch.no_grad():
        other[0].weight.zero_()
    assert torch.equal(model[0].weight, before)
    assert not other[0](IDS).any()


@pytest.mark.parametrize("how", range(3))
def test_a_model_and_its_optimizer_are_copied_together(how):
    model = et.EmbeddingBag(ROWS, DIM)
    optimizer = et.optim.Adam(model.parameters(), lr=0.1)

    def step(model, optimizer, ids):
        model(ids, STARTS).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    step(model, optimizer, IDS)
    other, copied = copies()[how]((model, optimizer))
    assert copied.param_groups[0]["params"][0] is other.weight
    assert torch.equal(other.weight, model.weight)
    step(model, optimizer, IDS)
    assert not torch.equal(other.weight, model.weight)
    step(other, copied, IDS)
    assert torch.equal(other.weight, model.weight)
    for name in ("exp_avg", "exp_avg_sq"):
        assert torch.equal(copied.state[other.weight][name], optimizer.state[model.weight][name])


def test_state_that_is_saved_is_loaded_without_pickles():
    model = et.EmbeddingBag(ROWS, DIM)
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    assert torch.equal(torch.load(file, weights_only=True)["weight"], model.weight)


# -- what torch does to all modules


def test_moves_leave_the_table_and_change_activations():
    model = nn.Sequential(et.EmbeddingBag(ROWS, DIM), nn.Linear(DIM, 2))
    memory, before = model[0].weight.data_ptr(), model[0](IDS, STARTS)
    model.to(torch.bfloat16)
    assert model[0].weight.dtype == torch.float32 and model[0].weight.data_ptr() == memory
    assert torch.equal(model[0](IDS, STARTS), before.bfloat16())
    assert model(IDS.reshape(3, 3)).dtype == torch.bfloat16
    model.float().to("cpu")
    assert torch.equal(model[0](IDS, STARTS), before)
    with pytest.raises(NotImplementedError, match="cannot be shared between processes"):
        model.share_memory()


def test_activations_for_another_device_are_pinned_and_moved(monkeypatch):
    # A device without memory stands in for a GPU, and a clone for pinned memory.
    pinned = []

    def pin(tensor):
        pinned.append(tensor)
        return tensor.clone()

    monkeypatch.setattr(torch.Tensor, "pin_memory", pin)
    ours = et.EmbeddingBag(ROWS, DIM)
    ours._place, ours._plain = torch.device("meta"), False
    output = ours(IDS, STARTS)
    assert output.is_meta and output.shape == (4, DIM) and output.requires_grad
    assert len(pinned) == 1 and not pinned[0].requires_grad
    assert ours.weight.device.type == "cpu"


def test_gradients_pass_the_change_of_dtype():
    ours = et.Embedding(ROWS, DIM).double()
    optimizer = et.optim.SGD(ours.parameters(), lr=1.0)
    before = ours.weight.detach().clone()
    output = ours(torch.tensor([4]))
    assert output.dtype == torch.float64
    output.sum().backward()
    optimizer.step()
    torch.testing.assert_close(ours.weight[4].detach(), before[4] - 1)


@pytest.mark.parametrize("cls", [nn.Embedding, nn.EmbeddingBag])
def test_signatures_are_those_of_torch(cls):
    ours = getattr(et, cls.__name__)
    for name in ("__init__", "from_pretrained", "forward"):
        wanted = inspect.signature(getattr(cls, name)).parameters
        got = list(inspect.signature(getattr(ours, name)).parameters.items())
        for (known, theirs), (named, mine) in zip(wanted.items(), got):
            assert (known, theirs.default, theirs.kind) == (named, mine.default, mine.kind)


@pytest.mark.parametrize("settings", [{}, {"padding_idx": 3, "max_norm": 2.0, "norm_type": 1.0},
                                      {"scale_grad_by_freq": True}])
def test_descriptions_are_those_of_torch(settings):
    for cls in (nn.Embedding, nn.EmbeddingBag):
        assert repr(getattr(et, cls.__name__)(4, 2, **settings)) == repr(cls(4, 2, **settings))


def test_what_is_refused_is_named():
    for arguments, sentence in [
            ({"dtype": torch.float64}, "dtype is torch.float64; tables are torch.float32"),
            ({"device": "meta"}, "device is meta"),
            ({"mode": "sqrtn"}, "mode is 'sqrtn'; it is \"sum\", \"mean\" or \"max\""),
            ({"update": "later"}, "update is 'later'"),
            ({"_weight": torch.zeros(3, 3)}, r"_weight has the shape \(3, 3\)"),
            ({"optimizer": torch.optim.Adamax}, "Adamax has no counterpart"),
            ({"mode": "max", "scale_grad_by_freq": True}, "goes without scale_grad_by_freq")]:
        with pytest.raises((ValueError, NotImplementedError), match=sentence):
            et.EmbeddingBag(ROWS, DIM, **arguments)
    with pytest.raises(ValueError, match=r"the table has the shape \(0, 5\)"):
        et.Embedding(0, DIM)
    bag = et.EmbeddingBag(ROWS, DIM, mode="max")
    for inputs, sentence in [((IDS,), "need offsets"), ((IDS[None], STARTS), "bags already"),
                             ((IDS[None, None],), "input has 3 dimensions"),
                             ((IDS, STARTS, torch.ones(9)), "go with mode"),
                             ((IDS, STARTS, torch.ones(8)), "per_sample_weights have the shape")]:
        with pytest.raises((ValueError, NotImplementedError), match=sentence):
            bag(*inputs)


@pytest.mark.parametrize("cls", [et.EmbeddingBag, et.Embedding])
def test_other_tensors_in_place_of_the_table_are_refused(cls):
    module = cls(ROWS, DIM)
    ids = IDS[None]
    wanted = module(ids)
    same = torch.func.functional_call(module, dict(module.named_parameters()), (ids,))
    assert torch.equal(same, wanted)
    refused = pytest.raises(NotImplementedError, match="weight is another tensor than the rows")
    for other in (torch.zeros(ROWS, DIM), cls(ROWS, DIM).weight):
        with refused:
            torch.func.functional_call(module, {"weight": other}, (ids,))
    prune.l1_unstructured(module, "weight", 0.5)
    with refused:
        module(ids)


@pytest.mark.parametrize("ids", [[5, 23], [-1, 2]])
def test_an_id_outside_is_an_index_error_before_anything_moves(ids):
    _, ours, (_, optimizer) = make_pair()
    ours(IDS, STARTS).sum().backward()
    waiting = len(ours._group.queue)
    with pytest.raises(IndexError, match=f"id {max(ids, key=abs) if 23 in ids else -1} is outside "
                                         "table weight, which has rows 0 to 22"):
        ours(torch.tensor([ids]))
    assert len(ours._group.queue) == waiting == 1
    with pytest.raises((ValueError, IndexError)):
        ours(IDS, torch.tensor([0, 5, 3]))
    optimizer.zero_grad()


def test_second_derivatives_are_refused():
    ours = et.EmbeddingBag(ROWS, DIM)
    et.optim.SGD(ours.parameters())
    optimizer = et.optim.SGD(ours.parameters())
    loss = ours(IDS, STARTS).square().sum()
    with pytest.raises(NotImplementedError, match="no second derivatives"):
        loss.backward(create_graph=True)
    del optimizer


def test_an_engine_of_the_program():
    adagrad = embeng.optimizers.adagrad_epsilon(0.1)
    with embeng.Engine([embeng.Table("known", 4, 2)]) as engine:
        one = et.EmbeddingBag(ROWS, DIM, mode="sum", engine=engine, name="one", optimizer=adagrad,
                              update="backward")
        two = et.Embedding(9, 3, engine=engine, name="two")
        assert [t.name for t in engine.tables] == ["known", "one", "two"]
        before = one.weight.detach().clone()
        one(torch.tensor([[1, 1], [2, 3]])).sum().backward()
        expected = before.clone()
        expected[1:4] -= 0.1
        torch.testing.assert_close(one.weight.detach(), expected)
        assert torch.equal(two(torch.tensor(3)), two.weight[3])
        with pytest.raises(NotImplementedError, match="in an engine that the program opened"):
            et.optim.Adam(two.parameters())
        del one, two


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_other_defaults_of_torch_change_nothing(mode):
    torch.manual_seed(SEED)
    wanted = nn.EmbeddingBag(ROWS, DIM, mode=mode)
    reference = torch.optim.SGD(wanted.parameters(), lr=1.0)
    gradient = torch.ones(4, DIM)
    wanted(IDS, STARTS).backward(gradient)
    reference.step()
    try:
        torch.set_default_device("meta")  # on which nothing can be computed
        torch.set_default_dtype(torch.float64)
        torch.manual_seed(SEED)
        ours = et.EmbeddingBag(ROWS, DIM, mode=mode)
        optimizer = et.optim.SGD(ours.parameters(), lr=1.0)
        ours(IDS, STARTS).backward(gradient)
        assert ours.weight.grad.dtype == torch.float32 and ours.weight.grad.is_cpu
        et.clip_grad_norm_(ours.parameters(), 1e9)
        optimizer.step()
    finally:
        torch.set_default_device(None)
        torch.set_default_dtype(torch.float32)
    torch.testing.assert_close(ours.weight.detach(), wanted.weight.detach())


def test_numpy_sees_the_same_rows():
    ours = et.Embedding(ROWS, DIM)
    assert numpy.array_equal(ours.engine["weight"].numpy(), ours.weight.detach().numpy())
    assert numpy.array_equal(ours.engine.lookup({"weight": [4, 5]})["weight"],
                             ours(torch.tensor([4, 5])).detach().numpy())

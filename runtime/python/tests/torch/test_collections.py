# SPDX-License-Identifier: MIT
"""Collections against torch.nn.EmbeddingBag and torch.nn.Embedding, a module for each feature."""
import copy
import math
import threading

import pytest
from hypothesis import given, strategies as st

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

import embeng  # noqa: E402
from embeng.torch import (  # noqa: E402
    EmbeddingBagCollection, EmbeddingCollection, FusedEmbeddingBagCollection, KeyedJaggedTensor,
    KeyedTensor, clip_grad_norm_, configs, distribute, optim)

from collection_peers import (  # noqa: E402
    BAG, BAG_NAMES, ROW, ROWS, Member, Peer, assert_rows_equal, bag_tables, batches, copies_of,
    every_row, row_tables, thorough)


# -- pooled forwards ---------------------------------------------------------------------------


@thorough
@given(batches(weighted=False, varies=False))
def test_pooled_forward(keyed):
    collection = EmbeddingBagCollection(bag_tables(), cores=1)
    found = collection(keyed)
    assert isinstance(found, KeyedTensor)
    assert found.keys() == BAG_NAMES == collection.embedding_names
    assert found.length_per_key() == [3, 3, 5, 1, 1]
    assert found.values().shape == (keyed.stride(), 13)
    for name, expected in zip(BAG_NAMES, Peer(collection)(keyed), strict=True):
        torch.testing.assert_close(found[name], expected)


@thorough
@given(batches(weighted=True, varies=False))
def test_weighted_forward_and_gradient_of_weights(keyed):
    collection = EmbeddingBagCollection(bag_tables(), is_weighted=True, cores=1)
    optimizer = optim.SGD(collection.parameters(), lr=0.1)
    weights = keyed.weights().clone().requires_grad_()
    other = keyed.weights().clone().requires_grad_()
    found = collection(KeyedJaggedTensor(keyed.keys(), keyed.values(), weights, keyed.lengths()))
    expected = torch.cat(Peer(collection)(keyed, other), 1)
    torch.testing.assert_close(found.values(), expected)
    slope = torch.arange(1, 1 + found.values().numel(), dtype=torch.float32) / 7
    (found.values() * slope.reshape(found.values().shape)).sum().backward()
    (expected * slope.reshape(expected.shape)).sum().backward()
    torch.testing.assert_close(weights.grad, other.grad, rtol=1e-4, atol=1e-5)
    optimizer.zero_grad()


@thorough
@given(batches(weighted=False, inverse=True), st.data())
def test_variable_batch_is_spread_over_the_whole_one(keyed, data):
    collection = EmbeddingBagCollection(bag_tables(), cores=1)
    peer = Peer(collection)
    optimizer = optim.SGD(collection.parameters(), lr=0.5)
    found = collection(keyed).values()
    expected = torch.cat(peer(keyed), 1)
    assert found.shape == (keyed.stride(), 13)
    torch.testing.assert_close(found, expected)
    (found * found).sum().backward()
    (expected * expected).sum().backward()
    optimizer.step()
    torch.optim.SGD(peer.parameters(), lr=0.5).step()
    assert_rows_equal(collection, peer, rtol=1e-5, atol=1e-6)


def test_variable_batch_needs_inverse_indices_to_be_pooled():
    collection = EmbeddingBagCollection([BAG(ROWS, 2, "t", feature_names=["a", "b"])])
    keyed = KeyedJaggedTensor(["a", "b"], torch.tensor([1, 2, 3]), None, torch.tensor([1, 1, 1]),
                              stride_per_key_per_rank=[[1], [2]])
    with pytest.raises(ValueError, match=r"keys have \[1, 2\] samples, and there are no inverse"):
        collection(keyed)
    lacking = KeyedJaggedTensor(["a", "b"], torch.tensor([1, 2, 3]), None, torch.tensor([1, 1, 1]),
                                stride_per_key_per_rank=[[1], [2]],
                                inverse_indices=(["a"], torch.tensor([[0, 0]])))
    with pytest.raises(KeyError, match="their inverse indices lack 'b'; they have a"):
        collection(lacking)
    even = KeyedJaggedTensor(["a", "b"], torch.tensor([1, 2]), None, torch.tensor([1, 1]),
                             stride_per_key_per_rank=[[1], [1]])
    weight = collection.embedding_bags["t"].weight
    assert torch.equal(collection(even).values()[0], torch.cat([weight[1], weight[2]]).detach())


# -- training ----------------------------------------------------------------------------------


@thorough
@given(st.lists(batches(weighted=False, varies=False), min_size=1, max_size=4),
       st.lists(st.sampled_from(["step", "zero", "eval", "nothing"]), min_size=4, max_size=4))
def test_any_sequence_of_backwards_and_steps(keyeds, acts):
    collection = EmbeddingBagCollection(bag_tables(), cores=1)
    peer = Peer(collection)
    ours = optim.SGD(collection.parameters(), lr=0.25)
    theirs = torch.optim.SGD(peer.parameters(), lr=0.25)
    for keyed, act in zip(keyeds, acts):
        if act == "eval":
            with torch.no_grad():
                torch.testing.assert_close(collection(keyed).values(),
                                           torch.cat(peer(keyed), 1))
            continue
        (collection(keyed).values() ** 2).sum().backward()
        (torch.cat(peer(keyed), 1) ** 2).sum().backward()
        for optimizer in (ours, theirs):
            if act == "step":
                optimizer.step()
            if act in ("step", "zero"):
                optimizer.zero_grad()
    ours.step()
    theirs.step()
    assert_rows_equal(collection, peer, rtol=1e-4, atol=1e-5)


def test_a_frozen_table_stays():
    collection = EmbeddingBagCollection(bag_tables(), cores=1)
    peer = Peer(collection)
    for tables in (collection.embedding_bags, peer.tables):
        tables["t2"].weight.requires_grad_(False)
    ours, theirs = optim.SGD(collection.parameters(), lr=0.5), torch.optim.SGD(
        [p for p in peer.parameters() if p.requires_grad], lr=0.5)
    keyed = every_row()
    collection(keyed).values().square().sum().backward()
    torch.cat(peer(keyed), 1).square().sum().backward()
    before = collection.embedding_bags["t2"].weight.detach().clone()
    ours.step()
    theirs.step()
    assert torch.equal(collection.embedding_bags["t2"].weight.detach(), before)
    assert_rows_equal(collection, peer, rtol=1e-5, atol=1e-6)
    collection.requires_grad_(False)
    assert not collection(keyed).values().requires_grad


def test_gradients_that_wait_can_be_read():
    collection = EmbeddingBagCollection(bag_tables(), cores=1)
    peer = Peer(collection)
    optimizer = optim.SGD(collection.parameters(), lr=0.5)
    keyed = every_row()
    for _ in range(2):
        collection(keyed).values().square().sum().backward()
        torch.cat(peer(keyed), 1).square().sum().backward()
    for name, holder in collection.embedding_bags.items():
        torch.testing.assert_close(holder.weight.grad.to_dense(), peer.tables[name].weight.grad,
                                   rtol=1e-4, atol=1e-5)
    optimizer.step()
    torch.optim.SGD(peer.parameters(), lr=0.5).step()
    assert_rows_equal(collection, peer, rtol=1e-4, atol=1e-5)


def test_ids_may_not_change_before_their_gradient():
    collection = EmbeddingBagCollection(bag_tables(), cores=1)
    optimizer = optim.SGD(collection.parameters(), lr=0.5)
    keyed = every_row()
    output = collection(keyed).values()
    keyed.values()[0] = 5
    with pytest.raises(RuntimeError, match="ids or lengths were changed in place between"):
        output.sum().backward()
    collection(keyed).values().sum().backward()
    keyed.values()[0] = 4
    with pytest.raises(RuntimeError, match="changed in place before step"):
        optimizer.step()


@pytest.mark.filterwarnings("ignore:Using backward")
def test_no_second_derivatives():
    collection = FusedEmbeddingBagCollection(bag_tables(), torch.optim.SGD, {"lr": 0.5})
    output = collection(every_row()).values()
    with pytest.raises(embeng.NotSupportedError, match="no second derivatives"):
        output.square().sum().backward(create_graph=True)


def test_a_backward_for_some_tensors_trains_their_tables_alone():
    collection = EmbeddingBagCollection(bag_tables(), cores=1)
    optimizer = optim.SGD(collection.parameters(), lr=0.5)
    parameters = list(collection.parameters())
    keyed = every_row()
    weights = torch.ones(len(keyed.values()), requires_grad=True)
    weighted = EmbeddingBagCollection(bag_tables(), is_weighted=True, cores=1)
    optim.SGD(weighted.parameters(), lr=0.5)
    given = KeyedJaggedTensor(keyed.keys(), keyed.values(), weights, keyed.lengths())
    torch.autograd.grad(weighted(given).values().sum(), weights)
    assert all(parameter.grad is None for parameter in weighted.parameters())
    for chosen in (parameters, parameters[1:]):
        before = [parameter.detach().clone() for parameter in parameters]
        collection(keyed).values().sum().backward(inputs=chosen)
        optimizer.step()
        optimizer.zero_grad()
        for parameter, old in zip(parameters, before):
            assert torch.equal(parameter, old) == (not any(parameter is one for one in chosen))


# -- rows of ids -------------------------------------------------------------------------------


@thorough
@given(batches(weighted=False))
def test_rows_forward_and_training(keyed):
    collection = EmbeddingCollection(row_tables(), need_indices=True, cores=1)
    peer = Peer(collection)
    ours = optim.SGD(collection.parameters(), lr=0.5)
    theirs = torch.optim.SGD(peer.parameters(), lr=0.5)
    found = collection(keyed)
    where = {"f1": ("f1", "t1"), "f2@t1": ("f2", "t1"), "f2@t2": ("f2", "t2"),
             "f3": ("f3", "t2")}
    assert list(found) == list(where) == collection.embedding_names
    assert collection.embedding_names_by_table() == [["f1", "f2@t1"], ["f2@t2", "f3"]]
    loss, expected_loss = torch.zeros(()), torch.zeros(())
    for name, (feature, table) in where.items():
        jagged = keyed[feature]
        expected = peer.tables[table].weight[jagged.values().long()]
        assert torch.equal(found[name].values().detach(), expected.detach())
        assert torch.equal(found[name].lengths(), jagged.lengths())
        assert torch.equal(found[name].weights(), jagged.values())
        loss = loss + found[name].values().square().sum()
        expected_loss = expected_loss + expected.square().sum()
    if loss.requires_grad:
        loss.backward()
        expected_loss.backward()
    ours.step()
    theirs.step()
    assert_rows_equal(collection, peer, rtol=1e-5, atol=1e-6)


def test_rows_of_tables_of_different_columns():
    tables = [ROW(ROWS, 2, "t1", feature_names=["f1"]), ROW(ROWS, 3, "t2", feature_names=["f2"])]
    collection = EmbeddingCollection(tables)
    keyed = KeyedJaggedTensor.from_lengths_sync(["f2", "f1"], torch.tensor([5, 4, 3]),
                                                torch.tensor([2, 0, 0, 1]))
    found = collection(keyed)
    weights = collection.state_dict()
    assert torch.equal(found["f1"].values(), weights["embeddings.t1.weight"][[3]])
    assert torch.equal(found["f2"].values(), weights["embeddings.t2.weight"][[5, 4]])
    assert found["f2"].weights_or_none() is None
    with pytest.raises(ValueError, match=r"the tables have \[2, 3\] columns"):
        collection.embedding_dim()
    assert EmbeddingCollection(row_tables()).embedding_dim() == 4


# -- state, copies -----------------------------------------------------------------------------


def test_state_has_the_names_of_torchrec_and_loads_from_a_dictionary():
    collection = EmbeddingBagCollection(bag_tables())
    assert list(collection.state_dict()) == [f"embedding_bags.{name}.weight"
                                             for name in ("t1", "t2", "t3")]
    assert [name for name, _ in collection.named_parameters()] == list(collection.state_dict())
    assert list(EmbeddingCollection(row_tables()).state_dict()) == ["embeddings.t1.weight",
                                                                    "embeddings.t2.weight"]
    given_rows = {f"embedding_bags.{name}.weight": torch.arange(ROWS * dim, dtype=torch.float32)
                  .reshape(ROWS, dim) for name, dim in (("t1", 3), ("t2", 5), ("t3", 1))}
    collection.load_state_dict(given_rows)
    keyed = KeyedJaggedTensor.from_lengths_sync(["f1", "f2", "f3"], torch.tensor([1, 2, 3, 4]),
                                                torch.tensor([2, 1, 1]))
    assert collection(keyed).values().tolist() == [[9, 11, 13, 9, 10, 11, 20, 21, 22, 23, 24, 3, 4]]
    with pytest.raises(RuntimeError, match="Missing key.*embedding_bags.t1.weight"):
        collection.load_state_dict({})
    with pytest.raises(RuntimeError, match="size mismatch for embedding_bags.t1.weight"):
        collection.load_state_dict({**given_rows,
                                    "embedding_bags.t1.weight": torch.zeros(ROWS, 2)})


def test_weights_are_live_and_take_what_is_assigned():
    collection = EmbeddingBagCollection(bag_tables())
    holder = collection.embedding_bags["t3"]
    with torch.no_grad():
        holder.weight.fill_(2)
    keyed = every_row()
    assert collection(keyed)["f2@t3"].detach().flatten().tolist() == [2, 4, 6]
    holder.weight = nn.Parameter(torch.full((ROWS, 1), 3.0), requires_grad=False)
    assert collection(keyed)["f2@t3"].detach().flatten().tolist() == [3, 6, 9]
    assert not holder.weight.requires_grad
    with pytest.raises(ValueError, match="table t3 has the shape"):
        holder.weight = nn.Parameter(torch.zeros(ROWS, 2))
    with pytest.raises(ValueError, match="weight is None"):
        holder.weight = None


def tensors_of(output):
    if isinstance(output, KeyedTensor):
        return output.to_dict()
    return {name: part.values() for name, part in output.items()}


@pytest.mark.parametrize("make", [lambda: EmbeddingBagCollection(bag_tables()),
                                  lambda: EmbeddingCollection(row_tables())])
def test_copies_of_collections(make):
    keyed, collection = every_row(), make()
    expected = {name: part.detach().clone()
                for name, part in tensors_of(collection(keyed)).items()}
    copies = copies_of(collection)
    with torch.no_grad():
        for parameter in collection.parameters():
            parameter.zero_()
    for found in copies.values():
        assert found.engine is not collection.engine
        parts = tensors_of(found(keyed))
        assert list(parts) == collection.embedding_names
        for name, part in parts.items():
            assert torch.equal(part, expected[name])


def test_rows_start_as_configurations_say():
    torch.manual_seed(3)
    tables = [BAG(400, 8, "a"), BAG(50, 8, "b", weight_init_min=2.0, weight_init_max=3.0),
              BAG(50, 8, "c", init_fn=lambda w: nn.init.constant_(w, 5.0)), BAG(9, 2)]
    collection = EmbeddingBagCollection(tables)
    first = collection.embedding_bags["a"].weight.detach().clone()
    bound = 1 / math.sqrt(400)
    assert first.abs().max() <= bound < first.abs().max() * 1.05
    second = collection.embedding_bags["b"].weight.detach()
    assert 2 <= second.min() < 2.1 and 2.9 < second.max() <= 3
    assert (collection.embedding_bags["c"].weight == 5).all()
    assert collection.embedding_names == ["a", "b", "c", "t_3"]
    torch.manual_seed(3)
    collection.reset_parameters()
    assert torch.equal(collection.embedding_bags["a"].weight.detach(), first)
    assert (tables[0].get_weight_init_min(), tables[0].get_weight_init_max()) == (-bound, bound)
    assert bag_tables()[0].num_features() == 2


# -- torchrec's objects by their methods -------------------------------------------------------


class MinimalKeyed:
    """The methods that are asked of a keyed jagged tensor of another package, and no more."""

    def __init__(self, keys, values, lengths=None, offsets=None, weights=None):
        self.parts = keys, values, lengths, offsets, weights

    def keys(self):
        return self.parts[0]

    def values(self):
        return self.parts[1]

    def lengths_or_none(self):
        return self.parts[2]

    def offsets_or_none(self):
        return self.parts[3]

    def weights_or_none(self):
        return self.parts[4]

    def stride(self):
        return 3


@pytest.mark.parametrize("by", ["lengths", "offsets"])
def test_keyed_tensors_of_others_are_taken(by):
    ours = every_row(weighted=True)
    other = MinimalKeyed(ours.keys(), ours.values(), ours.lengths() if by == "lengths" else None,
                         ours.offsets() if by == "offsets" else None, ours.weights().double())
    for weighted in (False, True):
        pooled = EmbeddingBagCollection(bag_tables(), is_weighted=weighted)
        assert torch.equal(pooled(other).values(), pooled(ours).values())
    rows = EmbeddingCollection(row_tables())
    for name, part in rows(other).items():
        assert torch.equal(part.values(), rows(ours)[name].values())
        assert torch.equal(part.lengths(), rows(ours)[name].lengths())
    neither = MinimalKeyed(ours.keys(), ours.values())
    with pytest.raises(ValueError, match="neither lengths nor offsets"):
        EmbeddingBagCollection(bag_tables())(neither)


@pytest.mark.parametrize("by", ["lengths", "offsets", "variable"])
def test_engines_of_numpy_take_keyed_jagged_tensors(by):
    values, lengths = torch.tensor([1, 2, 3, 4]), torch.tensor([2, 1, 1])
    offsets = torch.tensor([0, 2, 3, 4])
    keyed = (MinimalKeyed(["b", "a", "b2"], values, lengths if by == "lengths" else None, offsets)
             if by != "variable" else
             KeyedJaggedTensor(["b", "a"], values, None, lengths,
                               stride_per_key_per_rank=[[2], [1]]))
    with embeng.Engine([embeng.Table("ta", 5, 1, "sum"), embeng.Table("tb", 5, 2, "sum")],
                       [embeng.Feature("a", "ta"), embeng.Feature("b", "tb"),
                        embeng.Feature("b2", "tb")]) as engine:
        a, b = engine["ta"], engine["tb"]
        found = engine.lookup(embeng.Keyed.from_jagged(keyed))
        expected = [a[4][0], *(b[1] + b[2]), *b[3]] if by == "variable" else [
            a[3][0], *(b[1] + b[2]), *b[4]]
        assert found.reshape(-1).tolist() == expected


def test_configurations_of_others_are_taken():
    class Pooling:
        name = "MEAN"

    class Config:
        num_embeddings, embedding_dim, name = ROWS, 2, "t"
        data_type, feature_names, pooling = Member("FP32"), ["f"], Pooling()
        weight_init_max, weight_init_min, init_fn = 4.0, 4.0, None

    collection = EmbeddingBagCollection([Config()])
    keyed = KeyedJaggedTensor.from_lengths_sync(["f"], torch.tensor([1, 2]), torch.tensor([2]))
    assert collection(keyed).values().tolist() == [[4.0, 4.0]]
    assert collection.embedding_bag_configs()[0].name == "t"


# -- what is refused ---------------------------------------------------------------------------


def test_wrong_tables_are_refused():
    double = [BAG(ROWS, 2, "t", feature_names=["a"]), BAG(ROWS, 3, "t", feature_names=["b"])]
    for make in (EmbeddingBagCollection, EmbeddingCollection):
        with pytest.raises(ValueError, match="there are two tables t"):
            make(double)
    with pytest.raises(ValueError, match="there are two tables t"):
        FusedEmbeddingBagCollection(double, torch.optim.SGD)
    with pytest.raises(ValueError, match="there are no tables"):
        EmbeddingBagCollection([])
    with pytest.raises(embeng.NotSupportedError, match="table t: data_type is FP16"):
        EmbeddingBagCollection([BAG(ROWS, 2, "t", configs.DataType.FP16)])
    with pytest.raises(embeng.NotSupportedError, match="table t: pooling is NONE"):
        EmbeddingBagCollection([BAG(ROWS, 2, "t", pooling=configs.PoolingType.NONE)])
    with pytest.raises(embeng.NotSupportedError, match="table t: use_virtual_table is True"):
        EmbeddingBagCollection([BAG(ROWS, 2, "t", use_virtual_table=True)])
    with pytest.raises(ValueError, match="table t has the feature a twice"):
        EmbeddingBagCollection([BAG(ROWS, 2, "t", feature_names=["a", "a"])])


def test_wrong_inputs_are_refused_and_leave_no_trace():
    collection = FusedEmbeddingBagCollection(bag_tables(), torch.optim.SGD, {"lr": 1.0})
    keyed = every_row()
    with pytest.raises(KeyError, match="there is no key 'f3'; they have f1, f2"):
        collection(keyed.split([2, 1])[0])
    wrong = KeyedJaggedTensor(keyed.keys(), keyed.values().clone(), None, keyed.lengths())
    wrong.values()[-1] = ROWS
    with pytest.raises(IndexError, match="feature f3@t2, sample 2: id 6 is outside table t2"):
        collection(wrong)
    weighted = EmbeddingBagCollection(bag_tables(), is_weighted=True)
    with pytest.raises(ValueError, match="the collection is weighted, and they have no weights"):
        weighted(keyed)
    floats = KeyedJaggedTensor(keyed.keys(), keyed.values().float(), None, keyed.lengths())
    with pytest.raises(TypeError, match="values: ids of float32; give whole numbers"):
        collection(floats)
    assert collection.engine.step == 0
    assert weighted.is_weighted() and not collection.is_weighted()


def test_a_backward_without_an_optimizer_is_refused():
    collection = EmbeddingBagCollection(bag_tables())
    with pytest.raises(RuntimeError, match="table t1 got a gradient and has no optimizer"):
        collection(every_row()).values().sum().backward()


# -- devices, types, compilers, threads --------------------------------------------------------


def test_collection_on_meta_gives_shapes():
    collection = EmbeddingBagCollection(bag_tables(), device=torch.device("meta"))
    assert collection.device == torch.device("meta")
    assert collection.embedding_bags["t1"].weight.device.type == "meta"
    output = collection(every_row())
    assert output.keys() == BAG_NAMES
    assert (output.values().shape, output.values().device.type) == ((3, 13), "meta")
    with pytest.raises(embeng.NotSupportedError, match="a collection on meta has no engine"):
        collection.engine
    with torch.device("meta"):
        assert EmbeddingCollection(row_tables()).device == torch.device("meta")
    fused = FusedEmbeddingBagCollection(bag_tables(), torch.optim.SGD, device="meta")
    with pytest.raises(embeng.NotSupportedError, match="no optimizer; make it on cpu"):
        fused.fused_optimizer()
    assert EmbeddingBagCollection(bag_tables()).device == torch.device("cpu")


def test_activations_come_in_another_type():
    collection = FusedEmbeddingBagCollection(bag_tables(), torch.optim.SGD, {"lr": 1.0})
    keyed = every_row()
    expected = collection(keyed).values().detach()
    collection.to(torch.bfloat16)
    found = collection(keyed).values()
    assert found.dtype == torch.bfloat16
    assert torch.equal(found.detach(), expected.to(torch.bfloat16))
    assert collection.embedding_bags["t1"].weight.dtype == torch.float32
    found.sum().backward()
    assert collection.engine.step == 1
    collection.float()
    assert collection(keyed).values().dtype == torch.float32


def test_exported_collection_looks_up_as_the_other():
    collection = EmbeddingBagCollection(bag_tables(), is_weighted=True).requires_grad_(False)
    keyed = every_row(weighted=True)
    program = torch.export.export(collection, (keyed,))
    other = KeyedJaggedTensor(keyed.keys(), keyed.values().flip(0), keyed.weights(),
                              keyed.lengths())
    found = program.module()(other)
    assert found.keys() == BAG_NAMES
    assert torch.equal(found.values(), collection(other).values())
    assert not torch.equal(found.values(), collection(keyed).values())
    with pytest.raises(ValueError, match="exported input tree spec"):
        program.module()(other.permute([2, 0, 1]))


def test_threads_look_up_at_once():
    collection = EmbeddingBagCollection(bag_tables(), cores=1)
    keyed = every_row()
    expected = collection(keyed).values()
    wrong = []

    def run():
        with torch.no_grad():
            for _ in range(100):
                if not torch.equal(collection(keyed).values(), expected):
                    wrong.append(1)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def collate(samples):
    lengths = [len(sample[key]) for key in ("f1", "f2", "f3") for sample in samples]
    values = [i for key in ("f1", "f2", "f3") for sample in samples for i in sample[key]]
    return KeyedJaggedTensor.from_lengths_sync(["f1", "f2", "f3"], torch.tensor(values),
                                               torch.tensor(lengths))


def test_batches_come_from_workers_of_a_data_loader():
    samples = [{"f1": [n % ROWS], "f2": [n % 3, n % 2], "f3": [1] * (n % 3)} for n in range(10)]
    collection = FusedEmbeddingBagCollection(bag_tables(), torch.optim.SGD, {"lr": 0.1}, cores=1)
    peer = copy.deepcopy(collection)
    loader = torch.utils.data.DataLoader(samples, batch_size=4, collate_fn=collate, num_workers=2)
    for keyed in loader:
        collection(keyed).values().square().sum().backward()
    for first in (0, 4, 8):
        peer(collate(samples[first:first + 4])).values().square().sum().backward()
    assert collection.engine.step == 3
    for name, rows in collection.state_dict().items():
        assert torch.equal(rows, peer.state_dict()[name])


# -- clipping, parameter groups, processes --------------------------------------------------


def test_norm_of_gradients_is_clipped_as_torch_does():
    collection = EmbeddingBagCollection(bag_tables(), cores=1)
    peer = Peer(collection)
    ours, theirs = optim.SGD(collection.parameters(), lr=0.5), torch.optim.SGD(
        peer.parameters(), lr=0.5)
    keyed = every_row()
    for _ in range(2):
        collection(keyed).values().square().sum().backward()
        torch.cat(peer(keyed), 1).square().sum().backward()
        found = clip_grad_norm_(collection.parameters(), 0.25)
        expected = nn.utils.clip_grad_norm_(peer.parameters(), 0.25)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)
        assert expected > 0.25
        for optimizer in (ours, theirs):
            optimizer.step()
            optimizer.zero_grad()
        assert_rows_equal(collection, peer, rtol=1e-4, atol=1e-5)


def test_tables_may_have_rates_of_their_own():
    collection = EmbeddingBagCollection(bag_tables(), cores=1)
    peer = Peer(collection)

    def groups(holders):
        return [{"params": [holders["t1"].weight], "lr": 0.5},
                {"params": [holders["t2"].weight, holders["t3"].weight]}]

    ours = optim.Adagrad(groups(collection.embedding_bags), lr=0.1)
    theirs = torch.optim.Adagrad(groups(peer.tables), lr=0.1)
    schedules = [torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5) for optimizer in (ours, theirs)]
    keyed = every_row()
    for step in range(3):
        (collection(keyed).values() - step).square().sum().backward()
        (torch.cat(peer(keyed), 1) - step).square().sum().backward()
        for optimizer, schedule in zip((ours, theirs), schedules):
            optimizer.step()
            optimizer.zero_grad()
            schedule.step()
        assert_rows_equal(collection, peer, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("fused", [False, True])
def test_exchange_between_processes_takes_entries_of_collections(fused, tmp_path):
    """One process stands for all: what it gathers is what it gave."""
    import torch.distributed as dist

    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        make = (lambda: FusedEmbeddingBagCollection(bag_tables(), torch.optim.SGD, {"lr": 0.5},
                                                    cores=1)) if fused else (
            lambda: EmbeddingBagCollection(bag_tables(), cores=1))
        alone = make()
        shared = copy.deepcopy(alone)
        distribute(shared)
        keyed = every_row()
        optimizers = [] if fused else [optim.SGD(m.parameters(), lr=0.5) for m in (alone, shared)]
        for collection in (alone, shared):
            for _ in range(2):
                collection(keyed).values().square().sum().backward()
        for optimizer in optimizers:
            optimizer.step()
        for name, rows in alone.state_dict().items():
            torch.testing.assert_close(shared.state_dict()[name], rows)
    finally:
        dist.destroy_process_group()

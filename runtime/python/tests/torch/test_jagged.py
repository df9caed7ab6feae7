# SPDX-License-Identifier: MIT
"""Jagged, keyed jagged and keyed tensors against lists of lists, which are their meaning."""
import copy
import io
import pickle

import pytest
from hypothesis import given, settings, strategies as st

torch = pytest.importorskip("torch")

from embeng.torch import JaggedTensor, KeyedJaggedTensor, KeyedTensor  # noqa: E402

thorough = settings(deadline=None, derandomize=False, print_blob=True, max_examples=60)

IDS = st.integers(0, 99)
ROWS = st.lists(st.lists(IDS, max_size=4), max_size=6)


@st.composite
def batches(draw, variable=None, weighted=None):
    """Features by name, each a list of bags; whether the strides vary; and weights or None."""
    keys = draw(st.lists(st.sampled_from("abcdefg"), max_size=4, unique=True))
    varies = draw(st.booleans()) if variable is None else variable
    stride = draw(st.integers(0, 4))
    bags = {}
    for key in keys:
        count = draw(st.integers(0, 4)) if varies else stride
        bags[key] = draw(st.lists(st.lists(IDS, max_size=3), min_size=count, max_size=count))
    weights = None
    if draw(st.booleans()) if weighted is None else weighted:
        weights = {key: [[i / 8 + at for at, i in enumerate(bag)] for bag in rows]
                   for key, rows in bags.items()}
    return bags, varies, weights


def flat(lists):
    return [item for part in lists for item in part]


def make(bags, varies=False, weights=None, bounds="lengths", dtype=torch.int32):
    rows = flat(bags.values())
    lengths = torch.tensor([len(row) for row in rows], dtype=dtype)
    values = torch.tensor(flat(rows), dtype=torch.int64)
    floats = None if weights is None else torch.tensor(flat(flat(weights.values())),
                                                       dtype=torch.float32)
    strides = [[len(rows)] for rows in bags.values()] if varies else None
    if bounds == "lengths":
        return KeyedJaggedTensor.from_lengths_sync(list(bags), values, lengths, floats,
                                                   stride_per_key_per_rank=strides)
    offsets = torch.cat([lengths.new_zeros(1), lengths.cumsum(0).to(dtype)])
    return KeyedJaggedTensor.from_offsets_sync(list(bags), values, offsets, floats,
                                               stride_per_key_per_rank=strides)


def lists_of(jagged):
    return [row.tolist() for row in jagged.to_dense()]


def assert_is(keyed, bags, weights=None):
    """The keyed tensor is exactly these bags, in all of its views."""
    assert keyed.keys() == list(bags)
    assert keyed.values().tolist() == flat(flat(bags.values()))
    assert keyed.lengths().tolist() == [len(row) for row in flat(bags.values())]
    offsets = [0]
    for row in flat(bags.values()):
        offsets.append(offsets[-1] + len(row))
    assert keyed.offsets().tolist() == offsets
    assert keyed.length_per_key() == [len(flat(rows)) for rows in bags.values()]
    assert keyed.offset_per_key() == [sum(keyed.length_per_key()[:k]) for k in range(len(bags) + 1)]
    assert keyed.stride_per_key() == [len(rows) for rows in bags.values()]
    parts = keyed.to_dict()
    assert list(parts) == list(bags)
    for key, rows in bags.items():
        assert lists_of(parts[key]) == rows
        assert lists_of(keyed[key]) == rows
        assert parts[key].offsets().tolist()[0] == 0
        if weights is None:
            assert parts[key].weights_or_none() is None
        else:
            assert [row.tolist() for row in parts[key].to_dense_weights()] == weights[key]
    if weights is None:
        assert keyed.weights_or_none() is None
    else:
        assert keyed.weights().tolist() == flat(flat(weights.values()))


# -- JaggedTensor ----------------------------------------------------------------------------


@thorough
@given(ROWS, st.sampled_from([torch.int32, torch.int64]))
def test_jagged_views_agree(rows, dtype):
    lengths = torch.tensor([len(row) for row in rows], dtype=dtype)
    by_lengths = JaggedTensor(torch.tensor(flat(rows), dtype=torch.int64), lengths=lengths)
    by_offsets = JaggedTensor(by_lengths.values(), offsets=by_lengths.offsets())
    assert by_lengths.offsets().dtype == dtype
    assert by_lengths.offsets().tolist() == [len(flat(rows[:k])) for k in range(len(rows) + 1)]
    assert by_offsets.lengths_or_none() is None
    assert torch.equal(by_offsets.lengths(), lengths)
    assert by_offsets.lengths_or_none() is not None
    assert lists_of(by_lengths) == lists_of(by_offsets) == rows


@thorough
@given(ROWS, st.none() | st.integers(0, 5), st.integers(-9, -1))
def test_padded_dense_and_back(rows, length, filler):
    lengths = torch.tensor([len(row) for row in rows], dtype=torch.int32)
    values = torch.tensor(flat(rows), dtype=torch.float32)
    jagged = JaggedTensor(values, values + 1, lengths)
    wanted = max(map(len, rows), default=0) if length is None else length
    padded = jagged.to_padded_dense(length, filler)
    assert padded.shape == (len(rows), wanted)
    assert padded.tolist() == [(row + [filler] * wanted)[:wanted] for row in rows]
    assert jagged.to_padded_dense_weights(length, filler).tolist() == [
        ([i + 1 for i in row] + [filler] * wanted)[:wanted] for row in rows]
    if length is None and rows:
        back = JaggedTensor.from_dense_lengths(padded, lengths)
        assert lists_of(back) == rows


@thorough
@given(st.lists(st.lists(IDS, max_size=4), min_size=1, max_size=6))
def test_from_dense_is_undone_by_to_dense(rows):
    dense = [torch.tensor(row, dtype=torch.float32) for row in rows]
    jagged = JaggedTensor.from_dense(dense, [row / 2 for row in dense])
    assert lists_of(jagged) == rows
    assert [row.tolist() for row in jagged.to_dense_weights()] == [[i / 2 for i in row]
                                                                  for row in rows]


def test_padded_dense_of_rows_of_vectors_lets_gradients_through():
    values = torch.arange(12, dtype=torch.float32).reshape(4, 3).requires_grad_()
    jagged = JaggedTensor(values, lengths=torch.tensor([1, 0, 3]))
    padded = jagged.to_padded_dense(2, 7.0)
    assert padded.shape == (3, 2, 3)
    assert padded[0].tolist() == [[0, 1, 2], [7, 7, 7]]
    assert padded[1].tolist() == [[7, 7, 7], [7, 7, 7]]
    assert padded[2].tolist() == [[3, 4, 5], [6, 7, 8]]
    (padded * padded).sum().backward()
    expected = 2 * values.detach()
    expected[3] = 0  # this row was cut off
    assert torch.equal(values.grad, expected)


def test_jagged_without_rows():
    empty = JaggedTensor.empty(is_weighted=True, values_dtype=torch.int64)
    assert empty.values().dtype == torch.int64
    assert empty.lengths().dtype == torch.int32
    assert empty.to_dense() == [] == empty.to_dense_weights()
    assert empty.to_padded_dense().shape == (0, 0)
    assert JaggedTensor.from_dense([]).to_dense() == []


def test_jagged_like_another_and_its_bytes():
    values, lengths = torch.ones(4, dtype=torch.float64), torch.tensor([3, 1], dtype=torch.int32)
    jagged = JaggedTensor(values, values.half(), lengths)
    assert jagged.size_in_bytes() == 4 * 8 + 4 * 2 + 2 * 4
    jagged.offsets()
    assert jagged.size_in_bytes() == 4 * 8 + 4 * 2 + 2 * 4 + 3 * 4
    like = JaggedTensor.empty_like(jagged)
    assert (like.values().dtype, like.weights().dtype) == (torch.float64, torch.float16)
    assert (like.lengths().dtype, like.to_dense()) == (torch.int32, [])
    keyed = make({"a": [[1, 2]]}, weights={"a": [[1.0, 2.0]]})
    assert keyed.size_in_bytes() == 2 * 8 + 2 * 4 + 4
    assert KeyedTensor(["a"], [3], torch.zeros(2, 3)).size_in_bytes() == 24


def test_values_behind_the_last_row_are_left_alone():
    jagged = JaggedTensor(torch.arange(6), lengths=torch.tensor([2, 0, 1]))
    assert lists_of(jagged) == [[0, 1], [], [2]]
    assert jagged.to_padded_dense().tolist() == [[0, 1], [0, 0], [2, 0]]
    assert str(jagged) == "JaggedTensor({\n    [[0, 1], [], [2]]\n})\n"


def test_jagged_text():
    values = torch.tensor([1.0, 2.0, 3.0])
    jagged = JaggedTensor(values, lengths=torch.tensor([2, 0, 1]))
    assert str(jagged) == "JaggedTensor({\n    [[1.0, 2.0], [], [3.0]]\n})\n"
    weighted = JaggedTensor(values, values / 2, torch.tensor([2, 0, 1]))
    assert str(weighted) == ('JaggedTensor({\n    "values": [[1.0, 2.0], [], [3.0]],\n'
                             '    "weights": [[0.5, 1.0], [], [1.5]]\n})\n')


def test_jagged_refuses_what_does_not_fit():
    values = torch.arange(3)
    with pytest.raises(ValueError, match="lengths and offsets: neither is given"):
        JaggedTensor(values)
    with pytest.raises(TypeError, match="offsets: they are torch.float32"):
        JaggedTensor(values, offsets=torch.tensor([0.0, 3.0]))
    with pytest.raises(ValueError, match=r"weights: their shape is \(2,\), for 3 values"):
        JaggedTensor(values, torch.ones(2), torch.tensor([3]))
    with pytest.raises(ValueError, match="weights: there are none"):
        JaggedTensor(values, lengths=torch.tensor([3])).weights()
    assert JaggedTensor(values, lengths=torch.tensor([3])).to_padded_dense_weights() is None


# -- KeyedJaggedTensor ---------------------------------------------------------------------------


@thorough
@given(batches(), st.sampled_from(["lengths", "offsets"]),
       st.sampled_from([torch.int32, torch.int64]))
def test_keyed_is_its_bags(batch, bounds, dtype):
    bags, varies, weights = batch
    keyed = make(bags, varies, weights, bounds, dtype)
    assert keyed.variable_stride_per_key() == varies
    assert keyed.stride() == max((len(rows) for rows in bags.values()), default=0)
    assert (keyed.offsets_or_none() is not None) == (bounds == "offsets" or (varies and bool(bags)))
    assert_is(keyed, bags, weights)


@thorough
@given(batches(), st.data())
def test_split_and_concat_undo_each_other(batch, data):
    bags, varies, weights = batch
    keyed = make(bags, varies, weights)
    segments, left = [], len(bags)
    while left or not segments:
        segments.append(data.draw(st.integers(0, left)))
        left -= segments[-1]
        if len(segments) > 8:
            segments.append(left)
            left = 0
    parts = keyed.split(segments)
    names, at = list(bags), 0
    for count, part in zip(segments, parts, strict=True):
        own = names[at:at + count]
        assert_is(part, {key: bags[key] for key in own},
                  weights and {key: weights[key] for key in own} if weights is not None else None)
        assert part.stride() == keyed.stride()
        at += count
    assert_is(KeyedJaggedTensor.concat(parts), bags, weights)


@thorough
@given(batches(), st.data())
def test_permute_orders_repeats_and_leaves_out(batch, data):
    bags, varies, weights = batch
    keyed = make(bags, varies, weights)
    names = list(bags)
    order = data.draw(st.lists(st.integers(0, len(bags) - 1), max_size=6)) if bags else []
    permuted = keyed.permute(order)
    assert permuted.keys() == [names[k] for k in order]
    assert permuted.values().tolist() == flat(flat(bags[names[k]] for k in order))
    assert permuted.lengths().tolist() == [len(row) for k in order for row in bags[names[k]]]
    assert permuted.stride_per_key() == [len(bags[names[k]]) for k in order]
    if weights is not None:
        assert permuted.weights().tolist() == flat(flat(weights[names[k]] for k in order))
    if len(set(order)) == len(order):
        assert_is(permuted, {names[k]: bags[names[k]] for k in order},
                  None if weights is None else {names[k]: weights[names[k]] for k in order})


@thorough
@given(batches())
def test_dictionary_round_trip(batch):
    bags, _varies, weights = batch
    if not bags:
        weights = None
    back = KeyedJaggedTensor.from_jt_dict(make(bags, True, weights).to_dict())
    assert_is(back, bags, weights)
    assert back.variable_stride_per_key() == (len({len(rows) for rows in bags.values()}) > 1)


def copies_of(keyed):
    stream = io.BytesIO()
    torch.save(keyed, stream)
    stream.seek(0)
    leaves, spec = torch.utils._pytree.tree_flatten(keyed)
    return {"pickle": pickle.loads(pickle.dumps(keyed)), "deepcopy": copy.deepcopy(keyed),
            "torch.save": torch.load(stream, weights_only=False), "to": keyed.to("cpu"),
            "pytree": torch.utils._pytree.tree_unflatten(leaves, spec)}


@settings(thorough, max_examples=15)
@given(batches(), st.sampled_from(["lengths", "offsets"]))
def test_copies_are_equal(batch, bounds):
    bags, varies, weights = batch
    keyed = make(bags, varies, weights, bounds)
    for found in copies_of(keyed).values():
        assert_is(found, bags, weights)
        assert found.stride() == keyed.stride()
        assert found.stride_per_key_per_rank() == keyed.stride_per_key_per_rank()


def test_variable_batch_of_ranks_and_inverse_indices():
    inverse = (["a", "b"], torch.tensor([[0, 1, 0, 2], [1, 1, 0, 0]]))
    keyed = KeyedJaggedTensor(
        ["a", "b"], torch.arange(6), lengths=torch.tensor([1, 0, 2, 1, 2]),
        stride_per_key_per_rank=torch.tensor([[2, 1], [0, 2]], dtype=torch.int32),
        inverse_indices=inverse)
    assert keyed.stride_per_key_per_rank() == [[2, 1], [0, 2]]
    assert keyed.stride_per_key() == [3, 2]
    assert keyed.lengths_offset_per_key() == [0, 3, 5]
    assert keyed.stride() == 4  # this is the whole batch
    assert lists_of(keyed["b"]) == [[3], [4, 5]]
    for found in copies_of(keyed).values():
        names, indices = found.inverse_indices()
        assert names == ["a", "b"]
        assert torch.equal(indices, inverse[1])
    assert keyed.permute([1, 0]).inverse_indices() is inverse
    with pytest.raises(ValueError, match="inverse_indices: there are none"):
        make({"a": [[1]]}).inverse_indices()


def test_programs_get_keys_in_the_order_of_their_example():
    flatten = torch.fx._pytree.tree_flatten_spec
    tree = torch.utils._pytree
    bags = {"a": [[1], [2, 3]], "b": [[], [4]]}
    _leaves, spec = tree.tree_flatten(make(bags))
    other = make({"c": [[9], []], "b": bags["b"], "a": bags["a"]})
    assert_is(tree.tree_unflatten(flatten(other, spec), spec), bags)
    with pytest.raises(ValueError, match="there is no 'b'; the program was exported with a, b"):
        flatten(make({"a": [[1]]}), spec)
    values = torch.arange(6).reshape(2, 3)
    _leaves, spec = tree.tree_flatten(KeyedTensor(["x", "y"], [1, 2], values))
    turned = KeyedTensor(["y", "x"], [2, 1], values[:, [1, 2, 0]])
    assert torch.equal(tree.tree_unflatten(flatten(turned, spec), spec).values(), values)
    jagged = JaggedTensor(torch.arange(3), lengths=torch.tensor([1, 2]))
    _leaves, spec = tree.tree_flatten(jagged)
    assert lists_of(tree.tree_unflatten(flatten(jagged, spec), spec)) == [[0], [1, 2]]


def test_weights_take_another_type_on_the_way():
    keyed = make({"a": [[1], [2, 3]]}, weights={"a": [[1.0], [2.0, 3.0]]})
    moved = keyed.to(torch.device("cpu"), non_blocking=True, dtype=torch.float64)
    assert moved.weights().dtype == torch.float64
    assert moved.values().dtype == torch.int64
    assert moved.device() == torch.device("cpu")


def test_sync_and_unsync():
    keyed = KeyedJaggedTensor(["a", "b"], torch.arange(3), lengths=torch.tensor([1, 0, 0, 2]))
    assert keyed.length_per_key_or_none() is None
    assert keyed.offset_per_key_or_none() is None
    assert keyed.sync() is keyed
    assert keyed.length_per_key_or_none() == [1, 2]
    assert keyed.offset_per_key_or_none() == [0, 1, 3]
    assert keyed.unsync().length_per_key_or_none() is None
    assert keyed.flatten_lengths().lengths().tolist() == [1, 0, 0, 2]


def test_lengths_may_be_a_matrix():
    keyed = KeyedJaggedTensor.from_lengths_sync(["a", "b"], torch.arange(3),
                                                torch.tensor([[1, 0], [0, 2]]))
    assert keyed.stride() == 2
    assert keyed.lengths().tolist() == [1, 0, 0, 2]


def test_empty_ones():
    empty = KeyedJaggedTensor.empty(is_weighted=True, values_dtype=torch.int32)
    assert empty.to_dict() == {}
    assert empty.stride() == 0
    assert empty.values().dtype == torch.int32
    assert str(empty) == "KeyedJaggedTensor()\n"
    keyed = make({"a": [[1], [2, 3]]}, weights={"a": [[1.0], [2.0, 3.0]]})
    like = KeyedJaggedTensor.empty_like(keyed)
    assert (like.keys(), like.stride(), like.values().dtype) == ([], 2, torch.int64)
    assert like.weights().numel() == 0
    without_ids = KeyedJaggedTensor(["a"], torch.tensor([]), lengths=torch.tensor([]))
    assert without_ids["a"].to_dense() == []
    assert str(KeyedJaggedTensor([], torch.tensor([]))) == "KeyedJaggedTensor()\n"


def test_keyed_text():
    keyed = make({"a": [[1, 2], []], "b": [[], [3]]})
    assert str(keyed) == ('KeyedJaggedTensor({\n    "a": [[1, 2], []],\n'
                          '    "b": [[], [3]]\n})\n')
    weighted = make({"a": [[1, 2]]}, weights={"a": [[0.5, 1.5]]})
    assert str(weighted) == ('KeyedJaggedTensor({\n    "a": {\n        "values": [[1, 2]],\n'
                             '        "weights": [[0.5, 1.5]]\n    }\n})\n')


def test_keyed_refuses_what_does_not_fit():
    values, lengths = torch.arange(4), torch.tensor([1, 1, 1, 1])
    with pytest.raises(ValueError, match="4 are not a multiple of 3 keys"):
        KeyedJaggedTensor(["a", "b", "c"], values, lengths=lengths)
    with pytest.raises(ValueError, match="stride: 3 samples of 2 features have 6 lengths, not 4"):
        KeyedJaggedTensor(["a", "b"], values, lengths=lengths, stride=3)
    with pytest.raises(ValueError, match="2 features of 5 samples; the keys are 2 and the lengths"):
        KeyedJaggedTensor(["a", "b"], values, lengths=lengths,
                          stride_per_key_per_rank=[[2], [3]])
    with pytest.raises(ValueError, match="they add up to 4, for 5 values"):
        KeyedJaggedTensor.from_lengths_sync(["a", "b"], torch.arange(5), lengths)
    with pytest.raises(ValueError, match="they add up to 3, for 4 values"):
        KeyedJaggedTensor.from_offsets_sync(["a"], values, torch.tensor([0, 1, 3]))
    with pytest.raises(TypeError, match="lengths: they are torch.float64"):
        KeyedJaggedTensor(["a"], values, lengths=lengths.double())
    with pytest.raises(ValueError, match="neither is given"):
        KeyedJaggedTensor(["a"], values)
    with pytest.raises(ValueError, match=r"weights: their shape is \(3,\), for 4 values"):
        KeyedJaggedTensor(["a"], values, torch.ones(3), lengths)
    keyed = KeyedJaggedTensor(["a", "b"], values, lengths=lengths)
    with pytest.raises(KeyError, match="there is no key 'c'; the keys are a, b"):
        keyed["c"]
    with pytest.raises(ValueError, match=r"segments of \[1\] features; let them add up to 2"):
        keyed.split([1])
    with pytest.raises(ValueError, match="weights: there are none"):
        keyed.weights()


def test_concat_refuses_what_does_not_fit():
    one, two = make({"a": [[1], [2]]}), make({"b": [[1]]})
    with pytest.raises(ValueError, match=r"the batches have \[1, 2\] samples"):
        KeyedJaggedTensor.concat([one, two])
    weighted = make({"b": [[1], []]}, weights={"b": [[1.0], []]})
    with pytest.raises(ValueError, match="1 of 2 have weights"):
        KeyedJaggedTensor.concat([one, weighted])
    with pytest.raises(ValueError, match="the list is empty"):
        KeyedJaggedTensor.concat([])
    with pytest.raises(ValueError, match="1 of 2 features have some"):
        KeyedJaggedTensor.from_jt_dict({**one.to_dict(), **weighted.to_dict()})


# -- KeyedTensor --------------------------------------------------------------------------------


@thorough
@given(st.lists(st.integers(0, 4), max_size=5), st.integers(0, 3), st.sampled_from([0, 1]))
def test_keyed_tensor_holds_its_tensors(widths, batch, dim):
    torch.manual_seed(len(widths))
    shapes = [(width, batch) if dim == 0 else (batch, width) for width in widths]
    tensors = [torch.randn(shape) for shape in shapes]
    names = [f"k{k}" for k in range(len(widths))]
    if not tensors:
        return
    keyed = KeyedTensor.from_tensor_list(names, tensors, dim, dim)
    assert keyed.keys() == names
    assert keyed.length_per_key() == widths
    assert keyed.offset_per_key() == [sum(widths[:k]) for k in range(len(widths) + 1)]
    assert keyed.key_dim() == dim
    assert torch.equal(keyed.values(), torch.cat(tensors, dim))
    for found in (keyed, copy.deepcopy(keyed), pickle.loads(pickle.dumps(keyed)), keyed.to("cpu")):
        parts = found.to_dict()
        assert list(parts) == names
        for name, tensor in zip(names, tensors):
            assert torch.equal(parts[name], tensor)
            assert torch.equal(found[name], tensor)


def test_regroup():
    torch.manual_seed(7)
    tensors = {name: torch.randn(2, width) for name, width in
               {"a": 3, "b": 1, "c": 2, "d": 4}.items()}
    first = KeyedTensor.from_tensor_list(["a", "b"], [tensors["a"], tensors["b"]])
    second = KeyedTensor.from_tensor_list(["c", "d"], [tensors["c"], tensors["d"]])
    groups = [["d", "a"], ["b"], ["c", "a"]]
    expected = [torch.cat([tensors[key] for key in group], 1) for group in groups]
    found = KeyedTensor.regroup([first, second], groups)
    assert all(torch.equal(x, y) for x, y in zip(found, expected, strict=True))
    named = KeyedTensor.regroup_as_dict([first, second], groups, ["x", "y", "z"])
    assert list(named) == ["x", "y", "z"]
    assert all(torch.equal(x, y) for x, y in zip(named.values(), expected, strict=True))


def test_gradients_flow_through_regroup():
    values = torch.arange(6, dtype=torch.float32).reshape(2, 3).requires_grad_()
    keyed = KeyedTensor(["a", "b", "c"], [1, 1, 1], values)
    groups = KeyedTensor.regroup([keyed], [["c", "a"], ["a"]])
    (groups[0] @ torch.tensor([10.0, 1.0]) + groups[1][:, 0]).sum().backward()
    assert values.grad.tolist() == [[2, 0, 10], [2, 0, 10]]


def test_keyed_tensor_refuses_what_does_not_fit():
    keyed = KeyedTensor(["a", "b"], [1, 2], torch.zeros(2, 3))
    with pytest.raises(KeyError, match="there is no key 'c'; the keys are a, b"):
        keyed["c"]
    with pytest.raises(KeyError, match="there is no key 'c'; the keys are a, b"):
        KeyedTensor.regroup([keyed], [["c"]])
    with pytest.raises(ValueError, match="the key 'a' is in two of the tensors"):
        KeyedTensor.regroup([keyed, keyed], [["a"]])
    with pytest.raises(ValueError, match="a group has no keys"):
        KeyedTensor.regroup([keyed], [[]])
    with pytest.raises(ValueError, match="key dimensions"):
        KeyedTensor.regroup([], [["a"]])
    with pytest.raises(ValueError, match="2 keys have 1 lengths"):
        KeyedTensor(["a", "b"], [1], torch.zeros(2, 1))
    with pytest.raises(ValueError, match="1 groups have 2 names"):
        KeyedTensor.regroup_as_dict([keyed], [["a"]], ["x", "y"])


def test_keyed_tensor_text():
    keyed = KeyedTensor(["a", "b"], [1, 2], torch.tensor([[1.0, 2.0, 3.0]]))
    assert str(keyed) == 'KeyedTensor({\n    "a": [[1.0]],\n    "b": [[2.0, 3.0]]\n})\n'

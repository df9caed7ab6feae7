# SPDX-License-Identifier: MIT
"""embeng.Keyed, the input of all features in one array, against dictionaries of embeng.Ragged."""
import sys
import threading

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import embeng
from embeng import Keyed

thorough = settings(deadline=None, derandomize=False, print_blob=True, max_examples=60)

DIMS = {"a": 3, "b": 1, "c": 4}
ROWS = 7


def open_engine(combiner="mean"):
    tables = [embeng.Table(name, ROWS, dim, combiner=combiner,
                           optimizer=embeng.optimizers.sgd(0.5)) for name, dim in DIMS.items()]
    features = [embeng.Feature("fa", "a"), embeng.Feature("fb", "b"), embeng.Feature("fc", "c"),
                embeng.Feature("fa2", "a")]
    engine = embeng.Engine(tables, features, cores=1)
    rng = np.random.default_rng(5)
    for name in DIMS:
        engine[name].write(rng.normal(size=engine[name].shape))
    return engine


DIM_OF = {"fa": 3, "fb": 1, "fc": 4, "fa2": 3}


@st.composite
def inputs(draw, varies=None):
    """A keyed input, and the same as a dictionary of Ragged in the engine's order."""
    names = draw(st.permutations(list(DIM_OF)))
    names = names[:draw(st.integers(0, 4))]
    items, at = [], 0
    while at < len(names):
        count = min(draw(st.integers(1, 2)), len(names) - at)
        items.append(names[at] if count == 1 else tuple(names[at:at + count]))
        at += count
        if draw(st.booleans()):
            items.append(None)
    variable = draw(st.booleans()) if varies is None else varies
    stride = draw(st.integers(0, 3))
    samples = [draw(st.integers(0, 3)) if variable else stride for _ in items]
    lengths = [[draw(st.integers(0, 3)) for _ in range(count)] for count in samples]
    ids = [[draw(st.integers(0, ROWS - 1)) for _ in range(sum(part))] for part in lengths]
    dtype = draw(st.sampled_from([np.int32, np.int64]))
    values = np.array([i for part in ids for i in part], dtype)
    weights = None
    if draw(st.booleans()):
        weights = (1 + np.arange(len(values), dtype=np.float32)) / 4
    keyed = Keyed(tuple(items), values,
                  np.array([n for part in lengths for n in part], draw(st.sampled_from(
                      [np.int32, np.int64]))), weights, samples if variable else None)
    ragged, begin = {}, 0
    for item, part, own in zip(items, lengths, ids):
        for name in () if item is None else (item,) if isinstance(item, str) else item:
            ragged[name] = embeng.Ragged(
                np.array(own, dtype), lengths=np.array(part, np.int64),
                weights=None if weights is None else weights[begin:begin + len(own)])
        begin += len(own)
    return keyed, {name: ragged[name] for name in DIM_OF if name in ragged}


def join(keyed, arrays):
    """Activations or gradients of a dictionary as a keyed call has them."""
    if keyed.samples is not None:
        return np.concatenate([np.zeros(0, np.float32), *(a.reshape(-1) for a in arrays.values())])
    if not arrays:
        return np.zeros((0, 0), np.float32)
    return np.concatenate(list(arrays.values()), 1)


@thorough
@given(inputs())
def test_lookup_equals_that_of_a_dictionary(pair):
    keyed, ragged = pair
    with open_engine() as engine:
        expected = join(keyed, engine.lookup(ragged))
        found = engine.lookup(keyed)
        assert found.dtype == np.float32
        assert found.shape == expected.shape
        assert np.array_equal(found, expected)
        out = np.full(expected.shape, np.nan, np.float32)
        assert engine.lookup(keyed, out) is out
        assert np.array_equal(out, expected)


@thorough
@given(inputs(), st.integers(0, 2**32 - 1))
def test_update_equals_that_of_a_dictionary(pair, seed):
    keyed, ragged = pair
    rng = np.random.default_rng(seed)
    gradients = {name: rng.normal(size=(len(bags.lengths), DIM_OF[name])).astype(np.float32)
                 for name, bags in ragged.items()}
    with open_engine() as one, open_engine() as other:
        one.update(ragged, gradients)
        other.update(keyed, join(keyed, gradients))
        one.flush()
        other.flush()
        for name in DIMS:
            assert np.array_equal(one[name].read(), other[name].read())
        assert one.gradient_norm(ragged, gradients) == other.gradient_norm(
            keyed, join(keyed, gradients))


@thorough
@given(inputs(), st.integers(0, 2**32 - 1))
def test_gradients_of_weights_equal_those_of_a_dictionary(pair, seed):
    keyed, ragged = pair
    rng = np.random.default_rng(seed)
    gradients = {name: rng.normal(size=(len(bags.lengths), DIM_OF[name])).astype(np.float32)
                 for name, bags in ragged.items()}
    with open_engine("sum") as engine:
        one = engine.weight_gradients(ragged, gradients, dict.fromkeys(ragged))
        other = engine.weight_gradients(keyed, join(keyed, gradients), dict.fromkeys(ragged))
        assert one.keys() == other.keys() == ragged.keys()
        for name in one:
            assert np.array_equal(one[name], other[name])


def test_each_id_is_a_bag_without_lengths():
    with open_engine() as engine:
        keyed = Keyed(("fb", "fa"), np.array([1, 2, 6]), samples=[1, 2])
        found = engine.lookup(keyed)
        rows = np.concatenate([engine["a"][[2, 6]].reshape(-1), engine["b"][[1]].reshape(-1)])
        assert np.array_equal(found, rows)
        even = engine.lookup(Keyed(("fa", "fb"), np.array([3, 4, 5, 6])))
        assert np.array_equal(even, np.concatenate([engine["a"][[3, 4]], engine["b"][[5, 6]]], 1))


def test_rows_of_the_output_may_be_longer():
    keyed = Keyed(("fa", "fb"), np.array([1, 2, 3]), np.array([1, 0, 0, 2]))
    with open_engine() as engine:
        expected = engine.lookup(keyed)
        wide = np.full((2, 9), np.nan, np.float32)
        engine.lookup(keyed, wide[:, 2:6])
        assert np.array_equal(wide[:, 2:6], expected)
        assert np.isnan(np.delete(wide, slice(2, 6), 1)).all()


def test_gradients_of_none_and_of_other_layouts():
    keyed = Keyed(("fa", "fb"), np.array([1, 2, 3]), np.array([1, 0, 0, 2]))
    gradient = np.asfortranarray(np.arange(8, dtype=np.float64).reshape(2, 4))
    with open_engine() as one, open_engine() as other:
        before = one["a"].read()
        one.update(keyed, None)
        one.flush()
        assert np.array_equal(one["a"].read(), before)
        one.update(keyed, gradient)
        other.update(keyed, np.ascontiguousarray(gradient, np.float32))
        one.flush()
        other.flush()
        for name in DIMS:
            assert np.array_equal(one[name].read(), other[name].read())


WRONG = {
    "names": (("fa", "fz"), [1, 2], [1, 1], None, None), "twice": (("fa", "fa"), [1, 2], [1, 1],
                                                                   None, None),
    "list": (["fa", "fb"], [1, 2], [1, 1], None, None),
    "multiple": (("fa", "fb"), [1, 2], [1, 1, 0], None, None),
    "negative": (("fa", "fb"), [1, 2], [-1, 3], None, None),
    "short": (("fa", "fb"), [1, 2], [1, 2], None, None),
    "long": (("fa", "fb"), [1, 2, 3], [1, 1], None, None),
    "weights": (("fa", "fb"), [1, 2], [1, 1], [1.0], None),
    "samples": (("fa", "fb"), [1, 2], [1, 1], None, [2]),
    "samples sum": (("fa", "fb"), [1, 2], [1, 1], None, [1, 2]),
    "samples less": (("fa", "fb"), [1, 2], [1, 1], None, [1, 0]),
    "huge": (("fa", "fb"), [1, 2], [2**62, 2**62, 2**62, 2**62 + 2], None, None),
    "unused": ((None, None), [1, 2], [1, 2], None, None),
    "type": (("fa", 7), [1, 2], [1, 1], None, None),
    "range": (("fa", "fb"), [1, 7], [1, 1], None, None),
}
SAYS = {
    "names": (embeng.UnknownNameError, "there is no feature 'fz'"),
    "twice": (ValueError, "features: 'fa' is there twice"),
    "list": (TypeError, "are a tuple of names"),
    "multiple": (ValueError, "lengths: 3 are not a multiple of 2 keys"),
    "negative": (ValueError, "lengths: key 0 has one that is negative or too large"),
    "short": (ValueError, "those of key 1 add up to 2 ids, and 1 values are left of 2"),
    "long": (ValueError, "they add up to 2, for 3 values"),
    "weights": (ValueError, "weights: there are 1, for 2 ids"),
    "samples": (ValueError, "samples: there are 1, for 2 keys"),
    "samples sum": (ValueError, "key 1 has 2, and 1 are left"),
    "samples less": (ValueError, "there are 2, and the keys have 1 samples"),
    "huge": (ValueError, "key 0 has one that is negative or too large"),
    "unused": (ValueError, "those of key 1 add up to 2 ids"),
    "type": (embeng.UnknownNameError, "there is no feature 7"),
    "range": (embeng.OutOfRangeError, "feature fb, sample 0: id 7 is outside table b"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_said_and_nothing_moves(name):
    features, values, lengths, weights, samples = WRONG[name]
    keyed = Keyed(features, np.array(values), np.array(lengths),
                  None if weights is None else np.array(weights, np.float32), samples)
    error, text = SAYS[name]
    with open_engine() as engine:
        before = {table: engine[table].read() for table in DIMS}
        out = np.full((1, 4), 7, np.float32)
        with pytest.raises(error, match=text):
            engine.lookup(keyed, out)
        assert (out == 7).all()
        with pytest.raises(error, match=text):
            engine.update(keyed, np.ones((1, 4), np.float32))
        engine.flush()
        for table in DIMS:
            assert np.array_equal(engine[table].read(), before[table])
        good = Keyed(("fa", "fb"), np.array([1, 2]), np.array([1, 1]))
        assert engine.lookup(good).shape == (1, 4)  # the call's memory is used again


def test_shapes_of_outputs_and_gradients_are_checked():
    keyed = Keyed(("fa", "fb"), np.array([1, 2]), np.array([1, 1]))
    blocks = keyed._replace(samples=[1, 1])
    with open_engine() as engine:
        with pytest.raises(ValueError, match=r"out: its shape is not that .*\(1, 4\)"):
            engine.lookup(keyed, np.zeros((1, 3), np.float32))
        with pytest.raises(ValueError, match=r"out: its shape is not that .*\(4,\)"):
            engine.lookup(blocks, np.zeros((1, 4), np.float32))
        with pytest.raises(TypeError, match="out: outputs are writable float32 arrays"):
            engine.lookup(keyed, np.zeros((1, 4)))
        with pytest.raises(ValueError, match=r"gradients: its shape is not that .*\(1, 4\)"):
            engine.update(keyed, np.zeros((2, 4), np.float32))


def test_a_sequence_feature_is_refused():
    tables = [embeng.Table("a", 5, 2)]
    with embeng.Engine(tables, [embeng.Feature("f", "a", max_sequence_length=2)]) as engine:
        with pytest.raises(ValueError, match="f: a keyed input: this is a sequence feature"):
            engine.lookup(Keyed(("f",), np.array([1]), np.array([1])))


def test_a_tuple_of_another_length_is_refused():
    short = tuple.__new__(Keyed, (("fa",), np.array([1])))
    with open_engine() as engine:
        with pytest.raises(ValueError, match="a keyed input: it has 2 members, not 5"):
            engine.lookup(short)


def test_arrays_are_let_go():
    values, lengths = np.array([1, 2], np.int64), np.array([1, 1], np.int32)
    weights, out = np.ones(2, np.float32), np.zeros((1, 4), np.float32)
    good = Keyed(("fa", "fb"), values, lengths, weights)
    bad = good._replace(features=("fa", "fz"))
    held = [values, lengths, weights, out]
    with open_engine() as engine:
        counts = [sys.getrefcount(array) for array in held]
        for _ in range(20):
            engine.lookup(good, out)
            engine.update(good, out)
            with pytest.raises(KeyError):
                engine.lookup(bad, out)
            with pytest.raises(KeyError):
                engine.update(bad, out)
        assert [sys.getrefcount(array) for array in held] == counts


def test_threads_look_up_at_once():
    rng = np.random.default_rng(11)
    with open_engine() as engine:
        jobs = []
        for _ in range(4):
            lengths = rng.integers(0, 4, 4 * 50)
            keyed = Keyed(tuple(DIM_OF), rng.integers(0, ROWS, lengths.sum()), lengths)
            jobs.append((keyed, engine.lookup(keyed)))
        wrong = []

        def run(keyed, expected):
            for _ in range(200):
                if not np.array_equal(engine.lookup(keyed), expected):
                    wrong.append(keyed)

        threads = [threading.Thread(target=run, args=job) for job in jobs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong


def test_the_strict_protocol_takes_it():
    keyed = Keyed(("fa", "fc", "fb", "fa2"), np.array([1, 2, 3, 4]), np.array([1, 1, 1, 1]))
    with open_engine() as one, open_engine() as other:
        one.enqueue(keyed)
        activations = one.dequeue()
        joined = np.concatenate([activations[name] for name in DIM_OF], 1)
        assert np.array_equal(joined, other.lookup(keyed))
        one.apply_gradients({name: np.ones_like(part) for name, part in activations.items()})
        other.update(keyed, np.ones_like(joined))
        one.flush()
        other.flush()
        for name in DIMS:
            assert np.array_equal(one[name].read(), other[name].read())


def test_features_that_were_added_are_known():
    with open_engine() as engine:
        engine.lookup(Keyed(("fa",), np.array([1])))
        engine.add([embeng.Table("d", 3, 2, initializer=embeng.initializers.constant(4.0))],
                   [embeng.Feature("d", "d")])
        found = engine.lookup(Keyed(("d", "fb"), np.array([1, 2])))
        assert np.array_equal(found, [[*engine["b"][2], 4.0, 4.0]])

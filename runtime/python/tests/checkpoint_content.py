# SPDX-License-Identifier: MIT
"""Small engines whose content tests of checkpoints compare bit by bit."""
import numpy as np
import pytest

import embeng

RATE = 0.1


def bits(array):
    return np.asarray(array, np.float32).view(np.uint32)


def same(one, other):
    one, other = np.asarray(one), np.asarray(other)
    assert one.shape == other.shape
    assert np.array_equal(bits(one), bits(other))


def make_tables(kinds=("adam", "rowwise_adagrad")):
    makers = {"adam": lambda: embeng.optimizers.adam_corrected(RATE),
              "adagrad": lambda: embeng.optimizers.adagrad_epsilon(RATE)}
    optimizers = [makers.get(kind, lambda kind=kind: embeng.Optimizer(kind, RATE))()
                  for kind in kinds]
    return [embeng.Table("users", 300, 8, optimizer=optimizers[0]),
            embeng.Table("shop/item.x", 70, 5, optimizer=optimizers[-1])]


def train(engine, seed=1, steps=3):
    random = np.random.default_rng(seed)
    print("seed", seed)
    for _ in range(steps):
        features, gradients = {}, {}
        for table in engine.tables:
            features[table.name] = random.integers(0, table.vocabulary_size, 40)
            gradients[table.name] = random.normal(size=(40, table.dim)).astype(np.float32)
        engine.update(features, gradients)
    return engine


@pytest.fixture
def engine():
    with embeng.Engine(make_tables()) as opened:
        yield train(opened)


@pytest.fixture
def fresh():
    with embeng.Engine(make_tables()) as opened:
        yield opened


def content(engine):
    found = {}
    for view in engine:
        for slot in (None, *view.slots):
            found[view.name, slot] = view.read(slot=slot)
    return found


def assert_same_engines(one, other):
    first, second = content(one), content(other)
    assert first.keys() == second.keys()
    for key in first:
        same(first[key], second[key])


def assert_untouched(engine, before, call, error, *words):
    """`call` fails, its sentence has all the words, and no number of the engine changed."""
    with pytest.raises(error) as caught:
        call()
    for word in words:
        assert word in str(caught.value)
    after = content(engine)
    for key in before:
        same(before[key], after[key])

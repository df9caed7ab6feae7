# SPDX-License-Identifier: MIT
"""Lookups of each form of input that the backend has are those of numpy."""
from typing import Any

import keras
import numpy
import pytest
from keras_peers import (BACKEND, DIM, combine, make_configs, make_feature, make_ragged,
                         make_sparse, make_table, read_rows)

from embeng.keras import DistributedEmbedding

BAGS = [[1], [2, 3, 4, 5], [7, 7], [29, 0, 3]]
WEIGHTS = [[0.5], [1.0, 2.0, 3.0, 4.0], [1.5, 0.25], [2.0, 1.0, 0.5]]
COMBINERS = ("mean", "sum", "sqrtn")


def close(found: Any, wanted: Any) -> None:
    numpy.testing.assert_allclose(keras.ops.convert_to_numpy(found), wanted, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("placement", ["auto", "sparsecore", "default_device"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("combiner", COMBINERS)
@pytest.mark.parametrize("form", ["ragged", "sparse", "padded", "lists"])
def test_bags(form: str, combiner: str, weighted: bool, placement: str) -> None:
    table = make_table(combiner=combiner, placement=placement)
    layer = DistributedEmbedding(make_feature(table, ids=4))
    make = {"ragged": make_ragged, "sparse": make_sparse, "lists": lambda bags, kind: bags,
            "padded": lambda bags, kind: numpy.array(
                [bag + [-1 if kind == "int32" else 9.0] * (4 - len(bag)) for bag in bags], kind)}
    weights = make[form](WEIGHTS, "float32") if weighted else None
    found = layer(make[form](BAGS, "int32"), weights)
    close(found, combine(read_rows(layer), BAGS, WEIGHTS if weighted else None, combiner))


@pytest.mark.parametrize("combiner", COMBINERS)
def test_one_id_a_sample(combiner: str) -> None:
    layer = DistributedEmbedding(make_feature(make_table(combiner=combiner), ids=None))
    rows = read_rows(layer)
    ids, weights = numpy.array([3, 0, 29]), numpy.array([2.0, 0.5, 0.0], "float32")
    close(layer(ids), rows[ids])
    close(layer(ids, weights), rows[ids] * weights[:, None] if combiner == "sum" else rows[ids])


def test_the_last_dimension_is_combined() -> None:
    layer = DistributedEmbedding(make_feature(make_table()))
    ids = numpy.arange(24).reshape(2, 3, 4) % 30
    found = layer(keras.ops.convert_to_tensor(ids, "int32"))
    assert found.shape == (2, 3, DIM)
    close(found, read_rows(layer)[ids].mean(axis=2))


@pytest.mark.parametrize("samples", [1, 5, 16, 40])
def test_any_size_of_batch(samples: int) -> None:
    layer = DistributedEmbedding(make_feature(make_table()))
    ids = numpy.arange(samples * 3, dtype="int32").reshape(samples, 3) % 30
    close(layer(ids), combine(read_rows(layer), ids))


def test_no_sample() -> None:
    layer = DistributedEmbedding(make_feature(make_table()))
    assert layer(numpy.zeros((0, 3), "int32")).shape == (0, DIM)


def test_preprocessed_inputs_give_the_same() -> None:
    layer = DistributedEmbedding(make_configs())
    ids = {"a": numpy.ones((2, 3), int), "n": {"b": numpy.array([1, 2]),
                                               "c": numpy.array([[1, 2], [3, 4]])}}
    first, second = layer(ids), layer(layer.preprocess(ids))
    for one, other in zip(keras.tree.flatten(first), keras.tree.flatten(second), strict=True):
        close(one, keras.ops.convert_to_numpy(other))


def test_default_device_is_trained_by_the_model() -> None:
    table = make_table(placement="default_device", optimizer="adam")
    layer = DistributedEmbedding(make_feature(table, ids=None))
    assert [tuple(v.shape) for v in layer.trainable_variables] == [(30, 4)]
    assert layer.engine is None


def test_both_placements_side_by_side() -> None:
    first, second = make_table("t"), make_table("u", placement="default_device")
    layer = DistributedEmbedding({"a": make_feature(first), "b": make_feature(second)})
    ids = numpy.array([[1, 2, 3]])
    found = layer({"a": ids, "b": ids})
    assert set(layer.get_embedding_tables()) == {"t", "u"}
    for name, feature in (("t", "a"), ("u", "b")):
        close(found[feature], combine(read_rows(layer, name), ids))


@pytest.mark.sample
def test_an_id_outside_of_its_table_is_named() -> None:
    layer = DistributedEmbedding({"clicks": make_feature(make_table())})
    with pytest.raises(Exception, match="feature clicks.*sample 1.*30"):
        found = layer({"clicks": numpy.array([[1, 2, 3], [4, 30, 5]])})
        keras.ops.convert_to_numpy(found["clicks"])


def test_another_structure_is_refused() -> None:
    layer = DistributedEmbedding(make_configs())
    with pytest.raises(ValueError, match="inputs have another structure.*a, n.b, n.c"):
        layer({"a": numpy.ones((2, 3), int)})


@pytest.mark.skipif(BACKEND != "jax", reason="jit is JAX's")
def test_inside_of_jit() -> None:
    import jax

    layer = DistributedEmbedding(make_feature(make_table()))

    @jax.jit
    def run(trained: Any, ids: Any) -> Any:
        return layer.stateless_call(trained, [], ids)[0]

    ids = numpy.arange(12).reshape(4, 3)
    found = run([v.value for v in layer.trainable_variables], jax.numpy.asarray(ids))
    close(found, combine(read_rows(layer), ids))


@pytest.mark.skipif(BACKEND != "jax", reason="padding is JAX's")
def test_coordinates_of_jax_may_be_unsorted_and_padded() -> None:
    import jax.numpy as jnp
    from jax.experimental import sparse

    layer = DistributedEmbedding(make_feature(make_table()))
    indices = jnp.array([[1, 0], [0, 1], [0, 0], [2, 4]])  # the last is padding
    ids = sparse.BCOO((jnp.array([5, 6, 7, 99]), indices), shape=(2, 4))
    close(layer(ids), combine(read_rows(layer), [[7, 6], [5]]))

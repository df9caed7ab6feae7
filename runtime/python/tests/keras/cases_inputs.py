# SPDX-License-Identifier: MIT
"""Lookups of each form of input that the backend has are those of numpy."""
import json
from collections import namedtuple
from typing import Any

import keras
import numpy
import pytest
from keras_peers import (BACKEND, DIM, combine, make_configs, make_feature, make_ragged,
                         make_sparse, make_table, read_rows)

import embeng
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


def test_keys_that_look_alike_are_two_features() -> None:
    table = make_table()
    layer = DistributedEmbedding({"a.b": make_feature(table, ids=None),
                                  "a": {"b": make_feature(table, ids=None)}})
    found = layer({"a.b": numpy.array([1]), "a": {"b": numpy.array([2])}})
    close(found["a.b"], read_rows(layer)[[1]])
    close(found["a"]["b"], read_rows(layer)[[2]])


def test_named_tuples_come_back_from_a_configuration() -> None:
    pair = namedtuple("pair", "x y")
    table = make_table()
    layer = DistributedEmbedding(pair(make_feature(table), [make_feature(table, ids=None)]))
    ids = pair(numpy.array([[1, 2, 3]]), [numpy.array([4])])
    found = DistributedEmbedding.from_config(layer.get_config())(ids)
    close(found.x, combine(read_rows(layer), [[1, 2, 3]]))
    close(found.y[0], read_rows(layer)[[4]])


# -- ids and weights that are wrong ------------------------------------------------------

@pytest.mark.parametrize("kind", ["int64", "uint32", "uint64"])
@pytest.mark.parametrize("form", ["ids", "bags", "lists", "preprocessed"])
def test_no_large_id_becomes_another_row(form: str, kind: str) -> None:
    layer = DistributedEmbedding({"a": make_feature(make_table(), ids=None)})
    for number in (2**32 - 1, 2**32 + 5, 2**63 - 1, 2**64 - 1):
        if number > numpy.iinfo(kind).max:
            continue
        ids = numpy.array([number], kind)
        given = {"ids": ids, "bags": ids[:, None], "lists": [ids, ids[:0]],
                 "preprocessed": [[number], [1, 2]]}[form]
        with pytest.raises(Exception, match=f"feature a.*id {number} "):
            read = layer.preprocess({"a": given}) if form == "preprocessed" else {"a": given}
            keras.ops.convert_to_numpy(layer(read)["a"])


def test_no_large_id_of_a_tensor_becomes_another_row() -> None:
    if BACKEND == "torch":
        pytest.skip("Keras has no unsigned tensors of torch")
    layer = DistributedEmbedding({"a": make_feature(make_table(), ids=None)})
    for kind in ("uint32", "uint64") if BACKEND == "tensorflow" else ("uint32",):
        ids = keras.ops.convert_to_tensor(numpy.array([numpy.iinfo(kind).max], kind), dtype=kind)
        with pytest.raises(Exception, match="feature a.*is outside table t"):
            keras.ops.convert_to_numpy(layer({"a": ids})["a"])
        close(layer({"a": keras.ops.cast(numpy.array([3]), kind)})["a"], read_rows(layer)[[3]])


@pytest.mark.parametrize("given", [None, {"x": 1}, "hi", [[1, "x"], [2]], [[[1, 2], [3]], [[4]]],
                                   numpy.array([numpy.nan]), numpy.array(3),
                                   embeng.Ragged(numpy.array([1, 2]), splits=numpy.array([0, 1])),
                                   embeng.Ragged(numpy.array([[1, 2]]))])
def test_ids_that_are_no_ids_are_named(given: Any) -> None:
    layer = DistributedEmbedding({"a": make_feature(make_table())})
    with pytest.raises(ValueError, match="feature a"):
        layer({"a": given})


@pytest.mark.parametrize(("ids", "weights"), [
    (numpy.ones((4, 3), int), numpy.ones((6, 2))), (numpy.ones((4, 3), int), numpy.ones((3, 4))),
    (numpy.ones((4, 3), int), numpy.ones((4, 1))), (numpy.ones((4, 3), int), numpy.ones(3)),
    (numpy.ones(3, int), numpy.ones(2)), (numpy.ones(3, int), numpy.ones((1, 3))),
    ([[1, 2, 3], [4]], [[1.0], [1.0, 2.0, 3.0]]), ([[1, 2, 3], [4]], numpy.ones((2, 3)))])
def test_weights_of_another_shape_are_refused(ids: Any, weights: Any) -> None:
    if BACKEND == "jax" and isinstance(ids, list):
        weights = [[1.0, 2.0, 3.0, 4.0], [5.0]]  # bags are matrices there
    layer = DistributedEmbedding({"a": make_feature(make_table(combiner="sum"))})
    with pytest.raises(ValueError, match="feature a: its (bags of )?weights"):
        layer({"a": ids}, {"a": weights})


def test_some_features_may_have_weights() -> None:
    table = make_table()
    layer = DistributedEmbedding({"a": make_feature(table), "b": make_feature(table)})
    ids, weights = numpy.array([[1, 2, 3]]), numpy.array([[1.0, 2.0, 3.0]], "float32")
    found = layer({"a": ids, "b": ids}, {"a": weights, "b": None})
    close(found["a"], combine(read_rows(layer), ids, weights))
    close(found["b"], combine(read_rows(layer), ids))


# -- sparse and compiled -----------------------------------------------------------------

@pytest.mark.skipif(BACKEND != "torch", reason="COO is torch's")
def test_an_index_of_torch_may_come_twice() -> None:
    import torch

    layer = DistributedEmbedding(make_feature(make_table()))
    places = torch.tensor([[1, 0, 0], [0, 1, 1]])
    ids = torch.sparse_coo_tensor(places, torch.tensor([5, 2, 3]), (2, 2))
    weights = torch.sparse_coo_tensor(places, torch.tensor([1.0, 2.0, 3.0]), (2, 2))
    close(layer(ids), combine(read_rows(layer), [[2, 3], [5]]))
    close(layer(ids, weights), combine(read_rows(layer), [[2, 3], [5]], [[2.0, 3.0], [1.0]]))


@pytest.mark.skipif(BACKEND == "tensorflow", reason="TensorFlow's lookups take any rank")
def test_sparse_ids_of_another_rank_are_refused() -> None:
    layer = DistributedEmbedding({"a": make_feature(make_table())})
    ids = numpy.arange(8).reshape(2, 2, 2)
    if BACKEND == "torch":
        import torch

        given = torch.from_numpy(ids).to_sparse()
    else:
        from jax.experimental import sparse

        given = sparse.BCOO.fromdense(ids)
    with pytest.raises(ValueError, match=r"feature a: .* \(2, 2, 2\); give \[samples, ids\]"):
        layer({"a": given})


@pytest.mark.skipif(BACKEND != "jax", reason="BCOO is JAX's")
@pytest.mark.parametrize("layout", [{"n_batch": 1}, {"n_dense": 1}])
def test_layouts_of_jax(layout: dict[str, int]) -> None:
    import jax.numpy as jnp
    from jax.experimental import sparse

    layer = DistributedEmbedding(make_feature(make_table()))
    ids = jnp.array([[1, 2, 3], [4, 5, 6]])
    close(layer(sparse.BCOO.fromdense(ids, **layout)), combine(read_rows(layer), ids))


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


def test_lists_stand_for_the_tuples_of_a_file() -> None:
    layer = DistributedEmbedding({"a": (make_feature(make_table(), ids=None),)})
    config = json.loads(json.dumps(layer.get_config()))
    again = DistributedEmbedding.from_config(config)
    close(again({"a": (numpy.array([2]),)})["a"][0], read_rows(again)[[2]])


def test_keys_may_be_long() -> None:
    table, key = make_table(), "clicked_items_of_the_last_ninety_days_by_category_é"
    layer = DistributedEmbedding({key: {key: [make_feature(table, ids=None),
                                              make_feature(table, ids=None)]}})
    found = layer({key: {key: [numpy.array([1]), numpy.array([2])]}})[key][key]
    for part, row in zip(found, (1, 2), strict=True):
        close(part, read_rows(layer)[[row]])

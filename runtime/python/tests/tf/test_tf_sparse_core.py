# SPDX-License-Identifier: MIT
"""TPUEmbeddingV2: entries, lookups and updates against numpy and TensorFlow."""
from pathlib import Path
from typing import Any

import numpy
import pytest

import embeng
import embeng.tf as tf

api = tf.tpu.experimental.embedding
ROWS, DIM, BATCH = 12, 3, 4


def make_embedding(strategy: Any, combiner: str = "mean", optimizer: Any = None) -> Any:
    """Make a TPUEmbeddingV2 of one table, with bags a and dense ids b."""
    with strategy.scope():
        table = api.TableConfig(ROWS, DIM, api.RowIdInitializer(1), combiner=combiner, name="t")
        features = {"a": api.FeatureConfig(table, name="a", output_shape=[BATCH]),
                    "b": api.FeatureConfig(table, name="b", output_shape=[2, 2])}
        return api.TPUEmbeddingV2(features, optimizer or api.SGD(0.5))


def make_bags(rng: Any) -> tuple[Any, Any]:
    """Draw bags of 0 to 3 ids, and weights."""
    lengths = rng.integers(0, 4, BATCH)
    ids = tf.RaggedTensor.from_row_lengths(rng.integers(0, ROWS, lengths.sum()), lengths)
    weights = rng.uniform(0.5, 2, lengths.sum()).astype(numpy.float32)
    return ids, tf.RaggedTensor.from_row_lengths(weights, lengths)


@pytest.mark.sample
@pytest.mark.parametrize("combiner", ["sum", "mean", "sqrtn"])
@pytest.mark.parametrize("sparse", [True, False])
def test_lookups(make_strategy: Any, combiner: str, sparse: bool, rng: Any) -> None:
    """Bags with weights have TensorFlow's activations, and dense ids their rows."""
    embedding = make_embedding(make_strategy(1), combiner)
    ids, weights = make_bags(rng)
    dense = tf.constant([[3, 0], [7, 3]])
    given = {"a": ids.to_sparse() if sparse else ids, "b": dense}
    found, kept = embedding(given, {"a": weights.to_sparse() if sparse else weights, "b": None})
    expected = tf.nn.safe_embedding_lookup_sparse(
        embedding.embedding_tables["t"], ids.to_sparse(), weights.to_sparse(), combiner=combiner)
    numpy.testing.assert_allclose(found["a"].numpy(), expected.numpy(), rtol=1e-5)
    assert found["b"].numpy()[..., 0].tolist() == [[4, 1], [8, 4]]
    part = kept["t"]
    assert part.sample_count == 8 and part.row_pointers.numpy().tolist() == [len(
        part.sorted_token_ids)]
    tokens = part.sorted_token_ids.numpy()
    assert (numpy.diff(tokens) >= 0).all()


def test_equal_ids_are_one_entry(make_strategy: Any) -> None:
    """An id that a bag has twice is one entry with both gains; dense ids may have weights."""
    embedding = make_embedding(make_strategy(1), "sum")
    features = {"a": tf.ragged.constant([[5, 1, 5], [], [5], [2]], dtype=tf.int64),
                "b": tf.constant([[0, 0], [1, 1]])}
    weights = {"a": None, "b": tf.constant([[1.0, 2.0], [3.0, 4.0]])}
    kept = embedding.preprocess_features(features, weights)["t"]
    entries = list(zip(kept.sorted_token_ids.numpy().tolist(),
                       kept.sorted_sample_ids.numpy().tolist(),
                       kept.sorted_gains.numpy().tolist(), strict=True))
    assert entries == [(0, 4, 1), (0, 5, 2), (1, 0, 1), (1, 6, 3), (1, 7, 4), (2, 3, 1), (5, 0, 2),
                       (5, 2, 1)]
    found, _ = embedding.dequeue({"t": kept})
    assert found["a"].numpy()[:, 0].tolist() == [6 * 2 + 2, 0, 6, 3]
    assert found["b"].numpy()[..., 0].tolist() == [[1, 2], [6, 8]]


@pytest.mark.sample
def test_training_of_two_replicas(make_strategy: Any, tmp_path: Path, way: str) -> None:
    """Gradients of both replicas are one update, with a rate from the graph; it is saved."""
    strategy = make_strategy(2)
    rate = tf.Variable(1.0)
    embedding = make_embedding(strategy, "sum", api.Adagrad(lambda: rate))

    @tf.function
    def step() -> Any:
        def run() -> Any:
            number = tf.cast(tf.distribute.get_replica_context().replica_id_in_sync_group, tf.int64)
            found, kept = embedding.embedding_lookup(
                {"a": tf.stack([number, number, number, number]), "b": tf.ones([2, 2], tf.int64)})
            embedding.apply_gradients({"a": tf.ones_like(found["a"]), "b": None}, kept)
            return found["a"]
        return strategy.run(run)

    step()
    rate.assign(0.5)
    step()
    # Row 0 has 4 of replica 0, row 1 has 4 of replica 1 and zeros of b.
    rows, total = numpy.array([1.0, 2.0]), 0.1
    for lr in (1.0, 0.5):
        total += 16
        rows -= lr * 4 / numpy.sqrt(total)
    table = embedding.variables["t"]["parameters"]
    numpy.testing.assert_allclose(table.numpy()[:2, 0], rows, rtol=1e-5)
    saved = tf.train.Checkpoint(e=embedding).save(str(tmp_path / "a"))
    trained = table.numpy()
    other = make_embedding(strategy, "sum", api.Adagrad(1.0))
    tf.train.Checkpoint(e=other).restore(saved)
    other.build()
    assert (other.embedding_tables["t"].numpy() == trained).all()
    config = other._table_config[0]
    assert (other.variables[config]["accumulators"].numpy()[0] == numpy.float32(32.1)).all()
    found, _ = other({"a": tf.zeros([BATCH], tf.int64), "b": tf.zeros([2, 2], tf.int64)})
    assert (found["a"].numpy() == trained[0]).all()


def test_refusals(make_strategy: Any) -> None:
    """Wrong ids, shapes, types and an unknown shape are named."""
    strategy = make_strategy(1)
    embedding = make_embedding(strategy)
    dense = {"a": tf.zeros([BATCH], tf.int64), "b": tf.zeros([2, 2], tf.int64)}
    with pytest.raises(RuntimeError, match="unbuilt"):
        embedding.apply_gradients({"a": None, "b": None}, {})
    with pytest.raises(embeng.OutOfRangeError, match="a, sample 3: id 12 is outside table t"):
        embedding({**dense, "a": tf.constant([0, 1, 2, ROWS])})
    with pytest.raises(embeng.InvalidError, match="3 samples, and the output shape has 4"):
        embedding({**dense, "a": tf.constant([0, 1, 2])})
    with pytest.raises(embeng.OutOfRangeError, match="sample 3: id 1099511627776 is outside"):
        embedding({**dense, "a": tf.constant([0, 1, 2, 2**40])})
    with pytest.raises(embeng.OutOfRangeError, match=r"indices\[0\]\[0\] is 5, and the shape"):
        embedding({**dense, "a": tf.SparseTensor([[5, 0]], [1], [BATCH, 1])})
    with pytest.raises(embeng.InvalidError, match="1 weights for 2 ids"):
        embedding({**dense, "a": tf.ragged.constant([[1, 2], [], [], []], dtype=tf.int64)},
                  {"a": tf.ragged.constant([[1.0], [], [], []]), "b": None})
    with pytest.raises(ValueError, match="Expect weight to be Tensor"):
        embedding(dense, {"a": tf.ragged.constant([[1.0]]), "b": None})
    found, kept = embedding(dense)
    with pytest.raises(ValueError, match="Expected shape"):
        embedding.apply_gradients({"a": tf.zeros([3, DIM]), "b": None}, kept)
    with pytest.raises(ValueError, match="non-tensor"):
        embedding.apply_gradients({"a": 1, "b": None}, kept)
    with strategy.scope():
        table = api.TableConfig(ROWS, DIM, name="t")
        loose = api.TPUEmbeddingV2(api.FeatureConfig(table, name="x"), api.SGD(0.1))
        with pytest.raises(embeng.NotSupportedError, match=r"output_shape=\[batch, 2\]"):
            api.TPUEmbeddingV2(api.FeatureConfig(table, max_sequence_length=2), api.SGD(0.1))
    assert loose(tf.constant([1, 2, 3]))[0].shape == (3, DIM)
    with pytest.raises(ValueError, match="not fully defined"):
        tf.function(lambda ids: loose(ids),
                    input_signature=[tf.TensorSpec([None], tf.int32)])(tf.constant([1]))

# SPDX-License-Identifier: MIT
"""EmbeddingConfigSpec: columns, parameters and dictionaries against formulas."""
from pathlib import Path
from typing import Any

import numpy
import pytest

tf = pytest.importorskip("tensorflow")

import embeng  # noqa: E402
from embeng.tf.config_spec import (  # noqa: E402
    AdagradParameters,
    AdamParameters,
    EmbeddingConfigSpec,
    FeatureConfig,
    SpecEmbedding,
    StochasticGradientDescentParameters,
    TableConfig,
)

columns = tf.feature_column
tpu = tf.compat.v1.tpu.experimental
SGD = StochasticGradientDescentParameters
ROWS, DIM = 6, 2
START = numpy.arange(ROWS * DIM, dtype=numpy.float32).reshape(ROWS, DIM)


def open_tables(features: Any = None, table: Any = None, parameters: Any = None,
                **settings: Any) -> SpecEmbedding:
    """Open one table t of known numbers."""
    table = table or TableConfig(ROWS, DIM, tf.constant_initializer(START), "sum")
    return EmbeddingConfigSpec(
        optimization_parameters=parameters or SGD(0.5), table_to_config_dict={"t": table},
        feature_to_config_dict=features or {"f": FeatureConfig("t")}, **settings).open(cores=1)


def rows_of(embedding: SpecEmbedding, table: str = "t") -> Any:
    """Read a table."""
    return embedding.engine[table].read()


def train(embedding: SpecEmbedding, inputs: Any, factor: float = 1.0) -> Any:
    """Run a step in a graph whose gradients are all `factor`; return the activations."""
    @tf.function
    def step() -> Any:
        with tf.GradientTape() as tape:
            found = embedding(inputs)
            loss = factor * sum(tf.reduce_sum(x) for x in found.values())
        return tape.gradient(loss, embedding.anchor), found

    gradient, found = step()
    assert gradient == 0
    return found


@pytest.mark.sample
def test_columns() -> None:
    """The columns of the documentation's program share and train tables."""
    a, b, c = (columns.categorical_column_with_identity(name, ROWS) for name in "abc")
    start = tf.constant_initializer(START)
    shared = tpu.shared_embedding_columns([a, b], DIM, combiner="sum", initializer=start)
    alone = tpu.embedding_column(c, DIM, combiner="mean", initializer=start)
    spec = EmbeddingConfigSpec([alone, *shared], AdagradParameters(0.5, initial_accumulator=0.25))
    embedding = spec.open(cores=1)
    assert [table.name for table in embedding.engine.tables] == ["c", "a_b_shared_embedding"]
    inputs = {"a": tf.constant([[0], [1]]), "b": tf.sparse.from_dense([[1, 2], [3, 0]]),
              "c": tf.constant([[4, 5], [1, 1]])}
    found = train(embedding, inputs)
    numpy.testing.assert_array_equal(found["a_shared_embedding"], START[[0, 1]])
    numpy.testing.assert_array_equal(found["b_shared_embedding"],
                                     [START[1] + START[2], START[3]])
    numpy.testing.assert_allclose(found["c_embedding"], [START[[4, 5]].mean(0), START[1]])
    counts = numpy.array([1, 2, 1, 1, 0, 0], numpy.float32)[:, None]
    numpy.testing.assert_allclose(rows_of(embedding, "a_b_shared_embedding"),
                                  START - 0.5 * counts / numpy.sqrt(0.25 + counts ** 2), rtol=1e-6)
    joined = embedding.input_layer(inputs)
    found = embedding(inputs)
    numpy.testing.assert_array_equal(joined, numpy.concatenate(
        [found[name] for name in ("a_shared_embedding", "b_shared_embedding", "c_embedding")], 1))
    embedding.engine.close()


def test_weighted_and_sequence_columns() -> None:
    """Weights of a column reach the combiner; a sequence keeps its rows."""
    weighted = columns.weighted_categorical_column(
        columns.categorical_column_with_identity("w", ROWS), "weights")
    sequence = columns.sequence_categorical_column_with_identity("s", ROWS)
    start = tf.constant_initializer(START)
    embedding = EmbeddingConfigSpec([
        tpu.embedding_column(weighted, DIM, "sum", start),
        tpu.embedding_column(sequence, DIM, "sum", start, max_sequence_length=3),
    ], AdamParameters(0.1)).open(cores=1)
    found = train(embedding, {
        "w": tf.sparse.from_dense([[1, 2], [3, 0]]),
        "weights": tf.sparse.from_dense([[0.5, 2.0], [3.0, 0.0]]),
        "s": tf.sparse.from_dense([[1, 2], [3, 0]])})
    numpy.testing.assert_allclose(found["w_weighted_by_weights_embedding"],
                                  [0.5 * START[1] + 2 * START[2], 3 * START[3]])
    numpy.testing.assert_array_equal(found["s_embedding"], [
        [START[1], START[2], [0, 0]], [START[3], [0, 0], [0, 0]]])
    embedding.engine.close()


def test_clipping_and_multiplier() -> None:
    """The multiplier follows the step that counts updates, and is applied before the limit."""
    embedding = open_tables(clipping_limit=3.0,
                            experimental_gradient_multiplier_fn=lambda step: tf.cast(
                                step, tf.float32))
    expected = START.copy()
    for step in range(5):
        train(embedding, {"f": tf.constant([1, 2, 2])})
        expected[1] -= 0.5 * min(step, 3)
        expected[2] -= 0.5 * min(2 * step, 3)
        numpy.testing.assert_allclose(rows_of(embedding), expected)
    assert embedding.global_step == 5
    train(embedding, {"f": tf.constant([1])}, factor=-100.0)
    expected[1] += 0.5 * 3
    numpy.testing.assert_allclose(rows_of(embedding), expected)
    embedding.engine.close()


def test_rates() -> None:
    """A table has its own parameters, its own rate, or one by the step."""
    start = tf.constant_initializer(START)
    tables = {
        "own": TableConfig(ROWS, DIM, start, optimization_parameters=AdagradParameters(0.25)),
        "rate": TableConfig(ROWS, DIM, start, learning_rate=0.125),
        "step": TableConfig(ROWS, DIM, start, learning_rate_fn=lambda s: 1.0 / tf.cast(
            s + 1, tf.float32)),
    }
    spec = EmbeddingConfigSpec(
        optimization_parameters=SGD(0.5), table_to_config_dict=tables,
        feature_to_config_dict={name: FeatureConfig(name) for name in tables})
    step = tf.Variable(3, trainable=False, dtype=tf.int64)
    embedding = spec.open(global_step=step, cores=1)
    train(embedding, {name: tf.constant([1]) for name in tables})
    assert step == 3
    for name, moved in (("own", 0.25 / numpy.sqrt(0.1 + 1)), ("rate", 0.125), ("step", 0.25)):
        numpy.testing.assert_allclose(rows_of(embedding, name)[1], START[1] - moved, rtol=1e-6)
    embedding.engine.close()


def test_weight_key() -> None:
    """Weights are another input, of the ids' own kind."""
    embedding = open_tables({"f": FeatureConfig("t", weight_key="w"), "g": FeatureConfig("t", 2)})
    weights = tf.ragged.constant([[0.5, 2.0], [3.0]])
    ids = tf.ragged.constant([[1, 2], [3]])
    for f, w in ((ids, weights), (ids.to_sparse(), weights.to_sparse()),
                 (tf.constant([[1, 2], [3, 0]]), tf.constant([[0.5, 2.0], [3.0, 0.0]]))):
        found = embedding({"f": f, "w": w, "g": ids})
        numpy.testing.assert_allclose(found["f"], [0.5 * START[1] + 2 * START[2], 3 * START[3]])
        assert found["g"].shape == (2, 2, DIM)
    embedding.engine.close()


GOOD = {"feature_to_config_dict": {"f": FeatureConfig("t")},
        "table_to_config_dict": {"t": TableConfig(ROWS, DIM)}, "optimization_parameters": SGD(0.5)}


@pytest.mark.parametrize(("changes", "kind", "words"), [
    ({"table_to_config_dict": None}, ValueError, "give either feature_columns, or both"),
    ({"feature_columns": [tpu.embedding_column(
        columns.categorical_column_with_identity("a", 3), 2)]}, ValueError, "give either"),
    ({"feature_to_config_dict": None, "table_to_config_dict": None,
      "feature_columns": [columns.numeric_column("x")]}, TypeError, "'x' is a NumericColumn"),
    ({"optimization_parameters": tf.keras.optimizers.Adam()}, ValueError, "AdagradParameters"),
    ({"optimization_parameters": None}, ValueError, "StochasticGradientDescentParameters"),
    ({"clipping_limit": -1.0}, ValueError, "clipping_limit is -1.0"),
    ({"clipping_limit": float("nan")}, ValueError, "clipping_limit is nan"),
    ({"partition_strategy": "rows"}, ValueError, "give 'div' or 'mod'"),
    ({"profile_data_directory": "/tmp"}, embeng.NotSupportedError, "profile_data_directory"),
    ({"feature_to_config_dict": {"f": FeatureConfig("u")}}, ValueError, "no table 'u'"),
])
def test_refusals(changes: dict[str, Any], kind: Any, words: str) -> None:
    """Each thing that a specification lacks or cannot have is refused by name."""
    with pytest.raises(kind, match=words):
        EmbeddingConfigSpec(**{**GOOD, **changes})


def test_example(run_python: Any) -> None:
    """The documentation's program learns, and counts its steps."""
    path = Path(__file__).resolve().parents[2] / "examples" / "tensorflow_config_spec.py"
    done = run_python("import runpy, sys; runpy.run_path(sys.argv[1], run_name='__main__')",
                      str(path))
    assert done.returncode == 0, done.stderr[-2000:]
    found = dict(line.split(":", 1) for line in done.stdout.splitlines() if ":" in line)
    assert float(found["loss at last"]) < float(found["loss at first"]) * 0.7
    assert found["steps"].split() == ["220", "220"]


def test_two_rates() -> None:
    """A table has one rate."""
    table = TableConfig(ROWS, DIM, learning_rate=0.5, learning_rate_fn=lambda step: 0.5)
    with pytest.raises(embeng.InvalidError, match="table t: it has a learning_rate and"):
        open_tables(table=table)

# SPDX-License-Identifier: MIT
"""Steps of TPUEmbedding: numbers against numpy, the order of calls, what errors leave behind."""
from typing import Any

import numpy
import pytest

import embeng
import embeng.tf as tf
from embeng.tf import _session

pytestmark = pytest.mark.usefixtures("way")
api = tf.tpu.experimental.embedding
ROWS, DIM, BATCH = 20, 3, 4


def make_embedding(strategy: Any, optimizer: Any = None, combiner: str = "sum",
                   **options: Any) -> Any:
    """Make a TPUEmbedding of one table with features a and b."""
    initializer = tf.EngineInitializer(embeng.initializers.uniform(-1, 1, seed=7))
    with strategy.scope():
        table = api.TableConfig(ROWS, DIM, initializer, combiner=combiner, name="t")
        features = {"a": api.FeatureConfig(table, name="a"),
                    "b": api.FeatureConfig(table, name="b")}
        return api.TPUEmbedding(features, optimizer or api.SGD(0.1), **options)


def rows_of(embedding: Any, slot: str = "parameters") -> Any:
    """Return the rows of the table t or of a slot."""
    embedding._retrieve_variables()
    return embedding._variables["t"][slot].variables[0].numpy()


def spread(strategy: Any, features: Any) -> Any:
    """Give each replica its part of dense features."""
    count = strategy.num_replicas_in_sync

    def part(context: Any) -> Any:
        number = context.replica_id_in_sync_group
        return {key: value[number * len(value) // count:(number + 1) * len(value) // count]
                for key, value in features.items()}

    return strategy.experimental_distribute_values_from_function(part)


def step_once(embedding: Any) -> Any:
    """Dequeue and give the activations back as gradients."""
    activations = embedding.dequeue()
    embedding.apply_gradients(activations)
    return activations


@pytest.mark.sample
@pytest.mark.parametrize("replicas", [1, 2])
def test_loop_of_a_seed(make_strategy: Any, replicas: int, rng: Any) -> None:
    """A tf.range loop around enqueue() and strategy.run() trains as numpy does."""
    strategy = make_strategy(replicas)
    embedding = make_embedding(strategy)
    ids = rng.integers(0, ROWS, (6 * BATCH, 2))
    data = tf.data.Dataset.from_tensor_slices({"a": ids[:, :1], "b": ids[:, 1:]}).batch(
        BATCH, drop_remainder=True)
    options = tf.distribute.InputOptions(experimental_prefetch_to_device=False)
    iterator = iter(strategy.experimental_distribute_dataset(data, options))

    @tf.function
    def train(iterator: Any, steps: Any) -> Any:
        def tpu_step() -> Any:
            with tf.GradientTape() as tape:
                activations = embedding.dequeue()
                tape.watch(activations)
                loss = tf.add_n([tf.reduce_sum(v * v) / 2 for v in activations.values()])
            embedding.apply_gradients(tape.gradient(loss, activations))

        for _ in tf.range(steps):
            embedding.enqueue(next(iterator), training=True)
            strategy.run(tpu_step)

    train(iterator, tf.constant(2))
    train(iterator, tf.constant(4))
    with embeng.Engine([embeng.Table("t", ROWS, DIM, initializer=embeng.initializers.uniform(
            -1, 1, seed=7))]) as engine:
        rows = engine["t"].read().astype(numpy.float64)
    for batch in ids.reshape(6, BATCH * 2):
        gradient = numpy.zeros_like(rows)
        numpy.add.at(gradient, batch, rows[batch])
        rows -= 0.1 * gradient
    numpy.testing.assert_allclose(rows_of(embedding), rows, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["sparse", "ragged"])
@pytest.mark.parametrize("combiner", ["sum", "mean", "sqrtn"])
def test_weighted_bags(make_strategy: Any, kind: str, combiner: str, rng: Any) -> None:
    """Bags with weights have the activations of tf.nn.safe_embedding_lookup_sparse."""
    strategy = make_strategy(1)
    embedding = make_embedding(strategy, combiner=combiner)
    lengths = rng.integers(0, 4, BATCH)
    ids = tf.RaggedTensor.from_row_lengths(rng.integers(0, ROWS, lengths.sum()), lengths)
    weights = tf.RaggedTensor.from_row_lengths(
        rng.uniform(0.5, 2, lengths.sum()).astype(numpy.float32), lengths)
    embedding.build({"a": tf.TensorShape([BATCH, 4]), "b": tf.TensorShape([BATCH])})
    given = (ids, weights) if kind == "ragged" else (ids.to_sparse(), weights.to_sparse())
    other = tf.zeros([BATCH], tf.int64)
    embedding.enqueue({"a": given[0], "b": other}, {"a": given[1], "b": None}, training=False)
    found = strategy.run(embedding.dequeue)["a"]
    expected = tf.nn.safe_embedding_lookup_sparse(
        tf.constant(rows_of(embedding)), ids.to_sparse(), weights.to_sparse(), combiner=combiner)
    numpy.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)


def test_sequences(make_strategy: Any) -> None:
    """A sequence has a row for each of its first ids, then zeros; with ids of int32, too."""
    strategy = make_strategy(1)
    with strategy.scope():
        table = api.TableConfig(ROWS, DIM, api.RowIdInitializer(1), combiner="mean")
        embedding = api.TPUEmbedding(
            [api.FeatureConfig(table, max_sequence_length=2), api.FeatureConfig(
                table, output_shape=[2, 3])], api.SGD(0.5))
    ragged = tf.ragged.constant([[4, 5, 6], [7]], dtype=tf.int32)
    embedding.enqueue([ragged.to_sparse(), ragged])
    first, second = strategy.run(embedding.dequeue)
    assert first.numpy()[..., 0].tolist() == [[5, 6], [8, 0]]
    assert second.numpy()[..., 0].tolist() == [[5, 6, 7], [8, 0, 0]]
    embedding.apply_gradients([tf.ones_like(first), None])
    assert embedding.embedding_tables[table].numpy()[3:9, 0].tolist() == [4, 4.5, 5.5, 7, 7.5, 9]


def make_sparse(indices: Any, ids: Any) -> Any:
    """Make a sparse tensor of two samples."""
    return tf.SparseTensor(indices, ids, [2, 3])


@pytest.mark.parametrize(("make_wrong", "error", "match"), [
    (lambda: make_sparse([[1, 0], [0, 0]], [1, 2]), embeng.InvalidError, "comes after|in order"),
    (lambda: make_sparse([[7, 0]], [1]), embeng.OutOfRangeError, r"indices\[0\]\[0\] is 7"),
    (lambda: make_sparse([[-1, 0]], [1]), embeng.OutOfRangeError, "is -1"),
    (lambda: tf.ragged.constant([[ROWS], [2]], dtype=tf.int64), embeng.OutOfRangeError,
     "sample 0: id 20"),
    (lambda: tf.ragged.constant([[1.5], [2]]), ValueError, "ids of type float32"),
], ids=["order", "outside", "negative", "id", "float"])
@pytest.mark.parametrize("sequence", [0, 3])
def test_inputs_that_are_wrong(make_strategy: Any, make_wrong: Any, error: Any, match: str,
                               sequence: int) -> None:
    """Each is refused by name, as bags and as a sequence; numpy's arrays are taken."""
    strategy = make_strategy(1)
    with strategy.scope():
        table = api.TableConfig(ROWS, DIM, api.RowIdInitializer(1), combiner="sum")
        embedding = api.TPUEmbedding(
            api.FeatureConfig(table, max_sequence_length=sequence, name="a"), api.SGD(0.5))
    embedding.build(tf.TensorShape([2, 3]))
    with pytest.raises(error, match=match):
        embedding.enqueue(make_wrong())
    if not sequence:
        embedding.enqueue(numpy.array([1, 2]), training=False)
        assert strategy.run(embedding.dequeue).numpy()[:, 0].tolist() == [2, 3]


def test_rates_in_the_graph(make_strategy: Any) -> None:
    """A callable rate is evaluated at each step, and equal callables are one rate."""
    strategy = make_strategy(2)
    rate = tf.Variable(1.0)
    embedding = make_embedding(strategy, api.SGD(lambda: rate * 2.0))
    before = rows_of_built(embedding)

    @tf.function
    def step() -> None:
        embedding.enqueue(spread(strategy, {k: tf.constant([[5], [6]]) for k in "ab"}))
        strategy.run(lambda: embedding.apply_gradients(
            tf.nest.map_structure(tf.ones_like, embedding.dequeue())))

    step()
    rate.assign(0.25)
    step()
    change = before - rows_of(embedding)
    numpy.testing.assert_allclose(change[5:7], numpy.full((2, DIM), 2 * 2.0 + 2 * 0.5), rtol=1e-5)
    assert not change[:5].any()


def rows_of_built(embedding: Any) -> Any:
    """Build for two replicas of one sample, and return the rows."""
    embedding.build(1)
    return rows_of(embedding)


@pytest.mark.sample
def test_order_is_refused_by_name(make_strategy: Any) -> None:
    """Calls that would wait for ever are errors that say what is missing."""
    strategy = make_strategy(1)
    embedding = make_embedding(strategy)
    with pytest.raises(RuntimeError, match="unbuilt"):
        embedding.dequeue()
    features = {k: tf.constant([1, 2]) for k in "ab"}
    embedding.build(2)
    with pytest.raises(embeng.StepOrderError, match="nothing is enqueued"):
        embedding.dequeue()
    with pytest.raises(embeng.StepOrderError, match="no training batch was dequeued"):
        embedding.apply_gradients({"a": None, "b": None})
    embedding.enqueue(features)
    embedding.dequeue()
    embedding.enqueue(features)
    with pytest.raises(embeng.StepOrderError, match="step 1 of replica 0; call apply_gradients"):
        embedding.dequeue()
    with pytest.raises(tf.errors.InvalidArgumentError, match="StepOrderError: replica 0"):
        tf.function(embedding.dequeue)()
    assert embedding.discard() == 2 and embedding.discard() == 0
    before = rows_of(embedding)
    embedding.enqueue(features, training=False)
    embedding.dequeue()
    with pytest.raises(embeng.StepOrderError, match="no training batch"):
        embedding.apply_gradients({"a": None, "b": None})
    assert (rows_of(embedding) == before).all()


def test_too_many_batches(make_strategy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Enqueuing without dequeuing ends with an error, and what was enqueued can be dequeued."""
    monkeypatch.setattr(_session, "_SECONDS", 0.05)
    embedding = make_embedding(make_strategy(1))
    with pytest.raises(embeng.StepOrderError, match="enqueued and not dequeued; call dequeue"):
        for _ in range(1000):
            embedding.enqueue({k: tf.constant([1]) for k in "ab"})
    embedding.apply_gradients(embedding.dequeue())
    embedding.enqueue({k: tf.constant([1]) for k in "ab"})
    assert embedding.discard() > 0


def test_two_replicas_need_a_run(make_strategy: Any) -> None:
    """Outside of strategy.run() nobody knows whose activations are meant."""
    strategy = make_strategy(2)
    embedding = make_embedding(strategy)
    embedding.enqueue({k: tf.constant([1]) for k in "ab"})
    with pytest.raises(embeng.StepOrderError, match="outside of strategy.run"):
        embedding.dequeue()
    embedding.discard()


@pytest.mark.sample
@pytest.mark.parametrize("eager", [True, False])
@pytest.mark.parametrize("train", [True, False])
def test_bad_ids_leave_nothing(make_strategy: Any, eager: bool, train: bool) -> None:
    """An id outside its table in the second replica takes the batch of the first one back."""
    strategy = make_strategy(2)
    embedding = make_embedding(strategy)
    error = embeng.OutOfRangeError if eager else tf.errors.InvalidArgumentError

    def enqueue(last: Any) -> None:
        embedding.enqueue(spread(strategy, {
            "a": tf.stack([[1], [last]]), "b": tf.constant([[1], [2]])}), training=train)

    run = enqueue if eager else tf.function(enqueue)
    give = (lambda: step_once(embedding)) if train else embedding.dequeue
    run(tf.constant(3))
    strategy.run(give)
    for wrong in (ROWS, -1):
        with pytest.raises(error, match=f"feature a, sample 0: id {wrong} is outside table t"):
            run(tf.constant(wrong))
    before = rows_of(embedding)
    run(tf.constant(4))
    found = strategy.experimental_local_results(strategy.run(give)["a"])
    assert (found[1].numpy() == before[4:5]).all()
    assert (rows_of(embedding) != before).any() == train
    with pytest.raises(embeng.StepOrderError, match="nothing is enqueued"):
        strategy.run(embedding.dequeue)


def test_a_step_that_fails_in_one_replica(make_strategy: Any) -> None:
    """After an error of the program within a step, discard() makes the next one whole again."""
    strategy = make_strategy(2)
    embedding = make_embedding(strategy)

    @tf.function
    def step(limit: Any) -> None:
        def run() -> None:
            activations = embedding.dequeue()
            number = tf.distribute.get_replica_context().replica_id_in_sync_group
            # It depends on the activations, and so fails after they were dequeued.
            number = tf.cast(number, tf.float32) + 0 * tf.reduce_sum(activations["a"])
            with tf.control_dependencies([tf.debugging.assert_less(number, limit)]):
                gradients = tf.nest.map_structure(tf.ones_like, activations)
            embedding.apply_gradients(gradients)

        embedding.enqueue(spread(strategy, {k: tf.constant([[5], [6]]) for k in "ab"}))
        strategy.run(run)

    two, one = tf.constant(2.0), tf.constant(1.0)
    step(two)
    before = rows_of(embedding)
    with pytest.raises(tf.errors.InvalidArgumentError, match="assert"):
        step(one)
    with pytest.raises(tf.errors.InvalidArgumentError, match="needs gradients that were not given"):
        step(two)
    assert embedding.discard() > 0
    now = rows_of(embedding)
    step(two)
    numpy.testing.assert_allclose(now - rows_of(embedding), [
        [0.2 * (row in (5, 6))] * DIM for row in range(ROWS)], atol=1e-6)
    assert (now[:5] == before[:5]).all()


def test_shapes_are_kept(make_strategy: Any) -> None:
    """Another batch size, in a graph that does not know it, is refused by its numbers."""
    strategy = make_strategy(1)
    embedding = make_embedding(strategy, batch_size=2)
    embedding.enqueue({k: tf.constant([1, 2]) for k in "ab"}, training=False)
    with pytest.raises(ValueError, match="Inconsistent shape"):
        embedding.enqueue({k: tf.constant([1, 2, 3]) for k in "ab"})
    enqueue = tf.function(lambda ids: embedding.enqueue({"a": ids, "b": ids}),
                          input_signature=[tf.TensorSpec([None], tf.int64)])
    with pytest.raises(tf.errors.InvalidArgumentError, match="3 samples, and the output shape has"):
        enqueue(tf.constant([1, 2, 3], tf.int64))
    with pytest.raises(embeng.InvalidError, match="multiple"):
        make_embedding(make_strategy(2), batch_size=3)
    with pytest.raises(embeng.InvalidError, match="by its name"):
        api.TPUEmbedding(embedding._feature_config, 2, api.SGD(0.1))


def test_mode_is_seen_by_name(make_strategy: Any) -> None:
    """With a shared name, a graph without apply_gradients() looks up for inference."""
    strategy = make_strategy(1)
    embedding = make_embedding(strategy)
    ids = {k: tf.constant([1, 2]) for k in "ab"}

    @tf.function
    def look() -> Any:
        def step(features: Any) -> Any:
            embedding.enqueue(features, name="x")
            return embedding.dequeue(name="x")
        return strategy.run(step, args=(ids,))

    @tf.function
    def train() -> None:
        def step(features: Any) -> None:
            embedding.enqueue(features, name="x")
            embedding.apply_gradients(embedding.dequeue(name="x"), name="x")
        strategy.run(step, args=(ids,))

    for _ in range(3):
        first = look()["a"].numpy()
    train()
    numpy.testing.assert_allclose(look()["a"].numpy(), first * 0.8, rtol=1e-6)


def test_pipelining_is_late_by_one(make_strategy: Any) -> None:
    """With pipelining, activations lack the update of one step before, and no other."""
    strategy = make_strategy(1)
    embedding = make_embedding(strategy, pipeline_execution_with_tensor_core=True)
    ids = {k: tf.constant([1]) for k in "ab"}
    seen = []
    for _ in range(4):
        embedding.enqueue(ids)
        seen.append(embedding.dequeue()["a"].numpy()[0, 0])
        embedding.apply_gradients({k: tf.ones([1, DIM]) for k in "ab"})
    steps = numpy.diff(seen)
    numpy.testing.assert_allclose(steps, [0, -0.2, -0.2], atol=1e-6)


@pytest.mark.sample
def test_eager_and_graph_are_equal(make_strategy: Any, rng: Any) -> None:
    """The same steps have the same bits with and without a graph, and those of numpy's engine."""
    batches = rng.integers(0, ROWS, (5, 2, BATCH))
    found = []
    for graph in (False, True):
        strategy = make_strategy(1)
        embedding = make_embedding(strategy, api.Adagrad(0.1))

        def step(a: Any, b: Any, embedding: Any = embedding) -> None:
            embedding.enqueue({"a": a, "b": b})
            step_once(embedding)

        run = tf.function(step) if graph else step
        for a, b in batches:
            run(tf.constant(a), tf.constant(b))
        found.append(rows_of(embedding))
    table = embeng.Table("t", ROWS, DIM, "sum", embeng.optimizers.adagrad(0.1),
                         embeng.initializers.uniform(-1, 1, seed=7))
    with embeng.Engine([table], [embeng.Feature("a", "t"), embeng.Feature("b", "t")]) as engine:
        for a, b in batches:
            batch = {"a": embeng.Ragged(a), "b": embeng.Ragged(b)}
            engine.update(batch, engine.lookup(batch))
        found.append(engine["t"].read())
    assert (found[0] == found[1]).all() and (found[0] == found[2]).all()

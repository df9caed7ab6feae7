# SPDX-License-Identifier: MIT
"""Check the layer TPUEmbedding under a TPUStrategy of two replicas; test_tfrs.py runs this program.

It is a program of its own because TensorFlow reads which Keras it has, and how many processors,
when it starts. Its arguments are names of the functions that it runs.
"""
import pathlib
import sys
import tempfile
from typing import Any

import numpy

import embeng.tf as tf
from embeng.tf import tfrs

api = tf.tpu.experimental.embedding
ROWS, DIM, BATCH = 6, 2, 4
LEGACY = issubclass(tf.keras.layers.Layer, tf.Module)
START = numpy.arange(ROWS * DIM, dtype=numpy.float32).reshape(ROWS, DIM)
BAGS = [[0, 1], [2], [], [5, 5]]


def make_strategy() -> Any:
    """Start anew with two replicas."""
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver(replicas=2)
    tf.tpu.experimental.initialize_tpu_system(resolver)
    return tf.distribute.TPUStrategy(resolver)


def make_config(optimizer: Any = None) -> Any:
    """Configure one table with a feature of bags and one of single ids."""
    table = api.TableConfig(ROWS, DIM, tf.constant_initializer(START), optimizer, "sum", "t")
    return {name: api.FeatureConfig(table, name=name) for name in ("bags", "one")}


def make_iterator(strategy: Any, ragged: bool = False) -> Any:
    """Give the same batch at each step, half of it to each replica."""
    bags = tf.ragged.constant(BAGS, tf.int64)
    features = {"bags": bags if ragged else bags.to_sparse(), "one": tf.constant([0, 1, 2, 3])}
    dataset = tf.data.Dataset.from_tensor_slices(features).repeat().batch(BATCH, True)
    options = tf.distribute.InputOptions(experimental_prefetch_to_device=False)
    return iter(strategy.experimental_distribute_dataset(dataset, options=options))


def make_step(strategy: Any, layer: Any, optimizer: Any = None) -> Any:
    """Make a training step whose gradients are 1 for every number of every activation."""
    @tf.function  # type: ignore[untyped-decorator]
    def train(iterator: Any) -> Any:
        def run(features: Any) -> Any:
            with tf.GradientTape() as tape:
                found = layer(features)
                loss = sum(tf.reduce_sum(x) for x in tf.nest.flatten(found))
            variables = layer.trainable_variables
            gradients = tape.gradient(loss, variables)
            if optimizer is not None:
                optimizer.apply_gradients(zip(gradients, variables, strict=True))
            return found["bags"]

        return strategy.run(run, args=(next(iterator),))

    return train


def rows_of(layer: Any) -> Any:
    """Read the only table."""
    variable, = layer.embedding_tables.values()
    return tf.convert_to_tensor(variable).numpy()


def count_touches() -> Any:
    """Count how often each row is in the batch: its gradient."""
    ids = [i for bag in BAGS for i in bag] + [0, 1, 2, 3]
    return numpy.bincount(ids, minlength=ROWS)[:, None]


def check_training() -> None:
    """SGD by a string, a table's own optimizer, and sparse and ragged inputs have its formula."""
    for given, own, rate, ragged in (("sgd", None, 0.01, False), (None, "sgd", 0.01, True),
                                     ("adam", api.SGD(0.5), 0.5, False)):
        strategy = make_strategy()
        with strategy.scope():
            layer = tfrs.TPUEmbedding(make_config(own), given, batch_size=BATCH)
        iterator = make_iterator(strategy, ragged)
        found = make_step(strategy, layer)(iterator)
        sums = numpy.stack([START[bag].sum(0) for bag in BAGS])
        numpy.testing.assert_array_equal(
            numpy.concatenate(strategy.experimental_local_results(found)), sums)
        numpy.testing.assert_allclose(rows_of(layer), START - rate * count_touches(), rtol=1e-6)
        assert len(layer.trainable_variables) == 1
        assert layer.trainable_variables[0].shape == (1,)


def check_kinds() -> None:
    """Layers of the other kinds of hardware have the same formula; variables are the program's."""
    kinds = tf.tpu.experimental.HardwareFeature.EmbeddingFeature
    strategy = make_strategy()
    with strategy.scope():
        layer = tfrs.TPUEmbedding(make_config(), api.SGD(0.5), embedding_feature=kinds.V2)
    iterator = make_iterator(strategy)
    make_step(strategy, layer)(iterator)
    numpy.testing.assert_allclose(rows_of(layer), START - 0.5 * count_touches(), rtol=1e-6)
    found = strategy.run(layer, args=(next(iterator),))
    numpy.testing.assert_array_equal(
        strategy.experimental_local_results(found["one"])[0], rows_of(layer)[:2])

    strategy = make_strategy()
    with strategy.scope():
        layer = tfrs.TPUEmbedding(make_config(), api.SGD(0.5),
                                  embedding_feature=kinds.UNSUPPORTED)
        layer.build()
    assert [tuple(v.shape) for v in layer.trainable_variables] == [(ROWS, DIM)]
    expect(ValueError, "Unknown embedding feature 7",
           lambda: make_in(strategy, 7))


def make_in(strategy: Any, kind: Any) -> Any:
    """Make a layer of a kind under a strategy."""
    with strategy.scope():
        return tfrs.TPUEmbedding(make_config(), "sgd", embedding_feature=kind)


def check_rates() -> None:
    """Schedules follow the optimizer's iterations, functions are evaluated at each step."""
    optimizers = tf.keras.optimizers.legacy if LEGACY else tf.keras.optimizers
    for kind in ("schedule", "function", "number"):
        strategy = make_strategy()
        with strategy.scope():
            step = tf.Variable(0, trainable=False, dtype=tf.int64,
                               aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)
            schedule = tf.keras.optimizers.schedules.PiecewiseConstantDecay(
                [0, 1], [1.0, 0.5, 0.25])
            keras = optimizers.SGD(schedule if kind == "schedule" else 0.125)
            tables = api.SGD(lambda: 1.0 / tf.cast(2 ** step, tf.float32)) \
                if kind == "function" else keras
            layer = tfrs.TPUEmbedding(make_config(), tables, batch_size=BATCH)
        train, iterator = make_step(strategy, layer, keras), make_iterator(strategy)
        expected = START.copy()
        for rate in (1.0, 0.5, 0.25):
            expected -= (0.125 if kind == "number" else rate) * count_touches()
            train(iterator)
            numpy.testing.assert_allclose(rows_of(layer), expected, rtol=1e-6, err_msg=kind)
            step.assign_add(1)


def check_evaluation() -> None:
    """Steps without gradients change nothing, in graphs and in eager mode, and may be mixed."""
    strategy = make_strategy()
    with strategy.scope():
        layer = tfrs.TPUEmbedding(make_config(), "sgd", batch_size=BATCH)
    iterator = make_iterator(strategy)
    train = make_step(strategy, layer)

    @tf.function  # type: ignore[untyped-decorator]
    def evaluate(iterator: Any) -> Any:
        return strategy.run(layer, args=(next(iterator),))

    evaluate(iterator)
    evaluate(iterator)
    strategy.run(layer, args=(next(iterator),))
    numpy.testing.assert_array_equal(rows_of(layer), START)
    train(iterator)
    evaluate(iterator)
    strategy.run(layer, args=(next(iterator),))
    train(iterator)
    numpy.testing.assert_allclose(rows_of(layer), START - 0.02 * count_touches(), rtol=1e-6)


def check_serving() -> None:
    """Outside of strategy.run() the layer looks up; gradients and strangers are refused."""
    strategy = make_strategy()
    config = make_config()
    with strategy.scope():
        layer = tfrs.TPUEmbedding(config, "sgd", batch_size=BATCH)
    make_step(strategy, layer)(make_iterator(strategy))
    bags = tf.sparse.from_dense(tf.constant([[1, 2]]))
    features = {"bags": bags, "one": tf.constant([3])}
    rows = rows_of(layer)
    found = layer(features)
    numpy.testing.assert_allclose(found["bags"][0], rows[1] + rows[2], rtol=1e-6)
    numpy.testing.assert_array_equal(found["one"][0], rows[3])
    other = api.FeatureConfig(config["bags"].table, name="other")
    served = layer(bags, serving_config=other)
    numpy.testing.assert_allclose(served[0], rows[1] + rows[2], rtol=1e-6)
    stranger = api.FeatureConfig(api.TableConfig(ROWS, DIM, name="u"))
    expect(ValueError, "does not match any of the TableConfigs",
           lambda: layer(bags, serving_config=stranger))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(features)["bags"])
    expect(LookupError, "Please use strategy.run", lambda: tape.gradient(
        loss, layer.trainable_variables))
    table, = layer.embedding_tables
    layer.update_embedding_table(table, tf.ones([ROWS, DIM]))
    numpy.testing.assert_array_equal(layer(features)["one"], numpy.ones([1, DIM]))
    looked = strategy.run(layer, args=(next(make_iterator(strategy)),))
    numpy.testing.assert_array_equal(
        strategy.experimental_local_results(looked["one"])[0], numpy.ones([2, DIM]))
    expect(ValueError, "does not match any", lambda: layer.update_embedding_table(
        stranger.table, tf.ones([ROWS, DIM])))


def check_refusals() -> None:
    """Layers of another strategy, and optimizers and sizes that do not fit, are refused by name."""
    cpu = tfrs.TPUEmbedding(make_config(), None)
    strategy = make_strategy()
    bags = tf.sparse.from_dense(tf.constant([[1, 2]]))
    features = {"bags": bags, "one": tf.constant([3])}
    expect(RuntimeError, "Please create the layer under a TPUStrategy",
           lambda: strategy.run(cpu, args=(features,)))
    expect(ValueError, "Unknown optimizer name 'rmsprop'",
           lambda: tfrs.TPUEmbedding(make_config(), "rmsprop"))
    expect(ValueError, "Unknown optimizer type", lambda: tfrs.TPUEmbedding(make_config(), 3))
    with strategy.scope():
        layer = tfrs.TPUEmbedding(make_config(), "sgd", batch_size=3)
    expect(ValueError, "give a multiple of the 2 replicas", lambda: layer.build({}))


def check_checkpoint() -> None:
    """A checkpoint of the engine goes on in a layer of variables, and the other way round."""
    optimizers = tf.keras.optimizers.legacy
    with tempfile.TemporaryDirectory() as folder:
        strategy = make_strategy()
        with strategy.scope():
            optimizer = optimizers.Adagrad(0.5, initial_accumulator_value=0.25)
            layer = tfrs.TPUEmbedding(make_config(), optimizer, batch_size=BATCH)
        train, iterator = make_step(strategy, layer, optimizer), make_iterator(strategy)
        train(iterator)
        path = tf.train.Checkpoint(layer=layer, optimizer=optimizer).save(
            str(pathlib.Path(folder, "engine")))
        stored = rows_of(layer)
        train(iterator)
        after = rows_of(layer)

        plain = tf.distribute.get_strategy()
        cpu_optimizer = optimizers.Adagrad(0.5, initial_accumulator_value=0.25)
        cpu = tfrs.TPUEmbedding(make_config(), cpu_optimizer)
        cpu_train, cpu_iterator = make_step(plain, cpu, cpu_optimizer), make_iterator(plain)
        cpu_train(cpu_iterator)
        numpy.testing.assert_allclose(rows_of(cpu), stored, rtol=1e-5)
        checkpoint = tf.train.Checkpoint(layer=cpu, optimizer=cpu_optimizer)
        checkpoint.restore(path).assert_existing_objects_matched()
        numpy.testing.assert_array_equal(rows_of(cpu), stored)
        cpu_train(cpu_iterator)
        numpy.testing.assert_allclose(rows_of(cpu), after, rtol=1e-5)

        path = checkpoint.save(str(pathlib.Path(folder, "variables")))
        tf.train.Checkpoint(layer=layer, optimizer=optimizer).restore(path)
        numpy.testing.assert_array_equal(rows_of(layer), rows_of(cpu))


def check_functional() -> None:
    """A functional model has the layer among its own, and fits a step's gradients."""
    strategy = make_strategy()
    size = BATCH if LEGACY else 2  # Keras 3 does not divide it by the replicas
    with strategy.scope():
        inputs = {"bags": tf.keras.Input((None,), size, dtype=tf.int64, sparse=True, name="bags"),
                  "one": tf.keras.Input((), size, dtype=tf.int32, name="one")}
        found = tfrs.TPUEmbedding(make_config(), "sgd")(inputs)
        assert tuple(found["bags"].shape) == (2, DIM), found["bags"].shape
        assert tuple(found["one"].shape) == (2, DIM)
        model = tf.keras.Model(inputs, found)
    iterator = make_iterator(strategy)

    @tf.function  # type: ignore[untyped-decorator]
    def train(iterator: Any) -> Any:
        def run(features: Any) -> Any:
            with tf.GradientTape() as tape:
                loss = sum(tf.reduce_sum(x) for x in model(features).values())
            return tape.gradient(loss, model.trainable_variables)

        return strategy.run(run, args=(next(iterator),))

    train(iterator)
    expected = START - 0.01 * count_touches()
    numpy.testing.assert_allclose(rows_of(model.layers[-1]), expected, rtol=1e-6)


def check_plain() -> None:
    """Without a TPUStrategy the tables are trainable variables of the program's optimizer."""
    strategy = tf.distribute.get_strategy()
    optimizer = (tf.keras.optimizers.legacy if LEGACY else tf.keras.optimizers).SGD(0.5)
    layer = tfrs.TPUEmbedding(make_config(), optimizer)
    make_step(strategy, layer, optimizer)(make_iterator(strategy))
    assert [tuple(v.shape) for v in layer.trainable_variables] == [(ROWS, DIM)]
    numpy.testing.assert_allclose(rows_of(layer), START - 0.5 * count_touches(), rtol=1e-6)


def expect(kind: Any, words: str, call: Any) -> None:
    """Assert that a call raises an exception with these words."""
    try:
        call()
    except kind as error:
        assert words in str(error), error
        return
    raise AssertionError(f"no {kind.__name__}: {words}")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        globals()[name]()
        print(name, "passed")

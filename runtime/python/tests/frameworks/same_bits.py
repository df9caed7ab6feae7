# SPDX-License-Identifier: MIT
"""One training as a program of a framework: ``python same_bits.py FRAMEWORK``.

Each program trains a table of the same rows by the same bags, of which some share ids, and prints the
bits of all activations and of the rows and slots at the end, as JSON. The loss is the sum of the
activations times given numbers, so that these are the gradients, to the bit.
"""
import json
import sys
from collections.abc import Callable
from typing import Any

import numpy

import embeng

# A power of two samples, so that the mean of a loss over them loses no bit.
ROWS, DIM, SAMPLES, IDS, STEPS, RATE, START = 40, 8, 16, 4, 5, 0.125, 0.25
rng = numpy.random.default_rng(7)
START_ROWS = rng.uniform(-1, 1, (ROWS, DIM)).astype(numpy.float32)
BATCHES = [(rng.integers(0, ROWS, (SAMPLES, IDS)),
            rng.uniform(-1, 1, (SAMPLES, DIM)).astype(numpy.float32)) for _ in range(STEPS)]
OPTIMIZER = embeng.optimizers.adagrad(RATE)

Seen = tuple[list[Any], Any, Any]


def make_table(name: str = "t") -> embeng.Table:
    """Describe the table."""
    return embeng.Table(name, ROWS, DIM, "sum", OPTIMIZER)


def fill(engine: embeng.Engine) -> None:
    """Give the engine's table its first rows and slots."""
    view = next(iter(engine))
    view.write(START_ROWS)
    view.fill(embeng.initializers.constant(START), slot="accumulators")


def read(engine: embeng.Engine) -> tuple[Any, Any]:
    """Return rows and slots of the engine's table."""
    engine.flush()
    view = next(iter(engine))
    return view.read(), view.read(slot="accumulators")


def run_numpy() -> Seen:
    """Train with the engine itself."""
    seen = []
    with embeng.Engine([make_table()]) as engine:
        fill(engine)
        for ids, gradient in BATCHES:
            bags = embeng.Ragged(ids)
            seen.append(engine.lookup({"t": bags})["t"])
            engine.update({"t": bags}, {"t": gradient})
        return seen, *read(engine)


def run_torch() -> Seen:
    """Train a module of torch."""
    import torch

    import embeng.torch

    seen = []
    module = embeng.torch.EmbeddingBag(ROWS, DIM, mode="sum", optimizer=OPTIMIZER,
                                       update="backward")
    engine = module.weight.group.engine
    fill(engine)
    for ids, gradient in BATCHES:
        activations = module(torch.from_numpy(ids))
        (activations * torch.from_numpy(gradient)).sum().backward()
        seen.append(activations.detach().numpy())
    return seen, *read(engine)


def run_jax() -> Seen:
    """Train inside of jit."""
    import jax

    import embeng.jax

    seen = []
    with embeng.jax.Embedding([make_table()]) as embedding:
        fill(embedding.engine)

        def look_up(state: Any, ids: Any, gradient: Any) -> Any:
            found, state = embedding.lookup(state, {"t": ids})
            return (found["t"] * gradient).sum(), (found["t"], state)

        @jax.jit
        def step(state: Any, ids: Any, gradient: Any) -> Any:
            (_, (found, after)), slope = jax.value_and_grad(look_up, has_aux=True)(
                state, ids, gradient)
            return found, embedding.apply(after, slope)

        state = embedding.init()
        for ids, gradient in BATCHES:
            found, state = step(state, ids, gradient)
            seen.append(numpy.asarray(found))
        embedding.sync(state)
        return seen, *read(embedding.engine)


def run_tf() -> Seen:
    """Train with TPUEmbedding, in a tf.function."""
    import embeng.tf as tf

    api = tf.tpu.experimental.embedding
    strategy = tf.distribute.TPUStrategy(tf.distribute.cluster_resolver.TPUClusterResolver(""))
    with strategy.scope():
        table = api.TableConfig(ROWS, DIM, tf.constant_initializer(START_ROWS), combiner="sum",
                                name="t")
        embedding = api.TPUEmbedding({"t": api.FeatureConfig(table, name="t")},
                                     api.Adagrad(RATE, initial_accumulator_value=START))

    @tf.function
    def step(ids: Any, gradient: Any) -> Any:
        embedding.enqueue({"t": tf.RaggedTensor.from_tensor(ids)}, training=True)

        def train() -> Any:
            with tf.GradientTape() as tape:
                activations = embedding.dequeue()
                tape.watch(activations)
                loss = tf.reduce_sum(activations["t"] * gradient)
            embedding.apply_gradients(tape.gradient(loss, activations))
            return activations["t"]

        return strategy.run(train)

    seen = [step(tf.constant(ids), tf.constant(gradient)).numpy() for ids, gradient in BATCHES]
    embedding._retrieve_variables()
    found = embedding._variables["t"]
    return seen, *(found[name].variables[0].numpy() for name in ("parameters", "accumulators"))


def run_keras() -> Seen:
    """Train with Keras' layer, in fit() on the backend that KERAS_BACKEND names."""
    import keras

    import embeng.keras

    layer = embeng.keras.DistributedEmbedding({"t": embeng.keras.FeatureConfig(
        "t", embeng.keras.TableConfig("t", ROWS, DIM, optimizer=OPTIMIZER, combiner="sum"),
        (SAMPLES, IDS), (SAMPLES, DIM))})
    inputs = {"t": keras.Input((IDS,), batch_size=SAMPLES, dtype="int32", name="t")}
    model = keras.Model(inputs, layer(inputs)["t"])
    model.compile(loss=lambda gradient, found: keras.ops.sum(found * gradient, axis=-1) * SAMPLES,
                  optimizer="sgd")
    engine = layer.engine
    fill(engine)
    seen = []
    for ids, gradient in BATCHES:
        seen.append(model.predict({"t": ids}, batch_size=SAMPLES, verbose=0))
        model.fit({"t": ids}, gradient, batch_size=SAMPLES, shuffle=False, verbose=0)
    return seen, *read(engine)


PROGRAMS: dict[str, Callable[[], Seen]] = {
    "numpy": run_numpy, "torch": run_torch, "jax": run_jax, "tf": run_tf, "keras": run_keras,
}

if __name__ == "__main__":
    activations, rows, slots = PROGRAMS[sys.argv[1]]()
    print(json.dumps({"activations": [found.view(numpy.uint32).tolist() for found in activations],
                      "rows": rows.view(numpy.uint32).tolist(),
                      "slots": slots.view(numpy.uint32).tolist()}))

# SPDX-License-Identifier: MIT
"""One training as a program of a framework: ``python same_bits.py FRAMEWORK [FOLDER FIRST LAST]``.

Each program trains a table of the same rows by the same bags, of which some share ids, and prints the
bits of all activations and of the rows and slots at the end, as JSON. The loss is the sum of the
activations times given numbers, so that these are the gradients, to the bit.

With a folder it makes the steps from FIRST to before LAST alone: it goes on from the checkpoint there,
if there is one, and saves another one.
"""
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy

import embeng
import embeng.checkpoint

# A power of two samples, so that the mean of a loss over them loses no bit.
ROWS, DIM, SAMPLES, IDS, STEPS, RATE, START = 40, 8, 16, 4, 5, 0.125, 0.25
rng = numpy.random.default_rng(7)
START_ROWS = rng.uniform(-1, 1, (ROWS, DIM)).astype(numpy.float32)
BATCHES = [(rng.integers(0, ROWS, (SAMPLES, IDS)),
            rng.uniform(-1, 1, (SAMPLES, DIM)).astype(numpy.float32)) for _ in range(STEPS)]
# As a program it has a folder and a range of steps; pytest has arguments of its own.
FOLDER = sys.argv[2] if len(sys.argv) > 4 and sys.argv[3].isdigit() else None
STEPS_HERE = BATCHES[int(sys.argv[3]):int(sys.argv[4])] if FOLDER else BATCHES
OPTIMIZER = embeng.optimizers.adagrad(RATE)

Seen = tuple[list[Any], Any, Any]


def make_table(name: str = "t") -> embeng.Table:
    """Describe the table."""
    return embeng.Table(name, ROWS, DIM, "sum", OPTIMIZER)


def begin(engine: embeng.Engine) -> None:
    """Give the engine's table its first rows and slots, or those of the checkpoint."""
    view = next(iter(engine))
    if FOLDER and Path(FOLDER).exists():
        with embeng.checkpoint.open(FOLDER) as saved:
            names = {view.name: next(iter(saved.tables))}
        engine.restore(FOLDER, names=names, progress=False)
        return
    view.write(START_ROWS)
    view.fill(embeng.initializers.constant(START), slot="accumulators")


def end(engine: embeng.Engine) -> tuple[Any, Any]:
    """Return rows and slots of the engine's table, and save them."""
    engine.flush()
    if FOLDER:
        engine.save(FOLDER, progress=False)
    view = next(iter(engine))
    return view.read(), view.read(slot="accumulators")


def run_numpy() -> Seen:
    """Train with the engine itself."""
    seen = []
    with embeng.Engine([make_table()]) as engine:
        begin(engine)
        for ids, gradient in STEPS_HERE:
            bags = embeng.Ragged(ids)
            seen.append(engine.lookup({"t": bags})["t"])
            engine.update({"t": bags}, {"t": gradient})
        return seen, *end(engine)


def run_torch() -> Seen:
    """Train a module of torch."""
    import torch

    import embeng.torch

    seen = []
    module = embeng.torch.EmbeddingBag(ROWS, DIM, mode="sum", optimizer=OPTIMIZER,
                                       update="backward")
    engine = module.weight.group.engine
    begin(engine)
    for ids, gradient in STEPS_HERE:
        activations = module(torch.from_numpy(ids))
        (activations * torch.from_numpy(gradient)).sum().backward()
        seen.append(activations.detach().numpy())
    return seen, *end(engine)


def run_jax() -> Seen:
    """Train inside of jit."""
    import jax

    import embeng.jax

    seen = []
    with embeng.jax.Embedding([make_table()]) as embedding:
        begin(embedding.engine)

        def look_up(state: Any, ids: Any, gradient: Any) -> Any:
            found, state = embedding.lookup(state, {"t": ids})
            return (found["t"] * gradient).sum(), (found["t"], state)

        @jax.jit
        def step(state: Any, ids: Any, gradient: Any) -> Any:
            (_, (found, after)), slope = jax.value_and_grad(look_up, has_aux=True)(
                state, ids, gradient)
            return found, embedding.apply(after, slope)

        state = embedding.init()
        for ids, gradient in STEPS_HERE:
            found, state = step(state, ids, gradient)
            seen.append(numpy.asarray(found))
        embedding.sync(state)
        return seen, *end(embedding.engine)


def run_tf() -> Seen:
    """Train with TPUEmbedding, in a tf.function."""
    import embeng.tf as tf

    api = tf.tpu.experimental.embedding
    strategy = tf.distribute.TPUStrategy(tf.distribute.cluster_resolver.TPUClusterResolver(""))
    with strategy.scope():
        table = api.TableConfig(ROWS, DIM, tf.constant_initializer(START_ROWS), combiner="sum",
                                name="t")
        feature = api.FeatureConfig(table, name="t", output_shape=[SAMPLES])
        embedding = api.TPUEmbedding({"t": feature},
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

    embedding.build()
    engine = tf.checkpoint.engine_of(embedding)
    begin(engine)
    seen = [step(tf.constant(ids), tf.constant(gradient)).numpy() for ids, gradient in STEPS_HERE]
    return seen, *end(engine)


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
    begin(engine)
    seen = []
    for ids, gradient in STEPS_HERE:
        seen.append(model.predict({"t": ids}, batch_size=SAMPLES, verbose=0))
        model.fit({"t": ids}, gradient, batch_size=SAMPLES, shuffle=False, verbose=0)
    return seen, *end(engine)


PROGRAMS: dict[str, Callable[[], Seen]] = {
    "numpy": run_numpy, "torch": run_torch, "jax": run_jax, "tf": run_tf, "keras": run_keras,
}

if __name__ == "__main__":
    activations, rows, slots = PROGRAMS[sys.argv[1]]()
    print(json.dumps({"activations": [found.view(numpy.uint32).tolist() for found in activations],
                      "rows": rows.view(numpy.uint32).tolist(),
                      "slots": slots.view(numpy.uint32).tolist()}))

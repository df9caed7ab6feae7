#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Times embeng.tf beside what a user of TensorFlow would take today.

usage: tf_layers.py [--shape NAME...] [--optimizer sgd|adagrad|adam] [--peer NAME...] [--rounds N]
                    [--steps N] [--json FILE]

Each peer looks up the same bags, sums them, and trains with gradients that are the activations. A
step is one round of a tf.range loop in a tf.function, so that what a call of a function costs is
left out. In each round every peer is timed in turn, so that a machine that is busy for a while
disturbs all of them. Printed are the least and the most of the rounds in microseconds a step, and
the ratio to the peer "keras", round by round.

peers:
    v1      TPUEmbedding: enqueue(), dequeue(), apply_gradients()
    v2      TPUEmbeddingV2: lookup and apply_gradients()
    numpy   the same steps by embeng.Engine, without TensorFlow
    keras   tf.nn.embedding_lookup_sparse of a variable, and an optimizer of tf.keras
"""
import argparse
import json
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy

import embeng
import embeng.tf as tf

SEED = 20240229
# Rows, dim, batch, ids of a bag.
SHAPES = {
    "one": (1000, 8, 1, 1),
    "small": (1000, 16, 64, 5),
    "middle": (1_000_000, 64, 256, 4),
    "large": (1_000_000, 64, 4096, 20),
}
api = tf.tpu.experimental.embedding
OPTIMIZERS = {
    "sgd": (api.SGD, embeng.optimizers.sgd, tf.keras.optimizers.SGD),
    "adagrad": (api.Adagrad, embeng.optimizers.adagrad, tf.keras.optimizers.Adagrad),
    "adam": (api.Adam, embeng.optimizers.adam, tf.keras.optimizers.Adam),
}
RATE = 1e-4


def make_bags(shape):
    """Return the bags of a shape."""
    rows, _, batch, pool = SHAPES[shape]
    ids = numpy.random.default_rng(SEED).integers(0, rows, batch * pool)
    return tf.RaggedTensor.from_row_lengths(ids, [pool] * batch)


def make_feature(shape, optimizer):
    """Return the feature of a shape, and a strategy whose system is new."""
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver("", replicas=1)
    tf.tpu.experimental.initialize_tpu_system(resolver)
    rows, dim, batch, _ = SHAPES[shape]
    start = tf.EngineInitializer(embeng.initializers.default(seed=SEED))
    table = api.TableConfig(rows, dim, start, OPTIMIZERS[optimizer][0](RATE), "sum", "t")
    feature = api.FeatureConfig(table, name="t", output_shape=[batch])
    return feature, tf.distribute.TPUStrategy(resolver)


def make_v1(shape, optimizer):
    """Return a function of the number of steps."""
    feature, strategy = make_feature(shape, optimizer)
    with strategy.scope():
        embedding = api.TPUEmbedding(feature)
    bags = make_bags(shape)

    @tf.function
    def run(steps):
        for _ in tf.range(steps):
            embedding.enqueue(bags)
            strategy.run(lambda: embedding.apply_gradients(embedding.dequeue()))

    return run


def make_v2(shape, optimizer):
    """Return a function of the number of steps."""
    feature, strategy = make_feature(shape, optimizer)
    with strategy.scope():
        embedding = api.TPUEmbeddingV2(feature)
    bags = make_bags(shape)

    @tf.function
    def run(steps):
        def step():
            activations, kept = embedding(bags)
            embedding.apply_gradients(activations, kept)

        for _ in tf.range(steps):
            strategy.run(step)

    return run


def make_numpy(shape, optimizer):
    """Return a function of the number of steps."""
    rows, dim, _, _ = SHAPES[shape]
    table = embeng.Table("t", rows, dim, "sum", OPTIMIZERS[optimizer][1](RATE))
    engine = embeng.Engine([table])
    bags = make_bags(shape)
    batch = {"t": embeng.Ragged(bags.values.numpy(), bags.row_splits.numpy())}

    def run(steps):
        for _ in range(int(steps)):
            engine.enqueue(batch)
            engine.apply_gradients(dict(engine.dequeue()))

    return run


def make_keras(shape, optimizer):
    """Return a function of the number of steps."""
    rows, dim, _, _ = SHAPES[shape]
    variable = tf.Variable(tf.random.truncated_normal([rows, dim], stddev=dim ** -0.5, seed=1))
    update = OPTIMIZERS[optimizer][2](RATE)
    update.build([variable])
    sparse = make_bags(shape).to_sparse()

    @tf.function
    def run(steps):
        for _ in tf.range(steps):
            with tf.GradientTape() as tape:
                rows = tf.nn.embedding_lookup_sparse(variable, sparse, None, combiner="sum")
            gradient = tape.gradient(rows, variable, rows)
            update.apply_gradients([(gradient, variable)])

    return run


PEERS = {"v1": make_v1, "v2": make_v2, "numpy": make_numpy, "keras": make_keras}


def measure(shape, given):
    """Return the microseconds of a step by peer, a number for each round."""
    runs = {peer: PEERS[peer](shape, given.optimizer) for peer in given.peer}
    steps = tf.constant(given.steps)
    figures = {peer: [] for peer in runs}
    for run in runs.values():
        run(tf.constant(2))
    for _ in range(given.rounds):
        for peer, run in runs.items():
            start = time.perf_counter()
            run(steps)
            figures[peer].append((time.perf_counter() - start) / given.steps * 1e6)
    return figures


def spread(values, form):
    """Return the least and the most of some numbers."""
    return f"{min(values):{form}} .. {max(values):{form}}"


def show(shape, figures):
    """Print a line for each peer."""
    for peer, values in figures.items():
        line = f"{shape:7} {peer:6} {spread(values, '10.1f')} us"
        if "keras" in figures:
            ratios = [k / v for k, v in zip(figures["keras"], values)]
            line += f"   {spread(ratios, '6.2f')} x keras"
        print(line, flush=True)


def parse():
    """Return the arguments."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--shape", nargs="+", choices=SHAPES, default=["one", "small", "middle"])
    parser.add_argument("--optimizer", choices=OPTIMIZERS, default="adagrad")
    parser.add_argument("--peer", nargs="+", choices=PEERS, default=list(PEERS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--json")
    return parser.parse_args()


def main():
    """Measure each shape, and print."""
    given = parse()
    print("seed", SEED, "optimizer", given.optimizer, "TensorFlow", tf.__version__)
    results = {}
    for shape in given.shape:
        results[shape] = measure(shape, given)
        show(shape, results[shape])
    if given.json:
        with open(given.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()

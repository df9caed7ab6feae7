#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Times embeng.keras beside the layers that a user of Keras on processors would take today.

usage: keras_layers.py [--backend torch|jax|tensorflow...] [--shape NAME...] [--peer NAME...]
                       [--rounds N] [--steps N] [--optimizer NAME]

Each backend runs in a process of its own. Each peer is a model of one table, which train_on_batch()
trains on the same batches; the loss is the mean of squares. In each round every peer is timed in
turn; the figure of a round is the median of its steps. Printed are the least and the most of the
rounds, the ratios to keras-rs, and how far the losses of the first steps are apart. A peer that is
not installed is left out by name.

peers:
    embeng    embeng.keras.DistributedEmbedding, the optimizer in its table
    keras_rs  keras_rs.layers.DistributedEmbedding, the optimizer in the model
    keras     keras.layers.Embedding and a sum, the optimizer in the model
"""
import argparse
import os
import statistics
import subprocess
import sys
import time

SEED = 20240229
# Rows, dim, batch, ids of a bag.
SHAPES = {
    "small": (1000, 16, 64, 5),
    "middle": (100_000, 64, 1024, 20),
    "large": (1_000_000, 64, 4096, 20),
}
BATCHES = 2


def make_layer(peer, shape, optimizer):
    """A layer that takes ids and gives the sum of their rows."""
    import keras

    rows, dim, batch, pool = SHAPES[shape]
    start = keras.initializers.Constant(0.01)
    if peer == "keras":
        table = keras.layers.Embedding(rows, dim, embeddings_initializer=start)
        return lambda ids: keras.ops.sum(table(ids), axis=1)
    if peer == "keras_rs":
        from keras_rs import layers
    else:
        import embeng.keras as layers
    table = layers.TableConfig("t", rows, dim, initializer=start, optimizer=optimizer,
                               combiner="sum")
    return layers.DistributedEmbedding(
        layers.FeatureConfig("f", table, (batch, pool), (batch, dim)))


def make_model(peer, shape, optimizer):
    import keras

    ids = keras.Input((SHAPES[shape][3],), dtype="int32")
    model = keras.Model(ids, make_layer(peer, shape, optimizer)(ids))
    model.compile(optimizer=optimizer, loss="mse")
    return model


def measure(shape, given):
    """Losses of the first steps, and ms a step of each round, by peer."""
    import numpy

    rows, dim, batch, pool = SHAPES[shape]
    random = numpy.random.default_rng(SEED)
    batches = [(random.integers(0, rows, (batch, pool)).astype("int32"),
                random.standard_normal((batch, dim), numpy.float32)) for _ in range(BATCHES)]
    made, losses, figures = {}, {}, {}
    for peer in given.peer:
        try:
            made[peer] = make_model(peer, shape, given.optimizer)
        except ImportError as error:
            print(f"# {peer} is left out: {error}")
            continue
        losses[peer] = [float(made[peer].train_on_batch(*batches[k])) for k in range(BATCHES)]
    for _ in range(given.rounds):
        for peer, model in made.items():
            times = []
            for k in range(given.steps):
                began = time.perf_counter()
                float(model.train_on_batch(*batches[k % BATCHES]))
                times.append(time.perf_counter() - began)
            figures.setdefault(peer, []).append(1e3 * statistics.median(times))
    return losses, figures


def spread(values, form):
    return f"{min(values):{form}} to {max(values):{form}}"


def show(backend, shape, losses, figures):
    ours = losses["embeng"] if "embeng" in losses else []
    for peer, times in figures.items():
        ratios = [base / took for base, took in zip(figures.get("keras_rs", []), times)]
        beside = f", {spread(ratios, '.1f')} times as fast as keras_rs" if ratios else ""
        apart = max((abs(a - b) / abs(b) for a, b in zip(ours, losses[peer])), default=0)
        print(f"{backend} {shape} {peer}: {spread(times, '.3f')} ms{beside}; losses {apart:.1e} "
              "from embeng's", flush=True)


def parse():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", nargs="+", default=["torch", "jax", "tensorflow"])
    parser.add_argument("--shape", nargs="+", default=list(SHAPES), choices=SHAPES)
    parser.add_argument("--peer", nargs="+", default=["keras_rs", "keras", "embeng"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--optimizer", default="adam")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    given = parse()
    if given.here:
        for shape in given.shape:
            show(given.backend[0], shape, *measure(shape, given))
        return 0
    options = vars(given)
    code = 0
    for backend in given.backend:
        command = [sys.executable, __file__, "--here", "--backend", backend]
        for name in ("shape", "peer"):
            command += [f"--{name}", *options[name]]
        for name in ("rounds", "steps", "optimizer"):
            command += [f"--{name}", str(options[name])]
        environment = {**os.environ, "KERAS_BACKEND": backend, "TF_CPP_MIN_LOG_LEVEL": "3",
                       "CUDA_VISIBLE_DEVICES": "-1"}
        code |= subprocess.run(command, env=environment, check=False).returncode
    return code


if __name__ == "__main__":
    sys.exit(main())

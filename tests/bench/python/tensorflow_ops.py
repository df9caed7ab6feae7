#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Times steps of tf.function with embeng.tf.ops beside what a user of TensorFlow would take today.

usage: tensorflow_ops.py [--shape NAME...] [--peer NAME...] [--rounds N] [--seconds S] [--threads N]
                         [--json FILE]

A step looks bags of one table up and gives their rows a gradient, by SGD. Each peer has the same
table, ids and gradient. In each round every peer is timed in turn, so that a machine that is busy for
a while disturbs all of them; the figure of a round is the median of its steps. Printed are the least
and the most of the rounds, and what a step costs beyond `engine`, which has no TensorFlow.

peers:
    engine    Engine.lookup() and Engine.update() of numpy, one after another
    empty     a tf.function that adds two tensors of the same shapes: what a call costs at least
    c         a tf.function with operators of TensorFlow's C API
    c_loop    a tf.function that runs 50 steps in a loop of tf.range, divided by 50
    python    a tf.function with tf.py_function
    python_loop  likewise 50 steps in a loop
    eager     the operators of the C API without tf.function
    keras     a tf.function with tf.nn.embedding_lookup_sparse and SGD of a tf.Variable
"""
import argparse
import json
import os
import statistics
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy
import tensorflow as tf

import embeng
from embeng.tf import ops

SEED = 20240229
RATE = 0.01
# Rows, dim, batch, ids of a bag.
SHAPES = {
    "one": (1000, 8, 1, 1),
    "small": (1000, 16, 64, 5),
    "middle": (1_000_000, 64, 256, 4),
    "large": (1_000_000, 64, 4096, 20),
}


class Inputs:
    """Ids and a gradient of a shape, the same for every peer."""

    def __init__(self, name):
        self.rows, self.dim, self.batch, self.pool = SHAPES[name]
        random = numpy.random.default_rng(SEED)
        self.ids = random.integers(0, self.rows, self.batch * self.pool)
        self.splits = numpy.arange(0, self.batch * self.pool + 1, self.pool)
        self.gradient = random.standard_normal((self.batch, self.dim), numpy.float32) * 1e-3

    def open(self, threads):
        """Open an engine of the table."""
        return embeng.Engine([embeng.Table("t", self.rows, self.dim, "sum",
                                           embeng.optimizers.sgd(RATE))], cores=threads)


def make_engine(inputs, threads):
    engine = inputs.open(threads)
    bags = {"t": embeng.Ragged(inputs.ids, splits=inputs.splits)}
    out = {"t": numpy.empty_like(inputs.gradient)}
    gradients = {"t": inputs.gradient}

    def step():
        engine.lookup(bags, out)
        engine.update(bags, gradients)

    return step


def make_empty(inputs, threads):
    ids, gradient = tf.constant(inputs.ids), tf.constant(inputs.gradient)
    step = tf.function(lambda ids, gradient: (ids + 1, gradient + 1.0))
    return lambda: step(ids, gradient)


LOOP = 50


def make_loop(inputs, threads, way):
    run = make_ops(inputs, threads, way, steps=LOOP)
    run.steps = LOOP
    return run


def make_ops(inputs, threads, way, compiled=True, steps=1):
    os.environ["EMBENG_TF_OPS"] = way
    ops._load_operators.cache_clear()
    engine = inputs.open(threads)
    ids, splits = tf.constant(inputs.ids), tf.constant(inputs.splits)
    gradient = tf.constant(inputs.gradient)

    def step(ids, splits, gradient):
        bags = {"t": embeng.Ragged(ids, splits=splits)}
        found = ops.lookup(engine, bags)["t"]
        ops.update(engine, bags, {"t": gradient})
        return found

    def loop(ids, splits, gradient):
        for _ in tf.range(steps):
            step(ids, splits, gradient)

    run = tf.function(step if steps == 1 else loop) if compiled else step
    run(ids, splits, gradient)
    return lambda: run(ids, splits, gradient)


def make_keras(inputs, threads):
    table = tf.Variable(tf.zeros([inputs.rows, inputs.dim]))
    ids = tf.RaggedTensor.from_row_splits(inputs.ids, inputs.splits).to_sparse()
    gradient = tf.constant(inputs.gradient)

    @tf.function
    def step(ids, gradient):
        with tf.GradientTape() as tape:
            found = tf.nn.embedding_lookup_sparse(table, ids, None, combiner="sum")
        slices = tape.gradient(found, table, gradient)
        table.scatter_sub(tf.IndexedSlices(RATE * slices.values, slices.indices))
        return found

    return lambda: step(ids, gradient)


PEERS = {
    "engine": make_engine,
    "empty": make_empty,
    "c": lambda inputs, threads: make_ops(inputs, threads, "c"),
    "c_loop": lambda inputs, threads: make_loop(inputs, threads, "c"),
    "python_loop": lambda inputs, threads: make_loop(inputs, threads, "py_function"),
    "python": lambda inputs, threads: make_ops(inputs, threads, "py_function"),
    "eager": lambda inputs, threads: make_ops(inputs, threads, "c", compiled=False),
    "keras": make_keras,
}


def time_steps(step, seconds):
    """Return the median time of a step in microseconds."""
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 3:
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e6 / getattr(step, "steps", 1)


def run_shape(name, options):
    inputs = Inputs(name)
    steps = {peer: PEERS[peer](inputs, options.threads) for peer in options.peer}
    for step in steps.values():
        for _ in range(5):
            step()
    found = {peer: [] for peer in steps}
    for _ in range(options.rounds):
        for peer, step in steps.items():
            found[peer].append(time_steps(step, options.seconds))
    print(f"{name}: {inputs.rows} rows, dim {inputs.dim}, {inputs.batch} bags of {inputs.pool}")
    for peer, times in found.items():
        beyond = ""
        if "engine" in found and peer != "engine":
            more = [t - e for t, e in zip(times, found["engine"])]
            beyond = f"  beyond the engine {min(more):9.1f} to {max(more):9.1f}"
        print(f"  {peer:11} {min(times):10.1f} to {max(times):10.1f} us{beyond}")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shape", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--peer", nargs="+", choices=PEERS, default=list(PEERS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json")
    options = parser.parse_args()
    tf.config.threading.set_intra_op_parallelism_threads(options.threads)
    tf.config.threading.set_inter_op_parallelism_threads(options.threads)
    found = {name: run_shape(name, options) for name in options.shape}
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(found, file)


if __name__ == "__main__":
    main()

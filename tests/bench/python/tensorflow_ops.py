#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Times steps of tf.function with embeng.tf.ops beside what a user of TensorFlow would take today.

usage: tensorflow_ops.py [--shape NAME...] [--peer NAME...] [--rounds N] [--seconds S] [--threads N]
                         [--calls PROGRAM] [--json FILE]

A step looks bags of one table up and gives their rows a gradient, by SGD. Each peer has the same
table, ids and gradient. In each round every peer is timed in turn, so that a machine that is busy for
a while disturbs all of them; the figure of a round is the median of its steps. Printed are the least
and the most of the rounds, and what a step costs beyond `engine`, which has no TensorFlow. Peers whose
names begin with "steps" are compared with `calls`, as they enqueue, dequeue and apply gradients.

peers:
    engine    Engine.lookup() and Engine.update() of numpy, one after another
    empty     a tf.function that adds two tensors of the same shapes: what a call costs at least
    c         a tf.function with operators of TensorFlow's C API
    c_loop    a tf.function that runs 50 steps in a loop of tf.range, divided by 50
    python    a tf.function with tf.py_function
    python_loop  likewise 50 steps in a loop
    eager     the operators of the C API without tf.function
    keras     a tf.function with tf.nn.embedding_lookup_sparse and SGD of a tf.Variable
    calls     embeng_enqueue(), embeng_dequeue() and embeng_apply_gradients() of a C program
              (tests/bench/steps.c), which --calls names; without it Engine's methods of these names
    steps     a tf.function with enqueue(), dequeue() and apply_gradients() of a TPUEmbedding
    steps_loop    likewise 50 steps in a loop
    steps_python, steps_python_loop    likewise by tf.py_function
    empty_state   `empty` that also counts in a variable: a call of a function with state
    empty_loop    50 rounds of a loop that adds two tensors, divided by 50
"""
import argparse
import json
import os
import statistics
import subprocess
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy
import embeng
import embeng.tf as tf
from embeng.tf import ops
from embeng.tf._system import system

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


# -- steps of TPUEmbedding -----------------------------------------------------------------------

class Calls:
    """The program tests/bench/steps, which times rounds of its own."""

    def __init__(self, program, inputs, seconds, threads):
        numbers = (inputs.rows, inputs.dim, inputs.batch, inputs.pool, seconds, threads)
        self.child = subprocess.Popen([program, *map(str, numbers)], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, text=True)

    def __call__(self):
        """Do nothing: the program has rounds alone."""

    def time_round(self):
        """Return the median time of a step of one round in microseconds."""
        self.child.stdin.write("\n")
        self.child.stdin.flush()
        return float(self.child.stdout.readline())


def make_calls(inputs, threads):
    if OPTIONS.calls:
        return Calls(OPTIONS.calls, inputs, OPTIONS.seconds, threads)
    engine = inputs.open(threads)
    bags = {"t": embeng.Ragged(inputs.ids, splits=inputs.splits)}
    gradients = {"t": inputs.gradient}

    def step():
        engine.enqueue(bags)
        engine.dequeue()
        engine.apply_gradients(gradients)

    return step


def make_embedding(inputs, threads):
    """Return a TPUEmbedding of the shape, and its session."""
    os.environ["EMBENG_DEVICE"] = f"soft:cores={threads}"
    api = tf.tpu.experimental.embedding
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver("", replicas=1)
    strategy = tf.distribute.TPUStrategy(resolver)
    with strategy.scope():
        start = tf.EngineInitializer(embeng.initializers.default(seed=SEED))
        table = api.TableConfig(inputs.rows, inputs.dim, start, api.SGD(RATE), "sum", "t")
        feature = api.FeatureConfig(table, name="t", output_shape=[inputs.batch])
        # The tables of the peer before stay, each with a session of its own.
        system.session = None
        embedding = api.TPUEmbedding(feature)
        embedding.build()
    return embedding, system.session


def make_steps(inputs, threads, way, steps=1):
    os.environ["EMBENG_TF_OPS"] = way
    ops._load_operators.cache_clear()
    embedding, session = make_embedding(inputs, threads)
    ids, splits = tf.constant(inputs.ids), tf.constant(inputs.splits)
    gradient = tf.constant(inputs.gradient)

    def step(ids, splits, gradient):
        embedding.enqueue(tf.RaggedTensor.from_row_splits(ids, splits, validate=False))
        found = embedding.dequeue()
        embedding.apply_gradients(gradient)
        return found

    def loop(ids, splits, gradient):
        for _ in tf.range(steps):
            step(ids, splits, gradient)

    run = tf.function(step if steps == 1 else loop)
    run(ids, splits, gradient)

    def call():
        system.session = session
        run(ids, splits, gradient)

    call.steps = steps
    return call


def make_empty_state(inputs, threads):
    ids, gradient = tf.constant(inputs.ids), tf.constant(inputs.gradient)
    count = tf.Variable(0, dtype=tf.int64)

    @tf.function
    def step(ids, gradient):
        count.assign_add(1)
        return ids + 1, gradient + 1.0

    return lambda: step(ids, gradient)


def make_empty_loop(inputs, threads):
    ids, gradient = tf.constant(inputs.ids), tf.constant(inputs.gradient)

    @tf.function
    def run(ids, gradient):
        for _ in tf.range(LOOP):
            ids, gradient = ids + 1, gradient + 1.0
        return ids, gradient

    def call():
        run(ids, gradient)

    call.steps = LOOP
    return call


PEERS = {
    "engine": make_engine,
    "empty": make_empty,
    "c": lambda inputs, threads: make_ops(inputs, threads, "c"),
    "c_loop": lambda inputs, threads: make_loop(inputs, threads, "c"),
    "python_loop": lambda inputs, threads: make_loop(inputs, threads, "py_function"),
    "python": lambda inputs, threads: make_ops(inputs, threads, "py_function"),
    "eager": lambda inputs, threads: make_ops(inputs, threads, "c", compiled=False),
    "keras": make_keras,
    "calls": make_calls,
    "empty_state": make_empty_state,
    "empty_loop": make_empty_loop,
    "steps": lambda inputs, threads: make_steps(inputs, threads, "c"),
    "steps_loop": lambda inputs, threads: make_steps(inputs, threads, "c", LOOP),
    "steps_python": lambda inputs, threads: make_steps(inputs, threads, "py_function"),
    "steps_python_loop": lambda inputs, threads: make_steps(inputs, threads, "py_function", LOOP),
}
OPTIONS = argparse.Namespace()


def time_steps(step, seconds):
    """Return the median time of a step in microseconds."""
    if hasattr(step, "time_round"):
        return step.time_round()
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
        base = "calls" if peer.startswith("steps") else "engine"
        beyond = ""
        if base in found and peer != base:
            more = [t - e for t, e in zip(times, found[base])]
            beyond = f"  beyond {base:6} {min(more):9.1f} to {max(more):9.1f}"
        print(f"  {peer:17} {min(times):10.1f} to {max(times):10.1f} us{beyond}", flush=True)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shape", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--peer", nargs="+", choices=PEERS, default=list(PEERS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--calls")
    parser.add_argument("--json")
    options = parser.parse_args(namespace=OPTIONS)
    tf.config.threading.set_intra_op_parallelism_threads(options.threads)
    tf.config.threading.set_inter_op_parallelism_threads(options.threads)
    found = {name: run_shape(name, options) for name in options.shape}
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(found, file)


if __name__ == "__main__":
    main()

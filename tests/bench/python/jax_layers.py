#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Times embeng.jax beside what a user of JAX would take today.

usage: jax_layers.py [--shape NAME...] [--peer NAME...] [--rounds N] [--seconds S] [--json FILE]

Each peer has the same table, ids and gradients, and runs one compiled step of SGD: a lookup of bags,
their sum by bag, the gradient, an update. In each round every peer is timed in turn, so that a machine
that is busy for a while disturbs all of them; the figure of a round is the median of its steps. Printed
are the least and the most of the rounds, and the ratio to jnp.take with dense gradients.

peers:
    embeng    embeng.jax by XLA's foreign functions: value_and_grad and apply
    pure      the same with calls="pure": updates are no effects for JAX
    update    as pure, by Embedding.update, without a backward pass through the lookup
    callback  embeng.jax by callbacks of Python
    take      jnp.take, jax.grad, and w - lr * g over the whole table, which is donated
    scatter   jnp.take, and a scatter-add of the bags' gradients into the donated table, as a program
              would write that knows that this is what SGD is

The lines "lookup" are one lookup inside of jit, in a loop of the program, and the same through the
numpy interface of the engine, with an output that is given.
"""
import argparse
import json
import statistics
import time
from functools import partial

import jax
import jax.numpy as jnp
import numpy

import embeng
import embeng.jax

SEED = 20240229
RATE = 0.01
# Rows, dim, batch, ids of a bag.
SHAPES = {
    "one": (1000, 8, 1, 1),
    "small": (1000, 16, 64, 5),
    "middle": (1_000_000, 64, 256, 4),
    "W1": (1_000_000, 64, 4096, 20),
}
BATCHES = 4


class Inputs:
    """Ids and gradients of a shape, the same for every peer."""

    def __init__(self, name):
        self.rows, self.dim, self.batch, self.pool = SHAPES[name]
        random = numpy.random.default_rng(SEED)
        self.ids = [jnp.asarray(random.integers(0, self.rows, (self.batch, self.pool)),
                                jnp.int32) for _ in range(BATCHES)]
        self.gradient = jnp.asarray(
            random.standard_normal((self.batch, self.dim), numpy.float32) * 1e-3)


class Engine:
    """Tables of an engine; each kind of step is a peer."""

    def __init__(self, inputs, peer):
        table = embeng.Table("t", inputs.rows, inputs.dim, "sum", embeng.optimizers.sgd(RATE))
        calls = {"embeng": "ffi", "callback": "callback"}.get(peer, "pure")
        self.emb = embeng.jax.Embedding([table], calls=calls)
        self.state = self.emb.init()
        self.gradient = inputs.gradient
        step = self.update if peer == "update" else self.train
        self.step = jax.jit(step)

    def train(self, state, ids):
        """Differentiate, and apply."""
        def loss(state):
            found, after = self.emb.lookup(state, {"t": ids})
            return (found["t"] * self.gradient).sum(), after
        gradient, after = jax.grad(loss, has_aux=True)(state)
        return self.emb.apply(after, gradient)

    def update(self, state, ids):
        """Look up, and update by gradients that are there."""
        found, state = self.emb.lookup(state, {"t": ids})
        gradient = self.gradient + 0 * found["t"][:1]
        return self.emb.update(state, {"t": ids}, {"t": gradient})

    def run(self, ids):
        """Make a step, and wait for it."""
        self.state = self.step(self.state, ids)
        jax.block_until_ready(self.state.token)


class Take:
    """A table of JAX."""

    def __init__(self, inputs, peer):
        self.table = jnp.zeros((inputs.rows, inputs.dim))
        gradient = inputs.gradient

        def dense(table, ids):
            def loss(table):
                return (jnp.take(table, ids, axis=0).sum(1) * gradient).sum()
            return table - RATE * jax.grad(loss)(table)

        def scatter(table, ids):
            found = jnp.take(table, ids, axis=0).sum(1)
            update = (gradient + 0 * found[:1]) * -RATE
            return table.at[ids].add(update[:, None])

        self.step = partial(jax.jit, donate_argnums=0)(scatter if peer == "scatter" else dense)

    def run(self, ids):
        """Make a step, and wait for it."""
        self.table = self.step(self.table, ids)
        self.table.block_until_ready()


PEERS = {"take": Take, "scatter": Take, "embeng": Engine, "pure": Engine, "update": Engine,
         "callback": Engine}


def time_steps(run, inputs, seconds):
    """Return the median time of steps within some seconds."""
    times = []
    end = time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        ids = inputs.ids[len(times) % BATCHES]
        begin = time.perf_counter()
        run(ids)
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def time_lookups(inputs, seconds):
    """Return the times of one lookup in a loop inside of jit, and through numpy."""
    engine = Engine(inputs, "embeng")
    count = 200

    @jax.jit
    def loop(state, ids):
        def turn(state, unused):
            found, state = engine.emb.lookup(state, {"t": ids})
            return state, found["t"][0, 0]
        return jax.lax.scan(turn, state, None, length=count)

    out = {"t": numpy.empty((inputs.batch, inputs.dim), numpy.float32)}
    ids = numpy.asarray(inputs.ids[0])
    jax.block_until_ready(loop(engine.state, inputs.ids[0]))
    inside = time_steps(lambda given: jax.block_until_ready(loop(engine.state, given)), inputs,
                        seconds) / count
    plain = time_steps(lambda given: engine.emb.engine.lookup({"t": ids}, out=out), inputs, seconds)
    engine.emb.close()
    return inside, plain


def show(label, rounds, peer):
    """Print the least and the most of the rounds, and the ratios to a peer, in microseconds."""
    low, high = min(rounds) * 1e6, max(rounds) * 1e6
    ratios = [there / here for here, there in zip(rounds, peer, strict=True)]
    print(f"    {label:9} {low:12.1f} to {high:12.1f} us    {min(ratios):8.2f} to "
          f"{max(ratios):8.2f} times as fast")


def measure(name, arguments):
    """Time all peers of a shape, round by round."""
    inputs = Inputs(name)
    runs = {peer: PEERS[peer](inputs, peer) for peer in arguments.peer}
    for peer in runs.values():
        peer.run(inputs.ids[0])
    found = {peer: [] for peer in runs}
    lookups = []
    for _ in range(arguments.rounds):
        for peer, made in runs.items():
            found[peer].append(time_steps(made.run, inputs, arguments.seconds))
        lookups.append(time_lookups(inputs, arguments.seconds))
    rows, dim, batch, pool = SHAPES[name]
    print(f"{name}: {rows} rows of {dim}, {batch} bags of {pool}")
    for peer, rounds in found.items():
        show(peer, rounds, found[arguments.peer[0]])
    for label, at in (("jit", 0), ("numpy", 1)):
        times = [pair[at] * 1e6 for pair in lookups]
        print(f"    lookup {label:6} {min(times):8.2f} to {max(times):8.2f} us")
    return {"peers": found, "lookups": lookups}


def main():
    """Measure the shapes that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--shape", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--peer", nargs="+", choices=PEERS, default=list(PEERS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    results = {name: measure(name, arguments) for name in arguments.shape}
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Times embeng.torch beside the layers that a user of PyTorch would take today.

usage: layers.py [--shape NAME...] [--optimizer sgd|adagrad] [--peer NAME...] [--rounds N]
                 [--seconds S] [--threads N] [--json FILE]

Each peer has the same tables, ids and gradients. In each round every peer is timed in turn, so that
a machine that is busy for a while disturbs all of them; the figure of a round is the median of its
steps. Printed are the least and the most of the rounds, and the ratio to torch's sparse gradients,
round by round. A peer that is not installed is left out by name.

peers:
    embeng    embeng.torch.EmbeddingBag, update="step"
    backward  the same with update="backward"
    fused     embeng.torch.FusedEmbeddingBagCollection, all tables in one engine
    torch     torch.nn.EmbeddingBag(sparse=True) with torch.optim
    fbgemm    FBGEMM's SplitTableBatchedEmbeddingBagsCodegen on the processor
"""
import argparse
import json
import os
import statistics
import time

import numpy
import torch

SEED = 20240229
# Tables, rows, dim, batch, ids of a bag.
SHAPES = {
    "one": (1, 1000, 8, 1, 1),
    "small": (1, 1000, 16, 64, 5),
    "middle": (1, 1_000_000, 64, 256, 4),
    "W1": (8, 1_000_000, 64, 4096, 20),
    "W4": (1, 16_000_000, 32, 16384, 50),
}
BATCHES = 4


class Inputs:
    """Ids and gradients of a shape, the same for every peer."""

    def __init__(self, name):
        self.tables, self.rows, self.dim, self.batch, self.pool = SHAPES[name]
        random = numpy.random.default_rng(SEED)
        count = self.batch * self.pool
        self.ids = [[torch.from_numpy(random.integers(0, self.rows, count)) for _ in
                     range(self.tables)] for _ in range(BATCHES)]
        self.offsets = torch.arange(0, count, self.pool)
        self.gradient = torch.from_numpy(
            random.standard_normal((self.batch, self.dim), numpy.float32) * 1e-3)


class Layers:
    """A module for each table, and an optimizer of all."""

    def __init__(self, inputs, make, optimizer):
        self.inputs = inputs
        self.bags = torch.nn.ModuleList([make(inputs.rows, inputs.dim)
                                         for _ in range(inputs.tables)])
        self.optimizer = optimizer(self.bags.parameters())

    def forward(self, k):
        with torch.no_grad():
            for bag, ids in zip(self.bags, self.inputs.ids[k]):
                bag(ids, self.inputs.offsets)

    def train(self, k):
        self.optimizer.zero_grad()
        outputs = [bag(ids, self.inputs.offsets)
                   for bag, ids in zip(self.bags, self.inputs.ids[k])]
        torch.autograd.backward(outputs, [self.inputs.gradient] * len(outputs))
        self.optimizer.step()


def make_torch(inputs, optimizer):
    kind = {"sgd": torch.optim.SGD, "adagrad": torch.optim.Adagrad}[optimizer]

    def make(rows, dim):
        return torch.nn.EmbeddingBag(rows, dim, mode="sum", sparse=True)

    return Layers(inputs, make, lambda p: kind(p, lr=0.01))


def make_embeng(inputs, optimizer, update="step"):
    import embeng.torch

    kind = {"sgd": embeng.torch.optim.SGD, "adagrad": embeng.torch.optim.Adagrad}[optimizer]

    def make(rows, dim):
        return embeng.torch.EmbeddingBag(rows, dim, mode="sum", update=update)

    return Layers(inputs, make, lambda p: kind(p, lr=0.01))


def make_backward(inputs, optimizer):
    return make_embeng(inputs, optimizer, "backward")


class Fbgemm:
    """All tables in one operator, with the optimizer in its backward."""

    def __init__(self, inputs, optimizer):
        from fbgemm_gpu.split_embedding_configs import EmbOptimType
        from fbgemm_gpu.split_table_batched_embeddings_ops_common import EmbeddingLocation
        from fbgemm_gpu.split_table_batched_embeddings_ops_training import (
            ComputeDevice, SplitTableBatchedEmbeddingBagsCodegen)

        kind = {"sgd": EmbOptimType.EXACT_SGD, "adagrad": EmbOptimType.EXACT_ADAGRAD}[optimizer]
        self.operator = SplitTableBatchedEmbeddingBagsCodegen(
            [(inputs.rows, inputs.dim, EmbeddingLocation.HOST, ComputeDevice.CPU)] *
            inputs.tables, optimizer=kind, learning_rate=0.01)
        self.ids = [torch.cat(ids) for ids in inputs.ids]
        bags = inputs.tables * inputs.batch
        self.offsets = torch.arange(0, (bags + 1) * inputs.pool, inputs.pool)
        self.gradient = inputs.gradient.repeat(1, inputs.tables)

    def forward(self, k):
        with torch.no_grad():
            self.operator(self.ids[k], self.offsets)

    def train(self, k):
        self.operator(self.ids[k], self.offsets).backward(self.gradient)


class Fused:
    """All tables in one engine, with the optimizer in its backward."""

    def __init__(self, inputs, optimizer):
        import embeng.torch as et

        kind = {"sgd": torch.optim.SGD, "adagrad": torch.optim.Adagrad}[optimizer]
        keys = [f"f{k}" for k in range(inputs.tables)]
        self.collection = et.FusedEmbeddingBagCollection(
            [et.EmbeddingBagConfig(name=f"t{k}", embedding_dim=inputs.dim,
                                   num_embeddings=inputs.rows, feature_names=[key])
             for k, key in enumerate(keys)], optimizer_type=kind, optimizer_kwargs={"lr": 0.01})
        lengths = torch.full((inputs.tables * inputs.batch,), inputs.pool)
        self.batches = [et.KeyedJaggedTensor.from_lengths_sync(keys, torch.cat(ids), lengths)
                        for ids in inputs.ids]
        self.gradient = inputs.gradient.repeat(1, inputs.tables)

    def forward(self, k):
        with torch.no_grad():
            self.collection(self.batches[k])

    def train(self, k):
        self.collection(self.batches[k]).values().backward(self.gradient)


PEERS = {"torch": make_torch, "embeng": make_embeng, "backward": make_backward, "fused": Fused,
         "fbgemm": Fbgemm}


def median(function, seconds):
    """The median time of calls, over some seconds and at least five of them."""
    times, end, k = [], time.perf_counter() + seconds, 0
    while len(times) < 5 or time.perf_counter() < end:
        began = time.perf_counter()
        function(k % BATCHES)
        times.append(time.perf_counter() - began)
        k += 1
    return statistics.median(times)


def measure(shape, given):
    """Figures in ms by operation and peer: a list, one a round."""
    inputs, made, figures = Inputs(shape), {}, {}
    for peer in given.peer:
        try:
            made[peer] = PEERS[peer](inputs, given.optimizer)
        except ImportError as error:
            print(f"# {peer} is left out: {error}")
    for operation in ("forward", "train"):
        for peer in made.values():
            median(getattr(peer, operation), 0)  # first touches of memory are not timed
        for _ in range(given.rounds):
            for name, peer in made.items():
                took = 1e3 * median(getattr(peer, operation), given.seconds)
                figures.setdefault(operation, {}).setdefault(name, []).append(took)
    return figures


def spread(values, form):
    return f"{min(values):{form}} to {max(values):{form}}"


def show(shape, figures):
    for operation, peers in figures.items():
        for name, times in peers.items():
            ratios = [base / took for base, took in zip(peers.get("torch", []), times)]
            beside = f", {spread(ratios, '.2f')} times as fast as torch" if ratios else ""
            print(f"{shape} {operation} {name}: {spread(times, '.4f')} ms{beside}", flush=True)


def parse():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", nargs="+", default=["one", "small", "middle", "W1"],
                        choices=SHAPES)
    parser.add_argument("--optimizer", default="sgd", choices=["sgd", "adagrad"])
    parser.add_argument("--peer", nargs="+", default=list(PEERS), choices=PEERS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", help="file for all figures")
    return parser.parse_args()


def main():
    given = parse()
    torch.set_num_threads(given.threads)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:given.threads])
    results = {}
    for shape in given.shape:
        results[shape] = measure(shape, given)
        show(shape, results[shape])
    if given.json:
        with open(given.json, "w", encoding="utf-8") as file:
            json.dump({"optimizer": given.optimizer, "threads": given.threads, "ms": results},
                      file, indent=1)


if __name__ == "__main__":
    main()

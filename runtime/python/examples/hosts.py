# SPDX-License-Identifier: MIT
"""Factors of users and items, trained by torch over tables that lie on several hosts.

    python hosts.py                                     # one process
    torchrun --nproc-per-node 2 hosts.py torch          # processes of torch
    mpirun -n 2 python hosts.py mpi                     # processes of MPI

All three print the same digest of what was learned. A host feeds some of the four replicas of the
model, and has some of the tables, or columns of them; who feeds and who has what changes no bit.
"""
import hashlib
import sys

import numpy
import torch

import embeng
from embeng import Engine, Feature, Group, Table, optimizers

USERS, ITEMS, DIM = 5000, 2000, 32
REPLICAS, STEPS, SAMPLES = 4, 20, 64

TABLES = [Table("users", USERS, DIM, "sum", optimizers.adagrad(0.1)),
          Table("items", ITEMS, DIM, "sum", optimizers.adam(0.01))]
FEATURES = [Feature("user", "users"), Feature("liked", "items")]


def batch_of(step, replica):
    """Draw the samples of a replica; a program would read them."""
    random = numpy.random.default_rng([step, replica])
    lengths = random.integers(1, 4, SAMPLES)
    return {"user": random.integers(0, USERS, SAMPLES),
            "liked": embeng.Ragged(random.integers(0, ITEMS, lengths.sum()), lengths=lengths)}


def gradients_of(activations, step, replica):
    """Have torch differentiate the loss of a batch."""
    scores = torch.from_numpy(numpy.random.default_rng([7, step, replica])
                              .random(SAMPLES, numpy.float32))
    factors = {name: torch.from_numpy(rows).requires_grad_()
               for name, rows in activations.items()}
    loss = ((factors["user"] * factors["liked"]).sum(1) - scores).square().mean()
    loss.backward()
    return {name: rows.grad for name, rows in factors.items()}


def train(engine):
    """Make the steps of the replicas that this host feeds."""
    for step in range(STEPS):
        for replica in engine.replicas:
            engine.enqueue(batch_of(step, replica), replica=replica)
        for replica in engine.replicas:
            activations = engine.dequeue(replica)
            engine.apply_gradients(gradients_of(activations, step, replica), replica)


def digest_of(engine):
    """Look up every row of both tables: over a group, all hosts do so at once."""
    count = max(USERS, ITEMS)
    rows = engine.lookup({"user": numpy.arange(count) % USERS,
                          "liked": numpy.arange(count) % ITEMS})
    return hashlib.sha256(rows["user"].tobytes() + rows["liked"].tobytes()).hexdigest()


def run(group=None):
    """Train over a group, or in this process alone."""
    with Engine(TABLES, FEATURES, replicas=REPLICAS, cores=1, group=group) as engine:
        train(engine)
        digest = digest_of(engine)
        host = engine.info()["host"]
    print(f"host {host}: {digest}", flush=True)


def main():
    """Open the group that the command names."""
    torch.set_num_threads(1)
    over = sys.argv[1] if len(sys.argv) > 1 else "alone"
    if over == "torch":
        torch.distributed.init_process_group("gloo")
        with Group.torch() as group:
            run(group)
        torch.distributed.destroy_process_group()
    elif over == "mpi":
        with Group("mpi") as group:
            run(group)
    else:
        run()


if __name__ == "__main__":
    main()

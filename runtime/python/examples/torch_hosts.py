# SPDX-License-Identifier: MIT
"""A small DLRM: its tables lie on several hosts, and DistributedDataParallel trains its layers.

    python torch_hosts.py                                  # one process that feeds two replicas
    torchrun --nproc-per-node 2 torch_hosts.py torch       # processes of torch
    mpirun -n 2 python torch_hosts.py mpi                  # processes of MPI

All three print the same digest of tables and layers. The program is one of torch.nn alone but for
four calls: convert() lays the tables on the hosts, distribute() has DDP leave them alone,
clip_grad_norm_() measures them too, and gather_state_dict() reads them. A second argument is the
number of steps.
"""
import hashlib
import socket
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import embeng
import embeng.torch as et

TABLES = {"user": 5000, "item": 2000, "word": 300}
DIM, DENSE, REPLICAS, SAMPLES = 32, 13, 2, 64


class Model(nn.Module):
    """Bags of three tables, the products of their activations, and layers."""

    def __init__(self):
        super().__init__()
        self.bags = nn.ModuleDict({name: nn.EmbeddingBag(rows, DIM, mode="sum")
                                   for name, rows in TABLES.items()})
        self.bottom = nn.Linear(DENSE, DIM)
        self.top = nn.Sequential(nn.Linear(DIM + 6, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, dense, ids):
        """Score samples, whose ids come as matrices of bags."""
        below = torch.relu(self.bottom(dense))
        vectors = torch.stack([below, *(self.bags[name](ids[name]) for name in TABLES)], 1)
        products = torch.bmm(vectors, vectors.transpose(1, 2))
        first, second = torch.triu_indices(4, 4, 1)
        return self.top(torch.cat([below, products[:, first, second]], 1))[:, 0]


def batch_of(step, replica):
    """Draw the samples of a replica; a program would read them."""
    random = torch.Generator().manual_seed(1000 * step + replica)
    dense = torch.randn(SAMPLES, DENSE, generator=random)
    ids = {name: torch.randint(0, rows, (SAMPLES, 3), generator=random)
           for name, rows in TABLES.items()}
    return dense, ids, torch.randint(0, 2, (SAMPLES,), generator=random).float()


def train(model, wrapped, optimizer, steps):
    """Make steps, each with a batch for every replica that this process feeds."""
    loss_of = nn.BCEWithLogitsLoss()
    for step in range(steps):
        optimizer.zero_grad()
        for replica in et.feeding(model):
            dense, ids, wanted = batch_of(step, replica)
            with et.replica(model, replica):
                loss_of(wrapped(dense, ids), wanted).backward()
        if wrapped is model:  # DDP gives the mean over replicas
            for parameter in model.parameters():
                if not et.is_table(parameter):
                    parameter.grad /= REPLICAS
        et.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()


def run(group, steps):
    """Train over a group of hosts, or in this process alone. All hosts begin with the same seed."""
    torch.manual_seed(7)
    model = Model()
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.05)
    model, optimizer = et.convert(model, optimizer, group=group, replicas=REPLICAS, cores=1)
    et.distribute(model)
    wrapped = DistributedDataParallel(model) if group else model
    train(model, wrapped, optimizer, steps)
    state = et.gather_state_dict(model)  # all hosts call it
    digest = hashlib.sha256()
    for name in sorted(state):
        digest.update(name.encode() + state[name].numpy().tobytes())
    model.bags["user"].engine.close()
    print(f"host {group.rank if group else 0}: {digest.hexdigest()}", flush=True)


def join_gloo(group):
    """Have processes that mpirun started join a process group of torch, for DDP."""
    with socket.socket() as known:
        known.bind(("", 0))
        port = known.getsockname()[1]
        told = group.exchange("port", send=[str(port).encode()] * group.ranks)[0].decode()
    host = group.hosts[0] if len(set(group.hosts)) > 1 else "127.0.0.1"
    dist.init_process_group("gloo", init_method=f"tcp://{host}:{told}", rank=group.rank,
                            world_size=group.ranks)


def main():
    """Open the group that the command names."""
    torch.set_num_threads(1)
    over = sys.argv[1] if len(sys.argv) > 1 else "alone"
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 10
    if over == "alone":
        run(None, steps)
        return
    if over == "torch":
        dist.init_process_group("gloo")
    with embeng.Group.torch() if over == "torch" else embeng.Group("mpi") as group:
        if over == "mpi":
            join_gloo(group)
        run(group, steps)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

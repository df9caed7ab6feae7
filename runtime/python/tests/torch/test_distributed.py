# SPDX-License-Identifier: MIT
"""Tables under DistributedDataParallel with two processes, and beside workers of a DataLoader."""
import copy
import gc
import os
import socket

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

import embeng.torch as et

torch.set_num_threads(1)
ROWS, DIM, WORLD = 17, 4, 2


class Model(nn.Module):
    """Bags and rows, weighted, and a layer."""

    def __init__(self, library):
        super().__init__()
        self.bag = library.EmbeddingBag(ROWS, DIM, mode="sum")
        self.row = library.Embedding(ROWS, DIM, padding_idx=3)
        self.top = nn.Linear(DIM, 1)

    def forward(self, ids, weights):
        return self.top(self.bag(ids, per_sample_weights=weights) * self.row(ids).mean(1))


def inputs(rank, k):
    generator = torch.Generator().manual_seed(10 * k + rank)
    ids = torch.randint(0, ROWS, (2 + rank + k, 3), generator=generator)
    return ids, torch.rand(ids.shape, generator=generator)


def loss_of(model, rank, k):
    return model(*inputs(rank, k)).square().sum()


def check_same_everywhere(model):
    for parameter in model.parameters():
        parts = [torch.empty_like(parameter) for _ in range(WORLD)]
        dist.all_gather(parts, parameter.detach().contiguous())
        assert torch.equal(parts[0], parts[1])


def run_reference(model, steps, clip):
    """Train with all batches in one process, as DDP's mean of gradients says."""
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)
    for k in range(steps):
        optimizer.zero_grad()
        for rank in range(WORLD):
            (loss_of(model, rank, k) / WORLD).backward()
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()


def train_rank(rank, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=WORLD)
    try:
        for clip in (False, True):
            check_training(rank, clip)
        check_backward(rank)
        gc.collect()  # DDP's reducers go before the threads of gloo that they use
        dist.barrier()
    finally:
        dist.destroy_process_group()


def check_training(rank, clip):
    torch.manual_seed(40 + rank)  # rows of rank 0 count
    model = et.distribute(Model(et))
    check_same_everywhere(model.bag)
    wrapped = DistributedDataParallel(model)
    reference = Model(nn)
    reference.load_state_dict(copy.deepcopy(model.state_dict()))
    optimizer = et.optim.Adagrad(wrapped.parameters(), lr=0.1)
    for k in range(4):
        optimizer.zero_grad()
        loss_of(wrapped, rank, k).backward()
        if clip:
            et.clip_grad_norm_(wrapped.parameters(), 0.1)
        optimizer.step()
        check_same_everywhere(model)
    run_reference(reference, 4, clip)
    for mine, theirs in zip(model.parameters(), reference.parameters()):
        torch.testing.assert_close(mine.detach(), theirs.detach(), rtol=1e-4, atol=1e-5)
    check_uneven(rank, model, optimizer)


def check_backward(rank):
    """Updates at backward have the gradients of both processes, too."""
    row = et.distribute(et.Embedding(ROWS, DIM, update="backward"))
    optimizer = et.optim.SGD(row.parameters(), lr=1.0)
    expected = row.weight.detach().clone()
    row(torch.tensor([rank, rank, 9])).sum().backward()
    expected[:2] -= 1.0
    expected[9] -= 1.0
    torch.testing.assert_close(row.weight.detach(), expected)
    check_same_everywhere(row)
    optimizer.zero_grad()


def check_uneven(rank, model, optimizer):
    """One process has no gradient, and both take its step."""
    optimizer.zero_grad()
    before = model.row.weight.detach().clone()
    if rank == 1:
        model.row(torch.tensor([5, 3])).sum().backward()
    optimizer.step()
    changed = (model.row.weight.detach() != before).any(1).nonzero()[:, 0]
    assert changed.tolist() == [5]
    check_same_everywhere(model)


def test_two_processes_keep_the_same_bits():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    torch.multiprocessing.spawn(train_rank, (port,), nprocs=WORLD)


def test_without_processes_it_is_told():
    with pytest.raises(RuntimeError, match="torch.distributed is not initialized"):
        et.distribute(nn.Sequential(et.Embedding(2, 2)))


def test_workers_of_a_data_loader():
    model = et.EmbeddingBag(ROWS, DIM)
    optimizer = et.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(torch.arange(16).reshape(8, 2)), batch_size=4, num_workers=2,
                        multiprocessing_context="fork")
    before = model.weight.detach().clone()
    for _ in range(2):
        for (ids,) in loader:
            model(ids).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    before[:16] -= 2 * 0.1 * 0.5
    torch.testing.assert_close(model.weight.detach(), before)


def use_in_child(model):
    """Return what a lookup in a forked process says."""
    try:
        return "none", model(torch.tensor([[1]])).shape
    except Exception as error:
        return type(error).__name__, str(error)


class Asking(torch.utils.data.Dataset):
    """A data set that uses the module in the worker, which it must not."""

    def __init__(self, model):
        self.model = model

    def __len__(self):
        return 1

    def __getitem__(self, k):
        return use_in_child(self.model)


def test_a_forked_worker_is_refused():
    model = et.EmbeddingBag(ROWS, DIM)
    loader = DataLoader(Asking(model), batch_size=None, num_workers=1,
                        multiprocessing_context="fork")
    (name, sentence), = list(loader)
    assert name == "NotSupportedError" and "forked" in sentence
    assert model(torch.tensor([[1]])).shape == (1, DIM)

# SPDX-License-Identifier: MIT
"""Train a model on a GPU whose tables are in the processor's memory, and compare with torch.

Run it on a machine with CUDA: ``python cuda_model.py``. Exit codes: 0, the numbers are equal; 1,
they are not; 77, this machine has no CUDA.
"""
import sys
import time

import torch
from torch import nn

import embeng.torch as et

ROWS, DIM, BATCH, BAG, STEPS = 100_000, 64, 2048, 20, 30


class Model(nn.Module):
    """A table, and layers above it."""

    def __init__(self, table: nn.Module):
        super().__init__()
        self.table = table
        self.top = nn.Sequential(nn.Linear(DIM, 128), nn.ReLU(), nn.Linear(128, 1))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.top(self.table(ids))[:, 0]


def train(model: nn.Module, optimizer: torch.optim.Optimizer, device: str,
          place_of_ids: str) -> tuple[list[float], float]:
    """Return losses, and seconds a step without the first ones."""
    generator = torch.Generator().manual_seed(1)
    losses, begun = [], 0.0
    for step in range(STEPS):
        ids = torch.randint(0, ROWS, (BATCH, BAG), generator=generator).to(place_of_ids)
        labels = (torch.rand(BATCH, generator=generator) > 0.5).float().to(device)
        if step == 5:
            torch.cuda.synchronize()
            begun = time.perf_counter()
        optimizer.zero_grad()
        loss = nn.functional.binary_cross_entropy_with_logits(model(ids), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    torch.cuda.synchronize()
    return losses, (time.perf_counter() - begun) / (STEPS - 5)


def make(cls: type[nn.Module], **settings: object) -> Model:
    torch.manual_seed(0)
    return Model(cls(ROWS, DIM, mode="sum", **settings))


def main() -> int:
    if not torch.cuda.is_available():
        print("cuda_model.py: this machine has no CUDA that torch can use; nothing was run",
              file=sys.stderr)
        return 77
    print(torch.cuda.get_device_name(), "torch", torch.__version__)
    reference = make(nn.EmbeddingBag, sparse=True).to("cuda")
    wanted, seconds = train(reference, torch.optim.SGD(reference.parameters(), lr=0.5), "cuda",
                            "cuda")
    print(f"torch, table on the GPU:  {seconds * 1e3:.2f} ms a step")
    failed = False
    for place in ("cpu", "cuda"):
        model = make(et.EmbeddingBag).to("cuda")
        assert model.table.weight.device.type == "cpu"
        losses, seconds = train(model, et.optim.SGD(model.parameters(), lr=0.5), "cuda", place)
        worst = max(abs(a - b) for a, b in zip(losses, wanted, strict=True))
        rows = (model.table.weight.detach() - reference.table.weight.detach().cpu()).abs().max()
        print(f"embeng, ids on {place}: {seconds * 1e3:.2f} ms a step; losses differ by "
              f"{worst:.2e}, rows by {rows.item():.2e}")
        failed |= worst > 1e-4 or rows.item() > 1e-4
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

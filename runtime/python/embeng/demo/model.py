# SPDX-License-Identifier: MIT
"""The model of the demo: a small DLRM (Naumov et al. 2019) whose tables are those of embeng.torch.

A bottom network makes a vector of the dense features. Its dot products with the vectors of the
tables, and theirs with each other, go into a top network, beside the dense vector.
"""
import torch
from torch import Tensor, nn

from .. import torch as tables
from .examples import Batch, Examples

DIM = 32
DEVIATION = 0.1


class Dlrm(nn.Module):
    """Scores of candidates for packages whose other dependencies are known."""

    def __init__(self, examples: Examples):
        super().__init__()
        packages = len(examples.names)
        self.known = tables.EmbeddingBag(packages, DIM, mode="mean")
        self.candidate = tables.Embedding(packages, DIM)
        self.section = tables.Embedding(len(examples.sections), DIM)
        self.maintainer = tables.Embedding(len(examples.maintainers), DIM)
        self.bottom = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, DIM))
        self.top = nn.Sequential(nn.Linear(DIM + 10, 32), nn.ReLU(), nn.Linear(32, 1))
        for table in self.tables().values():
            nn.init.normal_(table.weight, std=DEVIATION)

    def tables(self) -> dict[str, "tables.EmbeddingBag | tables.Embedding"]:
        """Return the modules that have tables, by their names."""
        return {"known": self.known, "candidate": self.candidate, "section": self.section,
                "maintainer": self.maintainer}

    def forward(self, batch: Batch) -> Tensor:
        """Return scores [examples, candidates]."""
        context, starts, section, maintainer, dense, candidates = map(torch.from_numpy, batch)
        bottom = self.bottom(dense)
        about = torch.stack([bottom, self.known(context, starts), self.section(section),
                             self.maintainer(maintainer)], 1)
        products = about @ about.transpose(1, 2)
        upper = torch.triu_indices(4, 4, 1)
        shared = torch.cat([bottom, products[:, upper[0], upper[1]]], 1)
        own = self.candidate(candidates) @ about.transpose(1, 2)
        whole = torch.cat([shared[:, None].expand(-1, own.shape[1], -1), own], 2)
        scores: Tensor = self.top(whole)[..., 0]
        return scores

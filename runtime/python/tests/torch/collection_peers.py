# SPDX-License-Identifier: MIT
"""Tables, batches and peers that the tests of collections share."""
import copy
import io
import pickle

import torch
from hypothesis import settings, strategies as st
from torch import nn

from embeng.torch import KeyedJaggedTensor, configs

torch.set_num_threads(1)
thorough = settings(deadline=None, derandomize=False, print_blob=True, max_examples=40)

ROWS = 6
BAG, ROW = configs.EmbeddingBagConfig, configs.EmbeddingConfig
MEAN = configs.PoolingType.MEAN


def bag_tables():
    """Three tables: one of two features, one with a feature of its own, one that shares two."""
    return [BAG(ROWS, 3, "t1", feature_names=["f1", "f2"]),
            BAG(ROWS, 5, "t2", feature_names=["f3"], pooling=MEAN),
            BAG(ROWS, 1, "t3", feature_names=["f2", "f3"])]


BAG_NAMES = ["f1", "f2@t1", "f3@t2", "f2@t3", "f3@t3"]
BAG_WHERE = [("f1", "t1"), ("f2", "t1"), ("f3", "t2"), ("f2", "t3"), ("f3", "t3")]


def row_tables():
    return [ROW(ROWS, 4, "t1", feature_names=["f1", "f2"]),
            ROW(ROWS, 4, "t2", feature_names=["f2", "f3"])]


@st.composite
def batches(draw, weighted=None, varies=None, inverse=False):
    """A keyed jagged tensor with the keys f1 to f3 and maybe another, in any order."""
    keys = draw(st.permutations(["f1", "f2", "f3", "other"]))
    if draw(st.booleans()):
        keys.remove("other")
    variable = draw(st.booleans()) if varies is None else varies
    least = 1 if inverse else 0
    stride = draw(st.integers(least, 4))
    strides = [draw(st.integers(least, 4)) if variable else stride for _ in keys]
    lengths = [draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)) for n in strides]
    ids = [draw(st.lists(st.integers(0, ROWS - 1), min_size=sum(part), max_size=sum(part)))
           for part in lengths]
    values = torch.tensor([i for part in ids for i in part],
                          dtype=draw(st.sampled_from([torch.int32, torch.int64])))
    weights = None
    if draw(st.booleans()) if weighted is None else weighted:
        weights = (1 + torch.arange(len(values), dtype=torch.float32)) / 4
    whole = draw(st.integers(0, 5))
    indices = torch.tensor([draw(st.lists(st.integers(0, n - 1), min_size=whole, max_size=whole))
                            for n in strides]).reshape(len(keys), whole) if inverse else None
    return KeyedJaggedTensor(
        keys, values, weights,
        torch.tensor([n for part in lengths for n in part],
                     dtype=draw(st.sampled_from([torch.int32, torch.int64]))),
        stride_per_key_per_rank=[[n] for n in strides] if variable or inverse else None,
        inverse_indices=(keys, indices.to(torch.int64)) if inverse else None)


class Peer(nn.Module):
    """The same tables as modules of torch, with the same rows. A mean of weights is by hand."""

    def __init__(self, collection, sparse=False):
        super().__init__()
        self.tables = nn.ModuleDict()
        holders = getattr(collection, "embedding_bags", None) or collection.embeddings
        for name, holder in holders.items():
            table = nn.EmbeddingBag(*holder.weight.shape, mode="sum", sparse=sparse)
            table.weight.data.copy_(holder.weight.detach())
            self.tables[name] = table

    def pool(self, table, mean, jagged, weights):
        module = self.tables[table]
        pooled = module(jagged.values().long(), jagged.offsets().long()[:-1], weights)
        if mean and weights is None:
            pooled = pooled / jagged.lengths().clamp(min=1)[:, None]
        elif mean:
            rows = torch.repeat_interleave(torch.arange(len(pooled)), jagged.lengths())
            total = torch.zeros(len(pooled)).index_add(0, rows, weights)
            pooled = pooled / torch.where(total == 0, 1.0, total)[:, None]
        return pooled

    def forward(self, keyed, weights=None):
        parts = keyed.to_dict()
        begin = dict(zip(keyed.keys(), keyed.offset_per_key()))
        found = []
        for feature, table in BAG_WHERE:
            jagged = parts[feature]
            own = None if weights is None else weights[begin[feature]:][:len(jagged.values())]
            pooled = self.pool(table, table == "t2", jagged, own)
            if keyed.inverse_indices_or_none() is not None:
                names, indices = keyed.inverse_indices()
                pooled = pooled[indices[names.index(feature)]]
            found.append(pooled)
        return found


def assert_rows_equal(collection, peer, **tolerance):
    holders = getattr(collection, "embedding_bags", None) or collection.embeddings
    for name, holder in holders.items():
        torch.testing.assert_close(holder.weight.detach(), peer.tables[name].weight.detach(),
                                   **tolerance)


def every_row(weighted=False):
    """A batch that touches all rows of all tables, so that lazy optimizers are dense ones."""
    ids = torch.arange(3 * ROWS) % ROWS
    weights = (1 + torch.arange(3 * ROWS) % 5) / 3 if weighted else None
    return KeyedJaggedTensor.from_lengths_sync(
        ["f1", "f2", "f3"], ids, torch.tensor([3, 0, 3, 1, 2, 3, 3, 0, 3]), weights)


class Member:
    """Stands for a member of torchrec's enumeration: what is read of it is its name."""

    def __init__(self, name):
        self.name, self.value = name, name.lower()


def copies_of(module):
    stream = io.BytesIO()
    torch.save(module, stream)
    stream.seek(0)
    return {"deepcopy": copy.deepcopy(module), "pickle": pickle.loads(pickle.dumps(module)),
            "torch.save": torch.load(stream, weights_only=False)}

# SPDX-License-Identifier: MIT
"""Models and data that the tests of embeng.keras share, and their reference in numpy."""
from typing import Any

import keras
import numpy

import embeng
from embeng.keras import DistributedEmbedding, FeatureConfig, TableConfig

BATCH, ROWS, DIM = 16, 30, 4
BACKEND = keras.backend.backend()


def make_table(name: str = "t", rows: int = ROWS, dim: int = DIM, **settings: Any) -> TableConfig:
    """Make settings of a table whose rows are the same on each backend."""
    start = embeng.initializers.uniform(-1, 1, seed=sum(map(ord, name)))
    return TableConfig(name, rows, dim, **{"initializer": start, "optimizer": "sgd", **settings})


def make_feature(table: TableConfig, name: str = "f", ids: int | None = 3) -> FeatureConfig:
    """Make settings of a feature of `ids` ids a sample, or of one id without that dimension."""
    shape = (BATCH,) if ids is None else (BATCH, ids)
    return FeatureConfig(name, table, shape, (BATCH, table.embedding_dim))


def make_configs(optimizer: Any = "sgd", **settings: Any) -> Any:
    """Make nested features of two tables, of which two share one."""
    first = make_table("t", optimizer=optimizer, **settings)
    second = make_table("u", 20, 8, optimizer=optimizer, combiner="sum", **settings)
    return {"a": make_feature(first, "a"),
            "n": {"b": make_feature(second, "b", None), "c": make_feature(first, "c", 2)}}


def make_model(configs: Any, optimizer: Any = None, **options: Any) -> Any:
    """Make and compile a model of nested features with one dense layer."""
    layer = DistributedEmbedding(configs, name="embedding", **options)
    inputs = {"a": keras.Input((3,), dtype="int32"),
              "n": {"b": keras.Input((), dtype="int32"), "c": keras.Input((2,), dtype="int32")}}
    found = layer(inputs)
    joined = keras.layers.Concatenate()([found["a"], found["n"]["b"], found["n"]["c"]])
    head = keras.layers.Dense(1, kernel_initializer=keras.initializers.Constant(0.1),
                              dtype="float32")
    model = keras.Model(inputs, head(joined))
    model.compile(optimizer=optimizer or keras.optimizers.SGD(0.1), loss="mse")
    return model, layer


def make_data(rng: numpy.random.Generator, samples: int) -> Any:
    """Make inputs of :func:`make_configs` and labels."""
    ids = {"a": rng.integers(0, ROWS, (samples, 3)).astype("int32"),
           "n": {"b": rng.integers(0, 20, samples).astype("int32"),
                 "c": rng.integers(0, ROWS, (samples, 2)).astype("int32")}}
    return ids, rng.standard_normal((samples, 1)).astype("float32")


def read_rows(layer: Any, name: str = "t") -> Any:
    """Return a table's rows as an array of numpy."""
    return keras.ops.convert_to_numpy(layer.get_embedding_tables()[name])


def combine(rows: Any, bags: Any, weights: Any = None, combiner: str = "mean") -> Any:
    """Combine the rows of bags in float64."""
    found = numpy.zeros((len(bags), rows.shape[1]))
    for k, bag in enumerate(bags):
        by = numpy.ones(len(bag)) if weights is None else numpy.asarray(weights[k], float)
        total = by @ rows[bag].astype(float) if len(bag) else 0.0
        divisor = {"sum": 1.0, "mean": by.sum(), "sqrtn": numpy.sqrt((by * by).sum())}[combiner]
        found[k] = total / divisor if divisor else 0.0
    return found


def make_ragged(bags: Any, kind: str) -> Any:
    """Make a tensor of the backend that has bags of different lengths; on JAX lists of arrays."""
    if BACKEND == "tensorflow":
        import tensorflow as tf

        return tf.ragged.constant(bags, dtype=kind)
    if BACKEND == "torch":
        import torch

        return torch.nested.nested_tensor([torch.tensor(bag, dtype=getattr(torch, kind))
                                           for bag in bags], layout=torch.jagged)
    made = numpy.empty(len(bags), object)
    made[:] = [numpy.array(bag, kind) for bag in bags]
    return made


def make_sparse(bags: Any, kind: str) -> Any:
    """Make a sparse tensor of the backend that has an id of a bag at each place of it."""
    indices = [[k, i] for k, bag in enumerate(bags) for i in range(len(bag))]
    values = numpy.array([value for bag in bags for value in bag], kind)
    shape = (len(bags), max(map(len, bags)))
    if BACKEND == "tensorflow":
        import tensorflow as tf

        return tf.SparseTensor(indices, values, shape)
    if BACKEND == "torch":
        import torch

        return torch.sparse_coo_tensor(torch.tensor(indices).T, torch.from_numpy(values), shape)
    import jax.numpy as jnp
    from jax.experimental import sparse

    return sparse.BCOO((jnp.asarray(values), jnp.asarray(indices)), shape=shape)

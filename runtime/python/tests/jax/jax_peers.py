# SPDX-License-Identifier: MIT
"""Embeddings of JAX for tests, and the same in jnp with dense gradients."""
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy
import pytest

import embeng
import embeng.jax

jax.config.update("jax_num_cpu_devices", 4)
jax.config.update("jax_platforms", "cpu")

ROWS, DIM, RATE = 11, 4, 0.25


def make_embedding(calls: str | None = "ffi", combiner: str = "sum", optimizer: Any = None,
                   **options: Any) -> embeng.jax.Embedding:
    """Make one of a table t with a feature f, g and a sequence feature s of 3."""
    table = embeng.Table("t", ROWS, DIM, combiner, optimizer or embeng.optimizers.sgd(RATE),
                         embeng.initializers.uniform(-1, 1, seed=7))
    features = [embeng.Feature("f", "t"), embeng.Feature("g", "t"),
                embeng.Feature("s", "t", max_sequence_length=3)]
    return embeng.jax.Embedding([table], features, calls=calls, cores=1, **options)


@pytest.fixture(params=["ffi", "pure", "callback"])
def emb(request: pytest.FixtureRequest) -> Iterator[embeng.jax.Embedding]:
    """Give an embedding of each backend, and close it."""
    with make_embedding(request.param) as made:
        yield made


def pad(bags: Sequence[Sequence[int]], width: int = 5) -> Any:
    """Return bags as a matrix that is filled up with -1."""
    found = numpy.full((len(bags), width), -1, numpy.int32)
    for sample, bag in enumerate(bags):
        found[sample, :len(bag)] = bag
    return found


def take_bags(rows: Any, ids: Any, combiner: str = "sum", weights: Any = None) -> Any:
    """Return what a lookup of padded bags is, by jnp.take, differentiable in every way."""
    there = (ids >= 0).astype(jnp.float32)
    factors = there if weights is None else there * weights
    if combiner == "mean":
        total = factors.sum(1, keepdims=True)
        factors = jnp.where(total == 0, 0, factors / jnp.where(total == 0, 1, total))
    if combiner == "sqrtn":
        total = jnp.sqrt((factors ** 2).sum(1, keepdims=True))
        factors = jnp.where(total == 0, 0, factors / jnp.where(total == 0, 1, total))
    taken = jnp.take(rows, jnp.maximum(ids, 0), axis=0)
    return (taken * factors[:, :, None]).sum(1)

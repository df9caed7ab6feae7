# SPDX-License-Identifier: MIT
"""FBGEMM's table-batched embeddings on the processor have the rows that ours have, after each step.

A release of FBGEMM serves one release of torch, so it is no part of the tests' environment: with
torch 2.13.0 it is fbgemm-gpu-cpu 1.8.0. Without it these tests are skipped.
"""
from typing import Any

import numpy
import pytest
import torch

import embeng

try:
    from fbgemm_gpu import split_table_batched_embeddings_ops_training as training
except ImportError:
    training = None

pytestmark = pytest.mark.skipif(training is None,
                                reason="the oracle fbgemm-gpu-cpu is not installed")

ROWS, DIM, STEPS = 50, 8, 12
SEED = 20261128
OURS = {
    "EXACT_SGD": embeng.optimizers.sgd(0.1),
    "EXACT_ADAGRAD": embeng.optimizers.adagrad_epsilon(0.1, epsilon=1e-8),
    "EXACT_ROWWISE_ADAGRAD": embeng.optimizers.rowwise_adagrad(0.1, epsilon=1e-8),
}


def _make_theirs(kind: str, pooling: str) -> Any:
    from fbgemm_gpu.split_embedding_configs import EmbOptimType
    from fbgemm_gpu.split_table_batched_embeddings_ops_common import EmbeddingLocation, PoolingMode

    return training.SplitTableBatchedEmbeddingBagsCodegen(
        [(ROWS, DIM, EmbeddingLocation.HOST, training.ComputeDevice.CPU)],
        optimizer=EmbOptimType[kind], learning_rate=0.1, eps=1e-8,
        pooling_mode=PoolingMode[pooling])


@pytest.mark.parametrize("pooling", ["SUM", "MEAN"])
@pytest.mark.parametrize("kind", OURS)
def test_same_rows(kind: str, pooling: str) -> None:
    """Trains both on the same bags, and compares activations and rows at each step."""
    print("seed", SEED)
    random = numpy.random.default_rng(SEED)
    theirs = _make_theirs(kind, pooling)
    weight = theirs.split_embedding_weights()[0]
    rows = random.standard_normal((ROWS, DIM)).astype(numpy.float32)
    weight.data.copy_(torch.from_numpy(rows))
    table = embeng.Table("t", ROWS, DIM, combiner=pooling.lower(), optimizer=OURS[kind])
    with embeng.Engine([table]) as engine:
        engine["t"].write(rows)
        for step in range(STEPS):
            lengths = random.integers(0, 6, 16)
            ids = random.integers(0, ROWS, lengths.sum())
            gradient = random.standard_normal((16, DIM)).astype(numpy.float32)
            offsets = torch.from_numpy(numpy.concatenate([[0], lengths.cumsum()]))
            output = theirs(torch.from_numpy(ids), offsets)
            bags = {"t": embeng.Ragged(ids, lengths=lengths)}
            numpy.testing.assert_allclose(engine.lookup(bags)["t"], output.detach().numpy(),
                                          rtol=1e-5, atol=1e-6)
            output.backward(torch.from_numpy(gradient))
            engine.update(bags, {"t": gradient})
            numpy.testing.assert_allclose(engine["t"].read(), weight.detach().numpy(), rtol=2e-5,
                                          atol=2e-6, err_msg=f"step {step}")

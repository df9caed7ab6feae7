# SPDX-License-Identifier: MIT
"""Two logical processors, before TensorFlow starts, and systems that are new for each test."""
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import embeng.tf as tf  # noqa: E402
from embeng.tf import ops  # noqa: E402

# Modules of tests make tensors, which starts TensorFlow.
tf.distribute.cluster_resolver.TPUClusterResolver(replicas=2)

MakeStrategy = Callable[[int], Any]


@pytest.fixture(params=["c", "py_function"])
def way(request: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Run a test with operators of the C API, and without."""
    monkeypatch.setenv("EMBENG_TF_OPS", request.param)
    ops._load_operators.cache_clear()
    yield request.param
    ops._load_operators.cache_clear()


@pytest.fixture
def make_strategy() -> Iterator[MakeStrategy]:
    """Give a function that starts the system anew with one or two replicas."""
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver
    resolver(replicas=2)

    def make(replicas: int) -> Any:
        found = resolver(replicas=replicas)
        tf.tpu.experimental.initialize_tpu_system(found)
        return tf.distribute.TPUStrategy(found)

    yield make
    tf.tpu.experimental.shutdown_tpu_system()

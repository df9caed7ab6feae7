# SPDX-License-Identifier: MIT
"""Two logical processors, before TensorFlow starts, and systems that are new for each test."""
import importlib.util
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

collect_ignore_glob = [] if importlib.util.find_spec("tensorflow") else ["test_*.py"]
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

if importlib.util.find_spec("tensorflow"):
    import embeng.tf

    # Modules of tests make tensors, which starts TensorFlow.
    embeng.tf.distribute.cluster_resolver.TPUClusterResolver(replicas=2)

MakeStrategy = Callable[[int], Any]


def pytest_configure(config: pytest.Config) -> None:
    """Name the mark of the tests that make check runs."""
    config.addinivalue_line("markers", "sample: one of the tests of a framework that are run often")


@pytest.fixture
def make_strategy() -> Iterator[MakeStrategy]:
    """Give a function that starts the system anew with one or two replicas."""
    import embeng.tf as tf

    resolver = tf.distribute.cluster_resolver.TPUClusterResolver
    resolver(replicas=2)

    def make(replicas: int) -> Any:
        found = resolver(replicas=replicas)
        tf.tpu.experimental.initialize_tpu_system(found)
        return tf.distribute.TPUStrategy(found)

    yield make
    tf.tpu.experimental.shutdown_tpu_system()

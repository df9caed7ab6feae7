# SPDX-License-Identifier: MIT
"""The tests of this folder need Keras and its three backends, and run each in a process of its own.

Files that begin with cases_ are tests, too: test_keras_backends.py runs them once for each backend.
"""
import importlib.util

import pytest

NEEDED = ("keras", "torch", "jax", "tensorflow")

# Without one of them nothing here is collected.
collect_ignore_glob = [] if all(map(importlib.util.find_spec, NEEDED)) else ["*.py"]



def pytest_configure(config: pytest.Config) -> None:
    """Say what the mark is that chooses a few tests."""
    config.addinivalue_line("markers", "sample: one of the few tests of each framework that run "
                                       "in every check")

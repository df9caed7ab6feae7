# SPDX-License-Identifier: MIT
"""Keras, TensorFlow and h5py as modules of type Any.

They have no types of their own, and those that tools guess from their code are often wrong.
"""
import importlib
from typing import Any


def load_module(name: str) -> Any:
    """Import a module."""
    return importlib.import_module(name)


keras = load_module("keras")

# SPDX-License-Identifier: MIT
"""Engines, and programs that run apart, for all tests of the package.

It is no conftest.py, since folders of tests have one of their own.
"""
import os
import subprocess
import sys
from collections.abc import Callable

import embeng


def make_engine(rows: int = 10, dim: int = 4, **options: object) -> embeng.Engine:
    """Open an engine of one table t with a feature f and a sequence feature s of 3."""
    opening = {"cores": 1, **options}
    table = embeng.Table("t", rows, dim, "sum", embeng.optimizers.sgd(0.5),
                         embeng.initializers.uniform(-1, 1, seed=7))
    features = [embeng.Feature("f", "t"), embeng.Feature("s", "t", max_sequence_length=3)]
    return embeng.Engine([table], features, **opening)


Run = Callable[..., "subprocess.CompletedProcess[str]"]


def start_python(code: str, *arguments: str) -> "subprocess.Popen[str]":
    """Start a program that can import what this one can."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen([sys.executable, "-c", code, *arguments], env=environment, text=True,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

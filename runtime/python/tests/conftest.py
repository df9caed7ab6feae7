# SPDX-License-Identifier: MIT
"""Seeds that are printed, engines, and programs that run apart, for all tests of the package."""
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy
import pytest
from hypothesis import HealthCheck, settings

import embeng

settings.register_profile("embeng", deadline=None, derandomize=False, print_blob=True,
                          database=None,
                          suppress_health_check=[HealthCheck.too_slow,
                                                 HealthCheck.function_scoped_fixture])
settings.load_profile("embeng")

SEED = int(os.environ.get("EMBENG_TEST_SEED") or random.randrange(2**32))
ROOT = Path(__file__).resolve().parents[3]


def pytest_report_header() -> str:
    """Name the seed, so that a failure can be run again by EMBENG_TEST_SEED."""
    return f"EMBENG_TEST_SEED={SEED}"


def pytest_configure(config: pytest.Config) -> None:
    """Name the markers by which scripts/python_package.py chooses."""
    config.addinivalue_line("markers", "framework: it needs TensorFlow, Keras or JAX")
    config.addinivalue_line("markers", "sample: a test of a framework that each check runs")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of a framework by their folder."""
    here = Path(__file__).parent
    for item in items:
        if item.path.relative_to(here).parts[0] in ("frameworks", "jax", "keras", "tf"):
            item.add_marker("framework")


@pytest.fixture
def rng() -> numpy.random.Generator:
    """Return a generator that starts from the seed of the run."""
    return numpy.random.default_rng(SEED)


def make_engine(rows: int = 10, dim: int = 4, **options: object) -> embeng.Engine:
    """Open an engine of one table t with a feature f and a sequence feature s of 3."""
    opening = {"cores": 1, **options}
    table = embeng.Table("t", rows, dim, "sum", embeng.optimizers.sgd(0.5),
                         embeng.initializers.uniform(-1, 1, seed=7))
    features = [embeng.Feature("f", "t"), embeng.Feature("s", "t", max_sequence_length=3)]
    return embeng.Engine([table], features, **opening)


@pytest.fixture
def engine() -> Iterator[embeng.Engine]:
    """Give an engine of one small table, and close it."""
    with make_engine() as opened:
        yield opened


Run = Callable[..., "subprocess.CompletedProcess[str]"]


def start_python(code: str, *arguments: str) -> "subprocess.Popen[str]":
    """Start a program that can import what this one can."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen([sys.executable, "-c", code, *arguments], env=environment, text=True,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.fixture
def run_python() -> Run:
    """Give a function that runs a program to its end, within a minute."""
    def run(code: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
        child = start_python(code, *arguments)
        try:
            out, err = child.communicate(timeout=60)
        finally:
            child.kill()
        return subprocess.CompletedProcess(child.args, child.returncode, out, err)
    return run

# SPDX-License-Identifier: MIT
"""Seeds that are printed, markers and fixtures, for all tests of the package."""
import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy
import pytest
from hypothesis import HealthCheck, settings
from support import Run, make_engine, start_python

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
    """Name the marker by which scripts/python_package.py chooses."""
    config.addinivalue_line("markers", "sample: a test of a framework that each check runs")


@pytest.fixture
def rng() -> numpy.random.Generator:
    """Return a generator that starts from the seed of the run."""
    return numpy.random.default_rng(SEED)


@pytest.fixture
def engine() -> Iterator[embeng.Engine]:
    """Give an engine of one small table, and close it."""
    with make_engine() as opened:
        yield opened


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

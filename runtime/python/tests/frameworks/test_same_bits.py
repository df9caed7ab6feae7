# SPDX-License-Identifier: MIT
"""The same training gives the same bits in C, numpy, torch, JAX, TensorFlow and Keras.

same_bits.py has the programs. The one of numpy is the measure: C is `embeng conform`, which is given a
vector that expects numpy's numbers without any tolerance.
"""
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy
import pytest
import same_bits

HERE = Path(__file__).parent
FRAMEWORKS = ["torch", "jax", "tf", "keras/torch", "keras/jax", "keras/tensorflow"]


def run_program(framework: str, *arguments: str) -> Any:
    """Return what the program of a framework prints; a backend of Keras stands behind a slash."""
    framework, _, backend = framework.partition("/")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1",
                   "TF_CPP_MIN_LOG_LEVEL": "3"}
    if backend:
        environment["KERAS_BACKEND"] = backend
    done = subprocess.run([sys.executable, HERE / "same_bits.py", framework, *arguments],
                          env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def expected() -> Any:
    """Return the bits of the program of numpy."""
    return run_program("numpy")


def numbers_of(bits: Any) -> Any:
    """Return numbers as a vector has them."""
    return numpy.array(bits, numpy.uint32).view(numpy.float32).tolist()


def make_vector(expected: Any) -> Any:
    """Make a vector of the same training that expects these bits."""
    exact = {"atol": 0, "rtol": 0}
    steps: list[Any] = []
    for (ids, gradient), found in zip(same_bits.BATCHES, expected["activations"], strict=True):
        steps += [{"enqueue": {"features": {"f": {"ragged": {"rows": ids.tolist()}}}}},
                  {"dequeue": {"expect": {"f": numbers_of(found)}, **exact}},
                  {"apply_gradients": {"gradients": {"f": gradient.tolist()}}}]
    steps += [{"expect_table": {"table": "t", "values": numbers_of(expected["rows"]), **exact}},
              {"expect_table": {"table": "t", "slot": "accumulators",
                                "values": numbers_of(expected["slots"]), **exact}}]
    shape = (same_bits.ROWS, same_bits.DIM)
    table = {"name": "t", "vocabulary_size": shape[0], "dim": shape[1], "combiner": "sum",
             "optimizer": {"kind": "adagrad", "learning_rate": same_bits.RATE},
             "initial": same_bits.START_ROWS.tolist(),
             "slots": {"accumulators": numpy.full(shape, same_bits.START).tolist()}}
    return {"schema": "embeng.vector/1", "name": "same bits", "tables": [table],
            "features": [{"name": "f", "table": "t"}], "steps": steps}


def run_conform(path: Path, vector: Any) -> "subprocess.CompletedProcess[str]":
    """Have the command judge a vector."""
    path.write_text(json.dumps(vector))
    return subprocess.run([os.environ["EMBENG_COMMAND"], "conform", "-d", "soft:cores=1", path],
                          capture_output=True, text=True, check=False)


@pytest.mark.sample
def test_c(expected: Any, tmp_path: Path) -> None:
    done = run_conform(tmp_path / "same.json", make_vector(expected))
    assert done.returncode == 0, done.stdout + done.stderr
    expected["rows"][3][5] ^= 1
    done = run_conform(tmp_path / "other.json", make_vector(expected))
    expected["rows"][3][5] ^= 1
    assert done.returncode == 1 and "[3][5]" in done.stdout


@pytest.mark.sample
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_framework(framework: str, expected: Any) -> None:
    assert run_program(framework) == expected


@pytest.mark.parametrize("order", [["torch", "jax", "keras/tensorflow", "tf", "numpy"],
                                   ["tf", "keras/torch", "numpy", "keras/jax", "jax"]],
                         ids=lambda order: "-".join(order).replace("/", "_"))
def test_checkpoints(order: list[str], expected: Any, tmp_path: Path) -> None:
    """Each framework makes a step and saves, and the next one goes on from there."""
    for step, framework in enumerate(order):
        found = run_program(framework, str(tmp_path / "saved"), str(step), str(step + 1))
        assert found["activations"] == [expected["activations"][step]]
    assert (found["rows"], found["slots"]) == (expected["rows"], expected["slots"])

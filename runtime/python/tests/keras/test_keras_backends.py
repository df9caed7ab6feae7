# SPDX-License-Identifier: MIT
"""The cases of embeng.keras pass on each backend of Keras, and all backends have the same bits."""
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BACKENDS = ("torch", "jax", "tensorflow")
HERE = Path(__file__).parent


def run_backend(backend: str, *arguments: str,
                **more: str) -> "subprocess.CompletedProcess[str]":
    """Run Python with a backend of Keras to its end, with more variables of the environment."""
    environment = {**os.environ, "KERAS_BACKEND": backend, "TF_CPP_MIN_LOG_LEVEL": "3",
                   "CUDA_VISIBLE_DEVICES": "-1",
                   "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path]), **more}
    return subprocess.run([sys.executable, *arguments], env=environment, text=True, cwd=HERE,
                          capture_output=True, timeout=900, check=False)


def run_cases(backend: str, *arguments: str, **more: str) -> None:
    """Run the files cases_*.py by pytest; a failure shows what pytest said, its seed included."""
    files = sorted(str(path) for path in HERE.glob("cases_*.py"))
    done = run_backend(backend, "-m", "pytest", "-p", "no:cacheprovider", "--tb=short",
                       "-W", "ignore", *arguments, *files, **more)
    print(done.stdout[-20000:])
    assert done.returncode == 0, done.stdout[-20000:] + done.stderr[-2000:]
    assert " passed" in done.stdout


@pytest.mark.parametrize("backend", BACKENDS)
def test_cases(backend: str) -> None:
    run_cases(backend)


@pytest.mark.parametrize(("backend", "variable", "value"), [
    ("jax", "EMBENG_JAX_CALLS", "callback"), ("tensorflow", "EMBENG_TF_OPS", "py_function")])
def test_calls_of_python_do_the_same(backend: str, variable: str, value: str) -> None:
    """Where jaxlib or TensorFlow do not take functions in C, the same cases pass."""
    chosen = ("losses or bags or overflows or scaled or rules or rates or weights or outside "
              "or eager or coordinates or padded")
    run_cases(backend, "-k", chosen, **{variable: value})


@pytest.mark.sample
def test_a_sample_of_the_cases() -> None:
    run_cases("torch", "-m", "sample")


def train(backend: str, source: str, target: str, optimizer: str) -> dict[str, Any]:
    """Run keras_program.py, and return what it found."""
    done = run_backend(backend, "keras_program.py", source, target, optimizer)
    lines = [line for line in done.stdout.splitlines() if line.startswith("FOUND ")]
    assert lines, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(lines[0].removeprefix("FOUND "))
    return found


@pytest.mark.parametrize("optimizer", ["adam", "clipped"])
def test_training_goes_on_in_another_backend_with_the_same_bits(optimizer: str,
                                                                tmp_path: Path) -> None:
    first = {backend: train(backend, "-", str(tmp_path / f"{backend}.keras"), optimizer)
             for backend in BACKENDS}
    assert first["torch"] == first["jax"] == first["tensorflow"]
    assert first["torch"]["step"] == 4
    second = [train(backend, str(tmp_path / f"{other}.keras"), str(tmp_path / "last.keras"), "-")
              for backend, other in zip(BACKENDS, BACKENDS[1:] + BACKENDS[:1], strict=True)]
    assert second[0] == second[1] == second[2]
    assert second[0]["step"] == 8 and second[0]["rows"] != first["torch"]["rows"]

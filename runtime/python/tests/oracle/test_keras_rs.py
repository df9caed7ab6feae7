# SPDX-License-Identifier: MIT
"""keras-rs' own tests, run against embeng.keras in place of keras-rs, on each backend.

Each backend needs a process of its own, which runs one file. keras-rs is installed for what else
the files import of it. The file about the layer knows machines without a TPU, where "sparsecore" is
refused, and machines with one; it runs as on both, and once more with the placement "auto" in place
of "sparsecore", since it then compares what a saved model looks up. Every case that the file does
not skip passes.
"""
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

BACKENDS = ("torch", "jax", "tensorflow")
RUNS = [("keras_rs_distributed_embedding", "none"), ("keras_rs_embed_reduce", "none"),
        ("keras_rs_distributed_embedding", "engine"), ("keras_rs_distributed_embedding", "auto")]


def _run(name: str, backend: str, machine: str) -> dict[str, str]:
    environment = {**os.environ, "KERAS_BACKEND": backend,
                   "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    done = subprocess.run([sys.executable, str(Path(__file__).with_name("keras_rs_cases.py")), name,
                           machine], env=environment, capture_output=True, text=True,
                          timeout=600, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULTS ")]
    assert lines, done.stderr[-4000:]
    found: dict[str, str] = json.loads(lines[0].removeprefix("RESULTS "))
    return found


@pytest.mark.skipif(not os.environ.get("EMBENG_ORACLES"), reason="EMBENG_ORACLES names no folder")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("name", "machine"), RUNS)
def test_keras_rs(name: str, machine: str, backend: str) -> None:
    """Runs one file of theirs as on one machine."""
    found = _run(name, backend, machine)
    counts: dict[str, int] = {}
    for what in found.values():
        key = what if what in ("passed", "skipped") else "failed"
        counts[key] = counts.get(key, 0) + 1
    print(name, machine, backend, counts)
    failed = {case: what for case, what in found.items() if what not in ("passed", "skipped")}
    assert not failed, "\n".join(f"{case}\n{what}" for case, what in failed.items())
    assert counts["passed"] >= 18, counts

# SPDX-License-Identifier: MIT
"""keras-rs' own tests, run against embeng.keras in place of keras-rs, on each backend.

Each backend needs a process of its own, which runs one file. keras-rs is installed for what else
the files import of it. The file about the layer places its tables on the default device where there
is no TPU; it is run a second time with them in the engine. A case that cannot pass is in CANNOT
with its reason, and must fail as long as it is.
"""
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BACKENDS = ("torch", "jax", "tensorflow")
ENGINE = "the rows are the engine's memory, and no variable of Keras has a copy of them"
SERVED = "the engine serves the placement that the case expects to be refused without a TPU"
GRAPH = "XLA compiles no operator in C for TensorFlow"
# By the last part of a case's name.
CANNOT: dict[str, dict[str, str]] = {
    backend: {
        f"test_basics_{kind}_{placement}": reason
        for kind in kinds
        for placement, reason in (("auto", ENGINE), ("sparsecore", SERVED))
    } for backend, kinds in (("torch", ["dense"]), ("jax", ["dense", "ragged"]),
                             ("tensorflow", ["dense", "ragged", "sparse"]))
}
CANNOT_ENGINE: dict[str, dict[str, str]] = {
    "torch": {}, "jax": {}, "tensorflow": {
        f"test_correctness_{combiner}_dense_{rank}d{weights}_jit": GRAPH
        for combiner in ("sum", "mean", "sqrtn") for rank in (1, 2)
        for weights in ("", "_weights")}}
RUNS = [("keras_rs_distributed_embedding", "default_device"),
        ("keras_rs_embed_reduce", "default_device"),
        ("keras_rs_distributed_embedding", "auto")]


def _run(name: str, backend: str, placement: str) -> dict[str, str]:
    environment = {**os.environ, "KERAS_BACKEND": backend,
                   "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    done = subprocess.run([sys.executable, str(Path(__file__).with_name("keras_rs_cases.py")), name,
                           placement], env=environment, capture_output=True, text=True,
                          timeout=600, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULTS ")]
    assert lines, done.stderr[-4000:]
    found: dict[str, str] = json.loads(lines[0].removeprefix("RESULTS "))
    return found


@pytest.mark.skipif(not os.environ.get("EMBENG_ORACLES"), reason="EMBENG_ORACLES names no folder")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("name", "placement"), RUNS)
def test_keras_rs(name: str, placement: str, backend: str) -> None:
    """Runs one file of theirs, and compares what failed with the list."""
    found = _run(name, backend, placement)
    counts: dict[str, int] = {}
    for what in found.values():
        key = what if what in ("passed", "skipped") else "failed"
        counts[key] = counts.get(key, 0) + 1
    print(name, placement, backend, counts)
    cannot: dict[str, Any] = {}
    if name == "keras_rs_distributed_embedding":
        cannot = {**CANNOT[backend], **(CANNOT_ENGINE[backend] if placement == "auto" else {})}
    failed = {case.rsplit(".", 1)[1]: what for case, what in found.items()
              if what not in ("passed", "skipped")}
    unexpected = {case: what for case, what in failed.items() if case not in cannot}
    assert not unexpected, "\n".join(f"{case}\n{what}" for case, what in unexpected.items())
    assert set(failed) == set(cannot), "a case that is listed passes; take it out of the list"

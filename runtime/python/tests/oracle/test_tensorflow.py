# SPDX-License-Identifier: MIT
"""TensorFlow's own tests of TPUEmbedding, run against embeng.tf in its place.

tensorflow_cases.py runs them, in a process that has two logical processors. A case that cannot pass
is in CANNOT with its reason, and must fail as long as it is.
"""
import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from upstream import TENSORFLOW_BASES, TENSORFLOW_HASHES

PLACE = "all memory is the host's: a dataset without experimental_fetch_to_device=False is as good"
SPMD = "one replica over several cores of a TPU, compiled by XLA, has no counterpart"
INVALID = "tpu_embedding_v2_invalid_input_test:TPUEmbeddingTest."
CANNOT: dict[str, str] = {
    INVALID + "test_enqueue_cpu_tensor": PLACE,
    INVALID + "test_enqueue_cpu_tensor_with_outside_compilation0 (True)": PLACE,
    INVALID + "test_enqueue_cpu_tensor_with_outside_compilation1 (False)": PLACE,
    "tpu_embedding_v2_mp_strategy_test:TPUEmbeddingTPUStrategyV2Test.test_spmd_training0 (False)":
        SPMD,
    "tpu_embedding_v2_mp_strategy_test:TPUEmbeddingTPUStrategyV2Test.test_spmd_training1 (True)":
        SPMD,
}
NAMES = [name for name in (Path(path).stem for path in TENSORFLOW_HASHES)
         if name not in TENSORFLOW_BASES] + ["tpu_embedding_v2_optimizer_test"]


@functools.cache
def _run_files() -> dict[str, dict[str, Any]]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    program = Path(__file__).with_name("tensorflow_cases.py")
    # TensorFlow itself may wait for ever where it deletes the iterator of a data set.
    done = subprocess.run([sys.executable, str(program), *NAMES], capture_output=True, text=True,
                          env=environment, check=False, timeout=3600)
    assert done.returncode == 0, done.stderr[-4000:]
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"file"')]
    return {one["file"]: one["cases"] for one in found}


@pytest.mark.skipif(not os.environ.get("EMBENG_ORACLES"),
                    reason="the oracle TensorFlow is not there: EMBENG_ORACLES names no folder")
@pytest.mark.parametrize("name", NAMES)
def test_tensorflow(name: str) -> None:
    """Runs the cases of one file: those that fail are those that cannot pass."""
    cases = _run_files()[name]
    assert cases
    assert not [case for case, (what, _) in cases.items() if what == "skipped"]
    failed = {f"{name}:{case}": text for case, (what, text) in cases.items() if what == "failed"}
    listed = {case for case in CANNOT if case.startswith(name + ":")}
    unknown = set(failed) - listed
    assert not unknown, failed[min(unknown)]
    assert not listed - set(failed), "cases pass that are listed as impossible"

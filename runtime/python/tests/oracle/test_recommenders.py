# SPDX-License-Identifier: MIT
"""TensorFlow Recommenders' own tests of its layer TPUEmbedding, run against embeng.tf.tfrs.

The file names optimizers of the older Keras, so it runs with ``TF_USE_LEGACY_KERAS=1``. A case that
cannot pass would be in CANNOT with its reason.
"""
import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


NUMBER_OF_CASES = 12
CANNOT: dict[str, str] = {}


@functools.cache
def _run_cases() -> dict[str, str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path),
                   "TF_USE_LEGACY_KERAS": "1", "CUDA_VISIBLE_DEVICES": ""}
    program = Path(__file__).with_name("recommenders_cases.py")
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True,
                          env=environment, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.skipif(not os.environ.get("EMBENG_ORACLES"),
                    reason="the oracle recommenders is not there: EMBENG_ORACLES names no folder")
def test_recommenders() -> None:
    """Run the cases: those that fail are those that cannot pass."""
    cases = _run_cases()
    failed = {case: text for case, text in cases.items() if text != "passed"}
    assert len(cases) == NUMBER_OF_CASES
    assert set(failed) == set(CANNOT), next(iter(failed.values()), "cases pass that are listed")

# SPDX-License-Identifier: MIT
"""The example programs run to their end; each asserts on what it trained."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples"
EXAMPLES = ("tensorflow_tpu_embedding.py", "tensorflow_tpu_embedding_v2.py")


@pytest.mark.parametrize("replicas", ["1", "2"])
@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name: str, replicas: str, tmp_path: Path) -> None:
    """Runs one, on one and on two logical processors."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path),
                   "EMBENG_TF_REPLICAS": replicas, "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, str(FOLDER / name)], env=environment, cwd=tmp_path,
                          text=True, capture_output=True, timeout=240, check=False)
    print(done.stdout, done.stderr)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.parametrize(("name", "imports"), [
    *((name, ["import embeng.tf as tf"]) for name in EXAMPLES),
    ("tensorflow_layer.py", ["import embeng.tf as tf", "from embeng.tf import tfrs"])])
def test_imports_differ_alone(name: str, imports: list[str]) -> None:
    """A program has no line about embeng but its imports."""
    lines = (FOLDER / name).read_text().split('"""', 2)[2].splitlines()
    assert [line for line in lines if "embeng" in line] == imports

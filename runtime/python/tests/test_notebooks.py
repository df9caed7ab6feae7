# SPDX-License-Identifier: MIT
"""Each notebook runs from its first cell to its last, in an interpreter of its own.

The cells assert on values. Jupyter is not needed: a notebook is JSON, its code cells are Python.
"""
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))

# Runs the cells as one program would, with the lines of a failure named by the number of its cell.
RUNNER = """
import json, linecache, sys

space = {"__name__": "__main__"}
for number, source in enumerate(json.load(sys.stdin), 1):
    name = f"<cell {number}>"
    linecache.cache[name] = len(source), None, source.splitlines(True), name
    exec(compile(source, name, "exec"), space)
print("cells run:", number)
"""


def code_cells(path):
    content = json.loads(path.read_text(encoding="utf-8"))
    return ["".join(cell["source"]) for cell in content["cells"] if cell["cell_type"] == "code"]


def run_cells(cells, folder):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1",
                   "TMPDIR": str(folder)}
    done = subprocess.run([sys.executable, "-c", RUNNER], input=json.dumps(cells), text=True,
                          capture_output=True, cwd=folder, env=environment, timeout=300,
                          check=False)
    print(done.stdout, done.stderr)
    return done


def test_there_are_notebooks():
    assert [path.name for path in NOTEBOOKS] == ["checkpoints_between_frameworks.ipynb",
                                                "keras_on_three_backends.ipynb",
                                                "pytorch_in_two_lines.ipynb",
                                                "tpu_embedding_on_a_laptop.ipynb",
                                                "training_in_jax.ipynb"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_form(path):
    content = json.loads(path.read_text(encoding="utf-8"))
    assert (content["nbformat"], content["nbformat_minor"]) == (4, 4)
    assert content["metadata"]["license"] == "SPDX-License-Identifier: MIT"
    assert content["cells"][0]["cell_type"] == "markdown"
    for cell in content["cells"]:
        assert cell["cell_type"] in ("markdown", "code") and cell["metadata"] == {}
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None
        assert max(map(len, cell["source"])) <= 101  # with the end of the line


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_cells_run(path, tmp_path):
    cells = code_cells(path)
    assert sum(cell.count("assert ") for cell in cells) >= 10
    done = run_cells(cells, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == f"cells run: {len(cells)}"
    assert "seed" in done.stdout


def test_a_wrong_cell_fails(tmp_path):
    done = run_cells(["x = 1", "assert x == 2, 'x is not two'"], tmp_path)
    assert done.returncode == 1
    assert '"<cell 2>", line 1' in done.stderr and "x is not two" in done.stderr

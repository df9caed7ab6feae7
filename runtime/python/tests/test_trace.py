# SPDX-License-Identifier: MIT
"""EMBENG_TRACE records the commands of a program in Python, and the embeng command reads them."""
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support import start_python

TRAINING = """
from embeng import Engine, Feature, Table, optimizers

table = Table("t", 10, 4, "sum", optimizers.sgd(0.5))
with Engine([table], [Feature("f", "t")], cores=1) as engine:
    for ids in ([1, 2, 3], [4]):
        engine.enqueue({"f": ids})
        engine.apply_gradients({"f": engine.dequeue()["f"]})
    engine["t"].read([1])
"""


def _ask(*arguments: str | Path) -> Any:
    done = subprocess.run([os.environ["EMBENG_COMMAND"], *arguments, "--json"], text=True,
                          capture_output=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The record of a training of two steps, behind which rows are read."""
    path = tmp_path / "run.trace"
    monkeypatch.setenv("EMBENG_TRACE", str(path))
    program = start_python(TRAINING)
    _, errors = program.communicate()
    assert program.returncode == 0, errors
    return path


def test_steps(trace: Path) -> None:
    shown = _ask("trace", "show", trace)
    trained = [step for step in shown["steps"] if step["step"]]
    assert [step["step"] for step in trained] == [1, 2]
    for step in trained:
        assert [command["command"] for command in step["commands"]] == ["LOOKUP", "UPDATE"]
    assert all(command["status"] == "OK" for step in shown["steps"] for command in step["commands"])
    assert shown["unfinished"] == shown["strange"] == shown["lost"] == shown["unreadable"] == 0


def test_words(trace: Path) -> None:
    decoded = _ask("decode", trace)
    assert decoded["format"] == "trace" and decoded["odd"] == []
    said = [part["says"] for part in decoded["parts"] if part["part"] == "command"]
    opcodes = [words.split()[2] for words in said]
    assert [opcodes.count(name) for name in ("LOOKUP", "UPDATE", "ROWS_READ")] == [2, 2, 1]
    assert opcodes[0] == "MODEL_LOAD"


def test_no_record_unless_asked(tmp_path: Path) -> None:
    program = start_python(f"import os\nos.chdir({str(tmp_path)!r})\n{TRAINING}")
    _, errors = program.communicate()
    assert program.returncode == 0, errors
    assert list(tmp_path.iterdir()) == []

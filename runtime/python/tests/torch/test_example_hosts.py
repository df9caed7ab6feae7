# SPDX-License-Identifier: MIT
"""The examples of tables on several hosts learn the same bits under each launcher."""
import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import embeng

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


# Runs a command with its output in a new file of a folder: launchers that gather outputs of processes
# may put words of one within the line of another.
APART = ["sh", "-c", 'exec "$@" >"$(mktemp -p "$0")"']


def run(*command: str, **environment: str) -> str:
    """Run a command, and return what it printed."""
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=150,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1",
             **environment})
    assert done.returncode == 0, done.stderr
    return done.stdout


def find_digests(printed: str) -> dict[int, str]:
    """Return the digest of each host."""
    lines = [line.split() for line in printed.splitlines()]
    assert all(line[0] == "host" and len(line[2]) == 64 for line in lines), printed
    return {int(line[1].rstrip(":")): line[2] for line in lines}


def launch(folder: Path, launcher: list[str], *program: str) -> dict[int, str]:
    """Run the example under a launcher, and return the digest of each host."""
    run(*launcher, *APART, str(folder), sys.executable, str(EXAMPLES / program[0]),
        *program[1:], OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    return find_digests("".join(path.read_text() for path in folder.iterdir()))


@functools.cache
def run_alone(example: str, *arguments: str) -> str:
    """Return the digest of one process."""
    found = find_digests(run(sys.executable, str(EXAMPLES / example), *arguments))
    assert list(found) == [0]
    return found[0]


@pytest.mark.parametrize(("example", "ranks"), [("hosts.py", 2), ("hosts.py", 3),
                                                ("torch_hosts.py", 2)])
def test_torchrun(example: str, ranks: int, tmp_path: Path) -> None:
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--no-python",
                "--nproc-per-node", str(ranks)]
    found = launch(tmp_path, launcher, example, "torch")
    assert found == dict.fromkeys(range(ranks), run_alone(example))


def test_a_digest_tells_of_each_step() -> None:
    """One step more or less is another digest, so that equal ones mean something."""
    few = {run_alone("torch_hosts.py", "alone", steps) for steps in ("9", "10", "11")}
    assert len(few) == 3 and run_alone("torch_hosts.py") in few


@pytest.mark.parametrize("example", ["hosts.py", "torch_hosts.py"])
@pytest.mark.parametrize("launcher", [
    ["mpirun.openmpi", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1"], ["mpirun.mpich"]])
def test_mpirun(example: str, launcher: list[str], tmp_path: Path) -> None:
    """The package has the plug-in of each MPI that was there when it was built."""
    name = f"libembeng-{launcher[0].partition('.')[2]}.so.0"
    if not shutil.which(launcher[0]) or not (Path(embeng.__file__).parent / name).exists():
        pytest.skip(f"{launcher[0]} or {name} is not there")
    found = launch(tmp_path, [*launcher, "-n", "2"], example, "mpi")
    assert found == dict.fromkeys(range(2), run_alone(example))

# SPDX-License-Identifier: MIT
"""Groups of hosts over torch.distributed: processes that exchange, are killed, or are stopped."""
import json
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import start_python

import embeng
from embeng import Group

START = """
import json, os, sys, time
import numpy
import torch.distributed as dist
import embeng
from embeng import Group
rank, ranks, path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
dist.init_process_group("gloo", init_method="file://" + path, rank=rank, world_size=ranks)
def content(one, peer, count):
    return numpy.random.default_rng([one, peer, count]).bytes(count)
def tell(*what):
    print(json.dumps(what), flush=True)
"""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Any]:
    """Give a function that starts the processes of a program."""
    children: list[subprocess.Popen[str]] = []

    def run(ranks: int, code: str) -> list["subprocess.Popen[str]"]:
        children.extend(start_python(START + code, str(rank), str(ranks), str(tmp_path / "store"))
                        for rank in range(ranks))
        return children

    yield run
    for child in children:
        child.kill()
        child.communicate()


def read(child: "subprocess.Popen[str]") -> Any:
    assert child.stdout is not None
    line = child.stdout.readline()
    assert line, child.communicate()[1]
    return json.loads(line)


def finish(children: list["subprocess.Popen[str]"]) -> None:
    """Wait for the ends of processes, which say nothing more and end well."""
    for child in children:
        if child.stdin is not None and not child.stdin.closed:
            child.stdin.close()
            child.stdin = None
        out, err = child.communicate(timeout=60)
        assert (child.returncode, out) == (0, ""), err
        assert "Traceback" not in err and "terminate" not in err


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_values(start: Any, ranks: int) -> None:
    """Sizes around those at which messages are cut, alike on all hosts by their seed."""
    children = start(ranks, """
random = numpy.random.default_rng(len(sys.argv) + ranks)
with Group.torch(deadline=30, piece_bytes=5000) as group:
    assert (group.rank, group.ranks, len(group.hosts)) == (rank, ranks, ranks)
    for step in range(20):
        sizes = random.choice([0, 1, 3968, 3969, 9000, 70_000, 600_000], (ranks, ranks))
        came = group.exchange("sizes", step, [content(rank, k, n)
                                              for k, n in enumerate(sizes[rank].tolist())])
        assert came == [content(k, rank, n) for k, n in enumerate(sizes[:, rank].tolist())]
tell(sum(map(len, came)))
""")
    assert all(read(child)[0] >= 0 for child in children)
    finish(children)


def test_some_of_the_processes(start: Any) -> None:
    """The ranks of a process group count, and two groups of one are apart."""
    children = start(3, """
some = dist.new_group([2, 0])
if rank == 1:
    try:
        Group.torch(some)
    except embeng.StepOrderError as error:
        tell(str(error))
else:
    with Group.torch(some, deadline=30) as one, Group.torch(some, deadline=30) as two:
        one.begin("one", 1, [b"1"] * 2)
        came = two.exchange("two", 2, [bytes([rank])] * 2)
        tell(one.rank, one.ranks, [b.hex() for b in came], one.end()[1].decode())
""")
    first, second, third = (read(child) for child in children)
    order = ["02", "00"] if third[0] == 0 else ["00", "02"]
    assert first == [1 if third[0] == 0 else 0, 2, order, "1"]
    assert second == ["this process is not in the process group; call it in those that are"]
    assert third == [1 - first[0], 2, order, "1"]
    finish(children)


FAILING = """
group = Group.torch(deadline=30)
group.exchange("ids", 11)
tell("ready")
sys.stdin.readline()
began = time.monotonic()
try:
    group.exchange("rows", 12, timeout=2)
except embeng.EmbengError as error:
    seconds = time.monotonic() - began
    tell(type(error).__name__, error.code, str(error), seconds)
try:
    group.exchange("rows", 13)
except embeng.DeviceError as error:
    tell(str(error))
"""


@pytest.mark.parametrize("number, name, said", [
    (signal.SIGKILL, "DeviceError", "the transport says that host 1 ("),
    (signal.SIGSTOP, "WaitTimeoutError", "sent nothing for 2.0 s; hosts 0, 2 did"),
])
def test_survivors_name_the_host(start: Any, number: int, name: str, said: str) -> None:
    """Each gets the same sentence at most a second after the deadline, and ends by itself."""
    children = start(3, FAILING)
    assert [read(child) for child in children] == [["ready"]] * 3
    children[1].send_signal(number)
    left = [children[0], children[2]]
    for child in left:
        assert child.stdin is not None
        child.stdin.write("\n")
        child.stdin.flush()
    told = [read(child) for child in left]
    for kind, code, sentence, seconds in told:
        assert kind == name and code < 0 and seconds < 3
        assert sentence.startswith("step 12, rows: ") and "host 1 (" in sentence
        assert said in sentence or "brought no message to" in sentence \
            or "got no message from" in sentence
    assert told[0][2] == told[1][2]
    for child in left:
        assert told[0][2] in read(child)[0]
    began = time.monotonic()
    finish(left)
    assert time.monotonic() - began < 20


def test_a_process_that_does_not_come(start: Any) -> None:
    children = start(3, """
if rank != 1:
    began = time.monotonic()
    try:
        Group.torch(deadline=1.0)
    except embeng.WaitTimeoutError as error:
        tell(str(error), error.code, time.monotonic() - began)
sys.stdin.readline()  # torch wants all processes to stay until the others are ready
""")
    for child in (children[0], children[2]):
        sentence, code, seconds = read(child)
        assert sentence == ("Group.torch: host 1 of 3 did not come within 1.0 s; all processes "
                            "must call it equally often")
        assert code == -62 and 1 <= seconds < 2
    finish(children)


def test_without_processes_it_is_told() -> None:
    with pytest.raises(embeng.StepOrderError, match="torch.distributed is not initialized"):
        Group.torch()

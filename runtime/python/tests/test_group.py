# SPDX-License-Identifier: MIT
"""Groups of hosts that are threads of this process, over both kinds of transports within one."""
import contextlib
import errno
import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy
import pytest
from hosts import Results, run_hosts
from hypothesis import given, settings
from hypothesis import strategies as st

import embeng
from embeng import Group, _core

FRAME_BYTES = 256 * 1024


class Wires:
    """Relays of one process: threads carry the frames of each to the others."""

    def __init__(self, ranks: int):
        self.relays = [_core.Relay(rank, ranks) for rank in range(ranks)]
        self.cut: set[int] = set()  # hosts whose frames are lost from now on
        for one in range(ranks):
            for peer in range(ranks):
                if one != peer:
                    threading.Thread(target=self._carry, args=(one, peer), daemon=True).start()

    def _carry(self, one: int, peer: int) -> None:
        frame = numpy.empty(FRAME_BYTES, numpy.uint8)
        while count := self.relays[one].take(peer, frame):
            if not self.cut & {one, peer}:
                self.relays[peer].give(one, frame[:count])

    def transports(self) -> list[embeng.Transport]:
        return [relay.transport(f"wire{rank}") for rank, relay in enumerate(self.relays)]


def over_relays(ranks: int) -> list[embeng.Transport]:
    return Wires(ranks).transports()


both = pytest.mark.parametrize("make", [Group.threads, over_relays])


def content(seed: int, one: int, peer: int, count: int) -> bytes:
    return numpy.random.default_rng([seed, one, peer]).bytes(count)


@both
@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
def test_each_host_gets_what_each_gave(make: Any, ranks: int) -> None:
    def act(group: Group) -> Results:
        assert group.ranks == ranks and len(group.hosts) == ranks
        texts = group.exchange("texts", 1, [f"{group.rank} to {k}".encode() for k in range(ranks)])
        arrays = [numpy.full((2, 3), 10 * group.rank + k, numpy.float32) for k in range(ranks)]
        floats = [numpy.frombuffer(b, numpy.float32) for b in group.exchange("f", 2, arrays)]
        nothing = group.exchange("none", 3)
        some = group.exchange("some", 4, [None, bytearray(b"x"), *[b""] * ranks][:ranks])
        return [group.rank, texts, floats, nothing, some]

    for rank, (own, texts, floats, nothing, some) in enumerate(run_hosts(make(ranks), act)):
        assert own == rank
        assert texts == [f"{k} to {rank}".encode() for k in range(ranks)]
        assert [f.tolist() for f in floats] == [[10.0 * k + rank] * 6 for k in range(ranks)]
        assert nothing == [b""] * ranks
        assert some == [b"x" if rank == 1 else b""] * ranks


@both
@settings(max_examples=25)
@given(seed=st.integers(0, 2**32 - 1), data=st.data())
def test_any_sizes_with_pieces_of_4096(make: Any, seed: int, data: st.DataObject) -> None:
    """Sizes around those at which messages are cut, and beyond what is copied at once."""
    ranks = data.draw(st.integers(2, 3))
    edges = st.sampled_from([0, 1, 3967, 3968, 3969, 4096, 8064, 8065, 65536, 70_000, 600_000])
    sizes = data.draw(st.lists(st.one_of(edges, st.integers(0, 20_000)), min_size=ranks * ranks,
                               max_size=ranks * ranks))
    piece = data.draw(st.sampled_from([4096, 5000, 100_000, 0]))

    def act(group: Group) -> list[bytes]:
        mine = sizes[group.rank * ranks:][:ranks]
        return group.exchange("sizes", 0, [content(seed, group.rank, k, size)
                                           for k, size in enumerate(mine)])

    for rank, came in enumerate(run_hosts(make(ranks), act, piece_bytes=piece)):
        assert came == [content(seed, k, rank, sizes[k * ranks + rank]) for k in range(ranks)]


@both
def test_channels_overlap(make: Any) -> None:
    def act(group: Group) -> Results:
        order = [0, 3, 1] if group.rank else [1, 0, 3]  # hosts need not begin them alike
        for channel in order:
            group.begin("over", 7, [bytes([channel, group.rank]) * 50_000] * 2, channel=channel)
        with pytest.raises(embeng.BusyError, match="channel 3 has an exchange"):
            group.begin("over", 8, channel=3)
        return [group.end(channel) for channel in (3, 1, 0)]

    for came in run_hosts(make(2), act):
        assert came == [[bytes([channel, k]) * 50_000 for k in range(2)] for channel in (3, 1, 0)]


def test_a_status_is_every_hosts_and_the_group_goes_on() -> None:
    def act(group: Group) -> Results:
        status = {"status": -errno.ERANGE, "text": "id 7 is too large"} if group.rank == 1 else {}
        with pytest.raises(embeng.OutOfRangeError) as caught:
            group.exchange("ids", 1, **status)
        return [str(caught.value), caught.value.code, group.exchange("ids", 2, [b"on"] * 3)]

    for result in run_hosts(Group.threads(3), act):
        assert result == ["host 1 (thread1) says: id 7 is too large", -errno.ERANGE, [b"on"] * 3]


@both
@pytest.mark.parametrize("argument, said", [
    ({"step": 6}, "step 5, rows; host 0 is at step 6|step 6, rows; host 1 is at step 5"),
    ({"phase": "ids"}, "is at step 5, ids"), ({"model": 1}, "has the model 0000"),
    ({"rates": 2**64 - 1}, "has the learning rates"), ({"replicas": 9}, "replicas, host"),
])
def test_a_host_that_differs_is_named(make: Any, argument: dict[str, Any], said: str) -> None:
    def act(group: Group) -> str:
        call = {"phase": "rows", "step": 5, **(argument if group.rank == 0 else {})}
        with pytest.raises(embeng.StepOrderError, match=said) as caught:
            group.exchange(**call)
        assert caught.value.code == -errno.EPROTO
        with pytest.raises(embeng.DeviceError, match="is dead since") as dead:
            group.exchange("rows", 7)
        assert dead.value.code == -errno.ESHUTDOWN and str(caught.value) in str(dead.value)
        return str(caught.value)

    first, second = run_hosts(make(2), act)
    assert first == second and "host 0" in first and "host 1" in first


@both
def test_a_host_that_does_not_come_is_named_in_time(make: Any) -> None:
    done = threading.Event()

    def act(group: Group) -> Any:
        group.exchange("ids", 11)
        if group.rank == 2:
            return done.wait(30)
        began = time.monotonic()
        with pytest.raises(embeng.WaitTimeoutError) as caught:
            group.exchange("rows", 12, timeout=0.5)
        if group.rank == 0:
            done.set()
        return str(caught.value), time.monotonic() - began

    *others, last = run_hosts(make(3), act)
    assert last is True
    for sentence, seconds in others:
        assert sentence.startswith("step 12, rows: host 2 (")
        assert 0.4 < seconds < 1.5
    assert others[0][0] == others[1][0]


def test_hosts_that_cannot_be_reached() -> None:
    """Frames of a host are lost: the two others agree on its name."""
    wires = Wires(3)
    here, stay = threading.Barrier(3), threading.Event()

    def act(group: Group) -> Any:
        group.exchange("ids", 1)
        here.wait(30)
        wires.cut.add(1)
        if group.rank == 1:
            return stay.wait(30)
        with pytest.raises(embeng.WaitTimeoutError) as caught:
            group.exchange("rows", 2, timeout=0.5)
        if group.rank == 0:
            stay.set()
        return str(caught.value)

    first, _, last = run_hosts(wires.transports(), act)
    assert first == last and "host 1 (wire1) sent nothing" in first


def test_a_lost_peer_and_a_damaged_frame() -> None:
    wires = Wires(2)
    both_are_open = threading.Barrier(2)

    def act(group: Group) -> Any:
        both_are_open.wait(30)  # the damaged frame must not overtake what opens the group
        if group.rank == 1:
            assert not wires.relays[0].give(1, b"\xff" * 100)
            with contextlib.suppress(embeng.EmbengError):  # host 0 may have sent its bytes before
                group.exchange("rows", 3, timeout=1)
            return None
        with pytest.raises(embeng.DeviceError, match="host 1") as caught:
            group.exchange("rows", 3, timeout=1)
        return caught.value.code

    assert run_hosts(wires.transports(), act)[0] == -errno.EHOSTDOWN


def test_a_host_that_left_is_named() -> None:
    def act(group: Group) -> Any:
        if group.rank == 1:
            return None
        with pytest.raises(embeng.DeviceError) as caught:
            group.exchange("rows", 4)
        return str(caught.value), caught.value.code

    for make in (Group.threads, over_relays):
        (sentence, code), _ = run_hosts(make(2), act)
        assert code == -errno.EHOSTDOWN
        assert sentence.startswith("step 4, rows: host 1 (") and "closed its group" in sentence


def test_opening_names_who_did_not_come() -> None:
    transports = Group.threads(3)

    def act(rank: int) -> str:
        with pytest.raises(embeng.WaitTimeoutError) as caught:
            Group(transports[rank], deadline=0.3)
        return str(caught.value)

    sentences: list[str] = []
    threads = [threading.Thread(target=lambda k=k: sentences.append(act(k))) for k in (0, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(sentences) == 2 and all("host 1 sent nothing" in text for text in sentences)


@pytest.mark.parametrize("arguments, kind, said", [
    ({"phase": "p" * 24}, embeng.InvalidError, "1 to 23 bytes"),
    ({"phase": 3}, TypeError, "phase"),
    ({"send": [b"", b""]}, embeng.InvalidError, "2 items; give one for each of the 1 hosts"),
    ({"send": ["text"]}, TypeError, "host 0 gets 'text'"),
    ({"send": [numpy.zeros((4, 4))[:, ::2]]}, TypeError, "contiguous"),
    ({"send": 3}, TypeError, "not iterable"),
    ({"channel": 4}, embeng.OutOfRangeError, "channel 4 must be below 4"),
    ({"channel": -1}, ValueError, "channel is -1"),
    ({"step": 2.0}, TypeError, "step"), ({"model": 2**64}, ValueError, "model"),
    ({"status": 5}, ValueError, "negative errno"),
    ({"status": -5}, embeng.InvalidError, "with a text"),
    ({"timeout": 0}, ValueError, "timeout: give more than 0 seconds"),
    ({"timeout": -1.0}, ValueError, "seconds"),
])
def test_wrong_arguments(arguments: dict[str, Any], kind: type[Exception], said: str) -> None:
    with Group(Group.threads(1)[0]) as group:
        with pytest.raises(kind, match=said):
            group.exchange(**{"phase": "p", **arguments})
        assert group.exchange("p", send=[b"still"]) == [b"still"]
        with pytest.raises(embeng.InvalidError, match="channel 2 has no exchange"):
            group.end(2)
        with pytest.raises(embeng.InvalidError, match="channel below 4"):
            group.end(4)


def test_wrong_opening() -> None:
    with pytest.raises(embeng.UnknownNameError, match='no transport "tcp"; ask for "mpi"'):
        Group("tcp")
    with pytest.raises(TypeError, match="no Transport"):
        Group(3)  # type: ignore[arg-type]
    with pytest.raises(embeng.OutOfRangeError, match="0 ranks must be 1 to 4096"):
        Group.threads(0)
    with pytest.raises(ValueError, match="5000"):
        Group.threads(5000)
    with pytest.raises(embeng.OutOfRangeError, match="piece_bytes 100"):
        Group(Group.threads(1)[0], piece_bytes=100)
    with pytest.raises(embeng.OutOfRangeError, match="rank 2 of 2"):
        _core.Relay(2, 2)
    one = Group.threads(1)[0]
    assert (one.rank, one.ranks, one.name) == (0, 1, "thread0")
    Group(one).close()
    with pytest.raises(embeng.BusyError, match="each serves one group"):
        Group(one)


def test_closed() -> None:
    group = Group(Group.threads(1)[0])
    assert repr(group) == "<embeng.Group: host 0 (thread0) of 1>" and not group.closed
    group.close()
    group.close()
    assert group.closed and repr(group) == "<embeng.Group (closed)>"
    for act in (lambda: group.rank, lambda: group.hosts, lambda: group.exchange("p"), group.end):
        with pytest.raises(ValueError, match="the group is closed"):
            act()


def test_another_thread_closes() -> None:
    """The thread that waits gets an error soon, and the group is left after that."""
    def act(group: Group) -> Any:
        if group.rank == 1:
            with pytest.raises(embeng.DeviceError, match="closed its group"):
                group.exchange("rows", 1)
            return None
        threading.Timer(0.2, group.close).start()
        began = time.monotonic()
        with pytest.raises(ValueError, match="the group is closed"):
            group.exchange("ids", 1, channel=2)
        return time.monotonic() - began

    seconds, nothing = run_hosts(Group.threads(2), act)
    assert seconds < 2 and nothing is None


class Alarm(Exception):
    """Raised by the handler of these tests."""


@pytest.fixture
def alarm() -> Any:
    """Give a function that sets an alarm, whose handler raises."""
    def ring(*unused: Any) -> None:
        raise Alarm

    before = signal.signal(signal.SIGALRM, ring)
    yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def test_a_signal_ends_the_wait_for_hosts(alarm: Callable[[float], None]) -> None:
    transports = Group.threads(2)
    began = time.monotonic()
    alarm(0.2)
    with pytest.raises(Alarm):
        Group(transports[0], deadline=60)
    assert time.monotonic() - began < 2


def test_a_signal_ends_a_wait_but_not_the_exchange(alarm: Callable[[float], None]) -> None:
    transports = Group.threads(2)
    go = threading.Event()
    came: Results = []

    def other() -> None:
        with Group(transports[1]) as group:
            go.wait(30)
            came.append(group.exchange("rows", 1, [b"late"] * 2))

    thread = threading.Thread(target=other)
    thread.start()
    with Group(transports[0]) as group:
        alarm(0.2)
        with pytest.raises(Alarm):
            group.exchange("rows", 1, [b"first"] * 2)
        go.set()
        assert group.end() == [b"first", b"late"]
        thread.join(30)
    assert came == [[b"first", b"late"]]


def test_after_a_fork(run_python: Any) -> None:
    done = run_python("""
import os, embeng
group = embeng.Group(embeng.Group.threads(1)[0])
child = os.fork()
if not child:
    try:
        group.exchange("p")
    except embeng.NotSupportedError as error:
        assert "parent process" in str(error)
        group.close()
        os._exit(7)
    os._exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert group.exchange("p", send=[b"here"]) == [b"here"]
""")
    assert (done.returncode, done.stderr) == (0, "")


def test_groups_that_are_open_at_the_end(run_python: Any) -> None:
    done = run_python("""
import threading, embeng
groups = [None, None]
transports = embeng.Group.threads(2)
def make(k):
    groups[k] = embeng.Group(transports[k])
threads = [threading.Thread(target=make, args=(k,)) for k in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
left = embeng.Group.threads(3)
print(groups[1])
""")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "<embeng.Group: host 1 (thread1) of 2>\n"


def test_exchanges_leave_no_memory() -> None:
    def resident() -> int:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")

    def act(group: Group) -> int:
        for step in range(50):
            group.exchange("warm", step, [bytes(100_000)] * 2)
        before = resident()
        for step in range(1000):
            group.exchange("more", step, [bytes(100_000)] * 2)
        return resident() - before

    for grown in run_hosts(over_relays(2), act):
        assert grown < 16 << 20

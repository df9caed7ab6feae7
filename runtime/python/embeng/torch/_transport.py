# SPDX-License-Identifier: MIT
"""Messages of a group of hosts by torch.distributed.

They go by sends and receives of a Gloo group that nobody else uses. Gloo tells of a message's end
only to a thread that waits for it, and so two threads serve each peer: one sends, the other
receives. They get frames from the library's relay, and give it what came; the group's own thread
needs no Python.
"""
import errno
import itertools
import socket
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy
import torch
import torch.distributed as dist

from .. import _core
from .._errors import NotSupportedError, StepOrderError, WaitTimeoutError
from .._group import carriers

if TYPE_CHECKING:
    from torch import Tensor
    from torch._C._distributed_c10d import Store

    _Room = tuple[Tensor, numpy.ndarray[Any, numpy.dtype[numpy.uint8]]]

DEADLINE = 300.0
FRAME_BYTES = 256 * 1024  # RELAY_FRAME_BYTES
FOREVER = timedelta(days=10_000)  # a wait that timed out would end the whole Gloo group
FAREWELL = 0.5  # seconds in which the peers' last frames should come

_serials: dict[str, Iterator[int]] = defaultdict(itertools.count)


class Carrier:
    """Threads that carry a relay's frames; :meth:`close` ends them."""

    def __init__(self, relay: _core.Relay, process_group: Any, rank: int, ranks: int):
        self._relay, self._gloo = relay, process_group
        self._peers = [peer for peer in range(ranks) if peer != rank]
        self._threads = [threading.Thread(target=work, args=(peer,), daemon=True,
                                          name=f"embeng-{work.__name__}-{peer}")
                         for peer in self._peers for work in (self._send, self._receive)]
        carriers.add(self)
        for thread in self._threads:
            thread.start()

    def _send(self, peer: int) -> None:
        tensor, array = _make_room()
        try:
            while count := self._relay.take(peer, array):
                self._gloo.send([tensor[:count]], peer, 0).wait(FOREVER)
        except RuntimeError:
            self._relay.lose(peer)

    def _receive(self, peer: int) -> None:
        """Receive frames, which may be shorter than the room for them."""
        tensor, array = _make_room()
        try:
            while True:
                self._gloo.recv([tensor], peer, 0).wait(FOREVER)
                if not self._relay.give(peer, array):
                    break
        except RuntimeError:
            self._relay.lose(peer)

    def close(self) -> None:
        """End the threads, once the transport is closed.

        Gloo has no call that ends a wait. But a wait that times out closes all connections of its
        group, and so ends the waits for peers that do not answer.
        """
        _join(self._threads, FAREWELL)
        if any(thread.is_alive() for thread in self._threads):
            tensor, _ = _make_room()
            try:
                self._gloo.recv([tensor], self._peers[0], 1).wait(timedelta(milliseconds=1))
            except RuntimeError:
                pass
            _join(self._threads, FAREWELL)
        carriers.discard(self)


def _make_room() -> "_Room":
    array = numpy.empty(FRAME_BYTES, numpy.uint8)
    return torch.from_numpy(array), array


def _join(threads: list[threading.Thread], seconds: float) -> None:
    end = time.monotonic() + seconds
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))


def _wait_for_all(store: "Store", ranks: int, deadline: float) -> None:
    """Wait until each process has said that it is there; signals are answered meanwhile."""
    end = time.monotonic() + deadline
    missing = list(range(ranks))
    while missing := [rank for rank in missing if not store.check([f"host/{rank}"])]:
        if time.monotonic() > end:
            few = ", ".join(map(str, missing[:8]))
            more = f" and {len(missing) - 8} more" if len(missing) > 8 else ""
            hosts = "hosts" if len(missing) > 1 else "host"
            error = WaitTimeoutError(
                f"Group.torch: {hosts} {few}{more} of {ranks} did not come within {deadline:.1f} "
                "s; all processes must call it equally often")
            error.code = -errno.ETIME
            raise error
        time.sleep(0.02)


def _check(process_group: Any) -> tuple[int, int]:
    """Return the rank of this process, and how many there are."""
    if not dist.is_available() or not dist.is_initialized():
        raise StepOrderError("torch.distributed is not initialized; call init_process_group() "
                             "first")
    if not dist.is_gloo_available():
        raise NotSupportedError("this build of torch has no Gloo; use Group('mpi')")
    rank = dist.get_rank(process_group)
    if rank < 0:
        raise StepOrderError("this process is not in the process group; call it in those that are")
    return rank, dist.get_world_size(process_group)


def connect(process_group: Any, deadline: float | None) -> tuple[_core.Transport, Carrier]:
    """Return a transport between the processes of a group, and what carries its messages."""
    from torch._C._distributed_c10d import PrefixStore, ProcessGroupGloo
    from torch.distributed.distributed_c10d import _get_default_group, _get_default_store

    rank, ranks = _check(process_group)
    seconds = DEADLINE if deadline is None else float(deadline)
    name = (process_group or _get_default_group()).group_name
    store = PrefixStore(f"embeng/{name}/{next(_serials[name])}", _get_default_store())
    host = socket.gethostname()
    store.set(f"host/{rank}", host)
    _wait_for_all(store, ranks, seconds)
    gloo = ProcessGroupGloo(store, rank, ranks, timedelta(seconds=max(1.0, seconds)))
    relay = _core.Relay(rank, ranks)
    transport = relay.transport(host[:127])
    return transport, Carrier(relay, gloo, rank, ranks)

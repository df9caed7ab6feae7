# SPDX-License-Identifier: MIT
"""Groups of hosts that exchange bytes in lock-step: over MPI, torch, or threads."""
import atexit
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self

from . import _core
from ._core import Transport

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup


class _Carrier(Protocol):
    """Whatever carries a group's messages beside it, and ends after the group."""

    def close(self) -> None: ...


class Group(_core.Group):
    """This host's place in a group of hosts. A context manager; :meth:`close` leaves the group.

    A host is one rank: a process that a launcher started, or a thread of one process. All hosts
    make the same exchanges in the same order, and in each one every host gives bytes to every
    host.

    Parameters
    ----------
    transport : str or Transport
        "mpi", the MPI whose launcher started this process; "openmpi" or "mpich"; or one of
        :meth:`threads`. For torch there is :meth:`torch`.
    deadline : float, optional
        Seconds that an exchange may take, and the wait for all hosts here; 5 minutes by default.
    piece_bytes : int
        Most bytes of one message; longer ones are cut. 0 is 1 GiB.

    Attributes
    ----------
    rank, ranks : int
        The number of this host, and how many there are.
    hosts : tuple of str
        Names of all hosts, by rank.
    closed : bool
        Whether :meth:`close` was called.

    Raises
    ------
    WaitTimeoutError
        Not all hosts came in time; the sentence names those that did not.
    UnknownNameError, NotSupportedError
        There is no such transport, or it is not installed.
    StepOrderError
        The launcher is another MPI's, or a host runs another version.

    Notes
    -----
    Opening waits for all hosts, so that threads open their groups at the same time. A thread of
    the group moves messages while the program computes; it never runs Python. After a failure the
    group is dead: each host that is left gets the same sentence once, and :class:`DeviceError`
    with the first cause (ESHUTDOWN) from then on. Threads may use a group at once, each in a
    channel of its own. After a fork every call fails in the child.

    Examples
    --------
    >>> with embeng.Group("mpi") as group:
    ...     received = group.exchange("greet", send=[b"hello"] * group.ranks)
    """

    _carrier: _Carrier | None = None

    def __new__(cls, transport: str | Transport = "mpi", *, deadline: float | None = None,
                piece_bytes: int = 0) -> Self:
        if isinstance(transport, str):
            transport = _core.transport_load(transport)
        self = super().__new__(cls, transport, deadline, piece_bytes)
        _open.add(self)
        return self

    @staticmethod
    def threads(ranks: int) -> list[Transport]:
        """Return transports between threads of this process, to try a program for many hosts.

        Parameters
        ----------
        ranks : int
            Threads, each of which opens a Group over one of them.
        """
        return _core.transport_threads(ranks)

    @classmethod
    def torch(cls, process_group: "ProcessGroup | None" = None, *, deadline: float | None = None,
              piece_bytes: int = 0) -> Self:
        """Open a group of the processes of torch.distributed.

        Parameters
        ----------
        process_group : ProcessGroup, optional
            Its processes are the hosts, by their ranks in it; all processes by default.
        deadline, piece_bytes
            As for the class.

        Raises
        ------
        StepOrderError
            ``torch.distributed`` is not initialized, or this process is not in `process_group`.
        WaitTimeoutError
            Not all processes came in time; the sentence names those that did not.

        Notes
        -----
        All processes of `process_group` call this equally often. Messages go by point-to-point
        sends of a Gloo group of its own, whatever backend `process_group` has, so that the
        program's own collectives never meet them. ``GLOO_SOCKET_IFNAME`` chooses the interface.
        Two threads of this process serve each peer: beyond some 100 hosts, use MPI.
        """
        from .torch._transport import connect

        transport, carrier = connect(process_group, deadline)
        try:
            self = cls(transport, deadline=deadline, piece_bytes=piece_bytes)
        except BaseException:
            carrier.close()
            raise
        self._carrier = carrier
        return self

    def close(self) -> None:
        """Leave the group, whose exchanges then end on the other hosts.

        A second call does nothing. An exchange of another thread ends. Engines over the group keep
        it until they are closed.
        """
        super().close()
        carrier, self._carrier = self._carrier, None
        if carrier is not None:
            carrier.close()

    def exchange(self, phase: str, step: int = 0, send: Sequence[Any] | None = None,
                 model: int = 0, rates: int = 0, replicas: int = 0, channel: int = 0,
                 status: int = 0, text: str | None = None, timeout: float | None = None
                 ) -> list[bytes]:
        """Give bytes to every host, and get bytes from every host.

        Parameters
        ----------
        phase : str
            Name of the exchange for sentences, in up to 23 bytes: "rows".
        step : int
            Number of the step.
        send : sequence of bytes-like or None, optional
            One for each host, this one too: bytes, or a contiguous array; None is no bytes.
        model, rates, replicas : int
            Numbers that must be equal on all hosts, such as hashes; a host that differs is named.
        channel : int
            From 0 to 3. Exchanges of one channel follow each other, others overlap.
        status : int
            0, or a negative errno, such as the ``code`` of an error: this host cannot take part.
            All hosts raise it with "host 3 (n17) says: `text`", and the group goes on.
        text : str, optional
            Why, where there is a status.
        timeout : float, optional
            Seconds for this exchange; the group's deadline by default.

        Returns
        -------
        list of bytes
            The bytes of each host for this one, by rank, with those that it gave to itself.

        Raises
        ------
        WaitTimeoutError
            The deadline passed; the sentence names the hosts that were silent (ETIME).
        StepOrderError
            A host is at another step or phase, or has another model, rates or replicas (EPROTO).
        DeviceError
            A host has left or is gone (EHOSTDOWN), a message was damaged (EBADMSG), or the group is
            dead (ESHUTDOWN).
        BusyError
            The channel has an exchange that :meth:`end` has not ended.
        ValueError
            The group is closed, also by another thread meanwhile.

        Notes
        -----
        The bytes to send are copied. If a handler of a signal raises, as Ctrl-C's does, the
        exchange goes on, and :meth:`end` returns what came.
        """
        return super().exchange(phase, step, send, model, rates, replicas, channel, status, text,
                                timeout)

    def begin(self, phase: str, step: int = 0, send: Sequence[Any] | None = None,
              model: int = 0, rates: int = 0, replicas: int = 0, channel: int = 0,
              status: int = 0, text: str | None = None, timeout: float | None = None) -> None:
        """Begin an exchange, whose arguments are those of :meth:`exchange`, and return at once."""
        super().begin(phase, step, send, model, rates, replicas, channel, status, text, timeout)

    def end(self, channel: int = 0) -> list[bytes]:
        """Wait for the exchange of a channel, and return or raise as :meth:`exchange` does."""
        return super().end(channel)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()

    def __repr__(self) -> str:
        if self.closed:
            return "<embeng.Group (closed)>"
        rank = self.rank
        return f"<embeng.Group: host {rank} ({self.hosts[rank]}) of {self.ranks}>"


_open: "weakref.WeakSet[Group]" = weakref.WeakSet()
carriers: "weakref.WeakSet[Any]" = weakref.WeakSet()
engines: "weakref.WeakSet[_core.Engine]" = weakref.WeakSet()


def _close_all() -> None:
    """Leave groups that are still open, before the interpreter ends and MPI with it.

    Engines over them come first. Carriers end, too: a thread that came back from Gloo later would
    end the process.
    """
    for engine in list(engines):
        engine.close()
    for group in list(_open):
        group.close()
    for carrier in list(carriers):
        carrier.close()


atexit.register(_close_all)

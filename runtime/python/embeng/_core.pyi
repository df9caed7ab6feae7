# SPDX-License-Identifier: MIT
import sys
from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, BinaryIO, Self, final, overload

from typing_extensions import disjoint_base

from ._inputs import Keyed

_Settings = dict[str, Any]
_Tell = Callable[[str, int, int], object] | None

version: str

def device_list() -> list[_Settings]: ...
def device_info(name: str | None, /) -> _Settings: ...
def schedule_rate(schedule: _Settings, step: int, /) -> float: ...
def describe_optimizer(optimizer: _Settings, /) -> _Settings: ...
def transport_load(name: str, /) -> Transport: ...
def transport_threads(ranks: int, /) -> list[Transport]: ...
def xla_targets() -> dict[str, Any]: ...
def xla_register(path: str, /) -> None: ...
def tensorflow_register(path: str, /) -> tuple[str, ...]: ...

@final
class Model:
    def __new__(
        cls,
        tables: Sequence[_Settings],
        features: Sequence[_Settings],
        options: _Settings | None = None,
        schedules: dict[str, _Settings] | None = None,
    ) -> Self: ...
    def describe(self) -> _Settings: ...
    def plan(self, options: _Settings, /) -> _Settings: ...

@disjoint_base
class Engine:
    def __new__(
        cls,
        model: Model,
        device: str | None = None,
        cores: int = 0,
        memory: int = 0,
        variant: str | None = None,
        prefetch: str | None = None,
        path: str | None = None,
        group: Group | None = None,
    ) -> Self: ...
    @property
    def closed(self) -> bool: ...
    @property
    def handle(self) -> int: ...
    def close(self) -> None: ...
    def add_tables(self, model: Model, /) -> None: ...
    def describe(self) -> _Settings: ...
    @overload
    def lookup(
        self,
        features: dict[str, Any],
        out: dict[str, Any] | None = None,
        timeout: float | None = None,
    ) -> dict[str, Any]: ...
    @overload
    def lookup(self, features: Keyed, out: Any = None, timeout: float | None = None) -> Any: ...
    def update(
        self,
        features: dict[str, Any] | Keyed,
        gradients: Any,
        rates: dict[str, float] | None = None,
        multiplier: float | None = None,
        timeout: float | None = None,
        replica: int = 0,
    ) -> None: ...
    def partition(
        self,
        features: dict[str, Any],
        arrays: tuple[Any, ...] | None,
        sparse_cores: int,
        cores_per_device: int,
        device: int,
        max_ids: int,
        max_unique_ids: int,
        buffer_size: int,
        minibatching: bool,
        allow_id_dropping: bool,
        splits: int,
        flavour: str = "jax",
        rotation: int = 0,
        /,
    ) -> Any: ...
    def gradient_norm(
        self, features: dict[str, Any] | Keyed, gradients: Any
    ) -> tuple[float, bool]: ...
    def weight_gradients(
        self, features: dict[str, Any] | Keyed, gradients: Any, wanted: dict[str, Any], /
    ) -> dict[str, Any]: ...
    def enqueue(
        self,
        features: dict[str, Any] | Keyed,
        train: bool = True,
        replica: int = 0,
        timeout: float | None = None,
    ) -> None: ...
    def dequeue(self, replica: int = 0, timeout: float | None = None) -> Any: ...
    def apply_gradients(
        self,
        gradients: dict[str, Any],
        replica: int = 0,
        rates: dict[str, float] | None = None,
        multiplier: float | None = None,
        timeout: float | None = None,
    ) -> None: ...
    def discard(self, replica: int = 0, timeout: float | None = None) -> None: ...
    def flush(self, timeout: float | None = None) -> None: ...
    def _session_enqueue(
        self,
        replicas: tuple[int, ...],
        features: tuple[int, ...],
        forms: tuple[int, ...],
        samples: tuple[int, ...],
        arrays: tuple[Any, ...],
        mode: int,
        timeout: float,
        /,
    ) -> None: ...
    def _session_dequeue(self, replica: int, timeout: float, /) -> list[Any]: ...
    def _session_apply(
        self, replica: int, gradients: dict[str, Any], rates: dict[str, float], timeout: float, /
    ) -> None: ...
    def _session_discard(self, timeout: float, /) -> int: ...
    def _session_mode(self, train: bool, number: int = -1, /) -> int: ...
    def rows_read(
        self, table: str, data: Any, rows: Any = None, slot: str | None = None, first: int = 0
    ) -> Any: ...
    def rows_write(
        self, table: str, data: Any, rows: Any = None, slot: str | None = None, first: int = 0
    ) -> Any: ...
    def rows_fill(
        self,
        table: str,
        initializer: _Settings,
        slot: str | None = None,
        first: int = 0,
        count: int = -1,
    ) -> None: ...
    def table_map(self, table: str, slot: str | None = None) -> TableMap: ...
    def _save(
        self,
        target: str | PathLike[str] | BinaryIO,
        progress: _Tell = None,
        shard_bytes: int = 0,
        program_state: str | None = None,
        not_finite: bool = False,
        delta: bool = False,
        keep: int = 0,
    ) -> _Settings: ...
    def _restore(
        self,
        source: str | PathLike[str] | BinaryIO,
        progress: _Tell = None,
        names: dict[str, str | None] | None = None,
        step: int | None = None,
        missing_tables: bool = False,
        missing_slots: bool = False,
        other_shapes: bool = False,
        other_optimizer: bool = False,
    ) -> _Settings: ...
    def stats(self, table: str, clear: bool = False, /) -> _Settings: ...
    def counters(self) -> dict[str, int]: ...
    def usage(self) -> dict[str, int]: ...
    def info(self) -> _Settings: ...
    def get_step(self) -> int: ...
    def set_step(self, number: int, /) -> None: ...
    def freeze(self, table: str, frozen: bool = True, /) -> None: ...
    def frozen(self, table: str, /) -> bool: ...
    def interrupt(self, on: bool, /) -> None: ...

@final
class TableMap:
    if sys.version_info >= (3, 12):
        def __buffer__(self, flags: int, /) -> memoryview: ...


@final
class Checkpoint:
    def __new__(
        cls, source: str | PathLike[str] | BinaryIO, back: int = 0, step: int | None = None
    ) -> Self: ...
    def describe(self) -> _Settings: ...
    def read(self, table: str, out: Any, slot: str | None = None, first: int = 0) -> Any: ...
    def verify(self, progress: _Tell, /) -> None: ...

@final
class Transport:
    @property
    def rank(self) -> int: ...
    @property
    def ranks(self) -> int: ...
    @property
    def name(self) -> str: ...

@final
class Relay:
    def __new__(cls, rank: int, ranks: int) -> Self: ...
    def transport(self, name: str, /) -> Transport: ...
    def take(self, peer: int, room: Any, /) -> int: ...
    def give(self, peer: int, frame: Any, /) -> bool: ...
    def lose(self, peer: int, /) -> None: ...

@disjoint_base
class Group:
    def __new__(
        cls, transport: Transport, deadline: float | None = None, piece_bytes: int = 0
    ) -> Self: ...
    @property
    def rank(self) -> int: ...
    @property
    def ranks(self) -> int: ...
    @property
    def hosts(self) -> tuple[str, ...]: ...
    @property
    def closed(self) -> bool: ...
    def begin(
        self,
        phase: str,
        step: int = 0,
        send: Sequence[Any] | None = None,
        model: int = 0,
        rates: int = 0,
        replicas: int = 0,
        channel: int = 0,
        status: int = 0,
        text: str | None = None,
        timeout: float | None = None,
    ) -> None: ...
    def end(self, channel: int = 0) -> list[bytes]: ...
    def exchange(
        self,
        phase: str,
        step: int = 0,
        send: Sequence[Any] | None = None,
        model: int = 0,
        rates: int = 0,
        replicas: int = 0,
        channel: int = 0,
        status: int = 0,
        text: str | None = None,
        timeout: float | None = None,
    ) -> list[bytes]: ...
    def close(self) -> None: ...

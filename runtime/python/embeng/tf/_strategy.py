# SPDX-License-Identifier: MIT
"""TPUStrategy over logical processors, and the options of its datasets."""
import functools
import threading
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import tensorflow as tf

from .._errors import NotSupportedError, StepOrderError
from ._system import TPUClusterResolver, system

_Function = TypeVar("_Function", bound=Callable[..., Any])


def do_not_convert(function: _Function) -> _Function:
    """Keep AutoGraph from rewriting a method, as it does with TensorFlow's own."""
    kept: _Function = tf.autograph.experimental.do_not_convert(function)
    return kept


class InputOptions(tf.distribute.InputOptions):
    """``tf.distribute.InputOptions`` that also knows ``experimental_prefetch_to_device``.

    TensorFlow renamed that option to ``experimental_fetch_to_device``.
    """

    def __new__(cls, *options: Any, experimental_prefetch_to_device: bool | None = None,
                **named: Any) -> Any:
        """Give the old name's value to the new one."""
        if experimental_prefetch_to_device is not None:
            named["experimental_fetch_to_device"] = experimental_prefetch_to_device
        return super().__new__(cls, *options, **named)


class Run(NamedTuple):
    """One replica's part of a ``strategy.run()`` that is being traced or run.

    Attributes
    ----------
    graph : tf.Graph or None
        The graph that the function is traced into; None in eager mode.
    inputs : frozenset of int
        Identities of the tensors that the function was given.
    """

    graph: Any
    inputs: frozenset[int]


class _Runs(threading.local):
    def __init__(self) -> None:
        self.stack: list[Run] = []


_runs = _Runs()


def current_run() -> Run | None:
    """Return the ``strategy.run()`` that this thread is in, or None."""
    return _runs.stack[-1] if _runs.stack else None


def _watch(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def watched(*args: Any, **kwargs: Any) -> Any:
        graph = None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()
        tensors = tf.nest.flatten((args, kwargs), expand_composites=True)
        _runs.stack.append(Run(graph, frozenset(map(id, tensors))))
        try:
            return function(*args, **kwargs)
        finally:
            _runs.stack.pop()

    return watched


def replica_number(what: str) -> int:
    """Return the number of the replica that is running.

    Parameters
    ----------
    what : str
        The call, for the message.

    Raises
    ------
    StepOrderError
        The call is not within ``strategy.run()``, and there are several replicas.
    """
    context = tf.distribute.get_replica_context()
    if context is None or not isinstance(context.strategy, TPUStrategy):
        if system.replicas > 1:
            raise StepOrderError(f"{what} was called outside of strategy.run(), where it is not "
                                 f"known which of the {system.replicas} replicas it is for")
        return 0
    number = tf.get_static_value(context.replica_id_in_sync_group)
    return int(number)


def in_replica() -> bool:
    """Tell whether this is within ``run()`` of a TPUStrategy."""
    context = tf.distribute.get_replica_context()
    return context is not None and isinstance(context.strategy, TPUStrategy)


class TPUStrategy(tf.distribute.MirroredStrategy):
    """A strategy whose replicas are logical processors of this machine.

    Parameters
    ----------
    tpu_cluster_resolver : TPUClusterResolver, optional
        The resolver that was given to :func:`initialize_tpu_system`.

    Raises
    ------
    NotSupportedError
        A device assignment or SPMD partitioning was asked for: there are no cores to assign.

    Notes
    -----
    It is a ``tf.distribute.MirroredStrategy``: ``num_replicas_in_sync`` is the resolver's number of
    replicas, ``extended.num_hosts`` is 1. Replicas of one step run one after another.
    """

    def __init__(self, tpu_cluster_resolver: TPUClusterResolver | None = None,
                 experimental_device_assignment: Any = None,
                 experimental_spmd_xla_partitioning: bool = False):
        if experimental_device_assignment is not None or experimental_spmd_xla_partitioning:
            raise NotSupportedError("TPUStrategy: device assignments and SPMD partitioning need "
                                    "the cores of a TPU; leave them out")
        wanted = getattr(tpu_cluster_resolver, "replicas", None)
        if wanted and wanted != system.replicas:
            system.start(wanted)
        super().__init__(system.devices, cross_device_ops=tf.distribute.ReductionToOneDevice())
        self.extended.num_hosts = 1
        self.extended.num_replicas_per_host = self.num_replicas_in_sync
        self.extended.tpu_hardware_feature = _HardwareFeature()

    def run(self, fn: Callable[..., Any], args: Any = (), kwargs: Any = None,
            options: Any = None) -> Any:
        """Call a function for each replica, as ``tf.distribute.Strategy.run()`` does."""
        if not isinstance(fn, tf.types.experimental.GenericFunction):
            fn = _watch(fn)
        return super().run(fn, args, kwargs, options)


class _HardwareFeature:
    """The ``extended.tpu_hardware_feature`` of a strategy: embedding hardware of both kinds."""

    embedding_feature = tf.tpu.experimental.HardwareFeature.EmbeddingFeature.V1
    num_embedding_devices_per_chip = 1

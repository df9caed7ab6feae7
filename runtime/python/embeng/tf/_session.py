# SPDX-License-Identifier: MIT
"""An engine and the order of its steps, for ops that run one after another.

Ops of a graph are ordered by the session's token, so that nothing that comes later can end a wait
of an op. A call for which the engine would wait for gradients is refused by name instead.
"""
import collections
import os
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from .._engine import Engine, Feature, Table
from .._errors import StepOrderError, WaitTimeoutError
from ._features import Form, make_bags

# An enqueue waits for a place among the steps of its replica. Only another thread could make one.
_ENQUEUE_SECONDS = 10.0


class Session:
    """The loaded tables of one TPUEmbedding.

    Parameters
    ----------
    tables, features
        As of :class:`embeng.Engine`.
    dims : mapping of str to int
        Columns of the activations, by feature.
    replicas : int
        Replicas, each of which has steps of its own.
    pipelining : bool
        Gradients may be one step late.

    Attributes
    ----------
    engine : embeng.Engine
        The engine.
    """

    def __init__(self, tables: Sequence[Table], features: Sequence[Feature], replicas: int,
                 pipelining: bool):
        self.engine = Engine(tables, features, device=os.environ.get("EMBENG_DEVICE") or "soft",
                             replicas=replicas, pipelining=pipelining)
        self.features = [feature.name for feature in features]
        self.replicas = replicas
        self._late = 1 if pipelining else 0
        self._lock = threading.Lock()
        self._queues: list[collections.deque[bool]] = [collections.deque() for _ in range(replicas)]
        self._taken = [0] * replicas
        self._given = [0] * replicas

    def close(self) -> None:
        """Close the engine. Variables that show its memory keep that."""
        self.engine.close()

    def enqueue(self, replicas: Sequence[int], forms: Sequence[Sequence[Form]],
                arrays: Sequence[Any], train: bool) -> None:
        """Look up a batch for each of some replicas; after an error there is none of any.

        Parameters
        ----------
        replicas : sequence of int
            Their numbers.
        forms : sequence of sequence of Form
            Features of each replica.
        arrays : sequence of ndarray
            Parts of all features of all replicas.
        train : bool
            Gradients will come.
        """
        batches, at = [], 0
        for replica_forms in forms:
            batch = {}
            for form in replica_forms:
                batch[form.name] = make_bags(form, arrays[at:at + form.parts])
                at += form.parts
            batches.append(batch)
        done: list[int] = []
        try:
            for replica, batch in zip(replicas, batches, strict=True):
                self._enqueue_one(replica, batch, train)
                done.append(replica)
        except Exception:
            for replica in done:
                self._take_back(replica)
            raise

    def _enqueue_one(self, replica: int, batch: Mapping[str, Any], train: bool) -> None:
        try:
            self.engine.enqueue(dict(batch), train, replica, _ENQUEUE_SECONDS)
        except WaitTimeoutError as error:
            raise StepOrderError(f"replica {replica}: {len(self._queues[replica])} batches were "
                                 "enqueued and not dequeued; call dequeue(), and "
                                 f"apply_gradients() where training is True ({error})") from error
        with self._lock:
            self._queues[replica].append(train)

    def _take_back(self, replica: int) -> None:
        """Take the newest batch of a replica back, if it is the only one."""
        if len(self._queues[replica]) == 1 and not self._waits_for(replica):
            train = self._take(replica).train
            if train:
                self.discard(replica)

    def _waits_for(self, replica: int) -> str:
        """Say whose gradients the oldest batch of a replica waits for; nothing if for none."""
        if not self._queues[replica][0]:
            return ""
        needed = self._taken[replica] - self._late
        return ", ".join(f"step {given + 1} of replica {other}"
                         for other, given in enumerate(self._given) if given < needed)

    def _take(self, replica: int) -> Any:
        activations = self.engine.dequeue(replica)
        with self._lock:
            self._queues[replica].popleft()
            self._taken[replica] += activations.train
        return activations

    def dequeue(self, replica: int) -> list[Any]:
        """Return the activations of the oldest batch of a replica, ``[samples, dim]`` by feature.

        Raises
        ------
        StepOrderError
            Nothing was enqueued, or earlier steps have not got their gradients.
        """
        if not self._queues[replica]:
            raise StepOrderError(f"replica {replica}: nothing is enqueued; call enqueue() before "
                                 "dequeue()")
        missing = self._waits_for(replica)
        if missing:
            raise StepOrderError(
                f"replica {replica}: the next training batch needs gradients that were not given: "
                f"{missing}; call apply_gradients() for each batch that is enqueued with "
                "training=True, enqueue with training=False, or take the steps back by discard()")
        activations = self._take(replica)
        return [activations[name] for name in self.features]

    def apply_gradients(self, replica: int, gradients: Mapping[str, Any],
                        rates: Mapping[str, float]) -> None:
        """Hand in the gradients of the oldest training batch of a replica that was dequeued.

        Parameters
        ----------
        replica : int
            Its number.
        gradients : mapping of str to ndarray
            By feature, as :meth:`dequeue` returned activations. Rows of features that are left out
            are touched with gradients of 0.
        rates : mapping of str to float
            The dynamic rates.

        Raises
        ------
        StepOrderError
            No training batch was dequeued.
        """
        if self._given[replica] >= self._taken[replica]:
            raise StepOrderError(f"replica {replica}: no training batch was dequeued that waits "
                                 "for gradients; enqueue with training=True, and dequeue it")
        self.engine.apply_gradients(dict(gradients), replica, dict(rates))
        with self._lock:
            self._given[replica] += 1

    def discard(self, replica: int) -> None:
        """Take back the oldest training batch of a replica that waits for gradients."""
        self.engine.discard(replica)
        with self._lock:
            self._given[replica] += 1

    def discard_all(self) -> int:
        """Take back every batch that is under way, and return how many there were."""
        count = 0
        while True:
            waiting = [r for r in range(self.replicas) if self._given[r] < self._taken[r]]
            queued = [r for r in range(self.replicas)
                      if self._queues[r] and not self._waits_for(r)]
            if waiting:
                self.discard(waiting[0])
                count += 1
            elif queued:
                count += not self._take(queued[0]).train  # a training batch waits from now on
            else:
                return count

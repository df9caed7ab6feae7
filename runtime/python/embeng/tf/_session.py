# SPDX-License-Identifier: MIT
"""An engine and the order of its steps, for ops that run one after another.

Ops of a graph are ordered by the session's token, so that nothing that comes later can end a wait
of an op. A call for which the engine would wait for gradients is refused by name instead.
"""
import collections
import os
import threading
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .._engine import Engine, Feature, Table
from .._errors import StepOrderError, WaitTimeoutError
from ._features import Form, make_bags

# Calls wait for lookups that are computed, and for places that only another thread could make.
_SECONDS = 10.0


class _Batch(NamedTuple):
    """A batch that was enqueued. One that is void is taken back as soon as it is the oldest."""

    train: bool
    void: bool = False


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
        self._queues: list[collections.deque[_Batch]] = [
            collections.deque() for _ in range(replicas)]
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
        done = 0
        try:
            for replica, batch in zip(replicas, batches, strict=True):
                self._enqueue_one(replica, batch, train)
                done += 1
        except Exception:
            if done:
                self._void(replicas, done, train)
            raise

    def _enqueue_one(self, replica: int, batch: Mapping[str, Any], train: bool) -> None:
        try:
            self.engine.enqueue(dict(batch), train, replica, _SECONDS)
        except WaitTimeoutError as error:
            raise StepOrderError(
                f"replica {replica}: the engine takes no further batch now, when "
                f"{len(self._queues[replica])} are enqueued and not dequeued; call dequeue(), and "
                f"apply_gradients() where training is True ({error})") from error
        with self._lock:
            self._queues[replica].append(_Batch(train))

    def _void(self, replicas: Sequence[int], done: int, train: bool) -> None:
        """Have no replica a batch of an enqueue that failed after the first `done` replicas.

        Each replica counts its steps, so the others get a batch without samples.
        """
        for replica in replicas[done:]:
            self._enqueue_one(replica, {}, train)
        for replica in replicas:
            self._queues[replica][-1] = _Batch(train, True)
        self._drop_void()

    def _drop_void(self) -> None:
        """Take back the oldest batches that are void, as far as earlier steps are complete."""
        while True:
            ready = [replica for replica, queue in enumerate(self._queues)
                     if queue and queue[0].void and not self._waits_for(replica)]
            if not ready:
                return
            if self._take(ready[0]).train:
                self._discard_one(ready[0])

    def _waits_for(self, replica: int) -> str:
        """Say whose gradients the oldest batch of a replica waits for; nothing if for none."""
        if not self._queues[replica][0].train:
            return ""
        needed = self._taken[replica] - self._late
        return ", ".join(f"step {given + 1} of replica {other}"
                         for other, given in enumerate(self._given) if given < needed)

    def _take(self, replica: int) -> Any:
        try:
            activations = self.engine.dequeue(replica, _SECONDS)
        except WaitTimeoutError as error:
            raise StepOrderError(f"replica {replica}: its batch cannot be dequeued now: {error}"
                                 ) from error
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
        self._drop_void()
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
        self._drop_void()

    def _discard_one(self, replica: int) -> None:
        self.engine.discard(replica)
        with self._lock:
            self._given[replica] += 1

    def discard_all(self) -> int:
        """Take back every batch that is under way, and return how many there were.

        Afterwards all replicas are at the same step: those that are behind get batches without
        samples, which are taken back, too.
        """
        count = 0
        while True:
            waiting = [r for r in range(self.replicas) if self._given[r] < self._taken[r]]
            if waiting:
                self._discard_one(waiting[0])
                count += 1
                continue
            least = min(self._taken)
            behind = [r for r in range(self.replicas) if self._taken[r] == least]
            inference = [r for r in behind if self._queues[r] and not self._queues[r][0].train]
            empty = [r for r in behind if not self._queues[r]]
            if inference:
                self._take(inference[0])
                count += 1
            elif len(empty) == self.replicas:
                return count
            elif empty:
                self._enqueue_one(empty[0], {}, True)
                count -= 1
            else:
                self._take(behind[0])

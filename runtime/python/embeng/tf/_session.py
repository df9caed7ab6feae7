# SPDX-License-Identifier: MIT
"""An engine and the order of its steps, for ops that run one after another.

Ops of a graph are ordered by the session's token, so that nothing that comes later can end a wait
of an op. A call for which the engine would wait for gradients is refused by name instead. The
engine itself keeps the order (core/session.c), for these calls and for operators of TensorFlow.
"""
import os
from collections.abc import Mapping, Sequence
from typing import Any

from .._engine import Engine, Feature, Table
from ._features import Form

# Calls wait for places that only another thread could make.
_SECONDS = 10.0


def timeout_ms() -> int:
    """Return how long an operator waits, in milliseconds."""
    return int(_SECONDS * 1000)


class Session:
    """The loaded tables of one TPUEmbedding.

    Parameters
    ----------
    tables, features
        As of :class:`embeng.Engine`.
    replicas : int
        Replicas, each of which has steps of its own.
    pipelining : bool
        Gradients may be one step late.

    Attributes
    ----------
    engine : embeng.Engine
        The engine.
    features : list of str
        Names of its features.
    numbers : dict of str to int
        Their numbers in the engine.

    Notes
    -----
    Thread-safe.
    """

    def __init__(self, tables: Sequence[Table], features: Sequence[Feature], replicas: int,
                 pipelining: bool):
        self.engine = Engine(tables, features, device=os.environ.get("EMBENG_DEVICE") or "soft",
                             replicas=replicas, pipelining=pipelining)
        self.features = [feature.name for feature in features]
        self.numbers = {name: number for number, name in enumerate(self.features)}

    def close(self) -> None:
        """Close the engine. Variables that show its memory keep that."""
        self.engine.close()

    def add_mode(self, train: bool) -> int:
        """Make a mode that may still change, and return its number: see :meth:`enqueue`."""
        return self.engine._session_mode(train)

    def set_mode(self, number: int, train: bool) -> None:
        """Say whether gradients come for batches that are enqueued with this mode from now on."""
        self.engine._session_mode(train, number)

    def enqueue(self, replicas: Sequence[int], forms: Sequence[Sequence[Form]],
                arrays: Sequence[Any], mode: int) -> None:
        """Look up a batch for each of some replicas; after an error there is none of any.

        Parameters
        ----------
        replicas : sequence of int
            Their numbers.
        forms : sequence of sequence of Form
            Features of each replica, as many for each.
        arrays : sequence of ndarray
            Parts of all features of all replicas.
        mode : int
            True or False: gradients will come or not; or what :meth:`add_mode` returned.

        Raises
        ------
        InvalidError
            There are more or fewer samples than rows of activations.
        StepOrderError
            The engine takes no further batch.
        """
        flat = [form for part in forms for form in part]
        self.engine._session_enqueue(
            tuple(replicas), tuple(self.numbers[form.name] for form in flat),
            tuple(form.code for form in flat), tuple(form.samples for form in flat),
            tuple(arrays), int(mode), _SECONDS)

    def dequeue(self, replica: int) -> list[Any]:
        """Return the activations of the oldest batch of a replica, ``[samples, dim]`` by feature.

        Raises
        ------
        StepOrderError
            Nothing was enqueued, or earlier steps have not got their gradients.
        """
        return self.engine._session_dequeue(replica, _SECONDS)

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
        self.engine._session_apply(replica, dict(gradients), dict(rates), _SECONDS)

    def discard_all(self) -> int:
        """Take back every batch that is under way, and return how many there were.

        Afterwards all replicas are at the same step: those that are behind get batches without
        samples, which are taken back, too.
        """
        return self.engine._session_discard(_SECONDS)

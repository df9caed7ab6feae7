# SPDX-License-Identifier: MIT
"""Calls of a session in any order: each is served or refused, and discard() mends all."""
from typing import Any

import numpy
import pytest

import embeng
from embeng.tf import _session
from embeng.tf._features import Form

ROWS, DIM = 8, 2


def make_session(replicas: int, pipelining: bool) -> _session.Session:
    """Open a session of one table and feature."""
    table = embeng.Table("t", ROWS, DIM, "sum", embeng.optimizers.sgd(0.5),
                         embeng.initializers.constant(1.0))
    return _session.Session([table], [embeng.Feature("f", "t")], replicas, pipelining)


class Model:
    """The rules: which calls a session must serve."""

    def __init__(self, replicas: int, late: int):
        self.queues: list[list[bool]] = [[] for _ in range(replicas)]
        self.taken, self.given = [0] * replicas, [0] * replicas
        self.late = late

    def may_dequeue(self, replica: int) -> bool:
        """Tell whether dequeue() is served."""
        queue = self.queues[replica]
        return bool(queue) and (not queue[0] or
                                min(self.given) >= self.taken[replica] - self.late)

    def may_apply(self, replica: int) -> bool:
        """Tell whether apply_gradients() and discard() are served."""
        return self.given[replica] < self.taken[replica]


def expect(allowed: bool, call: Any) -> Any:
    """Call, and have it served or refused as it must be."""
    if allowed:
        return call()
    with pytest.raises(embeng.StepOrderError):
        call()
    return None


@pytest.mark.parametrize("pipelining", [False, True])
@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_any_order(replicas: int, pipelining: bool, rng: Any,
                   monkeypatch: pytest.MonkeyPatch) -> None:
    """Random calls follow the rules; afterwards a step has the numbers that it should have."""
    monkeypatch.setattr(_session, "_SECONDS", 0.02)
    session = make_session(replicas, pipelining)
    model = Model(replicas, int(pipelining))
    ids = numpy.array([1, 2])
    form = [Form("f", "dense", False, 2)]
    gradients = {"f": numpy.zeros((2, DIM), numpy.float32)}
    served = {"enqueue": 0, "dequeue": 0, "apply": 0}
    for _ in range(400):
        replica = int(rng.integers(replicas))
        what = str(rng.choice(list(served)))
        if what == "enqueue":
            train = bool(rng.integers(2))
            if len(model.queues[replica]) < 2:
                try:
                    session.enqueue([replica], [form], [ids], train)
                except embeng.StepOrderError:
                    # With pipelining the engine waits until all replicas looked a step up.
                    assert pipelining and replicas > 1
                else:
                    model.queues[replica].append(train)
                    served[what] += 1
        elif what == "dequeue":
            allowed = model.may_dequeue(replica)
            if allowed and pipelining and replicas > 1:
                try:
                    session.dequeue(replica)
                except embeng.StepOrderError as error:
                    assert "cannot be dequeued now" in str(error)
                    continue
            else:
                expect(allowed, lambda replica=replica: session.dequeue(replica))
            if allowed:
                model.taken[replica] += model.queues[replica].pop(0)
                served[what] += 1
        else:
            allowed = model.may_apply(replica)
            expect(allowed, lambda replica=replica: session.apply_gradients(replica, gradients, {}))
            model.given[replica] += allowed
            served[what] += allowed
    assert min(served.values()) > 10, served
    session.discard_all()
    assert session.discard_all() == 0
    with pytest.raises(embeng.StepOrderError, match="nothing is enqueued"):
        session.dequeue(0)
    session.enqueue(range(replicas), [form] * replicas, [ids] * replicas, True)
    ones = {"f": numpy.ones((2, DIM), numpy.float32)}
    for replica in range(replicas):
        assert (session.dequeue(replica)[0] == 1).all()
    for replica in range(replicas):
        session.apply_gradients(replica, ones, {})
    session.engine.flush()
    assert (session.engine["t"].read()[1:3] == 1 - 0.5 * replicas).all()
    session.close()


@pytest.mark.sample
@pytest.mark.parametrize("train", [True, False])
def test_batches_behind_others(train: bool) -> None:
    """A batch that fails in one replica is none, also where earlier ones are not dequeued yet."""
    session = make_session(2, False)
    forms = [[Form("f", "dense", False, 1)]] * 2
    for number in range(3):
        session.enqueue([0, 1], forms, [numpy.array([number]), numpy.array([7])], train)
        with pytest.raises(embeng.OutOfRangeError, match="id 8 is outside"):
            session.enqueue([0, 1], forms, [numpy.array([number]), numpy.array([ROWS])], train)
    for number in range(3):
        for replica in range(2):
            session.dequeue(replica)
        for replica in range(2 * train):
            session.apply_gradients(replica, {"f": numpy.ones((1, DIM), numpy.float32)}, {})
    with pytest.raises(embeng.StepOrderError, match="nothing is enqueued"):
        session.dequeue(0)
    session.engine.flush()
    changed = 1 - session.engine["t"].read()[:, 0]
    expected = [0.5, 0.5, 0.5, 0, 0, 0, 0, 1.5] if train else [0] * ROWS
    assert changed.tolist() == expected
    session.close()

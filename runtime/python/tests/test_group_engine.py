# SPDX-License-Identifier: MIT
"""Engines whose tables lie on several hosts, which are threads of this process."""
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy
import pytest
from hosts import run_hosts

import embeng
from embeng import Engine, Feature, Group, Ragged, Table, optimizers

REPLICAS, STEPS = 4, 3
TABLES = [Table("a", 40, 32, "mean", optimizers.adagrad(0.1)),
          Table("b", 30, 8, "sum", optimizers.adam(0.05)),
          Table("c", 20, 4, "sqrtn", optimizers.sgd(0.3))]
FEATURES = [Feature("x", "a"), Feature("y", "a", max_sequence_length=3), Feature("z", "b"),
            Feature("w", "c")]


def batch_of(step: int, replica: int) -> dict[str, Any]:
    random = numpy.random.default_rng([step, replica])
    lengths = random.integers(0, 4, 6)
    ids = random.integers(0, 20, lengths.sum())
    return {"x": Ragged(ids, lengths=lengths), "y": Ragged(ids, lengths=lengths),
            "z": Ragged(ids, lengths=lengths, weights=random.random(len(ids), numpy.float32)),
            "w": random.integers(0, 20, 6)}


def gradients_of(batch: dict[str, Any], step: int) -> dict[str, Any]:
    random = numpy.random.default_rng(step)
    shapes = {"x": (6, 32), "y": (6, 3, 32), "z": (6, 8), "w": (6, 4)}
    return {name: random.standard_normal(shapes[name], numpy.float32) for name in batch}


def train(engine: Engine) -> dict[int, list[dict[str, Any]]]:
    """Make steps of the session and updates, and return the activations of each replica."""
    seen: dict[int, list[dict[str, Any]]] = {replica: [] for replica in engine.replicas}
    for step in range(STEPS):
        for replica in engine.replicas:
            engine.enqueue(batch_of(step, replica), replica=replica)
        for replica in engine.replicas:
            activations = engine.dequeue(replica)
            seen[replica].append(dict(activations))
            engine.apply_gradients({name: 2 * rows for name, rows in activations.items()}, replica)
        for replica in engine.replicas:
            batch = batch_of(step + 100, replica)
            engine.update(batch, gradients_of(batch, step), replica=replica)
    return seen


def look(engine: Engine) -> dict[str, Any]:
    """Look up all rows."""
    return engine.lookup({"x": numpy.arange(40), "z": numpy.arange(40) % 30,
                          "w": numpy.arange(40) % 20})


def open_over(group: Group, **options: Any) -> Engine:
    return Engine(TABLES, FEATURES, **{"cores": 1, "replicas": REPLICAS, "group": group, **options})


@pytest.fixture(scope="module")
def alone() -> tuple[dict[int, list[dict[str, Any]]], dict[str, Any]]:
    """Return what one process sees."""
    with Engine(TABLES, FEATURES, cores=1, replicas=REPLICAS) as engine:
        assert engine.replicas == range(4)
        assert (engine.info()["host"], engine.info()["hosts"]) == (0, 1)
        return train(engine), look(engine)


@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
def test_the_bits_of_one_process(ranks: int, alone: Any) -> None:
    def act(group: Group) -> Any:
        with open_over(group) as engine:
            info = engine.info()
            assert (info["host"], info["hosts"]) == (group.rank, ranks)
            assert engine.replicas == range(group.rank * 4 // ranks, (group.rank + 1) * 4 // ranks)
            return train(engine), look(engine)

    seen, rows = alone
    merged: dict[int, Any] = {}
    for mine, looked in run_hosts(ranks, act):
        merged.update(mine)
        for name, found in looked.items():
            numpy.testing.assert_array_equal(found, rows[name])
    assert sorted(merged) == [0, 1, 2, 3]
    for replica, steps in merged.items():
        for found, expected in zip(steps, seen[replica], strict=True):
            for name, activations in found.items():
                numpy.testing.assert_array_equal(activations, expected[name])


def test_other_replicas_have_other_bits(alone: Any) -> None:
    """The comparison sees a difference: that of two replicas in place of four."""
    def act(group: Group) -> Any:
        with open_over(group, replicas=2) as engine:
            train(engine)
            return look(engine)

    for looked in run_hosts(2, act):
        assert (looked["x"] != alone[1]["x"]).any()


def test_the_group_is_the_engines_meanwhile() -> None:
    def act(group: Group) -> Any:
        engine = open_over(group)
        with pytest.raises(embeng.BusyError, match="an engine has this group"):
            group.exchange("mine", 1)
        with pytest.raises(embeng.BusyError, match="another engine has this group"):
            open_over(group)
        engine.close()
        came = group.exchange("mine", 2, [bytes([group.rank])] * 2)
        engine = open_over(group)
        group.close()  # takes effect when the engine is closed
        found = engine.lookup({"w": numpy.array([3])})["w"]
        engine.close()
        with pytest.raises(ValueError, match="the group is closed"):
            open_over(group)
        return came, found

    (came, found), (other_came, other_found) = run_hosts(2, act)
    assert came == other_came == [b"\0", b"\1"]
    numpy.testing.assert_array_equal(found, other_found)


def test_a_batch_that_one_host_refuses() -> None:
    """All hosts raise its sentence, no step is taken, and the same step succeeds afterwards."""
    def act(group: Group) -> Any:
        with open_over(group) as engine:
            bad = numpy.array([20 if group.rank == 1 else 3])
            with pytest.raises(embeng.OutOfRangeError) as caught:
                for replica in engine.replicas:
                    engine.enqueue({"w": bad}, replica=replica)
            for replica in engine.replicas:
                engine.enqueue({"w": numpy.array([3])}, replica=replica)
            steps = [engine.dequeue(replica).step for replica in engine.replicas]
            for replica in engine.replicas:
                engine.discard(replica)
            return str(caught.value), steps

    (first, one), (second, two) = run_hosts(2, act)
    assert one == two == [1, 1]
    for sentence in (first, second):
        assert "feature w" in sentence and "id 20 is outside table c" in sentence
    assert "host 1 (thread1) says" in first


def test_batches_of_other_sizes_are_not_cut() -> None:
    """A large lookup of one host is one call, as the small one of the other is."""
    def act(group: Group) -> Any:
        count = 400_000 if group.rank == 0 else 5
        with open_over(group) as engine:
            found = engine.lookup({"x": numpy.arange(count) % 40})["x"]
            again = engine.lookup({"x": numpy.arange(40)})["x"]
        numpy.testing.assert_array_equal(found, again[numpy.arange(count) % 40])
        return count

    assert run_hosts(2, act) == [400_000, 5]


@pytest.mark.parametrize("call", [
    lambda engine: engine.dequeue(engine.replicas[0]),
    lambda engine: engine.lookup({"w": numpy.array([1])}),
])
def test_a_host_that_stops_is_named(call: Callable[[Engine], Any]) -> None:
    """The exception is that of a deadline, whose sentence has the host, and comes in time."""
    done = threading.Event()

    def act(group: Group) -> Any:
        engine = open_over(group)
        for replica in engine.replicas:
            engine.enqueue(batch_of(0, replica), replica=replica)
        for replica in engine.replicas:
            rows = engine.dequeue(replica)
            engine.apply_gradients(dict(rows), replica)
        engine.flush()
        if group.rank == 1:
            done.wait(30)
            engine.close()
            return None
        began = time.monotonic()
        with pytest.raises(embeng.WaitTimeoutError) as caught:
            if call.__code__.co_names[0] == "dequeue":
                for replica in engine.replicas:
                    engine.enqueue(batch_of(1, replica), replica=replica)
            call(engine)
        seconds = time.monotonic() - began
        with pytest.raises(embeng.DeviceError, match="dead since") as dead:
            call(engine)
        done.set()
        engine.close()
        return str(caught.value), seconds, str(dead.value)

    sentence, seconds, dead = run_hosts(2, act, deadline=1.5)[0]
    assert "host 1 (thread1)" in sentence and 1.4 < seconds < 3
    assert "host 1 (thread1)" in dead


def test_wrong_opening() -> None:
    with pytest.raises(TypeError, match="group: 3 is no Group"):
        open_over(3)  # type: ignore[arg-type]
    with Group(Group.threads(1)[0]) as group:
        with pytest.raises(embeng.InvalidError, match="with a group, give cores within device"):
            open_over(group, device="/dev/accel/accel0")
        with pytest.raises(embeng.InvalidError, match="the group is given"):
            open_over(group, device="mpi:soft", cores=0)
        with open_over(group, device="soft:cores=1", cores=0) as engine:
            assert engine.replicas == range(4)
        with open_over(group, memory=1 << 30, variant="portable") as engine:
            assert engine.info()["variant"] == "portable"


def test_what_is_impossible_says_so() -> None:
    def act(group: Group) -> str:
        with open_over(group) as engine:
            with pytest.raises(embeng.NotSupportedError) as caught:
                engine.table_map("a")
            return str(caught.value)

    for sentence in run_hosts(2, act):
        assert "embeng_table_map" in sentence and "hosts of a group" in sentence


def test_calls_of_all_hosts_wait_without_the_interpreter() -> None:
    """A host that waits for another one in such a call lets the threads of Python run."""
    def act(group: Group) -> tuple[int, Any]:
        with open_over(group) as engine:
            for _ in range(20):
                engine.step = 7
                engine["a"].frozen = True
                engine["a"].frozen = False
                assert engine["a"].stats()["ids"] == 0
            return engine.step, engine["a"].read()

    first, second = run_hosts(2, act)
    assert first[0] == second[0] == 7
    assert numpy.array_equal(first[1], second[1])


def test_hosts_that_name_other_numbers_of_rows() -> None:
    """One names all rows, more than 16 MiB of them, and the other none or a few."""
    rows = 70_000
    table = Table("t", rows, 64, "sum", initializer=embeng.initializers.constant(0.0))

    def act(group: Group) -> tuple[Any, ...]:
        with Engine([table], cores=1, replicas=2, group=group) as engine:
            view, wanted = engine["t"], numpy.arange(rows)[:, None] + numpy.zeros(64)
            if group.rank:
                view.write(numpy.empty((0, 64), numpy.float32), [])
                nothing, few, found = view.read([]), view.read([1, 69_999]), view.read([5])
            else:
                view.write(wanted)
                nothing, few, found = view.read([1, 2]), view.read([]), view.read()
            return nothing.shape, few, found[:, 3]

    first, second = run_hosts(2, act)
    assert (first[0], second[0]) == ((2, 64), (0, 64))
    assert numpy.array_equal(first[2], numpy.arange(rows))
    assert second[1][:, 0].tolist() == [1, 69_999] and second[2].tolist() == [5]


def test_a_lookup_ends_in_time() -> None:
    """The host that gave up goes on with the same lookup, or makes another one."""
    def act(group: Group) -> list[Any]:
        with open_over(group) as engine:
            first, second = {"z": [1, 2 + group.rank]}, {"z": [5]}
            if group.rank:
                time.sleep(0.3)
            else:
                for seconds in (0, 0.05):
                    with pytest.raises(embeng.WaitTimeoutError, match="call again"):
                        engine.lookup(first, timeout=seconds)
            found = [engine.lookup(first)["z"], engine.lookup(first)["z"]]
            if group.rank:
                time.sleep(0.1)
                engine.lookup(first)
            else:
                with pytest.raises(embeng.WaitTimeoutError):
                    engine.lookup(first, timeout=0.01)
            return [*found, engine.lookup(second)["z"], engine["b"].read([1, 2, 5])]

    for once, again, other, rows in run_hosts(2, act):
        assert numpy.array_equal(once, again) and numpy.array_equal(once[0], rows[0])
        assert numpy.array_equal(other[0], rows[2]) and not numpy.array_equal(once[0], rows[2])

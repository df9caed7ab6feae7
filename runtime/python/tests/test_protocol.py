# SPDX-License-Identifier: MIT
"""Steps one by one: enqueue, dequeue, apply_gradients, discard, flush; replicas; their order."""
import numpy
import pytest
from support import make_engine
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import Bags, ReferenceTable

import embeng
from embeng import Engine, Feature, Ragged, StepOrderError, Table, WaitTimeoutError


def test_a_step(engine: Engine) -> None:
    rows = engine["t"].read()
    engine.enqueue({"f": Ragged([1, 2, 3], lengths=[2, 1]), "s": [[4, 5]]})
    found = engine.dequeue()
    assert (found.step, found.train, set(found)) == (1, True, {"f", "s"})
    numpy.testing.assert_allclose(found["f"], [rows[1] + rows[2], rows[3]], rtol=1e-6)
    assert found["s"].shape == (1, 3, 4)
    assert found["s"][0].tobytes() == numpy.stack([rows[4], rows[5], numpy.zeros_like(rows[0])]
                                                  ).tobytes()
    assert found.lengths["f"] is None and found.lengths["s"].tolist() == [2]
    kept = found["f"].copy()
    engine.apply_gradients({"f": numpy.ones((2, 4)), "s": None})
    engine.flush()
    numpy.testing.assert_allclose(engine["t"][[1, 2, 3]], rows[1:4] - 0.5, rtol=1e-6)
    assert engine["t"][[4, 5]].tobytes() == rows[4:6].tobytes()
    assert found["f"].tobytes() == kept.tobytes()
    assert engine.step == 1


def test_inference_and_order(engine: Engine) -> None:
    for number in (1, 2, 3):
        engine.enqueue({"f": [number]}, False)
    for number in (1, 2, 3):
        found = engine.dequeue(timeout=1)
        assert (found.step, found.train) == (0, False)
        assert found["f"].tobytes() == engine["t"][[number]].tobytes()
        assert found["s"].shape == (0, 3, 4)


def test_out_of_order(engine: Engine) -> None:
    for act, kind, words in [
            (engine.dequeue, StepOrderError, "replica 0: nothing is enqueued to dequeue"),
            (engine.discard, StepOrderError, "no training batch that waits for gradients"),
            (lambda: engine.apply_gradients({}), StepOrderError, "waits for gradients"),
            (lambda: engine.dequeue(1, 0), embeng.OutOfRangeError, "replica 1, the model has 1"),
            (lambda: engine.dequeue(-1), ValueError, "replica is -1; give a whole number"),
            (lambda: engine.dequeue("0"), TypeError, "replica: '0' is no whole number"),
            (lambda: engine.flush(-1), ValueError, "timeout: give seconds"),
            (lambda: engine.flush("1"), TypeError, "real number")]:
        with pytest.raises(kind, match=words):
            act()
    engine.enqueue({"f": [1]})
    with pytest.raises(StepOrderError, match="step 1: its activations .* were not dequeued"):
        engine.apply_gradients({"f": None})
    engine.dequeue()
    engine.apply_gradients({"f": None})
    with pytest.raises(StepOrderError, match="waits for gradients"):
        engine.apply_gradients({"f": None})
    engine.flush(0)
    engine.flush(1e300)
    assert engine.step == 1


def test_gradients_are_checked(engine: Engine) -> None:
    engine.enqueue({"f": [1, 2]})
    engine.dequeue()
    for gradients, kind, words in [
            ({"f": numpy.ones((1, 4))}, ValueError, "4 elements, its activations have 8"),
            ({"f": numpy.ones((4, 2))}, ValueError, "rows have 2 numbers"),
            ({"f": None, "x": None}, embeng.UnknownNameError, "gradients: there is no feature 'x'"),
            ({"f": [["a"] * 4] * 2}, TypeError, "numbers of <U1"),
            ([1], TypeError, "gradients are a dict")]:
        with pytest.raises(kind, match=words):
            engine.apply_gradients(gradients)
    before = engine["t"].read([1])
    engine.apply_gradients({"f": numpy.ones((2, 4))}, multiplier=3)
    numpy.testing.assert_allclose(engine["t"].read([1]), before - 1.5, rtol=1e-6)


def test_a_hopeless_wait_is_told(engine: Engine) -> None:
    """The thread that has the view is the only one that could end its wait."""
    engine.enqueue({"f": [1]})
    engine.dequeue()
    engine.enqueue({"f": [2]})
    with pytest.raises(StepOrderError, match="gradients"):
        engine.dequeue()
    with pytest.raises(WaitTimeoutError, match="step 1: gradients of replica 0"):
        engine.dequeue(timeout=0.05)
    engine.discard()
    assert engine.dequeue().step == 2
    engine.discard()
    assert engine.step == 0


def test_replicas_add_their_gradients() -> None:
    with make_engine(replicas=2) as engine:
        rows = engine["t"].read()
        for replica in (0, 1):
            engine.enqueue({"f": [3]}, True, replica)
        for replica in (0, 1):
            assert engine.dequeue(replica)["f"].tobytes() == rows[3:4].tobytes()
            engine.apply_gradients({"f": numpy.ones((1, 4))}, replica)
        engine.flush()
        numpy.testing.assert_allclose(engine["t"][3], rows[3] - 1.0, rtol=1e-6)
        engine.update({"f": [3]}, {"f": numpy.ones((1, 4))}, replica=1)
        assert engine.step == 1  # the second step waits for the other replica
        engine.update({"f": [3]}, {"f": None}, replica=0)
        engine.flush()
        numpy.testing.assert_allclose(engine["t"][3], rows[3] - 1.5, rtol=1e-6)
        assert engine.step == 2


def test_rates_and_schedules() -> None:
    steps = embeng.schedules.piecewise([0, 1], [1.0, 0.5, 0.25])
    tables = [Table(name, 3, 1, optimizer=embeng.optimizers.sgd(rate),
                    initializer=embeng.initializers.constant(0))
              for name, rate in (("a", "rate_of_a"), ("b", steps), ("c", steps))]
    with Engine(tables, cores=1) as engine:
        assert len(engine.describe()["rates"]) == 2
        inputs = {name: [1] for name in "abc"}
        ones = {name: [[1.0]] for name in "abc"}
        for rate in (8.0, 4.0, 2.0):
            engine.update(inputs, ones, rates={"rate_of_a": rate})
        found = [engine[name][1].item() for name in "abc"]
        assert found == [-14.0, -1.75, -1.75]
        with pytest.raises(ValueError, match="rate_of_a"):
            engine.update(inputs, ones)
        assert engine.step == 3
    assert [steps(k) for k in range(4)] == [1.0, 0.5, 0.25, 0.25]


def test_dynamic_settings() -> None:
    optimizer = embeng.optimizers.momentum("rate", dynamic={"momentum": "m"})
    with Engine([Table("t", 3, 1, optimizer=optimizer,
                       initializer=embeng.initializers.constant(0))], cores=1) as engine:
        engine.update({"t": [1]}, {"t": [[1.0]]}, rates={"rate": 1.0, "m": 0.0})
        engine.update({"t": [1]}, {"t": [[1.0]]}, rates={"rate": 1.0, "m": 0.5})
        assert engine["t"][1].item() == -(1 + 1.5)


def test_added_tables(engine: Engine) -> None:
    rows = engine["t"].read()
    new = Table("u", 5, 2, "mean", embeng.optimizers.sgd("u_rate"))
    engine.add([new], [Feature("g", "u"), Feature("h", "t")])
    assert [view.name for view in engine] == ["t", "u"]
    found = engine.lookup({"g": [1], "h": [2], "f": [3]})
    assert found["h"].tobytes() == rows[2:3].tobytes()
    assert found["g"].tobytes() == engine["u"][1:2].tobytes()
    engine.update({"g": [1]}, {"g": [[1.0, 1.0]]}, rates={"u_rate": 0.5})
    numpy.testing.assert_allclose(engine["u"][1], found["g"][0] - 0.5, rtol=1e-6)
    for tables, features in (([Table("u", 5, 2)], []), ([], [Feature("g", "u")]),
                             ([], [Feature("k", "x")])):
        with pytest.raises(embeng.EmbengError):
            engine.add(tables, features)
        assert (len(engine.tables), len(engine.features)) == (2, 4)
    engine.enqueue({"f": [1]})
    with pytest.raises(embeng.BusyError):
        engine.add([Table("w", 5, 2)])
    assert len(engine) == 2


STEPS = st.lists(st.tuples(st.sampled_from(["train", "discard", "infer", "update"]),
                           st.lists(st.lists(st.integers(0, 9), max_size=3), max_size=4)),
                 max_size=10)


@settings(max_examples=40)
@given(STEPS)
def test_any_steps_equal_the_model(steps: list[tuple[str, list[list[int]]]]) -> None:
    with make_engine() as engine:
        model = ReferenceTable(engine["t"].read(), "sum", "sgd", 0.5)
        for verb, ids in steps:
            bags, inputs = Bags(ids), {"f": Ragged.from_lists(ids)}
            gradients = numpy.arange(len(ids) * 4, dtype=numpy.float32).reshape(-1, 4) / 8
            if verb == "update":
                engine.update(inputs, {"f": gradients})
            else:
                engine.enqueue(inputs, verb != "infer")
                numpy.testing.assert_allclose(engine.dequeue()["f"], model.lookup(bags), rtol=1e-4,
                                              atol=1e-5)
            if verb == "train":
                engine.apply_gradients({"f": gradients})
            elif verb == "discard":
                engine.discard()
            if verb in ("train", "update"):
                model.update([(bags, gradients.astype(float))])
        numpy.testing.assert_allclose(engine["t"].read(), model.rows, rtol=1e-4, atol=1e-5)
        assert engine.step == model.steps

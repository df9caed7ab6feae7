# SPDX-License-Identifier: MIT
"""Ten thousand steps, and as many errors, leave no memory behind and no reference."""
import gc
import io
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest
from support import make_engine

import embeng
from embeng import Engine, Feature, Ragged, Sparse, Table

STEPS = 10_000


def _resident() -> int:
    """Bytes of memory that the process has now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


def _let_go() -> None:
    """Have the interpreter let go of what it keeps only for a while.

    That is garbage, and the names that it looked up last: up to some thousands of them, and numpy
    makes a new string of a name at each look-up.
    """
    if hasattr(sys, "_clear_type_cache"):
        sys._clear_type_cache()
    gc.collect()


def _measure() -> tuple[int, int, int]:
    _let_go()
    return tracemalloc.get_traced_memory()[0], _resident(), len(gc.get_objects())


def _check(act: Callable[[int], Any], steps: int = STEPS, warm: int = STEPS // 10,
           most: int | None = None) -> None:
    """Refuse growth of Python's memory, of the process, and of the count of objects.

    Tables of the interpreter grow once in a while, and not in each of two halves as what is lost.
    """
    for k in range(warm):  # pools and caches fill up
        act(k)
    tracemalloc.start()
    seen = [_measure()]
    for half in range(2):
        for k in range(steps // 2):
            act(k)
        seen.append(_measure())
    tracemalloc.stop()
    grown, resident, objects = (min(b - a, c - b) for a, b, c in zip(*seen, strict=True))
    print(f"{grown} bytes of Python, {resident} of the process, {objects} objects")
    # An object has 16 bytes at least, so one that is lost in each step of a half makes 8 * steps.
    assert grown < (4 * steps if most is None else most)
    assert objects < 10
    assert resident < 8 << 20


@pytest.fixture
def inputs() -> dict[str, Any]:
    """Inputs of all forms, some of which are converted."""
    return {"f": Ragged([1, 2, 3], lengths=numpy.array([2, 1], numpy.int16), weights=[1.0, 2, 3],
                        padding=9),
            "s": numpy.array([[1, 2], [3, 4]], ">i8")}


def test_steps(inputs: dict[str, Any]) -> None:
    out = numpy.zeros((2, 4), numpy.float32)
    gradients = {"f": [[0.5] * 4] * 2, "s": None}
    sparse = {"f": Sparse([[0, 0], [1, 1]], [1, 2], (2, 2))}
    with make_engine() as engine:
        view = engine["t"]

        def act(number: int) -> None:
            engine.lookup(inputs, out={"f": out})
            engine.lookup(sparse)
            engine.update(inputs, gradients, multiplier=0.5)
            if number % 4 == 0:
                engine.enqueue(inputs)
                engine.dequeue()
                engine.apply_gradients(gradients)
                view.write(view.read([1, 2]), [1, 2])
                live = view.numpy()
                live.sum()
                engine.gradient_norm(inputs, gradients)
                engine.weight_gradients(inputs, gradients, {"f": None})
                view.stats()
                engine.counters()

        _check(act)


def test_errors(inputs: dict[str, Any]) -> None:
    gradients = {"f": None, "s": None}
    wrong: list[Callable[[Engine], Any]] = [
        lambda e: e.lookup({"f": [99]}),
        lambda e: e.lookup({"f": [1.5]}),
        lambda e: e.lookup({"f": "x"}),
        lambda e: e.lookup({**inputs, "x": [1]}),
        lambda e: e.lookup({"f": Ragged([1], lengths=[2])}),
        lambda e: e.lookup({"f": Ragged([1], lengths=[1], padding=1.5)}),
        lambda e: e.lookup({"f": Ragged([1], lengths=[1], weights=[numpy.nan])}),
        lambda e: e.lookup({"f": [1]}, out={"f": numpy.zeros((1, 4))}),
        lambda e: e.lookup({"f": [1]}, out={"g": numpy.zeros((1, 4), numpy.float32)}),
        lambda e: e.lookup({"f": [1]}, timeout=-1),
        lambda e: e.update(inputs, {}),
        lambda e: e.update(inputs, {"f": [[numpy.nan] * 4] * 2, "s": None}),
        lambda e: e.update(inputs, gradients, rates={"x": 1}),
        lambda e: e.update(inputs, gradients, multiplier="x"),
        lambda e: e.weight_gradients(inputs, gradients, {"x": None}),
        lambda e: e["t"].read([99]),
        lambda e: e["t"].read(slot="x"),
        lambda e: e["t"].write([[numpy.nan] * 4]),
        lambda e: e["t"].numpy("x"),
        lambda e: e.dequeue(),
        lambda e: e.enqueue({"f": [99]}),
        lambda e: e.restore("/nowhere"),
        lambda e: e.restore(io.BytesIO(b"x"), progress=False),
        lambda e: e.add([Table("t", 1, 1)]),
        lambda e: e.add([], [Feature("x", "x")]),
        lambda e: embeng.optimizers.sgd(dynamic={"x": 1}),
        lambda e: embeng.schedules.piecewise([1], [1]),
    ]
    with make_engine() as engine:
        for kind, call in enumerate(wrong):  # each alone, so that little growth shows
            def act(number: int, kind: int = kind, call: Callable[[Engine], Any] = call) -> None:
                try:
                    call(engine)
                except (embeng.EmbengError, ValueError, TypeError):
                    return
                raise AssertionError(kind)

            print("error", kind)
            _check(act, steps=STEPS // 10, warm=STEPS // 20)


def test_engines(tmp_path: Path) -> None:
    """Engines that are opened, trained, saved, copied, closed, or left to the collector."""
    def act(number: int) -> None:
        engine = make_engine()
        engine.lookup({"f": [1]})
        engine.update({"f": [1]}, {"f": None})
        stream = io.BytesIO()
        engine.save(stream, progress=False)
        stream.seek(0)
        engine.restore(stream, progress=False)
        engine.describe()
        engine.add([Table("u", 3, 2)], [Feature("v", "u")])
        if number % 3 == 0:
            engine.close()
        elif number % 3 == 1:
            engine.cycle = engine
        try:
            make_engine(memory=1)
        except embeng.NoMemoryError:
            pass

    _check(act, 300, 100, 150 * 100)  # an engine has more than 100 bytes


def test_references(inputs: dict[str, Any]) -> None:
    """No call keeps an object of its caller's, whether it succeeds or fails."""
    ids, floats = numpy.arange(4), numpy.ones((4, 4), numpy.float32)
    bad, name, out = numpy.array([99]), "".join(["a ", "name"]), numpy.ones((4, 4), numpy.float32)
    with make_engine() as engine:
        def count() -> list[int]:
            return [sys.getrefcount(held) for held in (ids, floats, bad, name, out, engine, None)]

        def act() -> None:
            engine.lookup({"f": ids}, out={"f": out})
            engine.update({"f": ids}, {"f": floats})
            engine.enqueue({"f": ids})
            engine.dequeue()
            engine.apply_gradients({"f": floats})
            engine["t"].write(floats, ids)
            engine["t"].read(ids, out=out)
            engine["t"].numpy()
            for wrong in (lambda: engine.lookup({"f": bad}),
                          lambda: engine.lookup({"f": ids, name: ids}, out={"f": out}),
                          lambda: engine.lookup({"f": ids}, out={name: out}),
                          lambda: engine.update({"f": ids}, {"f": floats}, rates={name: 1.0}),
                          lambda: engine.update({"f": ids, "s": [[1.5]]}, {"f": floats}),
                          lambda: engine["t"].read(bad, out=out)):
                with pytest.raises((embeng.EmbengError, TypeError, ValueError)):
                    wrong()

        act()
        _let_go()
        before = count()
        for _ in range(50):
            act()
        _let_go()
        after = count()
        assert after[:6] == before[:6]
        assert abs(after[6] - before[6]) < 50  # None has other users


def test_ids_of_dlpack() -> None:
    torch = pytest.importorskip("torch")
    ids, out = torch.arange(4), torch.zeros(4, 4)
    with make_engine() as engine:
        def act(number: int) -> None:
            engine.lookup({"f": ids}, out={"f": out})
            try:
                engine.lookup({"f": out})
            except TypeError:
                pass

        _check(act, 2000, 500)
        _let_go()
        before = sys.getrefcount(ids)
        act(0)
        assert sys.getrefcount(ids) == before

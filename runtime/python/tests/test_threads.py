# SPDX-License-Identifier: MIT
"""Threads, processes and ends: calls at once, close while calls run, forks, exits."""
import gc
import multiprocessing
import os
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy
import pytest
from support import Run, make_engine

import embeng
from embeng import Engine, Feature, Table


def _together(count: int, act: Callable[[int], None]) -> list[BaseException]:
    """Run `act` in as many threads; return what they raised."""
    errors: list[BaseException] = []

    def run(number: int) -> None:
        try:
            act(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    return errors


def test_lookups_at_once(engine: Engine) -> None:
    rows = engine["t"].read()

    def act(number: int) -> None:
        out = numpy.zeros((number + 1, 4), numpy.float32)
        ids = numpy.arange(number + 1)
        for _ in range(300):
            engine.lookup({"f": ids}, out={"f": out})
            assert out.tobytes() == rows[:number + 1].tobytes()
            assert engine.lookup({"s": [[number]]})["s"][0, 0].tobytes() == rows[number].tobytes()

    assert not _together(6, act)


def test_updates_of_threads_add_up() -> None:
    """Gradients of whole numbers have one sum, in whichever order they come."""
    table = Table("t", 50, 3, "sum", embeng.optimizers.sgd(1.0), embeng.initializers.constant(0))
    with Engine([table], cores=2) as engine:
        def act(number: int) -> None:
            for _ in range(100):
                engine.update({"t": [number, 49]}, {"t": numpy.ones((2, 3))})
                engine.lookup({"t": [number]})

        assert not _together(4, act)
        assert engine.step == 400
        assert engine["t"].read(range(5))[:, 0].tolist() == [-100] * 4 + [0]
        assert engine["t"][49].tolist() == [-400] * 3


def test_close_while_calls_run() -> None:
    """Each call ends as if alone, or says that the engine is closed."""
    for attempt in range(20):
        engine = make_engine(rows=1000)
        rows = engine["t"].read()
        counts = [0] * 3

        def act(number: int, engine: Engine = engine, rows: Any = rows,
                counts: list[int] = counts) -> None:
            while True:
                try:
                    if number == 0:
                        found = engine["t"].read()
                    elif number == 1:
                        found = engine.lookup({"f": numpy.arange(1000)})["f"]
                    else:
                        engine.update({"f": [1]}, {"f": None})
                        found = rows
                except (ValueError, embeng.InterruptedWaitError):
                    assert engine.closed
                    return
                assert found.tobytes() == rows.tobytes()
                counts[number] += 1

        def close(engine: Engine = engine, counts: list[int] = counts) -> None:
            while not all(counts):
                time.sleep(0.001)
            engine.close()
            engine.close()

        closer = threading.Thread(target=close)
        closer.start()
        assert not _together(3, act), attempt
        closer.join()
        assert min(counts) > 0


def test_close_ends_a_wait() -> None:
    engine = make_engine(replicas=2)
    engine.enqueue({"f": [1]})
    engine.dequeue()
    engine.enqueue({"f": [1]})
    engine.apply_gradients({"f": None})
    timer = threading.Timer(0.1, engine.close)
    timer.start()
    began = time.monotonic()
    with pytest.raises((embeng.InterruptedWaitError, ValueError)):
        engine.dequeue()
    assert time.monotonic() - began < 5
    timer.join()


def test_interrupt_from_another_thread() -> None:
    with make_engine(replicas=2) as engine:
        engine.enqueue({"f": [1]})
        engine.dequeue()
        engine.enqueue({"f": [1]})
        engine.apply_gradients({"f": None})
        timer = threading.Timer(0.1, engine.interrupt, (True,))
        timer.start()
        with pytest.raises(embeng.InterruptedWaitError) as caught:
            engine.dequeue()
        assert isinstance(caught.value, InterruptedError)
        timer.join()
        engine.interrupt(False)
        with pytest.raises(embeng.WaitTimeoutError, match="replica 1"):
            engine.dequeue(timeout=0.15)


def test_after_close(engine: Engine) -> None:
    view = engine["t"]
    engine.close()
    engine.close()
    assert engine.closed and "closed" in repr(engine)
    for act in (lambda: engine.lookup({"f": [1]}), lambda: engine.update({"f": [1]}, {"f": None}),
                view.read, view.numpy, view.stats, engine.flush, engine.describe, engine.counters,
                engine.usage, engine.info, lambda: engine.step, engine.dequeue, engine.discard,
                lambda: engine.enqueue({"f": [1]}), lambda: engine.apply_gradients({}),
                lambda: engine.save("x"), lambda: engine.restore("x"), lambda: view.frozen,
                lambda: view.write([[1.0] * 4]), lambda: engine.interrupt(True),
                lambda: engine.add([Table("u", 2, 2)]),
                lambda: view.fill(embeng.initializers.constant(1))):
        with pytest.raises(ValueError, match="the engine is closed"):
            act()


def test_maps_outlive_the_engine() -> None:
    engine = make_engine()
    live, rows = engine["t"].numpy(), engine["t"].read()
    assert live.base is not None
    engine.update({"f": [1]}, {"f": numpy.ones((1, 4), numpy.float32)})
    engine.flush()
    assert live[1].tobytes() == engine["t"][1].tobytes() != rows[1].tobytes()
    live[2] = 7
    assert engine["t"][2].tolist() == [7] * 4
    after = engine["t"].read()
    column = live[:, 1:2]
    engine.close()
    del engine, live
    gc.collect()
    assert column.tobytes() == after[:, 1:2].tobytes()
    column[:] = 1
    assert column.sum() == 10


def test_maps_of_slots_and_none() -> None:
    table = Table("t", 4, 2, optimizer=embeng.optimizers.adagrad(0.1))
    with Engine([table], cores=1) as engine:
        assert numpy.unique(engine["t"].numpy("accumulators")).tolist() == [numpy.float32(0.1)]
        with pytest.raises(embeng.UnknownNameError, match="slot"):
            engine["t"].numpy("momenta")
        with pytest.raises(ValueError, match="slot: 'accumulators.x00' is no name"):
            engine["t"].numpy("accumulators\0")
        view = memoryview(engine.table_map("t"))
        assert (view.shape, view.format, view.readonly) == ((4, 2), "f", False)
        with pytest.raises(TypeError, match="cannot create"):
            type(engine.table_map("t"))()


def test_add_while_calls_run() -> None:
    with make_engine() as engine:
        refused, stop = [0], threading.Event()

        def act(number: int) -> None:
            if number:
                while not stop.is_set():
                    try:
                        engine.lookup({"f": numpy.arange(10).repeat(100)})
                    except embeng.BusyError:
                        refused[0] += 1
                return
            added = 0
            while added < 5:
                try:
                    engine.add([Table(f"u{added}", 3, 2)], [Feature(f"v{added}", f"u{added}")])
                    added += 1
                except embeng.BusyError:
                    refused[0] += 1
                    time.sleep(0.001)
            stop.set()

        assert not _together(3, act)
        assert [table.name for table in engine.tables] == ["t", *(f"u{k}" for k in range(5))]
        assert engine.lookup({"v4": [2]})["v4"].tobytes() == engine["u4"][2:3].tobytes()


# -- processes ---------------------------------------------------------------------------


def _in_child(engine: Engine, queue: Any) -> None:
    said = []
    for act in (lambda: engine.lookup({"f": [1]}), lambda: engine["t"].read(),
                lambda: engine.update({"f": [1]}, {"f": None}), lambda: engine.flush()):
        try:
            act()
            said.append(("nothing", 0))
        except embeng.NotSupportedError as error:
            said.append((str(error), error.code))
    engine.close()
    with make_engine() as own:
        said.append((str(own.lookup({"f": [1]})["f"].shape), 1))
    queue.put(said)


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_fork(engine: Engine) -> None:
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_in_child, args=(engine, queue))
    child.start()
    said = queue.get(timeout=30)
    child.join(30)
    assert child.exitcode == 0
    assert all("forked" in text and code == -95 for text, code in said[:4]), said
    assert said[4] == ("(1, 4)", 1)
    assert engine.lookup({"f": [1]})["f"].tobytes() == engine["t"][1:2].tobytes()


def test_spawn() -> None:
    context = multiprocessing.get_context("spawn")
    with make_engine() as engine, context.Pool(1) as pool:
        assert pool.apply(_read_copy, (engine,)) == engine["t"].read().tobytes()


def _read_copy(engine: Engine) -> bytes:
    with engine:
        return engine["t"].read().tobytes()


OPEN = """
import embeng, numpy as np, threading, time, sys, os
engine = embeng.Engine([embeng.Table("t", 200_000, 16, "sum", embeng.optimizers.sgd(0.5))], cores=2)
"""
ENDS = {
    "open": "",
    "lookup": "found = engine.lookup({'t': [1]})",
    "updates": "for k in range(50): engine.update({'t': np.arange(1000)}, {'t': None})",
    "step": "engine.enqueue({'t': [1]}); engine.dequeue(); engine.enqueue({'t': [1]})",
    "map": "live = engine['t'].numpy()",
    "cycle": "engine.self = engine; live = engine['t'].numpy(); engine.live = live",
    "global": "import builtins; builtins.kept = engine; sys.modules['kept'] = engine",
    "daemon": """
ids = np.arange(200_000)
def run():
    while True: engine.lookup({'t': ids})
for k in range(3): threading.Thread(target=run, daemon=True).start()
time.sleep(0.1)""",
    "daemon_update": """
def run():
    while True: engine.update({'t': np.arange(100_000)}, {'t': None})
threading.Thread(target=run, daemon=True).start()
time.sleep(0.1)""",
    "daemon_save": """
class Sink:
    def write(self, data): time.sleep(0.001); return len(data)
def run():
    while True: engine.save(Sink(), progress=False)
threading.Thread(target=run, daemon=True).start()
time.sleep(0.1)""",
    "daemon_wait": """
other = embeng.Engine(engine.tables, cores=1, replicas=2)
other.enqueue({'t': [1]}); other.dequeue(); other.enqueue({'t': [1]})
other.apply_gradients({'t': None})
threading.Thread(target=other.dequeue, daemon=True).start()
time.sleep(0.1)""",
    "exit_handler": "import atexit; atexit.register(engine.close)",
    "late_handler": "import atexit; atexit.register(lambda: engine.lookup({'t': [1]}))",
    "del_handler": """
class Late:
    def __init__(self): self.ids, self.out = np.arange(3), {'t': np.zeros((3, 16), np.float32)}
    def __del__(self): engine.lookup({'t': self.ids}, out=self.out)
late = Late()""",
}


@pytest.mark.parametrize("name", ENDS)
def test_exit_code(name: str, run_python: Run) -> None:
    began = time.monotonic()
    done = run_python(OPEN + ENDS[name] + "\nprint('done', flush=True)\n")
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "done"), done.stderr
    assert "Fatal" not in done.stderr and "Traceback" not in done.stderr
    assert time.monotonic() - began < 30


def test_exit_by_error_and_signal(run_python: Run) -> None:
    done = run_python(OPEN + "raise SystemExit(3)")
    assert done.returncode == 3
    done = run_python(OPEN + "engine.lookup({'t': [-1]})")
    assert done.returncode == 1
    assert "feature t, sample 0: id -1 is outside table t" in done.stderr
    done = run_python(OPEN + "os.fork() or os._exit(0); os.wait(); print(engine['t'][1].shape)")
    assert (done.returncode, done.stdout) == (0, "(16,)\n"), done.stderr


INTERPRETER = """
import embeng
engine = embeng.Engine([embeng.Table("t", 9, 2, "sum", embeng.optimizers.sgd(0.5),
                                     embeng.initializers.constant(3))], cores=1)
out = memoryview(bytearray(16)).cast("f", (2, 2))
ids = memoryview((1).to_bytes(8, sys.byteorder) + (2).to_bytes(8, sys.byteorder)).cast("q")
engine.lookup({"t": ids}, out={"t": out})
assert out.tolist() == [[3, 3], [3, 3]], out.tolist()
try:
    engine.lookup({"t": memoryview(bytes([9] * 8)).cast("q")}, out={"t": out[:1]})
except embeng.OutOfRangeError as error:
    assert "id 651061555542690057 is outside table t" in str(error)
else:
    raise AssertionError("not refused")
engine.close()
kept = embeng.Engine([embeng.Table("t", 9, 2)], cores=1)
"""


def test_interpreters(run_python: Run) -> None:
    """Each interpreter of a process has a module of its own, with errors of its own."""
    code = ("import embeng, sys\n"
            "try:\n    import _xxsubinterpreters as made\n"
            "except ImportError:\n    import _interpreters as made\n"
            f"code = '''import sys; sys.path[:] = ''' + repr(sys.path) + {INTERPRETER!r}\n"
            "for k in range(3):\n"
            "    number = made.create()\n"
            "    failed = made.run_string(number, code)\n"
            "    assert failed is None, failed\n"
            "    made.destroy(number)\n"
            f"exec({INTERPRETER!r})\n"
            "print('done')\n")
    done = run_python(code.replace("repr(sys.path) +", "repr(sys.path) + chr(10) +"))
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    done = run_python(code.replace("made.destroy(number)", "sys.exit(5)"))
    assert (done.returncode, done.stdout) == (5, ""), done.stderr  # interpreters that are left open


def test_import_is_light(run_python: Run) -> None:
    done = run_python("import sys, embeng; print({'numpy', 'torch'} & set(sys.modules) or [])")
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr


def test_fork_without_threads_of_python() -> None:
    """The child of a fork leaves without touching the parent's engine."""
    engine = make_engine()
    child = os.fork()
    if not child:
        del engine
        gc.collect()
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert len(engine["t"].read()) == 10
    engine.close()


def test_arrays_that_another_thread_writes_to() -> None:
    """Ids and bounds that change during calls: a refusal or a result, and memory stays sound."""
    with make_engine(rows=1000, dim=64) as engine:
        rng = numpy.random.default_rng(3)
        samples = 120_000  # a lookup of several pieces
        ids = rng.integers(0, 1000, 2 * samples)
        splits = numpy.arange(0, 2 * samples + 1, 2)
        good_ids, good_splits = ids.copy(), splits.copy()
        stop = threading.Event()
        seen = {"refused": 0, "done": 0}

        def act(number: int) -> None:
            if number:
                bad = numpy.random.default_rng(number)
                while not stop.is_set():
                    at = int(bad.integers(1, len(splits) - 1))
                    splits[at] = bad.choice([-2**62, 2**62, 0, len(ids)])
                    ids[at] = bad.choice([-1, 1000, 2**62])
                    time.sleep(0)
                    splits[at], ids[at] = good_splits[at], good_ids[at]
                return
            out = numpy.zeros((samples, 64), numpy.float32)
            for small in [0] * 40 + [1] * 400:
                n = 100 if small else samples
                bags = embeng.Ragged(ids[:2 * n], splits=splits[:n + 1])
                try:
                    engine.lookup({"f": bags}, out={"f": out[:n]})
                    engine.update({"f": embeng.Ragged(ids[:200], splits=splits[:101])}, {"f": None})
                    seen["done"] += 1
                except (embeng.EmbengError, RuntimeError) as error:
                    assert "feature f" in str(error) or "changed" in str(error)
                    seen["refused"] += 1
            stop.set()

        assert not _together(3, act)
        assert seen["done"] + seen["refused"] == 440 and seen["refused"] > 0
        bags = embeng.Ragged(good_ids[:10], splits=good_splits[:6])
        rows = engine["t"].read(good_ids[:10])
        numpy.testing.assert_allclose(engine.lookup({"f": bags})["f"], rows[::2] + rows[1::2],
                                      rtol=1e-5)

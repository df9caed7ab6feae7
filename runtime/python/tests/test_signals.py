# SPDX-License-Identifier: MIT
"""Ctrl-C is answered within 200 ms in everything that can take long.

Each case is a program that is interrupted while it is in a call. Between the signal and the
exception it may take 200 ms, and on a machine that is busy with other work some of that is waiting
for a processor: the least of three attempts counts.
"""
import signal
import textwrap
import time
from pathlib import Path

import pytest
from support import start_python

START = """
import io, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored behind a shell
import numpy as np
import embeng
from embeng import Engine, Feature, Table
sgd = embeng.optimizers.sgd(0.5)
zeros = embeng.initializers.constant(0)
def small(**options):
    return Engine([Table("t", 10, 4, "sum", sgd)], [Feature("f", "t")], cores=1, **options)
def large(rows=1_000_000):
    return Engine([Table("t", rows, 64, "sum", sgd, zeros)], [Feature("f", "t")], cores=1)
"""

END = """
print("ready", flush=True)
try:
    while True:
        act()
        if not repeat:
            break
except KeyboardInterrupt:
    print("at", time.monotonic(), flush=True)
print("ended", flush=True)
check()
"""

CASES = {
    "dequeue": """
        other = small(replicas=2); other.enqueue({"f": [1]}); other.dequeue()
        other.enqueue({"f": [1]}); other.apply_gradients({"f": None})
        act = other.dequeue; repeat = False
        check = lambda: other.counters()""",
    "dequeue_with_timeout": """
        other = small(replicas=2); other.enqueue({"f": [1]}); other.dequeue()
        other.enqueue({"f": [1]}); other.apply_gradients({"f": None})
        act = lambda: other.dequeue(timeout=60); repeat = False
        check = lambda: other.counters()""",
    "enqueue": """
        other = small(replicas=2)
        act = lambda: other.enqueue({"f": [1]}); repeat = True
        check = lambda: other.counters()""",
    "update": """
        other = small(replicas=2)
        act = lambda: other.update({"f": [1]}, {"f": None}); repeat = True
        check = lambda: other.counters()""",
    "flush": """
        engine = large(3000); gradient = np.ones((100000, 64), np.float32)
        ids = np.zeros(100000, int)
        def act():
            engine.update({"f": ids}, {"f": gradient}); engine.flush()
        repeat = True
        check = lambda: engine["t"][0]""",
    "lookup": """
        engine = large(); rng = np.random.default_rng(0)
        ids = rng.integers(0, 1_000_000, 5_000_000)
        act = lambda: engine.lookup({"f": ids}); repeat = True
        check = lambda: engine.lookup({"f": [1]})""",
    "lookup_keyed": """
        engine = large(); rng = np.random.default_rng(0)
        keyed = embeng.Keyed(("f",), rng.integers(0, 1_000_000, 5_000_000))
        act = lambda: engine.lookup(keyed); repeat = True
        check = lambda: engine.lookup({"f": [1]})""",
    "lookup_sparse": """
        engine = large(); rng = np.random.default_rng(0)
        places = np.stack([np.arange(3_000_000) // 2, np.arange(3_000_000) % 2], axis=1)
        sparse = embeng.Sparse(places, rng.integers(0, 1_000_000, 3_000_000), [1_500_000, 2])
        act = lambda: engine.lookup({"f": sparse}); repeat = True
        check = lambda: engine.lookup({"f": [1]})""",
    "first_large_update": """
        engine = large(); rng = np.random.default_rng(0)
        ids = rng.integers(0, 1_000_000, 5_000_000)
        gradient = np.ones((5_000_000, 64), np.float32)
        act = lambda: engine.update({"f": ids}, {"f": gradient}); repeat = False
        check = lambda: (engine.update({"f": [1]}, {"f": [[1] * 64]}), engine["t"][1])""",
    "large_updates": """
        engine = large(); rng = np.random.default_rng(0)
        ids = rng.integers(0, 1_000_000, 2_000_000)
        gradient = np.ones((2_000_000, 64), np.float32)
        act = lambda: engine.update({"f": ids}, {"f": gradient}); act(); repeat = True
        check = lambda: (engine.update({"f": [1]}, {"f": [[1] * 64]}), engine["t"][1])""",
    "gradient_norm": """
        engine = large(); rng = np.random.default_rng(0)
        ids = rng.integers(0, 1_000_000, 3_000_000)
        gradient = np.ones((3_000_000, 64), np.float32)
        act = lambda: engine.gradient_norm({"f": ids}, {"f": gradient}); repeat = True
        check = lambda: engine.gradient_norm({"f": [1]}, {"f": [[1] * 64]})""",
    "norm_of_one_row": """
        engine = large()
        ids = np.zeros(3_000_000, int)
        gradient = np.ones((3_000_000, 64), np.float32)
        act = lambda: engine.gradient_norm({"f": ids}, {"f": gradient}); repeat = True
        check = lambda: engine.gradient_norm({"f": [1]}, {"f": [[1] * 64]})""",
    "weight_gradients_of_one_bag": """
        engine = large(); rng = np.random.default_rng(0)
        ids = rng.integers(0, 1_000_000, 5_000_000)
        bags = embeng.Ragged(ids, splits=[0, 5_000_000], weights=np.ones(5_000_000, np.float32))
        gradient = np.ones((1, 64), np.float32)
        act = lambda: engine.weight_gradients({"f": bags}, {"f": gradient}, {"f": None})
        repeat = True
        check = lambda: engine["t"][1]""",
    "weight_gradients": """
        engine = large(); rng = np.random.default_rng(0)
        ids = rng.integers(0, 1_000_000, 3_000_000)
        bags = embeng.Ragged(ids, splits=np.arange(3_000_001),
                             weights=np.ones(3_000_000, np.float32))
        gradient = np.ones((3_000_000, 64), np.float32)
        act = lambda: engine.weight_gradients({"f": bags}, {"f": gradient}, {"f": None})
        repeat = True
        check = lambda: engine["t"][1]""",
    "rows_read": """
        engine = large(); out = np.empty((1_000_000, 64), np.float32); out[:] = 1
        act = lambda: engine["t"].read(out=out); repeat = True
        check = lambda: engine["t"][1]""",
    "rows_write": """
        engine = large(); rows = np.ones((1_000_000, 64), np.float32)
        act = lambda: engine["t"].write(rows); repeat = True
        check = lambda: engine["t"][1]""",
    "rows_fill": """
        engine = large()
        act = lambda: engine["t"].fill(embeng.initializers.truncated_normal()); repeat = True
        check = lambda: engine["t"][1]""",
    "save": """
        engine = large()
        class Sink:
            def write(self, data): return len(data)
        act = lambda: engine.save(Sink(), progress=False); repeat = True
        check = lambda: engine["t"][1]""",
    "save_folder": """
        engine = large()
        act = lambda: engine.save(sys.argv[1] + "/saved", progress=False); repeat = True
        check = lambda: engine["t"][1]""",
    "restore": """
        engine = large(); engine.save(sys.argv[1] + "/saved", progress=False)
        act = lambda: engine.restore(sys.argv[1] + "/saved", progress=False); repeat = True
        check = lambda: engine["t"][1]""",
    "restore_stream": """
        engine = large(); stream = io.BytesIO(); engine.save(stream, progress=False)
        def act():
            stream.seek(0); engine.restore(stream, progress=False)
        repeat = True
        check = lambda: engine["t"][1]""",
}


def _interrupt(name: str, folder: str) -> float:
    child = start_python(START + textwrap.dedent(CASES[name]) + END, folder)
    assert child.stdout
    try:
        assert child.stdout.readline() == "ready\n", child.communicate()[1]
        time.sleep(0.2)
        sent = time.monotonic()
        child.send_signal(signal.SIGINT)
        word, answered = child.stdout.readline().split()
        assert word == "at"
        rest = child.stdout.read()
        assert (child.wait(30), rest) == (0, "ended\n")
    finally:
        child.kill()
    return float(answered) - sent


@pytest.mark.parametrize("name", CASES)
def test_interrupt(name: str, tmp_path: Path) -> None:
    times = []
    for _ in range(3):
        times.append(_interrupt(name, str(tmp_path)))
        if times[-1] < 0.2:
            break
    print(name, times)
    assert min(times) < 0.2


HANDLER = START + """
import signal
engine = large(); said = []
ids = np.random.default_rng(0).integers(0, 1_000_000, 3_000_000)
gradient = np.ones((3_000_000, 64), np.float32)
def handle(*unused):
    try:
        engine.lookup({"f": [1]})
    except embeng.BusyError as error:
        said.append(str(error))
signal.signal(signal.SIGALRM, handle)
signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
while not said:
    engine.update({"f": ids}, {"f": gradient})
signal.setitimer(signal.ITIMER_REAL, 0)
assert "another call of the same engine runs" in said[0], said
expected = -0.5 * engine.step * np.bincount(ids, minlength=1_000_000)
assert (engine["t"].read() == expected[:, None]).all()
print("ended", flush=True)
"""


def test_handler_that_uses_the_engine() -> None:
    """A handler that runs in the middle of an update is refused, and the update goes on."""
    child = start_python(HANDLER)
    said, error = child.communicate(timeout=300)
    assert (said, child.returncode) == ("ended\n", 0), error

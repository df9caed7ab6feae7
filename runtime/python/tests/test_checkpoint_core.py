# SPDX-License-Identifier: MIT
"""Saving and restoring by paths and by file objects, with progress, and what is refused."""
import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest
from support import make_engine

import embeng
from embeng import Engine, Table


def _train(engine: Engine) -> Any:
    engine.update({"f": [1, 2]}, {"f": numpy.ones((2, 4))})
    return engine["t"].read()


@pytest.mark.parametrize("name", ["plain", "with spaces", "ünïcode", "a/../b", "bytes",
                                  "surrogate\udcff", "path"])
def test_folders(engine: Engine, tmp_path: Path, name: str) -> None:
    (tmp_path / "a").mkdir()
    folder: Any = os.path.join(tmp_path, name)
    if name == "bytes":
        folder = os.fsencode(folder)
    if name == "path":
        folder = Path(folder)
    trained = _train(engine)
    report = engine.save(folder, program_state="mine")
    assert (report["rows"], report["delta"]) == (10, 0)
    assert os.path.isdir(folder)
    engine["t"].fill(embeng.initializers.constant(0))
    report = engine.restore(folder)
    assert (report["tables"], report["rows"]) == (1, 10)
    assert engine["t"].read().tobytes() == trained.tobytes()
    assert engine.step == 1
    made = embeng._core.Checkpoint(folder)
    assert made.describe()["program_state"] == "mine"
    made.verify(None)
    out = numpy.zeros((10, 4), numpy.float32)
    assert made.read("t", out) is out
    assert out.tobytes() == trained.tobytes()


def test_delta_and_keep(engine: Engine, tmp_path: Path) -> None:
    first = engine["t"].read()
    engine.save(tmp_path / "c", keep=3)
    trained = _train(engine)
    report = engine.save(tmp_path / "c", delta=True, keep=3)
    assert (report["delta"], report["rows"]) == (1, 2)
    engine.restore(tmp_path / "c", step=0)
    assert engine["t"].read().tobytes() == first.tobytes()
    engine.restore(tmp_path / "c")
    assert engine["t"].read().tobytes() == trained.tobytes()
    earlier = embeng._core.Checkpoint(tmp_path / "c", back=1)
    assert earlier.describe()["step"] == 0
    with pytest.raises(embeng.CheckpointError):
        engine.restore(tmp_path / "c", step=77)


def test_names_and_missing_tables(tmp_path: Path) -> None:
    with make_engine() as engine:
        rows = _train(engine)
        engine.save(tmp_path / "c")
    with Engine([Table("new", 10, 4), Table("other", 3, 2)], cores=1) as engine:
        with pytest.raises(embeng.UnknownNameError, match="new"):
            engine.restore(tmp_path / "c")
        with pytest.raises(embeng.UnknownNameError, match="no table x"):
            engine.restore(tmp_path / "c", names={"new": "x", "other": None})
        with pytest.raises(embeng.EmbengError):
            engine.restore(tmp_path / "c", names={"x": "t"})
        assert engine.step == 0
        before = engine["other"].read()
        engine.restore(tmp_path / "c", names={"new": "t", "other": None}, missing_slots=True,
                       other_optimizer=True)
        assert engine["new"].read().tobytes() == rows.tobytes()
        assert engine["other"].read().tobytes() == before.tobytes()


def test_refused(engine: Engine, tmp_path: Path) -> None:
    before = engine["t"].read()
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "index.json").write_text("{")
    acts: list[tuple[Callable[[], Any], type[Exception], str]] = [
        (lambda: engine.restore(tmp_path / "none"), FileNotFoundError, "index.json: cannot be"),
        (lambda: engine.restore(tmp_path / "empty"), embeng.CheckpointNotFoundError, "index.json"),
        (lambda: engine.restore(tmp_path / "file"), OSError, "Not a directory"),
        (lambda: engine.restore(tmp_path / "broken"), embeng.CheckpointError, "index.json"),
        (lambda: embeng._core.Checkpoint(tmp_path / "none"), FileNotFoundError, "none"),
        (lambda: embeng._core.Checkpoint(tmp_path / "none", back=-1), ValueError, "back is -1"),
        (lambda: embeng._core.Checkpoint(tmp_path, step=-1), ValueError, "step is -1"),
        (lambda: engine.save(tmp_path / "file" / "x"), OSError, "Not a directory"),
        (lambda: engine.save("a\0b"), ValueError, "null"),
        (lambda: engine.save(None), TypeError, "PathLike"),
        (lambda: engine.save(3), TypeError, "PathLike"),
        (lambda: engine.save(tmp_path, keep=-1), ValueError, "keep is -1"),
        (lambda: engine.save(tmp_path, shard_bytes="x"), TypeError, "shard_bytes: 'x'"),
        (lambda: engine.save(tmp_path, program_state="\0"), ValueError, "null"),
        (lambda: engine.restore(tmp_path, step=-1), ValueError, "step is -1"),
        (lambda: engine.restore(tmp_path, names={1: "a"}), TypeError, "names: 1 is no name"),
        (lambda: engine.restore(tmp_path, names={"t\0": "a"}), ValueError, "names: 't"),
        (lambda: engine.restore(io.BytesIO(b"")), embeng.EmbengError, ""),
        (lambda: engine.restore(io.BytesIO(b"x" * 5000)), embeng.EmbengError, ""),
    ]
    for number, (act, kind, words) in enumerate(acts):
        with pytest.raises(kind) as caught:
            act()
        assert words in str(caught.value), number
    assert engine["t"].read().tobytes() == before.tobytes()
    assert engine.step == 0


# -- file objects ------------------------------------------------------------------------


class Slow(io.RawIOBase):
    """A file that moves a few bytes at a time, and keeps what it was given."""

    def __init__(self, content: bytes = b"", most: int = 777):
        self.held = io.BytesIO(content)
        self.most = most
        self.kept: list[Any] = []

    def write(self, data: Any) -> int:
        self.kept.append(data)
        return self.held.write(bytes(data)[:self.most])

    def readinto(self, buffer: Any) -> int:
        self.kept.append(buffer)
        return self.held.readinto(memoryview(buffer)[:self.most])


def test_slow_files(engine: Engine) -> None:
    trained = _train(engine)
    file = Slow()
    engine.save(file)
    content = file.held.getvalue()
    engine["t"].fill(embeng.initializers.constant(0))
    source = Slow(content)
    engine.restore(source)
    assert engine["t"].read().tobytes() == trained.tobytes()
    engine.close()
    assert sum(len(bytes(kept)) for kept in file.kept) >= len(content)
    for kept in source.kept:
        memoryview(kept)[0:1].tolist()  # memory that is still there
    made = embeng._core.Checkpoint(Slow(content))
    out = numpy.zeros((10, 4), numpy.float32)
    made.read("t", out)
    assert out.tobytes() == trained.tobytes()


class Faulty:
    """A file whose methods answer what they should not."""

    def __init__(self, answer: Any):
        self.answer = answer

    def _do(self, data: Any) -> Any:
        if isinstance(self.answer, BaseException):
            raise self.answer
        if callable(self.answer):
            return self.answer(data)
        return self.answer

    write = readinto = _do


@pytest.mark.parametrize(("answer", "kind", "words"), [
    (10**9, OSError, "the file moved 1000000000 of"), (-1, OSError, "moved -1"),
    ("x", TypeError, "integer"), (1.5, TypeError, "integer"), (2**70, OverflowError, "int"),
    (OSError("disk full"), OSError, "disk full"), (KeyboardInterrupt("now"), KeyboardInterrupt,
                                                   "now"),
    (lambda data: 1 / 0, ZeroDivisionError, "division")])
def test_faulty_files(engine: Engine, answer: Any, kind: type[BaseException], words: str) -> None:
    trained = _train(engine)
    with pytest.raises(kind, match=words):
        engine.save(Faulty(answer))
    with pytest.raises(kind, match=words):
        engine.restore(Faulty(answer))
    with pytest.raises(kind, match=words):
        embeng._core.Checkpoint(Faulty(answer))
    assert engine["t"].read().tobytes() == trained.tobytes()


def test_files_that_change_what_they_fill(engine: Engine) -> None:
    def shrink(data: Any) -> int:
        count = len(data)
        data.clear()
        return count

    with pytest.raises(OSError, match="resized"):
        engine.restore(Faulty(shrink))
    with pytest.raises(BlockingIOError, match="no bytes yet"):
        engine.restore(Faulty(None))
    engine.save(Faulty(None))
    with pytest.raises(embeng.EmbengError):
        engine.restore(Faulty(0))


def test_two_checkpoints_in_one_file(engine: Engine) -> None:
    first = engine["t"].read()
    file = io.BytesIO()
    engine.save(file)
    file.write(b"between")
    trained = _train(engine)
    engine.save(file)
    file.seek(0)
    engine.restore(file)
    assert engine["t"].read().tobytes() == first.tobytes()
    assert file.read(7) == b"between"
    engine.restore(file)
    assert engine["t"].read().tobytes() == trained.tobytes()


# -- progress ----------------------------------------------------------------------------


def test_progress(engine: Engine, tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    engine.save(tmp_path / "c", progress=lambda *said: told.append(said))
    engine.restore(tmp_path / "c", progress=lambda *said: told.append(said))
    assert told and all(0 <= done <= max(total, done) for _, done, total in told)
    assert all(isinstance(what, str) and what for what, _, _ in told)


def test_progress_that_raises(engine: Engine, tmp_path: Path) -> None:
    def fail(*said: object) -> None:
        raise ZeroDivisionError("in progress")

    before = _train(engine)
    with pytest.raises(ZeroDivisionError, match="in progress"):
        engine.save(tmp_path / "c", progress=fail)
    with pytest.raises(FileNotFoundError):
        engine.restore(tmp_path / "c")
    engine.save(tmp_path / "c")
    with pytest.raises(ZeroDivisionError, match="in progress"):
        engine.restore(tmp_path / "c", progress=fail)
    assert engine["t"].read().tobytes() == before.tobytes()
    with pytest.raises(TypeError):
        engine.save(tmp_path / "c", progress=lambda: None)


def test_progress_that_closes(tmp_path: Path) -> None:
    engine = make_engine()
    before = engine["t"].read()
    engine.save(tmp_path / "c", progress=lambda *said: engine.close())
    assert engine.closed
    with make_engine() as other:
        other["t"].fill(embeng.initializers.constant(0))
        other.restore(tmp_path / "c")
        assert other["t"].read().tobytes() == before.tobytes()


@pytest.mark.parametrize("verb", ["save", "restore"])
def test_progress_may_not_use_the_engine(tmp_path: Path, verb: str) -> None:
    """Such a call would wait for the work that waits for the function: it is refused."""
    with make_engine() as engine, make_engine() as other:
        engine.save(tmp_path / "c")
        rows = other["t"].read()
        said: list[str] = []

        def tell(*unused: object) -> None:
            for act in (lambda: engine["t"].read(), lambda: engine.step, engine.flush,
                        lambda: engine.lookup({"f": [1]}), lambda: engine.save(tmp_path / "d"),
                        lambda: engine.restore(tmp_path / "c")):
                with pytest.raises(embeng.BusyError,
                                   match="another call of the same engine runs") as caught:
                    act()
                said.append(str(caught.value))
            assert other["t"].read().tobytes() == rows.tobytes()
            other.save(tmp_path / "o", progress=lambda *unused: said.append(str(other.closed)))

        getattr(engine, verb)(tmp_path / "c", progress=tell)
        assert len(said) >= 7
        assert engine.lookup({"f": [1]})["f"].tobytes() == engine["t"][1:2].tobytes()


def test_not_finite(tmp_path: Path) -> None:
    with make_engine(non_finite="allow") as engine:
        engine["t"][3] = numpy.nan
        with pytest.raises(embeng.EmbengError, match="nan"):
            engine.save(tmp_path / "c")
        engine.save(tmp_path / "c", not_finite=True)
        engine["t"][3] = 0
        assert engine.restore(tmp_path / "c")["not_finite"] > 0
        assert numpy.isnan(engine["t"][3]).all()


class Counting(io.BytesIO):
    """A file that raises in one of its calls."""

    def __init__(self, content: bytes = b"", fail_at: int = 0):
        super().__init__(content)
        self.calls = 0
        self.fail_at = fail_at

    def _count(self) -> None:
        self.calls += 1
        if self.calls == self.fail_at:
            raise ZeroDivisionError(f"call {self.calls}")

    def write(self, data: Any) -> int:
        self._count()
        return super().write(data)

    def readinto(self, buffer: Any) -> int:
        self._count()
        return super().readinto(buffer)


def test_each_call_may_raise(engine: Engine, tmp_path: Path) -> None:
    """An exception in any call of a file or of a progress function ends the work with it."""
    _train(engine)
    file = Counting()
    engine.save(file)
    content, reader = file.getvalue(), Counting(file.getvalue())
    engine.restore(reader)
    engine.save(tmp_path / "c")
    engine.update({"f": [1]}, {"f": numpy.ones((1, 4))})
    now = engine["t"].read()
    told: list[Any] = []
    acts: list[tuple[int, Callable[[int], Any]]] = [
        (file.calls, lambda at: engine.save(Counting(fail_at=at))),
        (reader.calls, lambda at: engine.restore(Counting(content, at))),
        (reader.calls, lambda at: embeng._core.Checkpoint(Counting(content, at)))]

    def fail_at(at: int) -> Callable[..., None]:
        calls = iter(range(1, 1000))

        def tell(*said: object) -> None:
            told.append(said)
            if next(calls) == at:
                raise ZeroDivisionError(f"call {at}")
        return tell

    with_progress: list[Callable[[Any], Any]] = [
        lambda tell: engine.save(tmp_path / "d", progress=tell),
        lambda tell: engine.save(io.BytesIO(), progress=tell),
        lambda tell: engine.restore(tmp_path / "c", progress=tell),
        lambda tell: engine.restore(io.BytesIO(content), progress=tell),
        lambda tell: embeng._core.Checkpoint(tmp_path / "c").verify(tell)]
    with make_engine() as other:
        for act in with_progress[:2] + with_progress[4:]:
            told.clear()
            act(fail_at(0))
            acts.append((len(told), lambda at, act=act: act(fail_at(at))))
        for act in with_progress[2:4]:
            acts.append((2, lambda at, act=act: act(fail_at(at))))
        for count, failing in acts:
            assert count >= 2
            for at in range(1, count + 1):
                with pytest.raises(ZeroDivisionError, match=f"call {at}$"):
                    failing(at)
        assert engine["t"].read().tobytes() == now.tobytes()
        other.restore(io.BytesIO(content))
        assert other["t"].read().tobytes() != now.tobytes()

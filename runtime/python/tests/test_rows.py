# SPDX-License-Identifier: MIT
"""Rows of tables and slots: read, written, filled and mapped, by numbers, slices and masks."""
from collections.abc import Iterator
from typing import Any

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import embeng
from embeng import Engine, Table, TableView


@pytest.fixture
def view() -> Iterator[TableView]:
    """Give a table of 6 rows of 3, whose slot has one number a row, in an engine."""
    table = Table("t", 6, 3, "sum", embeng.optimizers.rowwise_adagrad(0.5),
                  embeng.initializers.uniform(-1, 1, seed=3))
    with Engine([table], cores=1) as engine:
        yield engine["t"]


KEYS = st.one_of(
    st.integers(-6, 5),
    st.slices(6),
    st.lists(st.integers(-6, 5), max_size=8),
    st.lists(st.booleans(), min_size=6, max_size=6).map(numpy.array),
    st.lists(st.lists(st.integers(-6, 5), min_size=2, max_size=2), min_size=1, max_size=3))


@settings(max_examples=80)
@given(KEYS, st.sampled_from([numpy.int64, numpy.int32, list]))
def test_keys_are_those_of_numpy(view: TableView, key: Any, kind: Any) -> None:
    if isinstance(key, list) and kind is not list:
        key = numpy.array(key, kind)
    rows = view.read()
    index = key if not isinstance(key, list) else numpy.array(key, int)
    assert view[key].shape == rows[index].shape
    assert view[key].tobytes() == rows[index].tobytes()
    values = numpy.arange(rows[index].size, dtype=numpy.float32).reshape(rows[index].shape)
    view[key] = values
    rows[index] = values
    assert view.read().tobytes() == rows.tobytes()


def test_what_a_view_is(view: TableView) -> None:
    assert (view.name, view.shape, len(view), view.dtype) == ("t", (6, 3), 6, numpy.float32)
    assert view.slots == ("accumulators",)
    assert view.read(slot="accumulators").shape == (6, 1)
    assert numpy.asarray(view).tobytes() == view.read().tobytes()
    assert numpy.asarray(view, numpy.float64).dtype == numpy.float64
    with pytest.raises(ValueError, match="memory itself"):
        numpy.asarray(view, copy=False)
    view[[0, 1]] = 7
    view[2] = [1, 2, 3]
    assert view.read([0, 1, 2]).tolist() == [[7] * 3, [7] * 3, [1, 2, 3]]


BAD_KEYS: dict[str, tuple[Any, type[Exception], str]] = {
    "beyond": (6, embeng.OutOfRangeError, "table t: row 6 at place 0; it has rows 0 to 5"),
    "below": (-7, embeng.OutOfRangeError, "table t: row -7 at place 0"),
    "float": (1.5, TypeError, "rows: ids of float64"),
    "None": (None, TypeError, "table t: None is no row"),
    "tuple": ((1, 2), TypeError, r"table t: \(1, 2\) is no row"),
    "mask": (numpy.ones(5, bool), IndexError, r"mask has the shape \(5,\), for 6 rows"),
    "mask of 2": (numpy.ones((6, 1), bool), IndexError, "mask has the shape"),
    "text": ("a", TypeError, "rows: ids of <U1"),
    "Ellipsis": (..., TypeError, "rows: ids of object"),
    "uint64": (numpy.array([2**63], numpy.uint64), embeng.OutOfRangeError, "does not fit int64"),
}


@pytest.mark.parametrize("name", BAD_KEYS)
def test_keys_refused(view: TableView, name: str) -> None:
    key, kind, words = BAD_KEYS[name]
    before = view.read()
    with pytest.raises(kind, match=words):
        view[key]
    with pytest.raises(kind, match=words):
        view[key] = 1.0
    assert view.read().tobytes() == before.tobytes()


def test_reading_refused(view: TableView) -> None:
    engine = view._engine
    for act, kind, words in [
            (lambda: view.read(slot="x"), embeng.UnknownNameError, "no slot 'x'; it has accum"),
            (lambda: view.read(out=numpy.zeros((5, 3), numpy.float32)), ValueError, "shape"),
            (lambda: view.read(out=numpy.zeros((6, 3))), TypeError, "writable float32"),
            (lambda: view.read(out=numpy.zeros((6, 4), numpy.float32)[:, :3]), ValueError,
             "rows follow each other"),
            (lambda: engine.rows_read("x", numpy.zeros((6, 3), numpy.float32)),
             embeng.UnknownNameError, "no table 'x'"),
            (lambda: engine.rows_read("t", numpy.zeros(7, numpy.float32)), ValueError, "7 numbers"),
            (lambda: engine.rows_read("t", numpy.zeros((3, 6), numpy.float32)), ValueError, "18"),
            (lambda: engine.rows_read("t", numpy.zeros((6, 3), numpy.float32), first=1),
             embeng.OutOfRangeError, "6 rows from 1 on are asked for; it has rows 0 to 5"),
            (lambda: engine.rows_read("t", numpy.zeros((6, 3), numpy.float32), first=2**63 - 1),
             embeng.OutOfRangeError, "from 9223372036854775807 on"),
            (lambda: engine.rows_read("t", numpy.zeros((6, 3), numpy.float32), None, "x\0"),
             ValueError, "slot: 'x.x00' is no name"),
            (lambda: engine["x"], embeng.UnknownNameError, "no table 'x'; the tables are t"),
            (lambda: engine.stats("x"), embeng.UnknownNameError, "no table 'x'"),
            (lambda: engine.freeze("x"), embeng.UnknownNameError, "no table 'x'"),
            (lambda: engine.stats([]), TypeError, "unhashable")]:
        with pytest.raises(kind, match=words):
            act()


def test_writing_refused(view: TableView) -> None:
    before, slots = view.read(), view.read(slot="accumulators")
    for values, options, kind, words in [
            (numpy.zeros((2, 4)), {}, ValueError, "8 numbers, for rows of 3"),
            (numpy.zeros((3, 2)), {}, ValueError, "6 numbers, for rows of 3"),
            (numpy.zeros((2, 3)), {"rows": [1]}, ValueError, "1 row numbers, for 2 rows"),
            (numpy.zeros((2, 3)), {"rows": [1, 6]}, embeng.OutOfRangeError, "row 6 at place 1"),
            (numpy.zeros((7, 3)), {}, embeng.OutOfRangeError, "7 rows from 0 on"),
            (numpy.full((1, 3), numpy.nan), {"rows": [4]}, embeng.OutOfRangeError, "row 4, column"),
            ([[1j] * 3], {}, TypeError, "values: numbers of complex128"),
            ([[True] * 3], {}, TypeError, "values: numbers of bool"),
            ("abc", {}, TypeError, "values: numbers of <U3"),
            (numpy.full((2, 1), -1.0), {"slot": "accumulators"}, embeng.OutOfRangeError,
             "accumulators, row 0"),
            (numpy.zeros((2, 3)), {"slot": "x"}, embeng.EmbengError, "x")]:
        with pytest.raises(kind, match=words):
            view.write(values, **options)
        assert view.read().tobytes() == before.tobytes()
        assert view.read(slot="accumulators").tobytes() == slots.tobytes()


def test_large_writes_are_checked_first() -> None:
    """A number that is refused in the last of several pieces: no row of the others is written."""
    with Engine([Table("t", 200_000, 64, optimizer=embeng.optimizers.adagrad(),
                       initializer=embeng.initializers.constant(0))], cores=1) as engine:
        view = engine["t"]
        values = numpy.ones((200_000, 64), numpy.float32)
        values[-1, -1] = numpy.inf
        with pytest.raises(embeng.OutOfRangeError, match="row 199999, column 63: inf"):
            view.write(values)
        assert not view.read().any()
        values[-1, -1] = -1
        with pytest.raises(embeng.OutOfRangeError, match="row 199999, column 63: -1"):
            view.write(values, slot="accumulators")
        assert numpy.unique(view.read(slot="accumulators")).tolist() == [numpy.float32(0.1)]
        view.write(values)
        assert view.read().tobytes() == values.tobytes()
        backwards = numpy.arange(199_999, -1, -1)
        view.write(values, backwards.astype(numpy.int32))
        assert view.read().tobytes() == values[::-1].tobytes()
        assert view.read(backwards).tobytes() == values.tobytes()


def test_the_last_of_equal_rows_stays(view: TableView) -> None:
    view.write([[1, 1, 1], [2, 2, 2], [3, 3, 3]], [4, 4, 4])
    assert view[4].tolist() == [3, 3, 3]


def test_fill(view: TableView) -> None:
    view.fill(embeng.initializers.constant(2), first=1, count=2)
    view.fill(embeng.initializers.constant(9), slot="accumulators")
    assert view.read()[1:3].tolist() == [[2] * 3] * 2
    assert (view.read()[[0, 3]] != 2).all()
    assert view.read(slot="accumulators").tolist() == [[9]] * 6
    for options, kind, words in [({"first": 3, "count": 9}, embeng.OutOfRangeError, "9 rows from"),
                                 ({"first": -1}, embeng.OutOfRangeError, "rows from -1 on"),
                                 ({"slot": "x"}, embeng.EmbengError, "x")]:
        with pytest.raises(kind, match=words):
            view.fill(embeng.initializers.constant(1), **options)
    with pytest.raises(embeng.OutOfRangeError, match="initializer a nan must be finite"):
        view.fill(embeng.initializers.constant(numpy.nan))
    with pytest.raises(ValueError, match="the words are default, constant, uniform, truncated"):
        view.fill(embeng.initializers.Initializer("gauss"))


def test_initializers_depend_on_seed_and_row_alone() -> None:
    def read(rows: int, cores: int, seed: int) -> Any:
        initializer = embeng.initializers.truncated_normal(1.0, 0.5, seed)
        with Engine([Table("t", rows, 5, initializer=initializer)], cores=cores) as engine:
            return engine["t"].read()

    one = read(100, 1, 7)
    assert one.tobytes() == read(1000, 2, 7)[:100].tobytes()
    assert one.tobytes() != read(100, 1, 8).tobytes()
    assert abs(one.mean() - 1) < 0.1 and (abs(one - 1) <= 1.0).all()


def test_parts_start_as_the_whole() -> None:
    part = embeng.Part(6, first_row=1, row_step=2, dim=7, first_column=3)
    with Engine([Table("t", 6, 7)]) as whole, Engine([Table("t", 3, 2, part=part)]) as engine:
        assert engine["t"].read().tobytes() == whole["t"].read()[1::2, 3:5].tobytes()
        for one in (whole["t"], engine["t"]):
            one.fill(embeng.initializers.uniform(2, 3))
        assert engine["t"].read().tobytes() == whole["t"].read()[1::2, 3:5].tobytes()
        assert engine.tables[0].part == part


def test_frozen_and_stats(view: TableView) -> None:
    engine = view._engine
    before = view.read()
    view.frozen = True
    assert view.frozen
    engine.update({"t": [1, 1]}, {"t": numpy.ones((2, 3))})
    assert view.read().tobytes() == before.tobytes()
    view.frozen = False
    engine.update({"t": [1, 1]}, {"t": numpy.ones((2, 3))})
    assert (view.read()[1] != before[1]).all()
    stats = view.stats(clear=True)  # training batches alone
    assert (stats["ids"], stats["unique_ids"], stats["steps"]) == (4, 2, 2)
    assert stats["hot"] == [(1, 4)]
    assert view.stats()["ids"] == 0

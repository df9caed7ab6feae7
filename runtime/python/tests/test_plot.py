# SPDX-License-Identifier: MIT
"""embeng.plot: the numbers that the Axes hold are those of the engine."""
import sys

import numpy as np
import pytest

import embeng
from embeng import plot

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    from matplotlib import pyplot
    pyplot.close("all")


@pytest.fixture
def axes():
    from matplotlib.figure import Figure
    return Figure().add_subplot()


@pytest.fixture
def engine():
    tables = [embeng.Table("a", 1000, 8, optimizer=embeng.optimizers.adam(0.1)),
              embeng.Table("b", 50, 4, optimizer=embeng.optimizers.rowwise_adagrad(0.1))]
    with embeng.Engine(tables) as opened:
        yield opened


def heights(axes):
    return [bar.get_height() for bar in axes.patches]


def labels(ticks):
    return [tick.get_text() for tick in ticks]


def test_time_by_stage(engine, axes):
    before = engine.counters()
    for _ in range(4):
        engine.lookup({"a": np.arange(100)})
    counters = engine.counters()
    assert plot.time(counters, since=before, ax=axes) is axes
    assert labels(axes.get_xticklabels()) == ["copy", "check", "commands", "lookup", "partition",
                                              "update"]
    keys = ("time_copy_ns", "time_check_ns", "time_ring_ns", "time_lookup_ns", "time_partition_ns",
            "time_update_ns")
    assert heights(axes) == pytest.approx([(counters[k] - before[k]) / 4 / 1000 for k in keys])
    assert "mean of 4 steps" in axes.get_title()
    whole = plot.time(engine)
    assert whole is not axes
    assert heights(whole)[3] == pytest.approx(counters["time_lookup_ns"] / 4 / 1000)


def test_time_against_batch_size(axes):
    plot.time({64: [0.004, 0.002, 0.1], 1: 0.001}, ax=axes)
    (line,) = axes.get_lines()
    assert line.get_xdata().tolist() == [1, 64]
    assert line.get_ydata().tolist() == [1, 4]  # medians in milliseconds
    assert (axes.get_xscale(), axes.get_yscale(), axes.get_legend()) == ("log", "log", None)
    both = plot.time({"one": {1: 0.001}, "two": {1: 0.002, 8: 0.003}})
    assert [line.get_ydata().tolist() for line in both.get_lines()] == [[1], [2, 3]]
    assert labels(both.get_legend().get_texts()) == ["one", "two"]


def test_measured_times(engine, axes):
    rows = engine["a"].read()
    before = engine.counters()["lookups"]
    found = plot.measure(engine, (1, 500), ids_per_sample=3, repeat=4)
    assert list(found) == [1, 500] and all(len(times) == 4 for times in found.values())
    assert all(0 < seconds < 60 for times in found.values() for seconds in times)
    assert engine.counters()["lookups"] - before == 2 * 5
    assert np.array_equal(rows, engine["a"].read())
    plot.time(found, ax=axes)
    assert axes.get_lines()[0].get_ydata()[1] == pytest.approx(1e3 * np.median(found[500]))


def test_hot_rows(engine, axes):
    ids = np.repeat([7, 3, 900, 5], [5, 9, 2, 1])
    engine.update({"a": ids}, {"a": np.zeros((17, 8), np.float32)})
    assert plot.hot_rows(engine, "a", count=3, ax=axes) is axes
    assert heights(axes) == [9, 5, 2]
    assert labels(axes.get_xticklabels()) == ["3", "7", "900"]
    assert axes.get_title() == "a: 94% of 17 ids"
    assert heights(plot.hot_rows(engine, "a")) == [9, 5, 2, 1]


def test_counts_of_more_rows_than_are_counted(axes):
    table = embeng.Table("t", 5000, 2, optimizer=embeng.optimizers.sgd(0.1))
    with embeng.Engine([table]) as engine:
        for _ in range(3):
            ids = np.append(np.arange(5000), np.full(900, 4321))
            engine.update({"t": ids}, {"t": np.zeros((5900, 2), np.float32)})
        error = engine.stats("t")["hot_error"]
        plot.hot_rows(engine, "t", count=1, ax=axes)
    assert error > 0 and f"at most {error} too low" in axes.get_title()
    assert labels(axes.get_xticklabels()) == ["4321"]
    assert 2703 - error <= heights(axes)[0] <= 2703


def test_memory_of_a_plan(engine, axes):
    plan = embeng.plan(engine.tables, batch_size=8)
    assert plot.memory(plan, ax=axes) is axes
    bars = labels(axes.get_yticklabels())
    assert bars == ["a", "b", "engine", "buffers"]
    drawn = {}
    for container in axes.containers:
        for name, bar in zip(bars, container, strict=True):
            drawn[name, container.get_label()] = bar.get_width()
            before = sum(width for (other, _), width in drawn.items() if other == name)
            assert bar.get_x() + bar.get_width() == pytest.approx(before)
    unit = {"MiB": 2**20, "KiB": 2**10, "GiB": 2**30, "bytes": 1}[axes.get_xlabel()]
    assert drawn["a", "parameters"] * unit == pytest.approx(4 * 1000 * 8)
    assert drawn["a", "velocities"] * unit == pytest.approx(4 * 1000 * 8)
    assert drawn["b", "accumulators"] * unit == pytest.approx(4 * 50)
    assert drawn["b", "velocities"] == 0
    assert sum(drawn.values()) * unit == pytest.approx(sum(i["bytes"] for i in plan["items"]))


def test_memory_of_an_engine(engine, axes):
    plot.memory(engine, ax=axes)
    usage = engine.usage()
    unit = {"MiB": 2**20, "KiB": 2**10, "GiB": 2**30, "bytes": 1}[axes.get_xlabel()]
    widths = {}
    for container in axes.containers:
        for name, bar in zip(("tables", "buffers", "engine"), container, strict=True):
            widths[name] = widths.get(name, 0) + bar.get_width() * unit
    assert widths == pytest.approx({"tables": usage["table_bytes"],
                                    "buffers": usage["buffer_bytes"],
                                    "engine": usage["engine_bytes"]})
    assert usage["table_bytes"] >= 4 * (3 * 1000 * 8 + 50 * 5)


def test_figures_are_drawn(engine, tmp_path):
    engine.update({"a": [1]}, {"a": np.ones((1, 8), np.float32)})
    for axes in (plot.time(engine), plot.hot_rows(engine, "a"), plot.memory(engine)):
        axes.figure.savefig(tmp_path / "x.png")
        assert (tmp_path / "x.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_what_is_refused(engine):
    for call, error, words in (
            (lambda: plot.time(engine), ValueError, "no lookup"),
            (lambda: plot.time({}), ValueError, "empty"),
            (lambda: plot.hot_rows(engine, "a"), ValueError, "no batch of training"),
            (lambda: plot.hot_rows(engine, "x"), KeyError, "x")):
        with pytest.raises(error, match=words):
            call()


def test_without_matplotlib(engine, monkeypatch):
    engine.update({"a": [1]}, {"a": np.ones((1, 8), np.float32)})
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for call in (lambda: plot.time(engine), lambda: plot.hot_rows(engine, "a"),
                 lambda: plot.memory(engine)):
        with pytest.raises(ImportError, match="pip install matplotlib"):
            call()

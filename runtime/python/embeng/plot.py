# SPDX-License-Identifier: MIT
"""Plots of an engine: time, hot rows and memory, drawn with matplotlib.

Each function draws into the Axes that it is given, or into those of a new figure, and returns them.
None of them shows a figure. matplotlib is imported by the first plot.
"""
import time as clock
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ._engine import Engine
from ._formats import invalid

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["hot_rows", "measure", "memory", "time"]

# Counters of embeng_counters() and what plots call them, in the order of a step.
_STAGES = {"time_copy_ns": "copy", "time_check_ns": "check", "time_ring_ns": "commands",
           "time_lookup_ns": "lookup", "time_partition_ns": "partition",
           "time_update_ns": "update"}

_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "bytes"))


def _axes(ax: "Axes | None") -> "Axes":
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ImportError("plots need matplotlib; install it with: "
                          "pip install matplotlib") from None
    return pyplot.figure(layout="constrained").add_subplot()


def measure(engine: Engine, batch_sizes: Iterable[int] = (1, 16, 256, 4096), *,
            ids_per_sample: int = 1, repeat: int = 7, seed: int = 0) -> dict[int, list[float]]:
    """Time lookups of all features, with ids drawn from all rows of their tables.

    Parameters
    ----------
    engine : Engine
        No number of it changes; its counters do.
    batch_sizes : iterable of int
        Samples of a batch, above 0.
    ids_per_sample : int
        Ids of each sample.
    repeat : int
        Times that each batch is looked up, after once that is not timed.
    seed : int
        Seed of the ids.

    Returns
    -------
    dict of int to list of float
        Seconds of each lookup by batch size, for :func:`time`.
    """
    import numpy

    from ._inputs import Ragged

    random = numpy.random.default_rng(seed)
    rows = {table.name: table.vocabulary_size for table in engine.tables}
    found: dict[int, list[float]] = {}
    for size in batch_sizes:
        splits = numpy.arange(size + 1) * ids_per_sample
        batch = {feature.name: Ragged(random.integers(0, rows[feature.table], splits[-1]),
                                      splits=splits) for feature in engine.features}
        engine.lookup(batch)
        found[size] = []
        for _ in range(repeat):
            begin = clock.perf_counter()
            engine.lookup(batch)
            found[size].append(clock.perf_counter() - begin)
    return found


def _plot_stages(ax: "Axes", counters: Mapping[str, int], since: Mapping[str, int]) -> None:
    steps = max(counters[name] - since.get(name, 0) for name in ("lookups", "updates"))
    if steps <= 0:
        raise invalid("counters: no lookup and no update was counted, so that there is no time of "
                      "a step")
    names = list(_STAGES.values())
    spent = [(counters[key] - since.get(key, 0)) / steps / 1e3 for key in _STAGES]
    ax.bar(names, spent)
    ax.set_ylabel("microseconds a step")
    ax.set_title(f"Time by stage, mean of {steps} steps")


def _plot_sizes(ax: "Axes", lines: Mapping[str, Mapping[int, Any]]) -> None:
    import numpy

    for name, times in lines.items():
        sizes = sorted(times)
        spent = [1e3 * float(numpy.median(numpy.asarray(times[size]))) for size in sizes]
        ax.plot(sizes, spent, marker="o", label=name or None)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("samples in a batch")
    ax.set_ylabel("milliseconds, median")
    if any(lines):
        ax.legend()


def time(source: "Engine | Mapping[Any, Any]", *, since: Mapping[str, int] | None = None,
         ax: "Axes | None" = None) -> "Axes":
    """Plot the time of a step: by stage, or against the size of a batch.

    Parameters
    ----------
    source : Engine or mapping
        An engine, or what :meth:`Engine.counters` returned: bars of the mean time of each stage,
        per lookup or update, whichever are more. A mapping from batch sizes to seconds, or to lists
        of seconds, as :func:`measure` returns it: a line of medians. A mapping from names to such
        mappings: a line for each.
    since : mapping of str to int, optional
        Counters of an earlier moment, which are taken off.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into.

    Returns
    -------
    matplotlib.axes.Axes
        Those that were drawn into.

    Raises
    ------
    InvalidError
        Nothing was counted or measured yet.
    ImportError
        matplotlib is not installed.
    """
    found: Mapping[Any, Any] = source.counters() if isinstance(source, Engine) else source
    if not found:
        raise invalid("source: the mapping is empty; give counters, or seconds by batch size")
    axes = _axes(ax)
    if "time_lookup_ns" in found:
        _plot_stages(axes, found, since or {})
    elif isinstance(next(iter(found.values())), Mapping):
        _plot_sizes(axes, found)
    else:
        _plot_sizes(axes, {"": found})
    return axes


def hot_rows(engine: Engine, table: str, *, count: int = 20, ax: "Axes | None" = None) -> "Axes":
    """Plot how often the rows of a table that are used most were in batches of training.

    Parameters
    ----------
    engine : Engine
        The engine counts since its stats were cleared.
    table : str
        The table's name.
    count : int
        Rows that are shown at most.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into.

    Returns
    -------
    matplotlib.axes.Axes
        A bar for each row, the hottest first. Where more rows are used than the engine counts, the
        counts are estimates from below; the title then says by how much they may be too low.

    Raises
    ------
    UnknownNameError
        There is no such table.
    InvalidError
        No batch of training had a row of the table.
    ImportError
        matplotlib is not installed.
    """
    stats = engine.stats(table)
    hot = sorted(stats["hot"], key=lambda pair: -pair[1])[:count]
    if not hot:
        raise invalid(f"table {table}: no batch of training had a row of it since its stats were "
                      "cleared; lookups of inference are not counted")
    axes = _axes(ax)
    axes.bar([str(row) for row, _ in hot], [uses for _, uses in hot])
    axes.tick_params(axis="x", rotation=90)
    axes.set_xlabel("row")
    axes.set_ylabel("ids")
    error = f", at most {stats['hot_error']} too low" if stats["hot_error"] else ""
    share = sum(uses for _, uses in hot) / stats["ids"] if stats["ids"] else 0
    axes.set_title(f"{table}: {min(share, 1):.0%} of {stats['ids']} ids{error}")
    return axes


def _unit(size: float) -> tuple[int, str]:
    return next((unit, name) for unit, name in _UNITS if size >= unit or unit == 1)


def _items(plan: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """Return bytes by part and by what the bar of a table is divided into."""
    bars: dict[str, dict[str, int]] = {}
    for item in plan["items"]:
        if item["table"] is not None:
            bar, part = item["table"], item["slot"] or item["kind"]
        else:
            bar = "engine" if item["kind"] == "engine" else "buffers"
            part = item["kind"]
        parts = bars.setdefault(bar, {})
        parts[part] = parts.get(part, 0) + item["bytes"]
    return bars


def memory(plan: "Engine | Mapping[str, Any]", *, ax: "Axes | None" = None) -> "Axes":
    """Plot the memory of tables, slots and buffers.

    Parameters
    ----------
    plan : mapping or Engine
        The result of :func:`embeng.plan`: a bar for each table, divided into parameters and slots,
        one for buffers and one for the engine itself. An engine: what it holds, without tables told
        apart.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into.

    Returns
    -------
    matplotlib.axes.Axes
        Horizontal bars, the first item on top.

    Raises
    ------
    ImportError
        matplotlib is not installed.
    """
    if isinstance(plan, Engine):
        usage = plan.usage()
        bars = {name: {name: usage[f"{kind}_bytes"]} for name, kind in (
            ("tables", "table"), ("buffers", "buffer"), ("engine", "engine"))}
    else:
        bars = _items(plan)
    axes = _axes(ax)
    total = sum(sum(parts.values()) for parts in bars.values())
    unit, name = _unit(max(sum(parts.values()) for parts in bars.values()))
    parts = list(dict.fromkeys(part for bar in bars.values() for part in bar))
    left = dict.fromkeys(bars, 0.0)
    for part in parts:
        widths = [bar.get(part, 0) / unit for bar in bars.values()]
        axes.barh(list(bars), widths, left=list(left.values()), label=part)
        left = {bar: left[bar] + width for bar, width in zip(bars, widths, strict=True)}
    axes.invert_yaxis()
    axes.set_xlabel(name)
    if len(parts) > len(bars):
        axes.legend()
    size, its_unit = _unit(total)
    axes.set_title(f"Memory: {total / size:.1f} {its_unit}")
    return axes

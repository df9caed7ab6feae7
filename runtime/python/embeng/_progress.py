# SPDX-License-Identifier: MIT
"""Progress of long work: a bar on a terminal, by tqdm where it is installed."""
import sys
import time
from collections.abc import Callable
from typing import Any

Progress = Callable[[str, int, int], None] | bool | None

_LATER = 0.5  # seconds before a bar appears: most work is over by then


class _Line:
    """A bar without tqdm: one line, written again."""

    def __init__(self, what: str, total: int):
        self.what = what
        self.total = total
        self.shown = -1

    def show(self, done: int) -> None:
        percent = 100 * done // self.total if self.total else 0
        if percent != self.shown:
            self.shown = percent
            text = f"{percent:3d} %" if self.total else f"{done >> 20} MiB"
            print(f"\r{self.what}: {text}", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        print(file=sys.stderr)


class _Tqdm:
    def __init__(self, tqdm: Any, what: str, total: int):
        self.bar = tqdm(desc=what, total=total or None, unit="B", unit_scale=True)

    def show(self, done: int) -> None:
        self.bar.update(done - self.bar.n)

    def close(self) -> None:
        self.bar.close()


def _new_bar(what: str, total: int) -> "_Line | _Tqdm":
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return _Line(what, total)
    return _Tqdm(tqdm, what, total)


class Bar:
    """A function that the library tells about progress, and what shows it.

    Parameters
    ----------
    progress : callable, bool or None
        A function of the program's, called with (what, done, total) in bytes; True shows a bar,
        False none, and None shows one when standard error is a terminal.
    """

    def __init__(self, progress: Progress):
        self.call = progress if callable(progress) else None
        self.on = sys.stderr.isatty() if progress is None else bool(progress)
        self.since = time.monotonic() + (_LATER if progress is None else 0)
        self.bar: _Line | _Tqdm | None = None
        self.what = ""

    def __enter__(self) -> Callable[[str, int, int], None] | None:
        return self.call or (self.tell if self.on else None)

    def tell(self, what: str, done: int, total: int) -> None:
        """Show how far the work is."""
        if self.bar and what != self.what:
            self.bar.close()
            self.bar = None
        if not self.bar and time.monotonic() >= self.since:
            self.bar, self.what = _new_bar(what, total), what
        if self.bar:
            self.bar.show(done)

    def __exit__(self, *unused: object) -> None:
        if self.bar:
            self.bar.close()

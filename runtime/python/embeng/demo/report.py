# SPDX-License-Identifier: MIT
"""How the demo shows its work: a line of progress, bars of text, and a figure."""
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from .examples import Score

WIDTH = 40


class Progress:
    """Steps so far: a bar of tqdm on a terminal, where it is installed, or a line now and then."""

    def __init__(self, steps: int):
        self.steps = steps
        self._bar: Any = None
        if sys.stderr.isatty():
            try:
                from tqdm.auto import tqdm
            except ImportError:
                return
            self._bar = tqdm(total=steps, unit="step")

    def tell(self, step: int, loss: float) -> None:
        """Show that `step` steps are done, and the loss since the last time."""
        if self._bar is not None:
            self._bar.update(step - self._bar.n)
            self._bar.set_postfix(loss=f"{loss:.4f}")
        else:
            print(f"step {step:5d} of {self.steps}: loss {loss:.4f}", flush=True)

    def close(self) -> None:
        """End the line."""
        if self._bar is not None:
            self._bar.close()


class Result(NamedTuple):
    """Everything that a figure shows."""

    losses: list[tuple[int, float]]  # by step
    model: Score
    popularity: Score
    hot: list[tuple[str, int]]


def bars(names: Sequence[str], values: Sequence[float], form: str = "{:.3f}") -> str:
    """Return a line of text for each value, with a bar as long as it is large."""
    most = max([*values, 1e-12])
    wide = max(map(len, names))
    return "\n".join(f"  {name:<{wide}} {'#' * round(WIDTH * value / most):<{WIDTH}} "
                     + form.format(value) for name, value in zip(names, values, strict=True))


def text(result: Result) -> str:
    """Return the result as bars of text."""
    losses = result.losses[::max(1, len(result.losses) // 8)]
    pairs = (("DLRM", result.model), ("popularity", result.popularity))
    return "\n".join([
        "loss by step", bars([str(step) for step, _ in losses], [loss for _, loss in losses]),
        "hit@10: a held-out dependency is among the first 10 of 100",
        bars([name for name, _ in pairs], [score.hit for _, score in pairs]),
        "AUC: a held-out dependency is scored above another package",
        bars([name for name, _ in pairs], [score.auc for _, score in pairs]),
        "rows of the table of known dependencies that were used most",
        bars([name for name, _ in result.hot], [count for _, count in result.hot], "{:.0f}")])


def draw(result: Result, path: Path) -> bool:
    """Draw the result as a figure into a file. Return whether matplotlib is there to do it."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return False
    figure = Figure(figsize=(11, 4), layout="constrained")
    loss, quality, hot = figure.subplots(1, 3)
    loss.plot(*zip(*result.losses, strict=True))
    loss.set(xlabel="step", ylabel="loss", title="Training")
    for offset, name, score in ((-0.2, "DLRM", result.model),
                                (0.2, "popularity", result.popularity)):
        quality.bar([offset, 1 + offset], score, 0.4, label=name)
    quality.set_xticks([0, 1], ["hit@10", "AUC"])
    quality.set(ylim=(0, 1.2), title="Held-out dependencies")
    quality.legend(ncols=2)
    hot.barh([name for name, _ in result.hot], [count for _, count in result.hot])
    hot.invert_yaxis()
    hot.set(xlabel="ids", title="Rows that were used most")
    figure.savefig(path)
    return True

# SPDX-License-Identifier: MIT
"""The program of the demo: options, training, evaluation, and what is shown and saved."""
import argparse
import json
import secrets
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .examples import Batch, Examples, Floats, Ids, Score, judge, part
from .packages import SOURCES, NoDataError, read_source
from .report import Progress, Result, draw, text

if TYPE_CHECKING:
    from .model import Dlrm

BATCH = 256
NEGATIVES = 4
HELD_OUT = 4000
SHOWN = 3


def _positive(text_: str) -> int:
    number = int(text_)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is below 1")
    return number


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m embeng.demo",
        description="Watch a small DLRM learn which packages go together, from the package lists "
        "of this machine. Its tables train in embedding engines, the rest in PyTorch.",
        epilog="Exit status: 0 learned, 1 no better than popularity, 2 something is missing.")
    parser.add_argument("--steps", type=_positive, default=1500,
                        help="steps of training (%(default)s)")
    parser.add_argument("--seconds", type=float, help="stop training after so many seconds")
    parser.add_argument("--seed", type=int, help="seed of all that is drawn; a new one by default")
    parser.add_argument("--threads", type=_positive, default=1,
                        help="threads of PyTorch (%(default)s)")
    parser.add_argument("--source", metavar="SOURCE",
                        help=f"{', '.join(SOURCES)}, or a file of Debian's control stanzas; by "
                        "default the first that there is")
    parser.add_argument("--save", type=Path, metavar="DIR",
                        help="keep the model and a checkpoint of each table there")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw a figure into FILE (PNG)")
    return parser.parse_args(arguments)


def _train(model: "Dlrm", examples: Examples, options: argparse.Namespace,
           random: np.random.Generator) -> list[tuple[int, float]]:
    """Train the model. Return steps, and the mean loss up to each since the one before."""
    import torch

    from .. import torch as tables

    optimizer = tables.optim.Adagrad(model.parameters(), lr=0.05)
    lose = torch.nn.BCEWithLogitsLoss()
    labels = torch.zeros(BATCH, 1 + NEGATIVES)
    labels[:, 0] = 1
    every = max(1, options.steps // 20)
    until = time.monotonic() + (options.seconds if options.seconds is not None else float("inf"))
    progress = Progress(options.steps)
    losses, recent = [], []
    for step in range(1, options.steps + 1):
        optimizer.zero_grad()
        loss = lose(model(examples.train(BATCH, NEGATIVES, random)), labels)
        loss.backward()
        optimizer.step()
        recent.append(loss.item())
        late = time.monotonic() >= until
        if step % every == 0 or step == options.steps or late:
            losses.append((step, float(np.mean(recent))))
            progress.tell(*losses[-1])
            recent = []
        if late:
            break
    progress.close()
    return losses


def _score(model: "Dlrm", batch: Batch) -> Floats:
    import torch

    found = []
    with torch.no_grad():
        for first in range(0, len(batch.starts), 500):
            last = min(first + 500, len(batch.starts))
            found.append(model(part(batch, first, last)).numpy())
    return np.concatenate(found)


def _show_guesses(examples: Examples, baskets: Ids,
                  batch: Batch, scores: Floats) -> None:
    """Show what was held out of some packages, and which of 100 the model puts first."""
    for k in np.linspace(0, len(baskets) - 1, SHOWN).astype(int):
        held = examples.names[batch.candidates[k, 0]]
        first = [examples.names[i] for i in batch.candidates[k, np.argsort(-scores[k])[:3]]]
        rank = 1 + int((scores[k, 1:] >= scores[k, 0]).sum())
        print(f"  {examples.baskets[baskets[k]].name} depends on {held}, which is number {rank} of "
              f"100; the first are {', '.join(first)}")


def _save(model: "Dlrm", examples: Examples, folder: Path) -> None:
    import torch

    folder.mkdir(parents=True, exist_ok=True)
    torch.save(model.state_dict(), folder / "model.pt")
    for name, module in model.tables().items():
        module.engine.save(folder / name, progress=False)
    names = {"known": examples.names, "candidate": examples.names, "section": examples.sections,
             "maintainer": examples.maintainers}
    (folder / "names.json").write_text(json.dumps(names))
    print(f"saved in {folder}: model.pt for torch.load, a checkpoint of each table "
          f"({', '.join(names)}), and names.json with what their rows are")


def _hot(model: "Dlrm", examples: Examples) -> list[tuple[str, int]]:
    group = model.known
    stats = group.engine.stats(group.engine.tables[0].name)
    return [(examples.names[row], count) for row, count in stats["hot"][:8]]


def _prepare(options: argparse.Namespace, random: np.random.Generator) -> Examples:
    begin = time.monotonic()
    source = read_source(options.source)
    examples = Examples(source.baskets, random)
    print(f"data: {source.origin}, read in {time.monotonic() - begin:.1f} s\n"
          f"  {len(examples.baskets)} packages with {len(examples.items) + len(examples.held)} "
          f"dependencies on {len(examples.names)} packages; one dependency of each is held out")
    if source.remark:
        print(f"  note: {source.remark}")
    return examples


def _finish(result: Result, options: argparse.Namespace) -> None:
    print(text(result))
    if options.plot is None:
        return
    if draw(result, options.plot):
        print(f"figure: {options.plot}")
    else:
        print("there is no figure: matplotlib is not installed; pip install matplotlib")


def run(arguments: list[str] | None) -> int:
    """Run the demo, and return its exit status."""
    options = _options(arguments)
    try:
        import torch
    except ImportError:
        print("the demo needs PyTorch: pip install embeng[torch]", file=sys.stderr)
        return 2
    seed = secrets.randbits(31) if options.seed is None else options.seed
    print(f"seed {seed}")
    torch.manual_seed(seed)
    torch.set_num_threads(options.threads)
    random = np.random.default_rng(seed)
    try:
        examples = _prepare(options, random)
    except NoDataError as error:
        print(f"there is no data: {error}", file=sys.stderr)
        return 2
    from .model import Dlrm

    model = Dlrm(examples)
    begin = time.monotonic()
    losses = _train(model, examples, options, random)
    steps, seconds = losses[-1][0], time.monotonic() - begin
    print(f"trained {steps} steps of {BATCH} examples in {seconds:.1f} s")
    baskets, batch = examples.held_out(HELD_OUT, random)
    scores = _score(model, batch)
    popularity: Score = judge(examples.uses[batch.candidates])
    result = Result(losses, judge(scores), popularity, _hot(model, examples))
    _finish(result, options)
    _show_guesses(examples, baskets, batch, scores)
    if options.save is not None:
        _save(model, examples, options.save)
    better = result.model.hit > popularity.hit and result.model.auc > popularity.auc
    print("learned" if better else "no better than popularity")
    return 0 if better else 1

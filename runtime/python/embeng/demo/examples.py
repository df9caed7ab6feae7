# SPDX-License-Identifier: MIT
"""Training examples and held-out pairs of baskets, and how well these are ranked.

An example is a dependency of a basket, the others that are known of it, and packages that are not
in it. These are drawn as often as they are used, so that ranking by popularity is no help.
"""
from collections import Counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .packages import Basket, NoDataError

Ids = NDArray[np.int64]
Floats = NDArray[np.float32]

LEAST_USES = 5  # rarer packages are left out: there is nothing to learn from
CONTEXT = 32  # most known dependencies of an example
OTHERS = 99  # others among which a held-out dependency is ranked
FIRST = 10


class Batch(NamedTuple):
    """Examples. The first candidate of each is a dependency, the others are not."""

    context: Ids  # ids of all bags
    starts: Ids  # [examples]
    section: Ids  # [examples]
    maintainer: Ids  # [examples]
    dense: Floats  # [examples, 3]
    candidates: Ids  # [examples, 1 + others]


class Score(NamedTuple):
    """How well held-out dependencies are ranked."""

    hit: float  # share of them among the first 10 of 100
    auc: float  # chance to be scored above another, over all pairs


def _numbered(values: list[str], least: int) -> tuple[list[str], Ids]:
    """Return names, and the number of each value; 0 is for those that are rare."""
    counts = Counter(value for value in values if value)
    names = ["(other)", *sorted(name for name, count in counts.items() if count >= least)]
    numbers = {name: number for number, name in enumerate(names)}
    return names, np.array([numbers.get(value, 0) for value in values], np.int64)


class Examples:
    """Baskets without those that are too small, and without one held-out dependency each.

    Parameters
    ----------
    baskets : list of Basket
        The packages.
    random : numpy.random.Generator
        It chooses what is held out, and orders baskets.

    Raises
    ------
    NoDataError
        Too few packages are left.
    """

    def __init__(self, baskets: list[Basket], random: np.random.Generator):
        uses = Counter(item for basket in baskets for item in basket.items)
        least = LEAST_USES if len(baskets) >= 1000 else 2
        self.names = sorted(name for name, count in uses.items() if count >= least)
        numbers = {name: number for number, name in enumerate(self.names)}
        kept = [(basket, [numbers[i] for i in basket.items if i in numbers]) for basket in baskets]
        kept = [(basket, items) for basket, items in kept if len(items) >= 3]
        if len(kept) < 20 or len(self.names) < 2 * FIRST:
            raise NoDataError(f"only {len(kept)} packages depend on three others or more that are "
                              f"used {least} times; 20 are needed")
        self.baskets = [basket for basket, _ in kept]
        orders = [random.permutation(items) for _, items in kept]
        self.held: Ids = np.array([order[0] for order in orders], np.int64)
        self.items: Ids = np.concatenate([order[1:] for order in orders]).astype(np.int64)
        self.sizes: Ids = np.array([len(order) - 1 for order in orders], np.int64)
        self.starts: Ids = np.cumsum(self.sizes) - self.sizes
        self.basket_of: Ids = np.repeat(np.arange(len(kept)), self.sizes)
        self.uses: Ids = np.bincount(self.items, minlength=len(self.names))
        # Numbers of pairs of a basket and an item: those that training knows, and all.
        self._trained: Ids = np.sort(self.basket_of * len(self.names) + self.items)
        self._all: Ids = np.sort(np.append(
            self._trained, np.arange(len(kept)) * len(self.names) + self.held))
        self.sections, self._section = _numbered([b.section for b in self.baskets], 2)
        self.maintainers, self._maintainer = _numbered([b.maintainer for b in self.baskets], 3)
        self._dense = self._make_dense()

    def _make_dense(self) -> Floats:
        raw = np.log1p([(b.size, b.parts, count) for b, count in
                        zip(self.baskets, self.sizes, strict=True)])
        spread: Floats = ((raw - raw.mean(0)) / (raw.std(0) + 1e-6)).astype(np.float32)
        return spread

    def _strangers(self, baskets: Ids, count: int, known_pairs: Ids,
                   random: np.random.Generator) -> Ids:
        """Draw packages that are not in the baskets, in proportion to their use."""
        drawn = self.items[random.integers(0, len(self.items), (len(baskets), count))]
        for _ in range(20):
            pairs = baskets[:, None] * len(self.names) + drawn
            at = np.minimum(np.searchsorted(known_pairs, pairs), len(known_pairs) - 1)
            known = known_pairs[at] == pairs
            if not known.any():
                break
            drawn[known] = self.items[random.integers(0, len(self.items), int(known.sum()))]
        return drawn

    def _batch(self, baskets: Ids, first: Ids, sizes: Ids, candidates: Ids) -> Batch:
        """Make a batch whose contexts are `sizes` items from `first` on, around their baskets."""
        starts = np.cumsum(sizes) - sizes
        turn = np.arange(sizes.sum()) - np.repeat(starts, sizes) + np.repeat(first, sizes)
        place = turn % np.repeat(self.sizes[baskets], sizes)
        place += np.repeat(self.starts[baskets], sizes)
        return Batch(self.items[place], starts, self._section[baskets],
                     self._maintainer[baskets], self._dense[baskets], candidates)

    def train(self, count: int, negatives: int, random: np.random.Generator) -> Batch:
        """Draw `count` training examples. They may take held-out items for strangers."""
        places = random.integers(0, len(self.items), count)
        baskets = self.basket_of[places]
        sizes = np.minimum(self.sizes[baskets] - 1, CONTEXT)
        strangers = self._strangers(baskets, negatives, self._trained, random)
        candidates = np.concatenate([self.items[places][:, None], strangers], 1)
        return self._batch(baskets, places - self.starts[baskets] + 1, sizes, candidates)

    def held_out(self, most: int, random: np.random.Generator) -> tuple[Ids, Batch]:
        """Return baskets, at most so many, and for each its held-out item among 99 others."""
        baskets = np.sort(random.permutation(len(self.baskets))[:most])
        candidates = np.concatenate(
            [self.held[baskets][:, None],
             self._strangers(baskets, OTHERS, self._all, random)], 1)
        sizes = np.minimum(self.sizes[baskets], CONTEXT)
        return baskets, self._batch(baskets, np.zeros_like(baskets), sizes, candidates)


def part(batch: Batch, first: int, last: int) -> Batch:
    """Return some examples of a batch."""
    ends = np.append(batch.starts, len(batch.context))
    begin = batch.starts[first]
    return Batch(batch.context[begin:ends[last]], batch.starts[first:last] - begin,
                 batch.section[first:last], batch.maintainer[first:last],
                 batch.dense[first:last], batch.candidates[first:last])


def area(held: NDArray[Any], others: NDArray[Any]) -> float:
    """Return the chance that a held-out score is above another one; a tie counts half."""
    ordered = np.sort(others, axis=None)
    below = np.searchsorted(ordered, held, "left") + np.searchsorted(ordered, held, "right")
    return float(below.mean() / 2 / len(ordered))


def judge(scores: NDArray[Any]) -> Score:
    """Judge scores [baskets, 100], of which the first is the held-out item's. A tie is a miss."""
    ahead = (scores[:, 1:] >= scores[:, :1]).sum(1)
    return Score(float((ahead < FIRST).mean()), area(scores[:, 0], scores[:, 1:]))

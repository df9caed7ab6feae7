# SPDX-License-Identifier: MIT
"""How rows of tables and slots start.

Rows of a random kind depend on the seed, on the table's name and on their number alone, and so
start the same on any number of cores and hosts.
"""
from typing import Any, NamedTuple


class Initializer(NamedTuple):
    """How rows start. The functions of this module make one.

    Parameters
    ----------
    kind : {"default", "constant", "uniform", "truncated_normal"}
        "default" is a truncated normal of deviation ``1 / sqrt(dim)``; for a slot it is what the
        optimizer starts it with.
    a, b : float
        Numbers of the kind.
    seed : int
        Any number from 0 to ``2**64 - 1``.
    """

    kind: str = "default"
    a: float = 0.0
    b: float = 0.0
    seed: int = 0

    def describe(self) -> dict[str, Any]:
        """Return it as the extension takes it."""
        return self._asdict()


def default(seed: int = 0) -> Initializer:
    """Return a truncated normal of deviation ``1 / sqrt(dim)``."""
    return Initializer("default", seed=seed)


def constant(value: float = 0.0) -> Initializer:
    """Return the same number everywhere."""
    return Initializer("constant", value)


def uniform(low: float, high: float, seed: int = 0) -> Initializer:
    """Return uniform numbers of ``[low, high)``."""
    return Initializer("uniform", low, high, seed)


def truncated_normal(mean: float = 0.0, deviation: float = 1.0, seed: int = 0) -> Initializer:
    """Return normal numbers within two deviations of their mean."""
    return Initializer("truncated_normal", mean, deviation, seed)

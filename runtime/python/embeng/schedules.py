# SPDX-License-Identifier: MIT
"""Learning rates that follow the step; embeng-schedules(7) has the formulas."""
from collections.abc import Sequence
from typing import Any

from . import _core


class Schedule:
    """A learning rate as a function of the step. The functions of this module make one.

    Parameters
    ----------
    kind : str
        Name of the kind.
    **settings
        Members of ``struct embeng_schedule``. Each kind takes ``warmup_steps``,
        ``warmup_learning_rate`` and ``starts_after_warmup`` as well.
    """

    __slots__ = ("kind", "settings")

    def __init__(self, kind: str, **settings: Any):
        self.kind = kind
        self.settings = settings
        self(0)  # refuses what is wrong now, and not at the first step

    def __call__(self, step: int) -> float:
        """Return the rate of a step, which is the count of updates before it."""
        return _core.schedule_rate(self.describe(), step)

    def describe(self) -> dict[str, Any]:
        """Return it as the extension takes it."""
        return {"kind": self.kind, **self.settings}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schedule) and self.describe() == other.describe()

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in self.settings.items())
        return f"{self.kind}({settings})"

    def __reduce__(self) -> Any:
        return _rebuild, (self.kind, self.settings)


def _rebuild(kind: str, settings: dict[str, Any]) -> Schedule:
    return Schedule(kind, **settings)


def constant(learning_rate: float, **settings: Any) -> Schedule:
    """Return the same rate at every step."""
    return Schedule("constant", learning_rate=learning_rate, **settings)


def exponential(learning_rate: float, decay_steps: int, decay_rate: float,
                **settings: Any) -> Schedule:
    """Return ``learning_rate * decay_rate ** (step / decay_steps)``."""
    return Schedule("exponential", learning_rate=learning_rate, decay_steps=decay_steps,
                    decay_rate=decay_rate, **settings)


def inverse_time(learning_rate: float, decay_steps: int, decay_rate: float,
                 **settings: Any) -> Schedule:
    """Return ``learning_rate / (1 + decay_rate * step / decay_steps)``."""
    return Schedule("inverse_time", learning_rate=learning_rate, decay_steps=decay_steps,
                    decay_rate=decay_rate, **settings)


def polynomial(learning_rate: float, decay_steps: int, **settings: Any) -> Schedule:
    """Return a fall to ``end_learning_rate`` by a power of the rest of the way."""
    return Schedule("polynomial", learning_rate=learning_rate, decay_steps=decay_steps, **settings)


def cosine(learning_rate: float, decay_steps: int, **settings: Any) -> Schedule:
    """Return half a cosine, from `learning_rate` to ``alpha * learning_rate``."""
    return Schedule("cosine", learning_rate=learning_rate, decay_steps=decay_steps, **settings)


def piecewise(boundaries: Sequence[int], values: Sequence[float], **settings: Any) -> Schedule:
    """Return ``values[i]`` up to and with the step ``boundaries[i]``, and the last one behind."""
    return Schedule("piecewise", boundaries=list(boundaries), values=list(values), **settings)

# SPDX-License-Identifier: MIT
"""Modules that have another module's names, and some of their own in place of them."""
import types
from collections.abc import Mapping
from typing import Any


class Overlay(types.ModuleType):
    """A module in front of another one.

    Parameters
    ----------
    base : module
        The module whose names it has.
    ours : mapping of str to object
        The names that are not looked up there.
    """

    def __init__(self, base: Any, ours: Mapping[str, Any]):
        name = getattr(base, "__name__", "tensorflow")
        super().__init__(f"embeng.tf over {name}", base.__doc__)
        self._base = base
        self.__dict__.update(ours)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._base, name)

    def __dir__(self) -> list[str]:
        return sorted({*dir(self._base), *(n for n in self.__dict__ if not n.startswith("_"))})

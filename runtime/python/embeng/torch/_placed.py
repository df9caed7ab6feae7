# SPDX-License-Identifier: MIT
"""Modules whose tables stay where they are, while activations follow ``to()`` and its kin."""
from typing import Any

import torch
from torch import Tensor, nn

from .._errors import NotSupportedError
from . import ops


class Placed(nn.Module):
    """A module that remembers on which device and in which dtype activations are wanted."""

    _place: torch.device | None
    _dtype: torch.dtype | None
    _plain: bool

    def _start_at(self, place: torch.device | None) -> None:
        self._place = place
        self._dtype = None
        self._plain = place is None or place.type == "cpu"

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        probe = fn(torch.empty(0, dtype=self._dtype or torch.float32,
                               device=self._place or torch.device("cpu")))
        if probe.device.type == "cpu" and probe.is_shared():
            raise NotSupportedError(
                "the memory of a table cannot be shared between processes; give each process a "
                "copy, or train with DistributedDataParallel and embeng.torch.distribute()")
        if probe.device.type != "meta":
            if probe.device.type != "cpu" or self._place is not None:
                self._place = probe.device
            self._dtype = None if probe.dtype == torch.float32 else probe.dtype
        self._plain = self._dtype is None and (self._place is None or self._place.type == "cpu")
        return self

    def _deliver(self, output: Tensor, device: torch.device | None) -> Tensor:
        """Give activations in the module's dtype, on its device or else on that of the ids."""
        if self._dtype is not None:
            output = output.to(self._dtype)
        wanted = self._place or device
        if wanted is None or wanted.type == "cpu":
            return output
        return ops.Move.apply(output, wanted)  # type: ignore[no-any-return, no-untyped-call]

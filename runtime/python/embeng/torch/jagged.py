# SPDX-License-Identifier: MIT
"""JaggedTensor, with torchrec's interface, in plain PyTorch.

A jagged tensor has rows of different lengths, which stand one after another in one tensor; lengths
or offsets say where they begin. Only shapes are read when it is made: what is in lengths and
offsets is looked at where it is needed. It is as safe between threads as tensors are.
"""
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

import torch
from torch import Tensor
from torch.fx._pytree import register_pytree_flatten_spec
from torch.utils import _pytree

Device = torch.device | str | int


# -- lengths and offsets ----------------------------------------------------------------------


def to_offsets(lengths: Tensor) -> Tensor:
    """Return where rows begin, and where the last one ends, ``[rows + 1]``."""
    offsets = lengths.new_zeros(lengths.numel() + 1)
    torch.cumsum(lengths, 0, dtype=lengths.dtype, out=offsets[1:])
    return offsets


def to_lengths(offsets: Tensor) -> Tensor:
    """Return the lengths of rows, ``[rows]``, that begin at ``[rows + 1]`` offsets."""
    return offsets.diff() if offsets.numel() > 1 else offsets[:0]


def fail(kind: str, part: str, wrong: str, wanted: str) -> NoReturn:
    """Raise the exception of a part that does not fit."""
    raise ValueError(f"{kind}: {part}: {wrong}; {wanted}")


def check_whole(kind: str, part: str, tensor: Tensor | None) -> Tensor | None:
    """Return bounds as one dimension, after a look at their type."""
    if tensor is None:
        return None
    if tensor.numel() and (tensor.is_floating_point() or tensor.is_complex()):
        raise TypeError(f"{kind}: {part}: they are {tensor.dtype}; give int32 or int64")
    return tensor if tensor.dim() == 1 else tensor.reshape(-1)


def check_weights(kind: str, values: Tensor, weights: Tensor | None) -> None:
    """Raise if there are not as many weights as values."""
    count = values.shape[0] if values.dim() else 1
    if weights is not None and (not weights.dim() or weights.shape[0] != count):
        fail(kind, "weights", f"their shape is {tuple(weights.shape)}, for {count} values",
              "give a weight for each value")


def move(tensor: Tensor | None, device: Device, non_blocking: bool,
         dtype: torch.dtype | None = None) -> Tensor | None:
    """Return a tensor on another device, or None for none."""
    if tensor is None:
        return None
    return tensor.to(device=device, dtype=dtype, non_blocking=non_blocking)


def pin(tensor: Tensor | None) -> Tensor | None:
    """Return a tensor in pinned memory, or None for none."""
    return None if tensor is None else tensor.pin_memory()


def split_rows(tensor: Tensor, lengths: Tensor) -> list[Tensor]:
    """Return a view of each row. Values behind the last row are left alone."""
    counts = [int(count) for count in lengths.tolist()]
    return list(torch.split(tensor[:sum(counts)], counts)) if counts else []


def to_lists(tensor: Tensor, lengths: Tensor) -> str:
    """Return rows as text."""
    return str([row.tolist() for row in split_rows(tensor, lengths)])


def count_bytes(*tensors: Tensor | None) -> int:
    """Count the bytes of the elements of tensors."""
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors if tensor is not None)


# -- JaggedTensor -------------------------------------------------------------------------------


class Jagged:
    """The parts that rows of different lengths are made of, with keys and without."""

    _values: Tensor
    _weights: Tensor | None
    _lengths: Tensor | None
    _offsets: Tensor | None

    def values(self) -> Tensor:
        """Return the values, or ids, of all rows."""
        return self._values

    def weights(self) -> Tensor:
        """Return the weights; there must be some."""
        if self._weights is None:
            fail(type(self).__name__, "weights", "there are none",
                 "give them, or ask weights_or_none()")
        return self._weights

    def weights_or_none(self) -> Tensor | None:
        """Return the weights, or None."""
        return self._weights

    def lengths(self) -> Tensor:
        """Return how many values each row has, ``[rows]``; of keys ``[keys * stride]``."""
        if self._lengths is None:
            assert self._offsets is not None
            self._lengths = to_lengths(self._offsets)
        return self._lengths

    def lengths_or_none(self) -> Tensor | None:
        """Return the lengths if they were given or asked for before."""
        return self._lengths

    def offsets(self) -> Tensor:
        """Return where rows begin, and where the last one ends: one more than lengths."""
        if self._offsets is None:
            self._offsets = to_offsets(self.lengths())
        return self._offsets

    def offsets_or_none(self) -> Tensor | None:
        """Return the offsets if they were given or asked for before."""
        return self._offsets

    def device(self) -> torch.device:
        """Return the device of the values."""
        return self._values.device


class JaggedTensor(Jagged):
    """Rows of different lengths, one after another.

    Parameters
    ----------
    values : Tensor
        ``[values, ...]``; the values of all rows.
    weights : Tensor, optional
        ``[values, ...]``; a weight for each value.
    lengths : Tensor of int32 or int64, optional
        ``[rows]``; how many values each row has.
    offsets : Tensor of int32 or int64, optional
        ``[rows + 1]``; where rows begin, from 0, and where the last one ends. One of `lengths` and
        `offsets` is needed; the other one is computed once, when it is first asked for.

    Notes
    -----
    Tensors are kept, not copied.
    """

    def __init__(self, values: Tensor, weights: Tensor | None = None,
                 lengths: Tensor | None = None, offsets: Tensor | None = None) -> None:
        if lengths is None and offsets is None:
            fail("JaggedTensor", "lengths and offsets", "neither is given", "give one of them")
        check_weights("JaggedTensor", values, weights)
        self._values = values
        self._weights = weights
        self._lengths = check_whole("JaggedTensor", "lengths", lengths)
        self._offsets = check_whole("JaggedTensor", "offsets", offsets)

    @staticmethod
    def empty(is_weighted: bool = False, device: Device | None = None,
              values_dtype: torch.dtype | None = None, weights_dtype: torch.dtype | None = None,
              lengths_dtype: torch.dtype = torch.int32) -> "JaggedTensor":
        """Return one without rows."""
        weights = torch.empty(0, dtype=weights_dtype, device=device) if is_weighted else None
        return JaggedTensor(torch.empty(0, dtype=values_dtype, device=device), weights,
                            torch.empty(0, dtype=lengths_dtype, device=device))

    @staticmethod
    def empty_like(jt: "JaggedTensor", device: Device | None = None) -> "JaggedTensor":
        """Return one without rows, with the types of another."""
        where, weights = device or jt.device(), jt.weights_or_none()
        return JaggedTensor(jt.values().new_empty(0, device=where),
                            None if weights is None else weights.new_empty(0, device=where),
                            jt.lengths().new_empty(0, device=where))

    @staticmethod
    def from_dense_lengths(values: Tensor, lengths: Tensor,
                           weights: Tensor | None = None) -> "JaggedTensor":
        """Take the first values of each row of a dense tensor.

        Parameters
        ----------
        values : Tensor
            ``[rows, longest, ...]``.
        lengths : Tensor
            ``[rows]``; how many values of each row count.
        weights : Tensor, optional
            ``[rows, longest, ...]``.
        """
        columns = torch.arange(values.shape[1], device=values.device)
        taken = columns < lengths.to(values.device).unsqueeze(-1)
        return JaggedTensor(values[taken], None if weights is None else weights[taken], lengths)

    @staticmethod
    def from_dense(values: Sequence[Tensor],
                   weights: Sequence[Tensor] | None = None) -> "JaggedTensor":
        """Put tensors together, each of which is a row."""
        if not values:
            return JaggedTensor.empty(is_weighted=weights is not None)
        lengths = torch.tensor([row.shape[0] for row in values], dtype=torch.int32,
                               device=values[0].device)
        return JaggedTensor(torch.cat(list(values)),
                            None if weights is None else torch.cat(list(weights)), lengths)

    def to_dense(self) -> list[Tensor]:
        """Return a view of each row's values."""
        return split_rows(self._values, self.lengths())

    def to_dense_weights(self) -> list[Tensor] | None:
        """Return a view of each row's weights, or None without weights."""
        if self._weights is None:
            return None
        return split_rows(self._weights, self.lengths())

    def _pad(self, tensor: Tensor, length: int | None, filler: float) -> Tensor:
        lengths, offsets = self.lengths().long(), self.offsets().long()
        rows = lengths.numel()
        if length is None:
            length = int(lengths.max()) if rows else 0
        at = torch.repeat_interleave(torch.arange(rows, device=tensor.device), lengths)
        column = torch.arange(at.numel(), device=tensor.device) - offsets[:-1][at]
        kept = column < length
        padded = tensor.new_full((rows, length, *tensor.shape[1:]), filler)
        return padded.index_put((at[kept], column[kept]), tensor[:at.numel()][kept])

    def to_padded_dense(self, desired_length: int | None = None,
                        padding_value: float = 0.0) -> Tensor:
        """Return a dense tensor of the rows, which are cut or filled up to one length.

        Parameters
        ----------
        desired_length : int, optional
            Values of a row; those of the longest row by default.
        padding_value : float
            The number that fills rows up.

        Returns
        -------
        Tensor
            ``[rows, desired_length, ...]``, a copy through which gradients flow.
        """
        return self._pad(self._values, desired_length, padding_value)

    def to_padded_dense_weights(self, desired_length: int | None = None,
                                padding_value: float = 0.0) -> Tensor | None:
        """Return the weights as :meth:`to_padded_dense` returns values, or None without weights."""
        if self._weights is None:
            return None
        return self._pad(self._weights, desired_length, padding_value)

    def size_in_bytes(self) -> int:
        """Return the bytes of all tensors."""
        return count_bytes(self._values, self._weights, self._lengths, self._offsets)

    def to(self, device: Device, non_blocking: bool = False) -> "JaggedTensor":
        """Return it on another device."""
        return JaggedTensor(self._values.to(device, non_blocking=non_blocking),
                            move(self._weights, device, non_blocking),
                            move(self._lengths, device, non_blocking),
                            move(self._offsets, device, non_blocking))

    def pin_memory(self) -> "JaggedTensor":
        """Return a copy in pinned memory, from which devices copy without waiting."""
        return JaggedTensor(self._values.pin_memory(), pin(self._weights), pin(self._lengths),
                            pin(self._offsets))

    def record_stream(self, stream: Any) -> None:
        """Keep the memory until work of a stream is done, as Tensor.record_stream() does."""
        for tensor in (self._values, self._weights, self._lengths, self._offsets):
            if tensor is not None:
                tensor.record_stream(stream)

    def __str__(self) -> str:
        values = to_lists(self._values, self.lengths())
        if self._weights is None:
            return f"JaggedTensor({{\n    {values}\n}})\n"
        weights = to_lists(self._weights, self.lengths())
        return f'JaggedTensor({{\n    "values": {values},\n    "weights": {weights}\n}})\n'


# -- trees of tensors, as torch.export and torch.func take them ------------------------------------


def _flatten(jagged: JaggedTensor) -> tuple[list[Tensor | None], None]:
    return [jagged._values, jagged._weights, jagged._lengths, jagged._offsets], None


def _flatten_spec(jagged: JaggedTensor, spec: Any) -> list[Tensor | None]:
    return _flatten(jagged)[0]


def _unflatten(parts: Iterable[Any], context: None) -> JaggedTensor:
    values, weights, lengths, offsets = parts
    return JaggedTensor(values, weights, lengths, offsets)


def _flatten_with_keys(jagged: JaggedTensor) -> tuple[list[tuple[Any, Any]], None]:
    names = ("values", "weights", "lengths", "offsets")
    return [(_pytree.GetAttrKey(name), part)
            for name, part in zip(names, _flatten(jagged)[0], strict=True)], None


_pytree.register_pytree_node(JaggedTensor, _flatten, _unflatten,
                             serialized_type_name="embeng.torch.JaggedTensor",
                             flatten_with_keys_fn=_flatten_with_keys)
register_pytree_flatten_spec(JaggedTensor, _flatten_spec)

# SPDX-License-Identifier: MIT
"""KeyedJaggedTensor, with torchrec's interface, in plain PyTorch.

It holds the jagged tensors of several features, one feature after another, in one tensor. Only
shapes are read when it is made: what is in lengths and offsets is looked at where it is needed. It
is as safe between threads as tensors are.
"""
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor
from torch.fx._pytree import register_pytree_flatten_spec
from torch.utils import _pytree

from .jagged import (Device, Jagged, JaggedTensor, check_weights, check_whole, count_bytes, fail,
                     move, pin, to_lengths, to_lists, to_offsets)

Inverse = tuple[list[str], Tensor]
Strides = Sequence[Sequence[int]] | Tensor


def _sum_strides(strides: Strides) -> list[list[int]]:
    rows = strides.tolist() if isinstance(strides, Tensor) else strides
    return [list(row) for row in rows]


class KeyedJaggedTensor(Jagged):
    """Jagged tensors of several features, one feature after another, in one tensor.

    Parameters
    ----------
    keys : sequence of str
        Names of the features.
    values : Tensor
        ``[ids, ...]``; ids of the first feature's samples, then of the second one's, and so on.
    weights : Tensor, optional
        ``[ids]``; a weight for each id.
    lengths : Tensor of int32 or int64, optional
        ``[features * stride]``; ids of each sample.
    offsets : Tensor of int32 or int64, optional
        ``[features * stride + 1]``; where samples begin, from 0. One of `lengths` and `offsets` is
        needed if there are keys.
    stride : int, optional
        Samples of the batch; computed without it.
    stride_per_key_per_rank : sequence of sequences of int, or Tensor, optional
        ``[features][ranks]``; samples of each feature, where features have different numbers of
        them (a variable batch). Those of all ranks are added up.
    stride_per_key : sequence of int, optional
        Likewise, already added up.
    length_per_key, offset_per_key : list of int, optional
        Ids of each feature, and where they begin, if they are known.
    inverse_indices : (list of str, Tensor), optional
        Names of features, and ``[features, batch]`` numbers: which of a feature's samples each
        sample of the whole batch is. A variable batch needs it to be pooled into one tensor.
    lengths_offset_per_key, index_per_key, jt_dict
        Taken for compatibility; they are computed.

    Raises
    ------
    ValueError, TypeError
        Shapes or types do not fit together.

    Notes
    -----
    Tensors are kept, not copied; features and splits are views of them.
    """

    def __init__(self, keys: Sequence[str], values: Tensor, weights: Tensor | None = None,
                 lengths: Tensor | None = None, offsets: Tensor | None = None,
                 stride: int | None = None, stride_per_key_per_rank: Strides | None = None,
                 stride_per_key: Sequence[int] | None = None,
                 length_per_key: Sequence[int] | None = None,
                 lengths_offset_per_key: Sequence[int] | None = None,
                 offset_per_key: Sequence[int] | None = None,
                 index_per_key: Mapping[str, int] | None = None,
                 jt_dict: Mapping[str, JaggedTensor] | None = None,
                 inverse_indices: Inverse | None = None) -> None:
        self._keys = list(keys)
        self._values = values
        self._weights = weights
        if lengths is None and offsets is None:
            if self._keys:
                fail("KeyedJaggedTensor", "lengths and offsets", "neither is given",
                      "give one of them")
            lengths = torch.empty(0, dtype=torch.int32, device=values.device)
        check_weights("KeyedJaggedTensor", values, weights)
        self._lengths = check_whole("KeyedJaggedTensor", "lengths", lengths)
        self._offsets = check_whole("KeyedJaggedTensor", "offsets", offsets)
        self._stride = stride
        self._by_rank = (None if stride_per_key_per_rank is None
                         else _sum_strides(stride_per_key_per_rank))
        self._inverse = inverse_indices
        self._strides: list[int] | None = None
        self._take_strides(stride_per_key)
        self._length_per_key = None if length_per_key is None else list(length_per_key)
        self._offset_per_key = None if offset_per_key is None else list(offset_per_key)
        self._dict: dict[str, JaggedTensor] | None = None

    def _count_samples(self) -> int:
        """Samples of all features together."""
        if self._lengths is not None:
            return self._lengths.numel()
        assert self._offsets is not None
        return max(self._offsets.numel() - 1, 0)

    def _take_strides(self, stride_per_key: Sequence[int] | None) -> None:
        if self._by_rank is not None:
            self._strides = [sum(row) for row in self._by_rank]
        elif stride_per_key is not None and len(set(stride_per_key)) > 1:
            self._strides = [int(samples) for samples in stride_per_key]
            self._by_rank = [[samples] for samples in self._strides]
        count, features = self._count_samples(), len(self._keys)
        if self._strides is not None:
            if features and (len(self._strides), sum(self._strides)) != (features, count):
                fail("KeyedJaggedTensor", "stride_per_key_per_rank",
                      f"{len(self._strides)} features of {sum(self._strides)} samples",
                      f"the keys are {features} and the lengths of {count} samples")
        elif features and self._stride is not None and count != self._stride * features:
            fail("KeyedJaggedTensor", "stride", f"{self._stride} samples of {features} features "
                  f"have {self._stride * features} lengths, not {count}",
                  "give [features * stride] lengths")
        elif features and count % features:
            fail("KeyedJaggedTensor", "lengths", f"{count} are not a multiple of {features} keys",
                  "give [features * stride] lengths, or stride_per_key_per_rank")

    # -- other ways to make one

    @staticmethod
    def from_lengths_sync(keys: Sequence[str], values: Tensor, lengths: Tensor,
                          weights: Tensor | None = None, stride: int | None = None,
                          stride_per_key_per_rank: Strides | None = None,
                          inverse_indices: Inverse | None = None) -> "KeyedJaggedTensor":
        """Make one of lengths, and count the ids of each feature at once.

        Raises
        ------
        ValueError
            Lengths do not add up to the number of values.
        """
        made = KeyedJaggedTensor(keys, values, weights, lengths, None, stride,
                                 stride_per_key_per_rank, inverse_indices=inverse_indices)
        return made.sync()

    @staticmethod
    def from_offsets_sync(keys: Sequence[str], values: Tensor, offsets: Tensor,
                          weights: Tensor | None = None, stride: int | None = None,
                          stride_per_key_per_rank: Strides | None = None,
                          inverse_indices: Inverse | None = None) -> "KeyedJaggedTensor":
        """Make one of offsets, and count the ids of each feature at once.

        Raises
        ------
        ValueError
            Offsets do not end at the number of values.
        """
        made = KeyedJaggedTensor(keys, values, weights, None, offsets, stride,
                                 stride_per_key_per_rank, inverse_indices=inverse_indices)
        return made.sync()

    @staticmethod
    def from_jt_dict(jt_dict: Mapping[str, JaggedTensor]) -> "KeyedJaggedTensor":
        """Put jagged tensors of several features together, in the order of the dictionary."""
        if not jt_dict:
            return KeyedJaggedTensor.empty()
        parts = list(jt_dict.values())
        strides = [part.lengths().numel() for part in parts]
        weights = [w for w in (part.weights_or_none() for part in parts) if w is not None]
        if weights and len(weights) != len(parts):
            fail("KeyedJaggedTensor", "weights", f"{len(weights)} of {len(parts)} features have "
                  "some", "give them to all or none")
        return KeyedJaggedTensor(list(jt_dict), torch.cat([part.values() for part in parts]),
                                 torch.cat(weights) if weights else None,
                                 torch.cat([part.lengths() for part in parts]),
                                 stride_per_key=strides)

    @staticmethod
    def concat(kjt_list: Sequence["KeyedJaggedTensor"]) -> "KeyedJaggedTensor":
        """Put the features of several together, one tensor's after the other's.

        Raises
        ------
        ValueError
            Only some have weights, or they have different batches that are not variable.
        """
        if not kjt_list:
            fail("KeyedJaggedTensor", "concat", "the list is empty", "give one or more")
        weights = [w for w in (kjt.weights_or_none() for kjt in kjt_list) if w is not None]
        if weights and len(weights) != len(kjt_list):
            fail("KeyedJaggedTensor", "concat", f"{len(weights)} of {len(kjt_list)} have weights",
                  "give them to all or none")
        variable = any(kjt.variable_stride_per_key() for kjt in kjt_list)
        strides = {kjt.stride() for kjt in kjt_list}
        if not variable and len(strides) > 1:
            fail("KeyedJaggedTensor", "concat", f"the batches have {sorted(strides)} samples",
                  "give batches of one size, or stride_per_key_per_rank")
        known = all(kjt._length_per_key is not None for kjt in kjt_list)
        by_rank = [row for kjt in kjt_list for row in kjt._rank_strides()] if variable else None
        return KeyedJaggedTensor(
            [key for kjt in kjt_list for key in kjt.keys()],
            torch.cat([kjt.values() for kjt in kjt_list]),
            torch.cat(weights) if weights else None,
            torch.cat([kjt.lengths() for kjt in kjt_list]), None, max(strides), by_rank, None,
            [n for kjt in kjt_list for n in kjt.length_per_key()] if known else None)

    @staticmethod
    def empty(is_weighted: bool = False, device: Device | None = None,
              values_dtype: torch.dtype | None = None, weights_dtype: torch.dtype | None = None,
              lengths_dtype: torch.dtype = torch.int32) -> "KeyedJaggedTensor":
        """Return one without features."""
        weights = torch.empty(0, dtype=weights_dtype, device=device) if is_weighted else None
        return KeyedJaggedTensor([], torch.empty(0, dtype=values_dtype, device=device), weights,
                                 torch.empty(0, dtype=lengths_dtype, device=device), stride=0)

    @staticmethod
    def empty_like(kjt: "KeyedJaggedTensor",
                   device: Device | None = None) -> "KeyedJaggedTensor":
        """Return one without features, with the types and the number of samples of another."""
        weights, where = kjt.weights_or_none(), device or kjt.device()
        return KeyedJaggedTensor(
            [], kjt.values().new_empty(0, device=where),
            None if weights is None else weights.new_empty(0, device=where),
            kjt.lengths().new_empty(0, device=where), stride=kjt.stride())

    # -- what it is made of

    def keys(self) -> list[str]:
        """Return the names of the features."""
        return self._keys

    def stride(self) -> int:
        """Return the samples of the batch; of a variable batch, those of the whole one."""
        if self._stride is None:
            if self._strides is None:
                self._stride = self._count_samples() // len(self._keys) if self._keys else 0
            elif self._inverse is not None:
                self._stride = int(self._inverse[1].shape[-1])
            else:
                self._stride = max(self._strides, default=0)
        return self._stride

    def stride_per_key(self) -> list[int]:
        """Return the samples of each feature."""
        if self._strides is not None:
            return self._strides
        return [self.stride()] * len(self._keys)

    def _rank_strides(self) -> list[list[int]]:
        """Strides of each feature and rank, also of a batch that is not variable."""
        if self._by_rank is not None:
            return self._by_rank
        return [[self.stride()] for _ in self._keys]

    def stride_per_key_per_rank(self) -> list[list[int]]:
        """Return the samples of each feature and rank of a variable batch, else an empty list."""
        return self._by_rank or []

    def variable_stride_per_key(self) -> bool:
        """Return whether the batch is a variable one."""
        return self._strides is not None

    def inverse_indices(self) -> Inverse:
        """Return names of features and which sample each sample of the whole batch is."""
        if self._inverse is None:
            fail("KeyedJaggedTensor", "inverse_indices", "there are none",
                  "give them, or ask inverse_indices_or_none()")
        return self._inverse

    def inverse_indices_or_none(self) -> Inverse | None:
        """Return the inverse indices, or None."""
        return self._inverse

    def _sample_bounds(self) -> list[int]:
        """Where the samples of each feature begin among all, and where the last ones end."""
        return [0, *accumulate(self.stride_per_key())]

    def lengths_offset_per_key(self) -> list[int]:
        """Return where the lengths of each feature begin, and where the last ones end."""
        return self._sample_bounds()

    def length_per_key(self) -> list[int]:
        """Return the ids of each feature."""
        if self._length_per_key is None:
            if not self._keys:
                self._length_per_key = []
            elif self._strides is None:
                rows = self.lengths().reshape(len(self._keys), -1)
                self._length_per_key = [int(n) for n in rows.sum(1).tolist()]
            else:
                bounds = torch.tensor(self._sample_bounds(), device=self.offsets().device)
                self._length_per_key = self.offsets()[bounds].diff().tolist()
        return self._length_per_key

    def length_per_key_or_none(self) -> list[int] | None:
        """Return the ids of each feature if they were counted before."""
        return self._length_per_key

    def offset_per_key(self) -> list[int]:
        """Return where the ids of each feature begin, and where the last ones end."""
        if self._offset_per_key is None:
            self._offset_per_key = [0, *accumulate(self.length_per_key())]
        return self._offset_per_key

    def offset_per_key_or_none(self) -> list[int] | None:
        """Return where the ids of features begin if it was asked for before."""
        return self._offset_per_key

    def sync(self) -> "KeyedJaggedTensor":
        """Count the ids of each feature now, which waits for the lengths of another device.

        Raises
        ------
        ValueError
            They are not as many as there are values.
        """
        if self._values.is_meta:
            return self
        found, given = self.offset_per_key()[-1], self._values.shape[0]
        if self._keys and found != given:
            fail("KeyedJaggedTensor", "lengths", f"they add up to {found}, for {given} values",
                  "give the lengths of these values")
        return self

    def unsync(self) -> "KeyedJaggedTensor":
        """Forget what was counted."""
        self._length_per_key = self._offset_per_key = self._dict = None
        return self

    # -- parts of it

    def __getitem__(self, key: str) -> JaggedTensor:
        """Return the ids of a feature, as views.

        Raises
        ------
        KeyError
            There is no such feature.
        """
        if key not in self._keys:
            raise KeyError(f"there is no key '{key}'; the keys are {', '.join(self._keys)}")
        return self._feature(self._keys.index(key))

    def _feature(self, at: int) -> JaggedTensor:
        begin, end = self.offset_per_key()[at:at + 2]
        first, last = self._sample_bounds()[at:at + 2]
        weights = self._weights
        return JaggedTensor(self._values[begin:end],
                            None if weights is None else weights[begin:end],
                            self.lengths()[first:last])

    def to_dict(self, compute_offsets: bool = True) -> dict[str, JaggedTensor]:
        """Return the jagged tensor of each feature. The dictionary is made once.

        `compute_offsets` is taken for compatibility: offsets are computed when they are asked for.
        """
        if self._dict is None:
            self._dict = {key: self._feature(at) for at, key in enumerate(self._keys)}
        return self._dict

    def _part(self, keys: list[str], values: Tensor, weights: Tensor | None, lengths: Tensor,
              by_rank: list[list[int]] | None, counts: list[int]) -> "KeyedJaggedTensor":
        return KeyedJaggedTensor(keys, values, weights, lengths, None, self.stride(), by_rank, None,
                                 counts, inverse_indices=self._inverse)

    def split(self, segments: Sequence[int]) -> list["KeyedJaggedTensor"]:
        """Split it into several, as views.

        Parameters
        ----------
        segments : sequence of int
            How many features each has; they add up to those that there are.
        """
        if sum(segments) != len(self._keys) or any(count < 0 for count in segments):
            fail("KeyedJaggedTensor", "split", f"segments of {list(segments)} features",
                  f"let them add up to {len(self._keys)}")
        bounds, offsets, parts = self._sample_bounds(), self.offset_per_key(), []
        weights, at = self._weights, 0
        for count in segments:
            end = at + count
            ids, samples = slice(offsets[at], offsets[end]), slice(bounds[at], bounds[end])
            parts.append(self._part(
                self._keys[at:end], self._values[ids], None if weights is None else weights[ids],
                self.lengths()[samples], None if self._by_rank is None else self._by_rank[at:end],
                self.length_per_key()[at:end]))
            at = end
        return parts

    def permute(self, indices: Iterable[int],
                indices_tensor: Tensor | None = None) -> "KeyedJaggedTensor":
        """Return a copy with features in another order; some may be left out, or come twice.

        Parameters
        ----------
        indices : iterable of int
            The number of the feature that comes at each place.
        indices_tensor : Tensor, optional
            Taken for compatibility.
        """
        order = list(indices)
        counts, weights = self.length_per_key(), self._weights

        def pick(tensor: Tensor, sizes: list[int]) -> Tensor:
            parts = torch.split(tensor, sizes)
            return torch.cat([parts[at] for at in order]) if order else tensor[:0]

        return self._part([self._keys[at] for at in order], pick(self._values, counts),
                          None if weights is None else pick(weights, counts),
                          pick(self.lengths(), self.stride_per_key()),
                          None if self._by_rank is None else [self._by_rank[at] for at in order],
                          [counts[at] for at in order])

    def flatten_lengths(self) -> "KeyedJaggedTensor":
        """Return it; lengths have one dimension at all times."""
        return self

    def size_in_bytes(self) -> int:
        """Return the bytes of all tensors."""
        return count_bytes(self._values, self._weights, self._lengths, self._offsets,
                           self._inverse and self._inverse[1])

    # -- where it is

    def _like(self, values: Tensor, weights: Tensor | None, lengths: Tensor | None,
              offsets: Tensor | None, inverse: Tensor | None) -> "KeyedJaggedTensor":
        """Return one of the same shape whose tensors are others."""
        return KeyedJaggedTensor(
            self._keys, values, weights, lengths, offsets, self._stride, self._by_rank, None,
            self._length_per_key, None, self._offset_per_key,
            inverse_indices=None if self._inverse is None or inverse is None
            else (self._inverse[0], inverse))

    def to(self, device: Device, non_blocking: bool = False,
           dtype: torch.dtype | None = None) -> "KeyedJaggedTensor":
        """Return it on another device; `dtype` is that of the weights."""
        return self._like(self._values.to(device, non_blocking=non_blocking),
                          move(self._weights, device, non_blocking, dtype),
                          move(self._lengths, device, non_blocking),
                          move(self._offsets, device, non_blocking),
                          move(self._inverse and self._inverse[1], device, non_blocking))

    def pin_memory(self) -> "KeyedJaggedTensor":
        """Return a copy in pinned memory, from which devices copy without waiting."""
        return self._like(self._values.pin_memory(), pin(self._weights), pin(self._lengths),
                          pin(self._offsets), pin(self._inverse and self._inverse[1]))

    def record_stream(self, stream: Any) -> None:
        """Keep the memory until work of a stream is done, as Tensor.record_stream() does."""
        for tensor in (self._values, self._weights, self._lengths, self._offsets,
                       self._inverse and self._inverse[1]):
            if tensor is not None:
                tensor.record_stream(stream)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_dict": None}

    def __str__(self) -> str:
        if not self._keys:
            return "KeyedJaggedTensor()\n"
        lines = []
        for key, part in self.to_dict().items():
            values = to_lists(part.values(), part.lengths())
            if part.weights_or_none() is None:
                lines.append(f'    "{key}": {values}')
                continue
            weights = to_lists(part.weights(), part.lengths())
            lines.append(f'    "{key}": {{\n        "values": {values},\n'
                         f'        "weights": {weights}\n    }}')
        return "KeyedJaggedTensor({\n" + ",\n".join(lines) + "\n})\n"


# -- trees of tensors, as torch.export and torch.func take them ------------------------------------

_Context = tuple[tuple[str, ...], int | None, tuple[tuple[int, ...], ...] | None,
                 tuple[str, ...] | None]


def _flatten(keyed: KeyedJaggedTensor) -> tuple[list[Tensor | None], _Context]:
    by_rank = None if keyed._by_rank is None else tuple(tuple(row) for row in keyed._by_rank)
    names, inverse = keyed._inverse or (None, None)
    # An exported program takes inputs whose context is that of its example: no batch size is in it.
    context = (tuple(keyed._keys), None if keyed._keys else keyed.stride(), by_rank,
               None if names is None else tuple(names))
    offsets = keyed._offsets if keyed._lengths is None else None
    return [keyed._values, keyed._weights, keyed._lengths, offsets, inverse], context


def _flatten_spec(keyed: KeyedJaggedTensor, spec: Any) -> list[Tensor | None]:
    """Flatten it for an exported program, which has the keys in the order of its example."""
    keys = spec.context[0]
    if tuple(keyed._keys) != keys:
        missing = [key for key in keys if key not in keyed._keys]
        if missing:
            fail("KeyedJaggedTensor", "keys", f"there is no '{missing[0]}'",
                 f"the program was exported with {', '.join(keys)}")
        keyed = keyed.permute([keyed._keys.index(key) for key in keys])
    return _flatten(keyed)[0]


def _unflatten(parts: Iterable[Any], context: _Context) -> KeyedJaggedTensor:
    values, weights, lengths, offsets, inverse = parts
    keys, stride, by_rank, names = context
    return KeyedJaggedTensor(list(keys), values, weights, lengths, offsets, stride, by_rank,
                             inverse_indices=None if names is None else (list(names), inverse))


def _flatten_with_keys(keyed: KeyedJaggedTensor) -> tuple[list[tuple[Any, Any]], _Context]:
    names = ("values", "weights", "lengths", "offsets", "inverse_indices")
    parts, context = _flatten(keyed)
    return [(_pytree.GetAttrKey(name), part)
            for name, part in zip(names, parts, strict=True)], context


_pytree.register_pytree_node(KeyedJaggedTensor, _flatten, _unflatten,
                             serialized_type_name="embeng.torch.KeyedJaggedTensor",
                             flatten_with_keys_fn=_flatten_with_keys)
register_pytree_flatten_spec(KeyedJaggedTensor, _flatten_spec)

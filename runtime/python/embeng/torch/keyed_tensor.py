# SPDX-License-Identifier: MIT
"""KeyedTensor, with torchrec's interface: tensors of several features side by side in one."""
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor
from torch.fx._pytree import register_pytree_flatten_spec
from torch.utils import _pytree

Device = torch.device | str | int


class KeyedTensor:
    """Tensors of several features side by side in one tensor.

    Parameters
    ----------
    keys : sequence of str
        Names of the features.
    length_per_key : sequence of int
        How much of the dimension `key_dim` each feature has.
    values : Tensor
        ``[batch, sum of length_per_key]`` with a `key_dim` of 1.
    key_dim : int
        The dimension along which features stand.
    offset_per_key, index_per_key
        Taken for compatibility; they are computed.

    Notes
    -----
    The tensor is kept, not copied, and features are views of it. It is as safe between threads as
    tensors are.
    """

    def __init__(self, keys: Sequence[str], length_per_key: Sequence[int], values: Tensor,
                 key_dim: int = 1, offset_per_key: Sequence[int] | None = None,
                 index_per_key: Mapping[str, int] | None = None) -> None:
        self._keys = keys if isinstance(keys, list) else list(keys)
        self._length_per_key = (length_per_key if isinstance(length_per_key, list)
                                else list(length_per_key))
        self._values = values
        self._key_dim = key_dim
        self._offset_per_key = None if offset_per_key is None else list(offset_per_key)
        self._index: dict[str, int] | None = None if index_per_key is None else dict(index_per_key)
        if len(self._keys) != len(self._length_per_key):
            raise ValueError(f"KeyedTensor: {len(self._keys)} keys have "
                             f"{len(self._length_per_key)} lengths; give a length for each key")

    @staticmethod
    def from_tensor_list(keys: Sequence[str], tensors: Sequence[Tensor], key_dim: int = 1,
                         cat_dim: int = 1) -> "KeyedTensor":
        """Put tensors side by side.

        Parameters
        ----------
        keys : sequence of str
            A name for each tensor.
        tensors : sequence of Tensor
            They differ in size along `key_dim` alone.
        key_dim, cat_dim : int
            The dimension along which they are put together; both are the same.
        """
        lengths = [tensor.shape[key_dim] for tensor in tensors]
        return KeyedTensor(keys, lengths, torch.cat(list(tensors), cat_dim), key_dim)

    def keys(self) -> list[str]:
        """Return the names of the features."""
        return self._keys

    def values(self) -> Tensor:
        """Return the tensor of all features."""
        return self._values

    def key_dim(self) -> int:
        """Return the dimension along which features stand."""
        return self._key_dim

    def length_per_key(self) -> list[int]:
        """Return how much of the dimension each feature has."""
        return self._length_per_key

    def offset_per_key(self) -> list[int]:
        """Return where each feature begins, and where the last one ends."""
        if self._offset_per_key is None:
            self._offset_per_key = [0, *accumulate(self._length_per_key)]
        return self._offset_per_key

    def device(self) -> torch.device:
        """Return the device of the tensor."""
        return self._values.device

    def __getitem__(self, key: str) -> Tensor:
        """Return a view of a feature.

        Raises
        ------
        KeyError
            There is no such feature.
        """
        if self._index is None:
            self._index = {name: at for at, name in enumerate(self._keys)}
        at = self._index.get(key)
        if at is None:
            raise KeyError(f"there is no key '{key}'; the keys are {', '.join(self._keys)}")
        return self._values.narrow(self._key_dim, self.offset_per_key()[at],
                                   self._length_per_key[at])

    def to_dict(self) -> dict[str, Tensor]:
        """Return a view of each feature."""
        parts = torch.split(self._values, self._length_per_key, self._key_dim)
        return dict(zip(self._keys, parts))

    @staticmethod
    def regroup(keyed_tensors: Iterable["KeyedTensor"],
                groups: Iterable[Sequence[str]]) -> list[Tensor]:
        """Put features of several keyed tensors together by groups.

        Parameters
        ----------
        keyed_tensors : iterable of KeyedTensor
            Where the features are, of one batch.
        groups : iterable of sequences of str
            The features of each group, in order; one may be in several groups.

        Returns
        -------
        list of Tensor
            ``[batch, ...]`` for each group, copies through which gradients flow.

        Raises
        ------
        KeyError
            A feature is in none of the tensors.
        ValueError
            A feature is in two of them, or there are no tensors, or a group is empty.
        """
        found: dict[str, Tensor] = {}
        twice: set[str] = set()
        dims: set[int] = set()
        for keyed in keyed_tensors:
            twice |= found.keys() & set(keyed.keys())
            found.update(keyed.to_dict())
            dims.add(keyed.key_dim())
        if len(dims) != 1:
            raise ValueError(f"KeyedTensor: tensors of the key dimensions {sorted(dims)} cannot be "
                             "put together; give one or more of the same dimension")
        dim, regrouped = dims.pop(), []
        for group in groups:
            for key in group:
                if key in twice:
                    raise ValueError(f"KeyedTensor: the key '{key}' is in two of the tensors; give "
                                     "features different names")
                if key not in found:
                    raise KeyError(f"there is no key '{key}'; the keys are {', '.join(found)}")
            if not group:
                raise ValueError("KeyedTensor: a group has no keys; give it some")
            regrouped.append(torch.cat([found[key] for key in group], dim))
        return regrouped

    @staticmethod
    def regroup_as_dict(keyed_tensors: Iterable["KeyedTensor"], groups: Sequence[Sequence[str]],
                        keys: Sequence[str]) -> dict[str, Tensor]:
        """Likewise, with a name for each group."""
        if len(groups) != len(keys):
            raise ValueError(f"KeyedTensor: {len(groups)} groups have {len(keys)} names; give each "
                             "group a name")
        return dict(zip(keys, KeyedTensor.regroup(keyed_tensors, groups)))

    def size_in_bytes(self) -> int:
        """Return the bytes of the tensor's elements."""
        return self._values.numel() * self._values.element_size()

    def to(self, device: Device, non_blocking: bool = False) -> "KeyedTensor":
        """Return it on another device."""
        return KeyedTensor(self._keys, self._length_per_key,
                           self._values.to(device, non_blocking=non_blocking), self._key_dim,
                           self._offset_per_key, self._index)

    def record_stream(self, stream: Any) -> None:
        """Keep the memory until work of a stream is done, as Tensor.record_stream() does."""
        self._values.record_stream(stream)

    def __str__(self) -> str:
        if not self._keys:
            return "KeyedTensor()\n"
        lines = [f'    "{key}": {part.tolist()}' for key, part in self.to_dict().items()]
        return "KeyedTensor({\n" + ",\n".join(lines) + "\n})\n"


_Context = tuple[tuple[str, ...], tuple[int, ...], int]


def _flatten(keyed: KeyedTensor) -> tuple[list[Tensor], _Context]:
    return [keyed._values], (tuple(keyed._keys), tuple(keyed._length_per_key), keyed._key_dim)


def _flatten_spec(keyed: KeyedTensor, spec: Any) -> list[Tensor]:
    """Flatten it for an exported program, which has the keys in the order of its example."""
    keys = spec.context[0]
    if tuple(keyed._keys) == keys:
        return [keyed._values]
    return KeyedTensor.regroup([keyed], [keys])


def _unflatten(parts: Iterable[Any], context: _Context) -> KeyedTensor:
    keys, lengths, key_dim = context
    values, = parts
    return KeyedTensor(keys, lengths, values, key_dim)


def _flatten_with_keys(keyed: KeyedTensor) -> tuple[list[tuple[Any, Any]], _Context]:
    return [(_pytree.GetAttrKey("values"), keyed._values)], _flatten(keyed)[1]


_pytree.register_pytree_node(KeyedTensor, _flatten, _unflatten,
                             serialized_type_name="embeng.torch.KeyedTensor",
                             flatten_with_keys_fn=_flatten_with_keys)
register_pytree_flatten_spec(KeyedTensor, _flatten_spec)

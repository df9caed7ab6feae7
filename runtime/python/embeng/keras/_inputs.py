# SPDX-License-Identifier: MIT
"""Inputs of features, in the forms that each backend of Keras has, as plain tensors.

An input becomes a :class:`Layout`, which is the same for each batch, and tensors. Forms are

dense
    ids ``[samples]`` or ``[samples, ids]``, in which -1 is no id;
ragged
    values ``[ids]`` and splits ``[samples + 1]``;
sparse
    indices ``[ids, 2]``, values ``[ids]`` and shape ``[2]``.

A tensor of weights may follow. The functions here import a backend only if Keras runs on it.
"""
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy

from .._errors import InvalidError
from .._inputs import Ragged, Sparse
from ._framework import keras

DENSE, RAGGED, SPARSE = "dense", "ragged", "sparse"
_COUNTS = {DENSE: 1, RAGGED: 2, SPARSE: 3}
PADDING = -1


class Layout(NamedTuple):
    """How the tensors of one feature are to be read."""

    feature: str
    form: str
    weighted: bool

    @property
    def tensor_count(self) -> int:
        """Tensors, without the weights."""
        return _COUNTS[self.form]


def find_weights(layouts: Sequence[Layout]) -> list[int]:
    """Say which of the tensors are weights."""
    places, at = [], 0
    for layout in layouts:
        at += layout.tensor_count
        if layout.weighted:
            places.append(at)
            at += 1
    return places


class Input(NamedTuple):
    """One input as plain tensors of the backend; `outer` is its activations' shape but dim."""

    form: str
    tensors: tuple[Any, ...]
    weights: Any
    outer: tuple[Any, ...]


def _is_tensorflow_ragged(value: Any) -> bool:
    return hasattr(value, "row_splits") and hasattr(value, "flat_values")


def _is_lists(value: Any) -> bool:
    """Whether it is bags as lists or arrays of different lengths."""
    if isinstance(value, numpy.ndarray):
        return bool(value.dtype == object)
    return isinstance(value, list | tuple) and any(hasattr(bag, "__len__") for bag in value) and \
        len({len(bag) for bag in value}) > 1


def is_ragged(value: Any) -> bool:
    """Whether it is bags of different lengths, of any framework, or of lists."""
    return isinstance(value, Ragged) or _is_tensorflow_ragged(value) or _is_lists(value) or \
        bool(getattr(value, "is_nested", False))


def _join(bags: Any, kind: Any) -> tuple[Any, Any]:
    lengths = numpy.array([len(bag) for bag in bags], numpy.int64)
    splits = numpy.zeros(len(lengths) + 1, numpy.int64)
    numpy.cumsum(lengths, out=splits[1:])
    parts = [numpy.asarray(bag, kind).reshape(-1) for bag in bags]
    return numpy.concatenate(parts) if parts else numpy.zeros(0, kind), splits


def split_ragged(value: Any, kind: Any) -> tuple[Any, Any]:
    """Take values and splits out of bags of different lengths."""
    if isinstance(value, Ragged):
        splits = value.splits
        if splits is None and value.lengths is not None:
            splits = numpy.concatenate([[0], numpy.cumsum(value.lengths)])
        if splits is None:
            raise InvalidError("bags of embeng.Ragged need splits or lengths here")
        return value.values, splits
    if _is_tensorflow_ragged(value):
        return value.flat_values, value.row_splits
    if getattr(value, "is_nested", False):
        return value.values(), value.offsets()
    return _join(value, kind)


def pad(value: Any, kind: Any, filler: Any, least: int) -> Any:
    """Make a dense array of numpy of bags of different lengths, `least` ids wide or wider."""
    values, splits = (numpy.asarray(part) for part in split_ragged(value, kind))
    lengths = splits[1:] - splits[:-1]
    width = max(least, int(lengths.max(initial=0)))
    dense = numpy.full((len(lengths), width), filler, kind)
    dense[numpy.arange(width) < lengths[:, None]] = values
    return dense


def _sparse_parts(value: Any) -> tuple[Any, Any, Any] | None:
    """Take indices, values and shape out of a sparse tensor of the backend; None if it is none."""
    name = type(value).__name__
    backend = keras.backend.backend()
    if backend == "tensorflow" and name == "SparseTensor":
        return value.indices, value.values, value.dense_shape
    if backend == "jax" and name == "BCSR":
        value, name = value.to_bcoo(), "BCOO"
    if backend == "jax" and name == "BCOO":
        convert = keras.ops.convert_to_tensor
        return convert(value.indices), convert(value.data), convert(value.shape, dtype="int32")
    if backend == "torch" and getattr(value, "layout", None) is not None:
        import torch

        if value.layout == torch.sparse_csr:
            value = value.to_sparse_coo()
        if value.layout == torch.sparse_coo:
            held = value.coalesce()
            return held.indices().T.contiguous(), held.values(), torch.tensor(held.shape)
    return None


def is_sparse(value: Any) -> bool:
    """Whether it is a sparse tensor of the backend."""
    return type(value).__name__ in ("SparseTensor", "BCOO", "BCSR") or \
        str(getattr(value, "layout", "")) in ("torch.sparse_coo", "torch.sparse_csr")


def _to_ids(value: Any) -> Any:
    tensor = keras.ops.convert_to_tensor(value)
    kind = keras.backend.standardize_dtype(tensor.dtype)
    return tensor if kind in ("int32", "int64") else keras.ops.cast(tensor, "int32")


def _to_weights(value: Any, form: str) -> Any:
    if form == RAGGED and is_ragged(value):
        value = split_ragged(value, numpy.float32)[0]
    elif form == SPARSE:
        parts = _sparse_parts(value)
        value = value if parts is None else parts[1]
    return keras.ops.cast(keras.ops.convert_to_tensor(value), "float32")


def _read_dense(feature: str, value: Any, weights: Any, combiner: str) -> Input:
    ids = _to_ids(value)
    shape = tuple(keras.ops.shape(ids))
    if not shape:
        raise InvalidError(f"feature {feature}: its ids are one number; give [samples] or "
                           "[samples, ids]")
    given = None if weights is None else _to_weights(weights, DENSE)
    if len(shape) == 1:
        # One id is its own mean whatever its weight.
        return Input(DENSE, (ids,), given if combiner == "sum" else None, shape)
    flat = keras.ops.reshape(ids, (-1, ids.shape[-1])) if len(shape) > 2 else ids
    if given is not None:
        spread = given if len(given.shape) == len(shape) else \
            keras.ops.broadcast_to(keras.ops.expand_dims(given, -1), shape)
        given = keras.ops.reshape(spread, (-1, ids.shape[-1]))
    return Input(DENSE, (flat,), given, shape[:-1])


def read_input(feature: str, value: Any, weights: Any, combiner: str) -> Input:
    """Make plain tensors of one input.

    Parameters
    ----------
    feature : str
        Its name, for messages.
    value : tensor
        Dense, ragged or sparse ids.
    weights : tensor or None
        They have the form of `value`.
    combiner : str
        The table's.

    Returns
    -------
    Input
        Tensors of the backend.

    Raises
    ------
    InvalidError
        The input has no dimension.
    """
    if is_ragged(value):
        values, splits = split_ragged(value, numpy.int32)
        ids, splits = _to_ids(values), _to_ids(splits)
        given = None if weights is None else _to_weights(weights, RAGGED)
        return Input(RAGGED, (ids, splits), given, (keras.ops.shape(splits)[0] - 1,))
    parts = _sparse_parts(value)
    if parts is not None:
        given = None if weights is None else _to_weights(weights, SPARSE)
        indices, values, shape = parts
        rows = getattr(value, "shape", (None,))[0]
        return Input(SPARSE, (indices, _to_ids(values), shape), given,
                     (shape[0] if rows is None else rows,))
    return _read_dense(feature, value, weights, combiner)


def _make_sparse(arrays: Sequence[Any], weights: Any) -> Sparse:
    """Make bags of coordinates, in the order of samples, without those outside of the shape."""
    indices, values, shape = arrays
    indices = indices.astype(numpy.int64, copy=False)
    samples = indices[:, 0]
    kept = samples < shape[0]
    if not kept.all():
        indices, values = indices[kept], values[kept]
        weights = None if weights is None else weights[kept]
    if (numpy.diff(indices[:, 0]) < 0).any():
        order = numpy.lexsort((indices[:, 1], indices[:, 0]))
        indices, values = indices[order], values[order]
        weights = None if weights is None else weights[order]
    return Sparse(indices, values, [int(size) for size in shape], weights)


def make_bags(layout: Layout, arrays: Sequence[Any], weights: Any) -> Any:
    """Make what the engine takes of arrays of numpy."""
    if layout.form == RAGGED:
        return Ragged(arrays[0], splits=arrays[1], weights=weights, padding=PADDING)
    if layout.form == SPARSE:
        return _make_sparse(arrays, weights)
    flat = None if weights is None else weights.reshape(-1)
    return Ragged(arrays[0], weights=flat, padding=PADDING)

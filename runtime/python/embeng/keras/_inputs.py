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

from .._errors import InvalidError, OutOfRangeError
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
    if isinstance(value, Ragged):
        return False
    return isinstance(value, list | tuple) and any(hasattr(bag, "__len__") for bag in value) and \
        len({len(bag) for bag in value}) > 1


def is_ragged(value: Any) -> bool:
    """Whether it is bags of different lengths, of any framework, or of lists."""
    return isinstance(value, Ragged) or _is_tensorflow_ragged(value) or _is_lists(value) or \
        bool(getattr(value, "is_nested", False))


def _join(feature: str, bags: Any) -> tuple[Any, Any]:
    parts = [numpy.asarray(bag).reshape(-1) for bag in bags]
    # Together with int64 they would be floats, which do not hold all ids.
    parts = [_read_host(feature, part) if part.dtype == numpy.uint64 else part for part in parts]
    splits = numpy.zeros(len(parts) + 1, numpy.int64)
    numpy.cumsum([len(part) for part in parts], out=splits[1:])
    # Lists without numbers are arrays of floats.
    filled = [part for part in parts if part.size]
    return numpy.concatenate(filled) if filled else numpy.zeros(0, numpy.int32), splits


def split_ragged(feature: str, value: Any) -> tuple[Any, Any]:
    """Take values and splits out of bags of different lengths."""
    if isinstance(value, Ragged):
        splits = value.splits
        if splits is None and value.lengths is not None:
            splits = numpy.concatenate([[0], numpy.cumsum(value.lengths)])
        if splits is None:
            raise InvalidError(f"feature {feature}: bags of embeng.Ragged need splits or lengths "
                               "here")
        return value.values, splits
    if _is_tensorflow_ragged(value):
        return value.flat_values, value.row_splits
    if getattr(value, "is_nested", False):
        return value.values(), value.offsets()
    try:
        return _join(feature, value)
    except OutOfRangeError:
        raise
    except (TypeError, ValueError) as error:
        raise InvalidError(f"feature {feature}: its bags are no lists of numbers, one for each "
                           f"sample: {error}") from error


def _check_splits(feature: str, splits: Any, count: int) -> None:
    if splits.ndim != 1 or not len(splits) or splits[0] != 0 or splits[-1] != count or \
            (splits[1:] < splits[:-1]).any():
        raise InvalidError(f"feature {feature}: its splits do not start at 0, never fall, and end "
                           f"at its {count} ids")


def pad(feature: str, value: Any, kind: Any, filler: Any, least: int) -> Any:
    """Make a dense array of numpy of bags of different lengths, `least` ids wide or wider."""
    values, splits = (numpy.asarray(part) for part in split_ragged(feature, value))
    _check_splits(feature, splits, len(values))
    lengths = splits[1:] - splits[:-1]
    width = max(least, int(lengths.max(initial=0)))
    made = _read_host(feature, values) if kind == "int32" else values.astype(kind)
    dense = numpy.full((len(lengths), width), filler, made.dtype)
    dense[numpy.arange(width) < lengths[:, None]] = made
    return dense


def _refuse_rank(feature: str, value: Any) -> InvalidError:
    return InvalidError(f"feature {feature}: its sparse tensor has the shape {tuple(value.shape)}; "
                        "give [samples, ids]")


def _read_torch(feature: str, value: Any) -> tuple[Any, Any, Any]:
    """Take a COO apart, in the order of its indices; an index that comes twice stays two ids."""
    import torch

    if value.dim() != 2 or value.sparse_dim() != 2:
        raise _refuse_rank(feature, value)
    indices, values = value._indices(), value._values()
    if not value.is_coalesced():
        order = torch.argsort(indices[0] * value.shape[1] + indices[1], stable=True)
        indices, values = indices[:, order], values[order]
    return indices.T.contiguous(), values, torch.tensor(value.shape)


def _sparse_parts(feature: str, value: Any) -> tuple[Any, Any, Any] | None:
    """Take indices, values and shape out of a sparse tensor of the backend; None if it is none."""
    name = type(value).__name__
    backend = keras.backend.backend()
    if backend == "tensorflow" and name == "SparseTensor":
        return value.indices, value.values, value.dense_shape
    if backend == "jax" and name == "BCSR":
        value, name = value.to_bcoo(), "BCOO"
    if backend == "jax" and name == "BCOO":
        if value.ndim != 2:
            raise _refuse_rank(feature, value)
        if value.n_batch or value.n_dense:
            value = value.update_layout(n_batch=0, n_dense=0)
        convert = keras.ops.convert_to_tensor
        return convert(value.indices), convert(value.data), convert(value.shape, dtype="int32")
    if backend == "torch" and getattr(value, "layout", None) is not None:
        import torch

        if value.layout == torch.sparse_csr:
            value = value.to_sparse_coo()
        if value.layout == torch.sparse_coo:
            return _read_torch(feature, value)
    return None


def is_sparse(value: Any) -> bool:
    """Whether it is a sparse tensor of the backend."""
    return type(value).__name__ in ("SparseTensor", "BCOO", "BCSR") or \
        str(getattr(value, "layout", "")) in ("torch.sparse_coo", "torch.sparse_csr")


def _is_narrow() -> bool:
    """Whether the backend has no integers of 64 bits."""
    if keras.backend.backend() != "jax":
        return False
    import jax

    return not bool(jax.config.read("jax_enable_x64"))


def _read_host(feature: str, value: Any) -> Any:
    """Make an array of numpy of ids that are in no tensor; none of them becomes another one."""
    try:
        array = numpy.asarray(value)
    except (TypeError, ValueError) as error:
        raise InvalidError(f"feature {feature}: its ids are no array: {error}") from error
    narrow = _is_narrow()
    if array.dtype == numpy.int32 or (array.dtype == numpy.int64 and not narrow):
        return array
    if array.dtype.kind not in "iufb":
        given = str(array.dtype) if value is not None else "None"
        raise InvalidError(f"feature {feature}: its ids are of type {given}; give integers")
    if array.dtype.kind == "f" and not numpy.isfinite(array).all():
        raise OutOfRangeError(f"feature {feature}: one of its ids is not finite")
    end = 2**31 if narrow else 2**63
    if array.size and array.dtype.kind != "b" and (array.max() >= end or array.min() < -end):
        wrong = array[(array >= end) | (array < -end)].flat[0]
        hint = "; JAX has more after jax.config.update('jax_enable_x64', True)" \
            if narrow else ""
        raise OutOfRangeError(f"feature {feature}: id {wrong} does not fit an integer of "
                              f"{end.bit_length()} bits{hint}")
    return array.astype(numpy.int32 if narrow or array.dtype.itemsize < 4 else numpy.int64)


def to_ids(feature: str, value: Any) -> Any:
    """Make a tensor of int32 or int64 of ids or of bounds.

    Raises
    ------
    InvalidError, OutOfRangeError
        They are no numbers, or there is no such integer.
    """
    if not keras.ops.is_tensor(value) and not isinstance(value, keras.Variable):
        return keras.ops.convert_to_tensor(_read_host(feature, value))
    tensor = keras.ops.convert_to_tensor(value)
    kind = keras.backend.standardize_dtype(tensor.dtype)
    if kind in ("int32", "int64"):
        return tensor
    if kind not in ("uint32", "uint64"):
        return keras.ops.cast(tensor, "int32")
    wide, most = ("int32", 2**31 - 1) if _is_narrow() else ("int64", 2**63 - 1)
    # An id that does not fit becomes the largest one, which no table has, and not another row.
    if kind == "uint64" or _is_narrow():
        tensor = keras.ops.minimum(tensor, keras.ops.convert_to_tensor(most, dtype=kind))
    return keras.ops.cast(tensor, wide)


def _to_weights(feature: str, value: Any, form: str) -> Any:
    if form == RAGGED and is_ragged(value):
        value = split_ragged(feature, value)[0]
    elif form == SPARSE:
        parts = _sparse_parts(feature, value)
        value = value if parts is None else parts[1]
    try:
        return keras.ops.cast(keras.ops.convert_to_tensor(value), "float32")
    except (TypeError, ValueError) as error:
        raise InvalidError(f"feature {feature}: its weights are no numbers in the form of its ids: "
                           f"{error}") from error


def _fits(found: Any, wanted: Any) -> bool:
    """Whether two shapes may be the same, as far as they are known."""
    if getattr(found, "rank", 0) is None:
        return True
    return len(found) == len(wanted) and all(
        one == other or None in (one, other) for one, other in zip(found, wanted, strict=True))


def _refuse_weights(feature: str, weights: Any, shape: Any) -> InvalidError:
    return InvalidError(f"feature {feature}: its weights have the shape {tuple(weights.shape)}, "
                        f"and its ids {tuple(shape)}; give a weight for each id")


def _spread_weights(feature: str, weights: Any, ids: Any, shape: Any) -> Any:
    """Give a dense weight for each id; one that is given for each sample is that of its ids."""
    if _fits(weights.shape, ids.shape):
        return weights
    if not _fits(weights.shape, ids.shape[:-1] if len(shape) > 1 else (*ids.shape, 1)):
        raise _refuse_weights(feature, weights, ids.shape)
    return keras.ops.broadcast_to(keras.ops.expand_dims(weights, -1), shape) \
        if len(shape) > 1 else keras.ops.reshape(weights, (-1,))


def _read_dense(feature: str, value: Any, weights: Any, combiner: str) -> Input:
    ids = to_ids(feature, value)
    shape = tuple(keras.ops.shape(ids))
    if not shape:
        raise InvalidError(f"feature {feature}: its ids are one number; give [samples] or "
                           "[samples, ids]")
    given = None if weights is None else \
        _spread_weights(feature, _to_weights(feature, weights, DENSE), ids, shape)
    if len(shape) == 1:
        # One id is its own mean whatever its weight.
        return Input(DENSE, (ids,), given if combiner == "sum" else None, shape)
    flat = keras.ops.reshape(ids, (-1, ids.shape[-1])) if len(shape) > 2 else ids
    if given is not None:
        given = keras.ops.reshape(given, (-1, ids.shape[-1]))
    return Input(DENSE, (flat,), given, shape[:-1])


def _check_flat(feature: str, ids: Any, weights: Any) -> None:
    """Check ids of bags and their weights as far as their shapes are known."""
    if len(ids.shape) != 1:
        raise InvalidError(f"feature {feature}: its ragged ids have more than two dimensions; "
                           "give [samples, ids]")
    if weights is not None and not _fits(weights.shape, ids.shape):
        raise _refuse_weights(feature, weights, ids.shape)


def _check_alike(feature: str, bounds: Any, others: Any) -> None:
    """Check that bags of weights are as long as those of ids, where both are in no tensor."""
    if isinstance(bounds, numpy.ndarray) and isinstance(others, numpy.ndarray) and \
            not numpy.array_equal(bounds, others):
        raise InvalidError(f"feature {feature}: its bags of weights are not as long as those of "
                           "its ids")


def _read_ragged(feature: str, value: Any, weights: Any) -> Input:
    values, bounds = split_ragged(feature, value)
    if getattr(value, "ragged_rank", 1) != 1:
        raise InvalidError(f"feature {feature}: its ragged tensor has the shape {value.shape}; "
                           "give [samples, ids]")
    if weights is not None and is_ragged(weights):
        _check_alike(feature, bounds, split_ragged(feature, weights)[1])
    ids, splits = to_ids(feature, values), to_ids(feature, bounds)
    given = None if weights is None else _to_weights(feature, weights, RAGGED)
    _check_flat(feature, ids, given)
    return Input(RAGGED, (ids, splits), given, (keras.ops.shape(splits)[0] - 1,))


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
    InvalidError, OutOfRangeError
        The input or its weights have another shape, or no integers.
    """
    if is_ragged(value):
        return _read_ragged(feature, value, weights)
    parts = _sparse_parts(feature, value)
    if parts is None:
        return _read_dense(feature, value, weights, combiner)
    indices, values, shape = parts
    ids = to_ids(feature, values)
    given = None if weights is None else _to_weights(feature, weights, SPARSE)
    _check_flat(feature, ids, given)
    rows = getattr(value, "shape", (None,))[0]
    return Input(SPARSE, (indices, ids, shape), given, (shape[0] if rows is None else rows,))


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

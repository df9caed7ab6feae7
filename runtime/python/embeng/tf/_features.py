# SPDX-License-Identifier: MIT
"""Tensors, sparse tensors and ragged tensors as bags.

A feature of a graph is taken apart into plain tensors (:func:`flatten_feature`), which an op can
have as inputs. The op reads them by their :class:`Form`.
"""
from typing import Any, NamedTuple

import numpy
import tensorflow as tf

from .._errors import InvalidError, OutOfRangeError
from ._forms import DENSE, SEQUENCE, SPARSE, SPLITS, WEIGHTED

_KINDS = {"dense": DENSE, "sparse": SPARSE, "ragged": SPLITS}


class Form(NamedTuple):
    """How the tensors of one feature are to be read.

    Attributes
    ----------
    name : str
        The feature's name in the engine.
    kind : {"dense", "sparse", "ragged"}
        Dense: ids. Sparse: ids, indices, shape. Ragged: ids, splits.
    weighted : bool
        A tensor of weights stands behind them.
    samples : int
        Rows of activations: the product of the feature's output shape.
    sequence : bool
        Each id has a row of its own, even if there are as many rows as samples.
    """

    name: str
    kind: str
    weighted: bool
    samples: int
    sequence: bool = False

    @property
    def parts(self) -> int:
        """How many tensors it has."""
        return {"dense": 1, "sparse": 3, "ragged": 2}[self.kind] + self.weighted

    @property
    def code(self) -> int:
        """Its number for the engine, with the flags of weights and of sequences."""
        flags = WEIGHTED * self.weighted | SEQUENCE * self.sequence
        return _KINDS[self.kind] | flags


def _cast_ids(name: str, ids: Any) -> Any:
    if not ids.dtype.is_integer:
        raise ValueError(f"Input {name} has ids of type {ids.dtype.name}. Give integers.")
    return ids if ids.dtype in (tf.int32, tf.int64) else tf.cast(ids, tf.int64)


def as_tensor(value: Any) -> Any:
    """Return a tensor of an array of numpy, and anything else as it is."""
    return tf.convert_to_tensor(value) if isinstance(value, numpy.ndarray) else value


def _check_weight(name: str, kind: type, words: str, weight: Any) -> None:
    if weight is not None and not isinstance(weight, kind):
        raise ValueError(f"Weight for {name} is type {type(weight)} which does not match type "
                         f"input which is {words}.")


def flatten_feature(name: str, value: Any, weight: Any, samples: int,
                    sequence: bool) -> tuple[Form, list[Any]]:
    """Take the tensors of one feature apart.

    Parameters
    ----------
    name : str
        The feature's name in the engine.
    value : tf.Tensor, tf.SparseTensor or tf.RaggedTensor
        Its ids; those of other integer types are made int64.
    weight : same type or None
        Weights, which a dense input does not have.
    samples : int
        Rows of activations.
    sequence : bool
        The feature has a max_sequence_length that counts.

    Returns
    -------
    form : Form
        How to read them.
    tensors : list of tf.Tensor
        The parts.
    """
    if isinstance(value, tf.SparseTensor):
        _check_weight(name, tf.SparseTensor, "SparseTensor", weight)
        parts = [_cast_ids(name, value.values), value.indices, value.dense_shape]
        kind = "sparse"
    elif isinstance(value, tf.RaggedTensor):
        _check_weight(name, tf.RaggedTensor, "RaggedTensor", weight)
        parts = [_cast_ids(name, value.values), value.row_splits]
        kind = "ragged"
    elif isinstance(value, tf.Tensor):
        if weight is not None:
            raise ValueError(f"Weight specified for dense input {name}, which is not allowed. Each "
                             "of its ids is a bag of its own, with weight 1.")
        parts = [tf.reshape(_cast_ids(name, value), [-1])]
        kind = "dense"
    else:
        raise ValueError(f"Input {name} is of unknown type {type(value)}. Give a tf.Tensor, "
                         "tf.SparseTensor or tf.RaggedTensor.")
    if weight is not None:
        if sequence:
            raise ValueError(f"Weight specified for {name}, but this is a sequence feature, whose "
                             "rows are not combined.")
        parts.append(tf.cast(weight.values, tf.float32))
    return Form(name, kind, weight is not None, samples, sequence), parts


def check_splits(name: str, splits: Any, ids: int) -> None:
    """Check the splits of a ragged tensor of some ids.

    Raises
    ------
    InvalidError
        They do not start at 0, fall, or do not end at the number of ids.
    """
    least = numpy.concatenate([[0], splits[:-1]])
    most = numpy.full(len(splits), ids)
    most[:1] = 0
    least[-1:] = most[-1:]
    wrong = numpy.flatnonzero((splits < least) | (splits > most))
    if len(wrong):
        raise InvalidError(f"feature {name}: splits[{wrong[0]}] is {splits[wrong[0]]}; splits "
                           f"start at 0, never fall, and end at the {ids} ids")


def find_samples(name: str, indices: Any, values: Any, shape: Any) -> Any:
    """Find the samples of the ids of a sparse tensor: all indices but the last one.

    Parameters
    ----------
    name : str
        The feature's name, for messages.
    indices, values, shape : ndarray
        Parts of the tensor.

    Returns
    -------
    ndarray of int64
        ``[ids]``, numbers of samples.

    Raises
    ------
    InvalidError
        There are more or fewer indices than ids.
    OutOfRangeError
        An index is outside the shape.
    """
    if len(indices) != len(values):
        raise InvalidError(f"feature {name}: its sparse tensor has {len(indices)} indices for "
                           f"{len(values)} ids")
    leading, lengths = indices[:, :-1], numpy.asarray(shape[:-1])
    wrong = numpy.argwhere((leading < 0) | (leading >= lengths))
    if len(wrong):
        row, axis = wrong[0]
        raise OutOfRangeError(f"feature {name}: indices[{row}][{axis}] is {leading[row, axis]}, "
                              f"and the shape has {lengths[axis]} there")
    if not len(indices):
        return numpy.zeros(0, numpy.int64)
    return numpy.ravel_multi_index(tuple(leading.T), tuple(lengths))

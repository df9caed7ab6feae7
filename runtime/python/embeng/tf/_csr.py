# SPDX-License-Identifier: MIT
"""Features of a table as one list of (sample, id, gain), as SparseCores take them.

There is one SparseCore with one partition, and its list is not padded: `row_pointers` has one
number, the length. Entries are in the order of their ids, then of their samples; an id that a
sample has several times is one entry, with the sum of its gains. Gains are weights times what the
combiner asks for, so that activations are sums.

core/entries.c does the same for operators of TensorFlow, and has the same bits and sentences.
"""
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy

from .._errors import InvalidError, OutOfRangeError
from .._inputs import Sparse
from ._features import Form, check_splits, find_samples


class TableFeatures(NamedTuple):
    """The features of a table, of which a list is to be made.

    Attributes
    ----------
    table : TableConfig
        The table.
    forms : list of Form
        How its features are to be read, one after another.
    tensors : list of tf.Tensor
        The parts of all features.
    """

    table: Any
    forms: list[Form]
    tensors: list[Any]

    @property
    def samples(self) -> int:
        """Samples of all features."""
        return sum(form.samples for form in self.forms)


class Entries(NamedTuple):
    """A list of entries.

    Attributes
    ----------
    samples, ids : ndarray of int32
        ``[entries]``.
    gains : ndarray of float32
        ``[entries]``.
    """

    samples: Any
    ids: Any
    gains: Any


def list_entries(form: Form, arrays: Sequence[Any], table: Any) -> Entries:
    """List the entries of one feature, in the order of its input.

    Parameters
    ----------
    form : Form
        How to read the arrays; `form.samples` is the number of samples.
    arrays : sequence of ndarray
        Parts of the feature, as :func:`embeng.tf._features.flatten_feature` makes them.
    table : TableConfig
        Its table.

    Raises
    ------
    InvalidError
        The input has another number of samples, or another number of weights than of ids.
    OutOfRangeError
        An id is outside the table.
    """
    if form.kind == "dense":
        ids, count = arrays[0], len(arrays[0])
        samples = numpy.arange(count)
    elif form.kind == "sparse":
        ids, indices, shape = arrays[0], arrays[1], arrays[2]
        count = int(numpy.prod(shape[:-1]))
        samples = find_samples(form.name, indices, ids, shape)
    else:
        ids, count = arrays[0], len(arrays[1]) - 1
        check_splits(form.name, arrays[1], len(ids))
        samples = numpy.repeat(numpy.arange(count), numpy.diff(arrays[1]))
    if count != form.samples:
        raise InvalidError(f"feature {form.name}: the input has {count} samples, and the output "
                           f"shape has {form.samples}")
    gains = arrays[-1] if form.weighted else numpy.ones(len(ids), numpy.float32)
    if len(gains) != len(ids):
        raise InvalidError(f"feature {form.name}: there are {len(gains)} weights for {len(ids)} "
                           "ids")
    wrong = numpy.flatnonzero((ids < 0) | (ids >= table.vocabulary_size))
    if len(wrong):
        raise OutOfRangeError(
            f"feature {form.name}, sample {samples[wrong[0]]}: id {ids[wrong[0]]} is outside table "
            f"{table.name}, which has rows 0 to {table.vocabulary_size - 1}; correct the id")
    scales = _scale_samples(samples, gains, count, table.combiner)
    return Entries(samples, ids, gains * scales[samples])


def _scale_samples(samples: Any, gains: Any, count: int, combiner: str) -> Any:
    if combiner == "sum":
        return numpy.ones(count, numpy.float32)
    parts = gains if combiner == "mean" else gains * gains
    sums = numpy.bincount(samples, parts.astype(numpy.float64), count)
    if combiner == "sqrtn":
        sums = numpy.sqrt(sums)
    scales = numpy.zeros(count, numpy.float32)
    numpy.divide(1.0, sums, out=scales, where=sums != 0, casting="same_kind")
    return scales


def join_entries(features: Sequence[Entries], offsets: Sequence[int]) -> Entries:
    """Join the entries of a table's features into one list, in its order.

    Parameters
    ----------
    features : sequence of Entries
        Features of the table.
    offsets : sequence of int
        The number of each feature's first sample.

    Notes
    -----
    Gains of equal entries are summed in float64, in the order of the input, and rounded once.
    """
    samples = numpy.concatenate([entries.samples + offset for entries, offset
                                 in zip(features, offsets, strict=True)]).astype(numpy.int64)
    ids = numpy.concatenate([entries.ids for entries in features]).astype(numpy.int64)
    gains = numpy.concatenate([entries.gains for entries in features]).astype(numpy.float32)
    order = numpy.lexsort((samples, ids))
    samples, ids, gains = samples[order], ids[order], gains[order]
    if not len(ids):
        return Entries(samples.astype(numpy.int32), ids.astype(numpy.int32), gains)
    first = numpy.concatenate([[True], (numpy.diff(ids) != 0) | (numpy.diff(samples) != 0)])
    sums = numpy.bincount(numpy.cumsum(first) - 1, gains.astype(numpy.float64))
    return Entries(samples[first].astype(numpy.int32), ids[first].astype(numpy.int32),
                   sums.astype(numpy.float32))


def list_table(features: TableFeatures, arrays: Sequence[Any]) -> Entries:
    """List the entries of a table's features, which are given as arrays of their tensors."""
    found, at = [], 0
    offsets = numpy.cumsum([0, *(form.samples for form in features.forms)]).tolist()
    for form in features.forms:
        found.append(list_entries(form, arrays[at:at + form.parts], features.table))
        at += form.parts
    return join_entries(found, offsets[:-1])


def make_input(table: str, entries: Entries, samples: int) -> Sparse:
    """Make bags for the engine of a table's entries: one a sample, with gains as weights.

    Raises
    ------
    InvalidError
        The arrays have different lengths.
    OutOfRangeError
        A sample is none of `samples`.
    """
    lengths = [len(array) for array in entries]
    if len(set(lengths)) > 1:
        raise InvalidError("table {}: there are {} samples, {} ids and {} gains of entries; give "
                           "what preprocess_features() returned".format(table, *lengths))
    wrong = numpy.flatnonzero((entries.samples < 0) | (entries.samples >= samples))
    if len(wrong):
        raise OutOfRangeError(
            f"table {table}: sorted_sample_ids[{wrong[0]}] is {entries.samples[wrong[0]]}, and "
            f"there are {samples} samples; give what preprocess_features() returned")
    order = numpy.argsort(entries.samples, kind="stable")
    indices = numpy.zeros((len(order), 2), numpy.int64)
    indices[:, 0] = entries.samples[order]
    indices[:, 1] = numpy.arange(len(order))
    return Sparse(indices, entries.ids[order], (samples, max(len(order), 1)), entries.gains[order])

# SPDX-License-Identifier: MIT
"""Batches of sparse matrices for SparseCores, under the name of jax-tpu-embedding."""
from typing import Any

import jax
import numpy

from .._errors import InvalidError
from .preprocessing import (PreprocessedInput, SparseDenseMatmulInputStats, flatten_like,
                            preprocess_sparse_dense_matmul_input)


def rows_of_coordinates(indices: Any, values: Any, dense_shape: Any) -> Any:
    """Return the ids of a sparse matrix as an array of arrays, one for each sample.

    Parameters
    ----------
    indices : array_like of int64
        ``[ids, 2]``: the sample of each id, which never falls, and its place there.
    values : array_like of int
        ``[ids]``.
    dense_shape : sequence of int
        Samples, and the most ids of one.
    """
    samples = numpy.asarray(indices).reshape(-1, 2)[:, 0]
    if len(samples) and (numpy.diff(samples) < 0).any():
        raise InvalidError("indices: samples fall; sort them")
    bounds = numpy.searchsorted(samples, numpy.arange(int(dense_shape[0]) + 1))
    values = numpy.asarray(values)
    rows = numpy.empty(int(dense_shape[0]), object)
    for sample in range(len(rows)):
        rows[sample] = values[bounds[sample]:bounds[sample + 1]]
    return rows


def preprocess_sparse_dense_matmul_input_from_sparse_tensor(
        indices: Any, values: Any, dense_shapes: Any, feature_specs: Any, local_device_count: int,
        global_device_count: int, **options: Any) -> tuple[
            PreprocessedInput, SparseDenseMatmulInputStats]:
    """Partition a batch of sparse matrices; every weight is 1.

    Parameters
    ----------
    indices, values, dense_shapes : nested array_like
        In the structure of the specifications, as for :func:`rows_of_coordinates`.
    feature_specs, local_device_count, global_device_count, **options
        As for :func:`preprocess_sparse_dense_matmul_input`.

    Returns
    -------
    PreprocessedInput, SparseDenseMatmulInputStats
        As of that function.
    """
    parts = [flatten_like(feature_specs, given, what) for given, what in (
        (indices, "indices"), (values, "values"), (dense_shapes, "dense_shapes"))]
    structure = jax.tree.structure(feature_specs)
    features = [rows_of_coordinates(*one) for one in zip(*parts, strict=True)]
    return preprocess_sparse_dense_matmul_input(
        jax.tree.unflatten(structure, features), None, feature_specs, local_device_count,
        global_device_count, **options)

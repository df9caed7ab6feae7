# SPDX-License-Identifier: MIT
"""Bags of ids in the forms in which frameworks hold them. The extension reads these tuples."""
from typing import Any, NamedTuple


class Ragged(NamedTuple):
    """Bags of any length, one after another.

    Exactly one of `splits`, `lengths` and `starts` says where they begin. With none of them,
    `values` is one id a bag, or a matrix ``[bags, ids]``.

    Parameters
    ----------
    values : array_like of int32 or int64
        Ids of all bags, ``[ids]``.
    splits : array_like of int32 or int64, optional
        ``[bags + 1]``, from 0 up to ``len(values)``.
    lengths : array_like of int32 or int64, optional
        ``[bags]``, ids of each bag.
    starts : array_like of int32 or int64, optional
        ``[bags]``, splits without the last one, as ``torch.nn.EmbeddingBag`` has offsets.
    weights : array_like of float32, optional
        A weight for each id; 1 without it.
    padding : int, optional
        Ids that equal it are as if they were not there.
    """

    values: Any
    splits: Any = None
    lengths: Any = None
    starts: Any = None
    weights: Any = None
    padding: int | None = None

    @classmethod
    def from_lists(cls, bags: Any, weights: Any = None) -> "Ragged":
        """Make it of a list of lists of ids, and as many lists of weights."""
        lengths = [len(bag) for bag in bags]
        values = [i for bag in bags for i in bag]
        if weights is None:
            return cls(values, lengths=lengths)
        if [len(bag) for bag in weights] != lengths:
            raise ValueError("weights: their lists are not as long as those of the ids")
        return cls(values, lengths=lengths, weights=[w for bag in weights for w in bag])

    @classmethod
    def from_scipy(cls, matrix: Any, *, weighted: bool = True) -> "Ragged":
        """Make it of a sparse matrix of scipy: a bag a row, ids are columns, values are weights."""
        csr = matrix.tocsr()
        return cls(csr.indices, splits=csr.indptr, weights=csr.data if weighted else None)

    @classmethod
    def from_arrow(cls, array: Any) -> "Ragged":
        """Make it of a list array of pyarrow, in which a null is an empty bag."""
        if hasattr(array, "combine_chunks"):
            array = array.combine_chunks()
        if array.null_count:
            lengths = [0 if n is None else n for n in array.value_lengths().to_pylist()]
            return cls(array.flatten().to_numpy(zero_copy_only=False), lengths=lengths)
        offsets = array.offsets.to_numpy()
        return cls(array.flatten().to_numpy(zero_copy_only=False), splits=offsets - offsets[0])


class Sparse(NamedTuple):
    """Bags as coordinates, as ``tf.SparseTensor`` and ``scipy.sparse.coo_array`` have them.

    Parameters
    ----------
    indices : array_like of int64
        ``[ids, rank]``; samples, all but the last index, never fall.
    values : array_like of int32 or int64
        ``[ids]``.
    shape : sequence of int
        ``[rank]``, from 2.
    weights : array_like of float32, optional
        A weight for each id; 1 without it.
    """

    indices: Any
    values: Any
    shape: Any
    weights: Any = None


class Keyed(NamedTuple):
    """Bags of several features, one after another, as torchrec's KeyedJaggedTensor has them.

    It stands for the whole dictionary of inputs: :meth:`Engine.lookup` then returns one array, and
    :meth:`Engine.update` takes one. Without `samples` that is ``[bags, sum of dims]``: the features
    that are given stand side by side, in the engine's order. With `samples` it is ``[elements]``: a
    feature after another, ``[bags, dim]`` each.

    Parameters
    ----------
    features : tuple
        For each key the name of a feature, None if nobody wants it, or a tuple of names if several
        features are looked up by it.
    values : array_like of int32 or int64
        Ids of the first key's bags, then of the second one's, and so on.
    lengths : array_like of int32 or int64, optional
        Ids of each bag, in the same order. Without it each id is a bag.
    weights : array_like of float32, optional
        A weight for each id; 1 without it.
    samples : sequence of int, optional
        Bags of each key. Without it all keys have as many.
    """

    features: tuple[Any, ...]
    values: Any
    lengths: Any = None
    weights: Any = None
    samples: Any = None

    @classmethod
    def from_jagged(cls, jagged: Any) -> "Keyed":
        """Make it of a KeyedJaggedTensor, ours or torchrec's, whose keys are names of features."""
        lengths = jagged.lengths_or_none()
        if lengths is None:
            offsets = jagged.offsets_or_none()
            lengths = offsets[1:] - offsets[:-1]
        varies = getattr(jagged, "variable_stride_per_key", None)
        samples = list(jagged.stride_per_key()) if varies is not None and varies() else None
        return cls(tuple(jagged.keys()), jagged.values(), lengths, jagged.weights_or_none(),
                   samples)

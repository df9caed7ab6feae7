# SPDX-License-Identifier: MIT
"""An embedding of a variable of Keras whose rows are combined, for tables on the default device."""
from typing import Any

from .._errors import InvalidError
from ._framework import keras, load_module
from ._inputs import PADDING, is_ragged, is_sparse, pad

COMBINERS = ("mean", "sum", "sqrtn")


def _pad_ragged(value: Any, kind: str, filler: Any) -> Any:
    """Make a dense tensor of bags of different lengths."""
    if keras.backend.backend() == "tensorflow" and hasattr(value, "to_tensor"):
        return value.to_tensor(filler)
    if keras.backend.backend() == "torch" and getattr(value, "is_nested", False):
        import torch

        return torch.nested.to_padded_tensor(value, filler)
    return keras.ops.convert_to_tensor(pad("inputs", value, kind, filler, 0))


def _fill_sparse(value: Any, kind: str) -> tuple[Any, Any]:
    """Make dense ids of a sparse tensor, and 1 where one is."""
    marks: Any
    backend = keras.backend.backend()
    if backend == "tensorflow":
        tf = load_module("tensorflow")
        ids = tf.sparse.to_dense(value, default_value=PADDING)
        return ids, tf.cast(ids != PADDING, kind)
    if backend == "jax":
        import jax.numpy as jnp
        from jax.experimental import sparse

        if type(value).__name__ == "BCSR":
            value = value.to_bcoo()
        indices, data = jnp.asarray(value.indices), jnp.asarray(value.data)
        marks = sparse.BCOO((jnp.ones(data.shape, kind), indices), shape=value.shape)
        return sparse.BCOO((data, indices), shape=value.shape).todense(), marks.todense()
    import torch

    held = value.to_sparse_coo().coalesce()
    marks = torch.sparse_coo_tensor(held.indices(), torch.ones_like(held.values(),
                                                                    dtype=torch.float32),
                                    held.shape)
    return held.to_dense(), marks.to_dense()


def densify(inputs: Any, weights: Any) -> tuple[Any, Any]:
    """Make dense ids, and weights that are 0 where there is no id; None where all are there.

    Parameters
    ----------
    inputs : tensor
        Dense, ragged or sparse ids; -1 is no id.
    weights : tensor or None
        They have the form of the ids.

    Returns
    -------
    (tensor, tensor or None)
        Ids and weights.
    """
    kind = keras.backend.floatx()
    if is_sparse(inputs):
        ids, marks = _fill_sparse(inputs, kind)
        dense = None if weights is None else _fill_weights(weights, kind)
    elif is_ragged(inputs):
        ids = _pad_ragged(inputs, "int32", PADDING)
        marks = keras.ops.cast(ids >= 0, kind)
        dense = None if weights is None else _pad_ragged(weights, kind, 0.0)
    else:
        ids, dense = keras.ops.convert_to_tensor(inputs), weights
        marks = keras.ops.cast(ids >= 0, kind)
    ids = keras.ops.maximum(ids, 0)
    if dense is None:
        return ids, marks
    dense = keras.ops.cast(keras.ops.convert_to_tensor(dense), kind)
    if len(dense.shape) < len(ids.shape):
        dense = keras.ops.expand_dims(dense, -1)
    return ids, dense * marks


def _fill_weights(weights: Any, kind: str) -> Any:
    if not is_sparse(weights):
        return weights
    if keras.backend.backend() == "tensorflow":
        tf = load_module("tensorflow")
        return tf.sparse.to_dense(weights)
    return keras.ops.cast(_fill_sparse(weights, kind)[0], kind)


@keras.saving.register_keras_serializable("embeng")
class EmbedReduce(keras.layers.Embedding):
    """Look ids up in a variable of Keras, and combine the rows of a sample.

    Ids ``[samples]`` give their rows; of ids ``[samples, n]``, and of ragged and sparse ones, the
    rows of a sample are combined. The id -1 stands for none.

    Parameters
    ----------
    input_dim, output_dim : int
        Rows and columns.
    embeddings_initializer : str or keras.initializers.Initializer
        How rows start.
    combiner : {"mean", "sum", "sqrtn"}
        How rows are combined.
    **options
        For :class:`keras.layers.Embedding`.

    Raises
    ------
    InvalidError
        The combiner is none of these.
    """

    def __init__(self, input_dim: int, output_dim: int, embeddings_initializer: Any = "uniform", *,
                 combiner: str = "mean", **options: Any):
        super().__init__(input_dim, output_dim, embeddings_initializer=embeddings_initializer,
                         **options)
        if combiner not in COMBINERS:
            raise InvalidError(f"the combiner {combiner!r} is none of {', '.join(COMBINERS)}")
        self.combiner = combiner
        self._convert_input_args = False
        self._allow_non_tensor_positional_args = True

    def call(self, inputs: Any, weights: Any = None) -> Any:
        """Look up and combine.

        Parameters
        ----------
        inputs : tensor
            Ids: dense ``[samples]`` or ``[samples, n]``, ragged, or sparse.
        weights : tensor, optional
            They have the form of the ids; 1 without them.

        Returns
        -------
        tensor
            ``[samples, output_dim]``.
        """
        flat = not is_sparse(inputs) and not is_ragged(inputs) and \
            len(keras.ops.shape(inputs)) == 1
        # One id is its own mean whatever its weight.
        ids, factors = densify(inputs, None if flat and self.combiner != "sum" else weights)
        rows = super().call(ids)
        factors = keras.ops.cast(factors, rows.dtype)
        if flat:
            return rows * keras.ops.expand_dims(factors, -1)
        total = keras.ops.sum(rows * keras.ops.expand_dims(factors, -1), axis=-2)
        if self.combiner == "sum":
            return total
        squared = self.combiner == "sqrtn"
        divisor = keras.ops.sum(keras.ops.square(factors) if squared else factors, axis=-1,
                                keepdims=True)
        return keras.ops.divide_no_nan(total, keras.ops.sqrt(divisor) if squared else divisor)

    def compute_output_shape(self, input_shape: Any, weights_shape: Any = None) -> Any:
        """Compute ``(samples, output_dim)``."""
        outer = input_shape if len(input_shape) <= 1 else input_shape[:-1]
        return (*outer, self.output_dim)

    def compute_output_spec(self, inputs: Any, weights: Any = None) -> Any:
        """Describe the result, which is dense."""
        return keras.KerasTensor(self.compute_output_shape(inputs.shape), dtype=self.compute_dtype)

    def get_config(self) -> dict[str, Any]:
        """Return the arguments of the constructor."""
        return {**super().get_config(), "combiner": self.combiner}

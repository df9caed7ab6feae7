# SPDX-License-Identifier: MIT
"""EmbeddingConfigSpec: tables by feature columns, as ``TPUEstimator`` took them, for an engine.

TensorFlow 2.21 has no estimators, and none of the classes of this module. It still has
``tf.compat.v1.tpu.experimental.embedding_column`` and ``shared_embedding_columns``, and the
categorical columns below them. A specification of these is opened here as a :class:`SpecEmbedding`,
which looks their features up and trains their tables within a program's own training step.
"""
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy
import tensorflow as tf

from .._engine import Engine, Feature, Table
from .._errors import InvalidError, NotSupportedError
from .._inputs import Ragged, Sparse
from ..initializers import Initializer
from ..optimizers import Optimizer
from . import ops

_Rate = Callable[[Any], Any]


class AdagradParameters(NamedTuple):
    """Adagrad for all tables; ``tf.tpu.experimental.AdagradParameters`` had these names."""

    learning_rate: float
    initial_accumulator: float = 0.1
    use_gradient_accumulation: bool = True
    clip_weight_min: float | None = None
    clip_weight_max: float | None = None
    weight_decay_factor: float | None = None
    multiply_weight_decay_factor_by_learning_rate: bool | None = None
    clip_gradient_min: float | None = None
    clip_gradient_max: float | None = None


class AdamParameters(NamedTuple):
    """Adam for all tables; ``tf.tpu.experimental.AdamParameters`` had these names."""

    learning_rate: float
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    lazy_adam: bool = True
    sum_inside_sqrt: bool = True
    use_gradient_accumulation: bool = True
    clip_weight_min: float | None = None
    clip_weight_max: float | None = None
    weight_decay_factor: float | None = None
    multiply_weight_decay_factor_by_learning_rate: bool | None = None
    clip_gradient_min: float | None = None
    clip_gradient_max: float | None = None


class StochasticGradientDescentParameters(NamedTuple):
    """Gradient descent for all tables, as the class of ``tf.tpu.experimental`` of this name."""

    learning_rate: float
    use_gradient_accumulation: bool = True
    clip_weight_min: float | None = None
    clip_weight_max: float | None = None
    weight_decay_factor: float | None = None
    multiply_weight_decay_factor_by_learning_rate: bool | None = None
    clip_gradient_min: float | None = None
    clip_gradient_max: float | None = None


Parameters = AdagradParameters | AdamParameters | StochasticGradientDescentParameters
_KINDS = {AdagradParameters: "adagrad", AdamParameters: "adam",
          StochasticGradientDescentParameters: "sgd"}
# Settings of the engine that have another name.
_NAMES = {"initial_accumulator": "initial_accumulator_value", "beta1": "beta_1", "beta2": "beta_2",
          "clip_gradient_min": "clip_min", "clip_gradient_max": "clip_max",
          "multiply_weight_decay_factor_by_learning_rate": "multiply_weight_decay_by_rate"}


class TableConfig(NamedTuple):
    """One table of `table_to_config_dict`.

    Parameters
    ----------
    vocabulary_size, dimension : int
        Rows and columns.
    initializer : callable, optional
        An initializer of TensorFlow: called with a shape and a type.
    combiner : {"mean", "sum", "sqrtn"}
        How the rows of a bag become one.
    learning_rate : float, optional
        A rate in the place of that of the parameters.
    learning_rate_fn : callable, optional
        A rate as a function of the global step.
    optimization_parameters : Parameters, optional
        Parameters in the place of the specification's.
    """

    vocabulary_size: int
    dimension: int
    initializer: Any = None
    combiner: str = "mean"
    learning_rate: float | None = None
    learning_rate_fn: _Rate | None = None
    optimization_parameters: Parameters | None = None


class FeatureConfig(NamedTuple):
    """One feature of `feature_to_config_dict`.

    Parameters
    ----------
    table_id : str
        A key of `table_to_config_dict`.
    max_sequence_length : int
        0 combines the ids of a sample; L > 0 gives a row to each of the first L.
    weight_key : str, optional
        The key of the input that has the weights.
    """

    table_id: str
    max_sequence_length: int = 0
    weight_key: str | None = None


def _is_tpu_column(column: Any) -> bool:
    return hasattr(column, "get_embedding_var_name") and hasattr(column, "get_combiner")


def _check_column(column: Any) -> None:
    if not _is_tpu_column(column):
        raise TypeError(
            f"feature column {getattr(column, 'name', column)!r} is a {type(column).__name__}; "
            "make it by tf.compat.v1.tpu.experimental.embedding_column or shared_embedding_columns")


def _make_optimizer(parameters: Parameters, rate: float | str, limit: float | None) -> Optimizer:
    given = parameters._asdict()
    del given["learning_rate"]
    settings = {_NAMES.get(name, name): value for name, value in given.items() if value is not None}
    if limit is not None:
        settings["clip_min"] = max(settings.get("clip_min", -limit), -limit)
        settings["clip_max"] = min(settings.get("clip_max", limit), limit)
    return Optimizer(_KINDS[type(parameters)], rate, **settings)


class EmbeddingConfigSpec:
    """Feature columns and their optimizer, as ``tf.estimator.tpu.experimental`` had them.

    Parameters
    ----------
    feature_columns : sequence of column, optional
        Columns of ``tf.compat.v1.tpu.experimental.embedding_column`` and
        ``shared_embedding_columns``.
    optimization_parameters : Parameters
        The optimizer of all tables.
    clipping_limit : float, optional
        Gradients of activations are cut to at most this absolute value, as sums of a row.
    pipeline_execution_with_tensor_core : bool
        It has no effect: the engine looks up rows that have all updates, which costs no wait here.
    experimental_gradient_multiplier_fn : callable, optional
        From the global step to a factor of all gradients.
    feature_to_config_dict, table_to_config_dict : mapping, optional
        From names to :class:`FeatureConfig` and :class:`TableConfig`, in the place of columns.
    partition_strategy : {"div", "mod"}
        It has no effect on numbers: there is one host.
    profile_data_directory : str, optional
        It is refused.

    Raises
    ------
    ValueError
        Neither columns nor the two dictionaries are given, or the optimizer is none of the three.
    TypeError
        A column is of another kind.
    NotSupportedError
        There is a `profile_data_directory`.
    """

    def __init__(self, feature_columns: Iterable[Any] | None = None,
                 optimization_parameters: Parameters | None = None,
                 clipping_limit: float | None = None,
                 pipeline_execution_with_tensor_core: bool = False,
                 experimental_gradient_multiplier_fn: _Rate | None = None,
                 feature_to_config_dict: Mapping[str, FeatureConfig] | None = None,
                 table_to_config_dict: Mapping[str, TableConfig] | None = None,
                 partition_strategy: str = "div", profile_data_directory: str | None = None):
        columns = list(feature_columns or ())
        has_dicts = bool(feature_to_config_dict) and bool(table_to_config_dict)
        if bool(columns) == has_dicts:
            raise ValueError("give either feature_columns, or both feature_to_config_dict and "
                             "table_to_config_dict")
        for column in columns:
            _check_column(column)
        if not isinstance(optimization_parameters, (AdagradParameters, AdamParameters,
                                                    StochasticGradientDescentParameters)):
            raise ValueError(f"optimization_parameters is {optimization_parameters!r}; give "
                             f"{', '.join(kind.__name__ for kind in _KINDS)}")
        if clipping_limit is not None and not clipping_limit > 0:
            raise ValueError(f"clipping_limit is {clipping_limit}; give a number above 0")
        if partition_strategy not in ("div", "mod"):
            raise ValueError(f"partition_strategy is {partition_strategy!r}; give 'div' or 'mod'")
        if profile_data_directory is not None:
            raise NotSupportedError("profile_data_directory: the engine does not place tables by a "
                                    "profile; embeng.Engine.stats() has statistics of lookups")
        self.feature_columns = columns
        self.optimization_parameters: Parameters = optimization_parameters
        self.clipping_limit = clipping_limit
        self.gradient_multiplier_fn = experimental_gradient_multiplier_fn
        self.features, self.tables = self._read_columns() if columns else (
            dict(feature_to_config_dict or {}), dict(table_to_config_dict or {}))
        missing = [f.table_id for f in self.features.values() if f.table_id not in self.tables]
        if missing:
            raise ValueError(f"there is no table {missing[0]!r} in table_to_config_dict, which has "
                             f"{list(self.tables)}")

    def _read_columns(self) -> tuple[dict[str, FeatureConfig], dict[str, TableConfig]]:
        features: dict[str, FeatureConfig] = {}
        tables: dict[str, TableConfig] = {}
        for column in self.feature_columns:
            rows, dim = column.get_embedding_table_size()
            table = TableConfig(rows, dim, column.get_initializer(), column.get_combiner(),
                                learning_rate_fn=column.get_learning_rate_fn())
            name = column.get_embedding_var_name()
            if tables.setdefault(name, table)[:2] != table[:2]:
                raise ValueError(f"two feature columns have the table {name} with different shapes")
            features[column.name] = FeatureConfig(name, column.get_max_sequence_length())
        return features, tables

    def open(self, *, global_step: Any = None, **options: Any) -> "SpecEmbedding":
        """Open an engine with the tables.

        Parameters
        ----------
        global_step : tf.Variable, optional
            The step of rates and of the multiplier. By default there is one that counts updates.
        **options
            Options of :class:`embeng.Engine`.
        """
        return SpecEmbedding(self, global_step, options)


class SpecEmbedding(tf.Module):
    """The open tables of an :class:`EmbeddingConfigSpec`.

    Attributes
    ----------
    engine : embeng.Engine
        The tables, for rows, slots and checkpoints.
    anchor : tf.Variable
        Its gradient is an update of the tables, and zeros; leave it to the tape with the model's
        other variables.
    global_step : tf.Variable
        The step of rates and of the multiplier.
    """

    def __init__(self, spec: EmbeddingConfigSpec, global_step: Any, options: dict[str, Any]):
        super().__init__()
        self._spec = spec
        self._rates: dict[str, _Rate] = {}
        features = [Feature(name, config.table_id, config.max_sequence_length)
                    for name, config in spec.features.items()]
        self.engine = Engine([self._make_table(name) for name in spec.tables], features, **options)
        for name, config in spec.tables.items():
            if config.initializer is not None:
                shape = (config.vocabulary_size, config.dimension)
                self.engine[name].write(numpy.asarray(config.initializer(shape, tf.float32)))
        self.anchor = tf.Variable(0.0, name="anchor")
        self._counts = global_step is None
        self.global_step = tf.Variable(0, trainable=False, dtype=tf.int64, name="global_step") \
            if global_step is None else global_step

    def _make_table(self, name: str) -> Table:
        spec, config = self._spec, self._spec.tables[name]
        parameters = config.optimization_parameters or spec.optimization_parameters
        rate: float | str = parameters.learning_rate
        if config.learning_rate is not None:
            rate = config.learning_rate
        if config.learning_rate_fn is not None:
            if config.learning_rate is not None:
                raise InvalidError(f"table {name}: it has a learning_rate and a learning_rate_fn")
            rate = f"rate_{len(self._rates)}"
            self._rates[rate] = config.learning_rate_fn
        start = None if config.initializer is None else Initializer("constant")
        return Table(name, config.vocabulary_size, config.dimension, config.combiner,
                     _make_optimizer(parameters, rate, spec.clipping_limit), start)

    def _read_column(self, column: Any, cache: Any) -> Any:
        ids, weights = column.categorical_column.get_sparse_tensors(cache, None)
        if column.get_max_sequence_length():
            shape = ids.dense_shape
            ids = tf.sparse.reshape(ids, tf.stack([shape[0], tf.reduce_prod(shape[1:])]))
        return Sparse(ids.indices, ids.values, ids.dense_shape,
                      None if weights is None else weights.values)

    def _read_feature(self, name: str, config: FeatureConfig, inputs: Mapping[str, Any]) -> Any:
        given = inputs[name]
        if config.weight_key is None:
            return given
        weights = inputs[config.weight_key]
        if isinstance(given, tf.SparseTensor):
            return Sparse(given.indices, given.values, given.dense_shape, weights.values)
        if isinstance(given, tf.RaggedTensor):
            return Ragged(given.values, splits=given.row_splits, weights=weights.values)
        return Ragged(given, weights=weights)

    def read_inputs(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Make the engine's inputs of a program's, by the categorical columns if there are any."""
        if not self._spec.feature_columns:
            return {name: self._read_feature(name, config, inputs)
                    for name, config in self._spec.features.items()}
        cache = tf.__internal__.feature_column.FeatureTransformationCache(dict(inputs))
        return {column.name: self._read_column(column, cache)
                for column in self._spec.feature_columns}

    def __call__(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Look a batch up.

        Parameters
        ----------
        inputs : mapping of str to tf.Tensor, tf.SparseTensor or tf.RaggedTensor
            Inputs of the categorical columns by their keys, or ids by the names of features.

        Returns
        -------
        dict of str to tf.Tensor
            Activations by the name of the column or feature: ``[samples, dim]``, of sequences
            ``[samples, max_sequence_length, dim]``. A tape that computes the gradient of
            :attr:`anchor` has the tables updated.
        """
        multiplier = self._spec.gradient_multiplier_fn
        return ops.trained_lookup(
            self.engine, self.read_inputs(inputs), self.anchor,
            rates={name: self._at_step(rate) for name, rate in self._rates.items()},
            multiplier=None if multiplier is None else self._at_step(multiplier),
            counter=self.global_step if self._counts else None)

    def _at_step(self, function: _Rate) -> Callable[[], Any]:
        return lambda: function(self.global_step)

    def input_layer(self, inputs: Mapping[str, Any]) -> Any:
        """Look a batch up; return the activations side by side, in the order of their names.

        That is what a layer DenseFeatures of the columns gives; sequences are not among them.
        """
        found = self(inputs)
        names = [name for name, config in sorted(self._spec.features.items())
                 if not config.max_sequence_length]
        return tf.concat([found[name] for name in names], 1)

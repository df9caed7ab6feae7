# SPDX-License-Identifier: MIT
"""TPUEmbeddingV2: lookups by lists of entries, as SparseCores have them."""
import os
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from .._engine import Engine, Feature
from .._errors import NotSupportedError
from . import _ops
from ._csr import Entries, TableFeatures
from ._features import Form, as_tensor, flatten_feature
from ._private import PartitionedCsrFormatTensor, TPUEmbeddingBase
from ._settings import gather_rates, name_features, translate_table
from ._strategy import TPUStrategy, do_not_convert, in_replica, replica_number
from ._tables import create_variables

_Base: Any = tf.tpu.experimental.embedding.TPUEmbeddingV2


def _shape_as(tensor: Any, shape: list[int]) -> Any:
    """Reshape a tensor, if its shape is another one; the first length may be -1, for any."""
    known = tensor.shape
    same = known.rank == len(shape) and all(
        wanted == -1 or length == wanted for length, wanted in zip(known, shape, strict=True))
    return tensor if same else tf.reshape(tensor, shape)


class ByTable(dict[str, Any]):
    """A dict by names of tables, which can also be asked by TableConfig."""

    def __missing__(self, key: Any) -> Any:
        name = getattr(key, "name", None)
        if name is None or name not in self:
            raise KeyError(key)
        return self[name]


class TPUEmbeddingV2(_Base):
    """Tables that are looked up and updated in any order.

    A lookup returns activations, and what :meth:`apply_gradients` needs to know about its ids.

    Parameters
    ----------
    feature_config : nested structure of FeatureConfig
        The features, and through them the tables. Their output shapes may be left out where those
        of the inputs are known when a graph is made.
    optimizer : optimizer of ``tf.tpu.experimental.embedding``, or EngineOptimizer, optional
        For tables that name none. Tables without one cannot be trained.
    pipeline_execution_with_tensor_core : bool
        Allowed, and without effect: a lookup sees every update that all replicas have given.
    sparse_core_embedding_config : SparseCoreEmbeddingConfig, optional
        Allowed, and without effect: there are no limits of ids, none is dropped, and tables are not
        stacked.

    Raises
    ------
    RuntimeError
        It is not made under a TPUStrategy.
    NotSupportedError
        A feature has a max_sequence_length, which SparseCores do not know.

    Notes
    -----
    Any number of TPUEmbeddingV2 may be made. An update takes place when all replicas have given
    their gradients.
    """

    _built: bool

    def __init__(self, feature_config: Any, optimizer: Any = None,
                 pipeline_execution_with_tensor_core: bool = False,
                 sparse_core_embedding_config: Any = None):
        self._strategy = tf.distribute.get_strategy()
        if not isinstance(self._strategy, TPUStrategy):
            raise RuntimeError("TPUEmbeddingV2 should be created under TPUStrategy but found "
                               f"{self._strategy}.")
        TPUEmbeddingBase.__init__(self, feature_config, optimizer)
        self._configs = tf.nest.flatten(feature_config)
        self._names = [feature.name for feature in name_features(self._configs)]
        for name, feature in zip(self._names, self._configs, strict=True):
            if feature.table.vocabulary_size > 2**31:
                raise NotSupportedError(
                    f"table {feature.table.name}: SparseCores have ids of 32 bits; use "
                    "TPUEmbedding")
            if feature.max_sequence_length > 0:
                raise NotSupportedError(
                    f"feature {name}: SparseCores have no max_sequence_length; give dense ids and "
                    f"output_shape=[batch, {feature.max_sequence_length}]")
        self._rates = gather_rates(self._table_config)
        self._engine: Engine | None = None

    # -- tables

    @do_not_convert
    def build(self) -> None:
        """Open the engine and create the variables, which the first lookup does, too."""
        if self._built:
            return
        with tf.init_scope():
            tables = [translate_table(table, self._rates)._replace(combiner="sum")
                      for table in self._table_config]
            self._engine = Engine(tables, [Feature(table.name, table.name) for table in tables],
                                  device=os.environ.get("EMBENG_DEVICE") or "soft",
                                  replicas=self._strategy.num_replicas_in_sync)
            self._token = _ops.Token()
            self._variables = create_variables(self, self._table_config, self._engine)
            self._built = True

    def _open(self) -> Engine:
        self.build()
        assert self._engine is not None
        return self._engine

    @property
    def variables(self) -> ByTable:
        """Variables by name of the table or TableConfig, then by slot or "parameters"."""
        self.build()
        if tf.executing_eagerly():
            for slots in self._variables.values():
                for variable in slots.values():
                    variable.pull()
        return ByTable(self._variables)

    @property
    def embedding_tables(self) -> ByTable:
        """Variables of the parameters, by name of the table or TableConfig."""
        return ByTable({name: slots["parameters"] for name, slots in self.variables.items()})

    @property
    def embedding_table_shards(self) -> ByTable:
        """Shards by name of the table or TableConfig: one pair of device and tensor."""
        return ByTable({name: [(_ops.HOST, variable.read_value())]
                        for name, variable in self.embedding_tables.items()})

    @property
    def embedding_layouts(self) -> dict[str, Any]:
        """Layouts of SparseCores: none, because rows stand in their order."""
        return {}

    def _checkpoint_adapter(self, path: str) -> None:
        """Tell TensorFlow that checkpoints need no change of layout."""

    # -- lookups

    @do_not_convert
    def preprocess_features(self, features: Any, weights: Any = None) -> dict[str, Any]:
        """List the entries of features by table.

        Parameters
        ----------
        features : nested structure of tf.Tensor, tf.SparseTensor or tf.RaggedTensor
            As `feature_config`: ids of one replica.
        weights : nested structure, optional
            Weights of the same types, also of dense features; each may be None.

        Returns
        -------
        dict of str to PartitionedCsrFormatTensor
            By table. Their samples are those of its features, one feature after another.

        Raises
        ------
        ValueError
            A type or shape is wrong, or an output shape is not known.
        """
        features = tf.nest.map_structure(as_tensor, features)
        tf.nest.assert_same_structure(self._feature_config, features)
        values = tf.nest.flatten(features)
        given = [None] * len(values)
        if weights is not None:
            tf.nest.assert_same_structure(self._feature_config, weights)
            given = tf.nest.flatten(weights)
        engine = self._open()
        tables = [self._flatten_table(table, values, given) for table in self._table_config]
        return {part.table.name: PartitionedCsrFormatTensor(length, *entries, part.samples, 1)
                for part, (length, entries)
                in zip(tables, _ops.list_entries(self._token, engine, tables), strict=True)}

    enqueue = preprocess_features

    def _numbers_of(self, table: Any) -> list[int]:
        return [number for number, feature in enumerate(self._configs) if feature.table is table]

    def _flatten_table(self, table: Any, values: Any, weights: Any) -> TableFeatures:
        forms: list[Form] = []
        tensors: list[Any] = []
        for number in self._numbers_of(table):
            form, parts = self._flatten(number, values[number], weights[number])
            forms.append(form)
            tensors += parts
        return TableFeatures(table, forms, tensors)

    def _flatten(self, number: int, value: Any, weight: Any) -> tuple[Form, list[Any]]:
        name = self._names[number]
        shape = self._find_shape(number, value)
        if isinstance(value, tf.Tensor) and weight is not None:
            if not isinstance(weight, tf.Tensor):
                raise ValueError(f"Expect weight to be Tensor type but got {type(weight)} for "
                                 f"feature {name}.")
            form, parts = flatten_feature(name, value, None, shape.num_elements(), False)
            return form._replace(weighted=True), [
                *parts, tf.reshape(tf.cast(weight, tf.float32), [-1])]
        return flatten_feature(name, value, weight, shape.num_elements(), False)

    def _find_shape(self, number: int, value: Any) -> Any:
        shape = self._configs[number].output_shape
        if shape.rank is None and hasattr(value, "shape"):
            shape = tf.TensorShape(value.shape)
            if shape.rank is not None and shape.rank > 1:
                shape = shape[:-1]
        if not shape.is_fully_defined():
            raise ValueError(f"Input Feature {self._names[number]} has output shape {shape}, which "
                             "is not fully defined. Give output_shape in its FeatureConfig.")
        return shape

    @do_not_convert
    def dequeue(self, partitioned_tensors: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Look up what :meth:`preprocess_features` listed.

        Returns
        -------
        activations : nested structure of tf.Tensor
            As `feature_config`: float32, ``[*output shape, dim]``. Where no output shape was given,
            ``[samples, dim]``.
        preserved : dict of str to PartitionedCsrFormatTensor
            For :meth:`apply_gradients`.
        """
        engine = self._open()
        outputs: list[Any] = [None] * len(self._configs)
        lists = self._gather_lists(partitioned_tensors)
        found = _ops.look_up_entries(self._token, engine, lists)
        for table, rows in zip(self._table_config, found, strict=True):
            self._split(table, lists[table.name][1], rows, outputs)
        return tf.nest.pack_sequence_as(self._feature_config, outputs), dict(partitioned_tensors)

    def _gather_lists(self, partitioned_tensors: Mapping[str, Any]) -> dict[str, Any]:
        return {table.name: (Entries(*partitioned_tensors[table.name][1:4]),
                             partitioned_tensors[table.name].sample_count)
                for table in self._table_config}

    def _split(self, table: Any, count: int, rows: Any, outputs: list[Any]) -> None:
        numbers = self._numbers_of(table)
        shapes = [self._configs[number].output_shape for number in numbers]
        known = sum(shape.num_elements() for shape in shapes if shape.rank is not None)
        unknown = sum(shape.rank is None for shape in shapes)
        sizes = [shape.num_elements() if shape.rank is not None else (count - known) // unknown
                 for shape in shapes]
        parts = [rows] if len(sizes) == 1 else tf.split(rows, sizes)
        for number, shape, part in zip(numbers, shapes, parts, strict=True):
            outputs[number] = part if shape.rank is None else _shape_as(
                part, [*shape.as_list(), table.dim])

    @do_not_convert
    def embedding_lookup(self, features: Any, weights: Any = None) -> tuple[Any, dict[str, Any]]:
        """Look features up: :meth:`preprocess_features`, then :meth:`dequeue`."""
        return self.dequeue(self.preprocess_features(features, weights))

    def __call__(self, features: Any, weights: Any = None) -> tuple[Any, dict[str, Any]]:
        """Look features up, as :meth:`embedding_lookup` does."""
        return self.embedding_lookup(features, weights)

    # -- updates

    @do_not_convert
    def apply_gradients(self, gradients: Any, preserved_outputs: Mapping[str, Any]) -> None:
        """Update the tables with the gradients of activations of this replica.

        Parameters
        ----------
        gradients : nested structure of tf.Tensor or None
            As `feature_config`, of the activations' shapes. None is zeros: the rows are touched.
        preserved_outputs : dict of str to PartitionedCsrFormatTensor
            The second result of the lookup.

        Raises
        ------
        RuntimeError
            Nothing was looked up or built before.
        ValueError
            A gradient has another shape, or is no tensor.
        """
        if not self._built:
            raise RuntimeError("apply_gradients called on unbuilt TPUEmbeddingV2 object. Call "
                               "embedding_lookup first, or the build method.")
        tf.nest.assert_same_structure(self._feature_config, gradients)
        flat = tf.nest.flatten(gradients)
        replica = replica_number("apply_gradients") if in_replica() or \
            self._strategy.num_replicas_in_sync > 1 else 0
        lists = self._gather_lists(preserved_outputs)
        given = [self._join_gradients(table, lists[table.name][1], flat)
                 for table in self._table_config]
        rates = [tf.convert_to_tensor(tf.cast(rate(), tf.float32)) for rate in self._rates]
        _ops.update_entries(self._token, self._open(), lists, given, rates, replica)

    def _join_gradients(self, table: Any, count: int, gradients: Any) -> Any:
        numbers = self._numbers_of(table)
        parts = []
        for number in numbers:
            gradient, shape = gradients[number], self._configs[number].output_shape
            if isinstance(gradient, tf.IndexedSlices):
                gradient = tf.convert_to_tensor(gradient)
            if gradient is None:
                size = count if len(numbers) == 1 else shape.num_elements()
                if size is None:
                    raise ValueError(f"No gradient for feature {self._names[number]}, whose shape "
                                     "is not known. Give output_shape in its FeatureConfig.")
                gradient = tf.zeros([size, table.dim])
            elif not isinstance(gradient, tf.Tensor):
                raise ValueError(f"found non-tensor type: {type(gradient)} for feature "
                                 f"{self._names[number]}.")
            if shape.rank is not None and gradient.shape.num_elements() not in (
                    None, shape.num_elements() * table.dim):
                raise ValueError(f"Found gradient of shape {gradient.shape} for feature "
                                 f"{self._names[number]}. Expected shape "
                                 f"{[*shape.as_list(), table.dim]}.")
            parts.append(_shape_as(tf.cast(gradient, tf.float32), [-1, table.dim]))
        joined = parts[0] if len(parts) == 1 else tf.concat(parts, 0)
        if joined.shape.as_list() == [count, table.dim]:
            return joined
        return tf.ensure_shape(joined, [count, table.dim])

# SPDX-License-Identifier: MIT
"""TPUEmbeddingV2: lookups by lists of entries, as SparseCores have them."""
import os
from collections.abc import Mapping
from typing import Any

import numpy
import tensorflow as tf

from .._engine import Engine, Feature
from .._errors import NotSupportedError
from . import _ops
from ._csr import Entries, join_entries, list_entries, make_input
from ._features import Form, as_tensor, flatten_feature
from ._private import PartitionedCsrFormatTensor, TPUEmbeddingBase
from ._settings import gather_rates, name_features, translate_table
from ._strategy import TPUStrategy, do_not_convert, in_replica, replica_number
from ._tables import create_variables

_Base: Any = tf.tpu.experimental.embedding.TPUEmbeddingV2


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
        self.build()
        return {table.name: self._list_table(table, values, given) for table in self._table_config}

    enqueue = preprocess_features

    def _numbers_of(self, table: Any) -> list[int]:
        return [number for number, feature in enumerate(self._configs) if feature.table is table]

    def _list_table(self, table: Any, values: Any, weights: Any) -> Any:
        forms: list[Form] = []
        tensors: list[Any] = []
        for number in self._numbers_of(table):
            form, parts = self._flatten(number, values[number], weights[number])
            forms.append(form)
            tensors += parts
        offsets = numpy.cumsum([0, *(form.samples for form in forms)]).tolist()

        def run(*arrays: Any) -> list[Any]:
            found, at = [], 0
            for form in forms:
                found.append(list_entries(form, arrays[at:at + form.parts], table))
                at += form.parts
            joined = join_entries(found, offsets[:-1])
            return [numpy.array([len(joined.ids)], numpy.int32), *joined]

        whole = tf.TensorSpec([None], tf.int32)
        pointers, samples, ids, gains = _ops.call(
            self._token, run, tensors,
            [tf.TensorSpec([1], tf.int32), whole, whole, tf.TensorSpec([None], tf.float32)])
        return PartitionedCsrFormatTensor(pointers, samples, ids, gains, offsets[-1], 1)

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
        for table in self._table_config:
            part = partitioned_tensors[table.name]

            def run(samples: Any, ids: Any, gains: Any, name: str = table.name,
                    count: int = part.sample_count) -> list[Any]:
                return [engine.lookup({name: make_input(Entries(samples, ids, gains),
                                                        count)})[name]]

            rows, = _ops.call(self._token, run, part[1:4],
                              [tf.TensorSpec([part.sample_count, table.dim], tf.float32)])
            self._split(table, part.sample_count, rows, outputs)
        return tf.nest.pack_sequence_as(self._feature_config, outputs), dict(partitioned_tensors)

    def _split(self, table: Any, count: int, rows: Any, outputs: list[Any]) -> None:
        numbers = self._numbers_of(table)
        shapes = [self._configs[number].output_shape for number in numbers]
        known = sum(shape.num_elements() for shape in shapes if shape.rank is not None)
        unknown = sum(shape.rank is None for shape in shapes)
        sizes = [shape.num_elements() if shape.rank is not None else (count - known) // unknown
                 for shape in shapes]
        for number, shape, part in zip(numbers, shapes, tf.split(rows, sizes), strict=True):
            outputs[number] = part if shape.rank is None else tf.reshape(
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
        tensors: list[Any] = []
        for table in self._table_config:
            part = preserved_outputs[table.name]
            tensors += [*part[1:4], self._join_gradients(table, part.sample_count, flat)]
        counts = {table.name: preserved_outputs[table.name].sample_count
                  for table in self._table_config}
        rates = [tf.convert_to_tensor(tf.cast(rate(), tf.float32)) for rate in self._rates]
        engine = self._open()

        def run(*arrays: Any) -> None:
            batch, given = {}, {}
            for k, (name, count) in enumerate(counts.items()):
                samples, ids, gains, given[name] = arrays[4 * k:4 * k + 4]
                batch[name] = make_input(Entries(samples, ids, gains), count)
            values = {f"rate_{k}": float(a) for k, a in enumerate(arrays[4 * len(counts):])}
            engine.update(batch, given, values, replica=replica)

        _ops.call(self._token, run, [*tensors, *rates], ())

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
            parts.append(tf.reshape(tf.cast(gradient, tf.float32), [-1, table.dim]))
        return tf.ensure_shape(tf.concat(parts, 0), [count, table.dim])

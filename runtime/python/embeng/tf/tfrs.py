# SPDX-License-Identifier: MIT
"""The embedding layer of TensorFlow Recommenders, with the engine where it uses a TPU.

``from embeng.tf import tfrs`` stands for ``import tensorflow_recommenders as tfrs`` in programs
that use its ``TPUEmbedding``; :data:`layers` has it under the path that it has there. It is a layer
of the Keras that ``tf.keras`` is: Keras 3, or ``tf_keras`` with ``TF_USE_LEGACY_KERAS=1``.
"""
import copy
import types
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from .._errors import InvalidError, NotSupportedError
from ._keras_optimizers import normalize_optimizer
from ._keras_optimizers import translate_keras_optimizer as translate_keras_optimizer
from ._private import could_possibly_record, in_save_context
from ._strategy import TPUStrategy, do_not_convert, in_replica
from .embedding import TPUEmbedding as _Tables
from .serving import TPUEmbeddingForServing, TPUEmbeddingV0
from .sparse_core import TPUEmbeddingV2

_api = tf.tpu.experimental.embedding
_Kind = tf.tpu.experimental.HardwareFeature.EmbeddingFeature
_ANCHOR = "tpu_embedding_helper_dummy"
# Layers of Keras 3 know variables of Keras alone; older ones are modules of TensorFlow.
_SKETCHES = ("keras_graph", "scratch_graph")  # ends of names of graphs that Keras makes for shapes
_IS_KERAS_3 = not issubclass(tf.keras.layers.Layer, tf.Module)

if _IS_KERAS_3 and tf.keras.config.backend() != "tensorflow":
    raise NotSupportedError(
        f"embeng.tf.tfrs is for TensorFlow, and Keras runs on {tf.keras.config.backend()}; set "
        "KERAS_BACKEND=tensorflow, or use embeng.keras")


class _Configs:
    """Copies of a program's configurations, with optimizers of tables. Keras leaves it alone."""

    def __init__(self, features: Any):
        made: dict[int, Any] = {}
        self.tables: list[tuple[Any, Any]] = []
        self.copies: dict[int, Any] = {}
        for feature in tf.nest.flatten(features):
            if id(feature.table) in self.copies:
                continue
            table = copy.copy(feature.table)
            key = id(table.optimizer)
            if key not in made:
                made[key] = normalize_optimizer(table.optimizer)
            table.optimizer = made[key]
            self.tables.append((feature.table, table))
            self.copies[id(feature.table)] = table
        self.features = self.translate(features)
        self._shown = tf.Module()

    def show_tables(self, variables: Any) -> Any:
        """Return the object of an export that holds these variables, always the same one."""
        self._shown.tables = list(variables)
        return self._shown

    def translate(self, features: Any) -> Any:
        """Copy features, with our tables in the place of the program's.

        Raises
        ------
        ValueError
            A table is none of those that the layer was made with.
        """
        return tf.nest.map_structure(self._translate_one, features)

    def _translate_one(self, feature: Any) -> Any:
        table = self.copies.get(id(feature.table))
        if table is None:
            raise ValueError(f"TableConfig {feature.table} does not match any of the TableConfigs "
                             "used to configure this layer.")
        made = copy.copy(feature)
        made.table = table
        return made


def _match_shapes(features: Any, shapes: Any) -> Any:
    """Give the shapes of inputs the structure of the features: they may be tuples themselves."""
    if isinstance(features, _api.FeatureConfig):
        return tf.TensorShape(shapes)
    if isinstance(features, Mapping):
        return {key: _match_shapes(feature, shapes[key]) for key, feature in features.items()}
    parts = [_match_shapes(*pair) for pair in zip(features, shapes, strict=True)]
    return type(features)(*parts) if hasattr(features, "_fields") else type(features)(parts)


def _choose_kind(strategy: Any, wanted: Any) -> Any:
    """Return the kind of the embedding hardware: what the program asks for, or the strategy has."""
    if wanted is None:
        return strategy.extended.tpu_hardware_feature.embedding_feature
    if wanted not in (_Kind.V1, _Kind.V2, _Kind.UNSUPPORTED):
        raise ValueError(f"Unknown embedding feature {wanted}; give one of EmbeddingFeature")
    return wanted


def _show_variable(variable: Any) -> Any:
    """Return what Keras takes for a variable of its own, with the same memory."""
    if not _IS_KERAS_3:
        return variable
    return tf.keras.Variable(variable, name=variable.name.split(":")[0].replace("/", "_"))


class TPUEmbedding(tf.keras.layers.Layer):
    """A layer that looks rows of tables up, and trains them by its own optimizers.

    Under a :class:`embeng.tf.distribute.TPUStrategy` the tables are the engine's: they are no
    trainable variables of the layer, and are updated when the gradient of its only one, an anchor
    of one number, is computed. Under other strategies the tables are trainable variables, which the
    program's own optimizer updates.

    Parameters
    ----------
    feature_config : nested structure of tf.tpu.experimental.embedding.FeatureConfig
        The features, and through them the tables. A table may have an optimizer of its own.
    optimizer : str, optimizer, or None
        For tables that have none: "sgd", "adagrad", "adam", "ftrl"; an optimizer of
        ``tf.tpu.experimental.embedding``; one of Keras; :class:`embeng.tf.EngineOptimizer`. None is
        for layers that are not made under a TPUStrategy.
    pipeline_execution_with_tensor_core : bool
        Activations may lack the update of one step before.
    batch_size : int, optional
        Samples of all replicas, in the place of those that inputs have.
    embedding_feature : tf.tpu.experimental.HardwareFeature.EmbeddingFeature, optional
        V1 or V2, which choose the class below the layer; UNSUPPORTED has the tables as variables.
    sparse_core_embedding_config : SparseCoreEmbeddingConfig, optional
        For V2. It has no effect on numbers.

    Raises
    ------
    ValueError
        An optimizer or one of its settings is not supported.

    Notes
    -----
    A layer that was made under a TPUStrategy may be called outside of ``strategy.run()``, to export
    a model or to look at it: it then looks up by ops of TensorFlow in the tables as they are, and
    refuses to give gradients.
    """

    def __init__(self, feature_config: Any, optimizer: Any,
                 pipeline_execution_with_tensor_core: bool = False, batch_size: int | None = None,
                 embedding_feature: Any = None, sparse_core_embedding_config: Any = None):
        super().__init__()
        self._configs = _Configs(feature_config)
        self._table_optimizer = normalize_optimizer(optimizer)
        self._strategy = tf.distribute.get_strategy()
        self._using_tpu = isinstance(self._strategy, TPUStrategy)
        self._kind = _choose_kind(self._strategy, embedding_feature) if self._using_tpu else None
        self.batch_size = batch_size
        self._calls = 0
        self._tpu_embedding = self._make_tables(pipeline_execution_with_tensor_core,
                                                sparse_core_embedding_config)

    def _make_tables(self, pipelining: bool, sparse_core: Any) -> Any:
        features, optimizer = self._configs.features, self._table_optimizer
        if self._kind is None:
            return TPUEmbeddingForServing(features, optimizer)
        if self._kind == _Kind.UNSUPPORTED:
            return TPUEmbeddingV0(features, optimizer)
        if self._kind == _Kind.V1:
            return _Tables(features, optimizer, pipelining)
        return TPUEmbeddingV2(features, optimizer, pipelining, sparse_core)

    @property
    def _has_engine(self) -> bool:
        return self._kind in (_Kind.V1, _Kind.V2)

    # -- building

    def build(self, features_shape: Any = None) -> None:
        """Create the tables, for inputs of these shapes."""
        if self._kind != _Kind.V1:
            with tf.init_scope():
                self._tpu_embedding.build()
        elif self.batch_size is not None or not _IS_KERAS_3:
            self._build_steps(features_shape)
        # Keras 3 may tell the shapes of bags as those of matrices: the first batch tells them.
        if self._has_engine:
            setattr(self, _ANCHOR, self.add_weight(name=_ANCHOR, shape=(1,), initializer="zeros",
                                                   trainable=True, dtype=tf.float32))
        else:
            # Keras finds variables in a list, and not in an object of TensorFlow.
            setattr(self, _ANCHOR, [_show_variable(variable) for variable
                                    in self._tpu_embedding.embedding_tables.values()])
        super().build(features_shape)

    def _build_steps(self, shapes: Any) -> None:
        if self.batch_size is None:
            known = _match_shapes(self._configs.features, shapes)
            self._tpu_embedding.build(per_replica_input_shapes=known)
            return
        replicas = self._strategy.num_replicas_in_sync
        if self.batch_size < 1 or self.batch_size % replicas:
            raise InvalidError(f"batch_size is {self.batch_size}; give a multiple of the "
                               f"{replicas} replicas of the strategy")
        self._tpu_embedding.build(per_replica_batch_size=self.batch_size // replicas)

    # -- lookups

    def _find_tables(self) -> dict[Any, Any]:
        """Return the variables of whole tables, also where TensorFlow saves stand-ins of shards."""
        if self._kind != _Kind.V1 or not self._tpu_embedding._built:
            return self._tpu_embedding.embedding_tables
        if not in_save_context():
            self._tpu_embedding._retrieve_variables()
        held = {table: self._tpu_embedding._variables[table.name]["parameters"]
                for _, table in self._configs.tables}
        return {table: getattr(variable, "_variables", [variable])[0]
                for table, variable in held.items()}

    def _serve(self, features: Any, weights: Any, config: Any) -> Any:
        return _api.serving_embedding_lookup(features, weights, self._find_tables(), config)

    def _look_without_gradients(self, features: Any, weights: Any) -> Any:
        # Exports trace gradients that they do not use, so that only an op may refuse them.
        zero = 0.0 * tf.raw_ops.PreventGradient(input=self._anchor(), message=(
            f"Layer is created under strategy {self._strategy} but is being called under strategy "
            f"{tf.distribute.get_strategy()}, where there are lookups and no gradients. Please use "
            "strategy.run when calling this layer to train it."))
        found = self._serve(features, weights, self._configs.features)
        return [activations + zero for activations in tf.nest.flatten(found)]

    def _anchor(self) -> Any:
        return tf.convert_to_tensor(getattr(self, _ANCHOR))

    def _is_sketch(self, features: Any) -> bool:
        """Tell whether Keras traces for shapes alone: into such a graph, or with floats for ids."""
        if tf.executing_eagerly():
            return False
        name = tf.compat.v1.get_default_graph().name
        return name.endswith(_SKETCHES) or (not in_replica() and all(
            given.dtype.is_floating for given in tf.nest.flatten(features)))

    def _sketch(self, features: Any) -> Any:
        """Return tensors of the activations' shapes, which refuse to be computed."""
        made = []
        configs = tf.nest.flatten(self._configs.features)
        for given, feature in zip(tf.nest.flatten(features), configs, strict=True):
            shape = list(feature.output_shape or given.shape)
            if not feature.output_shape and len(shape) > 1:
                shape.pop()  # ids of a bag, or the last dimension of a dense input
                if feature.max_sequence_length:
                    shape.append(feature.max_sequence_length)
            known = tf.TensorShape([*shape, feature.table.dim])
            refusal = tf.raw_ops.Assert(condition=tf.constant(False), data=[
                "this graph was traced by Keras for its shapes, and has no lookups"])
            with tf.control_dependencies([refusal]):
                zeros = tf.zeros([1 if size is None else size for size in known.as_list()])
            # placeholder_with_default() has the shape that is known, and no other one.
            made.append(tf.compat.v1.placeholder_with_default(zeros, known))
        return tf.nest.pack_sequence_as(self._configs.features, made)

    def _look_in_steps(self, features: Any, weights: Any) -> Any:
        self._calls += 1
        name = f"{self.name}_{self._calls}"
        # In a graph the name tells whether gradients come; in eager mode a tape does.
        training = not tf.executing_eagerly() or could_possibly_record()
        self._tpu_embedding.enqueue(features, weights, training=training, name=name)

        @tf.custom_gradient
        def trap(anchor: Any) -> Any:
            def differentiate(*gradients: Any) -> Any:
                packed = tf.nest.pack_sequence_as(self._configs.features, gradients)
                self._tpu_embedding.apply_gradients(packed, name=name)
                return tf.zeros_like(anchor)

            return tf.nest.flatten(self._tpu_embedding.dequeue(name=name)), differentiate

        return trap(self._anchor())

    def _look_at_once(self, features: Any, weights: Any) -> Any:
        @tf.custom_gradient
        def trap(anchor: Any) -> Any:
            found, kept = self._tpu_embedding(features, weights)

            def differentiate(*gradients: Any) -> Any:
                packed = tf.nest.pack_sequence_as(self._configs.features, gradients)
                self._tpu_embedding.apply_gradients(packed, preserved_outputs=kept)
                return tf.zeros_like(anchor)

            return tf.nest.flatten(found), differentiate

        return trap(self._anchor())

    def call(self, features: Any, weights: Any = None, serving_config: Any = None) -> Any:
        """Look features up, and combine their rows.

        Parameters
        ----------
        features : nested structure of tf.Tensor, tf.SparseTensor or tf.RaggedTensor
            Ids, as `feature_config`.
        weights : nested structure, optional
            Weights of sparse and ragged features, in tensors of the same kind.
        serving_config : nested structure of FeatureConfig, optional
            Other features of the same tables, which ops of TensorFlow look up.

        Returns
        -------
        nested structure of tf.Tensor
            Activations, as `feature_config` or `serving_config`.

        Raises
        ------
        RuntimeError
            The layer was made under another strategy than a TPUStrategy, and is called under one.
        ValueError
            `serving_config` has a table that the layer has not.
        """
        # Keras reads the parameters of call(), which a decorator would hide.
        return self._look_up(features, weights, serving_config)

    @do_not_convert
    def _look_up(self, features: Any, weights: Any, serving_config: Any) -> Any:
        if serving_config is not None:
            return self._serve(features, weights, self._configs.translate(serving_config))
        if not self._using_tpu and isinstance(tf.distribute.get_strategy(), TPUStrategy):
            raise RuntimeError(f"Layer is created under strategy {self._strategy} but is being "
                               "called under a TPUStrategy. Please create the layer under a "
                               "TPUStrategy if you wish to run the layer on TPU.")
        if self._is_sketch(features):
            return self._sketch(features)
        if not self._has_engine:
            return self._tpu_embedding(features, weights)
        if not in_replica():
            found = self._look_without_gradients(features, weights)
        elif self._kind == _Kind.V1:
            found = self._look_in_steps(features, weights)
        else:
            found = self._look_at_once(features, weights)
        return tf.nest.pack_sequence_as(self._configs.features, found)

    # -- tables

    @property
    def embedding_tables(self) -> dict[Any, Any]:
        """The tables' variables, by the TableConfig that the program gave.

        Under a TPUStrategy they show what the engine has. Writing to one there does not change the
        table: see :meth:`update_embedding_table`.
        """
        found = self._tpu_embedding.embedding_tables
        return {given: found[table] for given, table in self._configs.tables}

    def update_embedding_table(self, table: Any, embedding_table: Any) -> None:
        """Write all rows of a table.

        Parameters
        ----------
        table : TableConfig
            One of those of `feature_config`.
        embedding_table : tf.Variable or tf.Tensor
            float32 ``[vocabulary_size, dim]``.
        """
        known = self.embedding_tables
        if table not in known:
            raise ValueError(f"TableConfig {table} does not match any of the TableConfigs used to "
                             "configure this layer.")
        if self._kind == _Kind.V2:
            raise NotSupportedError("update_embedding_table() is for layers of V1 and of variables")
        known[table].assign(embedding_table)
        if self._kind == _Kind.V1:
            self._tpu_embedding._load_variables()

    def _trackable_children(self, save_type: str = "checkpoint", **options: Any) -> Any:
        children = super()._trackable_children(save_type, **options)
        if save_type == "checkpoint":
            children.pop(_ANCHOR, None)  # it has no number that would have to be kept
        elif self._kind == _Kind.V1 and self._tpu_embedding._built:
            children.pop("_tpu_embedding", None)  # an export has no engine, and no slots
            children["tables"] = self._configs.show_tables(self._find_tables().values())
        return children


layers = types.SimpleNamespace(embedding=types.SimpleNamespace(
    TPUEmbedding=TPUEmbedding,
    tpu_embedding_layer=types.SimpleNamespace(TPUEmbedding=TPUEmbedding,
                                              translate_keras_optimizer=translate_keras_optimizer)))

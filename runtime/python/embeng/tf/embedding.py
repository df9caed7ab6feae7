# SPDX-License-Identifier: MIT
"""TPUEmbedding: TensorFlow's class, with the engine where it calls a TPU.

Configuration, shapes, variables and checkpoints are those of the class that it inherits from; the
methods here are those that make ops for a TPU there.

How another layer is to use it: :meth:`TPUEmbedding.enqueue`, :meth:`~TPUEmbedding.dequeue` and
:meth:`~TPUEmbedding.apply_gradients` work in eager mode and in graphs, within ``strategy.run()`` or
around it. With a `name` that is shared by the three, a batch that is enqueued for training counts
as inference if the same outermost graph has no :meth:`~TPUEmbedding.apply_gradients` of that name.
``embedding_tables`` are live variables, also under a TPUStrategy.
"""
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from .._errors import InvalidError, NotSupportedError
from . import _ops
from ._features import Form, as_tensor, flatten_feature
from ._private import OptimizerBase
from ._session import Session
from ._settings import gather_rates, name_features, translate_table
from ._strategy import (
    Run,
    TPUStrategy,
    current_run,
    do_not_convert,
    in_replica,
    replica_number,
)
from ._system import system
from ._tables import create_variables

_Base: Any = tf.tpu.experimental.embedding.TPUEmbedding


def _outermost_graph() -> Any:
    graph = tf.compat.v1.get_default_graph()
    while getattr(graph, "outer_graph", None) is not None and \
            isinstance(graph.outer_graph, type(graph)):
        graph = graph.outer_graph
    return graph


class TPUEmbedding(_Base):
    """Tables that are looked up and trained step by step, as on a TPU.

    Under a :class:`TPUStrategy` the tables are the engine's. Without one, this is TensorFlow's
    class as it is on a processor: variables for ``tf.nn.embedding_lookup``.

    Parameters
    ----------
    feature_config : nested structure of FeatureConfig
        The features, and through them the tables.
    optimizer : optimizer of ``tf.tpu.experimental.embedding``, or EngineOptimizer
        For tables that name none. Without a TPUStrategy it may be None.
    pipeline_execution_with_tensor_core : bool
        Activations may lack the update of one step before.
    batch_size : int, optional
        Samples of all replicas, as TensorFlow 2.3 had it; without it shapes are those of the first
        batch, of :meth:`build`, or of the features.
    initialize_tpu_embedding : bool
        False shares the tables of the TPUEmbedding that was built before.

    Raises
    ------
    ValueError
        A table has no optimizer, or one of another kind, or two tables have one name.
    NotSupportedError
        A table has a CustomOptimizer or a CustomCombiner.

    Notes
    -----
    One TPUEmbedding can be built until :func:`initialize_tpu_system` is called again. Its methods
    may be called by one thread at a time.
    """

    _built: bool

    def __init__(self, feature_config: Any, optimizer: Any = None,
                 pipeline_execution_with_tensor_core: bool = False, *,
                 batch_size: int | None = None, initialize_tpu_embedding: bool = True):
        if isinstance(optimizer, int):
            raise InvalidError("the second argument is the optimizer; give batch_size by its name")
        super().__init__(feature_config, optimizer, pipeline_execution_with_tensor_core)
        self._using_tpu = isinstance(self._strategy, TPUStrategy)
        self._session: Session | None = None
        self._initialize = initialize_tpu_embedding
        if not self._using_tpu:
            return
        for table in self._table_config:
            if not isinstance(table.optimizer, OptimizerBase):
                raise ValueError(f"{type(table.optimizer)} is an unsupported optimizer class for "
                                 f"table {table.name}. Give an optimizer of "
                                 "tf.tpu.experimental.embedding.")
            # Newer releases of protobuf take no bool for an enum.
            packing: Any = int(table.optimizer.low_dimensional_packing_status)
            table.optimizer.low_dimensional_packing_status = packing
        self._dynamic_learning_rates = gather_rates(self._table_config)
        self._flat_features = tf.nest.flatten(feature_config)
        self._engine_features = name_features(self._flat_features)
        self._engine_tables = [translate_table(table, self._dynamic_learning_rates)
                               for table in self._table_config]
        self._modes: weakref.WeakKeyDictionary[Any, dict[str, list[int]]] = \
            weakref.WeakKeyDictionary()
        if batch_size is not None:
            self._note_batch_size(batch_size)

    def _note_batch_size(self, batch_size: int) -> None:
        replicas = self._strategy.num_replicas_in_sync
        if batch_size < 1 or batch_size % replicas:
            raise InvalidError(f"batch_size is {batch_size}; give a multiple of the {replicas} "
                               "replicas")
        self._update_output_shapes(self._get_output_shapes_from_batch_size(batch_size // replicas))

    # -- tables

    @do_not_convert
    def build(self, per_replica_input_shapes: Any = None,
              per_replica_batch_size: int | None = None) -> None:
        """Open the engine and create the variables.

        Parameters
        ----------
        per_replica_input_shapes : nested structure of TensorShape, or int
            Shapes of the inputs of a replica, without which those of the features count; an int is
            a batch size.
        per_replica_batch_size : int, optional
            Samples of each input of a replica.

        Raises
        ------
        ValueError
            A shape is not known, or differs from what was said before.
        RuntimeError
            Another TPUEmbedding was built since the system was initialized.
        """
        if self._built:
            return
        if not self._using_tpu:
            super().build(per_replica_input_shapes, per_replica_batch_size)
            return
        if self._initialize and system.session is not None:
            raise RuntimeError("TPU is already initialized for embeddings. One TPUEmbedding can be "
                               "built; call initialize_tpu_system() to begin anew, or give "
                               "initialize_tpu_embedding=False to share the tables")
        if not self._initialize and system.session is None:
            raise RuntimeError("initialize_tpu_embedding is False, and no other TPUEmbedding was "
                               "built whose tables could be shared")
        self._get_and_update_output_shapes_from_input(per_replica_input_shapes,
                                                      per_replica_batch_size)
        with tf.init_scope():
            self._open_session()
            self._variables = self._create_variables_and_slots()
            self._built = True

    def _open_session(self) -> None:
        if self._initialize:
            system.session = Session(self._engine_tables, self._engine_features,
                                     self._strategy.num_replicas_in_sync,
                                     self._pipeline_execution_with_tensor_core)
        self._session = system.session
        self._token = _ops.Token()

    def _create_variables_and_slots(self) -> Any:
        if not self._using_tpu:
            return super()._create_variables_and_slots()
        return create_variables(self, self._table_config, self._open().engine, self._initialize)

    def _open(self) -> Session:
        """Return the session that is open; complain if its tables are gone."""
        if self._session is None or self._session is not system.session:
            raise RuntimeError("the tables of this TPUEmbedding are gone, because the system was "
                               "initialized again; make a new TPUEmbedding, and restore its "
                               "checkpoint")
        return self._session

    def _each_variable(self, move: Callable[[Any], None]) -> None:
        # Within a graph, such as that of an export, variables stay as they are.
        if self._using_tpu and self._built and tf.executing_eagerly():
            for slots in self._variables.values():
                for variable in slots.values():
                    move(variable)

    def _load_variables(self) -> None:
        """Write the variables' values to the tables. TensorFlow calls it after a restore."""
        self._each_variable(lambda variable: variable.push())

    def _retrieve_variables(self) -> None:
        """Have the variables show the tables of their names that are loaded now.

        TensorFlow calls it before a checkpoint is saved.
        """
        session = system.session
        if not self._using_tpu:
            return
        if session is None:
            raise RuntimeError("no tables are loaded, because the system was initialized again; "
                               "build a TPUEmbedding first")
        self._each_variable(lambda variable: variable.pull(session.engine))

    @property
    def embedding_tables(self) -> dict[Any, Any]:
        """The tables' variables, by TableConfig.

        Under a TPUStrategy, too: they show what the engine has, and assigning to them in eager mode
        changes it.
        """
        if not self._using_tpu:
            return super().embedding_tables
        if not self._built:
            self._maybe_build(None)
        self._retrieve_variables()
        return {table: self._variables[table.name]["parameters"]
                for table in self._table_config}

    # -- steps

    def _check_strategy(self, what: str) -> None:
        if not self._using_tpu:
            raise RuntimeError(f"{what} is not valid when TPUEmbedding object is not created under "
                               "a TPUStrategy.")

    def _check_built(self, what: str) -> None:
        self._check_strategy(what)
        if not self._built:
            raise RuntimeError(f"{what} called on unbuilt TPUEmbedding object. Call enqueue first, "
                               "or the build method.")

    @do_not_convert
    def enqueue(self, features: Any, weights: Any = None, training: bool = True,
                name: str | None = None, device: str | None = None) -> None:
        """Look up a batch; :meth:`dequeue` gives its activations.

        Parameters
        ----------
        features : nested structure of tf.Tensor, tf.SparseTensor or tf.RaggedTensor
            As `feature_config`, with values for each replica if this is called around
            ``strategy.run()``. Dense tensors have one id a sample, and a last dimension of 1 if
            they have more than one.
        weights : nested structure, optional
            Weights of sparse and ragged features; each may be None.
        training : bool
            :meth:`apply_gradients` will be called for it.
        name : str, optional
            Shared with the other two methods: whether gradients come is then seen in the graph.
        device : str, optional
            The processor of the replica for which this batch alone is, such as
            ``strategy.extended.worker_devices[0]``.

        Raises
        ------
        ValueError
            A shape or type is wrong.
        RuntimeError
            It is called in a loop, a condition or a function within ``strategy.run()``, which a TPU
            cannot do.
        OutOfRangeError
            An id is outside its table. Nothing was enqueued, for no replica. A graph raises
            tf.errors.InvalidArgumentError with the same sentence, as for all errors of the engine.
        """
        self._check_strategy("enqueue")
        features = tf.nest.map_structure(as_tensor, features)
        run = current_run() if in_replica() else None
        if run is not None:
            self._check_run(run, features)
        tf.nest.assert_same_structure(self._feature_config, features)
        if weights is not None:
            tf.nest.assert_same_structure(self._feature_config, weights)
        shapes = self._get_input_shapes(features, device is None, run is not None)
        self._maybe_build(shapes)
        if self._verify_output_shapes_on_enqueue:
            self._check_output_shapes(self._get_output_shapes_from_input_shapes(shapes))
        replicas = self._find_replicas(device)
        parts = [self._flatten_batch(replica, features, weights) for replica in replicas]
        _ops.enqueue(self._open(), self._token, replicas, [forms for forms, _ in parts],
                     [tensor for _, tensors in parts for tensor in tensors],
                     self._note_mode(name, training))

    def _find_replicas(self, device: str | None) -> Sequence[int]:
        count = self._strategy.num_replicas_in_sync
        if in_replica():
            return [replica_number("enqueue")]
        if device is None:
            return range(count)
        number = tf.DeviceSpec.from_string(device).device_index
        if number is None or not 0 <= number < count:
            raise ValueError(f"Device {device} passed to enqueue is none of a replica; those of "
                             f"replicas are {', '.join(self._strategy.extended.worker_devices)}.")
        return [number]

    def _flatten_batch(self, replica: int, features: Any,
                       weights: Any) -> tuple[list[Form], list[Any]]:
        values = tf.nest.flatten(features)
        given = [None] * len(values) if weights is None else tf.nest.flatten(weights)
        forms, tensors = [], []
        for number, feature in enumerate(self._flat_features):
            shape = self._output_shapes[number]
            value = self._select(values[number], replica)
            # A sequence has a row for each id. Higher ranks and given shapes have bags.
            sequence = bool(feature.max_sequence_length > 0 and not feature.output_shape and
                            not isinstance(value, tf.Tensor) and len(value.shape) == 2)
            form, parts = flatten_feature(self._engine_features[number].name, value,
                                          self._select(given[number], replica),
                                          shape.num_elements(), sequence)
            forms.append(form)
            tensors += parts
        return forms, tensors

    def _select(self, value: Any, replica: int) -> Any:
        if isinstance(value, tf.distribute.DistributedValues):
            return self._strategy.experimental_local_results(value)[replica]
        return value

    def _check_run(self, run: Run, features: Any) -> None:
        if run.graph is None:
            return
        graph = tf.compat.v1.get_default_graph()
        if graph is not run.graph:
            raise RuntimeError(
                f"Current graph {graph} does not match graph which contains TPUReplicateContext "
                f"{run.graph}: enqueue was called in a loop, a condition or a tf.function within "
                "strategy.run(), where a TPU cannot do it. Call it outside of them.")
        for tensor in tf.nest.flatten(features, expand_composites=True):
            if id(tensor) not in run.inputs and tensor.op.type != "Placeholder":
                raise ValueError(
                    f"Received input tensor {tensor.name}, the output of op {tensor.op.type}, "
                    "which does not have the `_tpu_input_identity` attr: it was computed within "
                    "strategy.run(). A TPU takes only the arguments of the function that "
                    "strategy.run() calls; compute the features before.")

    def _note_mode(self, name: str | None, training: bool) -> int:
        if not isinstance(training, bool):
            raise ValueError(f"training is {training!r}; give True or False, so that it is known "
                             "when the graph is made")
        if name is None or not training or tf.executing_eagerly():
            return int(training)
        mode = self._open().add_mode(False)
        self._modes.setdefault(_outermost_graph(), {}).setdefault(name, []).append(mode)
        return mode

    @do_not_convert
    def dequeue(self, name: str | None = None) -> Any:
        """Return the activations of the oldest batch of this replica.

        Parameters
        ----------
        name : str, optional
            As of :meth:`enqueue`.

        Returns
        -------
        nested structure of tf.Tensor
            As `feature_config`: float32, ``[*output shape, dim]``.

        Raises
        ------
        StepOrderError
            Nothing is enqueued, or a step before has not got its gradients. A graph raises
            tf.errors.InvalidArgumentError.
        """
        self._check_built("dequeue")
        replica = replica_number("dequeue")
        shapes = [[*shape.as_list(), feature.table.dim] for shape, feature in
                  zip(self._output_shapes, self._flat_features, strict=True)]
        found = _ops.dequeue(self._open(), self._token, replica, shapes)
        return tf.nest.pack_sequence_as(self._feature_config, found)

    @do_not_convert
    def apply_gradients(self, gradients: Any, name: str | None = None) -> None:
        """Update the tables with the gradients of the activations of this replica.

        The update takes place when all replicas have handed theirs in. Gradients are summed, not
        averaged, over samples and replicas.

        Parameters
        ----------
        gradients : nested structure of tf.Tensor or None
            As `feature_config`, of the activations' shapes. None is zeros: the rows are touched.
        name : str, optional
            As of :meth:`enqueue`.

        Raises
        ------
        ValueError
            A gradient has another shape, or is no tensor.
        StepOrderError
            No training batch was dequeued. A graph raises tf.errors.InvalidArgumentError.
        """
        self._check_built("apply_gradients")
        tf.nest.assert_same_structure(self._feature_config, gradients)
        flat = [self._check_gradient(number, gradient)
                for number, gradient in enumerate(tf.nest.flatten(gradients))]
        rates = [tf.convert_to_tensor(tf.cast(rate(), tf.float32))
                 for rate in self._dynamic_learning_rates]
        session = self._open()
        if name is not None and not tf.executing_eagerly():
            for mode in self._modes.get(_outermost_graph(), {}).get(name, []):
                session.set_mode(mode, True)
        _ops.apply_gradients(session, self._token, replica_number("apply_gradients"), flat, rates)

    def _check_gradient(self, number: int, gradient: Any) -> Any:
        name = self._engine_features[number].name
        if gradient is None:
            return None
        if isinstance(gradient, tf.IndexedSlices):
            gradient = tf.convert_to_tensor(gradient)
        if not isinstance(gradient, tf.Tensor):
            raise ValueError(f"found non-tensor type: {type(gradient)} for feature {name}.")
        shape = [*self._output_shapes[number].as_list(), self._flat_features[number].table.dim]
        if not gradient.shape.is_compatible_with(shape):
            raise ValueError(f"Found gradient of shape {gradient.shape} for feature {name}. "
                             f"Expected shape {shape}.")
        return tf.cast(gradient, tf.float32)

    def discard(self) -> int:
        """Take back every batch that is under way, for all replicas.

        After an error between :meth:`enqueue` and :meth:`apply_gradients` it makes the next step
        the first one again. It is called outside of graphs.

        Returns
        -------
        int
            Batches that were taken back.
        """
        self._check_built("discard")
        if not tf.executing_eagerly():
            raise NotSupportedError("discard() is called outside of graphs")
        return self._open().discard_all()

# SPDX-License-Identifier: MIT
"""The layer: nested features, placements, lookups on each backend, configuration, and files."""
from collections.abc import Mapping, Sequence
from typing import Any, cast

from .._errors import CheckpointError, InvalidError, NotSupportedError
from ._backends import load_backend
from ._features import Features, check_stacking, find_tables, is_in_engine, serves_sparsecores
from ._framework import keras, load_module
from ._inputs import PADDING, Layout, is_ragged, is_sparse, pad, read_input, to_ids
from ._saving import load_tables, save_tables
from ._tables import Tables, as_keras_initializer
from .configs import FeatureConfig, TableConfig, describe_table
from .embed_reduce import EmbedReduce

_PREPROCESSED = "preprocessed_inputs"


@keras.saving.register_keras_serializable("embeng")
class DistributedEmbedding(keras.layers.Layer):
    """Look features up in tables of an engine, which trains each by an optimizer of its own.

    A backward applies the gradients of a call to the rows of its batch, as one step; layers whose
    output has no gradient, as in ``evaluate()`` and ``predict()``, change nothing. Batches may have
    any size.

    Parameters
    ----------
    feature_configs : nested structure of FeatureConfig
        Ours, or keras-rs'.
    table_stacking : "auto", None or lists of names
        Checked, and otherwise without effect.
    update_stats : bool
        Let :meth:`preprocess` with ``training=True`` keep the limits of the tables' settings; not
        on TensorFlow, whose inputs have no numbers in a graph.
    cores, memory, device
        As :class:`embeng.Engine` has them.
    **options
        For :class:`keras.layers.Layer`.

    Raises
    ------
    InvalidError, NotSupportedError
        A table or feature is wrong; the sentence names it.

    Notes
    -----
    One thread may train at a time; any number may look up.
    """

    def __init__(self, feature_configs: Any, *, table_stacking: Any = "auto",
                 update_stats: bool = False, cores: int = 0, memory: int = 0,
                 device: str | None = "soft", **options: Any):
        super().__init__(**options)
        if update_stats and keras.backend.backend() == "tensorflow":
            raise InvalidError("update_stats=True reads numbers of inputs, which a graph of "
                               "TensorFlow does not have; leave it out")
        self._convert_input_args = False
        self._allow_non_tensor_positional_args = True
        self._features = Features(feature_configs)
        tables = find_tables(self._features.by_path.values())
        check_stacking(table_stacking, tables)
        self._stacking = (table_stacking,)
        self.update_stats = update_stats
        self._opening = (("cores", cores), ("memory", memory), ("device", device))
        self._open()
        self.built = True

    def _open(self) -> None:
        """Make the tables of each placement."""
        engine = {path: feature for path, feature in self._features.by_path.items()
                  if is_in_engine(feature.table)}
        self._tables = None
        self._variables_by_path: dict[str, Any] = {}
        with self._open_name_scope():
            self._make_variables([path for path in self._features.paths if path not in engine])
            if not engine:
                return
            self._backend = load_backend()
            self._tables = Tables(engine, **dict(self._opening))
            # For TensorFlow XLA compiles lookups alone, and no updates.
            self.supports_jit = keras.backend.backend() != "tensorflow"
            if keras.backend.backend() == "tensorflow":
                # TensorFlow saves what an attribute of a layer has.
                self._rows = cast(Any, self._backend).Rows(self._tables.engine)
            self._counter = self.add_weight(
                name="updates", shape=(), initializer="zeros", dtype="float32", autocast=False,
                overwrite_with_gradient=True)

    def _make_variables(self, paths: Sequence[str]) -> None:
        """Make a layer of Keras for each table of the default device."""
        made: dict[int, Any] = {}
        for path in paths:
            table = self._features.by_path[path].table
            if id(table) not in made:
                layer = EmbedReduce(table.vocabulary_size, table.embedding_dim,
                                    as_keras_initializer(table), combiner=table.combiner,
                                    name=table.name, dtype=self.dtype_policy)
                layer.build(None)
                made[id(table)] = layer
            self._variables_by_path[path] = made[id(table)]

    # -- lookups

    def preprocess(self, inputs: Any, weights: Any = None, training: bool = False) -> Any:
        """Bring inputs into the form that a compiled step takes.

        On JAX bags of different lengths become dense arrays, filled up with -1; elsewhere tensors
        stay as they are.

        Parameters
        ----------
        inputs : nested structure of tensors
            Ids, in the structure of `feature_configs`.
        weights : nested structure of tensors, optional
            In the same structure.
        training : bool
            With ``update_stats=True``, keep the limits of the tables' settings.

        Returns
        -------
        dict
            For the argument `inputs` of a call.

        Raises
        ------
        InvalidError
            The structure is another one.
        """
        ids = self._features.flatten(inputs, "inputs")
        given = None if weights is None else self._features.flatten(weights, "weights")
        if keras.backend.backend() == "jax":
            ids = {path: self._pad(path, value, "int32", PADDING) for path, value in ids.items()}
            given = given and {path: value if value is None else
                               self._pad(path, value, "float32", 0.0)
                               for path, value in given.items()}
        if training and self.update_stats:
            self._note_limits(ids)
        made = {"inputs": ids}
        if given is not None:
            made["weights"] = given
        return {_PREPROCESSED: made}

    def _pad(self, path: str, value: Any, kind: str, filler: Any) -> Any:
        if isinstance(value, keras.KerasTensor):
            if not (value.ragged or value.sparse):
                return value
            return keras.Input((None,), value.shape[0], dtype=kind)
        if not is_ragged(value):
            if is_sparse(value):
                return value
            return to_ids(path, value) if kind == "int32" else keras.ops.convert_to_tensor(value)
        shape = self._features.by_path[path].input_shape
        width = shape[1] if len(shape) > 1 and isinstance(shape[1], int) else 0
        return keras.ops.convert_to_tensor(pad(path, value, kind, filler, width))

    def _note_limits(self, ids: Mapping[str, Any]) -> None:
        """Raise the limits of tables to what a batch has in one partition."""
        import numpy

        for path, value in ids.items():
            table = self._features.by_path[path].table
            numbers = numpy.asarray(keras.ops.convert_to_numpy(value)).reshape(-1)
            numbers = numbers[numbers != PADDING]
            table.max_ids_per_partition = max(table.max_ids_per_partition, len(numbers))
            table.max_unique_ids_per_partition = max(table.max_unique_ids_per_partition,
                                                     len(numpy.unique(numbers)))

    def call(self, inputs: Any, weights: Any = None, training: bool = False) -> Any:
        """Look features up.

        Parameters
        ----------
        inputs : nested structure of tensors, or what preprocess() returned
            Ids ``[samples]``, ``[samples, n]``, ragged or sparse.
        weights : nested structure of tensors, optional
            They have the forms of the ids; 1 without them.
        training : bool
            Whether the loss may be scaled, which the layer then notices.

        Returns
        -------
        nested structure of tensors
            ``[samples, embedding_dim]`` each, in the compute type of the layer.

        Raises
        ------
        OutOfRangeError
            An id is outside of its table.
        """
        made = inputs if _is_preprocessed(inputs) else self.preprocess(inputs, weights, training)
        ids, given = made[_PREPROCESSED]["inputs"], made[_PREPROCESSED].get("weights", {})
        outputs = {path: layer(ids[path], given.get(path))
                   for path, layer in self._variables_by_path.items()}
        if self._tables is not None:
            outputs.update(self._look_up(ids, given, training))
        return self._features.pack(outputs)

    def _look_up(self, ids: Mapping[str, Any], weights: Mapping[str, Any],
                 training: bool) -> dict[str, Any]:
        """Look up what is in the engine."""
        assert self._tables is not None
        layouts: list[Layout] = []
        tensors: list[Any] = []
        outers: list[Any] = []
        for path, table in self._tables.table_of.items():
            combiner = self._tables.configs[table].combiner
            read = read_input(path, ids[path], weights.get(path), combiner)
            layouts.append(Layout(path, read.form, read.weights is not None))
            tensors += read.tensors if read.weights is None else (*read.tensors, read.weights)
            outers.append(read.outer)
        probe, found = self._backend.look_up(self._tables, layouts, self._counter.value, tensors,
                                             outers, self._counter.trainable)
        if training:
            self.add_loss(probe)
        outputs = {}
        for layout, outer, output in zip(layouts, outers, found, strict=True):
            if len(outer) > 1:
                output = keras.ops.reshape(output, (*outer, self._tables.dims[layout.feature]))
            outputs[layout.feature] = keras.ops.cast(output, self.compute_dtype)
        return outputs

    def compute_output_shape(self, input_shapes: Any) -> Any:
        """Compute the shapes of activations from those of inputs."""
        shapes = input_shapes[_PREPROCESSED]["inputs"] if _is_preprocessed(input_shapes) else \
            self._features.flatten(input_shapes, "shapes")
        return self._features.pack({path: self._shape_of(path, shape)
                                    for path, shape in shapes.items()})

    def _shape_of(self, path: str, shape: Any) -> tuple[Any, ...]:
        outer = tuple(shape) if len(shape) <= 1 else tuple(shape)[:-1]
        return (*outer, self._features.by_path[path].table.embedding_dim)

    def compute_output_spec(self, inputs: Any, weights: Any = None, training: bool = False) -> Any:
        """Describe the results, which are dense."""
        ids = inputs[_PREPROCESSED]["inputs"] if _is_preprocessed(inputs) else \
            self._features.flatten(inputs, "inputs")
        return self._features.pack({
            path: keras.KerasTensor(self._shape_of(path, value.shape), dtype=self.compute_dtype)
            for path, value in ids.items()})

    # -- tables

    @classmethod
    def has_sparsecores(cls) -> bool:
        """Whether tables may have the placement "sparsecore", as they may without a setting.

        ``EMBENG_KERAS_SPARSECORES=none`` in the environment has layers behave as on a machine
        without SparseCores: "auto" is the default device, and "sparsecore" is refused.
        """
        return serves_sparsecores()

    @property
    def engine(self) -> Any:
        """The engine, with all updates done; None if all tables are on the default device."""
        if self._tables is None:
            return None
        self._backend.synchronize()
        self._tables.engine.flush()
        return self._tables.engine

    def get_embedding_tables(self) -> dict[str, Any]:
        """Return copies of the tables, as tensors by name."""
        found = {layer.name: keras.ops.copy(layer.embeddings.value)
                 for layer in self._variables_by_path.values()}
        if self._tables is not None:
            found.update({name: keras.ops.convert_to_tensor(self.engine[name].read())
                          for name in self._tables.configs})
        return found

    def set_embedding_tables(self, tables: Mapping[str, Any]) -> None:
        """Write tables.

        Parameters
        ----------
        tables : mapping of str to tensor
            ``[vocabulary_size, embedding_dim]`` by name; others stay as they are.

        Raises
        ------
        UnknownNameError, InvalidError
            A name or a shape is wrong.
        """
        layers = {layer.name: layer for layer in self._variables_by_path.values()}
        for name, values in tables.items():
            if name in layers:
                layers[name].embeddings.assign(values)
                continue
            if self._tables is None:
                raise InvalidError(f"there is no table {name!r}; the tables are "
                                   f"{', '.join(layers)}")
            view = self.engine[name]
            rows = keras.ops.convert_to_numpy(values)
            if rows.shape != view.shape:
                raise InvalidError(f"table {name} is {list(view.shape)}, and not "
                                   f"{list(rows.shape)}")
            view.write(rows)

    # -- configuration and files

    def get_config(self) -> dict[str, Any]:
        """Return the arguments of the constructor; features name shared tables by their index."""
        tables: list[Any] = []

        def describe(feature: Any) -> dict[str, Any]:
            if not any(feature.table is table for table in tables):
                tables.append(feature.table)
            index = next(i for i, table in enumerate(tables) if table is feature.table)
            return {"name": feature.name, "table": index, "input_shape": feature.input_shape,
                    "output_shape": feature.output_shape}

        features = keras.tree.map_structure(describe, self._features.given)
        return {**super().get_config(), "feature_configs": features,
                "tables": [describe_table(table) for table in tables],
                "table_stacking": self._stacking[0], "update_stats": self.update_stats,
                **dict(self._opening)}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "DistributedEmbedding":
        """Make it of what :meth:`get_config` returned."""
        made = dict(config)
        tables = [TableConfig.from_config(table) for table in made.pop("tables")]

        def read(part: Any) -> Any:
            if isinstance(part, dict) and isinstance(part.get("table"), int):
                return FeatureConfig(part["name"], tables[part["table"]],
                                     tuple(part["input_shape"]), tuple(part["output_shape"]))
            if isinstance(part, dict):
                return {key: read(value) for key, value in part.items()}
            parts = [read(value) for value in part]
            return type(part)(*parts) if hasattr(part, "_fields") else type(part)(parts)

        made["feature_configs"] = read(made["feature_configs"])
        return cls(**made)

    def save_own_variables(self, store: Any) -> None:
        """Write rows, slots and the count of updates into a file of Keras."""
        if self._tables is not None:
            save_tables(self.engine, store)

    def load_own_variables(self, store: Any) -> None:
        """Read what :meth:`save_own_variables` wrote, on whichever backend that was."""
        if self._tables is not None:
            load_tables(self.engine, store)

    def get_extra_state(self) -> dict[str, Any]:
        """Return rows, slots and the count of updates for ``state_dict()`` of PyTorch."""
        store: dict[str, Any] = {}
        self.save_own_variables(store)
        as_tensor = load_module("torch").as_tensor
        return {name: as_tensor(rows) for name, rows in store.items()}

    def set_extra_state(self, state: Any) -> None:
        """Read what :meth:`get_extra_state` returned, for ``load_state_dict()`` of PyTorch."""
        if not isinstance(state, Mapping):
            raise CheckpointError(f"layer {self.name}: its state is {type(state).__name__}; give "
                                  "what state_dict() returned")
        self.load_own_variables({name: rows.numpy(force=True) for name, rows in state.items()})

    def _trackable_children(self, save_type: str = "checkpoint", **options: Any) -> Any:
        """Give TensorFlow the parts to save, but for an export: its program has no engine."""
        if save_type != "checkpoint" and self._tables is not None:
            raise NotSupportedError(
                f"layer {self.name}: a SavedModel cannot hold its tables, which are in an engine "
                "of this process; use model.save('m.keras'), or get_embedding_tables()")
        return super()._trackable_children(save_type, **options)


def _is_preprocessed(inputs: Any) -> bool:
    return isinstance(inputs, dict) and set(inputs) == {_PREPROCESSED}

# SPDX-License-Identifier: MIT
"""Settings of tables and features, with the members of keras-rs' classes of the same names."""
import dataclasses
from collections.abc import Sequence
from typing import Any, Self

from .. import optimizers
from ..initializers import Initializer
from ._framework import keras

# A setting that is one of embeng's own is saved as its parts, below this key.
_EMBENG = "embeng"


def _serialize(value: Any) -> Any:
    if isinstance(value, Initializer):
        return {_EMBENG: list(value)}
    if isinstance(value, optimizers.Optimizer):
        if not isinstance(value.learning_rate, float | int):
            raise TypeError(f"{value!r} has a learning rate that a file cannot hold; give a "
                            "number, or an optimizer of Keras with a schedule")
        return {_EMBENG: [value.kind, value.learning_rate, value.settings]}
    found = keras.saving.serialize_keras_object(value)
    if isinstance(found, dict) and str(found.get("module")).startswith("keras.src.backend."):
        # A class of one backend stands for the one that each backend has.
        found.update(module="keras.optimizers", registered_name=None)
    return found


def _deserialize(value: Any, make: Any) -> Any:
    if isinstance(value, dict) and _EMBENG in value:
        return make(value[_EMBENG])
    return keras.saving.deserialize_keras_object(value)


def _make_optimizer(parts: Sequence[Any]) -> optimizers.Optimizer:
    kind, rate, settings = parts
    return optimizers.Optimizer(kind, rate, **settings)


@dataclasses.dataclass(order=True)
class TableConfig:
    """One embedding table.

    Parameters
    ----------
    name : str
        Unique among the tables of a layer.
    vocabulary_size : int
        Rows.
    embedding_dim : int
        Columns.
    initializer : str, keras.initializers.Initializer or embeng.initializers.Initializer
        How rows start. One of embeng's gives the same bits on each backend.
    optimizer : str, keras.optimizers.Optimizer, embeng.optimizers.Optimizer or None
        How the rows are trained; None leaves them as they are. :mod:`embeng.keras.optimizers`
        lists what is served.
    combiner : {"mean", "sum", "sqrtn"}
        How the rows of a bag become one.
    placement : {"auto", "sparsecore", "default_device"}
        "auto" and "sparsecore" are the engine. "default_device" is a variable of Keras, which the
        optimizer of the model trains; `optimizer` is not used then.
    max_ids_per_partition, max_unique_ids_per_partition : int
        Limits of SparseCores. The engine has none; with ``update_stats=True`` they become the most
        that a batch had.
    """

    name: str
    vocabulary_size: int
    embedding_dim: int
    initializer: Any = dataclasses.field(
        default_factory=lambda: keras.initializers.VarianceScaling(mode="fan_out"))
    optimizer: Any = "adam"
    combiner: str = "mean"
    placement: str = "auto"
    max_ids_per_partition: int = 256
    max_unique_ids_per_partition: int = 256

    def get_config(self) -> dict[str, Any]:
        """Return the settings as values that JSON can hold."""
        return describe_table(self)

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Make it of what :meth:`get_config` returned."""
        made = dict(config)
        made["initializer"] = _deserialize(config["initializer"], lambda v: Initializer(*v))
        made["optimizer"] = _deserialize(config["optimizer"], _make_optimizer)
        return cls(**made)


@dataclasses.dataclass(order=True)
class FeatureConfig:
    """One input, and the table that it is looked up in.

    Parameters
    ----------
    name : str
        Name of the feature.
    table : TableConfig
        Several features may share one object.
    input_shape : tuple of int or None
        ``(batch,)`` or ``(batch, ids)``. Batches may have other sizes.
    output_shape : tuple of int or None
        ``(batch, embedding_dim)``.
    """

    name: str
    table: TableConfig
    input_shape: Sequence[int | None]
    output_shape: Sequence[int | None]

    def get_config(self) -> dict[str, Any]:
        """Return the settings as values that JSON can hold, the table's among them."""
        return {"name": self.name, "table": self.table.get_config(),
                "input_shape": self.input_shape, "output_shape": self.output_shape}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Make it of what :meth:`get_config` returned."""
        return cls(config["name"], TableConfig.from_config(config["table"]),
                   config["input_shape"], config["output_shape"])


def describe_table(table: Any) -> dict[str, Any]:
    """Give the settings of a table, ours or keras-rs', as values that JSON can hold."""
    config = {field.name: getattr(table, field.name) for field in dataclasses.fields(table)}
    config["initializer"] = _serialize(table.initializer)
    config["optimizer"] = _serialize(table.optimizer)
    return config


def is_feature(value: Any) -> bool:
    """Whether it is settings of a feature, ours or keras-rs'."""
    return all(hasattr(value, name) for name in ("name", "table", "input_shape", "output_shape"))

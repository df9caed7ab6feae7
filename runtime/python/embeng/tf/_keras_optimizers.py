# SPDX-License-Identifier: MIT
"""Optimizers of Keras as optimizers of ``tf.tpu.experimental.embedding``.

Three families are known: Keras 3, ``tf_keras``, and the legacy ones of ``tf_keras``. A legacy one
keeps the slots of tables by itself, so that a checkpoint of it fits where the tables are plain
variables.
"""
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from ._private import NoDependency, OptimizerBase
from ._strategy import TPUStrategy

_api = tf.tpu.experimental.embedding


class _Kind(NamedTuple):
    """An optimizer of Keras: what it becomes, settings that it keeps, and slots by our name."""

    makes: Any
    settings: tuple[str, ...]
    slots: dict[str, str]


_KINDS = {
    "sgd": _Kind(_api.SGD, (), {}),
    "adagrad": _Kind(_api.Adagrad, ("initial_accumulator_value",),
                     {"accumulators": "accumulator"}),
    "adam": _Kind(_api.Adam, ("beta_1", "beta_2", "epsilon"), {"momenta": "m", "velocities": "v"}),
    "ftrl": _Kind(_api.FTRL, ("learning_rate_power", "l1_regularization_strength",
                              "l2_regularization_strength", "beta", "initial_accumulator_value"),
                  {"accumulators": "accumulator", "linears": "linear"}),
}
# Settings that say nothing about the rows of a table.
_IGNORED = {"name", "learning_rate", "jit_compile", "is_legacy_optimizer"}
# Settings that the old attributes of legacy optimizers have, and get_config() only if they are set.
_CLIPPING = ("clipnorm", "clipvalue", "global_clipnorm")


def _is_keras_optimizer(optimizer: Any) -> bool:
    return callable(getattr(optimizer, "get_config", None)) and \
        callable(getattr(optimizer, "apply_gradients", None))


def _read_rate(optimizer: Any) -> float | Callable[[], Any]:
    """Return the rate as a number, or a function that is evaluated at each step."""
    is_legacy = hasattr(optimizer, "add_slot")
    held = optimizer._hyper["learning_rate"] if is_legacy else optimizer._learning_rate
    if callable(held) and hasattr(held, "get_config"):  # a schedule
        return lambda: tf.cast(held(optimizer.iterations), tf.float32)
    if not is_legacy:
        return lambda: tf.convert_to_tensor(optimizer.learning_rate, tf.float32)
    if callable(held) and not isinstance(held, (tf.Tensor, tf.Variable)):
        return lambda: tf.cast(held(), tf.float32)
    return float(optimizer.get_config()["learning_rate"])


def _check_settings(optimizer: Any, kind: _Kind, config: dict[str, Any]) -> None:
    """Refuse settings that are not their defaults and that the tables would not follow."""
    kept = {name: config[name] for name in kind.settings}
    defaults = type(optimizer)(**kept).get_config()
    changed = [name for name, value in config.items()
               if name not in _IGNORED and name not in kept and value != defaults.get(name)]
    changed += [name for name in _CLIPPING if getattr(optimizer, name, None) is not None]
    if changed:
        value = config.get(changed[0], getattr(optimizer, changed[0], None))
        raise ValueError(
            f"Optimizer parameter {changed[0]} is unsupported for TPU embeddings: the optimizer "
            f"{config['name']} has it as {value!r}. Give the tables an optimizer of their own "
            f"without it; {sorted(kept)} and the learning rate are supported.")


def _register_slot(optimizer: Any, table: Any, name: str, initializer: Any) -> Any:
    """Do what ``add_slot()`` does, for a table's variable, which no strategy has made."""
    if name not in optimizer._slot_names:
        optimizer._slot_names.append(name)
    start = functools.partial(initializer, shape=table.shape, dtype=table.dtype)
    slot = tf.Variable(start, trainable=False, name=f"{table._shared_name}/{name}")
    optimizer._slots.setdefault(table._unique_id, {})[name] = slot
    optimizer._restore_slot_variable(slot_name=name, variable=table, slot_variable=slot)
    optimizer._weights.append(slot)
    return slot


def _keep_slots(optimizer: Any, slots: dict[str, str]) -> Callable[..., Any]:
    """Have a legacy optimizer of Keras keep the slots of tables, and save them."""
    def create(table: Any, names: Any, initializers: Any) -> dict[str, Any]:
        in_engine = isinstance(tf.distribute.get_strategy(), TPUStrategy)
        made = {}
        for name, initializer in zip(names, initializers, strict=True):
            made[name] = NoDependency(  # the optimizer alone saves it
                _register_slot(optimizer, table, slots[name], initializer) if in_engine
                else optimizer.add_slot(table, slots[name], initializer))
        return made

    return create


def translate_keras_optimizer(optimizer: Any) -> Any:
    """Return the optimizer of ``tf.tpu.experimental.embedding`` that one of Keras stands for.

    Parameters
    ----------
    optimizer : keras.optimizers.Optimizer
        SGD without momentum, Adagrad, Adam without amsgrad, or Ftrl; of Keras 3, ``tf_keras``, or
        ``tf_keras.optimizers.legacy``. Its rate may be a schedule of its iterations or a function
        without parameters: both are evaluated at each step. The rate of an optimizer that is not
        legacy is read at each step in any case.

    Returns
    -------
    SGD, Adagrad, Adam or FTRL
        It has the settings of now. A legacy optimizer keeps its slots.

    Raises
    ------
    ValueError
        It is another optimizer, or has a setting that tables do not follow; the sentence names it.
    """
    if not _is_keras_optimizer(optimizer):
        raise ValueError(f"{type(optimizer).__name__} is an unsupported optimizer class. Please "
                         "pass a Keras optimizer.")
    kind = _KINDS.get(type(optimizer).__name__.lower())
    if kind is None:
        raise ValueError(f"Keras optimizer {type(optimizer).__name__} is unsupported for TPU "
                         "Embedding. Use SGD, Adagrad, Adam or Ftrl.")
    config = optimizer.get_config()
    _check_settings(optimizer, kind, config)
    settings = {name: config[name] for name in kind.settings}
    if kind.slots and hasattr(optimizer, "add_slot"):
        settings["slot_variable_creation_fn"] = _keep_slots(optimizer, kind.slots)
    return kind.makes(learning_rate=_read_rate(optimizer), **settings)


def normalize_optimizer(optimizer: Any) -> Any:
    """Make an optimizer of tables of what a program gives.

    Parameters
    ----------
    optimizer : str, optimizer of tables, optimizer of Keras, or None
        "sgd", "adagrad", "adam" and "ftrl" have the defaults of the embedding API.

    Raises
    ------
    ValueError
        It is something else.
    """
    if optimizer is None or isinstance(optimizer, OptimizerBase):
        return optimizer
    if isinstance(optimizer, str):
        if optimizer not in _KINDS:
            raise ValueError(f"Unknown optimizer name '{optimizer}'. Please use one of "
                             f"{', '.join(map(repr, _KINDS))}")
        return _KINDS[optimizer].makes()
    if _is_keras_optimizer(optimizer):
        return translate_keras_optimizer(optimizer)
    raise ValueError(f"Unknown optimizer type {type(optimizer)}. Please pass a string optimizer "
                     "name, a Keras optimizer, or an optimizer of tf.tpu.experimental.embedding.")

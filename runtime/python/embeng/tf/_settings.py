# SPDX-License-Identifier: MIT
"""TensorFlow's configurations of tables and optimizers as the engine's."""
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from .. import _core
from .._engine import Feature, Quantization, Table
from .._errors import InvalidError, NotSupportedError
from ..initializers import Initializer
from ..optimizers import Optimizer
from ._private import OptimizerBase

_api = tf.tpu.experimental.embedding

# Names of TensorFlow's attributes, which are the engine's settings, too.
_KINDS: dict[type, tuple[str, tuple[str, ...]]] = {
    _api.SGD: ("sgd", ()),
    _api.Adagrad: ("adagrad", ("initial_accumulator_value",)),
    _api.AdagradMomentum: ("adagrad_momentum",
                           ("momentum", "use_nesterov", "exponent", "beta2", "epsilon")),
    _api.FTRL: ("ftrl", ("learning_rate_power", "l1_regularization_strength",
                         "l2_regularization_strength", "beta", "initial_accumulator_value",
                         "multiply_linear_by_learning_rate", "allow_zero_accumulator")),
    _api.Adam: ("adam", ("beta_1", "beta_2", "epsilon", "lazy_adam", "sum_inside_sqrt")),
}
_COMMON = {"use_gradient_accumulation": "use_gradient_accumulation",
           "clip_weight_min": "clip_weight_min", "clip_weight_max": "clip_weight_max",
           "clip_gradient_min": "clip_min", "clip_gradient_max": "clip_max"}


class EngineInitializer:
    """Start a table with the engine's own numbers.

    They depend on the seed, the table's name and the row alone, so that a table of the same name
    and seed has the same bits in C, numpy, PyTorch, JAX and Keras. The rows are made in the
    engine's memory: no tensor of the table's size is made, as it is for other initializers.

    Parameters
    ----------
    initializer : embeng.initializers.Initializer
        How rows start.

    Examples
    --------
    >>> tf.tpu.experimental.embedding.TableConfig(
    ...     1000, 16, EngineInitializer(embeng.initializers.default(seed=7)), name="user")
    """

    def __init__(self, initializer: Initializer):
        if not isinstance(initializer, Initializer):
            raise InvalidError(f"initializer is {initializer!r}; give an embeng.initializers."
                               "Initializer")
        self.initializer = initializer

    def __call__(self, shape: Any, dtype: Any = tf.float32, **unused: Any) -> Any:
        """Refuse: the numbers depend on the name of a table, which is not known here."""
        raise NotSupportedError("an EngineInitializer starts tables of TPUEmbedding under a "
                                "TPUStrategy; give variables an initializer of TensorFlow")


class _Untouched(EngineInitializer):
    """A slot that starts as the engine's optimizer says."""

    def __init__(self) -> None:
        super().__init__(Initializer())


class EngineOptimizer(OptimizerBase):
    """Give a table an optimizer of :mod:`embeng.optimizers`, which has more than TensorFlow.

    Parameters
    ----------
    optimizer : embeng.optimizers.Optimizer
        Kind and settings. Its rate is a number.
    learning_rate : float or callable, optional
        The rate of the table in place of the optimizer's; a callable without arguments is
        evaluated in the graph at each step.

    Examples
    --------
    >>> EngineOptimizer(embeng.optimizers.rms_prop(0.01))
    """

    def __init__(self, optimizer: Optimizer, learning_rate: Any = None):
        if not isinstance(optimizer, Optimizer):
            raise InvalidError(f"optimizer is {optimizer!r}; give an embeng.optimizers.Optimizer")
        if learning_rate is None:
            learning_rate = optimizer.learning_rate
            if not isinstance(learning_rate, (int, float)):
                raise InvalidError(f"the rate of the optimizer is {learning_rate!r}; give it as "
                                   "learning_rate: a number, or a callable without arguments")
        super().__init__(learning_rate, True, None, None, None, False)
        self.optimizer = optimizer

    def _slot_names(self) -> list[str]:
        table = Table("t", 1, 1, optimizer=self.optimizer)
        model = _core.Model([{**table._asdict(), "optimizer": self.optimizer.describe("rate"),
                              "initializer": None}], [], {}, {})
        return list(model.describe()["tables"][0]["slots"])

    def _slot_initializers(self) -> list[Any]:
        return [_Untouched() for _ in self._slot_names()]

    def _load(self) -> Any:
        raise NotSupportedError("an EngineOptimizer has no place on a TPU")

    _retrieve = _load


def translate_optimizer(optimizer: Any, rate: float | str) -> Optimizer:
    """Make the engine's optimizer of one of TensorFlow's.

    Parameters
    ----------
    optimizer : SGD, Adagrad, AdagradMomentum, FTRL, Adam or EngineOptimizer
        Optimizer of a table.
    rate : float or str
        Its rate, or the name of a rate that each update gives.

    Raises
    ------
    NotSupportedError
        It is a CustomOptimizer: a program for a TPU's cores.
    """
    if isinstance(optimizer, EngineOptimizer):
        return Optimizer(optimizer.optimizer.kind, rate, **optimizer.optimizer.settings)
    found = [entry for kind, entry in _KINDS.items() if isinstance(optimizer, kind)]
    if not found:
        raise NotSupportedError(f"{type(optimizer).__name__} cannot be served: it is a program for "
                                "a TPU's cores; use SGD, Adagrad, AdagradMomentum, FTRL, Adam, or "
                                "an EngineOptimizer")
    kind, names = found[0]
    settings = {name: getattr(optimizer, name) for name in names}
    settings.update({ours: getattr(optimizer, theirs) for theirs, ours in _COMMON.items()})
    if optimizer.weight_decay_factor:
        settings["weight_decay_factor"] = optimizer.weight_decay_factor
        settings["multiply_weight_decay_by_rate"] = bool(
            optimizer.multiply_weight_decay_factor_by_learning_rate)
    return Optimizer(kind, rate, **settings)


def gather_rates(tables: Sequence[Any]) -> list[Callable[[], Any]]:
    """List the callables that are learning rates, each once, in the order of the tables."""
    rates: list[Callable[[], Any]] = []
    for table in tables:
        rate = None if table.optimizer is None else table.optimizer.learning_rate
        if callable(rate) and rate not in rates:
            rates.append(rate)
    return rates


def translate_table(table: Any, rates: Sequence[Callable[[], Any]]) -> Table:
    """Make the engine's table of a TableConfig that has a name.

    Parameters
    ----------
    table : tf.tpu.experimental.embedding.TableConfig
        Its initializer counts only if it is an :class:`EngineInitializer`.
    rates : sequence of callable
        As :func:`gather_rates` returned them; the rate of number k is named ``rate_k``.
    """
    if not isinstance(table.combiner, str):
        raise NotSupportedError(f"table {table.name}: a CustomCombiner cannot be served; use "
                                "'mean', 'sum' or 'sqrtn'")
    optimizer = None
    if table.optimizer is not None:
        rate = table.optimizer.learning_rate
        optimizer = translate_optimizer(
            table.optimizer, f"rate_{rates.index(rate)}" if callable(rate) else float(rate))
    initializer = Initializer("constant")
    if isinstance(table.initializer, EngineInitializer):
        initializer = table.initializer.initializer
    levels = table.quantization_config
    quantization = None
    if levels is not None:
        quantization = Quantization(levels.num_buckets, levels.lower, levels.upper)
    return Table(table.name, table.vocabulary_size, table.dim, table.combiner, optimizer,
                 initializer, quantization=quantization)


def name_features(features: Sequence[Any]) -> list[Feature]:
    """Make the engine's features of FeatureConfigs, with names that are unique."""
    names: list[str] = []
    for number, feature in enumerate(features):
        name = feature.name or f"feature_{number}"
        names.append(name if name not in names else f"{name}_{number}")
    return [Feature(name, feature.table.name)
            for name, feature in zip(names, features, strict=True)]

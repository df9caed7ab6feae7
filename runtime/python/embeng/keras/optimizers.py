# SPDX-License-Identifier: MIT
"""Optimizers of Keras as optimizers of tables, with Keras' own formulas on the rows of a batch.

=================  ===============================================================================
SGD                without momentum, as it is; with momentum and nesterov, where the slot
                   ``momenta`` is Keras' momentum with the other sign
Adagrad            the slot ``accumulators`` is Keras' accumulator plus epsilon
Adam, AdamW        the form with bias correction and an uncorrected epsilon
Ftrl               without l2_shrinkage_regularization_strength
RMSprop            plain and centered, with momentum
Adadelta, Lion     as they are
=================  ===============================================================================

``weight_decay`` decays the rows of a batch, ``clipvalue`` clips the gradients of rows, ``clipnorm``
clips a table's whole gradient. A learning rate is read at each update: a number, which may be
assigned to, a schedule of the count of updates, or a callable. Everything else is refused by name.
Sources of the formulas: keras/src/optimizers and embeng-optimizers(7).
"""
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy

from .. import optimizers, schedules
from .._errors import NotSupportedError
from ._framework import keras


def _to_float(value: Any) -> float:
    return float(keras.ops.convert_to_numpy(value))


class Rate:
    """The learning rate of an optimizer of Keras, read at a step.

    The program may assign another number, schedule or callable at any time.

    Parameters
    ----------
    optimizer : keras.optimizers.Optimizer
        The optimizer.
    """

    def __init__(self, optimizer: Any):
        self._optimizer = optimizer
        self._translated: dict[int, tuple[Any, schedules.Schedule | None]] = {}

    @property
    def variable(self) -> Any:
        """The variable of Keras that holds the rate; None if it is a schedule or a callable."""
        held = self._optimizer._learning_rate
        return held if isinstance(held, keras.Variable) else None

    def __call__(self, step: int) -> float:
        """Return the rate after so many updates."""
        held = self._optimizer._learning_rate
        if isinstance(held, keras.Variable):
            return _to_float(held._value)
        if not isinstance(held, keras.optimizers.schedules.LearningRateSchedule):
            return _to_float(held() if callable(held) else held)
        if id(held) not in self._translated:
            self._translated[id(held)] = held, _translate_schedule(held)
        translated = self._translated[id(held)][1]
        return _to_float(held(numpy.int32(step))) if translated is None else translated(step)


class Rule(NamedTuple):
    """The work of an update of one table.

    Parameters
    ----------
    optimizer : embeng.optimizers.Optimizer or None
        The engine's optimizer; its rate has a name if `rate` is there.
    rate : Rate or None
        The learning rate, which the updates are told.
    scaled : bool
        Gradients are multiplied by the rate, and the engine's rate is 1.
    clipnorm : float or None
        The largest norm of the table's gradient.
    """

    optimizer: optimizers.Optimizer | None
    rate: Rate | None = None
    scaled: bool = False
    clipnorm: float | None = None


def _refuse(table: str, optimizer: Any, what: str, instead: str) -> NotSupportedError:
    name = type(optimizer).__name__
    return NotSupportedError(f"table {table}: the optimizer {name} has {what}, which embeddings of "
                             f"an engine do not serve; {instead}")


def _check_common(table: str, optimizer: Any) -> None:
    """Refuse settings of all optimizers that the engine does not serve."""
    without = "leave it out"
    for name in ("use_ema", "loss_scale_factor", "gradient_accumulation_steps", "global_clipnorm"):
        if getattr(optimizer, name, None):
            what = f"{name}={getattr(optimizer, name)!r}"
            hint = "use clipnorm" if name == "global_clipnorm" else without
            raise _refuse(table, optimizer, what, hint)


def _translate_schedule(schedule: Any) -> schedules.Schedule | None:
    """Give a schedule of Keras as the engine's, which has the same bits on each backend."""
    kinds = keras.optimizers.schedules
    config: Any = {}
    if type(schedule).__module__.startswith("keras."):
        config = schedule.get_config()
    steps: Any = config.get("decay_steps", 1)
    if int(steps) != steps or steps < 1:
        return None
    steps, first = int(steps), config.get("initial_learning_rate", 0.0)
    if type(schedule) is kinds.ExponentialDecay:
        return schedules.exponential(first, steps, config["decay_rate"],
                                     staircase=config["staircase"])
    if type(schedule) is kinds.InverseTimeDecay:
        return schedules.inverse_time(first, steps, config["decay_rate"],
                                      staircase=config["staircase"])
    if type(schedule) is kinds.PolynomialDecay:
        return schedules.polynomial(first, steps, power=config["power"],
                                    end_learning_rate=config["end_learning_rate"],
                                    cycle=config["cycle"])
    if type(schedule) is kinds.CosineDecay and config["warmup_target"] is None:
        return schedules.cosine(first, steps, alpha=config["alpha"])
    if type(schedule) is kinds.PiecewiseConstantDecay:
        return schedules.piecewise([int(b) for b in config["boundaries"]], config["values"])
    return None


def _settings(optimizer: Any) -> dict[str, Any]:
    """Collect the settings of all kinds."""
    found: dict[str, Any] = {}
    if optimizer.weight_decay:
        found.update(weight_decay_factor=float(optimizer.weight_decay),
                     multiply_weight_decay_by_rate=True)
    if optimizer.clipvalue:
        found.update(clip_min=-float(optimizer.clipvalue), clip_max=float(optimizer.clipvalue))
    return found


def _make_momentum(table: str, given: Any, rate: str, settings: dict[str, Any]) -> Rule:
    # Keras' momentum has the learning rate of each step inside of it, so gradients are multiplied
    # by the rate, and the engine's rate is 1.
    for what in ("weight_decay", "clipvalue"):
        if getattr(given, what):
            raise _refuse(table, given, f"momentum and {what}", "use one of both")
    made = optimizers.momentum(1.0, momentum=given.momentum, use_nesterov=given.nesterov)
    return Rule(made, scaled=True)


def _make_sgd(table: str, given: Any, rate: str, settings: dict[str, Any]) -> Rule:
    if given.momentum:
        return _make_momentum(table, given, rate, settings)
    return Rule(optimizers.sgd(rate, **settings))


def _make_adagrad(table: str, given: Any, rate: str, settings: dict[str, Any]) -> Rule:
    # Keras divides by sqrt(accumulator + epsilon): a slot that starts epsilon higher is that sum.
    start = float(given.initial_accumulator_value) + float(given.epsilon)
    if not start > 0:
        raise _refuse(table, given, "initial_accumulator_value=0 and epsilon=0", "set one of both")
    return Rule(optimizers.adagrad(rate, initial_accumulator_value=start, **settings))


def _make_adam(table: str, given: Any, rate: str, settings: dict[str, Any]) -> Rule:
    if given.amsgrad:
        raise _refuse(table, given, "amsgrad=True", "leave it out")
    return Rule(optimizers.adam_epsilon_hat(rate, beta_1=float(given.beta_1),
                                            beta_2=float(given.beta_2),
                                            epsilon=float(given.epsilon), **settings))


def _make_ftrl(table: str, given: Any, rate: str, settings: dict[str, Any]) -> Rule:
    if given.l2_shrinkage_regularization_strength:
        raise _refuse(table, given, "l2_shrinkage_regularization_strength", "leave it out")
    return Rule(optimizers.ftrl(
        rate, initial_accumulator_value=given.initial_accumulator_value,
        learning_rate_power=given.learning_rate_power,
        l1_regularization_strength=given.l1_regularization_strength,
        l2_regularization_strength=given.l2_regularization_strength, beta=given.beta, **settings))


def _make_rmsprop(table: str, given: Any, rate: str, settings: dict[str, Any]) -> Rule:
    make = optimizers.centered_rms_prop if given.centered else optimizers.rms_prop
    return Rule(make(rate, rho=given.rho, momentum=given.momentum, epsilon=given.epsilon,
                     **settings))


def _make_adadelta(table: str, given: Any, rate: str, settings: dict[str, Any]) -> Rule:
    return Rule(optimizers.adadelta(rate, rho=given.rho, epsilon=given.epsilon, **settings))


def _make_lion(table: str, given: Any, rate: str, settings: dict[str, Any]) -> Rule:
    return Rule(optimizers.lion(rate, beta1=given.beta_1, beta2=given.beta_2, **settings))


_MAKERS: dict[str, Callable[[str, Any, str, dict[str, Any]], Rule]] = {
    "SGD": _make_sgd, "Adagrad": _make_adagrad, "Adam": _make_adam, "AdamW": _make_adam,
    "Ftrl": _make_ftrl, "RMSprop": _make_rmsprop, "Adadelta": _make_adadelta, "Lion": _make_lion,
}


def translate(table: str, given: Any, name: str) -> Rule:
    """Make the rule of a table.

    Parameters
    ----------
    table : str
        Its name, for messages.
    given : str, keras.optimizers.Optimizer, embeng.optimizers.Optimizer or None
        The setting of the table.
    name : str
        The name of the rate that each update gives.

    Returns
    -------
    Rule
        The work of an update.

    Raises
    ------
    NotSupportedError
        The optimizer, or one of its settings, is not served; the sentence names it.
    """
    if given is None:
        return Rule(None)
    if isinstance(given, optimizers.Optimizer):
        if isinstance(given.learning_rate, str):
            raise NotSupportedError(f"table {table}: the rate {given.learning_rate!r} of its "
                                    "optimizer has no number here; give a number or a schedule")
        return Rule(given)
    optimizer = keras.optimizers.get(given)
    maker = _MAKERS.get(type(optimizer).__name__)
    if maker is None or not type(optimizer).__module__.startswith("keras."):
        raise NotSupportedError(f"table {table}: the optimizer {type(optimizer).__name__} is not "
                                f"served by an engine; use one of {', '.join(_MAKERS)}")
    _check_common(table, optimizer)
    rule = maker(table, optimizer, name, _settings(optimizer))
    clipnorm = float(optimizer.clipnorm) if optimizer.clipnorm else None
    return rule._replace(rate=Rate(optimizer), clipnorm=clipnorm)

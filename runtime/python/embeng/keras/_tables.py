# SPDX-License-Identifier: MIT
"""The tables of a layer in an engine, as the operations of each backend use them, on the host.

:class:`Tables` takes and returns arrays of numpy. Its methods may be called from any thread; an
update is one step of all its tables.
"""
import threading
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy

from .. import initializers
from .._engine import Engine, Feature, Table
from ._framework import keras
from ._inputs import Layout, make_bags
from .optimizers import Rate, Rule, translate

# Initializers of Keras that give one number everywhere. Rows of others are in memory twice for a
# moment.
_CONSTANTS = {"Zeros": 0.0, "Ones": 1.0}


def _constant_of(initializer: Any) -> float | None:
    """Return the number that an initializer of Keras gives everywhere, if it gives one."""
    name = type(initializer).__name__
    if name == "Constant" and isinstance(initializer.value, int | float):
        return float(initializer.value)
    return _CONSTANTS.get(name)


def _make_table(config: Any, rule: Rule) -> Table:
    """Make the engine's table of a configuration; rows that Keras makes start as zeros."""
    given = config.initializer
    if not isinstance(given, initializers.Initializer):
        constant = _constant_of(keras.initializers.get(given))
        given = initializers.constant(0.0 if constant is None else constant)
    return Table(config.name, config.vocabulary_size, config.embedding_dim, config.combiner,
                 rule.optimizer, given)


def as_keras_initializer(config: Any) -> Any:
    """Give the initializer of a table as Keras calls it; one of embeng's has the engine's bits."""
    if not isinstance(config.initializer, initializers.Initializer):
        return config.initializer

    def make(shape: Any, dtype: Any = None) -> Any:
        table = Table(config.name, shape[0], shape[1], initializer=config.initializer)
        with Engine([table], cores=1) as made:
            return keras.ops.convert_to_tensor(made[config.name].read(), dtype)

    return make


class Change(NamedTuple):
    """The factors of the gradients of one table before an update.

    Parameters
    ----------
    table : str
        Its name.
    features : tuple of int
        Its features in a call.
    rate : int or None
        The place of a rate in :meth:`Tables.read_rates` that is a factor.
    clipped : bool
        Whether :meth:`Tables.clip` is one.
    """

    table: str
    features: tuple[int, ...]
    rate: int | None
    clipped: bool


class Plan(NamedTuple):
    """The needs of an update beside gradients. Equal ones have the same hash.

    Parameters
    ----------
    trained : tuple of int
        The features of a call whose tables have an optimizer.
    rates : tuple of (str, int)
        Names that the engine knows, and the place of each in :meth:`Tables.read_rates`.
    changed : tuple of Change
        The tables whose gradients are multiplied.
    rate_count : int
        The rates of :meth:`Tables.read_rates`.
    """

    trained: tuple[int, ...]
    rates: tuple[tuple[str, int], ...]
    changed: tuple[Change, ...]
    rate_count: int


class Tables:
    """Tables and features in one engine.

    Parameters
    ----------
    features : mapping of str to FeatureConfig
        By path. Those that share a table share the object; names of tables are unique.
    options
        For :class:`embeng.Engine`.
    """

    def __init__(self, features: Mapping[str, Any], **options: Any):
        self.configs: dict[str, Any] = {feature.table.name: feature.table
                                        for feature in features.values()}
        self.table_of = {path: feature.table.name for path, feature in features.items()}
        self.dims = {path: feature.table.embedding_dim for path, feature in features.items()}
        self._rates = {name: f"rate_{number}" for number, name in enumerate(self.configs)}
        self._rules = {name: translate(name, config.optimizer, self._rates[name])
                       for name, config in self.configs.items()}
        self._lock = threading.Lock()
        self.engine = Engine([_make_table(config, self._rules[name])
                              for name, config in self.configs.items()],
                             [Feature(path, table) for path, table in self.table_of.items()],
                             **options)
        for name, config in self.configs.items():
            self._start(name, config.initializer)

    def _start(self, name: str, given: Any) -> None:
        if isinstance(given, initializers.Initializer):
            return
        initializer = keras.initializers.get(given)
        if _constant_of(initializer) is None:
            view = self.engine[name]
            view.write(keras.ops.convert_to_numpy(initializer(view.shape, dtype="float32")))

    def _bags(self, layouts: Sequence[Layout], arrays: Sequence[Any]) -> dict[str, Any]:
        bags, at = {}, 0
        for layout in layouts:
            end = at + layout.tensor_count
            weights = arrays[end] if layout.weighted else None
            bags[layout.feature] = make_bags(layout, arrays[at:end], weights)
            at = end + layout.weighted
        return bags

    # -- needs of updates

    def plan(self, layouts: Sequence[Layout]) -> Plan:
        """Plan the updates of features."""
        trained, changed = [], []
        by_table: dict[str, list[int]] = {}
        for k, layout in enumerate(layouts):
            table = self.table_of[layout.feature]
            if self._rules[table].optimizer is not None:
                trained.append(k)
                by_table.setdefault(table, []).append(k)
        asked = [name for name, rule in self._rules.items() if rule.rate is not None]
        for table, features in by_table.items():
            rule = self._rules[table]
            rate = asked.index(table) if rule.scaled else None
            if rule.scaled or rule.clipnorm is not None:
                changed.append(Change(table, tuple(features), rate, rule.clipnorm is not None))
        rates = [(self._rates[name], place) for place, name in enumerate(asked)
                 if not self._rules[name].scaled]
        return Plan(tuple(trained), tuple(rates), tuple(changed), len(asked))

    @property
    def rates(self) -> list[Rate]:
        """The learning rates that an update has to know."""
        return [rule.rate for rule in self._rules.values() if rule.rate is not None]

    def read_rates(self) -> Any:
        """Read the learning rates of the next step, as an array of float32."""
        rates = self.rates
        # Reading the count waits for updates, and numbers do not depend on it.
        step = 0 if all(rate.variable is not None for rate in rates) else self.engine.step
        return numpy.array([rate(step) for rate in rates], numpy.float32)

    def largest_norm(self, table: str) -> float:
        """Return the ``clipnorm`` of a table that has one."""
        most = self._rules[table].clipnorm
        assert most is not None
        return most

    def clip(self, table: str, inputs: dict[str, Any], gradients: dict[str, Any],
             factor: float) -> float:
        """Compute by what ``clipnorm`` multiplies the gradients of a table.

        Parameters
        ----------
        table : str
            Its name.
        inputs, gradients : dict
            Those of all of its features, as :meth:`embeng.Engine.update` takes them.
        factor : float
            By what the gradients will be multiplied beside it.

        Returns
        -------
        float
            At most 1.
        """
        most = self.largest_norm(table)
        norm, _ = self.engine.gradient_norm(inputs, gradients)
        return most / max(norm * factor, most)

    # -- steps, on the host

    def look_up(self, layouts: Sequence[Layout], arrays: Sequence[Any]) -> list[Any]:
        """Look features up.

        Parameters
        ----------
        layouts : sequence of Layout
            The features.
        arrays : sequence of ndarray
            Their tensors and weights, one after another.

        Returns
        -------
        list of ndarray of float32
            ``[samples, dim]`` for each.
        """
        found = self.engine.lookup(self._bags(layouts, arrays))
        return [found[layout.feature] for layout in layouts]

    def weight_gradients(self, layouts: Sequence[Layout], arrays: Sequence[Any],
                         gradients: Sequence[Any]) -> list[Any]:
        """Compute the gradients of the weights of the features that have some, flat."""
        bags = self._bags(layouts, arrays)
        weighted = [layout.feature for layout in layouts if layout.weighted]
        by_name = {layout.feature: gradient
                   for layout, gradient in zip(layouts, gradients, strict=True)}
        wanted: dict[str, Any] = dict.fromkeys(weighted)
        self.engine.weight_gradients({name: bags[name] for name in weighted},
                                     {name: by_name[name] for name in weighted}, wanted)
        return [wanted[name] for name in weighted]

    def update(self, layouts: Sequence[Layout], arrays: Sequence[Any], gradients: Sequence[Any],
               scale: float) -> bool:
        """Apply gradients of activations, as one step.

        Parameters
        ----------
        layouts, arrays
            As for :meth:`look_up`.
        gradients : sequence of ndarray of float32
            ``[samples, dim]`` for each feature.
        scale : float
            By what the loss was multiplied; 0 and 1 are nothing.

        Returns
        -------
        bool
            False if the loss was scaled and a gradient is not finite: nothing was changed.
        """
        scaled = scale not in (0.0, 1.0)
        if scaled and not all(numpy.isfinite(gradient).all() for gradient in gradients):
            return False
        plan = self.plan(layouts)
        if not plan.trained:
            return True
        factor = 1.0 / scale if scaled else 1.0
        bags = self._bags(layouts, arrays)
        names = [layouts[k].feature for k in plan.trained]
        inputs = {name: bags[name] for name in names}
        given = {layouts[k].feature: numpy.ascontiguousarray(gradients[k], numpy.float32)
                 for k in plan.trained}
        with self._lock:
            numbers = self.read_rates()
            for table, features, place, clipped in plan.changed:
                by = numpy.float32(1) if place is None else numbers[place]
                paths = [layouts[k].feature for k in features]
                if clipped:
                    by *= numpy.float32(self.clip(table, {path: inputs[path] for path in paths},
                                                  {path: given[path] for path in paths}, factor))
                given.update({path: given[path] * by for path in paths})
            rates = {name: float(numbers[place]) for name, place in plan.rates}
            self.engine.update(inputs, given, rates, factor if scaled else None)
        return True

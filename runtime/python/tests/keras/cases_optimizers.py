# SPDX-License-Identifier: MIT
"""Tables are trained by the formulas of Keras' optimizers, step by step, and others are refused."""
from typing import Any

import keras
import numpy
import pytest
from keras_peers import DIM, ROWS, make_feature, make_table

import embeng
from embeng.keras import DistributedEmbedding
from embeng.keras._inputs import DENSE, Layout

STEPS = 6
optimizers = keras.optimizers
schedules = keras.optimizers.schedules


class Halving(schedules.LearningRateSchedule):  # type: ignore[misc]
    """A schedule that the package does not know."""

    def __call__(self, step: Any) -> Any:
        return 0.02 / (1.0 + keras.ops.cast(step, "float32"))

    def get_config(self) -> dict[str, Any]:
        return {}


SERVED = {
    "sgd": lambda: optimizers.SGD(0.1),
    "sgd_decay": lambda: optimizers.SGD(0.1, weight_decay=0.05),
    "momentum": lambda: optimizers.SGD(schedules.ExponentialDecay(0.1, 2, 0.5), momentum=0.9),
    "nesterov": lambda: optimizers.SGD(Halving(), momentum=0.8, nesterov=True),
    "adagrad": lambda: optimizers.Adagrad(0.1),
    "adagrad_epsilon": lambda: optimizers.Adagrad(0.1, initial_accumulator_value=0.0, epsilon=0.01),
    "adam": lambda: optimizers.Adam(0.01),
    "adam_betas": lambda: optimizers.Adam(0.01, beta_1=0.8, beta_2=0.9, epsilon=1e-3),
    "adamw": lambda: optimizers.AdamW(0.01, weight_decay=0.1),
    "ftrl": lambda: optimizers.Ftrl(0.05, l1_regularization_strength=0.01,
                                    l2_regularization_strength=0.02, beta=0.1),
    "rmsprop": lambda: optimizers.RMSprop(0.01),
    "rmsprop_all": lambda: optimizers.RMSprop(0.01, rho=0.8, momentum=0.9, centered=True),
    "adadelta": lambda: optimizers.Adadelta(0.5),
    "lion": lambda: optimizers.Lion(0.01),
    "lion_decay": lambda: optimizers.Lion(0.01, weight_decay=0.1),
    "clipvalue": lambda: optimizers.SGD(0.1, clipvalue=0.5),
    "clipnorm": lambda: optimizers.Adagrad(0.1, clipnorm=2.0),
    "clipnorm_momentum": lambda: optimizers.SGD(0.1, momentum=0.9, clipnorm=2.0),
    "exponential": lambda: optimizers.SGD(schedules.ExponentialDecay(0.1, 2, 0.7, staircase=True)),
    "inverse": lambda: optimizers.SGD(schedules.InverseTimeDecay(0.1, 3, 0.5)),
    "polynomial": lambda: optimizers.SGD(schedules.PolynomialDecay(0.1, 4, 0.01, power=2.0)),
    "cosine": lambda: optimizers.SGD(schedules.CosineDecay(0.1, 5, alpha=0.1)),
    "warm_up": lambda: optimizers.SGD(schedules.CosineDecay(0.0, 5, warmup_target=0.1,
                                                            warmup_steps=3)),
    "piecewise": lambda: optimizers.SGD(schedules.PiecewiseConstantDecay([1, 3], [0.1, 0.2, 0.05])),
    "unknown_schedule": lambda: optimizers.Adam(Halving()),
    "callable": lambda: optimizers.SGD(lambda: 0.07),
}


def update(layer: Any, ids: Any, gradient: Any, scale: float = 0.0) -> bool:
    """Give the rows of `ids` their gradients, on the host."""
    return bool(layer._tables.update([Layout("f", DENSE, False)], [ids], [gradient], scale))


def make_layer(optimizer: Any) -> Any:
    return DistributedEmbedding({"f": make_feature(make_table(optimizer=optimizer), ids=None)})


@pytest.mark.parametrize("name", SERVED)
def test_the_formula_is_keras(name: str, rng: numpy.random.Generator) -> None:
    """All rows are in each batch, so that Keras' dense optimizers do the same."""
    layer, theirs = make_layer(SERVED[name]()), SERVED[name]()
    variable = keras.Variable(layer.engine["t"].read())
    for step in range(STEPS):
        ids = rng.permutation(ROWS).astype("int32")
        gradient = rng.standard_normal((ROWS, DIM)).astype("float32")
        dense = numpy.empty_like(gradient)
        dense[ids] = gradient
        theirs.apply([keras.ops.convert_to_tensor(dense)], [variable])
        assert update(layer, ids, gradient)
        numpy.testing.assert_allclose(
            layer.engine["t"].read(), keras.ops.convert_to_numpy(variable.value), rtol=2e-5,
            atol=2e-6, err_msg=f"step {step}")


@pytest.mark.sample
@pytest.mark.parametrize("name", ["sgd", "adagrad", "momentum", "adam"])
def test_other_rows_stay(name: str, rng: numpy.random.Generator) -> None:
    layer = make_layer(SERVED[name]())
    before = layer.engine["t"].read()
    update(layer, numpy.array([3, 7], "int32"), rng.standard_normal((2, DIM)).astype("float32"))
    after = layer.engine["t"].read()
    moved = (before != after).any(axis=1)
    assert list(numpy.flatnonzero(moved)) == [3, 7]


def test_ids_that_come_twice_are_summed_before_the_formula(rng: numpy.random.Generator) -> None:
    layer, theirs = make_layer(optimizers.Adagrad(0.1)), optimizers.Adagrad(0.1)
    variable = keras.Variable(layer.engine["t"].read())
    gradient = rng.standard_normal((3, DIM)).astype("float32")
    update(layer, numpy.array([5, 2, 5], "int32"), gradient)
    dense = numpy.zeros((ROWS, DIM), "float32")
    numpy.add.at(dense, [5, 2, 5], gradient)
    theirs.apply([keras.ops.convert_to_tensor(dense)], [variable])
    numpy.testing.assert_allclose(layer.engine["t"].read(),
                                  keras.ops.convert_to_numpy(variable.value), rtol=1e-6, atol=1e-6)


def test_an_assigned_learning_rate_is_used() -> None:
    optimizer = optimizers.SGD(0.1)
    layer = make_layer(optimizer)
    gradient = numpy.ones((1, DIM), "float32")
    for rate in (0.5, 0.25):
        optimizer.learning_rate = rate
        before = layer.engine["t"][0]
        update(layer, numpy.array([0], "int32"), gradient)
        numpy.testing.assert_allclose(before - layer.engine["t"][0], numpy.full(DIM, rate),
                                      rtol=1e-5)


def test_a_name_is_the_optimizer_with_its_defaults(rng: numpy.random.Generator) -> None:
    gradient = rng.standard_normal((3, DIM)).astype("float32")
    for name, optimizer in (("adam", optimizers.Adam()), ("adagrad", optimizers.Adagrad()),
                            ("ftrl", optimizers.Ftrl()), ("rmsprop", optimizers.RMSprop())):
        by_name, by_object = make_layer(name), make_layer(optimizer)
        for layer in (by_name, by_object):
            for _ in range(3):
                update(layer, numpy.array([1, 5, 9], "int32"), gradient)
        for slot in (None, *by_object.engine["t"].slots):
            numpy.testing.assert_array_equal(by_name.engine["t"].read(slot=slot),
                                             by_object.engine["t"].read(slot=slot))


def test_gradients_of_a_scaled_loss_are_divided() -> None:
    layer = make_layer(optimizers.SGD(1.0))
    before = layer.engine["t"][0]
    update(layer, numpy.array([0], "int32"), numpy.full((1, DIM), 32768, "float32"), 32768.0)
    numpy.testing.assert_allclose(before - layer.engine["t"][0], numpy.ones(DIM), rtol=1e-6)
    infinite = numpy.full((1, DIM), numpy.inf, "float32")
    assert not update(layer, numpy.array([0], "int32"), infinite, 32768.0)
    assert layer.engine.step == 1
    with pytest.raises(embeng.EmbengError, match="feature f"):
        update(layer, numpy.array([0], "int32"), infinite)


def test_an_optimizer_of_embeng_and_none() -> None:
    layer = make_layer(embeng.optimizers.rowwise_adagrad(0.1))
    assert layer.engine["t"].slots == ("accumulators",)
    frozen = make_layer(None)
    before = frozen.engine["t"].read()
    update(frozen, numpy.array([1], "int32"), numpy.ones((1, DIM), "float32"))
    assert (frozen.engine["t"].read() == before).all()


REFUSED = {
    "use_ema=True": lambda: optimizers.SGD(0.1, use_ema=True),
    "loss_scale_factor": lambda: optimizers.SGD(0.1, loss_scale_factor=2.0),
    "gradient_accumulation_steps=2": lambda: optimizers.SGD(0.1, gradient_accumulation_steps=2),
    "global_clipnorm=1.0": lambda: optimizers.SGD(0.1, global_clipnorm=1.0),
    "amsgrad=True": lambda: optimizers.Adam(0.1, amsgrad=True),
    "l2_shrinkage": lambda: optimizers.Ftrl(0.1, l2_shrinkage_regularization_strength=0.1),
    "momentum and weight_decay": lambda: optimizers.SGD(0.1, momentum=0.9, weight_decay=0.1),
    "Nadam": lambda: optimizers.Nadam(0.1),
    "Adafactor": lambda: optimizers.Adafactor(0.1),
    "LossScaleOptimizer": lambda: optimizers.LossScaleOptimizer(optimizers.SGD(0.1)),
}


@pytest.mark.parametrize("what", REFUSED)
def test_others_are_refused_by_name(what: str) -> None:
    with pytest.raises(NotImplementedError, match=f"table t.*{what}"):
        make_layer(REFUSED[what]())

# SPDX-License-Identifier: MIT
"""fit(), evaluate(), predict(), callbacks and mixed precision with tables in the engine."""
import json
from pathlib import Path
from typing import Any

import keras
import numpy
import pytest
from keras_peers import (BACKEND, BATCH, DIM, ROWS, make_configs, make_data, make_feature,
                         make_model, make_table, read_rows)

import embeng
from embeng.keras import DistributedEmbedding

SGD = keras.optimizers.SGD


def fit(model: Any, data: Any, epochs: int = 1, **options: Any) -> Any:
    return model.fit(*data, batch_size=BATCH, epochs=epochs, verbose=0, shuffle=False,
                     **options).history["loss"]


@pytest.mark.sample
def test_losses_are_those_of_variables_of_keras(rng: numpy.random.Generator) -> None:
    """The last batch is smaller. With SGD the tables of both placements do the same."""
    data = make_data(rng, 40)
    ours, layer = make_model(make_configs(SGD(0.1)))
    theirs, peer = make_model(make_configs(SGD(0.1), placement="default_device"))
    numpy.testing.assert_allclose(fit(ours, data, 3), fit(theirs, data, 3), rtol=1e-5)
    for name in ("t", "u"):
        numpy.testing.assert_allclose(read_rows(layer, name), read_rows(peer, name), rtol=1e-5,
                                      atol=1e-6)
    assert layer.engine.step == 9


def test_nothing_but_training_changes_rows(rng: numpy.random.Generator) -> None:
    ids, labels = make_data(rng, 20)
    model, layer = make_model(make_configs("adam"))
    before = read_rows(layer)
    model.evaluate(ids, labels, verbose=0)
    model.predict(ids, verbose=0)
    model(ids)
    assert (read_rows(layer) == before).all() and layer.engine.step == 0
    assert model.losses == []


def test_a_layer_that_is_not_trainable_stays(rng: numpy.random.Generator) -> None:
    model, layer = make_model(make_configs("adam"))
    layer.trainable = False
    model.compile(optimizer=SGD(0.1), loss="mse")
    before = read_rows(layer)
    fit(model, make_data(rng, 20))
    assert (read_rows(layer) == before).all() and layer.engine.step == 0


def test_train_on_batch_and_validation(rng: numpy.random.Generator) -> None:
    model, layer = make_model(make_configs("adam"))
    ids, labels = make_data(rng, 12)
    for step in range(3):
        model.train_on_batch(ids, labels)
        assert layer.engine.step == step + 1
    fit(model, (ids, labels), validation_data=(ids, labels))
    assert layer.engine.step == 4


def test_weights_of_samples_reach_the_rows(rng: numpy.random.Generator) -> None:
    ids, labels = make_data(rng, BATCH)
    model, layer = make_model(make_configs(SGD(0.1)))
    before = read_rows(layer)
    model.fit(ids, labels, batch_size=BATCH, verbose=0,
              sample_weight=numpy.zeros(BATCH, "float32"))
    assert (read_rows(layer) == before).all()


@pytest.mark.parametrize("steps", [1, 2])
def test_several_steps_in_one_call(steps: int, rng: numpy.random.Generator) -> None:
    if BACKEND == "torch" and steps > 1:
        return  # Keras itself takes one step at a time on torch
    model, layer = make_model(make_configs("adam"))
    model.compile(optimizer="sgd", loss="mse", steps_per_execution=steps)
    fit(model, make_data(rng, 64))
    assert layer.engine.step == 4


def test_eager_training_has_the_same_numbers(rng: numpy.random.Generator) -> None:
    data = make_data(rng, 40)
    compiled, first = make_model(make_configs("adam"))
    eager, second = make_model(make_configs("adam"))
    eager.compile(optimizer=SGD(0.1), loss="mse", run_eagerly=True)
    numpy.testing.assert_allclose(fit(compiled, data, 2), fit(eager, data, 2), rtol=1e-6)
    numpy.testing.assert_allclose(read_rows(first), read_rows(second), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("optimizer", [
    lambda: SGD(0.1, clipnorm=0.5), lambda: SGD(0.1, global_clipnorm=0.5),
    lambda: keras.optimizers.AdamW(0.01),
    lambda: SGD(0.1, gradient_accumulation_steps=2)])
def test_optimizers_of_the_model_leave_tables_alone(optimizer: Any,
                                                    rng: numpy.random.Generator) -> None:
    """The tables' own optimizer makes a step for each batch, whatever that of the model is."""
    data = make_data(rng, BATCH)
    plain, first = make_model(make_configs(SGD(0.1)))
    other, second = make_model(make_configs(SGD(0.1)), optimizer())
    fit(plain, data)
    fit(other, data)
    assert (read_rows(first) == read_rows(second)).all()
    fit(other, data, 3)
    assert second.engine.step == 4


# -- mixed precision ---------------------------------------------------------------------

@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_mixed_precision(policy: str, rng: numpy.random.Generator) -> None:
    data = make_data(rng, 64)
    plain, first = make_model(make_configs(SGD(0.1)))
    mixed, second = make_model(make_configs(SGD(0.1)), dtype=policy)
    optimizer = keras.optimizers.LossScaleOptimizer(SGD(0.1)) if "16" in policy[-3:] and \
        policy.endswith("_float16") else SGD(0.1)
    mixed.compile(optimizer=optimizer, loss="mse")
    ids = data[0]
    assert {str(keras.backend.standardize_dtype(x.dtype)) for x in keras.tree.flatten(second(ids))
            } == {policy.removeprefix("mixed_")}
    numpy.testing.assert_allclose(fit(mixed, data, 2), fit(plain, data, 2), rtol=2e-2)
    numpy.testing.assert_allclose(read_rows(first), read_rows(second), atol=5e-3)
    assert second.engine.step == first.engine.step


def test_a_scaled_loss_has_the_rows_of_one_that_is_not(rng: numpy.random.Generator) -> None:
    data = make_data(rng, 64)
    plain, first = make_model(make_configs("adam"))
    scaled, second = make_model(make_configs("adam"),
                                keras.optimizers.LossScaleOptimizer(SGD(0.1), initial_scale=1024.0))
    constant, third = make_model(make_configs("adam"), SGD(0.1, loss_scale_factor=64.0))
    for model in (plain, scaled, constant):
        fit(model, data, 2)
    for layer in (second, third):
        numpy.testing.assert_allclose(read_rows(first), read_rows(layer), rtol=1e-5, atol=1e-6)


def test_a_step_that_overflows_is_left_out(rng: numpy.random.Generator) -> None:
    """The scale of the loss makes infinite gradients until it is small enough."""
    ids, labels = make_data(rng, BATCH)
    data = ids, 100 * labels
    model, layer = make_model(make_configs(SGD(1e-4)))
    optimizer = keras.optimizers.LossScaleOptimizer(SGD(1e-4), initial_scale=2.0**127)
    model.compile(optimizer=optimizer, loss="mse")
    before = read_rows(layer)
    fit(model, data)
    assert (read_rows(layer) == before).all() and layer.engine.step == 0
    fit(model, data, 12)
    assert layer.engine.step > 0 and numpy.isfinite(read_rows(layer)).all()


# -- callbacks ---------------------------------------------------------------------------

def test_model_checkpoint(tmp_path: Path, rng: numpy.random.Generator) -> None:
    data = make_data(rng, 40)
    model, layer = make_model(make_configs("adam"))
    path = str(tmp_path / "{epoch}.keras")
    rows: list[Any] = []
    note = keras.callbacks.LambdaCallback(on_epoch_end=lambda *unused: rows.append(
        read_rows(layer)))
    fit(model, data, 3, callbacks=[keras.callbacks.ModelCheckpoint(path), note])
    for epoch in (1, 3):
        loaded = keras.models.load_model(path.format(epoch=epoch))
        assert (read_rows(loaded.get_layer("embedding")) == rows[epoch - 1]).all()
    assert loaded.get_layer("embedding").engine.step == 9


def test_learning_rate_scheduler_is_that_of_the_model(rng: numpy.random.Generator) -> None:
    data = make_data(rng, BATCH)
    model, layer = make_model(make_configs(SGD(0.1)))
    before = model.layers[-1].kernel.numpy()
    rows = read_rows(layer)
    fit(model, data, 2, callbacks=[keras.callbacks.LearningRateScheduler(lambda epoch: 0.0)])
    assert (model.layers[-1].kernel.numpy() == before).all()
    assert (read_rows(layer) != rows).any()


def test_a_schedule_of_a_callback_may_serve_a_table(rng: numpy.random.Generator) -> None:
    optimizer = SGD(0.1)
    model, layer = make_model(make_configs(optimizer))
    change = keras.callbacks.LambdaCallback(
        on_epoch_begin=lambda epoch, logs: setattr(optimizer, "learning_rate", 0.0))
    before = read_rows(layer)
    fit(model, make_data(rng, 40), 2, callbacks=[change])
    assert (read_rows(layer) == before).all() and layer.engine.step == 6


class _Falling(keras.optimizers.schedules.LearningRateSchedule):  # type: ignore[misc]
    """A schedule that the package does not know, computed by the backend."""

    def __call__(self, step: Any) -> Any:
        return 0.1 / (1.0 + keras.ops.cast(step, "float32"))

    def get_config(self) -> dict[str, Any]:
        return {}


@pytest.mark.parametrize("rate", [_Falling(), lambda: 0.1])
def test_rates_of_the_program_are_asked_at_each_step(rate: Any,
                                                     rng: numpy.random.Generator) -> None:
    data = make_data(rng, 40)
    ours, layer = make_model(make_configs(SGD(rate)))
    theirs, peer = make_model(make_configs(placement="default_device"), SGD(rate))
    ours.layers[-1].trainable = theirs.layers[-1].trainable = False
    ours.compile(optimizer=SGD(0.1), loss="mse")
    theirs.compile(optimizer=SGD(rate), loss="mse")
    numpy.testing.assert_allclose(fit(ours, data, 2), fit(theirs, data, 2), rtol=1e-5)
    numpy.testing.assert_allclose(read_rows(layer), read_rows(peer), rtol=1e-5, atol=1e-6)


def test_early_stopping_and_csv(tmp_path: Path, rng: numpy.random.Generator) -> None:
    model, layer = make_model(make_configs(SGD(0.1)))
    stop = keras.callbacks.EarlyStopping(monitor="loss", min_delta=1e9, patience=1)
    log = keras.callbacks.CSVLogger(str(tmp_path / "log.csv"))
    losses = fit(model, make_data(rng, 40), 9, callbacks=[stop, log])
    assert len(losses) == 2 and layer.engine.step == 6
    assert len((tmp_path / "log.csv").read_text().splitlines()) == 3


# -- configuration and files -------------------------------------------------------------

def test_configuration(rng: numpy.random.Generator) -> None:
    optimizer = keras.optimizers.Adagrad(keras.optimizers.schedules.ExponentialDecay(0.1, 5, 0.5))
    layer = DistributedEmbedding(make_configs(optimizer), table_stacking=["t", "u"], name="e")
    config = json.loads(json.dumps(layer.get_config()))
    assert [table["name"] for table in config["tables"]] == ["t", "u"]
    assert config["feature_configs"]["n"]["c"]["table"] == 0
    again = DistributedEmbedding.from_config(config)
    assert again.get_config() == layer.get_config()
    assert len(again.engine.tables) == 2 and again.engine["t"].slots == ("accumulators",)
    assert (read_rows(again) == read_rows(layer)).all()


@pytest.mark.sample
@pytest.mark.parametrize("optimizer", ["sgd", "adam", "ftrl"])
def test_a_file_goes_on_with_the_same_bits(optimizer: str, tmp_path: Path,
                                           rng: numpy.random.Generator) -> None:
    data = make_data(rng, 40)
    model, layer = make_model(make_configs(optimizer))
    fit(model, data, 2)
    model.save(tmp_path / "m.keras")
    loaded = keras.models.load_model(tmp_path / "m.keras")
    again = loaded.get_layer("embedding")
    assert again.engine.step == 6
    assert fit(model, data, 2) == fit(loaded, data, 2)
    for name in ("t", "u"):
        for slot in (None, *layer.engine[name].slots):
            assert (layer.engine[name].read(slot=slot) == again.engine[name].read(slot=slot)).all()


def test_names_of_tables_may_be_anything(tmp_path: Path) -> None:
    layer = DistributedEmbedding(make_feature(make_table("a/b c.d")), name="embedding")
    inputs = keras.Input((3,), dtype="int32")
    keras.Model(inputs, layer(inputs)).save(tmp_path / "m.keras")
    again = keras.models.load_model(tmp_path / "m.keras").get_layer("embedding")
    assert (read_rows(again, "a/b c.d") == read_rows(layer, "a/b c.d")).all()


def test_weights_alone(tmp_path: Path, rng: numpy.random.Generator) -> None:
    model, layer = make_model(make_configs("adam"))
    fit(model, make_data(rng, 40))
    model.save_weights(tmp_path / "m.weights.h5")
    other, again = make_model(make_configs("adam", initializer="zeros"))
    other.load_weights(tmp_path / "m.weights.h5")
    assert (read_rows(layer) == read_rows(again)).all() and again.engine.step == 3
    third, _ = make_model(make_configs("sgd"))
    third.load_weights(tmp_path / "m.weights.h5")  # slots that nobody wants are left
    fourth, _ = make_model(make_configs("ftrl"))
    with pytest.raises(Exception, match="no t.accumulators"):
        fourth.load_weights(tmp_path / "m.weights.h5")


@pytest.mark.skipif(BACKEND != "tensorflow", reason="the checkpoint is TensorFlow's")
def test_a_checkpoint_of_tensorflow_has_rows_and_slots(tmp_path: Path,
                                                       rng: numpy.random.Generator) -> None:
    import tensorflow as tf

    data = make_data(rng, 40)
    model, layer = make_model(make_configs("adam"))
    fit(model, data)
    path = tf.train.Checkpoint(model=model).save(str(tmp_path / "c"))
    again, other = make_model(make_configs("adam", initializer="zeros"))
    tf.train.Checkpoint(model=again).restore(path).assert_existing_objects_matched()
    assert other.engine.step == layer.engine.step == 3
    assert (other.engine["t"].read(slot="velocities") ==
            layer.engine["t"].read(slot="velocities")).all()
    assert fit(model, data) == fit(again, data) and (read_rows(layer) == read_rows(other)).all()
    third, _ = make_model(make_configs("ftrl"))
    with pytest.raises(embeng.CheckpointError, match="no t.accumulators"):
        tf.train.Checkpoint(model=third).restore(path)


@pytest.mark.skipif(BACKEND != "tensorflow", reason="a SavedModel is TensorFlow's")
def test_an_export_is_refused_by_name(tmp_path: Path) -> None:
    model, _ = make_model(make_configs())
    with pytest.raises(NotImplementedError, match="layer embedding: a SavedModel cannot hold"):
        model.export(tmp_path / "m")


@pytest.mark.skipif(BACKEND != "torch", reason="state_dict() is torch's")
def test_a_state_dict_has_rows_and_slots(tmp_path: Path, rng: numpy.random.Generator) -> None:
    import torch

    data = make_data(rng, 40)
    model, layer = make_model(make_configs("adam"))
    fit(model, data)
    torch.save(layer.state_dict(), tmp_path / "s")
    again, other = make_model(make_configs("adam", initializer="zeros"))
    other.load_state_dict(torch.load(tmp_path / "s", weights_only=True))
    assert other.engine.step == layer.engine.step == 3
    fit(model, data)
    again.set_weights(model.get_weights())
    assert (read_rows(layer) != read_rows(other)).any()
    other.load_state_dict(layer.state_dict())
    assert fit(model, data) == fit(again, data) and (read_rows(layer) == read_rows(other)).all()
    with pytest.raises(embeng.CheckpointError, match="layer embedding: its state is int"):
        other.set_extra_state(3)


def test_set_embedding_tables() -> None:
    layer = DistributedEmbedding({"a": make_feature(make_table()),
                                  "b": make_feature(make_table("v", placement="default_device"))})
    ones = numpy.ones((ROWS, DIM), "float32")
    layer.set_embedding_tables({"t": keras.ops.convert_to_tensor(ones), "v": ones})
    assert (read_rows(layer) == 1).all() and (read_rows(layer, "v") == 1).all()
    with pytest.raises(ValueError, match="table t is"):
        layer.set_embedding_tables({"t": ones[:3]})
    with pytest.raises(KeyError, match="no table 'w'"):
        layer.set_embedding_tables({"w": ones})


def test_settings_that_are_wrong_are_named() -> None:
    two: Any = {}
    for given in ("default_device", "auto"):
        two["b"] = make_feature(make_table(placement=given))
        for other in ("default_device", "auto"):
            two["a"] = make_feature(make_table(placement=other))
            with pytest.raises(ValueError, match="two tables have the name t"):
                DistributedEmbedding(two)
    for given, sentence in (({}, "no feature"),
                            ({"a": 3}, "feature a: its settings are 3"),
                            (make_feature(make_table(combiner="max")), "combiner 'max'"),
                            (make_feature(make_table(placement="gpu")), "placement 'gpu'")):
        with pytest.raises(ValueError, match=sentence):
            DistributedEmbedding(given)
    with pytest.raises(ValueError, match="table_stacking names 'x'"):
        DistributedEmbedding(make_feature(make_table()), table_stacking=[["t", "x"]])
    assert DistributedEmbedding.has_sparsecores()


def test_machine_without_sparsecores(rng: numpy.random.Generator,
                                     monkeypatch: pytest.MonkeyPatch) -> None:
    data = make_data(rng, 40)
    monkeypatch.setenv("EMBENG_KERAS_SPARSECORES", "none")
    assert not DistributedEmbedding.has_sparsecores()
    refusal = "feature a: .* table t is 'sparsecore', and EMBENG_KERAS_SPARSECORES=none"
    with pytest.raises(NotImplementedError, match=refusal):
        DistributedEmbedding({"a": make_feature(make_table(placement="sparsecore"))})
    layer = DistributedEmbedding({"a": make_feature(make_table())})
    assert layer.engine is None
    assert [tuple(one.shape) for one in layer.trainable_variables] == [(ROWS, DIM)]
    found, _ = make_model(make_configs(SGD(0.1)))
    expected, _ = make_model(make_configs(SGD(0.1), placement="default_device"))
    assert fit(found, data, 2) == fit(expected, data, 2)
    monkeypatch.setenv("EMBENG_KERAS_SPARSECORES", "engine")
    assert DistributedEmbedding({"a": make_feature(make_table())}).engine is not None
    monkeypatch.setenv("EMBENG_KERAS_SPARSECORES", "two")
    with pytest.raises(ValueError, match="is 'two'; it is 'engine'"):
        DistributedEmbedding({"a": make_feature(make_table())})


def test_limits_are_kept() -> None:
    if BACKEND == "tensorflow":
        with pytest.raises(ValueError, match="update_stats"):
            DistributedEmbedding(make_feature(make_table()), update_stats=True)
        return
    table = make_table(max_ids_per_partition=1, max_unique_ids_per_partition=1)
    layer = DistributedEmbedding(make_feature(table), update_stats=True)
    layer.preprocess(numpy.array([[1, 2, 2], [3, -1, -1]]), training=True)
    assert (table.max_ids_per_partition, table.max_unique_ids_per_partition) == (4, 3)


def differentiate_weights(layer: Any, ids: Any, weights: Any) -> Any:
    """Compute the gradient of the sum of squares of activations by the weights of ids."""
    if BACKEND == "torch":
        import torch

        given = torch.tensor(weights, requires_grad=True)
        (layer(torch.from_numpy(ids), given) ** 2).sum().backward()
        return given.grad.numpy()
    if BACKEND == "jax":
        import jax

        held = [variable.value for variable in layer.non_trainable_variables]
        return jax.jit(jax.grad(lambda given: (layer.stateless_call(
            [], held, jax.numpy.asarray(ids), given)[0] ** 2).sum()))(weights)
    import tensorflow as tf

    given = tf.constant(weights)
    with tf.GradientTape() as tape:
        tape.watch(given)
        loss = tf.reduce_sum(layer(tf.constant(ids), given) ** 2)
    return tape.gradient(loss, given).numpy()


@pytest.mark.parametrize("combiner", ["sum", "mean"])
def test_weights_have_gradients(combiner: str, rng: numpy.random.Generator) -> None:
    layer = DistributedEmbedding(make_feature(make_table(combiner=combiner)))
    layer.trainable = False
    rows = read_rows(layer).astype(float)
    ids = rng.integers(0, ROWS, (5, 3)).astype("int32")
    weights = rng.uniform(0.5, 2.0, (5, 3)).astype("float32")
    total = weights.sum(axis=1, keepdims=True) if combiner == "mean" else numpy.ones((5, 1))
    found = (rows[ids] * weights[:, :, None]).sum(axis=1) / total
    by_row = rows[ids] - (found[:, None, :] if combiner == "mean" else 0.0)
    wanted = 2 * (by_row * found[:, None, :]).sum(axis=2) / total
    numpy.testing.assert_allclose(differentiate_weights(layer, ids, weights), wanted, rtol=1e-4,
                                  atol=1e-4)
    assert layer.engine.step == 0

# SPDX-License-Identifier: MIT
"""Compiled steps of JAX and TensorFlow call the engine without Python, in the program's order."""
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import keras
import numpy
import pytest
from keras_peers import (BACKEND, BATCH, DIM, ROWS, make_configs, make_data, make_feature,
                         make_model, make_sparse, make_table, read_rows)

import embeng
from embeng.keras import DistributedEmbedding

NATIVE = "EMBENG_JAX_CALLS" not in os.environ and "EMBENG_TF_OPS" not in os.environ
on_jax = pytest.mark.skipif(BACKEND != "jax", reason="XLA is JAX's")
on_tensorflow = pytest.mark.skipif(BACKEND != "tensorflow", reason="operators are TensorFlow's")
native = pytest.mark.skipif(not NATIVE, reason="the environment asks for calls of Python")
SGD = keras.optimizers.SGD


def lower_step(optimizer: Any, rng: numpy.random.Generator) -> str:
    """Give the text of the program of XLA that trains a model for one step."""
    import jax

    model, _ = make_model(make_configs(optimizer))
    ids, labels = make_data(rng, BATCH)
    model.optimizer.build(model.trainable_variables)
    model.train_on_batch(ids, labels)
    state = model._get_jax_state(trainable_variables=True, non_trainable_variables=True,
                                 optimizer_variables=True, metrics_variables=True)
    step: Any = jax.jit(model.train_step)
    return str(step.lower(state, (ids, labels)).as_text())


@on_jax
@native
@pytest.mark.parametrize(("optimizer", "count"), [
    ("adam", 1), (embeng.optimizers.adam(0.01), 1), (SGD(0.1, momentum=0.9), 1),
    (SGD(0.1, clipnorm=1.0), 3)])
def test_a_step_of_jax_calls_python_for_numbers_alone(optimizer: Any, count: int,
                                                      rng: numpy.random.Generator) -> None:
    """The count and the rates of both tables are one call; ``clipnorm`` is one for each table."""
    text = lower_step(optimizer, rng)
    assert text.count("stablehlo.custom_call @embeng_lookup") == 1
    assert text.count("stablehlo.custom_call @embeng_update") == 1
    calls = [line for line in text.splitlines() if "custom_call @xla_ffi_python" in line
             or "custom_call @xla_ffi_partitioned_python" in line]
    assert len(calls) == count
    # The results are the count and two rates, or a factor.
    assert {line.rstrip().split("-> ")[-1].strip("()") for line in calls} <= {
        "tensor<f32>, tensor<2xf32>", "tensor<f32>, tensor<0xf32>", "tensor<f32>"}


@on_tensorflow
@native
@pytest.mark.parametrize(("optimizer", "count"), [
    ("adam", 0), (embeng.optimizers.adam(0.01), 0), (SGD(0.1, momentum=0.9), 0),
    (SGD(0.1, momentum=0.9, clipnorm=1.0), 0),
    (SGD(keras.optimizers.schedules.ExponentialDecay(0.1, 2, 0.5)), 1)])
def test_a_step_of_tensorflow_calls_python_for_schedules_alone(
        optimizer: Any, count: int, rng: numpy.random.Generator) -> None:
    import tensorflow as tf

    model, _ = make_model(make_configs(optimizer))
    ids, labels = make_data(rng, BATCH)
    model.train_on_batch(ids, labels)
    step = tf.function(model.train_step).get_concrete_function(
        (tf.nest.map_structure(tf.constant, ids), tf.constant(labels)))
    held = [node.op for function in step.graph.as_graph_def().library.function
            for node in function.node_def]
    held += [node.op for node in step.graph.as_graph_def().node]
    assert held.count("EmbengLookup") == held.count("EmbengUpdate") == 1
    assert sum("PyFunc" in name for name in held) == count


def differentiate(layer: Any, ids: Any, weights: Any) -> Any:
    """Train by the sum of squares of activations, compiled; return the gradient of the weights."""
    if BACKEND == "torch":
        import torch

        given = torch.tensor(weights, requires_grad=True)
        (layer(torch.from_numpy(ids), given) ** 2).sum().backward()
        return given.grad.numpy()
    if BACKEND == "jax":
        import jax

        held = [variable.value for variable in layer.trainable_variables]
        gradient = jax.jit(jax.grad(lambda held, given: (layer.stateless_call(
            held, [], jax.numpy.asarray(ids), given)[0] ** 2).sum(), argnums=(0, 1)))
        count, found = gradient(held, weights)
        assert float(count[0]) == 1
        return numpy.asarray(found)
    import tensorflow as tf

    @tf.function
    def run(given: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(given)
            loss = tf.reduce_sum(layer(tf.constant(ids), given) ** 2)
        return tape.gradient(loss, [layer._counter.value, given])

    count, found = run(tf.constant(weights))
    assert float(count) == 1
    return found.numpy()


def test_gradients_of_weights_are_of_the_rows_before_the_update(
        rng: numpy.random.Generator) -> None:
    layer = DistributedEmbedding(make_feature(make_table(combiner="sum", optimizer=SGD(0.5))))
    rows = read_rows(layer).astype(float)
    ids = numpy.arange(15, dtype="int32").reshape(5, 3)
    weights = rng.uniform(0.5, 2.0, (5, 3)).astype("float32")
    found = (rows[ids] * weights[:, :, None]).sum(axis=1)
    numpy.testing.assert_allclose(differentiate(layer, ids, weights),
                                  2 * (rows[ids] * found[:, None, :]).sum(axis=2), rtol=1e-4,
                                  atol=1e-5)
    wanted = rows.copy()
    wanted[ids] -= 0.5 * weights[:, :, None] * 2 * found[:, None, :]
    numpy.testing.assert_allclose(read_rows(layer), wanted, rtol=1e-5, atol=1e-5)
    assert layer.engine.step == 1


@pytest.mark.parametrize("make", [
    lambda: SGD(0.1, momentum=0.9), lambda: SGD(0.1, clipnorm=0.05),
    lambda: SGD(0.1, momentum=0.9, clipnorm=0.05),
    lambda: SGD(keras.optimizers.schedules.ExponentialDecay(0.1, 2, 0.5))])
def test_rules_of_the_host_are_those_of_a_compiled_step(make: Any,
                                                        rng: numpy.random.Generator) -> None:
    """Training by ``fit()`` has the bits of updates on the host by the same gradients."""
    from embeng.keras._inputs import DENSE, Layout

    table, peer = (DistributedEmbedding(make_feature(make_table(optimizer=make())), name="e")
                   for _ in range(2))
    inputs = keras.Input((3,), dtype="int32")
    model = keras.Model(inputs, table(inputs))
    model.compile(optimizer="sgd", loss=lambda labels, found: found * labels)
    ids = rng.integers(-1, ROWS, (3 * BATCH, 3)).astype("int32")
    labels = rng.standard_normal((3 * BATCH, DIM)).astype("float32")
    model.fit(ids, labels, batch_size=BATCH, shuffle=False, verbose=0)
    for first in range(0, 3 * BATCH, BATCH):
        part = slice(first, first + BATCH)
        # The loss is the mean over 64 numbers.
        peer._tables.update([Layout(peer._features.paths[0], DENSE, False)], [ids[part]],
                            [labels[part] / 64], 0.0)
    for slot in (None, *peer.engine["t"].slots):
        numpy.testing.assert_array_equal(table.engine["t"].read(slot=slot),
                                         peer.engine["t"].read(slot=slot))


def test_coordinates_in_any_order_with_weights() -> None:
    if BACKEND == "torch":
        return  # tensors of torch are sorted when they are coalesced
    ids, weights = make_sparse([[1, 2], [3]], "int32"), make_sparse([[0.5, 2.0], [4.0]], "float32")
    if BACKEND == "jax":
        order = numpy.array([2, 1, 0])
        ids, weights = (type(held)((held.data[order], held.indices[order]), shape=held.shape)
                        for held in (ids, weights))
    else:
        import tensorflow as tf

        ids, weights = (tf.SparseTensor(held.indices[::-1], held.values[::-1], held.dense_shape)
                        for held in (ids, weights))
    layer = DistributedEmbedding(make_feature(make_table(combiner="sum")))
    rows = read_rows(layer)
    numpy.testing.assert_allclose(
        keras.ops.convert_to_numpy(layer(ids, weights)),
        [0.5 * rows[1] + 2 * rows[2], 4 * rows[3]], rtol=1e-6)


# -- errors ------------------------------------------------------------------------------

@pytest.mark.sample
def test_a_wrong_id_of_a_batch_is_named_by_fit() -> None:
    model, layer = make_model(make_configs("adam"))
    ids, labels = make_data(numpy.random.default_rng(1), BATCH)
    model.fit(ids, labels, batch_size=BATCH, shuffle=False, verbose=0)
    ids["a"][2, 1] = 77
    with pytest.raises(Exception, match="feature a, sample 2: id 77 is outside table t"):
        model.fit(ids, labels, batch_size=BATCH, shuffle=False, verbose=0)
    for _ in range(2):
        assert layer.engine.step == 1


@on_jax
def test_errors_of_jit_are_found() -> None:
    import jax

    layer = DistributedEmbedding(make_feature(make_table()))
    run = jax.jit(lambda held, ids: layer.stateless_call(held, [], ids)[0])
    with pytest.raises(embeng.OutOfRangeError, match="sample 1.*30"), embeng.jax.raising():
        run([layer._counter.value], jax.numpy.array([[1, 2, 3], [4, 30, 5]])).block_until_ready()


@on_jax
def test_fit_raises_errors_of_embeng() -> None:
    model, _ = make_model(make_configs("adam"))
    ids, labels = make_data(numpy.random.default_rng(1), BATCH)
    ids["n"]["b"][3] = 20
    with pytest.raises(embeng.OutOfRangeError, match="n.b, sample 3: id 20"), embeng.jax.raising():
        model.fit(ids, labels, batch_size=BATCH, shuffle=False, verbose=0)


@on_jax
def test_second_derivatives_are_refused() -> None:
    import jax

    layer = DistributedEmbedding(make_feature(make_table()))
    held = [layer._counter.value]
    ids = jax.numpy.array([[1, 2, 3]])

    def loss(given: Any) -> Any:
        return (layer.stateless_call(held, [], ids, given)[0] ** 2).sum()

    with pytest.raises(embeng.NotSupportedError, match="gradient of a lookup"):
        jax.grad(lambda given: jax.grad(loss)(given).sum())(jax.numpy.ones((1, 3)))


@on_jax
def test_a_program_may_outlive_its_layer() -> None:
    import gc

    import jax

    layer = DistributedEmbedding(make_feature(make_table()))
    counter, ids = layer._counter.value, jax.numpy.array([[1, 2, 3]])
    run = jax.jit(lambda held, ids: layer.stateless_call(held, [], ids)[0]).lower(
        [counter], ids).compile()
    assert run([counter], ids).shape == (1, DIM)
    engine = layer.engine
    engine.close()
    del layer, engine
    gc.collect()
    with pytest.raises(embeng.DeviceError, match="layer.*is gone"), embeng.jax.raising():
        run([counter], ids).block_until_ready()


SPREAD = """
import keras, numpy
from keras_peers import make_configs, make_data, make_model, read_rows

def fit():
    model, layer = make_model(make_configs(keras.optimizers.SGD(0.1)))
    data = make_data(numpy.random.default_rng(1), 48)
    losses = model.fit(*data, batch_size=16, epochs=2, shuffle=False, verbose=0).history["loss"]
    return losses, read_rows(layer), layer.engine.step

alone = fit()
import jax
assert len(jax.devices()) == 2
keras.distribution.set_distribution(keras.distribution.DataParallel())
spread = fit()
assert spread[2] == alone[2] == 6, spread[2]
numpy.testing.assert_allclose(spread[0], alone[0], rtol=1e-5)
numpy.testing.assert_allclose(spread[1], alone[1], rtol=1e-5, atol=1e-6)
print("SPREAD")
"""


@on_jax
def test_batches_that_are_spread_over_devices() -> None:
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=2",
                   "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    done = subprocess.run([sys.executable, "-c", SPREAD], env=environment, text=True,
                          capture_output=True, timeout=300, check=False)
    assert "SPREAD" in done.stdout, done.stderr[-4000:]


@on_tensorflow
@native
def test_lookups_are_compiled_by_xla(rng: numpy.random.Generator) -> None:
    """A function with jit_compile=True looks up as the layer does; Keras trains without XLA."""
    import tensorflow as tf

    model, layer = make_model(make_configs(SGD(0.1)))
    ids, labels = make_data(rng, BATCH)
    compiled = tf.function(model, jit_compile=True)
    for _ in range(2):
        numpy.testing.assert_allclose(compiled(ids), model(ids), rtol=1e-5, atol=1e-6)
        model.train_on_batch(ids, labels)
    with pytest.warns(UserWarning, match="jit_compile"):
        model.compile(optimizer=SGD(0.1), loss="mse", jit_compile=True)
    before = read_rows(layer)
    model.train_on_batch(ids, labels)
    assert (read_rows(layer) != before).any()

# SPDX-License-Identifier: MIT
"""flax.linen, flax.nnx, optax and orbax with embeddings."""
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy
import pytest
from jax_peers import DIM, RATE, make_embedding, pad, take_bags

import embeng
import embeng.jax

linen = pytest.importorskip("flax.linen")
nnx = pytest.importorskip("flax.nnx")
optax = pytest.importorskip("optax")

import embeng.jax.flax as layers  # noqa: E402
import embeng.jax.nnx as objects  # noqa: E402
from embeng.jax.optax import apply_gradients, split_embeddings  # noqa: E402

LEFT = jnp.asarray(pad([[1, 2], [3], [4, 4, 5]]))
RIGHT = jnp.array([2, 9, 2])
TARGET = jnp.arange(3 * 2, dtype=jnp.float32).reshape(3, 2) / 3


class Tower(linen.Module):
    """Two features of one embedding, and a dense layer."""

    embedding: Any

    @linen.compact
    def __call__(self, left: Any, right: Any) -> Any:
        found = layers.Embed(self.embedding, "f")(left) * layers.Embed(self.embedding, "g")(right)
        return linen.Dense(2)(found)


def dense_step(rows: Any, kernel: Any, bias: Any) -> Any:
    """Return the loss and its gradients, with rows as a value of JAX."""
    def loss(rows: Any, kernel: Any, bias: Any) -> Any:
        found = take_bags(rows, LEFT) * rows[RIGHT]
        return ((found @ kernel + bias - TARGET) ** 2).mean()
    return jax.value_and_grad(loss, argnums=(0, 1, 2))(rows, kernel, bias)


@pytest.mark.sample
def test_a_model_of_linen_trains_with_optax() -> None:
    with make_embedding() as made:
        model = Tower(made)
        params = model.init(jax.random.key(0), LEFT, RIGHT)["params"]
        tx = split_embeddings(optax.chain(optax.clip_by_global_norm(1e-3), optax.sgd(0.5)))
        opt = tx.init(params)
        rows = jnp.asarray(made.rows(made.init(), "t"))
        kernel, bias = params["Dense_0"]["kernel"], params["Dense_0"]["bias"]

        @jax.jit
        def step(params: Any, opt: Any) -> Any:
            value, gradients = jax.value_and_grad(lambda params: ((model.apply(
                {"params": params}, LEFT, RIGHT) - TARGET) ** 2).mean())(params)
            updates, opt = tx.update(gradients, opt, params)
            params = optax.apply_updates(params, updates)
            return value, apply_gradients(made, params, gradients), opt

        for turn in range(5):
            value, params, opt = step(params, opt)
            wanted, (by_row, by_kernel, by_bias) = dense_step(rows, kernel, bias)
            numpy.testing.assert_allclose(value, wanted, rtol=1e-5)
            rows = rows - RATE * by_row
            norm = jnp.sqrt((by_kernel ** 2).sum() + (by_bias ** 2).sum())
            factor = jnp.minimum(1, 1e-3 / norm)
            kernel, bias = kernel - 0.5 * factor * by_kernel, bias - 0.5 * factor * by_bias
            assert made.engine.step == turn + 1
        state = params["Embed_0"]["state"]
        numpy.testing.assert_allclose(made.rows(state, "t"), rows, rtol=1e-4, atol=1e-6)
        numpy.testing.assert_allclose(params["Dense_0"]["kernel"], kernel, rtol=1e-4, atol=1e-6)
        with pytest.raises(embeng.InvalidError, match="0 states"):
            apply_gradients(made, {"dense": kernel}, {"dense": kernel})


@pytest.mark.sample
def test_a_model_of_nnx_trains_with_optax() -> None:
    with make_embedding() as made:
        class Model(nnx.Module):  # type: ignore[misc]
            def __init__(self) -> None:
                self.left = objects.Embed(made, "f")
                self.right = objects.Embed(made, "g")
                self.dense = nnx.Linear(DIM, 2, rngs=nnx.Rngs(0))

            def __call__(self, left: Any, right: Any) -> Any:
                return self.dense(self.left(left) * self.right(right))

        model = Model()
        optimizer = nnx.Optimizer(model, optax.sgd(0.5), wrt=objects.DENSE)
        rows = jnp.asarray(made.rows(made.init(), "t"))
        kernel, bias = model.dense.kernel[...], model.dense.bias[...]

        @nnx.jit
        def step(model: Any, optimizer: Any) -> Any:
            value, gradients = nnx.value_and_grad(
                lambda model: ((model(LEFT, RIGHT) - TARGET) ** 2).mean())(model)
            objects.apply_gradients(made, model, gradients)
            optimizer.update(model, nnx.filter_state(gradients, objects.DENSE))
            return value

        for turn in range(4):
            wanted, (by_row, by_kernel, by_bias) = dense_step(rows, kernel, bias)
            numpy.testing.assert_allclose(step(model, optimizer), wanted, rtol=1e-5)
            rows, kernel, bias = (rows - RATE * by_row, kernel - 0.5 * by_kernel,
                                  bias - 0.5 * by_bias)
            made.engine.flush()
            assert made.engine.step == turn + 1
        numpy.testing.assert_allclose(made.rows(made.init(), "t"), rows, rtol=1e-4, atol=1e-6)
        with pytest.raises(embeng.InvalidError, match="0 states"):
            objects.apply_gradients(made, nnx.Linear(2, 2, rngs=nnx.Rngs(0)), nnx.State({}))


class Block(linen.Module):  # type: ignore[misc]
    """A turn of a scan, with a layer of its own."""

    embedding: Any

    @linen.compact
    def __call__(self, carried: Any, unused: None) -> Any:
        return jnp.tanh(linen.Dense(DIM)(carried) + layers.Embed(self.embedding, "f")(RIGHT)), None


def test_layers_of_linen_that_are_scanned_over_train_together() -> None:
    with make_embedding() as made:
        model = linen.scan(Block, variable_axes={"params": 0}, split_rngs={"params": True},
                           length=3)(made)
        begin = jnp.zeros((3, DIM))
        params = model.init(jax.random.key(0), begin, None)["params"]
        dense = params["Dense_0"]
        rows = jnp.asarray(made.rows(made.init(), "t"))

        def wanted_loss(rows: Any) -> Any:
            carried = begin
            for turn in range(3):
                carried = jnp.tanh(carried @ dense["kernel"][turn] + dense["bias"][turn]
                                   + rows[RIGHT])
            return (carried ** 2).sum()

        @jax.jit
        def step(params: Any) -> Any:
            value, gradients = jax.value_and_grad(lambda params: (model.apply(
                {"params": params}, begin, None)[0] ** 2).sum())(params)
            return value, apply_gradients(made, params, gradients)

        for turn in range(3):
            wanted, slope = jax.value_and_grad(wanted_loss)(rows)
            value, params = step(params)
            numpy.testing.assert_allclose(value, wanted, rtol=1e-5)
            rows = rows - RATE * slope
            assert params["Embed_0"]["state"].token.shape == (3,)
        made.sync(made.init())
        assert made.engine.step == 3
        numpy.testing.assert_allclose(made.engine["t"].read(), rows, rtol=1e-4, atol=1e-6)


def test_layers_of_nnx_that_are_mapped_over_train_with_single_ones() -> None:
    with make_embedding() as made:
        class Model(nnx.Module):  # type: ignore[misc]
            def __init__(self) -> None:
                self.one = objects.Embed(made, "f")
                self.two = nnx.vmap(lambda _: objects.Embed(made, "g"))(jnp.arange(2))

            def __call__(self, ids: Any) -> Any:
                both = nnx.vmap(lambda layer, ids: layer(ids), in_axes=(0, None))(self.two, ids)
                return self.one(ids).sum() + both.sum()

        model = Model()
        rows = made.rows(made.init(), "t")
        for _ in range(2):
            gradients = nnx.grad(lambda model: model(RIGHT))(model)
            objects.apply_gradients(made, model, gradients)
            assert model.two.token[...].shape == (2,)
        for row in numpy.asarray(RIGHT):
            rows[row] -= 2 * 3 * RATE
        made.engine.flush()
        assert made.engine.step == 2
        numpy.testing.assert_allclose(made.engine["t"].read(), rows, rtol=1e-5)


def make_specs() -> list[Any]:
    """Specify two tables in a stack over 4 cores, the second one rotated."""
    stack = SimpleNamespace(stack_name="s", stack_vocab_size=96, stack_embedding_dim=8)
    return [SimpleNamespace(name=name, vocabulary_size=rows, embedding_dim=dim,
                            stacked_table_spec=stack, setting_in_stack=SimpleNamespace(
                                stack_name="s", row_offset_in_shard=offset, shard_rotation=turn))
            for name, rows, dim, offset, turn in (("a", 30, 8, 0, 0), ("b", 50, 5, 8, 2))]


@pytest.mark.sample
def test_stacks_of_orbax_come_in_and_go_out(tmp_path: Any, rng: Any) -> None:
    orbax = pytest.importorskip("orbax.checkpoint")
    from embeng.jax.orbax import export_stacks, import_stacks, load_stacks, save_stacks

    def tables() -> Any:
        adam = embeng.optimizers.adam(0.1)
        return [embeng.Table("a", 30, 8, "sum", adam), embeng.Table("b", 50, 5, "sum", adam)]

    arrays = [rng.normal(size=(96, 8)).astype(numpy.float32) for _ in range(3)]
    arrays[2] = abs(arrays[2])
    theirs = {"s": embeng.jax.EmbeddingVariables(arrays[0], (arrays[1], arrays[2]))}
    with orbax.PyTreeCheckpointer() as checkpointer:
        checkpointer.save(tmp_path / "theirs", theirs)
    specs = make_specs()
    with embeng.Engine(tables(), cores=1) as engine, embeng.Engine(tables(), cores=1) as other:
        import_stacks(engine, load_stacks(tmp_path / "theirs"), specs, cores=4)
        # Row 7 of b is on core (7 + 2) % 4 = 1, at 7 // 4 + 8 of its 24 rows.
        assert (engine["b"][7] == arrays[0][24 + 9, :5]).all()
        assert (engine["a"].read([5], slot="velocities") == arrays[2][24 + 1]).all()
        save_stacks(tmp_path / "ours", export_stacks(engine, specs, cores=4))
        import_stacks(other, load_stacks(tmp_path / "ours"), specs, cores=4)
        for name in "ab":
            for slot in (None, "momenta", "velocities"):
                assert (engine[name].read(slot=slot) == other[name].read(slot=slot)).all()
        for stacks, cores, kind, text in (
                ({}, 4, embeng.UnknownNameError, "no stack 's'"),
                (theirs, 5, embeng.InvalidError, "no multiple of 5"),
                ({"s": embeng.jax.EmbeddingVariables(arrays[0], ())}, 4, embeng.InvalidError,
                 "the stack has 0")):
            with pytest.raises(kind, match=text):
                import_stacks(engine, stacks, specs, cores=cores)


def test_stacks_that_do_not_fit_change_nothing() -> None:
    pytest.importorskip("orbax.checkpoint")
    from embeng.jax.orbax import import_stacks

    adam = embeng.optimizers.adam(0.1)
    rows = numpy.ones((96, 8), numpy.float32)
    made = embeng.jax.EmbeddingVariables
    tables = [embeng.Table("a", 30, 8, "sum", adam), embeng.Table("b", 50, 5, "sum", adam)]
    with embeng.Engine(tables, cores=1) as engine:
        before = [table.read(slot=slot) for table in engine for slot in (None, *table.slots)]
        stacks: Any
        for stacks, kind, text in (
                ({"s": made(rows[:48], (rows[:48],) * 2)}, embeng.InvalidError,
                 "wants row .* of stack s, which has 48"),
                ({"s": made(rows, (rows, rows[:48]))}, embeng.InvalidError,
                 r"stack s: its velocities has the shape \(48, 8\); table a needs 96 rows"),
                ({"s": made(rows[:, :6], (rows, rows))}, embeng.InvalidError, "and 8 columns"),
                ({"s": made(rows, (rows, -rows))}, embeng.OutOfRangeError, "slot velocities of"),
                ({"s": made(rows * 1j, (rows, rows))}, embeng.InvalidError, "dtype is complex"),
                ({"s": None}, embeng.InvalidError, "a NoneType without a table is given"),
                ([1], embeng.InvalidError, "stacks are list")):
            with pytest.raises(kind, match=text):
                import_stacks(engine, stacks, make_specs(), cores=4)
        after = [table.read(slot=slot) for table in engine for slot in (None, *table.slots)]
        assert all((one == other).all() for one, other in zip(before, after, strict=True))


def test_a_damaged_checkpoint_of_orbax_is_told(tmp_path: Any) -> None:
    pytest.importorskip("orbax.checkpoint")
    from embeng.jax.orbax import load_stacks, save_stacks

    rows = numpy.ones((96, 8), numpy.float32)
    save_stacks(tmp_path / "saved", {"s": embeng.jax.EmbeddingVariables(rows, (rows,))})
    (tmp_path / "saved" / "manifest.ocdbt").write_bytes(b"x")
    with pytest.raises(embeng.CheckpointError, match="saved: orbax cannot read it: "):
        load_stacks(tmp_path / "saved")
    with pytest.raises(FileNotFoundError):
        load_stacks(tmp_path / "none")

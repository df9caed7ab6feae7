# SPDX-License-Identifier: MIT
"""Transformations of JAX: loops, vmap, devices, remat, dead code, and what is refused."""
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jax_peers import DIM, RATE, emb, make_embedding  # noqa: F401

import embeng
import embeng.jax

Embedding = embeng.jax.Embedding
IDS = jnp.array([1, 2, 2])


def summed(emb: Embedding, ids: Any) -> Any:  # noqa: F811
    """Return the loss of a feature whose gradient is 1 everywhere."""
    def loss(state: Any) -> Any:
        found, after = emb.lookup(state, {"f": ids})
        return found["f"].sum(), after
    return loss


def train(emb: Embedding, state: Any, ids: Any) -> Any:  # noqa: F811
    """Make one step of that loss."""
    gradient, after = jax.grad(summed(emb, ids), has_aux=True)(state)
    return emb.apply(after, gradient)


def subtract(rows: Any, *steps: Any) -> Any:
    """Return rows after steps of SGD with gradients of 1."""
    for ids in steps:
        for row in numpy.asarray(ids).reshape(-1):
            rows[row] -= RATE
    return rows


def check(emb: Embedding, state: Any, wanted: Any) -> None:  # noqa: F811
    numpy.testing.assert_allclose(emb.rows(state, "t"), wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.sample
def test_a_scan_looks_up_what_its_last_turn_wrote(emb: Embedding) -> None:  # noqa: F811
    state = emb.init()
    rows = emb.rows(state, "t")
    batches = jnp.array([[1, 2], [2, 3], [2, 2], [9, 1]])

    def turn(state: Any, ids: Any) -> Any:
        found, after = emb.lookup(state, {"f": ids})
        return train(emb, after, ids), found["f"]

    state, seen = jax.jit(lambda state: jax.lax.scan(turn, state, batches))(state)
    for ids, found in zip(batches, seen, strict=True):
        numpy.testing.assert_allclose(found, rows[ids], rtol=1e-6, atol=1e-6)
        rows = subtract(rows, ids)
    check(emb, state, rows)
    assert emb.engine.step == 4


def test_loops_and_branches_run_updates_as_often_as_they_turn(
        emb: Embedding) -> None:  # noqa: F811
    state = emb.init()
    rows = emb.rows(state, "t")

    @jax.jit
    def loop(state: Any, turns: Any) -> Any:
        state = jax.lax.fori_loop(0, turns, lambda _, state: train(emb, state, IDS), state)
        return jax.lax.cond(turns > 2, lambda state: train(emb, state, jnp.array([5])),
                            lambda state: state, state)
    state = loop(state, 3)
    state = loop(state, 1)
    check(emb, state, subtract(rows, *[IDS] * 4, [5]))
    assert emb.engine.step == 5


@pytest.mark.sample
def test_vmap_looks_up_one_after_another(emb: Embedding) -> None:  # noqa: F811
    state = emb.init()
    rows = emb.rows(state, "t")
    ids = jnp.array([[1, 2], [3, 4], [5, 5]])
    found = jax.jit(jax.vmap(lambda ids: emb.lookup(state, {"f": ids})[0]["f"]))(ids)
    assert (found == rows[ids]).all()
    gradients = jax.vmap(lambda ids: jax.grad(summed(emb, ids), has_aux=True)(state)[0])(ids)
    total = jax.tree.map(jnp.sum, gradients)
    assert float(total.token) == 3
    check(emb, emb.apply(state, total), subtract(rows, ids))
    assert emb.engine.step == 1


@pytest.mark.sample
@pytest.mark.parametrize("calls", ["ffi", "pure", "callback"])
@pytest.mark.parametrize("explicit", [False, True])
def test_the_devices_of_pmap_make_one_step_together(calls: str, explicit: bool) -> None:
    optimizer = embeng.optimizers.adagrad(0.5)
    with make_embedding(calls, optimizer=optimizer) as made, \
            make_embedding(optimizer=optimizer) as one:
        ids = jnp.array([[1, 2], [2, 3], [4, 4], [2, 9]])
        state = one.init()
        wanted = one.rows(one.update(state, {"f": ids.reshape(-1)}, {"f": jnp.ones((8, DIM))}), "t")

        @partial(jax.pmap, axis_name="devices", in_axes=(None, 0))
        def step(state: Any, ids: Any) -> Any:
            if explicit:
                found, state = made.lookup(state, {"f": ids})
                return made.update(state, {"f": ids}, {"f": jnp.ones_like(found["f"])},
                                   axis_name="devices"), found["f"]

            def loss(state: Any) -> Any:
                found, after = made.lookup(state, {"f": ids}, axis_name="devices")
                return found["f"].sum(), (after, found["f"])
            gradient, (after, found) = jax.grad(loss, has_aux=True)(state)
            return made.apply(after, gradient, axis_name="devices"), found

        begun = made.init()
        rows = made.rows(begun, "t")
        state, found = step(begun, ids)
        assert (found == rows[ids]).all()
        state = jax.tree.map(lambda leaf: leaf[0], state)
        assert (made.rows(state, "t") == wanted).all()
        assert made.engine.step == 1


@pytest.mark.parametrize("check_vma", [True, False])
@pytest.mark.parametrize("calls", ["ffi", "pure"])
def test_shard_map_makes_one_step_of_all_shards(check_vma: bool, calls: str) -> None:
    mesh = Mesh(numpy.array(jax.devices()), ("devices",))
    spec = PartitionSpec("devices")
    with make_embedding(calls) as made:
        state = made.init()
        rows = made.rows(state, "t")

        @jax.jit
        @partial(jax.shard_map, mesh=mesh, in_specs=(PartitionSpec(), spec),
                 out_specs=PartitionSpec(), check_vma=check_vma)
        def step(state: Any, ids: Any) -> Any:
            def loss(state: Any) -> Any:
                found, after = made.lookup(state, {"f": ids}, axis_name="devices")
                return found["f"].sum(), after
            gradient, _ = jax.grad(loss, has_aux=True)(state)
            return made.apply(state, gradient, axis_name="devices")

        ids = jnp.array([1, 2, 2, 3, 4, 4, 2, 9])
        state = step(state, ids)
        check(made, state, subtract(rows, ids))
        assert made.engine.step == 1


@pytest.mark.parametrize("calls", ["ffi", "pure"])
def test_updates_of_sharded_arrays_are_refused(calls: str) -> None:
    mesh = Mesh(numpy.array(jax.devices()), ("devices",))
    with make_embedding(calls) as made:
        state = made.init()
        rows = made.rows(state, "t")
        ids = jax.device_put(jnp.array([1, 2, 3, 4]), NamedSharding(mesh, PartitionSpec("devices")))
        step = jax.jit(lambda state, ids: train(made, state, ids))
        with pytest.raises(embeng.NotSupportedError, match="shard_map"), embeng.jax.raising():
            made.sync(step(state, ids))
        check(made, state, rows)
        found = jax.jit(lambda state, ids: made.lookup(state, {"f": ids})[0]["f"])(state, ids)
        assert (found == rows[1:5]).all()


@pytest.mark.sample
def test_remat_looks_up_again_and_pushes_once(emb: Embedding) -> None:  # noqa: F811
    state = emb.init()
    rows = emb.rows(state, "t")

    @jax.jit
    def step(state: Any) -> Any:
        @jax.checkpoint
        def loss(state: Any) -> Any:
            found, after = emb.lookup(state, {"f": IDS})
            return jnp.sin(found["f"]).sum(), after
        gradient, after = jax.grad(loss, has_aux=True)(state)
        return emb.apply(after, gradient), gradient

    state, gradient = step(state)
    assert float(gradient.token) == 1
    wanted = rows.copy()
    for row in IDS:
        wanted[row] -= RATE * numpy.cos(rows[row])
    check(emb, state, wanted)


def test_an_update_runs_though_nobody_uses_its_state(emb: Embedding) -> None:  # noqa: F811
    state = emb.init()
    rows = emb.rows(state, "t")

    @jax.jit
    def step(state: Any) -> Any:
        train(emb, state, IDS)
        return jnp.float32(1)
    jax.block_until_ready(step(state))
    jax.effects_barrier()
    ran = emb.calls != "pure"
    assert emb.engine.step == ran
    check(emb, state, subtract(rows, *[IDS] * ran))
    check(emb, train(emb, state, IDS), subtract(rows, IDS))  # nothing is left that waits


@pytest.mark.parametrize("mode", [jax.disable_jit, lambda: jax.numpy_dtype_promotion("strict"),
                                  lambda: jax.debug_nans(True), jax.checking_leaks],
                         ids=["disable_jit", "strict", "debug_nans", "checking_leaks"])
def test_modes_for_debugging_train_as_usual(mode: Any, emb: Embedding) -> None:  # noqa: F811
    state = emb.init()
    rows = emb.rows(state, "t")
    with mode():
        state = jax.jit(partial(train, emb))(state, IDS)
        state = emb.update(state, {"f": IDS}, {"f": jnp.ones((len(IDS), DIM))})
    check(emb, state, subtract(rows, IDS, IDS))


def test_two_equal_updates_are_two(emb: Embedding) -> None:  # noqa: F811
    state = emb.init()
    rows = emb.rows(state, "t")
    ones = {"f": jnp.ones((3, DIM))}

    @jax.jit
    def step(state: Any) -> Any:
        first = emb.update(state, {"f": IDS}, ones)
        second = emb.update(state, {"f": IDS}, ones)
        return embeng.jax.EmbeddingState(first.token + second.token)
    state = step(state)
    check(emb, state, subtract(rows, IDS, IDS))


@pytest.mark.sample
def test_a_gradient_that_was_not_applied_is_an_error_later(emb: Embedding) -> None:  # noqa: F811
    state = emb.init()
    rows = emb.rows(state, "t")
    gradient_of = jax.jit(jax.grad(summed(emb, IDS), has_aux=True))
    lost, state = gradient_of(state)
    jax.block_until_ready(lost.token)
    gradient, state = gradient_of(state)
    with pytest.raises(embeng.StepOrderError, match="2 gradients of lookups wait"), \
            embeng.jax.raising():
        emb.sync(emb.apply(state, gradient))
    check(emb, state, rows)
    state = emb.discard(state)
    gradient, state = gradient_of(state)
    for factor in (0.5, 3.0):
        changed = jax.tree.map(lambda leaf, factor=factor: factor * leaf, gradient)
        with pytest.raises(embeng.StepOrderError, match="averaged or clipped"), \
                embeng.jax.raising():
            emb.sync(emb.apply(state, changed))
    check(emb, emb.apply(state, gradient), subtract(rows, IDS))
    assert emb.engine.step == 1


def test_a_loss_without_lookups_is_no_step(emb: Embedding) -> None:  # noqa: F811
    state = emb.init()
    rows = emb.rows(state, "t")

    def loss(state: Any) -> Any:
        emb.lookup(state, {"f": IDS})
        return jnp.float32(3)
    state = emb.apply(state, jax.jit(jax.grad(loss))(state))
    check(emb, state, rows)
    assert emb.engine.step == 0


def test_other_gradients_leave_nothing_that_waits(emb: Embedding) -> None:  # noqa: F811
    state = emb.init()
    rows = emb.rows(state, "t")

    @jax.jit
    def loss(weight: Any, state: Any) -> Any:
        found, _ = emb.lookup(state, {"f": IDS})
        return (weight * found["f"]).sum()
    by_weight = jax.grad(loss)(jnp.float32(2), state)
    numpy.testing.assert_allclose(by_weight, rows[IDS].sum(), rtol=1e-5)
    check(emb, train(emb, state, IDS), subtract(rows, IDS))


@pytest.mark.sample
def test_derivatives_that_there_are_not_are_refused(emb: Embedding) -> None:  # noqa: F811
    state = emb.init()
    rows = emb.rows(state, "t")

    def norm(state: Any) -> Any:
        return jnp.sin(emb.lookup(state, {"f": IDS})[0]["f"]).sum()

    def through_update(scale: Any) -> Any:
        after = emb.update(state, {"f": IDS}, {"f": scale * jnp.ones((3, DIM))})
        return emb.lookup(after, {"f": IDS})[0]["f"].sum()

    with pytest.raises(embeng.NotSupportedError, match="no grad of grad"):
        jax.grad(lambda state: jax.grad(norm)(state).token)(state)
    with pytest.raises(embeng.NotSupportedError, match=r"Embedding.update\(\)"):
        jax.grad(through_update)(jnp.float32(1))
    with pytest.raises(embeng.NotSupportedError, match="forward mode"):
        jax.jvp(norm, (state,), (state,))
    with pytest.raises(Exception, match=r"custom_vjp|forward"):
        jax.jit(lambda state: jax.jvp(norm, (state,), (state,)))(state)
    check(emb, emb.discard(state), rows)

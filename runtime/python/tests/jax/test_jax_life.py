# SPDX-License-Identifier: MIT
"""Programs that outlive their engine, threads, memory, and functions that XLA calls."""
import copy
import gc
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy
import pytest
from support import Run
from jax_peers import DIM, RATE, emb, make_embedding  # noqa: F401

import embeng
import embeng.jax
from embeng import _core

Embedding = embeng.jax.Embedding


def looking(made: Embedding) -> Any:
    """Return a compiled lookup of feature f."""
    return jax.jit(lambda state, ids: made.lookup(state, {"f": ids})[0]["f"])


@pytest.mark.sample
@pytest.mark.parametrize("calls", ["ffi", "callback"])
def test_a_compiled_program_outlives_its_engine(calls: str) -> None:
    made = make_embedding(calls)
    state, ids = made.init(), jnp.array([1, 2])
    look = looking(made)
    update = jax.jit(lambda state: made.update(state, {"f": ids}, {"f": jnp.ones((2, DIM))}))
    jax.block_until_ready(look(state, ids))
    handle = made.engine.handle
    made.close()
    for program in (lambda: look(state, ids), lambda: update(state)):
        with pytest.raises(embeng.DeviceError, match=f"no open engine with the handle {handle}"), \
                embeng.jax.raising():
            jax.block_until_ready(program())
    with make_embedding(calls) as other:
        assert other.engine.handle != handle
        with pytest.raises(embeng.DeviceError), embeng.jax.raising():
            jax.block_until_ready(look(state, ids))


def test_an_engine_that_is_freed_is_a_stale_handle(emb: Embedding) -> None:  # noqa: F811
    other = make_embedding("ffi")
    state = other.init()
    look = looking(other)
    wanted = look(state, jnp.array([1]))
    del other
    gc.collect()
    # The compiled function holds the embedding, and so the engine.
    assert (look(state, jnp.array([1])) == wanted).all()


@pytest.mark.parametrize("how", [copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made))],
                         ids=["deepcopy", "pickle"])
def test_copies_have_an_engine_of_their_own(how: Any, emb: Embedding) -> None:  # noqa: F811
    state, ids = emb.init(), {"f": jnp.array([1, 2])}
    rows = emb.rows(state, "t")
    with how(emb) as other:
        found, after = other.lookup(state, ids)
        assert (found["f"] == rows[[1, 2]]).all()
        after = other.update(after, ids, {"f": jnp.ones((2, DIM))})
        assert (other.rows(after, "t")[[1, 2]] != rows[[1, 2]]).all()
        assert (emb.rows(state, "t") == rows).all()


@pytest.mark.sample
def test_threads_look_up_and_update_one_engine() -> None:
    with make_embedding() as made:
        state = made.init()
        rows = made.rows(state, "t")
        step = jax.jit(lambda state, ids: made.update(state, {"f": ids},
                                                      {"f": jnp.ones((2, DIM))}))
        look = looking(made)

        def work(row: int) -> None:
            own = state
            for _ in range(50):
                own = step(own, jnp.array([row, row]))
                found = look(own, jnp.array([row]))
            numpy.testing.assert_allclose(found[0], rows[row] - RATE * 100, rtol=1e-5)

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, range(8)))
        made.engine.flush()
        assert made.engine.step == 400


def test_closing_while_programs_run_ends_them_with_an_error() -> None:
    made = make_embedding()
    state = made.init()
    look, ids = looking(made), jnp.arange(8) % 5
    jax.block_until_ready(look(state, ids))
    errors: list[BaseException] = []
    begun = threading.Barrier(5)

    def work() -> None:
        begun.wait()
        try:
            with embeng.jax.raising():
                for _ in range(200_000):
                    jax.block_until_ready(look(state, ids))
        except embeng.EmbengError as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    begun.wait()
    made.close()
    for thread in threads:
        thread.join(60)
    assert len(errors) == 4
    assert all("handle" in str(error) or "closed" in str(error) for error in errors)


def test_lookups_leave_no_memory_behind() -> None:
    with make_embedding() as made:
        state = made.init()
        ids = jnp.zeros((512, 8), jnp.int32)

        @jax.jit
        def step(state: Any) -> Any:
            def loss(state: Any) -> Any:
                found, after = made.lookup(state, {"f": ids})
                return found["f"].sum(), after
            gradient, after = jax.grad(loss, has_aux=True)(state)
            return made.apply(after, gradient)

        def resident() -> int:
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * 4096

        for _ in range(200):
            state = step(state)
        made.sync(state)
        before = resident()
        for _ in range(2000):
            state = step(state)
        made.sync(state)
        # One push of this batch is 40 KiB: a leak of each would be 80 MiB.
        assert resident() - before < 16 << 20
        for _ in range(200):
            with pytest.raises(embeng.OutOfRangeError), embeng.jax.raising():
                jax.block_until_ready(made.lookup(state, {"f": jnp.array([99])})[0]["f"])


def test_capsules_are_new_and_freed() -> None:
    first, second = _core.xla_targets(), _core.xla_targets()
    assert list(first) == ["embeng_lookup", "embeng_push", "embeng_apply", "embeng_update",
                           "embeng_weights", "embeng_drop"]
    assert first.keys() == second.keys()
    assert 'capsule object "xla._CUSTOM_CALL_TARGET"' in repr(first["embeng_lookup"])


@pytest.mark.parametrize("attributes", [
    {}, {"engine": numpy.int32(1)}, {"engine": numpy.int64(1), "features": numpy.zeros(1, int)},
    {"engine": numpy.int64(1), "features": numpy.zeros(2, int), "forms": numpy.zeros(1, int),
     "padding": numpy.zeros(2, int)}])
def test_calls_that_are_made_by_hand_are_refused(attributes: dict[str, Any]) -> None:
    embeng.jax._calls.register_targets()
    shape = jax.ShapeDtypeStruct((1, DIM), jnp.float32)
    token = jax.ShapeDtypeStruct((), jnp.float32)
    with pytest.raises(embeng.InvalidError, match="attributes"), embeng.jax.raising():
        jax.block_until_ready(jax.ffi.ffi_call("embeng_lookup", [shape, token])(
            jnp.float32(0), jnp.array([1]), **attributes))


def test_calls_with_other_buffers_are_refused(emb: Embedding) -> None:  # noqa: F811
    given = {"engine": numpy.int64(emb.engine.handle), "features": numpy.zeros(1, numpy.int64),
             "forms": numpy.zeros(1, numpy.int64), "padding": numpy.zeros(1, numpy.int64)}
    embeng.jax._calls.register_targets()
    token = jax.ShapeDtypeStruct((), jnp.float32)
    ids = jnp.array([1])
    for shape, arrays, text in (
            ((1, DIM), (jnp.float32(0), jnp.float32(1)), "ids"),
            ((1, DIM), (jnp.float32(0),), "ids"), ((1, DIM), (), "scalar"),
            ((1, DIM), (jnp.float32(0), jnp.zeros((1, 1, 1), int)), "ids"),
            ((2, 1), (jnp.float32(0), ids), "elements|floats|output")):
        with pytest.raises(embeng.InvalidError, match=text), embeng.jax.raising():
            jax.block_until_ready(jax.ffi.ffi_call(
                "embeng_lookup", [jax.ShapeDtypeStruct(shape, jnp.float32), token])(
                    *arrays, **given))
    with pytest.raises(embeng.InvalidError, match="twice"), embeng.jax.raising():
        two = {name: value if name == "engine" else numpy.zeros(2, numpy.int64)
               for name, value in given.items()}
        out = jax.ShapeDtypeStruct((1, DIM), jnp.float32)
        jax.block_until_ready(jax.ffi.ffi_call("embeng_lookup", [out, out, token])(
            jnp.float32(0), ids, ids, **two))


def test_the_module_is_imported_only_when_asked_for(run_python: Run) -> None:
    done = run_python("import sys, embeng\nassert 'jax' not in sys.modules\n"
                      "import embeng.jax\nassert 'jax' in sys.modules\n"
                      "assert 'flax' not in sys.modules and 'optax' not in sys.modules")
    assert done.returncode == 0, done.stderr

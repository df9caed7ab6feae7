# SPDX-License-Identifier: MIT
"""Lookups, gradients and steps inside jit are those of jnp.take with dense gradients."""
from typing import Any

import jax
import jax.numpy as jnp
import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax_peers import DIM, RATE, ROWS, emb, make_embedding, pad, take_bags  # noqa: F401

import embeng
import embeng.jax
from embeng import Ragged

Embedding = embeng.jax.Embedding
bags_of_ids = st.lists(st.lists(st.integers(0, ROWS - 1), max_size=5), min_size=1, max_size=6)


def close(found: Any, wanted: Any) -> None:
    numpy.testing.assert_allclose(found, wanted, rtol=2e-6, atol=2e-6)


@pytest.mark.sample
def test_a_step_of_sgd_has_the_bits_of_the_formula(emb: Embedding) -> None:  # noqa: F811
    ids = jnp.array([[1, 2, -1], [3, -1, -1]])

    @jax.jit
    def step(state: Any, ids: Any) -> Any:
        def loss(state: Any) -> Any:
            found, after = emb.lookup(state, {"f": ids})
            return 0.5 * (found["f"] ** 2).sum(), after
        (value, after), gradient = jax.value_and_grad(loss, has_aux=True)(state)
        return value, emb.apply(after, gradient), gradient

    state = emb.init()
    rows = emb.rows(state, "t")
    value, state, gradient = step(state, ids)
    activations = numpy.stack([rows[1] + rows[2], rows[3]])
    assert float(gradient.token) == 1
    close(value, 0.5 * (activations ** 2).sum())
    rows[1] -= numpy.float32(RATE) * activations[0]
    rows[2] -= numpy.float32(RATE) * activations[0]
    rows[3] -= numpy.float32(RATE) * activations[1]
    assert (emb.rows(state, "t") == rows).all()
    assert emb.engine.step == 1


@settings(max_examples=15)
@given(bags=bags_of_ids, combiner=st.sampled_from(["sum", "mean", "sqrtn"]),
       weighted=st.booleans(), seed=st.integers(0, 2**31))
def test_any_bags_train_as_jnp_take_does(bags: list[list[int]], combiner: str, weighted: bool,
                                         seed: int) -> None:
    rng = numpy.random.default_rng(seed)
    ids = jnp.asarray(pad(bags))
    target = jnp.asarray(rng.normal(size=(len(bags), DIM)), jnp.float32)
    weights = jnp.asarray(rng.uniform(0.5, 2, ids.shape), jnp.float32)

    with make_embedding(combiner=combiner) as made:
        state = made.init()
        rows = jnp.asarray(made.rows(state, "t"))

        def ours(state: Any, weights: Any) -> Any:
            given = Ragged(ids, weights=weights if weighted else None, padding=-1)
            found, after = made.lookup(state, {"f": given})
            return ((found["f"] - target) ** 2).sum(), (found["f"], after)

        def theirs(rows: Any, weights: Any) -> Any:
            found = take_bags(rows, ids, combiner, weights if weighted else None)
            return ((found - target) ** 2).sum(), found

        (_, (found, after)), (gradient, by_weight) = jax.jit(jax.value_and_grad(
            ours, argnums=(0, 1), has_aux=True))(state, weights)
        (_, wanted), (by_row, wanted_weight) = jax.value_and_grad(
            theirs, argnums=(0, 1), has_aux=True)(rows, weights)
        close(found, wanted)
        numpy.testing.assert_allclose(by_weight, jnp.where(ids >= 0, wanted_weight, 0), rtol=1e-4,
                                      atol=1e-4)
        after = made.apply(after, gradient)
        numpy.testing.assert_allclose(made.rows(after, "t"), rows - RATE * by_row, rtol=1e-5,
                                      atol=1e-5)


@pytest.mark.sample
@pytest.mark.parametrize("form", ["splits", "lengths", "starts"])
@pytest.mark.parametrize("dtype", [numpy.int32, numpy.int64])
def test_ragged_bags_are_looked_up_and_updated(emb: Embedding, form: str,  # noqa: F811
                                               dtype: Any) -> None:
    bounds = {"splits": [0, 2, 2, 5], "lengths": [2, 0, 3], "starts": [0, 2, 2]}[form]
    ids = jnp.asarray(numpy.array([1, 2, 3, 3, 4], dtype))
    state = emb.init()
    rows = emb.rows(state, "t")
    given = Ragged(ids, **{form: jnp.asarray(numpy.array(bounds, dtype))})
    found, state = jax.jit(lambda state, given: emb.lookup(state, {"f": given}))(state, given)
    wanted = numpy.stack([rows[1] + rows[2], 0 * rows[0], rows[3] + rows[3] + rows[4]])
    close(found["f"], wanted)
    state = jax.jit(lambda state, given: emb.update(
        state, {"f": given}, {"f": jnp.ones((3, DIM))}))(state, given)
    for row, times in ((1, 1), (2, 1), (3, 2), (4, 1)):
        rows[row] -= RATE * times
    close(emb.rows(state, "t"), rows)


@pytest.mark.sample
def test_sequences_have_a_row_for_each_id(emb: Embedding) -> None:  # noqa: F811
    state = emb.init()
    rows = emb.rows(state, "t")
    found, state = jax.jit(lambda state: emb.lookup(
        state, {"s": jnp.array([[1, 2, 3, 4], [5, -1, -1, -1]])}))(state)
    assert found["s"].shape == (2, 3, DIM)
    assert (found["s"][0] == rows[[1, 2, 3]]).all()
    assert (found["s"][1] == numpy.stack([rows[5], 0 * rows[0], 0 * rows[0]])).all()
    single, state = emb.lookup(state, {"s": jnp.array([4, 9])})
    assert (single["s"] == rows[[4, 9]]).all()
    gradients = jnp.arange(24, dtype=jnp.float32).reshape(2, 3, DIM)
    state = emb.update(state, {"s": jnp.array([[1, 2, 3, 4], [5, -1, -1, -1]])}, {"s": gradients})
    for row, place in ((1, (0, 0)), (2, (0, 1)), (3, (0, 2)), (5, (1, 0))):
        rows[row] -= RATE * numpy.asarray(gradients[place])
    close(emb.rows(state, "t"), rows)


@pytest.mark.parametrize("calls", ["ffi", "callback"])
def test_lookups_of_one_loss_are_one_step_of_adagrad(calls: str) -> None:
    optimizer = embeng.optimizers.adagrad(0.3, initial_accumulator_value=0.1)
    with make_embedding(calls, optimizer=optimizer) as made:
        state = made.init()
        rows = made.rows(state, "t")
        left, right = jnp.array([1, 2, 2]), jnp.array([[2, 3], [4, 4], [5, -1]])

        def loss(state: Any) -> Any:
            one, state = made.lookup(state, {"f": left})
            two, state = made.lookup(state, {"f": right, "g": left})
            return (one["f"] * two["f"] + two["g"]).sum(), state

        def dense(rows: Any) -> Any:
            one, two = rows[left], take_bags(rows, right)
            return (one * two + rows[left]).sum()

        (_, state), gradient = jax.jit(jax.value_and_grad(loss, has_aux=True))(state)
        assert float(gradient.token) == 2
        state = made.apply(state, gradient)
        by_row = numpy.asarray(jax.grad(dense)(rows), numpy.float64)
        wanted = rows - 0.3 * by_row / numpy.sqrt(0.1 + by_row ** 2)
        numpy.testing.assert_allclose(made.rows(state, "t"), wanted, rtol=1e-5, atol=1e-5)
        assert made.engine.step == 1


@pytest.mark.sample
def test_gradients_of_several_batches_are_accumulated(emb: Embedding) -> None:  # noqa: F811
    state = emb.init()
    rows = emb.rows(state, "t")

    @jax.jit
    def gradient_of(state: Any, ids: Any) -> Any:
        def loss(state: Any) -> Any:
            found, after = emb.lookup(state, {"f": ids})
            return found["f"].sum(), after
        return jax.grad(loss, has_aux=True)(state)

    first, state = gradient_of(state, jnp.array([1, 2]))
    second, state = gradient_of(state, jnp.array([2, 3, 3]))
    total = jax.tree.map(jnp.add, first, second)
    state = emb.apply(state, total, multiplier=0.5)
    for row, times in ((1, 1), (2, 2), (3, 2)):
        rows[row] -= RATE * times * 0.5
    close(emb.rows(state, "t"), rows)
    assert emb.engine.step == 1


@pytest.mark.parametrize("calls", ["ffi", "callback"])
def test_rates_are_values_of_the_program(calls: str) -> None:
    with make_embedding(calls, optimizer=embeng.optimizers.sgd("lr")) as made:
        state = made.init()
        rows = made.rows(state, "t")

        @jax.jit
        def step(state: Any, rate: Any) -> Any:
            return made.update(state, {"f": jnp.array([3])}, {"f": jnp.ones((1, DIM))},
                               rates={"lr": rate})
        for number in range(4):
            state = step(state, jnp.float32(0.5) ** number)
        assert step._cache_size() == 1
        rows[3] -= 1 + 0.5 + 0.25 + 0.125
        close(made.rows(state, "t"), rows)
        with pytest.raises(embeng.InvalidError, match="lr"), embeng.jax.raising():
            made.sync(made.update(state, {"f": jnp.array([3])}, {"f": jnp.ones((1, DIM))}))


@pytest.mark.sample
def test_what_is_wrong_with_inputs_is_said_when_they_are_traced(
        emb: Embedding) -> None:  # noqa: F811
    state = emb.init()
    for inputs, kind, text in (
            ({"x": jnp.array([1])}, embeng.UnknownNameError, "there is no feature 'x'"),
            ({"f": jnp.array([1.5])}, embeng.InvalidError, "feature f: ids are float32"),
            ({"f": jnp.zeros((1, 2, 3), int)}, embeng.InvalidError, r"shape \(1, 2, 3\)"),
            ({"f": Ragged(jnp.array([1]), splits=jnp.array([0, 1]), lengths=jnp.array([1]))},
             embeng.InvalidError, "two of splits"),
            ({"f": Ragged(jnp.array([1]), weights=jnp.ones(2))}, embeng.InvalidError, "weights"),
            ({"f": numpy.array([2**40])}, embeng.OutOfRangeError, "needs int64"),
            ({"f": [3, -2**31 - 1]}, embeng.OutOfRangeError, "ids have -2147483649, which needs"),
            ({"f": numpy.array([1], numpy.uint64)}, embeng.InvalidError, "f: ids are uint64"),
            ({"f": ["a"]}, embeng.InvalidError, "feature f: ids: numpy makes an array of <U1"),
            ({"f": None}, embeng.InvalidError, "f: ids: .* object of what is given, a None"),
            ({"f": [[1], [2, 3]]}, embeng.InvalidError, "feature f: ids: setting an array"),
            ({"f": Ragged([1], lengths=[1], weights=[1j])}, embeng.InvalidError,
             "feature f: weights: numbers of complex64"),
            ({"f": Ragged([1], lengths=[1], weights="a")}, embeng.InvalidError,
             "feature f: weights: numpy makes an array of <U1"),
            ({"f": embeng.Sparse([[0, 0]], [1], (1, 1))}, embeng.InvalidError, "Sparse"),
            ([1], embeng.InvalidError, "a dict")):
        with pytest.raises(kind, match=text):
            emb.lookup(state, inputs)  # type: ignore[arg-type]
    with pytest.raises(embeng.InvalidError, match=r"\(2, 4\), its activations have \(1, 4\)"):
        emb.update(state, {"f": jnp.array([1])}, {"f": jnp.ones((2, DIM))})
    given: Any
    for given, text in (({}, "the inputs are of f"), (None, "gradients are NoneType; give a dict"),
                        ({"f": jnp.ones((1, DIM)) * 1j}, "feature f: gradients: .* complex64"),
                        ({"f": "a"}, "feature f: gradients: numpy makes an array of <U1")):
        with pytest.raises(embeng.InvalidError, match=text):
            emb.update(state, {"f": jnp.array([1])}, given)
    for options, kind, text in (
            ({"rates": {"lr": jnp.ones(2)}}, embeng.InvalidError, r"'lr' has the shape \(2,\)"),
            ({"rates": {"lr": None}}, embeng.InvalidError, "rates: 'lr': numpy makes"),
            ({"rates": {1: 2.0}}, embeng.UnknownNameError, "rates: 1 is no name"),
            ({"rates": [1]}, embeng.InvalidError, "rates are list; give a dict"),
            ({"multiplier": jnp.ones(2)}, embeng.InvalidError, "multiplier has the shape")):
        with pytest.raises(kind, match=text):
            emb.apply(state, state, **options)


def test_what_is_no_state_is_refused(emb: Embedding) -> None:  # noqa: F811
    state, ids = emb.init(), {"f": jnp.array([1])}
    other: Any
    for other, text in (({"token": state.token}, "the state is dict; give an embeng.jax"),
                        (None, "the state is NoneType"),
                        (embeng.jax.EmbeddingState(None), "the state: numpy makes"),
                        (embeng.jax.EmbeddingState(jnp.ones(3)), r"the state has the shape \(3")):
        for run in (lambda: emb.lookup(other, ids), lambda: emb.apply(other, state),
                    lambda: emb.update(other, ids, {"f": jnp.ones((1, DIM))}),
                    lambda: emb.discard(other), lambda: emb.sync(other)):
            with pytest.raises(embeng.InvalidError, match=text):
                run()
        text = text.replace("state", "gradient of the state")
        with pytest.raises(embeng.InvalidError, match=text):
            emb.apply(state, other)


@pytest.mark.parametrize("kind", ["bfloat16", "float16", "float64"])
def test_a_state_may_be_cast_with_the_parameters(kind: str,
                                                 emb: Embedding) -> None:  # noqa: F811
    if kind == "float64":
        jax.config.update("jax_enable_x64", True)
    try:
        params = {"state": emb.init(), "kernel": jnp.full(DIM, 0.5, jnp.float32)}
        rows = emb.rows(params["state"], "t")

        @jax.jit
        def step(params: Any) -> Any:
            def loss(params: Any) -> Any:
                low = jax.tree.map(lambda leaf: leaf.astype(kind), params)
                found, after = emb.lookup(low["state"], {"f": jnp.array([1, 2])})
                return (found["f"].astype(kind) @ low["kernel"]).sum().astype(jnp.float32), after
            gradients, after = jax.grad(loss, has_aux=True)(params)
            return emb.apply(after, gradients["state"]), gradients["kernel"]

        state, slope = step(params)
        numpy.testing.assert_allclose(slope, rows[1] + rows[2], rtol=0.02, atol=0.02)
        low = jax.tree.map(lambda leaf: leaf.astype(kind), state)
        low = emb.update(emb.discard(low), {"f": jnp.array([3])}, {"f": jnp.ones((1, DIM))})
        rows[[1, 2]] -= RATE * 0.5
        rows[3] -= RATE
        close(emb.rows(low, "t"), rows)
    finally:
        jax.config.update("jax_enable_x64", False)


@pytest.mark.sample
def test_errors_inside_jit_have_the_engines_class_and_sentence(
        emb: Embedding) -> None:  # noqa: F811
    state = emb.init()
    look = jax.jit(lambda state, given: emb.lookup(state, {"f": given})[0]["f"])
    for given, kind, text in (
            (jnp.array([3, 11]), embeng.OutOfRangeError,
             "feature f, sample 1: id 11 is outside table t, which has rows 0 to 10"),
            (Ragged(jnp.array([1, 2]), splits=jnp.array([0, 5])), embeng.InvalidError, "5 ids"),
            (Ragged(jnp.array([1, 2]), weights=jnp.array([1, jnp.nan])), embeng.OutOfRangeError,
             "weight")):
        with pytest.raises(kind, match=text), embeng.jax.raising():
            jax.block_until_ready(look(state, given))
    assert (look(state, jnp.array([3])) == emb.rows(state, "t")[3]).all()


def test_init_with_a_key_starts_rows_slots_and_steps_again() -> None:
    normal = jax.nn.initializers.normal(0.5)
    tables = [embeng.Table("a", 6, 2, optimizer=embeng.optimizers.adagrad(0.1)),
              embeng.Table("b", 5, 3, optimizer=embeng.optimizers.sgd(0.1))]
    with Embedding(tables, initializers={"b": normal}) as made:
        with pytest.raises(embeng.InvalidError, match="need a key"):
            made.init()
        key = jax.random.key(3)
        state = made.init(key)
        first = made.rows(state, "a"), made.rows(state, "b")
        wanted = normal(jax.random.fold_in(key, 1), (5, 3), jnp.float32)
        assert (first[1] == wanted).all()
        assert first[0].std() > 0.1
        state = made.update(state, {"a": jnp.array([1])}, {"a": jnp.ones((1, 2))})
        made.sync(state)
        assert made.engine.step == 1
        state = made.init(key)
        assert (made.rows(state, "a") == first[0]).all()
        assert (made.rows(state, "a", slot="accumulators") == numpy.float32(0.1)).all()
        assert made.engine.step == 0
        other = made.init(jax.random.key(4))
        assert (made.rows(other, "a") != first[0]).any()


def test_empty_batches_are_looked_up_and_change_nothing(emb: Embedding) -> None:  # noqa: F811
    state = emb.init()
    rows = emb.rows(state, "t")
    found, state = emb.lookup(state, {"f": jnp.zeros((0, 3), jnp.int32)})
    assert found["f"].shape == (0, DIM)
    found, state = emb.lookup(state, {"f": jnp.full((2, 3), -1)})
    assert (found["f"] == 0).all()
    state = emb.update(state, {"f": jnp.zeros((0,), jnp.int32)}, {"f": jnp.zeros((0, DIM))})
    assert (emb.rows(state, "t") == rows).all()


def test_a_checkpoint_of_a_state_is_restored(tmp_path: Any) -> None:
    with make_embedding() as made, make_embedding("callback") as other:
        state = made.init()
        state = made.update(state, {"f": jnp.array([3])}, {"f": jnp.ones((1, DIM))})
        made.save(state, tmp_path / "saved", progress=False)
        wanted = made.rows(state, "t")
        begun = other.restore(other.init(), tmp_path / "saved", progress=False)
        assert (other.rows(begun, "t") == wanted).all()
        assert other.engine.step == 1


push = st.tuples(st.sampled_from(["f", "g"]), bags_of_ids, st.sampled_from(
    ["matrix", "splits", "lengths", "starts", "weighted", "padded"]))


def make_input(bags: list[list[int]], form: str) -> Any:
    """Return bags in a form; weights depend on the ids."""
    if form in ("matrix", "weighted"):
        ids = jnp.asarray(pad(bags))
        return ids if form == "matrix" else Ragged(ids, weights=1 + ids / 7, padding=-1)
    values = numpy.array([i for bag in bags for i in bag], numpy.int32)
    lengths = numpy.array([len(bag) for bag in bags], numpy.int32)
    splits = numpy.concatenate([[0], numpy.cumsum(lengths)]).astype(numpy.int32)
    bounds: dict[str, Any] = {"splits": splits, "lengths": lengths, "starts": splits[:-1]}
    if form == "padded":
        return Ragged(values, splits=splits, padding=3)
    return Ragged(values, **{form: bounds[form]})


@settings(max_examples=20)
@given(pushes=st.lists(push, min_size=1, max_size=5), seed=st.integers(0, 2**31))
def test_pushes_of_any_form_are_one_step(pushes: list[Any], seed: int) -> None:
    optimizer = embeng.optimizers.adagrad(0.3)
    found = []
    for calls in ("ffi", "callback"):
        rng = numpy.random.default_rng(seed)
        with make_embedding(calls, "mean", optimizer) as made:
            state = made.init()
            total = embeng.jax.EmbeddingState(jnp.float32(0))
            for feature, bags, form in pushes:
                gradients = jnp.asarray(rng.normal(size=(len(bags), DIM)), jnp.float32)

                def loss(state: Any, feature: str = feature, bags: Any = bags, form: str = form,
                         gradients: Any = gradients) -> Any:
                    out, after = made.lookup(  # noqa: B023
                        state, {feature: make_input(bags, form)})
                    return (out[feature] * gradients).sum(), after
                gradient, state = jax.grad(loss, has_aux=True)(state)
                total = jax.tree.map(jnp.add, total, gradient)
            state = made.apply(state, total)
            found.append(made.rows(state, "t"))
            assert made.engine.step == 1
    numpy.testing.assert_allclose(found[0], found[1], rtol=1e-6, atol=1e-7)


@pytest.mark.sample
def test_one_seed_has_the_bits_of_numpy(emb: Embedding, rng: Any) -> None:  # noqa: F811
    state = emb.init()
    with embeng.Engine(emb.engine.tables, emb.engine.features, cores=2) as engine:
        assert (engine["t"].read() == emb.rows(state, "t")).all()
        for _ in range(5):
            ids = rng.integers(0, ROWS, (7, 4)).astype(numpy.int32)
            gradients = rng.normal(size=(7, DIM)).astype(numpy.float32)
            found, state = emb.lookup(state, {"f": ids})
            assert (engine.lookup({"f": ids})["f"] == numpy.asarray(found["f"])).all()

            def loss(state: Any, ids: Any = ids, gradients: Any = gradients) -> Any:
                found, after = emb.lookup(state, {"f": ids})
                return (found["f"] * gradients).sum(), after
            gradient, state = jax.jit(jax.grad(loss, has_aux=True))(state)
            state = emb.apply(state, gradient)
            engine.update({"f": ids}, {"f": gradients})
            assert (engine["t"].read() == emb.rows(state, "t")).all()


def test_gradients_of_weights_are_of_the_rows_before_the_update(
        emb: Embedding) -> None:  # noqa: F811
    """The loss is linear, so that the update itself needs no activations."""
    rows = numpy.asarray(emb.engine["t"].read())
    ids = jnp.arange(8).reshape(4, 2)

    @jax.jit
    def train(state: Any, weights: Any) -> Any:
        def loss(state: Any, weights: Any) -> Any:
            found, after = emb.lookup(state, {"f": Ragged(ids, weights=weights)})
            return found["f"].sum(), after

        (count, by_weights), after = jax.grad(loss, argnums=(0, 1), has_aux=True)(state, weights)
        return by_weights, emb.apply(after, count)

    by_weights, state = train(emb.init(), jnp.full((4, 2), 2.0))
    numpy.testing.assert_allclose(by_weights, rows[ids].sum(axis=-1), rtol=1e-5, atol=1e-6)
    changed = emb.rows(state, "t")
    numpy.testing.assert_allclose(changed[:8], rows[:8] - RATE * 2, rtol=1e-6)


@pytest.mark.parametrize(("value", "calls"), [("callback", "callback"), ("", "ffi")])
def test_the_environment_has_the_default_of_calls(value: str, calls: str,
                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMBENG_JAX_CALLS", value)
    with make_embedding(None) as made:
        assert made.calls == calls
    with make_embedding("pure") as made:
        assert made.calls == "pure"
    monkeypatch.setenv("EMBENG_JAX_CALLS", "native")
    with pytest.raises(embeng.NotSupportedError, match="calls is 'native'"):
        make_embedding(None)

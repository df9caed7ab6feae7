# SPDX-License-Identifier: MIT
"""Partitioned batches, functional lookups and gradients under the names of jax-tpu-embedding."""
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import jax_peers  # noqa: F401
import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.sharding import Mesh, PartitionSpec
from sparsecore_specs import (Case, factors_of, make_case, make_optimizer, row_in_stack,
                              stack_tables)

import embeng
import embeng.jax
from embeng.jax import EmbeddingVariables

grids = st.sampled_from([(1, 1), (1, 2), (1, 4), (2, 1), (2, 2), (2, 4)])


def preprocess(case: Case, weighted: bool = True, **options: Any) -> Any:
    return embeng.jax.preprocess_sparse_dense_matmul_input(
        case.ids, case.weights if weighted else None, case.specs, case.devices, case.devices,
        num_sc_per_device=case.cores, **options)


def look_up(case: Case, weighted: bool) -> dict[str, Any]:
    """Return the activations by the formula, in f64."""
    found = {}
    for k, name in enumerate(case.specs):
        found[name] = numpy.stack([
            (factors_of(w if weighted else numpy.ones(len(w)), case.combiner)[:, None]
             * case.tables[k][ids]).sum(0)
            for ids, w in zip(case.ids[name], case.weights[name], strict=True)])
    return found


@settings(max_examples=25)
@given(grid=grids, combiner=st.sampled_from(["sum", "mean", "sqrtn"]), weighted=st.booleans(),
       minibatching=st.booleans(), leading=st.booleans(), seed=st.integers(0, 2**31))
def test_partitioned_batches_look_up_what_their_ids_say(
        grid: tuple[int, int], combiner: str, weighted: bool, minibatching: bool, leading: bool,
        seed: int) -> None:
    rng = numpy.random.default_rng(seed)
    case = make_case(rng, *grid, combiner, limit=16 if minibatching else 1000, tables=3)
    inputs, stats = preprocess(case, weighted, enable_minibatching=minibatching,
                               has_leading_dimension=leading)
    variables = {"stack": EmbeddingVariables(jnp.asarray(stack_tables(case)), ())}

    @jax.jit
    def run(inputs: Any, variables: Any) -> Any:
        return embeng.jax.tpu_sparse_dense_matmul(
            inputs, variables, case.specs, global_device_count=grid[0], num_sc_per_device=grid[1],
            enable_minibatching=minibatching)

    # jit takes no specifications: close over them.
    found = run(inputs, variables)
    wanted = look_up(case, weighted)
    assert list(found) == list(wanted)
    for name in wanted:
        numpy.testing.assert_allclose(found[name], wanted[name], rtol=1e-5, atol=1e-5)
    items = sum(len(set(ids.tolist())) for name in case.ids for ids in case.ids[name])
    assert stats.max_ids_per_partition["stack"].shape == (grid[0] * grid[0] * grid[1],)
    assert stats.max_ids_per_partition["stack"].sum() <= items
    assert stats.id_drop_counters == {"stack": 0}
    if leading:
        assert inputs.lhs_gains["stack"].shape[0] == grid[0]
        assert inputs.num_minibatches.shape == (grid[0], 1)


OPTIMIZERS: dict[str, Any] = {
    "sgd": (make_optimizer("sgd", 0.5), 0, lambda w, s, g: (w - 0.5 * g, ())),
    "adagrad": (make_optimizer("adagrad", 0.3), 1,
                lambda w, s, g: (w - 0.3 * g / numpy.sqrt(s[0] + g * g), (s[0] + g * g,))),
    "adam": (make_optimizer("adam", 0.1, 0.9, 0.99, 1e-3), 2, lambda w, s, g: (
        w - 0.1 * (0.9 * s[0] + 0.1 * g) / (numpy.sqrt(0.99 * s[1] + 0.01 * g * g) + 1e-3),
        (0.9 * s[0] + 0.1 * g, 0.99 * s[1] + 0.01 * g * g))),
    "adagrad_momentum": (make_optimizer("adagrad_momentum", 0.1, 0.9, 1.0, 1e-3, 2.0, True), 2,
                         lambda w, s, g: _momentum(w, s, g)),
    "laprop": (make_optimizer("laprop", 0.1, 0.9, 0.95, 1e-3), 2,
               lambda w, s, g: _laprop(w, s, g)),
    "ftrl": (make_optimizer("ftrl", 0.1, -0.5, 0.01, 0.02, 0.03,
                            multiply_linear_by_learning_rate=False), 2,
             lambda w, s, g: _ftrl(w, s, g, False)),
    "ftrl times rate": (make_optimizer("ftrl", 0.1, -0.5, 0.01, 0.02, 0.03,
                                       multiply_linear_by_learning_rate=True), 2,
                        lambda w, s, g: _ftrl(w, s, g, True)),
}


def _momentum(w: Any, s: Any, g: Any) -> Any:
    accumulator = s[0] + g * g
    scaled = (accumulator + 1e-3) ** -0.5 * g
    momentum = 0.9 * s[1] + scaled
    return w - 0.1 * (0.9 * momentum + scaled), (accumulator, momentum)


def _laprop(w: Any, s: Any, g: Any) -> Any:
    nu = 0.95 * s[1] + 0.05 * (g * g + 1e-3)
    mu = 0.9 * s[0] + numpy.sqrt(1 - 0.81) * g / numpy.sqrt(nu)
    return w - 0.1 * mu, (mu, nu)


def _ftrl(w: Any, s: Any, g: Any, multiply: bool) -> Any:
    """FTRL of McMahan et al. with both ways to keep the linear term."""
    accumulator = s[0] + g * g
    change = numpy.sqrt(accumulator) - numpy.sqrt(s[0])
    if multiply:
        linear = s[1] + 0.1 * g - change * w
        numerator = numpy.sign(linear) * 0.001 - linear
        denominator = numpy.sqrt(accumulator) + 0.03 + 2 * 0.1 * 0.02
        new = numpy.where(abs(linear) > 0.001, numerator / denominator, 0)
    else:
        linear = s[1] + g - change / 0.1 * w
        numerator = numpy.sign(linear) * 0.01 - linear
        denominator = (numpy.sqrt(accumulator) + 0.03) / 0.1 + 2 * 0.02
        new = numpy.where(abs(linear) > 0.01, numerator / denominator, 0)
    return new, (accumulator, linear)


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("grid", [(1, 2), (2, 2)])
def test_gradients_update_the_rows_that_were_looked_up(kind: str, grid: tuple[int, int],
                                                       rng: Any) -> None:
    optimizer, count, formula = OPTIMIZERS[kind]
    case = make_case(rng, *grid, "mean", optimizer=optimizer)
    total = grid[0] * grid[1]
    table = stack_tables(case)
    slots = tuple(rng.uniform(0.1, 1, table.shape).astype(numpy.float32) for _ in range(count))
    gradients = {name: rng.normal(size=spec.output_shape).astype(numpy.float32)
                 for name, spec in case.specs.items()}
    inputs, _ = preprocess(case)
    summed = numpy.zeros(table.shape)
    touched = numpy.zeros(len(table), bool)
    for name, spec in case.specs.items():
        for sample, ids in enumerate(case.ids[name]):
            factors = factors_of(case.weights[name][sample], "mean")
            for row, factor in zip(ids, factors, strict=True):
                at = row_in_stack(spec, int(row), total)
                summed[at, :spec.output_shape[1]] += factor * gradients[name][sample]
                touched[at] = True
    new, changed = formula(table.astype(float), [s.astype(float) for s in slots], summed)

    @jax.jit
    def run(gradients: Any, inputs: Any, table: Any, slots: Any) -> Any:
        return embeng.jax.tpu_sparse_dense_matmul_grad(
            gradients, inputs, {"stack": EmbeddingVariables(table, slots)}, case.specs,
            global_device_count=grid[0], num_sc_per_device=grid[1])["stack"]

    found = run(gradients, inputs, table, slots)
    assert isinstance(found, EmbeddingVariables)
    for got, before, after in zip([found.table, *found.slot], [table, *slots], [new, *changed],
                                  strict=True):
        numpy.testing.assert_allclose(got, numpy.where(touched[:, None], after, before), rtol=2e-4,
                                      atol=2e-5)
        assert (numpy.asarray(got)[~touched] == before[~touched]).all()


@pytest.mark.sample
def test_devices_of_shard_map_have_a_part_each(rng: Any) -> None:
    case = make_case(rng, 2, 2, "mean", tables=3)
    mesh = Mesh(numpy.array(jax.devices()[:2]), ("x",))
    spec = PartitionSpec("x")
    variables = {"stack": EmbeddingVariables(jnp.asarray(stack_tables(case)), ())}
    inputs, _ = preprocess(case)
    arguments = {"global_device_count": 2, "num_sc_per_device": 2}
    gradients = {name: rng.normal(size=one.output_shape).astype(numpy.float32)
                 for name, one in case.specs.items()}

    def run(inputs: Any, variables: Any) -> Any:
        return embeng.jax.tpu_sparse_dense_matmul(inputs, variables, case.specs, **arguments)

    def update(gradients: Any, inputs: Any, variables: Any) -> Any:
        return embeng.jax.tpu_sparse_dense_matmul_grad(gradients, inputs, variables, case.specs,
                                                       **arguments)

    shared = partial(jax.shard_map, mesh=mesh, out_specs=spec, check_vma=False)
    found = jax.jit(shared(run, in_specs=(spec, spec)))(inputs, variables)
    for name, wanted in run(inputs, variables).items():
        numpy.testing.assert_allclose(found[name], wanted, rtol=1e-6)
    changed = jax.jit(shared(update, in_specs=(spec, spec, spec)))(gradients, inputs, variables)
    whole = update(gradients, inputs, variables)
    numpy.testing.assert_allclose(changed["stack"].table, whole["stack"].table, rtol=1e-5,
                                  atol=1e-6)


def test_limits_of_variables_hold_for_rows_that_are_updated(rng: Any) -> None:
    case = make_case(rng, 1, 2)
    table = stack_tables(case)
    inputs, _ = preprocess(case)
    gradients = {name: numpy.full(spec.output_shape, 100.0, numpy.float32)
                 for name, spec in case.specs.items()}
    found = embeng.jax.tpu_sparse_dense_matmul_grad(
        gradients, inputs, {"stack": EmbeddingVariables(table, ())}, case.specs,
        num_sc_per_device=2, embedding_var_limits={"stack": (-0.25, None)})["stack"].table
    changed = (numpy.asarray(found) != table).any(1)
    assert changed.any()
    assert numpy.asarray(found)[changed].min() == -0.25


def test_what_does_not_fit_is_refused(rng: Any) -> None:
    case = make_case(rng, 2, 2, limit=2)
    with pytest.raises(embeng.OutOfRangeError, match="partition"):
        preprocess(make_case(numpy.random.default_rng(3), 1, 1, limit=2))
    _, stats = preprocess(make_case(numpy.random.default_rng(3), 1, 1, limit=2),
                          allow_id_dropping=True)
    assert stats.id_drop_counters["stack"] > 0
    arguments = (case.ids, None, case.specs, 2, 2)
    function = embeng.jax.preprocess_sparse_dense_matmul_input
    with pytest.raises(embeng.InvalidError, match="num_sc_per_device"):
        function(*arguments)
    with pytest.raises(embeng.InvalidError, match="DIV"):
        function(*arguments, num_sc_per_device=2, sharding_strategy="DIV")
    with pytest.raises(embeng.NotSupportedError, match="several hosts"):
        function(case.ids, None, case.specs, 1, 2, num_sc_per_device=2, enable_minibatching=True)
    with pytest.raises(ValueError, match="Pytree structures of features"):
        function(list(case.ids.values()), None, case.specs, 2, 2, num_sc_per_device=2)
    with pytest.raises(embeng.InvalidError, match="weights have other lengths"):
        function(case.ids, {n: numpy.ones((len(i), 9)) for n, i in case.ids.items()}, case.specs,
                 2, 2, num_sc_per_device=2)
    weights = {n: [numpy.ones(len(row), numpy.float32) for row in i] for n, i in case.ids.items()}
    weights["f0"][1][2] = numpy.nan
    with pytest.raises(embeng.OutOfRangeError, match="feature f0, sample 1: a weight is nan"):
        function(case.ids, weights, case.specs, 2, 2, num_sc_per_device=2)
    wrong = {name: ids.copy() for name, ids in case.ids.items()}
    wrong["f0"][1, 2] = 4000
    with pytest.raises(embeng.InvalidError, match="feature f0, sample 1: id 4000 is outside"):
        function(wrong, None, case.specs, 2, 2, num_sc_per_device=2)
    with pytest.raises(embeng.InvalidError, match="no multiple of the 32 cores"):
        function(case.ids, None, case.specs, 2, 2, num_sc_per_device=16)
    for counts, cores, text in (((0, 2), 2, "local_device_count must"), ((2, 1), 2, "or equal"),
                                ((1, 1), 3, "power of 2"), ((1, 1), 0, "num_sc_per_device must")):
        with pytest.raises(embeng.InvalidError, match=text):
            function(case.ids, None, case.specs, *counts, num_sc_per_device=cores)
    with pytest.raises(embeng.InvalidError, match="cannot be empty"):
        function({}, None, {}, 1, 1, num_sc_per_device=1)


def test_lookups_of_other_stacks_are_refused(rng: Any) -> None:
    case = make_case(rng, 2, 2)
    table = stack_tables(case)
    inputs, _ = preprocess(case)
    for variables, kind, text in (
            ({"stack": EmbeddingVariables(table[1:], ())}, embeng.InvalidError,
             "no multiple of 4 cores"),
            ({"other": EmbeddingVariables(table, ())}, embeng.InvalidError,
             "embedding_variables are of other")):
        with pytest.raises(kind, match=text):
            embeng.jax.tpu_sparse_dense_matmul(inputs, variables, case.specs,
                                               global_device_count=2, num_sc_per_device=2)
    case = make_case(rng, 1, 2, optimizer=make_optimizer("f2a", 0.5))
    inputs, _ = preprocess(case)
    with pytest.raises(embeng.NotSupportedError, match="'f2a' is a program of its own"):
        embeng.jax.tpu_sparse_dense_matmul_grad(
            {n: numpy.ones(s.output_shape) for n, s in case.specs.items()}, inputs,
            {"stack": EmbeddingVariables(stack_tables(case), ())}, case.specs, num_sc_per_device=2)

# SPDX-License-Identifier: MIT
"""Lookups in functions with jit_compile=True against the engine's, and what is refused there."""
from typing import Any

import numpy
import pytest

tf = pytest.importorskip("tensorflow")

import embeng  # noqa: E402
from embeng.tf import ops  # noqa: E402
from embeng.tf._forms import Positions  # noqa: E402
from test_ops import DIM, ROWS, SPARSE, open_engine, rows_of, same_inputs  # noqa: E402


def _is_sparse(given: Any) -> bool:
    return isinstance(given, (tf.SparseTensor, embeng.Sparse))


def _compile(engine: embeng.Engine, feature: str, given: Any) -> Any:
    """Make a function without parameters, since the ids of some inputs are of numpy."""
    return tf.function(lambda: ops.lookup(engine, {feature: given})[feature], jit_compile=True)


@pytest.mark.parametrize("feature", ["f", "s"])
def test_lookup_is_compiled(feature: str) -> None:
    """Each form that XLA has gives the engine's bits."""
    with open_engine() as engine:
        for given, same in same_inputs():
            weighted = getattr(given, "weights", None) is not None
            if _is_sparse(given) or (feature == "s" and weighted):
                continue
            look = _compile(engine, feature, given)
            expected = engine.lookup({feature: same})[feature]
            numpy.testing.assert_array_equal(look(), expected, str(given))
            text = look.experimental_get_compiler_ir()(stage="hlo")
            assert 'custom_call_target="embeng_lookup"' in text


@pytest.mark.sample
def test_rows_are_those_of_now() -> None:
    """A program that is compiled once sees each update between its runs, and computes on."""
    with open_engine() as engine:
        @tf.function(jit_compile=True)
        def look(ids: Any, weights: Any) -> Any:
            bags = embeng.Ragged(ids, weights=weights, padding=-1)
            found = ops.lookup(engine, {"f": bags, "g": Positions(ids[:, 0])})
            return 2 * found["f"], tf.reduce_sum(found["g"], 1)

        ids = numpy.array([[1, 2, -1], [3, 3, 7]], numpy.int32)
        weights = numpy.array([[1, 3, 5], [1, 1, 2]], numpy.float32)
        bags = embeng.Ragged(ids, weights=weights, padding=-1)
        for _ in range(3):
            doubled, sums = look(tf.constant(ids), tf.constant(weights))
            numpy.testing.assert_array_equal(doubled, 2 * engine.lookup({"f": bags})["f"])
            numpy.testing.assert_allclose(sums, rows_of(engine)[ids[:, 0]].sum(1), rtol=1e-6)
            engine.update({"f": bags}, {"f": numpy.ones((2, DIM), numpy.float32)})
        assert look.experimental_get_tracing_count() == 1


def test_positions_and_nothing() -> None:
    with open_engine() as engine:
        rows = rows_of(engine)
        for ids in (numpy.arange(24).reshape(2, 3, 4), numpy.array(5), numpy.zeros((0, 2), int)):
            for feature in ("f", "s"):
                found = _compile(engine, feature, Positions(ids))()
                numpy.testing.assert_array_equal(found, rows[ids])
        empty = tf.function(lambda ids: ops.lookup(engine, {"f": ids})["f"], jit_compile=True)
        assert empty(tf.zeros((0, 3), tf.int32)).shape == (0, DIM)


def test_errors_have_the_sentence() -> None:
    """TensorFlow's loops take OutOfRangeError for the end of data, so it is another class."""
    with open_engine() as engine:
        look = tf.function(lambda ids: ops.lookup(engine, {"f": ids})["f"], jit_compile=True)
        assert look(tf.constant([[1, 2]])).shape == (1, DIM)
        with pytest.raises(tf.errors.InvalidArgumentError,
                           match=f"feature f, sample 0: id {ROWS} is outside table t"):
            look(tf.constant([[1, ROWS]]))
    with pytest.raises(tf.errors.FailedPreconditionError, match="closed"):
        look(tf.constant([[1, 2]]))


def test_what_is_not_compiled_is_named() -> None:
    with open_engine() as engine:
        ids, anchor = tf.constant([[1, 2]]), tf.Variable(0.0)

        def train() -> Any:
            with tf.GradientTape() as tape:
                found = ops.trained_lookup(engine, {"f": ids}, anchor)["f"]
                loss = tf.reduce_sum(found)
            return tape.gradient(loss, anchor)

        before = rows_of(engine)
        with pytest.raises(Exception, match="an update in a function with jit_compile=True"):
            tf.function(train, jit_compile=True)()
        numpy.testing.assert_array_equal(rows_of(engine), before)
        with pytest.raises(Exception, match="feature f: XLA compiles no lookup of sparse tensors"):
            tf.function(lambda: ops.lookup(engine, {"f": SPARSE}), jit_compile=True)()
        signature = [tf.TensorSpec([None, 2], tf.int32)]
        look = tf.function(lambda ids: ops.lookup(engine, {"f": ids})["f"],
                           input_signature=signature, jit_compile=True)
        with pytest.raises(Exception, match=r"feature f: XLA compiles lookups of known shapes"):
            look(ids)
        tf.function(train)()
        assert (rows_of(engine)[1] != before[1]).all()


def test_library_without_xla() -> None:
    with pytest.raises(ImportError, match="exports no function XLA_FFI_GetApi"):
        embeng._core.xla_register("libc.so.6")
    with pytest.raises(ImportError, match="libnothing.so: TensorFlow has not loaded this library"):
        embeng._core.xla_register("libnothing.so")
    with pytest.raises(TypeError):
        embeng._core.xla_register(3)  # type: ignore[arg-type]

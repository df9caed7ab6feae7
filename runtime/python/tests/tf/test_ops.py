# SPDX-License-Identifier: MIT
"""Operators of TensorFlow against the engine's own lookups and updates, natively and by Python."""
import threading
from collections.abc import Iterator
from typing import Any

import numpy
import pytest

tf = pytest.importorskip("tensorflow")

import embeng  # noqa: E402
from embeng.tf import ops  # noqa: E402
from embeng.tf._forms import Positions, read_call  # noqa: E402

ROWS, DIM = 50, 4
RAGGED = tf.RaggedTensor.from_row_lengths([3, 1, 4, 1, 5], [2, 0, 3])
SPARSE = tf.SparseTensor([[0, 0], [0, 2], [2, 1]], tf.constant([3, 1, 4], tf.int64), [3, 4])


def open_engine(optimizer: Any = None, combiner: str = "mean") -> embeng.Engine:
    """Open an engine of a table with a feature f, a sequence s of 3, and an idle one g."""
    table = embeng.Table("t", ROWS, DIM, combiner, optimizer or embeng.optimizers.adagrad(0.1),
                         embeng.initializers.uniform(-1, 1, seed=7))
    features = [embeng.Feature("g", "t"), embeng.Feature("s", "t", max_sequence_length=3),
                embeng.Feature("f", "t")]
    return embeng.Engine([table], features, cores=1)


@pytest.fixture
def engine() -> Iterator[embeng.Engine]:
    """Give the engine of :func:`open_engine`, and close it."""
    with open_engine() as opened:
        yield opened


def rows_of(engine: embeng.Engine) -> Any:
    """Read the whole table."""
    return engine.rows_read("t", numpy.empty((ROWS, DIM), numpy.float32))


def same_inputs() -> list[Any]:
    """Inputs of TensorFlow, and the same ones of numpy."""
    weights = numpy.array([0.5, 2, 1, 3, 0.25], numpy.float32)
    values, splits = RAGGED.values.numpy(), RAGGED.row_splits.numpy()
    coordinates = embeng.Sparse(SPARSE.indices.numpy(), SPARSE.values.numpy(), (3, 4))
    return [
        (tf.constant([1, 2, 3]), numpy.array([1, 2, 3])),
        (tf.constant([1, 2, 3], tf.int64), numpy.array([1, 2, 3])),
        (tf.constant([1, 2, 3], tf.int16), numpy.array([1, 2, 3])),
        (tf.constant([[1, 2], [3, 4]]), numpy.array([[1, 2], [3, 4]])),
        (RAGGED, embeng.Ragged(values, splits)),
        (SPARSE, coordinates),
        (embeng.Ragged(values, splits=splits, weights=weights),) * 2,
        (embeng.Ragged(values, lengths=[2, 0, 3], weights=weights),) * 2,
        (embeng.Ragged(values, starts=[0, 2, 2]),) * 2,
        (embeng.Ragged(values, weights=weights),) * 2,
        (embeng.Ragged(values.reshape(5, 1), weights=weights),) * 2,
        (coordinates._replace(weights=weights[:3]),) * 2,
        (embeng.Ragged(values, splits, padding=1),) * 2,
        (embeng.Ragged(values, lengths=[2, 0, 3], weights=weights, padding=4),) * 2,
        (embeng.Ragged(values, padding=3),) * 2,
        (embeng.Ragged(numpy.array([[1, -1], [-1, -1], [2, 3]]), padding=-1),) * 2,
    ]


@pytest.mark.sample
@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("feature", ["f", "s"])
def test_lookup(engine: embeng.Engine, way: str, feature: str, traced: bool) -> None:
    """Each form of an input has the engine's own numbers, and its shape is known while tracing."""
    for given, same in same_inputs():
        if feature == "s" and getattr(given, "weights", None) is not None:
            continue  # a sequence takes no weights

        def look(given: Any = given) -> Any:
            found = ops.lookup(engine, {feature: given})[feature]
            if not tf.executing_eagerly():
                assert found.shape[-1] == DIM, given
            return found

        found = (tf.function(look) if traced else look)()
        expected = engine.lookup({feature: same})[feature]
        assert found.dtype == tf.float32
        numpy.testing.assert_array_equal(found, expected, str(given))


def test_native(monkeypatch: pytest.MonkeyPatch) -> None:
    """TensorFlow's wheel exports what the operators need; without it the reason is told."""
    monkeypatch.delenv("EMBENG_TF_OPS", raising=False)
    ops._load_operators.cache_clear()
    assert ops.why_not_native() is None
    monkeypatch.setattr(ops, "LIBRARY", "libnothing.so")
    ops._load_operators.cache_clear()
    assert "libnothing.so: TensorFlow has not loaded this library" in str(ops.why_not_native())
    ops._load_operators.cache_clear()


def test_library_without_functions() -> None:
    """A library that lacks a function is refused by the function's name."""
    with pytest.raises(ImportError, match="exports no function TF_NewStatus"):
        embeng._core.tensorflow_register("libc.so.6")
    with pytest.raises(TypeError):
        embeng._core.tensorflow_register(3)  # type: ignore[arg-type]


def test_positions(engine: embeng.Engine, way: str) -> None:
    """Ids of any shape are samples of their own, also of a sequence feature."""
    ids = numpy.arange(24).reshape(2, 3, 4)
    rows = rows_of(engine)
    for feature in ("f", "s"):
        found = ops.lookup(engine, {feature: Positions(ids)})[feature]
        numpy.testing.assert_array_equal(found, rows[ids])
    assert ops.lookup(engine, {"f": Positions(5)})["f"].shape == (DIM,)


def test_sparse_of_rank_three(engine: embeng.Engine, way: str) -> None:
    """All but the last dimension of a sparse tensor are the output's."""
    sparse = tf.SparseTensor([[0, 0, 0], [1, 1, 0], [1, 1, 1]], tf.constant([3, 1, 4]), [2, 2, 2])
    found = ops.lookup(engine, {"f": sparse})["f"]
    rows = rows_of(engine)
    assert found.shape == (2, 2, DIM)
    numpy.testing.assert_array_equal(found[0, 0], rows[3])
    numpy.testing.assert_array_equal(found[0, 1], numpy.zeros(DIM))
    numpy.testing.assert_allclose(found[1, 1], (rows[1] + rows[4]) / 2, rtol=1e-6)


def test_empty(engine: embeng.Engine, way: str) -> None:
    """Inputs without samples or ids give outputs of these shapes."""
    none = tf.RaggedTensor.from_row_splits(tf.zeros([0], tf.int32), [0, 0, 0])
    for given, shape in ((tf.zeros([0], tf.int32), (0, DIM)), (none, (2, DIM)),
                         (tf.zeros([2, 0], tf.int32), (2, DIM)),
                         (tf.SparseTensor(tf.zeros([0, 2], tf.int64), tf.zeros([0], tf.int32),
                                          [2, 5]), (2, DIM))):
        found = ops.lookup(engine, {"f": given})["f"]
        assert found.shape == shape
        assert not numpy.any(found)


@pytest.mark.sample
def test_update(way: str, rng: numpy.random.Generator) -> None:
    """Updates in a loop of a graph have the bits of updates by numpy."""
    ids = rng.integers(0, ROWS, (7, 6), dtype=numpy.int32)
    gradients = rng.standard_normal((7, 6, DIM), dtype=numpy.float32)
    with open_engine() as ours, open_engine() as theirs:
        @tf.function
        def train(ids: Any, gradients: Any) -> Any:
            seen = tf.zeros([6, DIM])
            for k in tf.range(7):
                seen = ops.lookup(ours, {"f": ids[k]})["f"]
                ops.update(ours, {"f": ids[k]}, {"f": gradients[k]}, multiplier=0.5)
            return seen

        seen = train(ids, gradients)
        for k in range(7):
            expected = theirs.lookup({"f": ids[k]})["f"]
            theirs.update({"f": ids[k]}, {"f": gradients[k]}, multiplier=0.5)
        numpy.testing.assert_array_equal(seen, expected)
        numpy.testing.assert_array_equal(rows_of(ours), rows_of(theirs))
        assert ours.step == theirs.step == 7


def test_rates(way: str) -> None:
    """Dynamic rates are numbers, tensors, or functions whose operators run at each step."""
    with open_engine(embeng.optimizers.sgd("rate")) as engine:
        counter = tf.Variable(0.0)
        before = rows_of(engine)

        @tf.function
        def train(number: Any) -> None:
            counter.assign_add(1.0)
            ops.update(engine, {"f": [number]}, {"f": tf.ones([1, DIM])},
                        rates={"rate": lambda: counter / 8})

        train(tf.constant(3))
        train(tf.constant(4))
        ops.update(engine, {"f": [5]}, {"f": tf.ones([1, DIM])}, rates={"rate": 2.0})
        moved = before - rows_of(engine)
        for row, rate in ((2, 0), (3, 1 / 8), (4, 2 / 8), (5, 2)):
            numpy.testing.assert_allclose(moved[row], rate, rtol=1e-5)
        with pytest.raises((embeng.InvalidError, tf.errors.OpError, ValueError), match="rate"):
            ops.update(engine, {"f": [5]}, {"f": tf.ones([1, DIM])})


@pytest.mark.parametrize("combiner", ["sum", "mean", "sqrtn"])
def test_weight_gradients(way: str, combiner: str) -> None:
    """Gradients of weights are those of the engine; with a tape they come before the update."""
    weights = tf.constant([0.5, 2, 1, 3, 0.25])
    with open_engine(combiner=combiner) as engine:
        bags = embeng.Ragged(RAGGED.values, splits=RAGGED.row_splits, weights=weights)
        gradient = numpy.arange(12, dtype=numpy.float32).reshape(3, DIM)
        wanted: dict[str, Any] = {"f": None}
        arrays = embeng.Ragged(*(None if x is None else x.numpy() for x in bags))
        engine.weight_gradients({"f": arrays}, {"f": gradient}, wanted)
        found = ops.weight_gradients(engine, {"f": bags}, {"f": gradient})["f"]
        numpy.testing.assert_array_equal(found, wanted["f"])
        anchor = tf.Variable(0.0)

        @tf.function
        def train() -> Any:
            with tf.GradientTape() as tape:
                tape.watch(weights)
                found = ops.trained_lookup(engine, {"f": bags}, anchor)["f"]
                loss = tf.reduce_sum(found * gradient)
            return tape.gradient(loss, [weights, anchor])

        for_weights, for_anchor = train()
        numpy.testing.assert_array_equal(for_weights, wanted["f"])
        assert for_anchor == 0
        assert engine.step == 1


def test_padding(way: str) -> None:
    """Padding gets no row and no gradient, also where it stands for a row of the table."""
    weights = numpy.array([[0.5, 2], [1, 3], [0.25, 4]], numpy.float32)
    ids = numpy.array([[1, 7], [7, 7], [7, 2]])
    bags = embeng.Ragged(ids, weights=weights, padding=7)
    gradient = {"f": numpy.arange(12, dtype=numpy.float32).reshape(3, DIM)}
    with open_engine() as ours, open_engine() as theirs:
        before = rows_of(ours)
        found = tf.function(lambda: ops.weight_gradients(ours, {"f": bags}, gradient))()["f"]
        wanted: dict[str, Any] = {"f": None}
        theirs.weight_gradients({"f": bags}, gradient, wanted)
        numpy.testing.assert_array_equal(found, wanted["f"].reshape(3, 2))
        assert not found.numpy()[ids == 7].any()

        @tf.function
        def update() -> None:
            ops.update(ours, {"f": bags}, gradient)

        update()
        theirs.update({"f": bags}, gradient)
        numpy.testing.assert_array_equal(rows_of(ours), rows_of(theirs))
        moved = (rows_of(ours) != before).any(1)
        assert numpy.flatnonzero(moved).tolist() == [1, 2]


def test_gradient_norm(way: str, engine: embeng.Engine) -> None:
    """The norm of the gradients of rows is the engine's, in eager programs and in graphs."""
    bags = embeng.Ragged(RAGGED.values, splits=RAGGED.row_splits)
    arrays = embeng.Ragged(*(None if x is None else x.numpy() for x in bags))
    gradients = [tf.reshape(tf.range(12.0), [3, DIM]), tf.fill([2, DIM], 1e30)]
    expected, finite = engine.gradient_norm(
        {"f": arrays, "g": numpy.array([7, 7])}, {"f": gradients[0], "g": gradients[1]})
    assert finite and expected == pytest.approx(2e30 * DIM ** 0.5)
    call = read_call(engine, {"f": bags, "g": tf.constant([7, 7])})
    for run in (ops.measure_norm, tf.function(ops.measure_norm)):
        norm = run(engine, call, gradients)
        assert norm.dtype == tf.float64 and norm.shape == () and float(norm) == expected
        assert numpy.isnan(run(engine, call, [gradients[0], gradients[1] * float("nan")]))
    with pytest.raises((tf.errors.OpError, embeng.EmbengError)):
        ops.measure_norm(engine, call, [gradients[0], gradients[1][:1]])


@pytest.mark.sample
def test_trained_lookup(way: str) -> None:
    """The gradient of the anchor is one update; a program without a tape makes none."""
    anchor = tf.Variable(0.0)
    with open_engine() as ours, open_engine() as theirs:
        def step() -> Any:
            with tf.GradientTape() as tape:
                found = ops.trained_lookup(ours, {"f": RAGGED, "s": RAGGED}, anchor)
                loss = tf.reduce_sum(found["f"] ** 2) + tf.reduce_sum(found["s"] ** 2)
            return tape.gradient(loss, anchor)

        bags = embeng.Ragged(RAGGED.values.numpy(), RAGGED.row_splits.numpy())
        for run in (step, tf.function(step)):
            run()
            found = theirs.lookup({"f": bags, "s": bags})
            theirs.update({"f": bags, "s": bags}, {name: 2 * x for name, x in found.items()})
            numpy.testing.assert_array_equal(rows_of(ours), rows_of(theirs))
        ops.trained_lookup(ours, {"f": RAGGED}, anchor)
        assert ours.step == 2


BAD = [
    ({"f": tf.constant([1, ROWS])}, embeng.OutOfRangeError, "feature f, sample 1: id 50"),
    ({"f": tf.constant([-1])}, embeng.OutOfRangeError, "id -1"),
    ({"f": embeng.Ragged([1, 2], splits=[0, 3])}, embeng.InvalidError, "feature f"),
    ({"f": embeng.Ragged([1, 2], splits=[0, 2, 1, 2])}, embeng.InvalidError, "feature f"),
    ({"f": embeng.Ragged([1, 2], lengths=[3])}, embeng.InvalidError, "feature f"),
    ({"f": embeng.Ragged([1, 2], lengths=[2], weights=[1.0, float("nan")])},
     embeng.EmbengError, "feature f"),
    ({"f": embeng.Ragged([1, 2], lengths=[-1, 3])}, embeng.InvalidError, "feature f"),
]


@pytest.mark.parametrize("case", range(len(BAD)))
def test_bad_values(engine: embeng.Engine, way: str, case: int) -> None:
    """Bad numbers are refused by their own class, and in graphs with the same sentence."""
    inputs, kind, words = BAD[case]
    before = rows_of(engine)
    if way == "c":
        with pytest.raises(kind, match=words):
            ops.lookup(engine, inputs)
    traced = tf.function(lambda: ops.lookup(engine, inputs))
    with pytest.raises(tf.errors.OpError, match=words) as caught:
        traced()
    assert not isinstance(caught.value, tf.errors.OutOfRangeError)
    samples = engine.lookup({"f": numpy.array([1])})["f"]
    with pytest.raises((tf.errors.OpError, embeng.EmbengError)):
        ops.update(engine, inputs, {"f": samples})
    numpy.testing.assert_array_equal(rows_of(engine), before)
    assert engine.step == 0


@pytest.mark.parametrize(("inputs", "kind", "words"), [
    ({}, embeng.InvalidError, "no feature"),
    ({"h": [1]}, embeng.UnknownNameError, "there is no feature 'h'; the features are"),
    ({"f": [1.0]}, embeng.InvalidError, "ids are int32 or int64, not float32"),
    ({"f": tf.zeros([2, 2, 2], tf.int32)}, embeng.InvalidError, "Positions"),
    ({"f": embeng.Ragged([1], padding=1.5)}, embeng.InvalidError, "padding is 1.5; give an integer"),
    ({"f": embeng.Ragged([1], [0, 1], [1])}, embeng.InvalidError, "two of splits"),
    ({"f": tf.RaggedTensor.from_nested_row_splits([1], [[0, 1], [0, 1]])}, embeng.InvalidError,
     "one ragged dimension"),
])
def test_bad_inputs(engine: embeng.Engine, inputs: Any, kind: Any, words: str) -> None:
    """Bad forms are refused when a graph is built."""
    def look() -> Any:
        return ops.lookup(engine, inputs)

    for run in (look, tf.function(look, autograph=False)):
        with pytest.raises(kind, match=words):
            run()


def test_bad_gradients(engine: embeng.Engine, way: str) -> None:
    """Gradients of another shape, of another feature or that are not finite change nothing."""
    before = rows_of(engine)
    with pytest.raises(embeng.InvalidError, match="give one for each of"):
        ops.update(engine, {"f": [1]}, {"g": tf.zeros([1, DIM])})
    for gradient in (tf.zeros([2, DIM]), tf.zeros([0, DIM]), tf.fill([1, DIM], float("nan"))):
        with pytest.raises((tf.errors.OpError, embeng.EmbengError)):
            ops.update(engine, {"f": [1]}, {"f": gradient})
    numpy.testing.assert_array_equal(rows_of(engine), before)


def test_closed(way: str) -> None:
    """A graph whose engine was closed says so."""
    engine = open_engine()
    look = tf.function(lambda: ops.lookup(engine, {"f": [1]})["f"])
    look()
    engine.close()
    with pytest.raises(tf.errors.OpError, match="closed"):
        look()


def raw_lookup(engine: embeng.Engine, **changes: Any) -> Any:
    """Call the operator itself, past what the Python functions check."""
    given: dict[str, Any] = {"ids": [tf.constant([1])], "bounds": [], "weights": [],
                             "handle": engine.handle, "features": [2], "forms": [0], "N": 1,
                             "paddings": [0], **changes}
    operators = ops._load_operators()
    assert not isinstance(operators, str)
    return operators["embeng_lookup"](**given)


MATRIX = tf.zeros([2, 2], tf.int64)


@pytest.mark.parametrize("changes", [
    {"handle": 0}, {"handle": 2**62}, {"handle": -1}, {"features": [3]}, {"features": [-1]},
    {"features": [2**40]}, {"features": [2, 2]}, {"forms": [0, 0]}, {"forms": [7]},
    {"forms": [-1]}, {"forms": [2**40]}, {"forms": [5]}, {"forms": [1]}, {"forms": [2]},
    {"forms": [8], "weights": [[1.0]]}, {"forms": [0], "bounds": [[1]]},
    {"forms": [1], "ids": [[1]]}, {"forms": [2], "bounds": [MATRIX]}, {"forms": [2], "bounds": [1]},
    {"forms": [2], "ids": [[[1]]], "bounds": [[0, 1]]},
    {"forms": [9], "ids": [[[1]]], "weights": [[1.0, 2.0]]},
    {"forms": [4], "bounds": [MATRIX, [2, 2]]},
    {"forms": [4], "bounds": [MATRIX[:1], tf.constant([2, 2], tf.int64)[:1]]},
    {"forms": [4], "bounds": [MATRIX[:1], tf.constant([-2, 2], tf.int64)]},
    {"forms": [4], "bounds": [MATRIX[:1], tf.constant([2**62, 2], tf.int64)]},
    {"forms": [4], "bounds": [MATRIX, tf.constant([2, 2], tf.int64)]},
    {"forms": [4], "bounds": [tf.zeros([1, 9], tf.int64), tf.ones([9], tf.int64)]},
    {"features": [2, 2], "forms": [0, 0], "ids": [[1], [1]], "N": 2},
    {"features": [2, 1], "forms": [0, 0], "ids": [[1], [1]], "N": 1},
    {"ids": [[1], [1]], "N": 2}, {"forms": [32]}, {"forms": [64]}, {"paddings": []},
    {"paddings": [0, 0]}, {"forms": [36], "bounds": [MATRIX[:1], tf.constant([2, 2], tf.int64)]},
])
def test_bad_operator(engine: embeng.Engine, changes: dict[str, Any],
                      monkeypatch: pytest.MonkeyPatch) -> None:
    """An operator that was put together wrongly is an error of TensorFlow, and no crash."""
    monkeypatch.delenv("EMBENG_TF_OPS", raising=False)
    with pytest.raises((tf.errors.OpError, ValueError, TypeError)):
        raw_lookup(engine, **changes)


def test_threads(way: str) -> None:
    """Several threads look up and update at once; every update arrives."""
    with open_engine(embeng.optimizers.sgd(1.0)) as engine:
        before = rows_of(engine)

        @tf.function
        def step(number: Any) -> Any:
            ops.update(engine, {"f": [number]}, {"f": tf.ones([1, DIM])})
            return ops.lookup(engine, {"f": [number]})["f"]

        step(tf.constant(0))

        def work(number: int) -> None:
            for _ in range(25):
                step(tf.constant(number))

        threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        moved = before - rows_of(engine)
        for row, times in enumerate([26, 25, 25, 25, 0]):
            numpy.testing.assert_allclose(moved[row], times, rtol=1e-5)


def test_several_features(engine: embeng.Engine, way: str) -> None:
    """Features of one call may have different forms; a feature added later is found."""
    weights = tf.constant([1.0, 2, 3, 4, 5])
    found = ops.lookup(engine, {
        "f": embeng.Ragged(RAGGED.values, splits=RAGGED.row_splits, weights=weights),
        "s": SPARSE, "g": tf.constant([7])})
    assert {name: tuple(x.shape) for name, x in found.items()} == {
        "f": (3, DIM), "s": (3, 3, DIM), "g": (1, DIM)}
    engine.add([embeng.Table("u", 5, 2, optimizer=embeng.optimizers.sgd(0.1))])
    engine.add(features=[embeng.Feature("late", "u")])
    assert ops.lookup(engine, {"late": [1]})["late"].shape == (1, 2)

# SPDX-License-Identifier: MIT
"""Lists of TPUEmbeddingV2 as operators of the C API: values, errors, and what they refuse."""
import gc
from pathlib import Path
from typing import Any

import numpy
import pytest
from test_tf_step_ops import types_of

import embeng
import embeng.tf as tf
from embeng.tf import _ops, ops
from embeng.tf._csr import Entries, make_input

api = tf.tpu.experimental.embedding
ROWS, DIM, BATCH = 5000, 4, 6
LISTS = {"EmbengListEntries", "EmbengLookupEntries", "EmbengUpdateEntries"}


@pytest.fixture(params=["c", "py_function", "eager"])
def mode(request: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Give a function that traces another one with operators, with py_function, or not at all."""
    monkeypatch.setenv("EMBENG_TF_OPS", "c" if request.param == "eager" else request.param)
    ops._load_operators.cache_clear()
    yield (lambda function: function) if request.param == "eager" else tf.function
    ops._load_operators.cache_clear()


def make_embedding(strategy: Any, combiner: str = "mean", optimizer: Any = None,
                   rows: int = ROWS) -> Any:
    """Make tables t, with bags a, bags s and dense ids b, and u, with bags x."""
    with strategy.scope():
        start = tf.EngineInitializer(embeng.initializers.uniform(-1, 1, seed=3))
        t = api.TableConfig(rows, DIM, start, combiner=combiner, name="t")
        u = api.TableConfig(7, 2, start, combiner="sum", name="u")
        return api.TPUEmbeddingV2(
            {"a": api.FeatureConfig(t, name="a", output_shape=[BATCH]),
             "b": api.FeatureConfig(t, name="b", output_shape=[2, 3]),
             "s": api.FeatureConfig(t, name="s", output_shape=[2, 2]),
             "x": api.FeatureConfig(u, name="x")}, optimizer or api.Adagrad(0.1))


def draw_batch(rng: Any) -> tuple[Any, Any]:
    """Draw features of each form and weights; ids are often equal, coordinates in no order."""
    lengths = rng.integers(0, 30, BATCH)
    count = int(lengths.sum())
    ids = numpy.where(rng.random(count) < 0.5, rng.integers(0, 3, count),
                      rng.integers(0, ROWS, count)).astype(numpy.int64)
    places = rng.permutation(2 * 2 * 5)[:9]
    where = numpy.stack(numpy.unravel_index(places, (2, 2, 5)), 1)

    def weigh(*shape: int) -> Any:
        return rng.uniform(0.1, 2, shape).astype(numpy.float32)

    def bags(values: Any) -> Any:
        return tf.RaggedTensor.from_row_lengths(values, lengths)

    def coordinates(values: Any) -> Any:
        return tf.SparseTensor(where, values, [2, 2, 5])

    features = {"a": bags(ids), "b": tf.constant(rng.integers(0, ROWS, (2, 3)), tf.int32),
                "s": coordinates(tf.constant(rng.integers(0, ROWS, 9), tf.int32)),
                "x": tf.constant(rng.integers(0, 7, 4), tf.int64)}
    weights = {"a": bags(weigh(count)), "b": tf.constant(weigh(2, 3)), "s": coordinates(weigh(9)),
               "x": None}
    return features, weights


def train(embedding: Any, batches: Any, trace: Any) -> list[Any]:
    """Train by batches, and return all lists, activations and tables as arrays."""
    seen: list[Any] = []
    for batch in batches:
        @trace
        def step(batch: Any = batch) -> Any:
            found, kept = embedding(*batch)
            embedding.apply_gradients(tf.nest.map_structure(lambda x: x * x + 1, found), kept)
            return found, [part[:4] for part in kept.values()]

        seen += [tensor.numpy() for tensor in tf.nest.flatten(step())]
    tables = embedding.variables
    return seen + [variable.numpy() for name in ("t", "u") for variable in tables[name].values()]


@pytest.mark.sample
@pytest.mark.parametrize("combiner", ["sum", "mean", "sqrtn"])
def test_bits(make_strategy: Any, mode: Any, combiner: str, rng: Any) -> None:
    """Lists, activations and trained rows have the bits of the engine in numpy."""
    batches = [draw_batch(rng) for _ in range(3)]
    embedding = make_embedding(make_strategy(1), combiner)
    found = train(embedding, batches, mode)
    start = embeng.initializers.uniform(-1, 1, seed=3)
    adagrad = embeng.optimizers.adagrad(0.1)
    with embeng.Engine([embeng.Table("t", ROWS, DIM, "sum", adagrad, start),
                        embeng.Table("u", 7, 2, "sum", adagrad, start)]) as engine:
        for k, batch in enumerate(batches):
            parts = embedding.preprocess_features(*batch)
            inputs = {name: make_input(name, Entries(*map(numpy.asarray, part[1:4])),
                                       part.sample_count) for name, part in parts.items()}
            rows = engine.lookup(inputs)
            activations, lists = found[12 * k:12 * k + 4], found[12 * k + 4:12 * k + 12]
            expected = [rows["t"][:6], rows["t"][6:12].reshape(2, 3, DIM),
                        rows["t"][12:].reshape(2, 2, DIM), rows["u"]]
            for ours, theirs in zip(activations, expected, strict=True):
                numpy.testing.assert_array_equal(ours, theirs)
            for ours, theirs in zip(lists, [x for part in parts.values() for x in part[:4]],
                                    strict=True):
                numpy.testing.assert_array_equal(ours, theirs)
            engine.update(inputs, {name: x * x + 1 for name, x in rows.items()})
        for ours, (name, slot) in zip(found[36:], [
                (name, slot) for name in embedding.variables
                for slot in embedding.variables[name]], strict=True):
            expected = engine[name].read(slot=None if slot == "parameters" else slot)
            numpy.testing.assert_array_equal(ours, expected, f"{name} {slot}")


def test_gains_of_equal_entries(make_strategy: Any, mode: Any, rng: Any) -> None:
    """Gains of equal entries are summed in f64; ids and samples are in order."""
    weights = rng.uniform(-1, 1, 1000).astype(numpy.float32)
    ids = rng.integers(0, ROWS, 1000) // 1000 * 1000
    with make_strategy(1).scope():
        table = api.TableConfig(ROWS, DIM, combiner="sum", name="t")
        embedding = api.TPUEmbeddingV2(api.FeatureConfig(table, output_shape=[2]), api.SGD(0.1))
    lengths = [400, 600]
    part = mode(lambda: embedding.preprocess_features(
        tf.RaggedTensor.from_row_lengths(ids, lengths),
        tf.RaggedTensor.from_row_lengths(weights, lengths))["t"][:4])()
    expected = [(row, sample, numpy.float32(weights[at:to][ids[at:to] == row].astype(float).sum()))
                for row in range(0, ROWS, 1000) for sample, (at, to) in enumerate([(0, 400),
                                                                                   (400, 1000)])]
    assert part[0].numpy().tolist() == [10]
    numpy.testing.assert_array_equal(part[2], [row for row, _, _ in expected])
    numpy.testing.assert_array_equal(part[1], [sample for _, sample, _ in expected])
    numpy.testing.assert_allclose(part[3], [gain for _, _, gain in expected], rtol=1e-6)


@pytest.mark.sample
@pytest.mark.parametrize("replicas", [1, 2])
def test_a_step_has_no_python(make_strategy: Any, replicas: int) -> None:
    """A loop of steps is made of the three operators, and trains the rows of all replicas."""
    strategy = make_strategy(replicas)
    with strategy.scope():
        table = api.TableConfig(20, DIM, api.RowIdInitializer(1), combiner="sum", name="t")
        embedding = api.TPUEmbeddingV2(api.FeatureConfig(table, output_shape=[2]), api.SGD(0.5))
    ids = strategy.experimental_distribute_values_from_function(
        lambda context: tf.constant([3 + context.replica_id_in_sync_group, 9]))

    @tf.function
    def run(steps: Any) -> None:
        def step(ids: Any) -> None:
            found, kept = embedding(ids)
            embedding.apply_gradients(tf.ones_like(found), kept)

        for _ in tf.range(steps):
            strategy.run(step, args=(ids,))

    run(tf.constant(5))
    types = types_of(run.get_concrete_function(tf.constant(5)).graph)
    assert LISTS <= types
    assert not {name for name in types if "PyFunc" in name}
    moved = numpy.arange(1, 21) - embedding.embedding_tables["t"].numpy()[:, 0]
    expected = numpy.zeros(20)
    expected[3:3 + replicas] = 2.5
    expected[9] = 2.5 * replicas
    numpy.testing.assert_array_equal(moved, expected)


@pytest.mark.sample
def test_several_lookups_of_a_feature(make_strategy: Any, mode: Any) -> None:
    """A tape has the gradients of each lookup, which are given in another order; rates follow."""
    counter = tf.Variable(0.0)
    with make_strategy(1).scope():
        table = api.TableConfig(20, DIM, api.RowIdInitializer(1), combiner="sum", name="t")
        embedding = api.TPUEmbeddingV2(api.FeatureConfig(table, output_shape=[1]),
                                       api.SGD(lambda: counter / 4))

    @mode
    def step() -> Any:
        counter.assign_add(1.0)
        with tf.GradientTape() as tape:
            first, kept = embedding(tf.constant([3]))
            second, other = embedding(tf.ragged.constant([[3, 4]], dtype=tf.int64))
            tape.watch([first, second])
            loss = tf.reduce_sum(first * 2 + first * second)
        gradients = tape.gradient(loss, [first, second])
        embedding.apply_gradients(gradients[1], other)
        embedding.apply_gradients(gradients[0], kept)
        return loss / DIM

    rows = numpy.arange(1.0, 21.0)
    for rate in (0.25, 0.5):
        first, second = rows[3], rows[3] + rows[4]
        assert float(step()) == first * 2 + first * second
        rows[3:5] -= rate * first
        rows[3] -= rate * (2 + second)
    numpy.testing.assert_array_equal(embedding.embedding_tables["t"].numpy()[:, 0], rows)


def test_lists_of_a_data_set(make_strategy: Any, way: str) -> None:
    """Features are listed in the map of a data set, whose lists a step looks up and trains by."""
    embedding = make_embedding(make_strategy(1), "sum", api.SGD(1.0))
    embedding.build()
    before = embedding.embedding_tables["t"].numpy().copy()

    def lists_of(ids: Any) -> Any:
        kept = embedding.preprocess_features({
            "a": ids, "b": tf.zeros([2, 3], tf.int32), "s": tf.zeros([2, 2], tf.int64),
            "x": tf.zeros([1], tf.int32)})
        return tuple(tuple(part[:4]) for part in kept.values()), kept["t"].sample_count

    data = tf.data.Dataset.from_tensors(tf.range(BATCH, dtype=tf.int64)).repeat(2)
    steps = 0
    for (t, u), count in data.map(lists_of):
        kept = {"t": make_part(t, int(count)), "u": make_part(u, 1)}
        found, _ = embedding.dequeue(kept)
        embedding.apply_gradients(tf.nest.map_structure(tf.ones_like, found), kept)
        steps += 1
    moved = before - embedding.embedding_tables["t"].numpy()
    numpy.testing.assert_allclose(moved[:7, 0], [22, 2, 2, 2, 2, 2, 0], rtol=1e-5)
    assert steps == 2


def make_part(tensors: Any, count: int) -> Any:
    """Make a list of a table of its four tensors."""
    from embeng.tf._private import PartitionedCsrFormatTensor

    return PartitionedCsrFormatTensor(*tensors, count, 1)


# -- errors ------------------------------------------------------------------------------------

GOOD = {"a": tf.zeros([BATCH], tf.int64), "b": tf.zeros([2, 3], tf.int64),
        "s": tf.zeros([4], tf.int32), "x": tf.zeros([1], tf.int32)}


def ragged(splits: Any, count: int = 6) -> Any:
    """Make a ragged tensor whose splits nobody checked."""
    return tf.RaggedTensor.from_row_splits(
        tf.range(count), tf.constant(splits, tf.int64), validate=False)


WRONG_INPUTS = [
    ({"a": tf.constant([0, 1, ROWS, 3, -1, 5])}, "OutOfRangeError: feature a, sample 2: id 5000 is "
     "outside table t, which has rows 0 to 4999; correct the id"),
    ({"b": tf.constant([[0, 1, 2], [3, -1, 5]])}, "feature b, sample 4: id -1 is outside table t"),
    ({"a": tf.constant([0, 1, 2**40, 3, 4, 5])}, "sample 2: id 1099511627776 is outside table t"),
    ({"x": tf.constant([3, 7])}, "feature x, sample 1: id 7 is outside table u, which has rows 0 "),
    ({"a": ragged([0, 1, 1, 2, 3, 4, 6]) + ROWS}, "feature a, sample 0: id 5000 is outside "),
    ({"s": tf.SparseTensor([[1, 1, 0], [0, 1, 0]], tf.constant([2, ROWS]), [2, 2, 1])},
     "feature s, sample 1: id 5000 is outside table t"),
    ({"s": tf.SparseTensor([[1, 2, 0]], tf.constant([2]), [2, 2, 1])},
     r"OutOfRangeError: feature s: indices\[0\]\[1\] is 2, and the shape has 2 there"),
    ({"s": tf.SparseTensor([[1, 1, 0]], tf.constant([2]), [2, 3, 1])},
     "InvalidError: feature s: the input has 6 samples, and the output shape has 4"),
    ({"a": ragged([0, 6])}, "feature a: the input has 1 samples, and the output shape has 6"),
    ({"a": ragged([0, 1, 0, 6, 6, 6, 6])}, r"InvalidError: feature a: splits\[2\] is 0; splits "
     "start at 0, never fall, and end at the 6 ids"),
    ({"a": ragged([1, 1, 1, 6, 6, 6, 6])}, r"feature a: splits\[0\] is 1; splits start"),
    ({"a": ragged([0, 1, 1, 1, 1, 1, 5])}, r"feature a: splits\[6\] is 5; splits start"),
    ({"a": ragged([0, 1, 1, 1, 1, 9, 6])}, r"feature a: splits\[5\] is 9; splits start"),
]


@pytest.mark.parametrize("case", range(len(WRONG_INPUTS)))
def test_wrong_inputs(make_strategy: Any, mode: Any, case: int) -> None:
    """Wrong ids, coordinates and splits have one sentence, and the next step goes on."""
    given, words = WRONG_INPUTS[case]
    embedding = make_embedding(make_strategy(1))
    with pytest.raises((tf.errors.InvalidArgumentError, embeng.EmbengError)) as caught:
        mode(lambda: embedding({**GOOD, **given}))()
    error = caught.value
    text = f"{type(error).__name__}: {error}"
    assert isinstance(error, embeng.EmbengError) == (mode is not tf.function)
    caught.match(words.split("Error: ", 1)[-1])
    assert words.split(":")[0] in text
    assert mode(lambda: embedding(GOOD)[0]["x"])().shape == (1, 2)


def test_weights_and_coordinates_of_another_number(make_strategy: Any, mode: Any) -> None:
    """Weights and indices that are not as many as ids are refused by the feature's name."""
    embedding = make_embedding(make_strategy(1))
    bags = ragged([0, 1, 2, 3, 4, 5, 6])
    for count in (0, 5, 7):
        weights = {**dict.fromkeys(GOOD), "a": tf.RaggedTensor.from_row_splits(
            tf.ones([count]), bags.row_splits, validate=False)}
        with pytest.raises((tf.errors.InvalidArgumentError, embeng.InvalidError),
                           match=f"feature a: there are {count} weights for 6 ids"):
            mode(lambda weights=weights: embedding({**GOOD, "a": bags}, weights))()
    if mode is not tf.function:
        return
    loose = [tf.TensorSpec([None, 2], tf.int64), tf.TensorSpec([None], tf.int64)]
    look = tf.function(lambda places, ids: embedding({
        **GOOD, "a": tf.SparseTensor(places, ids, [BATCH, 2])})[0]["a"], input_signature=loose)
    look(tf.constant([[1, 0]], tf.int64), tf.constant([2], tf.int64))
    with pytest.raises(tf.errors.InvalidArgumentError,
                       match="feature a: its sparse tensor has 2 indices for 1 ids"):
        look(tf.constant([[1, 0], [2, 0]], tf.int64), tf.constant([2], tf.int64))


@pytest.mark.parametrize(("changes", "words"), [
    ({1: [0, 1, 6]}, r"OutOfRangeError: table t: sorted_sample_ids\[2\] is 6, and there are 2 s"),
    ({1: [0, -1, 1]}, r"table t: sorted_sample_ids\[1\] is -1, and there are 2 samples; give what"),
    ({1: [0]}, "InvalidError: table t: there are 1 samples, 3 ids and 3 gains of entries; give"),
    ({3: [1.0]}, "table t: there are 3 samples, 3 ids and 1 gains of entries"),
    ({2: [1, 20, 3]}, "OutOfRangeError: feature t, sample 1: id 20 is outside table t"),
    ({3: [1.0, float("nan"), 1.0]}, "feature t"),
])
def test_wrong_lists(make_strategy: Any, mode: Any, changes: Any, words: str) -> None:
    """Lists that a program changed are refused by lookups and updates, which change nothing."""
    with make_strategy(1).scope():
        table = api.TableConfig(20, DIM, api.RowIdInitializer(1), name="t")
        embedding = api.TPUEmbeddingV2(api.FeatureConfig(table, output_shape=[2]), api.SGD(1.0))
    embedding.build()
    lists: dict[int, Any] = {0: [3], 1: [0, 1, 1], 2: [1, 2, 3], 3: [1.0, 1.0, 1.0], **changes}
    types = {0: tf.int32, 1: tf.int32, 2: tf.int32, 3: tf.float32}
    part = {"t": make_part([tf.constant(lists[k], types[k]) for k in range(4)], 2)}
    for run in (lambda: embedding.dequeue(part)[0],
                lambda: embedding.apply_gradients(tf.ones([2, DIM]), part)):
        with pytest.raises((tf.errors.InvalidArgumentError, embeng.EmbengError)) as caught:
            mode(run)()
        caught.match(words.split("Error: ", 1)[-1])
        assert words.split(":")[0] in f"{type(caught.value).__name__}: {caught.value}"
    assert (embedding.embedding_tables["t"].numpy()[:, 0] == numpy.arange(1, 21)).all()


def test_tables_that_are_gone(make_strategy: Any, way: str) -> None:
    """A graph whose engine was closed says so."""
    embedding = make_embedding(make_strategy(1))
    look = tf.function(lambda: embedding(GOOD)[0])
    look()
    embedding._engine.close()
    with pytest.raises(tf.errors.InvalidArgumentError, match="closed"):
        look()


def resident() -> int:
    """Bytes of memory that the process has now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_memory(make_strategy: Any, rng: Any) -> None:
    """A thousand steps and errors leave no memory behind; each has lists of some 100 kB."""
    embedding = make_embedding(make_strategy(1), "mean")
    lengths = [1000] * BATCH

    @tf.function
    def steps(ids: Any, count: Any) -> None:
        bags = tf.RaggedTensor.from_row_lengths(ids, lengths)
        for _ in tf.range(count):
            found, kept = embedding({**GOOD, "a": bags})
            embedding.apply_gradients(found, kept)

    ids = tf.constant(rng.integers(0, ROWS, 1000 * BATCH))
    wrong = tf.concat([ids[:-1], [ROWS]], 0)

    def act() -> int:
        steps(ids, tf.constant(500))
        for _ in range(100):
            with pytest.raises(tf.errors.InvalidArgumentError):
                steps(wrong, tf.constant(1))
        gc.collect()
        return resident()

    act()
    seen = [act() for _ in range(3)]
    grown = min(after - before for before, after in zip(seen, seen[1:], strict=False))
    # A list that is lost in each tenth step would take more than this.
    assert grown < 3 << 20, seen


# -- operators that were put together wrongly ----------------------------------------------------

INTS, FLOATS = tf.constant([0, 1]), tf.constant([1.0, 1.0])
LIST = {"features": [0], "forms": [0], "sample_counts": [2], "names": ["f"], "table_names": ["t"],
        "rows": [20], "combiners": [0], "ids": [INTS], "bounds": [], "weights": [], "N": 1}
LOOKUP = {"features": [0], "sample_counts": [2], "names": ["t"], "sample_ids": [INTS],
          "token_ids": [INTS], "gains": [FLOATS]}
UPDATE = {**LOOKUP, "replica": 0, "rate_names": [], "rates": [], "gradients": [tf.zeros([2, 2])]}
TWO = {"ids": [INTS, INTS], "forms": [0, 0], "sample_counts": [2, 2], "names": ["f", "g"]}
MANY = {"sample_ids": [INTS] * 2, "token_ids": [INTS] * 2, "gains": [FLOATS] * 2}
BAD: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    *(("embeng_list_entries", LIST, changes) for changes in (
        {"features": [-1]}, {"features": [1]}, {"features": [0, 0]}, {"forms": [1]}, {"forms": [2]},
        {"forms": [3], "bounds": [INTS]}, {"forms": [4]}, {"forms": [7]}, {"forms": [16]},
        {"forms": [8]}, {"forms": [32]}, {"sample_counts": [-1]}, {"sample_counts": [2**31]}, {"sample_counts": [3]},
        {"sample_counts": [2, 2]}, {"names": []}, {"names": ["f", "g"]}, {"table_names": []},
        {"table_names": ["t", "u"]}, {"rows": [0]}, {"rows": [2**31 + 1]}, {"rows": [20, 20]},
        {"combiners": [3]}, {"combiners": [-1]}, {"combiners": []}, {"N": 2}, {"N": 0},
        {**TWO, "features": [0, 2]}, {**TWO, "features": [1, 0]}, {**TWO, "features": [0, 1]},
        {**TWO, "features": [0, 0], "sample_counts": [2**30, 2**30]},
        {"weights": [FLOATS]}, {"ids": []})),
    *(("embeng_lookup_entries", LOOKUP, changes) for changes in (
        {"features": [-1]}, {"features": [1]}, {"features": [2**40]}, {"features": [0, 0]},
        {"sample_counts": [-1]}, {"sample_counts": [0]}, {"sample_counts": [1, 1]},
        {"names": []}, {"names": ["t", "u"]}, MANY, {"sample_ids": [INTS] * 2},
        {**MANY, "features": [0, 0], "names": ["t", "u"], "sample_counts": [2, 2]},
        {"handle": 0})),
    *(("embeng_update_entries", UPDATE, changes) for changes in (
        {"replica": -1}, {"replica": 1}, {"replica": 2**33}, {"rate_names": ["rate"]},
        {"rates": [1.0]}, {"rates": [1.0], "rate_names": ["rate"]},
        {"rates": [[1.0, 2.0]], "rate_names": ["rate"]}, {"gradients": [tf.zeros([2, 3])]},
        {"gradients": [tf.zeros([0, 2])]}, {"gradients": [tf.zeros([2, 2])] * 2},
        {"handle": -1})),
]


@pytest.mark.parametrize("case", range(len(BAD)))
def test_operators_that_are_wrong(case: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """An operator with other attributes or inputs is an error, and no crash; rows stay."""
    monkeypatch.delenv("EMBENG_TF_OPS", raising=False)
    name, good, changes = BAD[case]
    operators = ops._load_operators()
    assert not isinstance(operators, str)
    token = _ops.Token()
    start = embeng.initializers.constant(1.0)
    table = embeng.Table("t", 20, 2, "sum", embeng.optimizers.sgd(1.0), start)
    with embeng.Engine([table]) as engine:
        given = {"handle": engine.handle, "token": token.handle, **good}
        operators[name](**given)
        before = engine["t"].read()
        with pytest.raises((tf.errors.OpError, ValueError, TypeError)):
            operators[name](**{**given, **changes})
        numpy.testing.assert_array_equal(engine["t"].read(), before)

# SPDX-License-Identifier: MIT
"""Steps of TPUEmbedding as operators of the C API: values, waits, and what they refuse."""
import signal
import threading
import time
from typing import Any

import numpy
import pytest
from test_tf_session import make_session

import embeng
import embeng.tf as tf
from embeng.tf import _ops, _session, ops
from embeng.tf._features import Form

api = tf.tpu.experimental.embedding
ROWS, DIM = 20, 2
STEPS = {"EmbengEnqueue", "EmbengDequeue", "EmbengApplyGradients"}


def make_embedding(strategy: Any, optimizer: Any = None, **feature: Any) -> Any:
    """Make a TPUEmbedding of one feature, whose row r is [r + 1, r + 1]."""
    with strategy.scope():
        table = api.TableConfig(ROWS, DIM, api.RowIdInitializer(1), combiner="sum", name="t")
        return api.TPUEmbedding(api.FeatureConfig(table, name="a", **feature),
                                optimizer or api.SGD(0.5))


def rows_of(embedding: Any) -> Any:
    """Return the first column of the table."""
    embedding._retrieve_variables()
    return embedding._variables["t"]["parameters"].variables[0].numpy()[:, 0]


def types_of(graph: Any) -> set[str]:
    """Return the types of the ops of a graph and of all functions that it calls."""
    definition = graph.as_graph_def()
    functions = definition.library.function
    return {node.op for node in definition.node} | {
        node.op for function in functions for node in function.node_def}


@pytest.mark.sample
@pytest.mark.parametrize("replicas", [1, 2])
def test_a_step_has_no_python(make_strategy: Any, replicas: int) -> None:
    """A loop of steps is made of the three operators, and trains all replicas' rows."""
    strategy = make_strategy(replicas)
    embedding = make_embedding(strategy)
    ids = strategy.experimental_distribute_values_from_function(
        lambda context: tf.constant([3 + context.replica_id_in_sync_group, 9]))
    embedding.build(2)

    @tf.function
    def train(steps: Any) -> None:
        for _ in tf.range(steps):
            embedding.enqueue(ids)
            strategy.run(lambda: embedding.apply_gradients(tf.ones_like(embedding.dequeue())))

    train(tf.constant(5))
    found = types_of(train.get_concrete_function(tf.constant(5)).graph)
    assert STEPS <= found
    assert not {name for name in found if "PyFunc" in name}
    moved = numpy.arange(1, ROWS + 1) - rows_of(embedding)
    expected = numpy.zeros(ROWS)
    expected[3:3 + replicas] = 2.5
    expected[9] = 2.5 * replicas
    numpy.testing.assert_array_equal(moved, expected)


RAGGED = tf.RaggedTensor.from_row_lengths([4, 5, 6, 7], [3, 0, 1])
WEIGHTS = tf.RaggedTensor.from_row_lengths([0.5, 2.0, 3.0, 0.25], [3, 0, 1])
CUBE = tf.SparseTensor([[0, 0, 0], [0, 1, 0], [0, 1, 1]], tf.constant([1, 2, 3], tf.int64),
                       [1, 2, 3])


@pytest.mark.parametrize(("ids", "weights", "feature", "expected"), [
    (tf.constant([1, 2, 3]), None, {}, [2, 3, 4]),
    (tf.constant([[1], [2]], tf.int64), None, {}, [2, 3]),
    (RAGGED, None, {}, [18, 0, 8]),
    (RAGGED, WEIGHTS, {}, [35.5, 0, 2]),
    (RAGGED.to_sparse(), None, {}, [18, 0, 8]),
    (RAGGED.to_sparse(), WEIGHTS.to_sparse(), {}, [35.5, 0, 2]),
    (tf.cast(RAGGED, tf.int32), None, {}, [18, 0, 8]),
    (tf.RaggedTensor.from_row_splits([4, 5], tf.constant([0, 1, 2], tf.int32)), None, {}, [5, 6]),
    (RAGGED, None, {"max_sequence_length": 2}, [[5, 6], [0, 0], [8, 0]]),
    (RAGGED.to_sparse(), None, {"max_sequence_length": 2}, [[5, 6], [0, 0], [8, 0]]),
    (RAGGED, None, {"max_sequence_length": 1}, [[5], [0], [8]]),
    (RAGGED, None, {"output_shape": [3, 2]}, [[5, 6], [0, 0], [8, 0]]),
    (RAGGED, WEIGHTS, {"output_shape": [3, 2]}, [[2.5, 12], [0, 0], [2, 0]]),
    (RAGGED.to_sparse(), WEIGHTS.to_sparse(), {"output_shape": [3, 2]},
     [[2.5, 12], [0, 0], [2, 0]]),
    (CUBE, None, {"output_shape": [1, 2]}, [[2, 7]]),
    (tf.constant([[[1], [2]], [[3], [4]]]), None, {"output_shape": [2, 2]}, [[2, 3], [4, 5]]),
], ids=str)
@pytest.mark.parametrize("graph", [False, True])
def test_forms(make_strategy: Any, ids: Any, weights: Any, feature: Any, expected: Any,
               graph: bool) -> None:
    """Each form of an input has the same activations by a method and by a kernel."""
    strategy = make_strategy(1)
    embedding = make_embedding(strategy, **feature)
    embedding.build(ids.shape)

    def step() -> Any:
        embedding.enqueue(ids, weights, training=False)
        return embedding.dequeue()

    found = (tf.function(step) if graph else step)()
    wanted = numpy.asarray(expected, numpy.float32)
    numpy.testing.assert_array_equal(found, numpy.stack([wanted] * DIM, -1))


@pytest.mark.parametrize(("ids", "words"), [
    (tf.SparseTensor([[1, 0], [0, 0]], tf.constant([1, 2]), [2, 3]),
     "InvalidError: feature a: the indices of its sparse tensor are not in order; call "),
    (tf.SparseTensor([[7, 0]], tf.constant([1]), [2, 3]),
     r"OutOfRangeError: feature a: indices\[0\]\[0\] is 7, and the shape has 2 there"),
    (tf.RaggedTensor.from_row_splits(tf.constant([1, 2]), [0, 3, 2], validate=False),
     r"InvalidError: feature a: splits\[1\] is 3"),
    (tf.RaggedTensor.from_row_splits(tf.constant([1, 2]), [0, 1, 1], validate=False),
     r"InvalidError: feature a: splits\[2\] is 1; splits .* end at the 2 ids"),
    (tf.ragged.constant([[1], [ROWS]], dtype=tf.int64), "OutOfRangeError: feature a, sample 3: id"),
])
def test_sequences_that_are_wrong(make_strategy: Any, ids: Any, words: str) -> None:
    """A kernel refuses a sequence by the sentence of the method, and the next step is the first."""
    strategy = make_strategy(1)
    embedding = make_embedding(strategy, max_sequence_length=3)
    embedding.build(tf.TensorShape([2, 3]))
    with pytest.raises(tf.errors.InvalidArgumentError, match=words):
        tf.function(lambda: embedding.enqueue(ids))()
    with pytest.raises(embeng.EmbengError, match=words.split(": ", 1)[1]):
        embedding.enqueue(ids)
    assert embedding.discard() == 0


@pytest.mark.parametrize("count", [0, 2, 4])
def test_weights_that_are_too_many_or_few(make_strategy: Any, count: int, way: str) -> None:
    """Weights of another number than ids are refused by a method and by an op of a graph."""
    strategy = make_strategy(1)
    embedding = make_embedding(strategy)
    embedding.build(tf.TensorShape([3, None]))
    ids = tf.ragged.constant([[1], [2], [3]], dtype=tf.int64)
    splits = [0, *[min(count, 1)] * 2, count]
    weights = tf.RaggedTensor.from_row_splits(tf.ones([count]), splits)
    words = f"feature a: weights: there are {count}, for 3 ids"
    with pytest.raises(embeng.InvalidError, match=words):
        embedding.enqueue(ids, weights)
    with pytest.raises(tf.errors.InvalidArgumentError, match="InvalidError: " + words):
        tf.function(lambda: embedding.enqueue(ids, weights))()
    assert embedding.discard() == 0


def test_a_tape_around_a_loop(make_strategy: Any, way: str) -> None:
    """A tape around a loop of steps sees the other variables, and no gradient of dequeue()."""
    strategy = make_strategy(1)
    embedding = make_embedding(strategy)
    embedding.build(2)
    weight = tf.Variable(2.0)

    @tf.function
    def train() -> Any:
        with tf.GradientTape() as tape:
            loss = 0.0
            for _ in tf.range(3):
                embedding.enqueue(tf.constant([1, 2]), training=False)
                loss += weight * tf.reduce_sum(embedding.dequeue())
        return tape.gradient(loss, weight)

    assert train().numpy() == 3 * 2 * (2 + 3)


def test_rates_are_tensors(make_strategy: Any, way: str) -> None:
    """A rate is computed in the graph, in each step of a loop."""
    strategy = make_strategy(1)
    count = tf.Variable(0.0)
    embedding = make_embedding(strategy, api.SGD(lambda: count / 4))
    embedding.build(1)

    @tf.function
    def train() -> None:
        for _ in tf.range(3):
            count.assign_add(1.0)
            embedding.enqueue(tf.constant([5]))
            embedding.apply_gradients(tf.ones_like(embedding.dequeue()))

    train()
    assert 6 - rows_of(embedding)[5] == (1 + 2 + 3) / 4


def test_modes_of_a_second_trace(make_strategy: Any, way: str) -> None:
    """Each trace of a function has a mode of its own, also when the first one trains."""
    strategy = make_strategy(1)
    embedding = make_embedding(strategy)
    embedding.build(1)

    @tf.function
    def step(train: Any) -> Any:
        embedding.enqueue(tf.constant([4]), name="x")
        found = embedding.dequeue(name="x")
        if train:
            embedding.apply_gradients(tf.ones_like(found), name="x")
        return found[0, 0]

    assert [float(step(train)) for train in (True, False, False, True, False)] == [
        5, 4.5, 4.5, 4.5, 4]
    session = embedding._open()
    with pytest.raises(embeng.InvalidError, match="mode 1 cannot be set"):
        session.set_mode(1, False)
    with pytest.raises(embeng.InvalidError, match="has no mode 99"):
        session.enqueue([0], [[Form("a", "dense", False, 1)]], [numpy.array([1])], 99)


def test_tables_that_are_gone(make_strategy: Any, way: str) -> None:
    """A graph whose engine was closed says so; one that is traced later is told by embeng."""
    strategy = make_strategy(1)
    embedding = make_embedding(strategy)
    embedding.build(1)
    step = tf.function(lambda: embedding.enqueue(tf.constant([7])))
    step()
    tf.tpu.experimental.shutdown_tpu_system()
    with pytest.raises(tf.errors.InvalidArgumentError, match="engine"):
        step()
    with pytest.raises(RuntimeError, match="make a new TPUEmbedding"):
        tf.function(lambda: embedding.enqueue(tf.constant([7])), autograph=False)()


# -- waits -------------------------------------------------------------------------------------

def fill(session: Any) -> int:
    """Enqueue training batches until the engine takes none; return how many it took."""
    taken = 0
    with pytest.raises(embeng.StepOrderError, match="takes no further batch now"):
        while True:
            session.enqueue([0], [[Form("f", "dense", False, 1)]], [numpy.array([1])], True)
            taken += 1
    return taken


def start(work: Any) -> tuple[threading.Thread, list[Any]]:
    """Run a function in a thread, and note what it returned or raised."""
    results: list[Any] = []

    def run() -> None:
        try:
            results.append(work())
        except Exception as error:
            results.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, results


def enqueue_in_graph(session: Any) -> Any:
    """Make a function of TensorFlow that enqueues a batch of one id."""
    token = _ops.Token()
    return tf.function(lambda: _ops.enqueue(
        session, token, [0], [[Form("f", "dense", False, 1)]], [tf.constant([1])], True))


def test_another_thread_ends_a_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that waits for a place gets it when another thread completes a step."""
    session = make_session(1, False)
    with monkeypatch.context() as context:
        context.setattr(_session, "_SECONDS", 0.02)
        taken = fill(session)
    thread, results = start(enqueue_in_graph(session))
    thread.join(0.3)
    assert thread.is_alive()
    session.apply_gradients(0, {"f": session.dequeue(0)[0]}, {})
    thread.join(60)
    assert results == [None]
    for _ in range(taken):
        session.apply_gradients(0, {"f": numpy.zeros_like(session.dequeue(0)[0])}, {})
    assert session.discard_all() == 0
    assert session.engine["t"].read()[1].tolist() == [0.5, 0.5]
    session.close()


def test_waits_have_an_end(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    """A graph that enqueues too much gets an error that says so, and the engine goes on."""
    monkeypatch.setattr(_session, "_SECONDS", 0.05)
    session = make_session(1, False)
    fill(session)
    before = time.monotonic()
    with pytest.raises(tf.errors.InvalidArgumentError, match="StepOrderError: replica 0: the engi"):
        enqueue_in_graph(session)()
    assert time.monotonic() - before < 5
    assert session.discard_all() > 0
    session.close()


def test_closing_ends_a_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that is closed while a kernel waits gives it an error."""
    session = make_session(1, False)
    with monkeypatch.context() as context:
        context.setattr(_session, "_SECONDS", 0.02)
        fill(session)
    run = enqueue_in_graph(session)
    run.get_concrete_function()
    thread, results = start(run)
    thread.join(0.3)
    assert thread.is_alive()
    session.close()
    thread.join(60)
    assert isinstance(results[0], tf.errors.InvalidArgumentError)
    # The second sentence is that of a thread that had not come to its wait yet.
    assert ("DeviceError: the engine was closed during the call" in str(results[0]) or
            "DeviceError: there is no open engine with the handle" in str(results[0]))
    with pytest.raises(ValueError, match="the engine is closed"):
        session.dequeue(0)


def test_a_signal_ends_a_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal's handler runs while a method waits, and its exception ends the wait."""
    session = make_session(1, False)
    with monkeypatch.context() as context:
        context.setattr(_session, "_SECONDS", 0.02)
        fill(session)

    def interrupt(number: int, frame: Any) -> None:
        raise LookupError("interrupted")

    old = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    before = time.monotonic()
    try:
        with pytest.raises(LookupError, match="interrupted"):
            session.enqueue([0], [[Form("f", "dense", False, 1)]], [numpy.array([1])], True)
    finally:
        signal.signal(signal.SIGALRM, old)
    assert time.monotonic() - before < 5
    assert session.discard_all() > 0
    session.close()


def test_threads_of_one_session() -> None:
    """Threads that look up through one session at once get the rows of some batch each."""
    session = make_session(2, False)
    token = _ops.Token()
    form = Form("f", "dense", False, 3)

    @tf.function
    def look() -> Any:
        _ops.enqueue(session, token, [0, 1], [[form]] * 2, [tf.constant([1, 2, 3])] * 2, False)
        return [_ops.dequeue(session, token, replica, [[3, 2]])[0] for replica in (0, 1)]

    look()

    def work() -> int:
        for _ in range(50):
            first, second = look()
            assert (first.numpy() == 1).all() and (second.numpy() == 1).all()
            session.enqueue([0], [[form]], [numpy.array([1, 2, 3])], False)
            assert (session.dequeue(0)[0] == 1).all()
        return 50

    started = [start(work) for _ in range(4)]
    for thread, _ in started:
        thread.join()
    assert [results for _, results in started] == [[50]] * 4
    assert session.discard_all() == 0
    session.close()


# -- operators that were put together wrongly ----------------------------------------------------

GOOD: dict[str, dict[str, Any]] = {
    "embeng_enqueue": {"mode": 1, "replicas": [0], "features": [0], "forms": [0], "samples": [1],
                       "ids": [tf.constant([1])], "bounds": [], "weights": []},
    "embeng_dequeue": {"replica": 0, "ranks": [2], "dims": [1, 2], "N": 1},
    "embeng_apply_gradients": {"replica": 0, "features": [0], "rate_names": [],
                               "gradients": [tf.zeros([1, 2])], "rates": []},
}
BAD: dict[str, list[dict[str, Any]]] = {
    "embeng_enqueue": [
        {"mode": -1}, {"mode": 2**40}, {"replicas": [1]}, {"replicas": [-1]},
        {"replicas": [2**33]}, {"replicas": [0, 0]}, {"features": [-1]}, {"features": [1]},
        {"features": [2**40]}, {"features": [0, 0]}, {"forms": [3]}, {"forms": [32]}, {"forms": [64]},
        {"forms": [8]}, {"forms": [2]}, {"forms": [4]}, {"forms": [-1]}, {"samples": [2]},
        {"samples": [-1]}, {"samples": [2**62]}, {"samples": [1, 1]},
        {"forms": [18], "samples": [2**61], "bounds": [tf.constant([0, 1])]},
        {"ids": [tf.constant([1])] * 2}, {"timeout_ms": 2**62}, {"handle": 2**50},
        {"replicas": [0, 0], "features": [0, 0], "forms": [0, 0], "samples": [1, 1],
         "ids": [tf.constant([1])] * 2}],
    "embeng_dequeue": [
        {"replica": 1}, {"replica": -1}, {"ranks": [1]}, {"ranks": [10]}, {"ranks": [-1]},
        {"dims": [1]}, {"dims": [-1, 2]}, {"dims": [2**40, 2**40]}, {"N": 2}, {"handle": 0},
        {"dims": [2, 2]}, {"ranks": [1, 1], "dims": [2, 2], "N": 2}],
    "embeng_apply_gradients": [
        {"replica": 1}, {"features": [1]}, {"features": [-1]}, {"features": []},
        {"gradients": []}, {"gradients": [tf.zeros([1, 3])]}, {"gradients": [tf.zeros([2, 2])]},
        {"rate_names": ["rate"]}, {"rates": [1.0]}, {"rates": [1.0], "rate_names": ["rate"]},
        {"rates": [[1.0, 2.0]], "rate_names": ["rate"]}, {"handle": -1}],
}
WRONG = [(name, changes) for name, found in BAD.items() for changes in found]


@pytest.mark.parametrize("case", range(len(WRONG)))
def test_operators_that_are_wrong(case: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """An operator with other attributes or inputs is an error, and no crash; steps go on."""
    monkeypatch.delenv("EMBENG_TF_OPS", raising=False)
    name, changes = WRONG[case]
    session = make_session(1, False)
    operators = ops._load_operators()
    assert not isinstance(operators, str)
    token = _ops.Token()
    if name != "embeng_enqueue":
        session.enqueue([0], [[Form("f", "dense", False, 1)]], [numpy.array([1])], True)
    if name == "embeng_apply_gradients":
        session.dequeue(0)
    given = {"handle": session.engine.handle, "timeout_ms": 10, "token": token.handle,
             **GOOD[name], **changes}
    with pytest.raises((tf.errors.OpError, ValueError, TypeError)):
        operators[name](**given)
    session.discard_all()
    session.enqueue([0], [[Form("f", "dense", False, 1)]], [numpy.array([1])], True)
    assert session.dequeue(0)[0].tolist() == [[1, 1]]
    session.apply_gradients(0, {}, {})
    session.close()

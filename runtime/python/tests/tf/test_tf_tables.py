# SPDX-License-Identifier: MIT
"""Variables that show tables, and checkpoints between TensorFlow's classes, ours and engines."""
from pathlib import Path
from typing import Any

import numpy
import pytest
import tensorflow

import embeng
import embeng.tf as tf
from embeng.tf import checkpoint

api = tf.tpu.experimental.embedding
ROWS, DIM = 6, 4
OPTIMIZERS = {
    "sgd": (lambda: api.SGD(0.1), embeng.optimizers.sgd(0.1)),
    "adagrad": (lambda: api.Adagrad(0.1), embeng.optimizers.adagrad(0.1)),
    "adagrad_momentum": (
        lambda: api.AdagradMomentum(0.1, momentum=0.9, epsilon=0.1),
        embeng.optimizers.adagrad_momentum(0.1, momentum=0.9, epsilon=0.1)),
    "ftrl": (lambda: api.FTRL(0.1), embeng.optimizers.ftrl(0.1)),
    "adam": (lambda: api.Adam(0.1), embeng.optimizers.adam(0.1)),
}


def make_features(optimizer: Any, seed: int = 3) -> Any:
    """Configure one table named user that starts with numbers of a seed."""
    values = numpy.random.default_rng(seed).standard_normal((ROWS, DIM))
    table = api.TableConfig(ROWS, DIM, tf.constant_initializer(values), optimizer, name="user")
    return {"f": api.FeatureConfig(table, name="f")}


def make_ours(strategy: Any, optimizer: Any, seed: int = 3, build: bool = True) -> Any:
    """Make a TPUEmbedding of the engine."""
    with strategy.scope():
        embedding = api.TPUEmbedding(make_features(optimizer, seed), optimizer)
        if build:
            embedding.build(2)
    return embedding


def make_theirs(optimizer: Any, seed: int = 4) -> Any:
    """Make TensorFlow's own TPUEmbedding, as it is on a processor."""
    embedding = tensorflow.tpu.experimental.embedding.TPUEmbedding(
        make_features(optimizer, seed), optimizer)
    embedding.build()
    return embedding


def train(embedding: Any, steps: int = 2) -> None:
    """Train on the rows 1 and 3."""
    for _ in range(steps):
        embedding.enqueue({"f": tf.constant([1, 3])})
        embedding.apply_gradients(embedding.dequeue())


def arrays_of(embedding: Any) -> dict[str, Any]:
    """Return copies of the parameters and slots."""
    found = {}
    for slot, variable in embedding._variables["user"].items():
        shards = getattr(variable, "variables", None)
        found[slot] = (shards[0] if shards else variable).numpy()
    return found


def assert_equal(first: dict[str, Any], second: dict[str, Any]) -> None:
    """Compare parameters and slots to the bit."""
    assert first.keys() == second.keys()
    for slot, values in first.items():
        assert (values == second[slot]).all(), slot


@pytest.mark.sample
@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_checkpoints_of_tensorflow(make_strategy: Any, kind: str, tmp_path: Path) -> None:
    """Parameters and slots go from ours to TensorFlow's class, to another one of ours, and back."""
    make, _ = OPTIMIZERS[kind]
    ours = make_ours(make_strategy(1), make())
    train(ours)
    trained = arrays_of(ours)
    saved = tf.train.Checkpoint(model=ours).save(str(tmp_path / "ours"))
    theirs = make_theirs(make())
    tf.train.Checkpoint(model=theirs).restore(saved).assert_consumed()
    assert_equal(trained, arrays_of(theirs))
    theirs._variables["user"]["parameters"].assign_add(numpy.ones((ROWS, DIM)))
    changed = arrays_of(theirs)
    saved = tf.train.Checkpoint(model=theirs).save(str(tmp_path / "theirs"))
    again = make_ours(make_strategy(1), make(), seed=5)
    tf.train.Checkpoint(model=again).restore(saved).assert_consumed()
    assert_equal(changed, arrays_of(again))
    engine = checkpoint.engine_of(again)
    assert (engine["user"].read() == changed["parameters"]).all()
    again.enqueue({"f": tf.constant([2, 4])}, training=False)
    assert (again.dequeue()["f"].numpy() == changed["parameters"][[2, 4]]).all()


@pytest.mark.sample
@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_checkpoints_of_engines(make_strategy: Any, kind: str, tmp_path: Path) -> None:
    """An engine goes on from TensorFlow's checkpoint with the same bits, and the reverse."""
    make, optimizer = OPTIMIZERS[kind]
    ours = make_ours(make_strategy(1), make())
    train(ours)
    saved = tf.train.Checkpoint(deep=tf.train.Checkpoint(model=ours)).save(str(tmp_path / "a"))
    assert set(checkpoint.list_tables(saved)["user"]) == set(arrays_of(ours))
    with embeng.Engine([embeng.Table("user", ROWS, DIM, optimizer=optimizer)]) as engine:
        assert checkpoint.load(engine, tmp_path) == ["user"]
        batch = {"user": embeng.Ragged([1, 3])}
        engine.update(batch, engine.lookup(batch))
        path = checkpoint.save(engine, tmp_path / "engine", root="model")
        train(ours, 1)
        trained = arrays_of(ours)
        assert (engine["user"].read() == trained["parameters"]).all()
    theirs = make_theirs(make())
    tf.train.Checkpoint(model=theirs).read(path).assert_consumed()
    assert_equal(trained, arrays_of(theirs))


def test_what_does_not_fit_is_refused(make_strategy: Any, tmp_path: Path) -> None:
    """Wrong paths, names, shapes and slots are named, and no row is written."""
    with pytest.raises(embeng.CheckpointNotFoundError, match="no checkpoint of TensorFlow"):
        checkpoint.list_tables(tmp_path / "none")
    saved = tf.train.Checkpoint(model=make_theirs(api.SGD(0.1))).save(str(tmp_path / "a"))
    with embeng.Engine([embeng.Table("user", ROWS, DIM + 1), embeng.Table("item", ROWS, DIM),
                        embeng.Table("adam", ROWS, DIM,
                                     optimizer=embeng.optimizers.adam(0.1))]) as engine:
        before = engine["item"].read()
        shapes = r"shape \(6, 4\), and the table has \(6, 5\)"
        with pytest.raises(embeng.InvalidError, match=shapes):
            checkpoint.load(engine, saved)
        with pytest.raises(embeng.UnknownNameError, match="no table 'x'; it has user"):
            checkpoint.load(engine, saved, names={"item": "x"})
        with pytest.raises(embeng.UnknownNameError, match="no slot 'momenta' of table user"):
            checkpoint.load(engine, saved, names={"item": "user", "adam": "user"})
        assert (engine["item"].read() == before).all()
        checkpoint.load(engine, saved, names={"item": "user", "adam": "user"}, slots=False, step=7)
        assert engine.step == 7
        assert (engine["item"].read() == engine["adam"].read()).all()
    with embeng.Engine([embeng.Table("other", 2, 2)]) as engine, \
            pytest.raises(embeng.UnknownNameError, match="which has user"):
        checkpoint.load(engine, saved)


def open_pair(kind: str = "adam") -> embeng.Engine:
    """Open an engine of two tables."""
    optimizer = getattr(embeng.optimizers, kind)(0.1)
    return embeng.Engine([embeng.Table("a", 30, 4, "sum", optimizer),
                          embeng.Table("b", 17, 8, "sum", optimizer)], cores=1)


def read_all(engine: embeng.Engine) -> Any:
    """Return the rows and slots of all tables."""
    return [table.read(slot=slot).tolist() for table in engine for slot in (None, *table.slots)]


@pytest.mark.parametrize("kind", ["rowwise_adagrad", "partial_rowwise_adam", "sgd"])
def test_slots_of_one_column_come_back(kind: str, tmp_path: Path) -> None:
    with open_pair(kind) as engine, open_pair(kind) as other:
        for _ in range(2):
            engine.update({"a": [1, 29], "b": [3]}, {"a": numpy.ones((2, 4), numpy.float32),
                                                     "b": numpy.ones((1, 8), numpy.float32)})
        path = checkpoint.save(engine, tmp_path / "saved")
        assert checkpoint.load(other, path) == ["a", "b"]
        assert read_all(other) == read_all(engine)


def damage(path: str, what: str) -> None:
    """Damage the file with the numbers of a checkpoint."""
    data = Path(f"{path}.data-00000-of-00001")
    content = bytearray(data.read_bytes())
    if what == "gone":
        data.unlink()
    elif what == "flipped":
        content[-1] ^= 1  # the rows of the last variable
        content[len(content) // 2] ^= 1
        data.write_bytes(content)
    else:
        data.write_bytes(content[:len(content) // 2])


@pytest.mark.parametrize("what", ["gone", "flipped", "truncated"])
def test_a_damaged_checkpoint_changes_nothing(what: str, tmp_path: Path) -> None:
    with open_pair() as engine:
        path = checkpoint.save(engine, tmp_path / "saved")
    damage(path, what)
    with open_pair() as other:
        before = read_all(other)
        with pytest.raises(embeng.CheckpointError, match="saved: .* cannot be read: "):
            checkpoint.load(other, path)
        assert read_all(other) == before


def write_variables(path: Path, **tables: Any) -> str:
    """Write a checkpoint with the edges of a TPUEmbedding and these variables."""
    class Root(tensorflow.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self._variables = {name: {slot: tensorflow.Variable(value)
                                      for slot, value in slots.items()}
                               for name, slots in tables.items()}

    return str(tensorflow.train.Checkpoint(embedding=Root()).write(str(path)))


def test_numbers_that_tables_cannot_have_change_nothing(tmp_path: Path) -> None:
    def slots(rows: Any, **others: Any) -> Any:
        return {"parameters": rows, "momenta": rows, "velocities": rows, **others}

    first, second = numpy.ones((30, 4)), numpy.ones((17, 8), numpy.float32)
    texts = numpy.full((17, 8), "x")
    with open_pair() as engine:
        before = read_all(engine)
        for given, kind, text in (
                (slots(second * numpy.nan), embeng.OutOfRangeError, "for table b: row 0, column 0"),
                (slots(second, velocities=-second), embeng.OutOfRangeError, "slot velocities of"),
                (slots(second, momenta=texts), embeng.InvalidError, "its dtype is string")):
            path = write_variables(tmp_path / "given", a=slots(first), b=given)
            with pytest.raises(kind, match=text):
                checkpoint.load(engine, path)
            assert read_all(engine) == before
        path = write_variables(tmp_path / "given", a=slots(first), b=slots(second))
        for step, refused in ((-1, embeng.OutOfRangeError), (1.5, TypeError)):
            with pytest.raises(refused):
                checkpoint.load(engine, path, step=step)  # type: ignore[arg-type]
        with pytest.raises(embeng.InvalidError, match="names are list"):
            checkpoint.load(engine, path, names=["a"])  # type: ignore[arg-type]
        assert read_all(engine) == before
        checkpoint.load(engine, path, step=3)
        assert (engine["a"].read() == 1).all() and engine.step == 3


def test_a_checkpoint_of_a_saver_is_told(tmp_path: Path) -> None:
    old = tensorflow.compat.v1
    with tensorflow.Graph().as_default(), old.Session() as session:
        variable = old.get_variable("a", initializer=numpy.ones((30, 4), numpy.float32))
        session.run(variable.initializer)
        old.train.Saver().save(session, str(tmp_path / "old"))
    with pytest.raises(embeng.CheckpointError, match="it has no graph of objects"):
        checkpoint.list_tables(tmp_path / "old")


def test_variables_are_live(make_strategy: Any) -> None:
    """A variable shows an update at once, has no copy, and writes the table when it is assigned."""
    ours = make_ours(make_strategy(2), api.SGD(0.5))
    table = next(iter(ours.embedding_tables))
    variable = ours.embedding_tables[table]
    engine = checkpoint.engine_of(ours)
    engine.update({"f": embeng.Ragged([1])}, {"f": numpy.ones((1, DIM), numpy.float32)}, replica=0)
    engine.update({"f": embeng.Ragged([1])}, {"f": numpy.ones((1, DIM), numpy.float32)}, replica=1)
    before = variable.numpy()
    assert (ours.embedding_tables[table].numpy() == engine["user"].read()).all()
    variable.assign(variable * 2)
    assert (engine["user"].read() == ours.embedding_tables[table].numpy()).all()
    assert numpy.allclose(engine["user"].read()[2:], before[2:] * 2)
    engine["user"][0] = numpy.full(DIM, 9)
    assert variable.numpy()[0, 0] == 9
    assert not variable.trainable and type(variable).__name__ == "LiveVariable"


def test_restore_before_build(make_strategy: Any, tmp_path: Path) -> None:
    """A checkpoint that is restored before the tables are there starts them."""
    ours = make_ours(make_strategy(1), api.Adam(0.1))
    train(ours)
    trained = arrays_of(ours)
    saved = tf.train.Checkpoint(model=ours).save(str(tmp_path / "a"))
    later = make_ours(make_strategy(1), api.Adam(0.1), seed=9, build=False)
    tf.train.Checkpoint(model=later).restore(saved)
    later.enqueue({"f": tf.constant([1, 3])}, training=False)
    assert (later.dequeue()["f"].numpy() == trained["parameters"][[1, 3]]).all()
    assert_equal(trained, arrays_of(later))


def test_one_system(make_strategy: Any) -> None:
    """One TPUEmbedding is built at a time; what was initialized away says so; sharing works."""
    strategy = make_strategy(1)
    first = make_ours(strategy, api.SGD(0.1))
    with pytest.raises(RuntimeError, match="already initialized"):
        make_ours(strategy, api.SGD(0.1))
    with strategy.scope():
        shared = api.TPUEmbedding(make_features(api.SGD(0.1)), api.SGD(0.1),
                                  initialize_tpu_embedding=False)
        shared.build(2)
    train(shared)
    assert (arrays_of(shared)["parameters"] == arrays_of(first)["parameters"]).all()
    tf.tpu.experimental.initialize_tpu_system()
    with pytest.raises(RuntimeError, match="initialized again"):
        first.enqueue({"f": tf.constant([1, 2])})
    with pytest.raises(RuntimeError, match="no tables are loaded"):
        first._retrieve_variables()
    with strategy.scope(), pytest.raises(RuntimeError, match="no other TPUEmbedding"):
        api.TPUEmbedding(make_features(api.SGD(0.1)), api.SGD(0.1),
                         initialize_tpu_embedding=False).build(2)


def test_export(make_strategy: Any, tmp_path: Path) -> None:
    """A SavedModel of a model that was trained looks up by TensorFlow alone."""
    ours = make_ours(make_strategy(1), api.SGD(0.1))
    train(ours)
    module = tf.Module()
    module.embedding = ours
    tables, features = ours.embedding_tables, ours._feature_config

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int64)])
    def serve(ids: Any) -> Any:
        return api.serving_embedding_lookup({"f": ids}, None, tables, features)

    module.serve = serve
    tf.saved_model.save(module, str(tmp_path), signatures={"serving_default": serve})
    loaded = tensorflow.saved_model.load(str(tmp_path))
    found = loaded.serve(tf.constant([1, 3], tf.int64))["f"]
    assert (found.numpy() == arrays_of(ours)["parameters"][[1, 3]]).all()
    serving = api.TPUEmbeddingForServing(make_features(None, seed=8))
    serving.build()
    path = tf.train.Checkpoint(model=ours).save(str(tmp_path / "c"))
    tf.train.Checkpoint(model=serving).restore(path)
    assert (serving({"f": tf.constant([1, 3])})["f"].numpy() == found.numpy()).all()


@pytest.mark.sample
def test_same_seed_same_bits(make_strategy: Any) -> None:
    """An EngineInitializer has the bits of an engine of numpy, and makes no tensor of them."""
    start = embeng.initializers.default(seed=42)
    with make_strategy(2).scope():
        table = api.TableConfig(ROWS, DIM, tf.EngineInitializer(start), name="bits")
        embedding = api.TPUEmbedding({"f": api.FeatureConfig(table)}, api.Adam(0.1))
        embedding.build(2)
    with embeng.Engine([embeng.Table("bits", ROWS, DIM, initializer=start)]) as engine:
        assert (embedding.embedding_tables[table].numpy() == engine["bits"].read()).all()
    with pytest.raises(embeng.NotSupportedError, match="give variables an initializer"):
        tf.EngineInitializer(start)([2, 2])
    with pytest.raises(embeng.InvalidError):
        tf.EngineInitializer(3)  # type: ignore[arg-type]


def test_slots_of_the_program(make_strategy: Any) -> None:
    """Variables that slot_variable_creation_fn makes are the slots, and start them."""
    made = {}

    def create(table: Any, names: Any, initializers: Any) -> Any:
        for name in names:
            made[name] = tf.Variable(lambda *unused, **named: tf.fill([ROWS, DIM], 0.5),
                                     shape=[ROWS, DIM], dtype=tf.float32, trainable=False)
        return made

    strategy = make_strategy(1)
    with strategy.scope():
        ours = api.TPUEmbedding(make_features(None), api.Adagrad(
            0.1, slot_variable_creation_fn=create))
        ours.build(2)
    engine = checkpoint.engine_of(ours)
    assert (engine["user"].read(slot="accumulators") == 0.5).all()
    train(ours, 1)
    engine.flush()
    shown = made["accumulators"].numpy()
    assert (shown == engine["user"].read(slot="accumulators")).all() and (shown[1] > 0.5).any()
    with make_strategy(1).scope(), pytest.raises(ValueError, match="Unable to extract initializer"):
        api.TPUEmbedding(make_features(None), api.Adagrad(
            0.1, slot_variable_creation_fn=lambda table, names, unused: {
                name: tf.Variable(tf.zeros(table.shape)) for name in names})).build(2)


def test_optimizers_of_the_engine(make_strategy: Any, tmp_path: Path) -> None:
    """An EngineOptimizer trains as the engine does, also with a rate from the graph."""
    rate = tf.Variable(0.25)
    optimizer = tf.EngineOptimizer(embeng.optimizers.rms_prop(0.1, momentum=0.5), lambda: rate)
    ours = make_ours(make_strategy(1), optimizer)
    before = arrays_of(ours)
    assert list(before) == ["ms", "mom", "parameters"]
    train(ours)
    saved = tf.train.Checkpoint(model=ours).save(str(tmp_path / "a"))
    same = embeng.optimizers.rms_prop(0.25, momentum=0.5)
    with embeng.Engine([embeng.Table("user", ROWS, DIM, optimizer=same)]) as engine:
        engine["user"].write(before["parameters"])
        batch = {"user": embeng.Ragged([1, 3])}
        for _ in range(2):
            engine.update(batch, engine.lookup(batch))
        assert (engine["user"].read() == arrays_of(ours)["parameters"]).all()
        assert (engine["user"].read(slot="mom") == arrays_of(ours)["mom"]).all()
        checkpoint.load(engine, saved)
    with pytest.raises(embeng.InvalidError, match="give it as learning_rate"):
        tf.EngineOptimizer(embeng.optimizers.sgd("name"))

# SPDX-License-Identifier: MIT
"""Tables and slots of files that other layers of Keras wrote go on in the engine."""
from pathlib import Path
from typing import Any

import keras
import numpy
import pytest
from keras_peers import DIM, ROWS, make_feature, make_table, read_rows

import embeng
from embeng.keras import DistributedEmbedding, list_keras_tables, load_keras_tables

optimizers = keras.optimizers
OPTIMIZERS = {
    "sgd": lambda: optimizers.SGD(0.1), "momentum": lambda: optimizers.SGD(0.1, momentum=0.9),
    "adagrad": lambda: optimizers.Adagrad(0.1), "adam": lambda: optimizers.Adam(0.01),
    "ftrl": lambda: optimizers.Ftrl(0.1), "adadelta": lambda: optimizers.Adadelta(0.5),
    "rmsprop": lambda: optimizers.RMSprop(0.01, momentum=0.9, centered=True),
    "rmsprop_plain": lambda: optimizers.RMSprop(0.01), "lion": lambda: optimizers.Lion(0.01)}


def make_plain(optimizer: Any) -> Any:
    """Make a model of two tables of one shape and one of another, all variables of Keras."""
    first, second = keras.Input((), dtype="int32"), keras.Input((), dtype="int32")
    kinds = [keras.layers.Embedding(ROWS, DIM, name=name) for name in ("zebra", "ant")]
    joined = keras.layers.Concatenate()([kinds[0](first), kinds[1](second)])
    model = keras.Model([first, second], joined)
    model.compile(optimizer=optimizer, loss="mse")
    return model


def make_ours(optimizer: Any) -> Any:
    tables = [make_table(name, optimizer=optimizer) for name in ("zebra", "ant")]
    layer = DistributedEmbedding([make_feature(t, t.name, None) for t in tables], name="embedding")
    first, second = keras.Input((), dtype="int32"), keras.Input((), dtype="int32")
    model = keras.Model([first, second], keras.layers.Concatenate()(layer([first, second])))
    model.compile(optimizer="sgd", loss="mse")
    return model, layer


def make_batches(rng: numpy.random.Generator) -> Any:
    """Make batches that have each row once, so that Keras' dense optimizers do what ours do."""
    ids = [numpy.concatenate([rng.permutation(ROWS) for _ in range(4)]).astype("int32")
           for _ in range(2)]
    return ids, rng.standard_normal((4 * ROWS, 2 * DIM)).astype("float32")


NAMES = {"zebra": "layers/embedding/vars/0", "ant": "layers/embedding_1/vars/0"}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_goes_on_in_the_engine(name: str, tmp_path: Path,
                                        rng: numpy.random.Generator) -> None:
    ids, labels = make_batches(rng)
    plain = make_plain(OPTIMIZERS[name]())
    plain.fit(ids, labels, batch_size=ROWS, shuffle=False, verbose=0)
    plain.save(tmp_path / "plain.keras")
    assert list_keras_tables(tmp_path / "plain.keras") == dict.fromkeys(
        NAMES.values(), (ROWS, DIM))
    model, layer = make_ours(OPTIMIZERS[name]())
    count = load_keras_tables(layer, tmp_path / "plain.keras", NAMES)
    slots = layer.engine["ant"].slots
    assert count == 2 * (1 if name == "rmsprop_plain" else len(slots))
    assert layer.engine.step == 4
    plain.fit(ids, labels, batch_size=ROWS, shuffle=False, verbose=0)
    model.fit(ids, labels, batch_size=ROWS, shuffle=False, verbose=0)
    for table in NAMES:
        theirs = keras.ops.convert_to_numpy(plain.get_layer(table).embeddings)
        numpy.testing.assert_allclose(read_rows(layer, table), theirs, rtol=2e-5, atol=2e-6)


def test_weights_alone_have_no_slots(tmp_path: Path, rng: numpy.random.Generator) -> None:
    plain = make_plain("adam")
    plain.save_weights(tmp_path / "plain.weights.h5")
    _, layer = make_ours("adam")
    assert load_keras_tables(layer, tmp_path / "plain.weights.h5", NAMES) == 0
    assert (read_rows(layer, "ant") == keras.ops.convert_to_numpy(
        plain.get_layer("ant").embeddings)).all()


def test_what_is_wrong_with_a_file_is_named(tmp_path: Path) -> None:
    make_plain("adam").save(tmp_path / "plain.keras")
    _, layer = make_ours("adam")
    with pytest.raises(Exception, match="no layers/x.*layers/embedding_1/vars/0"):
        load_keras_tables(layer, tmp_path / "plain.keras", {"ant": "layers/x"})
    other = DistributedEmbedding(make_feature(make_table("v", 7)))
    with pytest.raises(Exception, match=r"\[30, 4\] in the file, and table v is \[7, 4\]"):
        load_keras_tables(other, tmp_path / "plain.keras", {"v": NAMES["ant"]})


def test_a_file_that_does_not_fit_changes_nothing(tmp_path: Path,
                                                  rng: numpy.random.Generator) -> None:
    """The second table of a file is wrong, and the first one stays as it was."""
    ids, labels = make_batches(rng)
    plain = make_plain("adam")
    plain.fit(ids, labels, batch_size=ROWS, shuffle=False, verbose=0)
    path = tmp_path / "plain.keras"
    plain.save(path)
    _, layer = make_ours("adagrad")
    before = read_rows(layer, "zebra")
    with pytest.raises(embeng.UnknownNameError, match="no slot 'momenta'"):
        load_keras_tables(layer, path, NAMES)
    with pytest.raises(embeng.CheckpointError, match="no layers;"):
        load_keras_tables(layer, path, {**NAMES, "ant": "layers"}, slots=False)
    plain.get_layer("ant").set_weights([numpy.full((ROWS, DIM), numpy.nan)])
    plain.save(path)
    with pytest.raises(embeng.OutOfRangeError, match="for table ant: row 0, column 0"):
        load_keras_tables(layer, path, NAMES, slots=False)
    assert (read_rows(layer, "zebra") == before).all()
    assert layer.engine.step == 0


@pytest.mark.parametrize("ending", [".keras", ".weights.h5"])
def test_a_damaged_file_is_told(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"plain{ending}"
    plain = make_plain("adam")
    (plain.save if ending == ".keras" else plain.save_weights)(path)
    whole = path.read_bytes()
    _, layer = make_ours("adam")
    before = read_rows(layer, "zebra")
    for size in (0, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        for read in (list_keras_tables, lambda path: load_keras_tables(layer, path, NAMES)):
            with pytest.raises(embeng.CheckpointError, match="is damaged, or no file of Keras"):
                read(path)
    with pytest.raises(FileNotFoundError):
        list_keras_tables(tmp_path / f"none{ending}")
    assert (read_rows(layer, "zebra") == before).all()


def test_a_file_of_keras_rs(tmp_path: Path, rng: numpy.random.Generator) -> None:
    """keras-rs' settings make our layer, and a file of its layer fills it."""
    import keras_rs

    tables = [keras_rs.layers.TableConfig(name, ROWS, DIM, optimizer="adam")
              for name in ("zebra", "ant")]
    features = {t.name: keras_rs.layers.FeatureConfig(t.name, t, (None, 3), (None, DIM))
                for t in tables}
    inputs = {name: keras.Input((3,), dtype="int32") for name in features}
    theirs = keras.Model(inputs, keras_rs.layers.DistributedEmbedding(features)(inputs))
    theirs.compile(optimizer="adam", loss="mse")
    ids = {name: rng.integers(0, ROWS, (8, 3)).astype("int32") for name in features}
    theirs.fit(ids, {name: rng.standard_normal((8, DIM)) for name in features}, verbose=0)
    theirs.save(tmp_path / "theirs.keras")
    paths = sorted(list_keras_tables(tmp_path / "theirs.keras"))
    layer = DistributedEmbedding(features)
    order = ("ant", "zebra")  # keras-rs sorts its features by name
    assert load_keras_tables(layer, tmp_path / "theirs.keras",
                             dict(zip(order, paths, strict=True))) == 4
    wanted, found = theirs.predict(ids, verbose=0), layer(ids)
    for name in features:
        numpy.testing.assert_allclose(keras.ops.convert_to_numpy(found[name]), wanted[name],
                                      rtol=1e-5, atol=1e-6)

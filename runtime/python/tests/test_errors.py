# SPDX-License-Identifier: MIT
"""Errors: their kinds, codes and sentences, and models, engines and settings that are refused."""
import errno
import pickle
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import embeng
from embeng import (Engine, Feature, InvalidError, NoMemoryError, Optimizer, OutOfRangeError,
                    Part, Quantization, Schedule, Table, UnknownNameError, initializers, optimizers,
                    schedules)

SGD = optimizers.sgd(0.1)


def _open(table: Any = None, features: Any = None, **options: Any) -> None:
    tables = [Table("a", 2, 3)] if table is None else [table]
    Engine(tables, features, **{"cores": 1, **options}).close()


TABLES: dict[str, tuple[Any, type[Exception], str]] = {
    "name int": (Table(1, 2, 3), TypeError, "table: name is 1; give text"),
    "name null": (Table("a\0b", 2, 3), TypeError, "text without null characters"),
    "name surrogate": (Table("\udc80", 2, 3), TypeError, "surrogates"),
    "name empty": (Table("", 2, 3), InvalidError, "the name is empty; give 1 to 63 bytes"),
    "name long": (Table("x" * 64, 2, 3), InvalidError, "63 bytes"),
    "rows 0": (Table("a", 0, 3), OutOfRangeError, "table a: vocabulary_size 0 is below 1"),
    "rows below": (Table("a", -2, 3), OutOfRangeError, "vocabulary_size -2"),
    "rows float": (Table("a", 2.0, 3), TypeError, "2.0; give a whole number"),
    "rows beyond": (Table("a", 2**70, 3), ValueError, "give a whole number from -9223372036854"),
    "rows text": (Table("a", "2", 3), TypeError, "vocabulary_size is '2'"),
    "memory": (Table("a", 2**45, 64), NoMemoryError, "9007199254740992 bytes are needed"),
    "more memory": (Table("a", 2**62, 64), NoMemoryError, "bytes are needed"),
    "dim 0": (Table("a", 2, 0), OutOfRangeError, "dim 0 must be 1 to"),
    "combiner": (Table("a", 2, 3, "avg"), ValueError, "the words are mean, sum, sqrtn, max"),
    "combiner int": (Table("a", 2, 3, 1), ValueError, "combiner is 1"),
    "policy": (Table("a", 2, 3, out_of_range="x"), ValueError, "error, clamp, drop, zero"),
    "optimizer": (Table("a", 2, 3, optimizer="sgd"), TypeError, "give an embeng.Optimizer"),
    "rate": (Table("a", 2, 3, optimizer=optimizers.sgd(numpy.nan)), OutOfRangeError,
             "table a: learning_rate nan must be finite"),
    "initializer": (Table("a", 2, 3, initializer=3), TypeError, "give an embeng.Initializer"),
    "initializer kind": (Table("a", 2, 3, initializer=initializers.Initializer("x")), ValueError,
                         "the words are default, constant"),
    "limits": (Table("a", 2, 3, initializer=initializers.uniform(2, 1)), ValueError, "initializer"),
    "slot": (Table("a", 2, 3, optimizer=optimizers.adagrad(),
                   slot_starts={"x": initializers.constant(1)}), UnknownNameError,
             "no slot x to start; it has accumulators"),
    "slot null": (Table("a", 2, 3, optimizer=optimizers.adagrad(),
                        slot_starts={"accumulators\0": initializers.constant(1)}), ValueError,
                  "slot_starts: 'accumulators.x00' is no name"),
    "levels": (Table("a", 2, 3, quantization=Quantization(1, 0, 1)), OutOfRangeError,
               "num_buckets 1 must be 2 to"),
    "part": (Table("a", 2, 3, part=Part(2, 1)), OutOfRangeError,
             "part: first_row 1 must be 0 to 0"),
    "part dict": (Table("a", 2, 3, part={"rows": 4}), TypeError,
                  "part is .*; give an embeng.Part"),
    "no table": (3, TypeError, "tables are embeng.Table, not 3"),
}
FEATURES: dict[str, tuple[Any, type[Exception], str]] = {
    "table": ([Feature("f", "b")], UnknownNameError, "feature f: there is no table 'b'"),
    "table int": ([Feature("f", 0)], TypeError, "feature: table: 0 is no name"),
    "table null": ([Feature("f", "a\0")], ValueError, "is no name"),
    "name null": ([Feature("f\0", "a")], TypeError, "feature: name is 'f.x00'"),
    "twice": ([Feature("f", "a")] * 2, InvalidError, "feature f: feature 0 has this name already"),
    "length": ([Feature("f", "a", -1)], OutOfRangeError, "max_sequence_length -1"),
    "rank": ([Feature("f", "a", 0, (1,) * 20)], ValueError, "output_shape has 20 lengths, of 8"),
    "shape": ([Feature("f", "a", 0, "ab")], TypeError, "integer"),
    "samples": ([Feature("f", "a", max_samples=-1)], ValueError, "max_samples is -1"),
    "no feature": ([3], TypeError, "features are embeng.Feature, not 3"),
}
OPTIONS: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "cores": ({"cores": -1}, ValueError, "cores is -1; give a whole number from 0 to 4294967295"),
    "cores 65": ({"cores": 65}, OutOfRangeError, "cores 65 is more than 64"),
    "cores wrap": ({"cores": 2**32 + 1}, ValueError, "cores is 4294967297"),
    "cores float": ({"cores": 1.0}, TypeError, "cores: 1.0 is no whole number"),
    "memory": ({"memory": -1}, ValueError, "memory is -1"),
    "memory wrap": ({"memory": 2**64}, ValueError, "memory is 18446744073709551616"),
    "memory 10": ({"memory": 10}, NoMemoryError, "24 bytes are needed .*, there are 10"),
    "replicas": ({"replicas": 2**40}, ValueError, "replicas is 1099511627776"),
    "device": ({"device": "x"}, embeng.DeviceError, '"x" is not known'),
    "device null": ({"device": "soft\0"}, ValueError, "null character"),
    "device surrogate": ({"device": "\udc80"}, ValueError, "surrogates"),
    "device int": ({"device": 1}, TypeError, "must be str or None"),
    "sharding": ({"sharding": "x"}, ValueError, "the words are div, mod"),
    "non_finite": ({"non_finite": None, "sharding": "x"}, ValueError, "div, mod"),
    "variant": ({"variant": "x"}, InvalidError, "kernel variant"),
    "prefetch": ({"prefetch": "x"}, InvalidError, "prefetch=x must be"),
    "path": ({"path": "x"}, InvalidError, "path is an option of devices behind the driver"),
}


@pytest.mark.parametrize("name", TABLES)
def test_tables_refused(name: str) -> None:
    table, kind, words = TABLES[name]
    with pytest.raises(kind, match=words):
        _open(table)


@pytest.mark.parametrize("name", FEATURES)
def test_features_refused(name: str) -> None:
    features, kind, words = FEATURES[name]
    with pytest.raises(kind, match=words):
        _open(None, features)


@pytest.mark.parametrize("name", OPTIONS)
def test_options_refused(name: str) -> None:
    options, kind, words = OPTIONS[name]
    with pytest.raises(kind, match=words):
        _open(None, None, **options)


def test_names_are_unique() -> None:
    with pytest.raises(InvalidError, match="table a: table 0 has this name already") as caught:
        Engine([Table("a", 2, 3)] * 2, cores=1)
    assert caught.value.code == -errno.EEXIST
    with pytest.raises(TypeError):
        Engine(None)


ACTS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "kind": (lambda: Optimizer("sgdx"), UnknownNameError, "there is no optimizer 'sgdx'; there"),
    "kind null": (lambda: Optimizer("sgd\0"), ValueError, "kind: 'sgd.x00' is no name"),
    "kind int": (lambda: Optimizer(3), TypeError, "kind is 3"),
    "setting": (lambda: optimizers.sgd(foo=1), TypeError, "optimizer: there is no setting 'foo'"),
    "number": (lambda: optimizers.adam(beta_1="x"), TypeError, "beta_1 is 'x'; give a number"),
    "bool": (lambda: optimizers.adam(lazy_adam=2), ValueError, "lazy_adam is 2"),
    "dynamic": (lambda: optimizers.sgd(dynamic={"max_norm": 3}), TypeError, "dynamic: 3 is no"),
    "dynamic list": (lambda: optimizers.sgd(dynamic=["x"]), TypeError, "give a dict of hyper"),
    "schedule": (lambda: Schedule("x"), ValueError, "no kind 'x'; there are constant, exponential"),
    "decay": (lambda: schedules.exponential(0.1, 0, 0.5), OutOfRangeError, "decay_steps 0 must be"),
    "step": (lambda: schedules.constant(0.1)(-1), ValueError, "step is -1"),
    "values": (lambda: schedules.piecewise([1], [1]), TypeError, "of which there is one more"),
    "falls": (lambda: schedules.piecewise([2, 1], [1, 2, 3]), InvalidError, "not above the one"),
    "below": (lambda: schedules.piecewise([-1], [1, 2]), ValueError, "boundaries is -1"),
    "device": (lambda: embeng.device_info("nope"), embeng.DeviceError, '"nope" is not known'),
    "device null": (lambda: embeng.device_info("\0"), ValueError, "device: '.x00' is no name"),
    "plan": (lambda: embeng.plan([Table("a", 2, 3)], batch_size=-1), ValueError, "a batch of -1 "),
    "plan option": (lambda: embeng.plan([Table("a", 2, 3)], foo=1), TypeError, "no setting 'foo'"),
    "model": (lambda: embeng._core.Model(3, []), TypeError, "len"),
    "model list": (lambda: embeng._core.Model([3], []), TypeError, "give a dict"),
    "model key": (lambda: embeng._core.Model([{1: 2}], []), TypeError, "no setting 1"),
}


@pytest.mark.parametrize("name", ACTS)
def test_settings_refused(name: str) -> None:
    act, kind, words = ACTS[name]
    with pytest.raises(kind, match=words):
        act()


def test_exceptions_of_methods_stay() -> None:
    """An exception that a method of the program's object raises stays as it is."""
    class Broken:
        def __index__(self) -> int:
            raise ZeroDivisionError("mine")

        def __float__(self) -> float:
            raise ZeroDivisionError("mine, too")

    for act in (lambda: _open(Table("a", Broken(), 3)),
                lambda: optimizers.adam(beta_1=Broken()),
                lambda: _open(cores=Broken()),
                lambda: schedules.constant(0.1)(Broken())):
        with pytest.raises(ZeroDivisionError, match="mine"):
            act()


def test_kinds_and_codes() -> None:
    """Each errno of the library's header has a kind that is one of Python's own, too."""
    wanted: dict[int, type[Exception]] = {
        errno.EINVAL: ValueError, errno.ERANGE: IndexError, errno.ENOENT: KeyError,
        errno.EEXIST: ValueError, errno.EPROTO: RuntimeError, errno.ETIME: TimeoutError,
        errno.EBUSY: RuntimeError, errno.ENOSPC: OSError, errno.EINTR: InterruptedError,
        errno.EDEADLK: RuntimeError, errno.ENOTSUP: NotImplementedError, errno.ENODEV: OSError,
        errno.ESHUTDOWN: OSError, errno.ENXIO: OSError, errno.EHOSTDOWN: OSError,
        errno.EACCES: PermissionError, errno.EPERM: PermissionError, errno.EDQUOT: MemoryError,
        errno.ENOMEM: MemoryError, errno.ENOTDIR: OSError, errno.EBADMSG: Exception}
    from embeng._errors import BY_CODE
    for code, kind in wanted.items():
        assert issubclass(BY_CODE[code], kind)
        assert issubclass(BY_CODE[code], embeng.EmbengError)
    error = UnknownNameError("a 'b'")
    assert str(error) == "a 'b'" and error.code == 0


def test_errors_have_their_numbers() -> None:
    with Engine([Table("a", 2, 3)], cores=1) as engine:
        with pytest.raises(IndexError) as caught:
            engine.lookup({"a": [5]})
        error = caught.value
        assert isinstance(error, OutOfRangeError) and isinstance(error, ValueError)
        assert (error.code, error.status) == (-errno.ERANGE, 15)  # EMBENG_STATUS_ID_RANGE
        assert str(error).startswith("feature a, sample 0: id 5 is outside table a")
        copy = pickle.loads(pickle.dumps(error))
        assert (type(copy), str(copy), copy.code) == (OutOfRangeError, str(error), error.code)
        with pytest.raises(KeyError) as unknown:
            engine["x"]
        assert str(unknown.value) == "there is no table 'x'; the tables are a"
        assert unknown.value.code == -errno.ENOENT
        with pytest.raises(OutOfRangeError, match="the largest is 4611686018427387904"):
            engine.step = 2**63
        with pytest.raises(ValueError, match="step is -1"):
            engine.step = -1
        engine.step = 2**40
        assert engine.step == 2**40


def test_reprs_and_describe() -> None:
    table = Table("a", 2, 3, optimizer=optimizers.adam(0.5, beta_1=0.25))
    with Engine([table], cores=1) as engine:
        assert repr(engine) == "<embeng.Engine: a 2x3>"
        assert repr(engine["a"]) == "<embeng.TableView a: 2 rows of 3>"
        found = engine.describe()["tables"][0]
        assert (found["dim"], found["optimizer"]["beta_1"]) == (3, 0.25)
        assert found["slots"] == {"momenta": 3, "velocities": 3}
        assert engine.info()["kind"] == "soft"
    assert embeng.device_list()[-1]["kind"] == "soft"
    assert table.optimizer and table.optimizer.full()["beta_2"] == pytest.approx(0.999)
    bytes_of = embeng.plan([table])
    assert bytes_of["table_bytes"] == 3 * 2 * 3 * 4
    assert {item["kind"] for item in bytes_of["items"]} >= {"table", "slot", "engine"}
    assert SGD == optimizers.sgd(0.1) != optimizers.sgd(0.2)
    assert hash(SGD) == hash(optimizers.sgd(0.1))

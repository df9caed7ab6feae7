# SPDX-License-Identifier: MIT
"""Forms of inputs and outputs; those that are refused are named, and nothing moves before."""
import array
import gc
from typing import Any

import numpy
import pytest
from support import make_engine

import embeng
from embeng import Engine, OutOfRangeError, Ragged, Sparse

IDS = numpy.arange(4)


def _unaligned() -> Any:
    return numpy.frombuffer(b"\0" + IDS.tobytes(), numpy.int64, 4, 1)


# -- what is taken -----------------------------------------------------------------------

GOOD: dict[str, Any] = {
    "list": [0, 1, 2, 3],
    "tuple": (0, 1, 2, 3),
    "range": range(4),
    "int32": IDS.astype(numpy.int32),
    "int8": IDS.astype(numpy.int8),
    "uint64": IDS.astype(numpy.uint64),
    "big endian": IDS.astype(">i8"),
    "reversed": numpy.arange(3, -1, -1)[::-1],
    "strided": numpy.arange(0, 4).repeat(2)[::2],
    "unaligned": _unaligned(),
    "read-only": numpy.frombuffer(IDS.tobytes(), numpy.int64),
    "memoryview": memoryview(IDS),
    "array.array q": array.array("q", [0, 1, 2, 3]),
    "array.array i": array.array("i", [0, 1, 2, 3]),
    "bytearray": bytearray([0, 1, 2, 3]),
    "subclass": IDS.view(numpy.matrix).A1,
    "padded": Ragged([[0], [1], [2], [3]], padding=numpy.int32(9)),
    "subclass of Ragged": type("Bags", (Ragged,), {})([0, 1, 2, 3], lengths=[1] * 4),
    "object array": numpy.array([0, 1, 2, 3], object).astype(int),
}


@pytest.mark.parametrize("name", GOOD)
def test_taken(engine: Engine, name: str) -> None:
    found = engine.lookup({"f": GOOD[name]})["f"]
    assert found.tobytes() == engine["t"].read(IDS).tobytes()


def test_zero_sizes(engine: Engine) -> None:
    for empty in ([], numpy.zeros(0, numpy.int32), numpy.zeros((0, 3), int), Ragged([], lengths=[]),
                  Ragged([], splits=[0]), Ragged([], starts=[]), numpy.array([], float)):
        assert engine.lookup({"f": empty})["f"].shape == (0, 4)
        assert engine.lookup({"f": empty}, out={"f": numpy.zeros((0, 4), numpy.float32)})
        engine.update({"f": empty}, {"f": numpy.zeros((0, 4), numpy.float32)})
    bags = engine.lookup({"f": numpy.zeros((3, 0), int), "s": numpy.zeros((2, 0), int)})
    assert bags["f"].tolist() == [[0] * 4] * 3
    assert bags["s"].shape == (2, 3, 4)
    assert engine.lookup({}) == {}


class Interface:
    """An object with numpy's array interface alone."""

    def __init__(self, held: Any):
        self.held = held

    @property
    def __array_interface__(self) -> Any:
        return self.held.__array_interface__


class Pack:
    """An object with DLPack alone, of the first version, which has no flags."""

    def __init__(self, held: Any):
        self.held = held

    def __dlpack__(self) -> Any:
        return self.held.__dlpack__()

    def __dlpack_device__(self) -> Any:
        return self.held.__dlpack_device__()


def test_interfaces(engine: Engine) -> None:
    expected = engine["t"].read(IDS).tobytes()
    assert engine.lookup({"f": Interface(IDS)})["f"].tobytes() == expected
    assert engine.lookup({"f": Pack(IDS)})["f"].tobytes() == expected
    out = numpy.zeros((4, 4), numpy.float32)
    engine.lookup({"f": IDS}, out={"f": Interface(out)})
    assert out.tobytes() == expected
    with pytest.raises(TypeError, match="feature f: out: outputs are writable"):
        engine.lookup({"f": IDS}, out={"f": Pack(out)})


# -- ids that are refused --------------------------------------------------------------------

BAD_IDS: dict[str, tuple[Any, type[Exception], str]] = {
    "float": (numpy.ones(3), TypeError, "feature f: ids: ids of float64"),
    "bool": (numpy.array([True]), TypeError, "ids of bool"),
    "complex": ([1j], TypeError, "ids of complex128"),
    "text": ("abc", TypeError, "feature f: ids: ids of <U3"),
    "texts": (["a"], TypeError, "ids of <U1"),
    "bytes": (b"abc", TypeError, "ids of |S3"),
    "dates": (numpy.array(["2020"], "M8[D]"), TypeError, "ids of datetime64"),
    "doubles": (array.array("d", [1]), TypeError, "ids of float64"),
    "None": (None, TypeError, "ids of object"),
    "dict": ({}, TypeError, "ids of object"),
    "object": (object(), TypeError, "ids of object"),
    "generator": ((i for i in range(3)), TypeError, "ids of object"),
    "uint64": (numpy.array([1, 2**63], numpy.uint64), OutOfRangeError, "9223372036854775808"),
    "beyond uint64": ([1, 2**64], OutOfRangeError, "18446744073709551616 does not fit int64"),
    "below int64": ([-2**63 - 1], OutOfRangeError, "-9223372036854775809 does not fit"),
    "scalar": (3, ValueError, "0 dimensions; give"),
    "cube": (numpy.zeros((2, 2, 1), int), ValueError, "3 dimensions; give"),
    "rank 20": (numpy.zeros((1,) * 20, int), ValueError, "20 dimensions; the most are 8"),
    "lists": ([[1], [2, 3]], ValueError, "Ragged.from_lists"),
    "negative": ([0, -1], OutOfRangeError, "feature f, sample 1: id -1 is outside table t, which"),
    "10": ([3, 10], OutOfRangeError, "sample 1: id 10 is outside table t, which has rows 0 to 9"),
    "huge": ([2**63 - 1], OutOfRangeError, "id 9223372036854775807 is outside"),
}
RAGGED: dict[str, tuple[Any, type[Exception], str]] = {
    "splits fall": (Ragged([1, 2, 3], splits=[0, 2, 1, 3]), ValueError, r"row_splits\[2\] falls"),
    "splits begin": (Ragged([1, 2, 3], splits=[1, 3]), ValueError, r"row_splits\[0\] is 1"),
    "splits end": (Ragged([1, 2, 3], splits=[0, 2]), ValueError, "not at the 3 ids"),
    "splits below": (Ragged([1], splits=[0, -1, 1]), ValueError, "falls from 0 to -1"),
    "no splits": (Ragged([], splits=[]), ValueError, "row_splits are missing"),
    "splits of floats": (Ragged([1], splits=[0.0, 1.0]), TypeError, "feature f: splits: ids of"),
    "lengths below": (Ragged([1], lengths=[2, -1]), ValueError, "sample 0: its bag has 2 ids"),
    "lengths beyond": (Ragged([1], lengths=[2**62] * 4 + [1]), ValueError, "4611686018427387904"),
    "lengths short": (Ragged([1, 2], lengths=[1]), ValueError, "feature f"),
    "starts fall": (Ragged([1, 2, 3], starts=[0, 2, 1]), ValueError, "its bag has -1 ids"),
    "starts begin": (Ragged([1, 2, 3], starts=[1]), ValueError, "bags start at 0"),
    "starts beyond": (Ragged([1], starts=[0, 5]), ValueError, "its bag has 5 ids"),
    "two": (Ragged([1], splits=[0, 1], lengths=[1]), ValueError, "two of splits, lengths"),
    "weights count": (Ragged([1, 2], lengths=[2], weights=[1.0]), ValueError, "1, for 2 ids"),
    "weights NaN": (Ragged([1], lengths=[1], weights=[numpy.nan]), OutOfRangeError, "0 is nan"),
    "weights inf": (Ragged([1], lengths=[1], weights=[numpy.inf]), OutOfRangeError, "0 is inf"),
    "weights text": (Ragged([1], lengths=[1], weights=["a"]), TypeError, "weights: numbers of <U"),
    "weights bool": (Ragged([1], lengths=[1], weights=[True]), TypeError, "numbers of bool"),
    "values None": (Ragged(None), TypeError, "feature f: values: ids of object"),
    "padding": (Ragged([1], lengths=[1], padding=1.5), ValueError, "padding: 1.5 is no whole"),
    "padding beyond": (Ragged([1], lengths=[1], padding=2**70), ValueError, "of 64 bits"),
    "values rank": (Ragged([[1, 2]], splits=[0, 2]), ValueError, "have one dimension"),
    "splits rank": (Ragged([1, 2], splits=[[0, 2]]), ValueError, "have one dimension"),
    "members": (tuple.__new__(Ragged, ()), ValueError, "has 0 members, not 6"),
    "more members": (tuple.__new__(Ragged, (1,) * 9), ValueError, "has 9 members, not 6"),
}
SPARSE: dict[str, tuple[Any, type[Exception], str]] = {
    "falls": (Sparse([[1, 0], [0, 0]], [1, 2], (2, 2)), ValueError, r"indices\[1\] comes after"),
    "count": (Sparse([[0, 0]], [1, 2], (2, 2)), ValueError, "indices: they are 2 numbers"),
    "rank 1": (Sparse([[0]], [1], (2,)), ValueError, "shape: it has 1 lengths; give 2 to 9"),
    "rank 17": (Sparse([[0] * 17], [1], (1,) * 17), ValueError, "17 lengths"),
    "below": (Sparse([[0, 0]], [1], (-2, 2)), ValueError, "negative length"),
    "outside": (Sparse([[5, 0]], [1], (2, 2)), OutOfRangeError, "is 5, not within 0 and 2"),
    "too many": (Sparse([[0, 0]], [1], (2**50, 2)), MemoryError, "1125899906842624 samples"),
    "overflow": (Sparse([[0, 0, 0]], [1], (2**62, 2**62, 1)), ValueError, "64 bits"),
    "no shape": (Sparse([[0, 0]], [1], None), TypeError, "shape: None has no lengths"),
    "shape text": (Sparse([[0, 0]], [1], "ab"), TypeError, "integer"),
    "members": (tuple.__new__(Sparse, (1,)), ValueError, "has 1 members, not 4"),
}
BAD = {**BAD_IDS, **{f"ragged: {k}": v for k, v in RAGGED.items()},
       **{f"sparse: {k}": v for k, v in SPARSE.items()}}


@pytest.mark.parametrize("name", BAD)
def test_refused(engine: Engine, name: str) -> None:
    """Lookups, steps and updates refuse it alike, and nothing changes: no row, step or output."""
    given, kind, words = BAD[name]
    before = engine["t"].read()
    for samples in range(4):  # one of which has the shape of the activations
        out = numpy.full((samples, 4), 7, numpy.float32)
        with pytest.raises((kind, ValueError)):
            engine.lookup({"f": given}, out={"f": out})
        assert (out == 7).all()
    for act in (lambda: engine.lookup({"f": given}),
                lambda: engine.enqueue({"f": given}, timeout=0),
                lambda: engine.update({"f": given}, {"f": None})):
        with pytest.raises(kind, match=words):
            act()
    assert engine["t"].read().tobytes() == before.tobytes()
    assert engine.step == 0
    assert len(engine.lookup({"f": [1]})["f"]) == 1


def test_refused_dicts(engine: Engine) -> None:
    for given, kind, words in [
            ([1], TypeError, "a dict from names of features to ids"),
            (None, TypeError, "a dict"),
            ({"x": [1]}, embeng.UnknownNameError, r"no feature 'x'; the features are \['f', 's'\]"),
            ({"f": [1], 1: [1]}, embeng.UnknownNameError, "there is no feature 1;"),
            ({"f": [1], "f\0": [1]}, embeng.UnknownNameError, "no feature"),
            ({"f": [1], "\udc80": [1]}, embeng.UnknownNameError, "no feature")]:
        with pytest.raises(kind, match=words):
            engine.lookup(given)


# -- outputs -------------------------------------------------------------------------------

FOUR = numpy.zeros((4, 4), numpy.float32)


def _read_only() -> Any:
    found = FOUR.copy()
    found.flags.writeable = False
    return found


def _spread(first: int, second: int) -> Any:
    return numpy.lib.stride_tricks.as_strided(numpy.zeros(64, numpy.float32), (4, 4),
                                              (first, second))


OUTPUTS: dict[str, tuple[Any, type[Exception], str]] = {
    "shape": (numpy.zeros((4, 3), numpy.float32), ValueError, r"of the activations, \(4, 4\)"),
    "rank": (numpy.zeros(16, numpy.float32), ValueError, "feature f: out: its shape"),
    "float64": (numpy.zeros((4, 4)), TypeError, "writable float32 arrays"),
    "big endian": (FOUR.astype(">f4"), TypeError, "writable float32 arrays"),
    "int32": (FOUR.astype(numpy.int32), TypeError, "writable float32 arrays"),
    "read-only": (_read_only(), ValueError, "the memory is read-only"),
    "bytes": (b"x" * 64, ValueError, "the memory is read-only"),
    "list": ([[0.0] * 4] * 4, TypeError, "writable float32 arrays"),
    "None": (None, TypeError, "writable float32 arrays"),
    "columns first": (numpy.asfortranarray(FOUR), TypeError, "writable float32 arrays"),
    "reversed": (FOUR[::-1], TypeError, "writable float32 arrays"),
    "one row": (_spread(0, 4), TypeError, "writable float32 arrays"),
    "rows overlap": (_spread(8, 4), TypeError, "writable float32 arrays"),
    "spread columns": (_spread(64, 8), TypeError, "writable float32 arrays"),
    "unaligned": (numpy.frombuffer(bytearray(65), numpy.float32, 16, 1).reshape(4, 4), TypeError,
                  "writable float32 arrays"),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_outputs_refused(engine: Engine, name: str) -> None:
    out, kind, words = OUTPUTS[name]
    before = numpy.array(out, copy=True) if isinstance(out, numpy.ndarray) else None
    with pytest.raises(kind, match=words):
        engine.lookup({"f": IDS}, out={"f": out})
    if before is not None:
        numpy.testing.assert_array_equal(out, before)


def test_outputs_of_others(engine: Engine) -> None:
    with pytest.raises(embeng.UnknownNameError, match="out: there is no feature 'g'"):
        engine.lookup({"f": IDS}, out={"g": FOUR})
    with pytest.raises(ValueError, match="feature s: out: the feature has no input"):
        engine.lookup({"f": IDS}, out={"s": FOUR})
    with pytest.raises(TypeError, match="out: a dict"):
        engine.lookup({"f": IDS}, out=[FOUR])
    with pytest.raises(TypeError, match="lookup"):
        engine.lookup({"f": IDS}, [], 1, 2)
    with pytest.raises(TypeError, match="twice"):
        engine.lookup({"f": IDS}, features={})


def test_outputs_with_gaps(engine: Engine) -> None:
    block = numpy.full((4, 9), 3, numpy.float32)
    assert engine.lookup({"f": IDS}, out={"f": block[:, 4:8]})["f"].base is block
    assert block[:, 4:8].tobytes() == engine["t"].read(IDS).tobytes()
    assert (block[:, :4] == 3).all() and (block[:, 8:] == 3).all()
    every_second = numpy.full((8, 4), 3, numpy.float32)
    engine.lookup({"f": IDS}, out={"f": every_second[::2]})
    assert every_second[::2].tobytes() == block[:, 4:8].tobytes()
    assert (every_second[1::2] == 3).all()


# -- gradients, rates, factors ---------------------------------------------------------------


def test_gradients_refused(engine: Engine) -> None:
    ones = numpy.ones((4, 4), numpy.float32)
    given: list[tuple[Any, dict[str, Any], type[Exception], str]] = [
        ({}, {}, ValueError, "feature f: gradients: there are none; None stands for zeros"),
        ([ones], {}, TypeError, "gradients are a dict"),
        ({"f": ones, "x": ones}, {}, embeng.UnknownNameError, "gradients: there is no feature 'x'"),
        ({"f": ones[:2]}, {}, ValueError, "gradients of 8 elements, its activations have 16"),
        ({"f": ones.reshape(2, 8)}, {}, ValueError, "rows have 8 numbers"),
        ({"f": ones > 0}, {}, TypeError, "numbers of bool"),
        ({"f": ones * 1j}, {}, TypeError, "numbers of complex64"),
        ({"f": ones * numpy.nan}, {}, OutOfRangeError, "feature f, sample 0, column 0"),
        ({"f": ones}, {"rates": {"x": 1}}, embeng.UnknownNameError, "no learning rate named x"),
        ({"f": ones}, {"rates": {1: 1}}, TypeError, "rates: 1 is no name"),
        ({"f": ones}, {"rates": {"x\0": 1}}, ValueError, "rates: 'x.x00' is no name"),
        ({"f": ones}, {"rates": {"\udc80": 1}}, ValueError, "is no name"),
        ({"f": ones}, {"rates": {"x": "y"}}, TypeError, "real number"),
        ({"f": ones}, {"rates": [1]}, TypeError, "rates: a dict"),
        ({"f": ones}, {"multiplier": numpy.nan}, OutOfRangeError, "multiplier nan must be finite"),
        ({"f": ones}, {"multiplier": "2"}, TypeError, "multiplier: '2' is no number"),
        ({"f": ones}, {"timeout": -1}, ValueError, "timeout: give seconds"),
        ({"f": ones}, {"timeout": numpy.nan}, ValueError, "timeout: give seconds"),
        ({"f": ones}, {"replica": 1}, OutOfRangeError, "replica"),
        ({"f": ones}, {"replica": -1}, ValueError, "replica is -1; give a whole number from 0"),
        ({"f": ones}, {"replica": 1.0}, TypeError, "replica: 1.0 is no whole number"),
    ]
    before = engine["t"].read()
    for gradients, options, kind, words in given:
        with pytest.raises(kind, match=words):
            engine.update({"f": IDS}, gradients, **options)
        assert engine["t"].read().tobytes() == before.tobytes()
    assert engine.step == 0
    engine.update({"f": IDS}, {"f": ones.tolist()}, multiplier=2)
    numpy.testing.assert_allclose(engine["t"].read(IDS), before[:4] - 1, rtol=1e-6)


def test_norms_and_gradients_of_weights(engine: Engine) -> None:
    ones = numpy.ones((2, 4), numpy.float32)
    bags = Ragged([1, 2, 1], lengths=[2, 1], weights=[1.0, 2.0, 3.0])
    norm, finite = engine.gradient_norm({"f": bags}, {"f": ones})
    assert (norm, finite) == (pytest.approx((4 * 4**2 + 4 * 2**2) ** 0.5), True)
    assert engine.gradient_norm({"f": bags}, {"f": ones * numpy.inf})[1] is False
    wanted = engine.weight_gradients({"f": bags}, {"f": ones}, {"f": None})
    rows = engine["t"].read([1, 2, 1])
    numpy.testing.assert_allclose(wanted["f"], rows.sum(axis=1), rtol=1e-5)
    with pytest.raises(embeng.UnknownNameError, match="wanted: there is no feature 'x'"):
        engine.weight_gradients({"f": bags}, {"f": ones}, {"x": None})


# -- objects that lie or change things ---------------------------------------------------------


class Lie:
    """An object whose DLPack is not what it should be."""

    def __init__(self, device: Any, capsule: Any):
        self.device = device
        self.capsule = capsule

    def __dlpack_device__(self) -> Any:
        return self.device

    def __dlpack__(self, **unused: Any) -> Any:
        if isinstance(self.capsule, BaseException):
            raise self.capsule
        return self.capsule


@pytest.mark.parametrize(("device", "capsule", "kind", "words"), [
    ((1, 0), 42, TypeError, "feature f: ids: ids of object"),
    ((1, 0), None, TypeError, "ids of object"),
    (7, 42, TypeError, "gives no pair of numbers"),
    (("a", 0), 42, TypeError, "integer"),
    ((2, 0), 42, ValueError, "another device .DLPack's kind 2.; copy it to the processor"),
    ((1, 0), BufferError("nothing here"), BufferError, "feature f: ids: nothing here"),
    ((1, 0), KeyboardInterrupt("now"), KeyboardInterrupt, "^now$"),
    ((1, 0), MemoryError("none"), MemoryError, "^none$"),
])
def test_objects_that_lie(engine: Engine, device: Any, capsule: Any, kind: type[BaseException],
                          words: str) -> None:
    with pytest.raises(kind, match=words):
        engine.lookup({"f": Lie(device, capsule)})


class Act:
    """An array that does something when it is converted, in the middle of a call."""

    def __init__(self, act: Any, result: Any):
        self.act = act
        self.result = result

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        self.act()
        return numpy.asarray(self.result)


def test_held_arrays_cannot_be_resized(engine: Engine) -> None:
    ids, raw = numpy.arange(4), array.array("q", [1, 2, 3])
    held = bytearray(IDS.astype(numpy.int64).tobytes())
    seen: list[str] = []

    def attempt(change: Any) -> None:
        with pytest.raises((ValueError, BufferError)) as caught:
            change()
        seen.append(str(caught.value))

    engine.lookup({"f": ids, "s": Act(lambda: attempt(lambda: ids.resize(1000)), [[1]])})
    engine.lookup({"f": raw, "s": Act(lambda: attempt(lambda: raw.append(1)), [[1]])})
    view = memoryview(held).cast("q")
    engine.lookup({"f": view, "s": Act(lambda: attempt(lambda: held.extend(b"x" * 999)), [[1]])})
    engine.lookup({"f": view, "s": Act(lambda: attempt(view.release), [[1]])})
    assert len(seen) == 4
    raw.append(1)
    view.release()
    held.extend(b"x")
    ids.resize(1000, refcheck=False)
    assert (len(raw), len(held), len(ids)) == (4, 33, 1000)


def test_dicts_that_change_in_a_call(engine: Engine) -> None:
    """Members that were read stay, also when the program's own dict loses them."""
    inputs: dict[str, Any] = {}

    def forget() -> None:
        inputs.clear()
        gc.collect()

    inputs["f"] = Act(forget, numpy.arange(4))
    with pytest.raises(RuntimeError, match="changed while it was read"):
        engine.lookup(inputs)
    inputs["f"] = Ragged(Act(forget, numpy.arange(4)), lengths=Act(forget, [1, 3]))
    inputs["s"] = [[1]]
    with pytest.raises(RuntimeError, match="changed while it was read"):
        engine.lookup(inputs)
    gradients: dict[str, Any] = {}

    def forget_gradients() -> None:
        gradients.clear()
        gc.collect()

    gradients["f"] = Act(forget_gradients, numpy.ones((4, 4)))
    with pytest.raises(RuntimeError, match="changed while it was read"):
        engine.update({"f": IDS}, gradients)
    out = {"f": numpy.zeros((4, 4), numpy.float32)}
    found = engine.lookup({"f": Act(out.clear, IDS)}, out=out)
    assert found["f"].tobytes() == engine["t"].read(IDS).tobytes()


class Number:
    """A number that does something when it is read."""

    def __init__(self, number: Any, act: Any):
        self.number = number
        self.act = act

    def __index__(self) -> int:
        self.act()
        return int(self.number)

    def __float__(self) -> float:
        self.act()
        return float(self.number)


def _cleared(make: Any) -> dict[str, Any]:
    """A dict of settings one of which empties it."""
    settings: dict[str, Any] = {}

    def forget() -> None:
        settings.clear()
        gc.collect()
        bytes(1000)

    settings.update(make(forget))
    return settings


def test_settings_that_change_while_they_are_read() -> None:
    name = "".join(["ta", "ble", "-of-a-name-that-nobody-else-has"])
    table = _cleared(lambda act: {
        "name": name + "1", "vocabulary_size": Number(5, act), "dim": Number(2, act),
        "optimizer": {"kind": "".join(["sg", "d"]), "rate_name": name + "2"},
        "slot_starts": {}, "initializer": {"kind": "constant", "a": Number(3, act)}})
    feature = _cleared(lambda act: {"name": name + "3", "table": name + "1",
                                    "max_sequence_length": Number(2, act),
                                    "output_shape": [Number(4, act)]})
    options = _cleared(lambda act: {"replicas": Number(1, act), "sharding": "mod",
                                    "step_depth": Number(2, act)})
    schedules = _cleared(lambda act: {name + "2": {
        "kind": "piecewise", "boundaries": [Number(1, act), Number(2, act)],
        "values": [Number(0.5, act), Number(0.25, act), Number(0.125, act)]}})
    found = embeng._core.Model([table], [feature], options, schedules).describe()
    assert found["tables"][0]["name"] == name + "1"
    assert found["tables"][0]["vocabulary_size"] == 5
    assert found["tables"][0]["initializer"]["a"] == 3
    assert found["tables"][0]["optimizer"]["rate_name"] == name + "2"
    assert found["features"][0]["name"] == name + "3"
    assert found["features"][0]["output_shape"] == (4,)
    assert found["options"]["sharding"] == "mod"
    assert not table and not feature and not options and not schedules


def test_rates_that_change_while_they_are_read() -> None:
    table = embeng.Table("t", 3, 1, optimizer=embeng.optimizers.sgd("the-rate-of-the-table"))
    with Engine([table], cores=1) as engine:
        rates = _cleared(lambda act: {"".join(["the-rate", "-of-the-table"]): Number(0.5, act)})
        before = engine["t"].read()
        engine.update({"t": [1]}, {"t": [[1.0]]}, rates=rates)
        assert not rates
        assert engine["t"].read()[1, 0] == pytest.approx(before[1, 0] - 0.5)


def test_lists_that_change_while_they_are_read() -> None:
    values: list[Any] = []
    values += [Number(1.5, values.clear), Number(2.5, values.clear)]
    rate = embeng._core.schedule_rate({"kind": "piecewise", "boundaries": [3], "values": values}, 9)
    assert (rate, values) == (2.5, [])
    loop: dict[str, Any] = {"name": "t"}
    loop["optimizer"] = loop
    with pytest.raises(ValueError, match="nested too deeply"):
        embeng._core.Model([loop], [])


def test_calls_within_calls(engine: Engine) -> None:
    """Code that runs in the middle of a call may use the engine, and even close it."""
    rows = engine["t"].read()
    inner: list[Any] = []
    found = engine.lookup({"f": Act(lambda: inner.append(engine.lookup({"f": [3]})), [1, 2])})
    assert found["f"].tobytes() == rows[1:3].tobytes()
    assert inner[0]["f"].tobytes() == rows[3:4].tobytes()
    with pytest.raises(embeng.BusyError, match="another thread is in a call"):
        engine.lookup({"f": Act(lambda: engine.add([embeng.Table("u", 2, 2)]), [1])})
    assert len(engine) == 1
    found = engine.lookup({"f": Act(engine.close, [1, 2])})
    assert found["f"].tobytes() == rows[1:3].tobytes()
    with pytest.raises(ValueError, match="the engine is closed"):
        engine.lookup({"f": [1]})


# -- tensors ---------------------------------------------------------------------------------


def test_tensors(engine: Engine) -> None:
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    rows = engine["t"].read(IDS)
    for ids in (torch.arange(4), torch.arange(4, dtype=torch.int32), torch.arange(8)[::2] // 2,
                torch.arange(4, dtype=torch.uint8)):
        assert engine.lookup({"f": ids})["f"].tobytes() == rows.tobytes()
    out = torch.zeros(4, 4)
    assert engine.lookup({"f": IDS}, out={"f": out})["f"] is out
    assert out.numpy().tobytes() == rows.tobytes()
    bad: list[tuple[Any, type[Exception], str]] = [
        (torch.ones(2), TypeError, "feature f: ids: ids of float32"),
        (torch.ones(2, requires_grad=True), BufferError, "ids: .*use tensor.detach"),
        (torch.eye(2).to_sparse(), BufferError, "feature f: ids: .*strided"),
        (torch.zeros(2, dtype=torch.long, device="meta"), ValueError, "feature f: ids: .*meta"),
        (torch.ones(2, dtype=torch.bfloat16), TypeError, "f: ids: numpy cannot read Tensor"),
        (torch.ones(2) > 0, TypeError, "ids of bool")]
    for given, kind, words in bad:
        with pytest.raises(kind, match=words):
            engine.lookup({"f": given})
    for given, kind, words in [(torch.zeros(4, 4).t(), TypeError, "writable float32"),
                               (torch.zeros(4, 4, requires_grad=True), BufferError, "detach"),
                               (torch.zeros(4, 4, dtype=torch.float64), TypeError, "float32")]:
        with pytest.raises(kind, match=words):
            engine.lookup({"f": IDS}, out={"f": given})
    engine.update({"f": torch.arange(4)}, {"f": torch.ones(4, 4)})
    numpy.testing.assert_allclose(engine["t"].read(IDS), rows - 0.5, rtol=1e-6)


# -- other libraries ----------------------------------------------------------------------------


def test_scipy_and_arrow(engine: Engine) -> None:
    scipy = pytest.importorskip("scipy.sparse")
    arrow = pytest.importorskip("pyarrow")
    rows = engine["t"].read()
    matrix = scipy.csr_matrix(([2.0, 3.0, 0.5], ([0, 0, 2], [1, 4, 9])), shape=(3, 10))
    found = engine.lookup({"f": Ragged.from_scipy(matrix)})["f"]
    numpy.testing.assert_allclose(found, [2 * rows[1] + 3 * rows[4], 0 * rows[0], rows[9] / 2],
                                  rtol=1e-6)
    plain = engine.lookup({"f": Ragged.from_scipy(matrix, weighted=False)})["f"]
    numpy.testing.assert_allclose(plain[0], rows[1] + rows[4], rtol=1e-6)
    bags = arrow.array([[1, 2], None, [3], []], arrow.list_(arrow.int64()))
    for given in (bags, arrow.chunked_array([bags[:2], bags[2:]]), bags[0:4]):
        found = engine.lookup({"f": Ragged.from_arrow(given)})["f"]
        numpy.testing.assert_allclose(found, [rows[1] + rows[2], 0 * rows[0], rows[3], 0 * rows[0]],
                                      rtol=1e-6)
    sliced = arrow.array([[9, 9], [1, 2], [3]], arrow.list_(arrow.int32()))[1:]
    found = engine.lookup({"f": Ragged.from_arrow(sliced)})["f"]
    numpy.testing.assert_allclose(found, [rows[1] + rows[2], rows[3]], rtol=1e-6)
    with pytest.raises(ValueError, match="not as long"):
        Ragged.from_lists([[1, 2]], [[1.0]])


def test_engines_apart() -> None:
    """Arrays of one engine's lookup are the program's own: later updates do not reach them."""
    with make_engine() as engine:
        found = engine.lookup({"f": [1]})["f"]
        kept = found.copy()
        engine.update({"f": [1]}, {"f": [[1.0] * 4]})
        engine.flush()
        assert found.tobytes() == kept.tobytes()
        assert engine.lookup({"f": [1]})["f"].tobytes() != kept.tobytes()

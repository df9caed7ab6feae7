# SPDX-License-Identifier: MIT
"""The conformance vectors of tests/vectors through the package, on one core and on two.

embeng-vector(5) has their format. A step that must fail must fail with the errno that the vector
names, and leave all as it was, which the steps behind it check. Numbers are compared as `embeng
conform` compares them; those of one core and of two are compared by their bits.

The bits are those of C, too: vectors are made that expect just what the package gave, without any
tolerance, and `embeng conform` runs them.
"""
import copy
import errno
import json
import math
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy
import pytest

import embeng
from embeng import Feature, Initializer, Part, Quantization, Ragged, Sparse, Table

FOLDER = Path(__file__).resolve().parents[3] / "tests" / "vectors"

# Verbs that the package has no function for: they are of the interfaces for serving without an
# engine, for SparseCores, for tables over hosts, and for the protobuf of TPU embeddings.
NO_VERBS = {"lookup", "partition", "spread", "stacking", "expect_config"}

# Vectors without such verbs that still cannot be said in Python, and why.
NOT_IN_PYTHON: dict[str, str] = {
    "errors/error_dense_shape": "the shape of a dense input is that of its array",
    "errors/error_weights_with_dense": "weights come with bags alone",
    **{f"replicas/replicas_sums_{name}": "sums are for programs whose tables are spread over hosts"
       for name in ("adagrad", "adam_corrected", "refused", "updates")},
    "inputs/dense_rank_1_and_2": "an array has at most two dimensions",
    "gradients/told_replica": "gradient_norm() takes no replica, and so refuses none",
    "model/model_hosts_zero": "0 is the default of the library",
}

# The sentence is one of `embeng conform` itself, which reads what the library cannot be given.
OTHER_WORDS = {"errors/error_weights_count"}

ALL = sorted(FOLDER.glob("**/*.json"))


def _read(path: Path) -> Any:
    return json.loads(path.read_text())


def _has_no_verb(vector: Any) -> bool:
    return any(NO_VERBS & set(step) for step in vector["steps"])


def _key(path: Path) -> str:
    return str(path.relative_to(FOLDER).with_suffix(""))


RUNNABLE = [path for path in ALL
            if not _has_no_verb(_read(path)) and _key(path) not in NOT_IN_PYTHON]


class Mismatch(AssertionError):
    """A result that is not the expected one; never an error of the library."""


# -- models ------------------------------------------------------------------------------


def _numbers(nested: Any) -> Any:
    if isinstance(nested, list):
        return [_numbers(item) for item in nested]
    return float(nested) if isinstance(nested, str) else nested


def _clips(clip: Any) -> dict[str, Any]:
    if clip is None:
        return {}
    low, high = clip if isinstance(clip, list) else (-_numbers(clip), clip)
    return {"clip_min": _numbers(low), "clip_max": _numbers(high)}


RENAMED = {"multiply_weight_decay_factor_by_learning_rate": "multiply_weight_decay_by_rate",
           "low_dimensional_packing_status": "low_dimensional_packing"}
DEFAULT_RATES = dict.fromkeys(
    ["sgd", "proximal_yogi", "online_yogi", "frequency_aware_adagrad"], 0.01)


def _optimizer(spec: Any) -> embeng.Optimizer:
    kind = spec["kind"]
    rate = spec.get("learning_rate", DEFAULT_RATES.get(kind, 0.001))
    settings = _clips(spec.get("clipvalue"))
    for key, value in spec.items():
        if key in ("kind", "learning_rate", "clipvalue") or value is None:
            continue
        if key == "step_counter":
            value = value["dynamic"]
        settings[RENAMED.get(key, key)] = value if key == "dynamic" else (
            float(value) if value in ("nan", "inf", "-inf") else value)
    rate = rate["dynamic"] if isinstance(rate, dict) else float(rate)
    if kind == "adam" and spec.get("bias_correction"):
        return embeng.optimizers.adam_corrected(rate, **settings)
    return embeng.Optimizer(kind, rate, **settings)


def _quantization(spec: Any) -> Quantization | None:
    if spec is None:
        return None
    return Quantization(spec["num_buckets"] or -1, float(spec["lower"]), float(spec["upper"]))


def _initializer(spec: Any) -> Initializer | None:
    if spec is None:
        return None
    return Initializer(spec["kind"], float(spec.get("a", 0)), float(spec.get("b", 0)),
                       spec.get("seed", 0))


def _part(spec: Any) -> Part | None:
    return spec and Part(**{**spec, "rows": spec["rows"] or -1})


def _table(spec: Any, trains: bool) -> Table:
    optimizer = _optimizer(spec["optimizer"]) if trains and spec.get("optimizer") else None
    return Table(spec["name"], spec["vocabulary_size"], spec["dim"], spec.get("combiner", "mean"),
                 optimizer, _initializer(spec.get("initializer")),
                 out_of_range=spec.get("out_of_range", "error"),
                 quantization=_quantization(spec.get("quantization")),
                 frozen=spec.get("frozen", False), part=_part(spec.get("part")))


def _feature(spec: Any) -> Feature:
    return Feature(spec["name"], spec["table"], spec.get("max_sequence_length", 0),
                   tuple(spec.get("output_shape") or ()))


def _matrix(spec: Any, rows: list[int], width: int) -> Any:
    shape = (len(rows), width)
    if not isinstance(spec, dict):
        found = numpy.array(_numbers(spec), numpy.float32)
        if found.size == 0:
            found = found.reshape(shape)
        if found.shape != shape:
            raise ValueError(f"a matrix of {found.shape}, not {shape}")
        return found
    if "fill" in spec:
        return numpy.full(shape, numpy.float32(_numbers(spec["fill"])))
    if "row_id" in spec:
        return numpy.repeat(numpy.array(rows, float)[:, None] + spec["row_id"], width,
                            1).astype(numpy.float32)
    start, step = spec["arange"]
    places = numpy.arange(len(rows) * width, dtype=float).reshape(shape)
    return (start + step * places).astype(numpy.float32)


# -- inputs ------------------------------------------------------------------------------


def _weights(spec: Any) -> Any:
    return None if spec is None else numpy.array(_numbers(spec), numpy.float32)


def _ragged(ragged: Any, weights: Any) -> Ragged:
    if "rows" in ragged:
        return Ragged.from_lists(ragged["rows"], None if weights is None else _numbers(weights))
    return Ragged(numpy.array(ragged["values"], numpy.int64),
                  splits=numpy.array(ragged["row_splits"], numpy.int64), weights=_weights(weights))


def _input(spec: Any) -> Any:
    weights = spec.get("weights")
    if "sparse" in spec:
        coo = spec["sparse"]
        indices = numpy.array(coo["indices"], numpy.int64)
        return Sparse(indices, numpy.array(coo["values"], numpy.int64), coo["shape"],
                      _weights(weights))
    if "ragged" in spec:
        return _ragged(spec["ragged"], weights)
    ids = numpy.array(spec["dense"], numpy.int64)
    return ids  # each of them is a sample, whatever the shape


def _inputs(features: Any) -> dict[str, Any]:
    return {name: _input(spec) for name, spec in features.items()}


# -- comparing ---------------------------------------------------------------------------


def _compare(what: str, got: Any, expected: Any, body: Any) -> None:
    expected = numpy.array(_numbers(expected), numpy.float32)
    if expected.size == 0 and numpy.size(got) == 0:
        return
    if got.shape != expected.shape:
        raise Mismatch(f"{what}: the shape is {got.shape}, expected {expected.shape}")
    left, right = got.astype(float), expected.astype(float)
    with numpy.errstate(invalid="ignore"):
        near = numpy.abs(left - right) <= (body.get("atol", 1e-6) +
                                           body.get("rtol", 1e-6) * numpy.abs(right))
    near &= numpy.isfinite(left) & numpy.isfinite(right)
    near |= (left == right) | (numpy.isnan(left) & numpy.isnan(right))
    if not near.all():
        at = tuple(int(k) for k in numpy.argwhere(~near)[0])
        raise Mismatch(f"{what} at {at}: got {left[at]!r}, expected {right[at]!r}")


def _nested(value: Any) -> Any:
    """Numbers as a vector has them, with all of their bits."""
    if isinstance(value, dict):
        return {name: _nested(item) for name, item in value.items()}
    if isinstance(value, numpy.ndarray):
        return _nested(value.tolist())
    if isinstance(value, list):
        return [_nested(item) for item in value]
    if math.isfinite(value):
        return value
    return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"


class Runner:
    """Runs one vector, and keeps all numbers that it saw."""

    def __init__(self, vector: Any, folder: Path, cores: int):
        self.vector = vector
        self.exact: Any = copy.deepcopy(vector)  # expects what was seen
        self.step: Any = None  # the one of it that runs
        self.folder = folder
        self.cores = cores
        self.engine: Any = None
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.seen: list[bytes] = []

    def open(self, options: Any, trains: bool) -> None:
        options = {key: value for key, value in (options or {}).items() if key != "cores"}
        engine = embeng.Engine([_table(t, trains) for t in self.vector["tables"]],
                               [_feature(f) for f in self.vector["features"]],
                               cores=self.cores, **options)
        try:
            self.start(engine, self.vector["tables"], trains)
        except BaseException:
            engine.close()
            raise
        self.close()
        self.engine, self.trains = engine, trains

    def start(self, engine: Any, tables: Any, trains: bool) -> None:
        for spec in tables:
            view = engine[spec["name"]]
            slots = {"parameters": spec.get("initial")}
            if trains:
                slots.update(spec.get("slots") or {})
            for slot, matrix in slots.items():
                if matrix is not None:
                    width = view._width(slot)
                    view.write(_matrix(matrix, list(range(len(view))), width), slot=slot)

    def close(self) -> None:
        if self.engine:
            self.engine.close()

    def keep(self, array: Any) -> Any:
        self.seen.append(numpy.ascontiguousarray(array).tobytes())
        return array

    def expect(self, **found: Any) -> None:
        """Have the exact vector's step expect what was found."""
        for name, value in found.items():
            self.step[name] = _nested(value)
        self.step.update(atol=0, rtol=0)

    # -- verbs

    def enqueue(self, body: Any) -> None:
        self.engine.enqueue(_inputs(body["features"]), body.get("training", True),
                            body.get("replica", 0), 0)

    def dequeue(self, body: Any) -> None:
        found = self.engine.dequeue(body.get("replica", 0), 0)
        self.shapes = {name: array.shape for name, array in found.items()}
        for name in found:
            self.keep(found[name])
        self.expect(expect={name: found[name] for name in body["expect"]})
        for name, expected in body["expect"].items():
            _compare(name, found[name], expected, body)

    def gradients(self, spec: Any) -> dict[str, Any]:
        made: dict[str, Any] = {feature.name: None for feature in self.engine.features}
        for name, gradient in spec.items():
            if isinstance(gradient, dict):
                shape = self.shapes.get(name, (0,))  # nothing was dequeued: an error
                made[name] = numpy.full(shape, gradient["fill"], numpy.float32)
            elif gradient is not None:
                made[name] = numpy.array(_numbers(gradient), numpy.float32)
            else:
                made[name] = None
        return made

    def factors(self, body: Any) -> dict[str, Any]:
        assert not body.get("sums"), "Python has no word for gradients that are sums"
        rates = {name: _numbers(rate) for name, rate in (body.get("learning_rates") or {}).items()}
        factor = body.get("multiplier")
        return {"rates": rates, "multiplier": None if factor is None else _numbers(factor)}

    def apply_gradients(self, body: Any) -> None:
        self.engine.apply_gradients(self.gradients(body["gradients"]), body.get("replica", 0),
                                    timeout=0, **self.factors(body))

    def update(self, body: Any) -> None:
        self.engine.update(_inputs(body["features"]), self.gradients(body["gradients"]),
                           timeout=0, replica=body.get("replica", 0), **self.factors(body))

    def discard(self, body: Any) -> None:
        self.engine.discard(body.get("replica", 0), 0)

    def expect_gradients(self, body: Any) -> None:
        inputs, gradients = _inputs(body["features"]), self.gradients(body["gradients"])
        norm, _ = self.engine.gradient_norm(inputs, gradients)
        if "norm" in body:
            self.expect(norm=norm)
            _compare("norm", numpy.array(norm), body["norm"], body)
        wanted = dict.fromkeys(body.get("weights") or {})
        if "weights" in body:
            self.engine.weight_gradients(inputs, gradients, wanted)
            self.expect(weights={name: wanted[name] for name in body["weights"]})
        for name, expected in (body.get("weights") or {}).items():
            _compare(name, self.keep(wanted[name]), expected, body)

    def expect_table(self, body: Any) -> None:
        view, slot = self.engine[body["table"]], body.get("slot", "parameters")
        rows = body.get("rows")
        found = self.keep(view.read(rows, slot=slot))
        self.expect(values=found)
        rows = list(range(len(view))) if rows is None else rows
        expected = _matrix(body["values"], rows, found.shape[1])
        _compare(f"{view.name}/{slot}", found, expected.tolist(), body)

    def expect_stats(self, body: Any) -> None:
        stats = self.engine[body["table"]].stats(clear=True)
        for name in set(body) - {"table"}:
            if stats[name] != body[name]:
                raise Mismatch(f"{name} is {stats[name]}, expected {body[name]}")

    def freeze(self, body: Any) -> None:
        view = self.engine[body["table"]]
        view.frozen = body["frozen"]
        if view.frozen != body["frozen"]:
            raise Mismatch(f"table {view.name} is not as it was set")

    def add_tables(self, body: Any) -> None:
        tables, features = body.get("tables", []), body.get("features", [])
        self.engine.add([_table(t, self.trains) for t in tables], [_feature(f) for f in features])
        self.start(self.engine, tables, self.trains)

    def fill(self, body: Any) -> None:
        initializer = _initializer(body["initializer"])
        assert initializer
        self.engine[body["table"]].fill(initializer, slot=body.get("slot"),
                                        first=body.get("first", 0), count=body.get("count"))

    def find(self, name: str) -> Path:
        path = self.folder / name
        if self.folder not in path.resolve().parents:
            raise ValueError(f"dir '{name}' must be in the folder of the run: relative, without ..")
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def save(self, body: Any) -> None:
        self.engine.save(self.find(body["dir"]), progress=False, not_finite=True)

    def restore(self, body: Any) -> None:
        self.engine.restore(self.find(body["dir"]), progress=False)

    def reopen(self, body: Any) -> None:
        self.open(body.get("engine"), body.get("optimizer", True))


# -- running -----------------------------------------------------------------------------


def _codes_of(error: Exception) -> set[str]:
    """Names of the errno of an error; of one that the package found itself, those of its kind."""
    if isinstance(error, embeng.EmbengError):
        name = errno.errorcode[-error.code]
        return {{"EOPNOTSUPP": "ENOTSUP"}.get(name, name)}
    if type(error) is ValueError:
        return {"EINVAL", "ERANGE"}
    return {"EINVAL"} if type(error) is TypeError else set()


def _check_error(key: str, expected: Any, error: Exception) -> None:
    found = _codes_of(error)
    assert expected.get("errno") in {None, *found}, f"{found}: {error!r}"
    if key not in OTHER_WORDS:
        for text in expected.get("contains", []):
            assert text.lower() in str(error).lower(), f"'{text}' is not in '{error}'"


def _attempt(key: str, expected: Any, act: Any, *arguments: Any) -> None:
    try:
        act(*arguments)
    except Mismatch:
        raise
    except Exception as error:
        if expected is None:
            raise
        _check_error(key, expected, error)
        return
    assert expected is None, f"must fail with {expected}"


def _run(path: Path, folder: Path, cores: int) -> Runner:
    vector, key = _read(path), _key(path)
    runner = Runner(vector, folder, cores)
    try:
        _attempt(key, vector.get("model_error"), runner.open, vector.get("engine"), True)
        for number, step in enumerate(vector["steps"]):
            verb = next(verb for verb in step if verb != "error")
            runner.step = runner.exact["steps"][number][verb]
            try:
                _attempt(key, step.get("error"), getattr(runner, verb), step[verb])
            except Exception as error:
                raise AssertionError(f"step {number}, {verb}: {error}") from error
    finally:
        runner.close()
    return runner


@pytest.mark.parametrize("path", RUNNABLE, ids=_key)
def test_vector(path: Path, tmp_path: Path) -> None:
    one, two = (_run(path, tmp_path / str(cores), cores) for cores in (1, 2))
    assert one.seen == two.seen


def test_bits_of_c(tmp_path: Path) -> None:
    """`embeng conform` finds the bits that the package gave, in all vectors."""
    exact = tmp_path / "exact"
    for path in RUNNABLE:
        place = (exact / _key(path)).with_suffix(".json")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(json.dumps(_run(path, tmp_path / "runs" / _key(path), 1).exact))
    command = os.environ["EMBENG_COMMAND"]
    done = subprocess.run([command, "conform", "-d", "soft:cores=1", exact], text=True,
                          capture_output=True, check=False)
    bad = [line for line in done.stdout.splitlines() if line.startswith("not ok")]
    assert (done.returncode, bad) == (0, []), done.stdout[-4000:] + done.stderr
    assert done.stdout.count("\nok ") + done.stdout.startswith("ok ") == len(RUNNABLE)
    assert done.stdout.count("# SKIP") == 0


def test_exact_vectors_are_judged(tmp_path: Path) -> None:
    """One bit of difference fails an exact vector."""
    path = next(path for path in RUNNABLE if "expect_table" in path.read_text())
    runner = _run(path, tmp_path / "run", 1)
    values = next(step["expect_table"]["values"] for step in runner.exact["steps"]
                  if "expect_table" in step)
    values[0][0] = float(numpy.nextafter(numpy.float32(values[0][0]), numpy.float32(9)))
    (tmp_path / "off.json").write_text(json.dumps(runner.exact))
    done = subprocess.run([os.environ["EMBENG_COMMAND"], "conform", "-d", "soft:cores=1",
                           tmp_path / "off.json"], text=True, capture_output=True, check=False)
    assert done.returncode == 1 and "expect_table" in done.stdout


@pytest.mark.parametrize("key", NOT_IN_PYTHON)
def test_list_is_no_longer_than_it_must_be(key: str, tmp_path: Path) -> None:
    """A vector that can be said in Python must not be on the list."""
    with pytest.raises(AssertionError):
        _run(FOLDER / f"{key}.json", tmp_path, 1)


def test_verbs_without_a_function() -> None:
    # Engine.partition() is for embeng.jax, whose tests compare it with jax-tpu-embedding's own.
    others = NO_VERBS - {"lookup", "partition"}
    assert not [verb for verb in others if hasattr(embeng.Engine, verb)]
    with_functions = sum(not _has_no_verb(_read(path)) for path in ALL)
    assert len(RUNNABLE) + len(NOT_IN_PYTHON) == with_functions
    assert len(RUNNABLE) > 0.98 * with_functions

# SPDX-License-Identifier: MIT
"""Lookups, updates, rows and checkpoints against a model in numpy: any sequence, any sizes."""
import copy
import io
import pickle
from typing import Any

import numpy
import pytest
from support import make_engine
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import Bags, ReferenceTable

import embeng
from embeng import Engine, Feature, Ragged, Sparse, Table

COMBINERS = ["sum", "mean", "sqrtn", "max"]
OPTIMIZERS = {"sgd": embeng.optimizers.sgd, "adagrad": embeng.optimizers.adagrad,
              "adam": embeng.optimizers.adam_corrected}
FORMS = ["splits", "starts", "lengths", "splits32", "matrix", "padded", "lists", "sparse"]


class Pair:
    """An engine on one core, one on two, and the model, which all do the same."""

    def __init__(self, combiner: str, optimizer: str, seed: int):
        rng = numpy.random.default_rng(seed)
        self.rows = {"a": int(rng.integers(1, 9)), "b": int(rng.integers(1, 40))}
        dims = {"a": int(rng.integers(1, 20)), "b": int(rng.integers(1, 5))}
        tables = [Table(name, self.rows[name], dims[name], combiner, OPTIMIZERS[optimizer](0.1))
                  for name in "ab"]
        self.features = {"f": ("a", 0), "g": ("a", 2), "h": ("b", 0)}
        features = [Feature(name, table, length)
                    for name, (table, length) in self.features.items()]
        self.engines = [Engine(tables, features, cores=cores) for cores in (1, 2)]
        self.model = {name: ReferenceTable(self.engines[0][name].read(), combiner, optimizer, 0.1)
                      for name in "ab"}
        self.combiner = combiner
        self.saved: list[tuple[bytes, dict[str, ReferenceTable]]] = []

    def close(self) -> None:
        for engine in self.engines:
            engine.close()

    # -- inputs

    def make_bags(self, feature: str, rng: numpy.random.Generator, samples: int) -> Bags:
        table, length = self.features[feature]
        lengths = rng.integers(0, 5, samples)
        if rng.random() < 0.2:
            lengths[:] = lengths[:1].sum()  # as a matrix has it
        ids = [rng.integers(0, self.rows[table], n).tolist() for n in lengths]
        weights = None
        if not length and self.combiner != "max" and rng.random() < 0.5:
            weights = [rng.uniform(0.25, 2, n).astype(numpy.float32).tolist() for n in lengths]
        return Bags(ids, weights, length)

    def express(self, bags: Bags, rng: numpy.random.Generator) -> Any:
        """Return the bags in one of the forms that the package takes."""
        form = str(rng.choice(FORMS))
        lengths = numpy.array([len(bag) for bag in bags.ids], numpy.int64)
        dtype = numpy.int32 if rng.random() < 0.5 else numpy.int64
        values = numpy.array([i for bag in bags.ids for i in bag], dtype)
        flat = None
        if bags.weights is not None:
            flat = numpy.array([w for bag in bags.weights for w in bag], numpy.float32)
        splits = numpy.concatenate([[0], numpy.cumsum(lengths)]).astype(numpy.int64)
        even = len(set(lengths.tolist())) == 1
        if form == "matrix" and even and flat is None:
            return values.reshape(len(lengths), -1)
        if form == "lists":
            return Ragged.from_lists(bags.ids, bags.weights)
        if form == "sparse" and not bags.sequence:
            samples = numpy.repeat(numpy.arange(len(lengths)), lengths)
            places = numpy.arange(len(values)) - splits[samples] if len(values) else samples
            return Sparse(numpy.stack([samples, places], 1), values, (len(lengths), 5), flat)
        if form == "padded":
            return self.pad(bags, values, lengths, flat)
        if form == "starts":
            return Ragged(values, starts=splits[:-1], weights=flat)
        if form == "lengths":
            return Ragged(values, lengths=lengths, weights=flat)
        return Ragged(values, splits=splits.astype(numpy.int32) if form == "splits32" else splits,
                      weights=flat)

    @staticmethod
    def pad(bags: Bags, values: Any, lengths: Any, flat: Any) -> Ragged:
        """Put an id of -7 into each bag, which is padding."""
        splits = numpy.cumsum(lengths) - lengths
        padded = numpy.insert(values, splits, -7) if len(lengths) else values
        weights = None
        if flat is not None:
            weights = numpy.insert(flat, splits, 9) if len(lengths) else flat
        return Ragged(padded, lengths=lengths + 1, weights=weights, padding=-7)

    # -- steps

    def batch(self, rng: numpy.random.Generator, samples: int) -> tuple[dict[str, Bags], Any]:
        chosen = [name for name in self.features if rng.random() < 0.8]
        bags = {name: self.make_bags(name, rng, samples) for name in chosen}
        return bags, {name: self.express(bags[name], rng) for name in chosen}

    def lookup(self, rng: numpy.random.Generator, samples: int) -> None:
        bags, inputs = self.batch(rng, samples)
        found = [engine.lookup(inputs) for engine in self.engines]
        for name, bag in bags.items():
            expected = self.model[self.features[name][0]].lookup(bag)
            assert found[0][name].dtype == numpy.float32
            assert found[0][name].tobytes() == found[1][name].tobytes()
            numpy.testing.assert_allclose(found[0][name], expected, rtol=2e-4, atol=2e-5)
        assert set(found[0]) == set(bags)

    def update(self, rng: numpy.random.Generator, samples: int) -> None:
        bags, inputs = self.batch(rng, samples)
        gradients: dict[str, Any] = {}
        by_table: dict[str, list[Any]] = {"a": [], "b": []}
        for name, bag in bags.items():
            table = self.features[name][0]
            shape = self.model[table].lookup(bag).shape
            values = rng.uniform(-1, 1, shape).astype(numpy.float32)
            if rng.random() < 0.2:
                values[:] = 0
                gradients[name] = None
            else:
                gradients[name] = values
            by_table[table].append((bag, values.astype(float)))
        for engine in self.engines:
            engine.update(inputs, gradients)
        for table, batch in by_table.items():
            self.model[table].update(batch)

    def read(self, rng: numpy.random.Generator, samples: int) -> None:
        for name, table in self.model.items():
            rows = rng.integers(0, self.rows[name], samples)
            for slot in ("parameters", *table.slots):
                one, two = (engine[name].read(rows, slot=slot) for engine in self.engines)
                expected = table.rows if slot == "parameters" else table.slots[slot]
                assert one.tobytes() == two.tobytes()
                numpy.testing.assert_allclose(one, expected[rows], rtol=2e-4, atol=2e-5)

    def write(self, rng: numpy.random.Generator, samples: int) -> None:
        for name, table in self.model.items():
            rows = rng.permutation(self.rows[name])[:samples]
            values = rng.uniform(-1, 1, (len(rows), table.rows.shape[1])).astype(numpy.float32)
            for engine in self.engines:
                engine[name].write(values, rows)
            table.rows[rows] = values

    def save(self, rng: numpy.random.Generator, samples: int) -> None:
        stream = io.BytesIO()
        self.engines[samples % 2].save(stream, progress=False)
        self.saved.append((stream.getvalue(), copy.deepcopy(self.model)))

    def restore(self, rng: numpy.random.Generator, samples: int) -> None:
        if self.saved:
            content, model = self.saved[samples % len(self.saved)]
            for engine in self.engines:
                engine.restore(io.BytesIO(content), progress=False)
            self.model = copy.deepcopy(model)


STEPS = st.tuples(st.sampled_from(["lookup", "update", "read", "write", "save", "restore"]),
                  st.integers(0, 2**32 - 1), st.integers(0, 6))


@settings(max_examples=60)
@given(st.sampled_from(COMBINERS), st.sampled_from(list(OPTIMIZERS)), st.integers(0, 2**32 - 1),
       st.lists(STEPS, max_size=12))
def test_any_sequence_equals_the_model(combiner: str, optimizer: str, seed: int,
                                       steps: list[tuple[str, int, int]]) -> None:
    pair = Pair(combiner, optimizer, seed)
    try:
        for verb, step_seed, samples in steps:
            getattr(pair, verb)(numpy.random.default_rng(step_seed), samples)
        pair.lookup(numpy.random.default_rng(seed), 5)
        pair.read(numpy.random.default_rng(seed), 5)
        counted = max(table.steps for table in pair.model.values())
        assert [engine.step for engine in pair.engines] == [counted, counted]
    finally:
        pair.close()


@pytest.mark.parametrize("combiner", COMBINERS)
@pytest.mark.parametrize("form", FORMS)
def test_each_form_of_input(form: str, combiner: str, monkeypatch: pytest.MonkeyPatch,
                            rng: numpy.random.Generator) -> None:
    pair = Pair(combiner, "sgd", 3)
    monkeypatch.setattr("test_engine.FORMS", [form])
    for samples in (0, 1, 6):
        pair.lookup(rng, samples)
        pair.update(rng, samples)
    pair.close()


# -- lookups that are cut into pieces ------------------------------------------------------


def _large_engine(**options: Any) -> Engine:
    table = Table("t", 1000, 64, "mean", initializer=embeng.initializers.uniform(-1, 1, seed=1))
    dropping = Table("u", 1000, 64, "sum", out_of_range="drop",
                     initializer=embeng.initializers.uniform(-1, 1, seed=2))
    return Engine([table, dropping], [Feature("f", "t"), Feature("g", "u"),
                                      Feature("s", "t", max_sequence_length=2)], cores=2, **options)


def _large_inputs(rng: numpy.random.Generator, form: str, samples: int) -> Ragged:
    lengths = rng.integers(0, 4, samples)
    lengths[0] += 3
    values = rng.integers(0, 1000, lengths.sum()).astype(
        numpy.int32 if form.endswith("32") else numpy.int64)
    weights = rng.uniform(0.5, 1, len(values)).astype(numpy.float32)
    splits = numpy.concatenate([[0], numpy.cumsum(lengths)])
    if form.startswith("splits"):
        return Ragged(values, splits=splits.astype(values.dtype), weights=weights)
    if form == "starts":
        return Ragged(values, starts=splits[:-1], weights=weights)
    return Ragged(values, lengths=lengths.astype(values.dtype), weights=weights)


@pytest.mark.parametrize("form", ["splits", "splits32", "starts", "lengths", "lengths32"])
def test_pieces_have_the_bits_of_small_lookups(form: str, rng: numpy.random.Generator) -> None:
    samples = 150_000
    bags = _large_inputs(rng, form, samples)
    dense = rng.integers(-5, 1005, 100_001)
    ends = numpy.cumsum(bags.lengths) if bags.lengths is not None else (
        bags.splits[1:] if bags.splits is not None else [*bags.starts[1:], len(bags.values)])
    ends = numpy.asarray(ends)
    with _large_engine() as engine:
        out = numpy.full((samples, 70), 9, numpy.float32)
        found = engine.lookup({"f": bags, "g": dense}, out={"f": out[:, 2:66]})
        assert engine.counters()["lookups"] > 2
        for first in (0, 1, 74_321, samples - 40):
            begin = ends[first - 1] if first else 0
            last = first + 40
            part = Ragged(bags.values[begin:ends[last - 1]],
                          lengths=numpy.diff(ends[first:last], prepend=ends[first])
                          + numpy.array([ends[first] - begin] + [0] * 39),
                          weights=bags.weights[begin:ends[last - 1]])
            small = engine.lookup({"f": part, "g": dense[first // 2:first // 2 + 30]})
            assert found["f"][first:last].tobytes() == small["f"].tobytes()
            assert found["g"][first // 2:first // 2 + 30].tobytes() == small["g"].tobytes()
        assert (out[:, :2] == 9).all() and (out[:, 66:] == 9).all()


def test_pieces_of_sequences_matrices_and_padding(rng: numpy.random.Generator) -> None:
    ids = rng.integers(0, 1000, (80_000, 3))
    ids[::7, 1] = -1
    with _large_engine() as engine:
        found = engine.lookup({"s": Ragged(ids, padding=-1), "f": Ragged(ids[:9], padding=-1)})
        rows = engine["t"].read()
        for sample in (0, 1, 7, 40_000, 79_996):
            kept = [i for i in ids[sample] if i >= 0][:2]
            numpy.testing.assert_array_equal(found["s"][sample], rows[kept])
        assert found["f"].shape == (9, 64)


@pytest.mark.parametrize("dtype", [numpy.int32, numpy.int64])
def test_pieces_of_keyed_inputs(dtype: Any, rng: numpy.random.Generator) -> None:
    """A large keyed input has the bits of its features' bags, with a stride and without."""
    samples = 80_000
    bags = {name: _large_inputs(rng, "lengths", samples) for name in "fg"}
    values, lengths, weights = (numpy.concatenate([getattr(bags[name], part) for name in "ffg"])
                                for part in ("values", "lengths", "weights"))
    keyed = embeng.Keyed(("f", None, "g"), values.astype(dtype), lengths.astype(dtype), weights)
    with _large_engine() as engine:
        expected = {name: engine.lookup({name: bags[name]})[name] for name in "fg"}
        before = engine.counters()["lookups"]
        found = engine.lookup(keyed)
        assert engine.counters()["lookups"] >= before + 2
        assert found.tobytes() == numpy.hstack([expected["f"], expected["g"]]).tobytes()
        apart = engine.lookup(keyed._replace(samples=[samples] * 3))
        assert apart.tobytes() == expected["f"].tobytes() + expected["g"].tobytes()


@pytest.mark.parametrize("rank", [2, 3])
def test_pieces_of_sparse_inputs(rank: int, rng: numpy.random.Generator) -> None:
    bags = _large_inputs(rng, "lengths", 160_000)
    samples = numpy.repeat(numpy.arange(160_000), bags.lengths)
    within = numpy.concatenate([numpy.arange(length) for length in bags.lengths])
    if rank == 2:
        shape, places = [160_000, 9], [samples, within]
    else:
        shape, places = [400, 400, 9], [samples // 400, samples % 400, within]
    sparse = embeng.Sparse(numpy.stack(places, axis=1), bags.values, shape, bags.weights)
    with _large_engine() as engine:
        names = "fs" if rank == 2 else "f"
        expected = engine.lookup({name: bags._replace(weights=None) if name == "s" else bags
                                  for name in names})
        before = engine.counters()["lookups"]
        found = engine.lookup({name: sparse._replace(weights=None) if name == "s" else sparse
                               for name in names})
        assert engine.counters()["lookups"] >= before + 2
        for name in names:
            assert found[name].tobytes() == expected[name].tobytes()


def test_pieces_are_refused_as_a_whole(rng: numpy.random.Generator) -> None:
    """A bad id, weight or length at the end of a large batch leaves the output as it was."""
    with _large_engine() as engine:
        out = numpy.full((200_000, 64), 5, numpy.float32)
        ids = rng.integers(0, 1000, 200_000)
        ids[-1] = 1000
        with pytest.raises(embeng.OutOfRangeError, match="feature f, sample 199999: id 1000 is"):
            engine.lookup({"f": ids}, out={"f": out})
        bags = _large_inputs(rng, "lengths", 200_000)
        bags.weights[-1] = numpy.nan
        with pytest.raises(embeng.OutOfRangeError, match="sample 19999[0-9]: weight"):
            engine.lookup({"f": bags}, out={"f": out})
        bags.weights[-1], bags.lengths[-1] = 1, -1
        with pytest.raises(embeng.InvalidError, match="feature f"):
            engine.lookup({"f": bags}, out={"f": out})
        assert (out == 5).all()


def test_large_batches_with_fixed_shapes_are_not_cut(rng: numpy.random.Generator) -> None:
    with _large_engine(fixed_shapes=True) as engine:
        before = engine.counters()["lookups"]
        engine.lookup({"f": rng.integers(0, 1000, 200_000), "g": [1], "s": [[1]]})
        assert engine.counters()["lookups"] == before + 1


# -- copies ----------------------------------------------------------------------------------


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))])
def test_copies_train_apart(duplicate: Any, rng: numpy.random.Generator) -> None:
    with make_engine() as engine:
        gradients = rng.uniform(-1, 1, (3, 4)).astype(numpy.float32)
        engine.update({"f": [1, 2, 3]}, {"f": gradients})
        with duplicate(engine) as other:
            assert other["t"].read().tobytes() == engine["t"].read().tobytes()
            assert (other.step, other.tables, other.features) == (1, engine.tables, engine.features)
            engine.update({"f": [1]}, {"f": gradients[:1]})
            assert not numpy.array_equal(other["t"][1], engine["t"][1])
            other.update({"f": [1]}, {"f": gradients[:1]})
            assert other["t"].read().tobytes() == engine["t"].read().tobytes()


def test_each_engine_has_a_handle_of_its_own():
    handles = []
    for _ in range(3):
        with embeng.Engine([embeng.Table("t", 4, 2)]) as engine:
            assert isinstance(engine.handle, int)
            handles.append(engine.handle)
        assert engine.closed
        assert engine.handle == handles[-1]
    assert len(set(handles)) == 3
    assert handles == sorted(handles)

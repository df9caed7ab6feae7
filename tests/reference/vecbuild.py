# SPDX-License-Identifier: MIT
"""Vectors as scripts: each verb runs on the reference, which fills in what comes out."""

import copy
import json
import math

from embref import Engine
from refconfig import configuration
from referror import RefError
from refimport import imported
from refpartition import partition
from refserving import serve
from refspread import spread
from refstacking import stacking

WIDTH = 100


def rounded(x):
    """Nested numbers at 9 significant digits, in JSON's terms."""
    if isinstance(x, dict):
        return {key: rounded(value) for key, value in x.items()}
    if isinstance(x, list):
        return [rounded(value) for value in x]
    if math.isnan(x):
        return "nan"
    if math.isinf(x):
        return "inf" if x > 0 else "-inf"
    return float(f"{x:.9g}") + 0.0


def numbers(count, seed):
    """Small dyadic numbers of both signs, exact in f32; 0 among them."""
    return [((i * 7 + seed * 13 + 5) % 33 - 16) / 16 for i in range(count)]


def nested(flat, shape):
    if len(shape) == 1:
        return list(flat)
    part = math.prod(shape[1:])
    return [nested(flat[i * part:(i + 1) * part], shape[1:]) for i in range(shape[0])]


class Vector:
    """A vector file being made; name, about and model first, then its steps."""

    def __init__(self, name, about, tables, features, engine=None, requires=None):
        self.doc = {"schema": "embeng.vector/1", "name": name, "about": about}
        if requires:
            self.doc["requires"] = requires
        if engine:
            self.doc["engine"] = engine
        self.doc.update(tables=tables, features=features)
        self.steps = []
        self.ref = None
        self.doc["steps"] = self.steps

    @property
    def engine(self):
        if self.ref is None:
            self.ref = Engine(copy.deepcopy(self.doc["tables"]),
                              copy.deepcopy(self.doc["features"]),
                              **self.doc.get("engine", {}))
        return self.ref

    def refused(self, errno=None, contains=()):
        """The model must not build."""
        self.doc["model_error"] = self._fail(lambda: self.engine, errno, contains)
        return self

    def _fail(self, call, errno, contains):
        try:
            call()
        except RefError as e:
            for text in contains:
                assert text.lower() in str(e).lower(), f"{text!r} is not in {e}"
            assert errno in (None, e.errno), f"{e.errno}: {e}"
        else:
            raise AssertionError(f"{self.doc['name']}: the reference did not fail")
        error = {"errno": errno} if errno else {}
        if contains:
            error["contains"] = list(contains)
        return error

    def _step(self, verb, body, call, error):
        """Run one step; returns what the reference gave, None where it must fail."""
        step = {verb: body}
        self.steps.append(step)
        if error is not None:
            step["error"] = self._fail(call, error.get("errno"), error.get("contains", ()))
            return None
        return call()

    @staticmethod
    def _body(replica, **rest):
        return {**({"replica": replica} if replica else {}), **rest}

    def enqueue(self, features, replica=0, training=True, error=None):
        kind = {} if training else {"training": False}
        body = self._body(replica, **kind, features=features)
        self._step("enqueue", body, lambda: self.engine.enqueue(features, replica, training),
                   error)

    def dequeue(self, replica=0, only=None, error=None, **tolerance):
        """only: names of the features to compare, [] to drain without looking."""
        body = self._body(replica, expect={})
        out = self._step("dequeue", body, lambda: self.engine.dequeue(replica), error)
        for name in (out or {}):
            if only is None or name in only:
                body["expect"][name] = rounded(out[name])
        body.update(tolerance)

    @staticmethod
    def _given(**options):
        return {key: value for key, value in options.items() if value is not None}

    def apply(self, gradients=None, replica=0, rates=None, error=None, multiplier=None, sums=None):
        gradients = gradients or {}
        body = self._body(replica, gradients=gradients)
        if rates is not None:
            body["learning_rates"] = rates
        given = self._given(multiplier=multiplier, sums=sums)
        body.update(given)
        self._step("apply_gradients", body,
                   lambda: self.engine.apply_gradients(gradients, replica, rates, **given), error)

    def update(self, features, gradients=None, replica=0, rates=None, error=None,
               multiplier=None, sums=None):
        """Gradients of a batch that is not looked up."""
        gradients = gradients or {}
        body = self._body(replica, features=features, gradients=gradients)
        if rates is not None:
            body["learning_rates"] = rates
        given = self._given(multiplier=multiplier, sums=sums)
        body.update(given)
        self._step("update", body, lambda: self.engine.update(features, gradients, replica, rates,
                                                              **given), error)

    def discard(self, replica=0, error=None):
        self._step("discard", self._body(replica), lambda: self.engine.discard(replica), error)

    def told(self, features, gradients, weights=(), replica=0, error=None, **tolerance):
        """Norms of gradients, and the gradients of the weights of these features, without a step."""
        body = self._body(replica, features=features, gradients=gradients,
                          weights={name: [] for name in weights})
        out = self._step("expect_gradients", body, lambda: self.engine.told_gradients(
            features, gradients, replica, weights), error)
        if out is not None:
            body["norm"] = rounded(math.hypot(*out[0].values()))
            body["tables"], body["weights"] = rounded(out[0]), rounded(out[1])
        body.update(tolerance)

    def table(self, table="t", slot=None, rows=None, error=None, **tolerance):
        body = {"table": table}
        if slot:
            body["slot"] = slot
        if rows is not None:
            body["rows"] = rows
        values = self._step("expect_table", body, lambda: self.engine.read_table(
            table, slot or "parameters", rows), error)
        body["values"] = {"fill": 0} if values is None else rounded(values)
        body.update(tolerance)

    def stats(self, table, *keys):
        body = {"table": table}
        counts = self._step("expect_stats", body,
                            lambda: self.engine.read_stats(table), None)
        keys = keys or [key for key in counts if key != "nonfinite_gradient_rows"]
        body.update((key, counts[key]) for key in keys)

    def serve(self, features, config=None, error=None, **tolerance):
        """Look up on the CPU; config: other features over the same tables."""
        body = {"features": features, "expect": {}}
        if config is not None:
            body["config"] = config
        out = self._step("lookup", body, lambda: serve(self.engine, features, config), error)
        for name in (out or {}):
            body["expect"][name] = rounded(out[name])
        body.update(tolerance)

    def freeze(self, table="t", frozen=True, error=None):
        self._step("freeze", {"table": table, "frozen": frozen},
                   lambda: self.engine.freeze(table, frozen), error)

    def fill(self, initializer, table="t", error=None, **more):
        """Rows anew: slot, first, count."""
        body = {"table": table, **more, "initializer": initializer}
        self._step("fill", body, lambda: self.engine.fill(table, initializer, **more), error)

    def partition(self, features, only=None, error=None, **options):
        """only: what of the result to compare, default all."""
        body = {**options, "features": features, "expect": {}}
        out = self._step("partition", body,
                         lambda: partition(self.engine.model, features, body), error)
        for key, value in (out or {}).items():
            if only is None or key in only:
                body["expect"][key] = rounded(value) if key == "items" else value

    def spread(self, features, gradients=None, error=None, tolerance=None, **options):
        """Rows by host, activations and sums of a batch, as hosts exchange them."""
        body = {**options, "features": features, "expect": {}}
        if gradients:
            body["gradients"] = gradients
        out = self._step("spread", body, lambda: spread(self.engine, features, gradients or {},
                                                        **options), error)
        for key, value in (out or {}).items():
            body["expect"][key] = value if key == "rows" else rounded(value)
        body.update(tolerance or {})

    def stacking(self, error=None, **options):
        body = {**options, "expect": []}
        out = self._step("stacking", body, lambda: stacking(self.engine.model, body), error)
        body["expect"] = out or []

    def config(self, error=None):
        """The model as a protobuf, byte for byte."""
        body = {"hex": ""}
        given = self._step("expect_config", body, lambda: configuration(self.engine), error)
        body["hex"] = (given or b"").hex()

    def imports(self, given, error=None):
        """These bytes must mean the vector's model."""
        read = self._step("expect_config", {"import_hex": given.hex()}, lambda: imported(given),
                          error)
        assert error is not None or read == configuration(self.engine), self.doc["name"]

    def save(self, folder="a", error=None):
        self._step("save", {"dir": folder}, lambda: self.engine.save(folder), error)

    def restore(self, folder="a", error=None):
        self._step("restore", {"dir": folder}, lambda: self.engine.restore(folder), error)

    def add_tables(self, tables=(), features=(), error=None):
        tables, features = list(tables), list(features)
        body = {**({"tables": tables} if tables else {}),
                **({"features": features} if features else {})}
        self._step("add_tables", body, lambda: self.engine.add_tables(
            copy.deepcopy(tables), copy.deepcopy(features)), error)

    def reopen(self, optimizer=True, error=None, **engine):
        body = {**({"engine": engine} if engine else {}),
                **({} if optimizer else {"optimizer": False})}
        self._step("reopen", body, lambda: self.engine.reopen(engine, optimizer), error)

    def grads(self, seed, *names, replica=0):
        """Gradients of these features (default all), shaped as the batch that is answered next."""
        features, lookups = self.engine.model.features, self.engine.answered(replica)
        out = {}
        for k, name in enumerate(names or features):
            shape = lookups[name].shape + [features[name].table.dim]
            out[name] = nested(numbers(math.prod(shape), seed + k), shape)
        return out

    def lookup(self, features, **more):
        """Enqueue and dequeue one batch."""
        replica, training = more.pop("replica", 0), more.pop("training", True)
        self.enqueue(features, replica, training)
        self.dequeue(replica, **more)

    def train(self, features, gradients=None, seed=1, rates=None):
        """One whole step of replica 0."""
        self.lookup(features)
        self.apply(self.grads(seed) if gradients is None else gradients, rates=rates)


# -- shorthands of the scripts -----------------------------------------------

def sgd(rate=0.5, **more):
    return {"kind": "sgd", "learning_rate": rate, **more}


def adagrad(rate=0.5, **more):
    return {"kind": "adagrad", "learning_rate": rate, **more}


def table(name="t", rows=8, dim=3, **more):
    """A table; sgd and dyadic initial values unless told otherwise."""
    out = {"name": name, "vocabulary_size": rows, "dim": dim}
    out.update(more)
    out.setdefault("optimizer", sgd())
    out.setdefault("initial", {"arange": [-1.0, 0.125]})
    return out


def feature(name="f", on="t", **more):
    return {"name": name, "table": on, **more}


def dense(ids, shape=None):
    return {"dense": ids, **({"shape": shape} if shape else {})}


def sparse(indices, values, shape, weights=None):
    out = {"sparse": {"indices": indices, "values": values, "shape": shape}}
    return out if weights is None else {**out, "weights": weights}


def ragged(rows, weights=None):
    out = {"ragged": {"rows": rows}}
    return out if weights is None else {**out, "weights": weights}


def splits(values, row_splits, weights=None):
    out = {"ragged": {"values": values, "row_splits": row_splits}}
    return out if weights is None else {**out, "weights": weights}


# -- one form for the files --------------------------------------------------

def _fill(parts, indent):
    """Scalars, as many a line as fit."""
    lines, line = [], indent
    for k, part in enumerate(parts):
        piece = part + ("," if k + 1 < len(parts) else "")
        if line != indent and len(line) + 1 + len(piece) > WIDTH:
            lines.append(line)
            line = indent
        line += piece if line == indent else " " + piece
    return lines + [line]


def pretty(x, indent="", lead=0):
    """JSON that fits in WIDTH columns, broken only where it must be."""
    flat = json.dumps(x)
    if len(indent) + lead + len(flat) < WIDTH or not isinstance(x, (dict, list)) or not x:
        return flat
    inner = indent + "  "
    if isinstance(x, dict):
        parts = [f"{inner}{json.dumps(k)}: {pretty(v, inner, len(k) + 4)}"
                 for k, v in x.items()]
        return "{\n" + ",\n".join(parts) + "\n" + indent + "}"
    if not any(isinstance(v, (dict, list)) for v in x):
        return "[\n" + "\n".join(_fill([json.dumps(v) for v in x], inner)) + "\n" + indent + "]"
    if all(isinstance(v, list) and len(json.dumps(v)) < 40 for v in x):
        return "[\n" + "\n".join(_fill([json.dumps(v) for v in x], inner)) + "\n" + indent + "]"
    return "[\n" + ",\n".join(inner + pretty(v, inner) for v in x) + "\n" + indent + "]"

# SPDX-License-Identifier: MIT
"""Models of the reference: tables, features, and what is refused (docs/spec/semantics.md 1)."""

import math

from referror import require
from refoptim import Optimizer
from refrandom import Initializer, Part

COMBINERS = ("sum", "mean", "sqrtn", "max")
POLICIES = ("error", "clamp", "drop", "zero")


# Slots that an optimizer cannot go on from where they are below 0: it takes their root or power.
FROM_0 = {
    "adagrad": ("accumulators",), "adagrad_momentum": ("accumulators",),
    "ftrl": ("accumulators",), "adam": ("velocities",), "rms_prop": ("ms",),
    "centered_rms_prop": ("ms",), "adadelta": ("accumulators", "updates"),
    "proximal_adagrad": ("accumulators",), "laprop": ("nu",), "proximal_yogi": ("v",),
    "bounded_adagrad": ("accumulators",), "online_yogi": ("vs",),
    "frequency_aware_adagrad": ("accumulators", "counters"),
    "mdl_adagrad_light": ("accumulators",), "rowwise_adagrad": ("accumulators",),
    "partial_rowwise_adam": ("velocities",)}


def numbers_of(matrix):
    """The numbers that a matrix is written with."""
    if matrix is None:
        return []
    if isinstance(matrix, dict):
        return [float(matrix["fill"])] if "fill" in matrix else []
    return [float(x) for row in matrix for x in row]


class Matrix:
    """Rows made when first asked for, so that vocabularies may be large."""

    def __init__(self, dim, spec, start=None):
        """start: what makes a row where the spec says nothing."""
        self.dim = dim
        self.spec = spec
        self.start = start
        self.rows = {}

    def _start(self, r):
        spec, dim = self.spec, self.dim
        if spec is None and self.start:
            return self.start(r)
        assert spec is not None, "the vector reads rows that the spec leaves random"
        if isinstance(spec, list):
            return [float(x) for x in spec[r]]
        if "fill" in spec:
            return [float(spec["fill"])] * dim
        if "row_id" in spec:
            return [float(r + spec["row_id"])] * dim
        start, step = spec["arange"]
        return [start + step * (r * dim + c) for c in range(dim)]

    def row(self, r):
        if r not in self.rows:
            self.rows[r] = self._start(r)
        return self.rows[r]


class Quantization:
    """Levels that device lookups read instead of a row's values (docs/spec/semantics.md 1.3)."""

    def __init__(self, spec, where):
        self.buckets = spec["num_buckets"]
        self.lower, self.upper = float(spec["lower"]), float(spec["upper"])
        require(2 <= self.buckets < 2 ** 31, "ERANGE",
                f"{where}: quantization: num_buckets {self.buckets}")
        require(math.isfinite(self.lower) and math.isfinite(self.upper), "ERANGE",
                f"{where}: quantization: lower {self.lower}, upper {self.upper}: not finite")
        require(self.lower < self.upper, "ERANGE", f"{where}: quantization: lower {self.lower} is "
                f"not below upper {self.upper}")
        self.step = (self.upper - self.lower) / (self.buckets - 1)
        require(2.0 ** -126 <= self.step < 2.0 ** 128, "ERANGE",
                f"{where}: quantization: buckets are {self.step} apart, no normal number")

    def level(self, x):
        if math.isnan(x):
            return x
        x = min(max(x, self.lower), self.upper)
        return self.lower + self.step * math.floor((x - self.lower) / self.step + 0.5)


class Table:
    def __init__(self, spec):
        self.name = spec["name"]
        self.vocabulary_size = spec["vocabulary_size"]
        self.dim = spec["dim"]
        self.combiner = spec.get("combiner", "mean")
        self.policy = spec.get("out_of_range", "error")
        self.optimizer = None
        self._check()
        self.quantization = None
        if "quantization" in spec:
            self.quantization = Quantization(spec["quantization"], f"table {self.name}")
        if "optimizer" in spec:
            self.optimizer = Optimizer(spec["optimizer"], f"table {self.name}", self.dim)
        where = f"table {self.name}"
        self.part = Part(spec.get("part"), where, self.vocabulary_size, self.dim)
        start = self.starter("parameters", spec.get("initializer"), where)
        self.parameters = Matrix(self.dim, spec.get("initial"), start)
        self.slots = self._slots(spec.get("slots", {}))
        self.stats = {}
        self.frozen = spec.get("frozen", False)
        self.idle = 0             # updates of the model while it was frozen

    def starter(self, slot, spec, where):
        """A function that makes rows as an initializer says; None: the spec leaves them random."""
        if spec is None:
            return None
        names = ["parameters", *(self.optimizer.rule.SLOTS if self.optimizer else {})]
        narrow = slot in getattr(self.optimizer.rule, "ONE_NUMBER", ()) if self.optimizer else False
        initializer, number = Initializer(spec, where), names.index(slot)
        if initializer.kind == "default":
            if slot != "parameters":
                value = self.optimizer.slot_start(slot)
                return lambda r: [value] * len(self.part.columns(narrow))
            initializer.kind, initializer.b = "truncated_normal", 1 / math.sqrt(self.part.dim)
            initializer.a = 0.0
        return lambda r: initializer.row(self.name, number, self.part.row(r),
                                         self.part.columns(narrow))

    def trains(self):
        return self.optimizer is not None and not self.frozen

    def _check(self):
        for key in ("vocabulary_size", "dim"):
            value = getattr(self, key)
            require(value >= 1, "ERANGE", f"table {self.name}: {key} {value} is below 1")
        require(self.combiner in COMBINERS, "EINVAL",
                f"table {self.name}: unknown combiner {self.combiner}")
        require(self.policy in POLICIES, "EINVAL",
                f"table {self.name}: unknown out_of_range {self.policy}")

    def check_numbers(self, spec, any_number):
        """Numbers that are given; any_number: those that are not finite are fine."""
        for slot, given in (("parameters", spec.get("initial")), *spec.get("slots", {}).items()):
            signed = slot == "parameters" or slot not in FROM_0.get(spec["optimizer"]["kind"], ())
            for x in numbers_of(given):
                require(any_number or math.isfinite(x), "ERANGE",
                        f"table {self.name}, {slot}: {x} is not finite")
                require(signed or math.isnan(x) or x >= 0, "ERANGE",
                        f"table {self.name}, {slot}: {x} is below 0")

    def _slots(self, given):
        names = self.optimizer.rule.SLOTS if self.optimizer else {}
        for name in given:
            require(name in names, "ENOENT", f"table {self.name}: no slot {name}")
        single = getattr(self.optimizer.rule, "ONE_NUMBER", ()) if self.optimizer else ()
        return {name: Matrix(1 if name in single else self.dim,
                             given.get(name, {"fill": self.optimizer.slot_start(name)}))
                for name in names}

    def read(self, r):
        """A row as lookups on a device read it."""
        row = self.parameters.row(r)
        return [self.quantization.level(x) for x in row] if self.quantization else row

    def matrix(self, slot):
        if slot == "parameters":
            return self.parameters
        require(slot in self.slots, "ENOENT", f"table {self.name}: no slot {slot}")
        return self.slots[slot]

    def count(self, key, n=1):
        self.stats[key] = self.stats.get(key, 0) + n


class Feature:
    def __init__(self, spec, tables):
        self.name = spec["name"]
        require(spec["table"] in tables, "ENOENT",
                f"feature {self.name}: no table {spec['table']}")
        self.table = tables[spec["table"]]
        self.max_sequence_length = spec.get("max_sequence_length", 0)
        require(self.max_sequence_length >= 0, "ERANGE",
                f"feature {self.name}: max_sequence_length {self.max_sequence_length}")
        self.output_shape = spec.get("output_shape")
        self.shape = self.output_shape
        self.validate = spec.get("validate_weights_and_indices", True)


class Model:
    def __init__(self, tables, features, any_number=False):
        self.tables, self.features = {}, {}
        self.add(tables, features, any_number)

    def add(self, tables, features, any_number):
        """Tables and features behind those that are there; all of them or none."""
        all_tables, all_features = dict(self.tables), dict(self.features)
        for spec in tables:
            require(spec["name"] not in all_tables, "EEXIST",
                    f"table {spec['name']} is there twice")
            all_tables[spec["name"]] = table = Table(spec)
            table.check_numbers(spec, any_number)
        for spec in features:
            require(spec["name"] not in all_features, "EEXIST",
                    f"feature {spec['name']} is there twice")
            all_features[spec["name"]] = Feature(spec, all_tables)
        self.tables, self.features = all_tables, all_features

    def table(self, name):
        require(name in self.tables, "ENOENT", f"no table {name}")
        return self.tables[name]

    def dynamic_rates(self):
        names = []
        for table in self.tables.values():
            for name in table.optimizer.dynamic_rates() if table.optimizer else ():
                if name not in names:
                    names.append(name)
        return names

# SPDX-License-Identifier: MIT
"""Models of the reference: tables, features, and what is refused (semantics.md 1)."""

from referror import require
from refoptim import Optimizer

COMBINERS = ("sum", "mean", "sqrtn")
POLICIES = ("error", "clamp", "drop", "zero")


class Matrix:
    """Rows made when first asked for, so that vocabularies may be large."""

    def __init__(self, dim, spec):
        self.dim = dim
        self.spec = spec
        self.rows = {}

    def _start(self, r):
        spec, dim = self.spec, self.dim
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


class Table:
    def __init__(self, spec):
        self.name = spec["name"]
        self.vocabulary_size = spec["vocabulary_size"]
        self.dim = spec["dim"]
        self.combiner = spec.get("combiner", "mean")
        self.policy = spec.get("out_of_range", "error")
        self.optimizer = None
        self._check()
        if "optimizer" in spec:
            self.optimizer = Optimizer(spec["optimizer"], f"table {self.name}", self.dim)
        self.parameters = Matrix(self.dim, spec.get("initial"))
        self.slots = self._slots(spec.get("slots", {}))
        self.stats = {}

    def _check(self):
        for key in ("vocabulary_size", "dim"):
            value = getattr(self, key)
            require(value >= 1, "ERANGE", f"table {self.name}: {key} {value} is below 1")
        require(self.combiner in COMBINERS, "EINVAL",
                f"table {self.name}: unknown combiner {self.combiner}")
        require(self.policy in POLICIES, "EINVAL",
                f"table {self.name}: unknown out_of_range {self.policy}")

    def _slots(self, given):
        names = self.optimizer.rule.SLOTS if self.optimizer else {}
        for name in given:
            require(name in names, "ENOENT", f"table {self.name}: no slot {name}")
        return {name: Matrix(self.dim, given.get(name, {"fill": self.optimizer.slot_start(name)}))
                for name in names}

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
    def __init__(self, tables, features):
        self.tables = {}
        for spec in tables:
            require(spec["name"] not in self.tables, "EEXIST",
                    f"table {spec['name']} is there twice")
            self.tables[spec["name"]] = Table(spec)
        self.features = {}
        for spec in features:
            require(spec["name"] not in self.features, "EEXIST",
                    f"feature {spec['name']} is there twice")
            self.features[spec["name"]] = Feature(spec, self.tables)

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

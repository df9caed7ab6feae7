# SPDX-License-Identifier: MIT
"""Input forms of a feature to samples (docs/spec/semantics.md 1.5, 5.2, 5.8).

A lookup is a list of Sample in the row-major order of the feature's shape; each
has its (row, weight) pairs, row None for an id that reads zeros, and its scale.
"""

import math

from referror import require


class Sample:
    def __init__(self, entries, scale):
        self.entries = entries
        self.scale = scale


def scale_of(combiner, weights):
    """1/denominator of a bag; 0 where the denominator is 0."""
    if combiner in ("sum", "max"):
        return 1.0
    if combiner == "mean":
        denominator = sum(weights)
    else:
        denominator = math.sqrt(sum(w * w for w in weights))
    return 1.0 / denominator if denominator else 0.0


def first_largest(numbers):
    """The position of the largest, of the first one of several; NaN is above all."""
    best = 0
    for k, x in enumerate(numbers):
        if math.isnan(numbers[best]):
            break
        if math.isnan(x) or x > numbers[best]:
            best = k
    return best


def _weights(feature, given, count):
    if given is None:
        return [1.0] * count
    require(len(given) == count, "EINVAL",
            f"feature {feature.name}: {len(given)} weights for {count} ids")
    return [float(w) for w in given]


def _dense(feature, spec):
    ids = spec["dense"]
    shape = spec.get("shape", [len(ids)])
    require("weights" not in spec, "EINVAL",
            f"feature {feature.name}: weights with a dense input")
    require(math.prod(shape) == len(ids), "EINVAL",
            f"feature {feature.name}: {len(ids)} ids for shape {shape}")
    require(len(shape) == 1 or shape[-1] == 1, "EINVAL",
            f"feature {feature.name}: dense shape {shape} must end in 1")
    return [[(i, 1.0)] for i in ids], shape if len(shape) == 1 else shape[:-1]


def _sparse(feature, spec):
    name, coo = feature.name, spec["sparse"]
    shape, values, indices = coo["shape"], coo["values"], coo["indices"]
    require(len(shape) >= 2, "EINVAL", f"feature {name}: sparse shape {shape} has rank 1")
    require(len(indices) == len(values), "EINVAL",
            f"feature {name}: {len(indices)} indices for {len(values)} values")
    weights = _weights(feature, spec.get("weights"), len(values))
    bags = [[] for _ in range(math.prod(shape[:-1]))]
    last = None
    for index, value, weight in zip(indices, values, weights):
        require(len(index) == len(shape), "EINVAL", f"feature {name}: index {index}")
        require(all(0 <= i < n for i, n in zip(index, shape)), "ERANGE",
                f"feature {name}: index {index} is outside of shape {shape}")
        require(last is None or last <= index, "EINVAL",
                f"feature {name}: index {index} comes after {last}")
        last = index
        sample = 0
        for i, n in zip(index[:-1], shape):
            sample = sample * n + i
        bags[sample].append((value, weight))
    return bags, shape[:-1]


def _split(feature, values, splits):
    name = feature.name
    require(splits and splits[0] == 0, "EINVAL", f"feature {name}: row_splits start at 0")
    for a, b in zip(splits, splits[1:]):
        require(a <= b, "EINVAL", f"feature {name}: row_splits fall from {a} to {b}")
    require(splits[-1] == len(values), "EINVAL",
            f"feature {name}: row_splits end at {splits[-1]}, not {len(values)}")
    return [values[a:b] for a, b in zip(splits, splits[1:])]


def _ragged(feature, spec):
    ragged, weights = spec["ragged"], spec.get("weights")
    if "rows" in ragged:
        rows = ragged["rows"]
        if weights is None:
            weights = [None] * len(rows)
        require(len(weights) == len(rows), "EINVAL",
                f"feature {feature.name}: {len(weights)} rows of weights for {len(rows)}")
        weights = [_weights(feature, w, len(r)) for w, r in zip(weights, rows)]
    else:
        values, splits = ragged["values"], ragged["row_splits"]
        rows = _split(feature, values, splits)
        weights = _split(feature, _weights(feature, weights, len(values)), splits)
    return [list(zip(r, w)) for r, w in zip(rows, weights)], [len(rows)]


FORMS = {"dense": _dense, "sparse": _sparse, "ragged": _ragged}


def _limit(feature, sample, entry, counts):
    """Apply the table's policy to one id: a list of none or one (row, weight)."""
    (i, weight), table = entry, feature.table
    if 0 <= i < table.vocabulary_size:
        return [(i, weight)]
    require(table.policy != "error", "ERANGE",
            f"feature {feature.name}, sample {sample}: id {i} is not in "
            f"[0, {table.vocabulary_size}) of table {table.name}")
    counts.append({"clamp": "clamped_ids", "drop": "dropped_ids", "zero": "zeroed_ids"}[
        table.policy])
    if table.policy == "drop":
        return []
    if table.policy == "zero":
        return [(None, weight)]
    return [(min(max(i, 0), table.vocabulary_size - 1), weight)]


def kept_ids(feature, sample, entry):
    """The row that one id of a bag reads: a list of none or one (row, weight)."""
    return _limit(feature, sample, entry, [])


class Lookup:
    """One feature's part of a batch, checked; nothing of the model has moved."""

    def __init__(self, feature, spec, empty_ok=True):
        forms = [form for form in FORMS if form in spec]
        require(len(forms) == 1, "EINVAL", f"feature {feature.name}: one input form")
        require(feature.table.combiner != "max" or "weights" not in spec, "EINVAL",
                f"feature {feature.name}: the combiner max takes no weights")
        bags, lead = FORMS[forms[0]](feature, spec)
        length = feature.max_sequence_length
        sequence = (length > 0 and feature.output_shape is None and len(lead) == 1
                    and forms[0] != "dense")
        if sequence:
            lead = lead + [length]
        self.feature, self.empty_ok = feature, empty_ok
        self.ids = 0
        self.counts = []
        self.shape = self._shape(lead)
        self.weights = [w for bag in bags for _, w in bag]
        self.bags = bags          # as they were given
        self.form = forms[0]
        self.weighs = forms[0] != "dense" and not sequence
        bags = [self._take(s, bag, length if sequence else math.inf)
                for s, bag in enumerate(bags)]
        if sequence:
            self.samples = [Sample(bag[j:j + 1], 1.0) for bag in bags for j in range(length)]
        else:
            combiner = feature.table.combiner
            self.samples = [Sample(bag, scale_of(combiner, [w for _, w in bag]))
                            for bag in bags]

    def _take(self, sample, bag, most):
        """The ids of a bag that count: up to a sequence's length, dropped ones as if absent."""
        kept = []
        for entry in bag:
            if len(kept) == most:
                break
            self.ids += 1
            kept += _limit(self.feature, sample, entry, self.counts)
        return kept

    def _shape(self, lead):
        """An input of rank 1 or 2 fills a shape of higher rank; else 0 matches any length."""
        fixed, name = self.feature.shape, self.feature.name
        require(self.empty_ok or all(lead), "EINVAL", f"feature {name}: the input is empty")
        if fixed is None:
            return lead
        if len(lead) <= 2 and len(lead) < len(fixed):
            require(all(fixed), "EINVAL",
                    f"feature {name}: shape {fixed} is not fully defined")
            require(math.prod(fixed) == math.prod(lead), "EINVAL",
                    f"feature {name}: {math.prod(lead)} samples do not fill shape {fixed}")
            return fixed
        same = len(lead) == len(fixed) and all(w in (0, n) for w, n in zip(fixed, lead))
        require(same, "EINVAL",
                f"feature {name}: inconsistent shape: {lead} does not fit {fixed}")
        return lead

    def weights_finite(self):
        return all(math.isfinite(w) for w in self.weights)

    def _rows(self, sample):
        table = self.feature.table
        return [[0.0] * table.dim if r is None else table.read(r) for r, _ in sample.entries]

    def hold(self):
        """Finds the positions of the bags that hold the largest numbers of the rows as they are now."""
        self.holders = []
        for sample in self.samples:
            rows = self._rows(sample)
            self.holders.append([first_largest(column) for column in zip(*rows)])

    def _largest(self):
        dim = self.feature.table.dim
        for sample, holders in zip(self.samples, self.holders):
            rows = self._rows(sample)
            yield [rows[k][c] for c, k in enumerate(holders)] if rows else [0.0] * dim

    def activations(self):
        table = self.feature.table
        if table.combiner == "max":
            return list(self._largest())
        out = []
        for sample in self.samples:
            acc = [0.0] * table.dim
            for r, w in sample.entries:
                if r is not None:
                    acc = [a + w * x for a, x in zip(acc, table.read(r))]
            out.append([sample.scale * a for a in acc])
        return out

    def _held(self, gradient):
        for sample, holders, g in zip(self.samples, self.holders, gradient):
            for k, (r, _) in enumerate(sample.entries):
                if r is not None:
                    yield r, [x if holder == k else 0.0 for x, holder in zip(g, holders)]

    def occurrences(self, gradient):
        """(row, gradient of that row) in (sample, position) order."""
        if self.feature.table.combiner == "max":
            yield from self._held(gradient)
            return
        for sample, g in zip(self.samples, gradient):
            for r, w in sample.entries:
                if r is not None:
                    yield r, [sample.scale * w * x for x in g]

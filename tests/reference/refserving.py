# SPDX-License-Identifier: MIT
"""The lookup on the CPU (docs/spec/semantics.md 10), over the tables of a reference engine.

It shares the parsing of inputs with the engine's lookup and nothing else: which ids
are left out, what becomes a sequence and which shape comes out differ on purpose.
"""

import math

from refinput import FORMS, first_largest, scale_of
from refmodel import Feature
from referror import require


def _row(feature, sample, i):
    table = feature.table
    require(0 <= i < table.vocabulary_size, "ERANGE",
            f"feature {feature.name}, sample {sample}: id {i} is outside table {table.name}")
    return table.parameters.row(i)


def _combine(feature, bags):
    """Each bag's combination; zeros of an empty one."""
    out = []
    for s, bag in enumerate(bags):
        if feature.table.combiner == "max":
            columns = zip(*[_row(feature, s, i) for i, _ in bag])
            out.append([column[first_largest(column)] for column in columns]
                       or [0.0] * feature.table.dim)
            continue
        scale = scale_of(feature.table.combiner, [w for _, w in bag])
        total = [0.0] * feature.table.dim
        for i, w in bag:
            for c, x in enumerate(_row(feature, s, i)):
                total[c] += w * x
        out.append([scale * x for x in total])
    return out


def _sequence(feature, bags, length):
    """For each bag the rows of its first ids, then zeros."""
    zeros = [0.0] * feature.table.dim
    out = []
    for s, bag in enumerate(bags):
        rows = [_row(feature, s, i) for i, _ in bag][:length]
        out.extend(rows + [zeros] * (length - len(rows)))
    return out


def _valid(feature, entry, weighs):
    i, weight = entry
    return i >= 0 and (weight > 0 or not weighs or feature.table.combiner == "sum")


def _dense(feature, spec):
    name, ids = feature.name, spec["dense"]
    shape = spec.get("shape", [len(ids)])
    require("weights" not in spec, "EINVAL", f"feature {name}: weights, but the input is dense")
    require(not feature.max_sequence_length, "EINVAL",
            f"feature {name}: a sequence feature, but the input is dense")
    require(math.prod(shape) == len(ids), "EINVAL",
            f"feature {name}: {len(ids)} ids for the dense shape {shape}")
    return [_row(feature, s, i) for s, i in enumerate(ids)], shape


def _sparse(feature, spec):
    bags, lead = FORMS["sparse"](feature, spec)
    length = feature.max_sequence_length if feature.output_shape is None else 0
    sequence = length > 0 and len(lead) == 1
    if feature.validate or len(lead) > 1:
        bags = [[e for e in bag if _valid(feature, e, not sequence)] for bag in bags]
    if sequence:
        return _sequence(feature, bags, length), lead + [length]
    return _combine(feature, bags), lead


def _ragged(feature, spec):
    bags, lead = FORMS["ragged"](feature, spec)
    shape, batch = feature.output_shape, len(bags)
    if shape is None:
        length = feature.max_sequence_length
        if length:
            return _sequence(feature, bags, length), lead + [length]
        return _combine(feature, bags), lead
    positions = math.prod(shape)
    if positions == batch:
        return _combine(feature, bags), shape
    require(batch and positions > batch and positions % batch == 0, "EINVAL",
            f"feature {feature.name}: Output shape set in the FeatureConfig should be the "
            f"factor of {batch}: {shape}")
    return _sequence(feature, bags, positions // batch), shape


def _nest(rows, shape):
    if len(shape) == 0:
        return rows[0]
    if len(shape) == 1:
        return list(rows)
    part = math.prod(shape[1:])
    return [_nest(rows[k * part:(k + 1) * part], shape[1:]) for k in range(shape[0])]


def _one(feature, spec, allow=False):
    """allow: the model takes weights that are not finite."""
    require(feature.table.combiner != "max" or "weights" not in spec, "EINVAL",
            f"feature {feature.name}: the combiner max takes no weights")
    if "weights" in spec and feature.output_shape is None:
        require(not feature.max_sequence_length, "EINVAL",
                f"feature {feature.name}: a sequence feature takes no weights")
        weights = spec["weights"]
        if "ragged" in spec and weights and isinstance(weights[0], list):
            weights = [w for bag in weights for w in bag]
        require(allow or not feature.validate
                or all(math.isfinite(float(w)) for w in weights), "ERANGE",
                f"feature {feature.name}: a weight is not finite")
    form = next(form for form in (("dense", _dense), ("sparse", _sparse), ("ragged", _ragged))
                if form[0] in spec)[1]
    rows, shape = form(feature, spec)
    return _nest(rows, shape)


def serve(engine, features, config=None):
    """Feature name -> activations; config: other features over the same tables."""
    if config is None:
        served = engine.model.features
    else:
        served = {spec["name"]: Feature(spec, engine.model.tables) for spec in config}
    for name in features:
        require(name in served, "ENOENT", f"no feature {name}")
    engine.settle()
    allow = engine.non_finite == "allow"
    return {name: _one(served[name], spec, allow) for name, spec in features.items()}

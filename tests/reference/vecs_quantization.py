# SPDX-License-Identifier: MIT
"""Vectors of simulated quantization (docs/spec/semantics.md 1.3): levels are read, never stored."""

from vecbuild import Vector, adagrad, dense, feature, numbers, ragged, sgd, sparse, table
from vecs_model import of_table

FIVE = {"num_buckets": 5, "lower": -1, "upper": 2.5}
POSITIVE = {"num_buckets": 3, "lower": 0.25, "upper": 0.75}
# Levels, middles between two, what is just below a middle, and what lies beyond the limits.
VALUES = [[-1, -0.125, 0.75], [1.625, 2.5, -0.5625], [0.3125, 1.1875, 2.0625],
          [-0.5703125, 0.296875, 2.046875], [-9, 9, -1.0625], [0, -0.25, 2.5625],
          ["inf", "-inf", "nan"], [1e30, -1e30, 1e-30]]


def levels():
    v = Vector("quantization_levels", "Each value becomes the nearest of five levels, a middle "
               "the upper one, what lies beyond the outermost; NaN stays. Training and inference "
               "read alike, and the table keeps what it holds.",
               [table(dim=3, initial=VALUES, quantization=FIVE)], [feature()], {"non_finite": "allow"})
    ids = {"f": dense(list(range(len(VALUES))))}
    for training in (False, True):
        v.lookup(ids, training=training)
    v.table()
    return v


def two_levels():
    v = Vector("quantization_two_levels", "Two levels, the fewest: the limits themselves.",
               [table(dim=3, rows=6, initial=VALUES[:6],
                      quantization={"num_buckets": 2, "lower": -1, "upper": 1})], [feature()])
    v.lookup({"f": dense([0, 1, 2, 3, 4, 5])}, training=False)
    return v


def many_levels():
    v = Vector("quantization_256_levels", "As many levels as a byte has, of step 1/128.",
               [table(dim=8, initial={"arange": [-1.1, 0.037]},
                      quantization={"num_buckets": 256, "lower": -1, "upper": 0.9921875})],
               [feature()])
    v.lookup({"f": dense(list(range(8)))}, training=False)
    return v


def combined(combiner):
    v = Vector(f"quantization_{combiner}", f"Rows are quantized one by one, before weights and "
               f"{combiner}; the gradient passes as if they were not.",
               [table(combiner=combiner, quantization=FIVE)], [feature()])
    for seed in (1, 2):
        v.train({"f": ragged([[1, 2, 1], [3], []], [[0.5, -1, 2], [3], []])}, seed=seed)
        v.table()
    return v


def sequence():
    v = Vector("quantization_sequence", "Positions of a sequence that are missing, and samples "
               "without ids, stay zeros though zero is no level.",
               [table(quantization=POSITIVE)], [feature(max_sequence_length=3)])
    v.train({"f": ragged([[1, 2], [3, 4, 5, 6], []])})
    v.table()
    return v


def policy(kind):
    v = Vector(f"quantization_policy_{kind}", "What an id outside of the table reads under "
               f"{kind}: only a row is quantized.",
               [table(combiner="sum", quantization=POSITIVE, out_of_range=kind)], [feature()],
               requires=["policies"])
    v.train({"f": ragged([[1, 99], [-1], [2], []])})
    v.table()
    return v


def shared():
    v = Vector("quantization_two_features", "Two features of a quantized table, beside one "
               "that is not.", [table("a", combiner="sum", quantization=FIVE),
                                table("b", combiner="sum")],
               [feature("f", "a"), feature("g", "b"), feature("h", "a")])
    for seed in (1, 2):
        v.train({"f": dense([1, 2]), "g": dense([1, 2]),
                 "h": sparse([[0, 0], [0, 1], [1, 0]], [1, 3, 2], [2, 2])}, seed=seed)
    v.table("a")
    v.table("b")
    return v


def optimizer(kind, spec, slots):
    v = Vector(f"quantization_{kind}", "Updates smaller than a level's half add up in the table "
               f"until lookups read the next level: {kind}.",
               [table(dim=2, initial={"fill": 0.75}, optimizer=spec, quantization=FIVE)],
               [feature()])
    for _ in range(6):
        v.train({"f": dense([1])}, {"f": [[-1, 0.5]]})
    v.table(rows=[0, 1])
    for slot in slots:
        v.table(slot=slot, rows=[0, 1])
    return v


def replicas():
    v = Vector("quantization_two_replicas", "With pipelining and two replicas.",
               [table(combiner="sum", quantization=FIVE)], [feature()],
               engine={"replicas": 2, "pipelining": True})
    for seed in range(3):
        for r in (0, 1):
            v.lookup({"f": ragged([[1, r + 2], [seed]])}, replica=r)
        for r in (0, 1):
            v.apply(v.grads(seed + r), replica=r)
    v.table()
    return v


def serving():
    v = Vector("quantization_serving", "The lookup on the CPU reads rows as they are stored, "
               "before an update and after it; the one on the device quantizes.",
               [table(combiner="sum", quantization=FIVE)], [feature()], requires=["serving"])
    ids = {"f": ragged([[1, 2], [3]])}
    v.serve(ids)
    v.train(ids)
    v.serve(ids)
    v.lookup(ids, training=False)
    return v


def checkpoint():
    v = Vector("quantization_checkpoint", "A checkpoint holds rows as they are; what reads them "
               "quantizes again, without optimizer too.",
               [table(optimizer=adagrad(0.5), initial=[[x / 8 for x in numbers(3, r)]
                                                       for r in range(8)], quantization=FIVE)],
               [feature()], requires=["checkpoint"])
    ids = {"f": ragged([[1, 2], [3]])}
    v.train(ids)
    v.save()
    for optimized in (True, False):
        v.reopen(optimized)
        v.restore()
        v.lookup(ids, training=False)
        v.table()
    return v


def refused():
    for name, about, levels_, words in (
            ("one_bucket", "One level is none.", {"num_buckets": 1}, ["num_buckets 1"]),
            ("no_buckets", "Levels that are not there.", {"num_buckets": 0}, ["num_buckets"]),
            ("buckets_negative", "Fewer levels than none.", {"num_buckets": -3}, ["num_buckets -3"]),
            ("buckets_too_many", "More levels than 31 bits count.", {"num_buckets": 2 ** 31},
             ["num_buckets 2147483648"]),
            ("limits_equal", "Limits without anything between them.", {"upper": -1}, ["lower -1"]),
            ("limits_crossed", "A lower limit above the upper one.", {"upper": -2},
             ["lower -1", "upper -2"]),
            ("lower_infinite", "No lower limit.", {"lower": "-inf"}, ["lower", "finite"]),
            ("upper_infinite", "No upper limit.", {"upper": "inf"}, ["upper", "finite"]),
            ("upper_nan", "An upper limit that is no number.", {"upper": "nan"},
             ["upper nan", "finite"]),
            ("step_too_small", "Levels closer than f32 tells apart.",
             {"lower": 0, "upper": 1e-38, "num_buckets": 1000}, ["normal number"]),
            ("step_too_large", "Levels further apart than f32 says.",
             {"lower": -3e38, "upper": 3e38, "num_buckets": 2}, ["normal number"])):
        yield of_table(f"quantization_{name}", about, "ERANGE",
                       ["items", "quantization", *words], quantization={**FIVE, **levels_})


def vectors():
    yield levels()
    yield two_levels()
    yield many_levels()
    for combiner in ("sum", "mean", "sqrtn"):
        yield combined(combiner)
    yield sequence()
    for kind in ("clamp", "drop", "zero"):
        yield policy(kind)
    yield shared()
    yield optimizer("sgd", sgd(0.125), [])
    yield optimizer("adagrad", adagrad(0.25), ["accumulators"])
    yield replicas()
    yield serving()
    yield checkpoint()
    yield from refused()

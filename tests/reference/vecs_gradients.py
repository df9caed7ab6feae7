# SPDX-License-Identifier: MIT
"""Vectors of what is told of gradients without a step: norms, and gradients of weights."""

from vecbuild import (Vector, adagrad, dense, feature, nested, numbers, ragged, sgd, sparse, splits,
                      table)

IDS = [[1, 2, 1], [], [4, 0], [3, 3]]
WEIGHTS = [[0.5, -1.25, 2.0], [], [3.0, 0.75], [1.0, -0.5]]


def one_table(name, about, **more):
    return Vector(name, about, [table(rows=6, dim=3, **more)], [feature()])


def combiners():
    for combiner in ("sum", "mean", "sqrtn"):
        v = one_table(f"told_{combiner}", f"Norm and gradients of weights of the combiner {combiner}: "
                      "bags with weights, without, and an empty one.", combiner=combiner)
        gradients = {"f": nested(numbers(12, 3), [4, 3])}
        v.told({"f": ragged(IDS, WEIGHTS)}, gradients, ["f"])
        v.told({"f": ragged(IDS)}, gradients, ["f"])
        v.told({"f": sparse([[0, 0], [0, 2], [3, 1]], [2, 2, 5], [4, 3], [0.5, 2.0, 1.0])},
               gradients, ["f"])
        v.told({"f": ragged([])}, {"f": []}, ["f"])
        v.told({"f": ragged(IDS, WEIGHTS)}, {"f": None}, ["f"])
        v.told({"f": dense([1, 1, 5, 2])}, gradients)
        yield v


def zero_denominators():
    for combiner, weights in (("mean", [1.0, -1.0, 2.0]), ("sqrtn", [0.0, 0.0, 2.0])):
        v = one_table(f"told_{combiner}_of_zero", "A bag whose denominator is 0 is zeros by "
                      "definition: its weights and rows have no gradients.", combiner=combiner)
        v.told({"f": splits([1, 2, 3], [0, 2, 3], weights)}, {"f": nested(numbers(6, 1), [2, 3])},
               ["f"])
        yield v


def policies():
    for policy in ("clamp", "drop", "zero"):
        v = one_table(f"told_{policy}", f"Ids out of range under the policy {policy}.",
                      combiner="mean", out_of_range=policy)
        v.told({"f": ragged([[1, -1, 2], [6, 9], [5]], [[1.0, 2.0, 0.5], [1.0, 3.0], [2.0]])},
               {"f": nested(numbers(9, 2), [3, 3])}, ["f"])
        yield v
    v = one_table("told_refused", "An id and a weight that no update takes.", combiner="mean")
    v.told({"f": ragged([[1], [6]])}, {"f": nested(numbers(6, 2), [2, 3])}, ["f"],
           error={"errno": "ERANGE", "contains": ["f", "sample 1", "6"]})
    v.told({"f": ragged([[1], [2]], [[1.0], ["inf"]])},
           {"f": nested(numbers(6, 2), [2, 3])}, ["f"], error={"errno": "ERANGE"})
    yield v


def model():
    """Bags and a sequence on one table, and a table whose rows' sums are divided."""
    v = Vector("told_model", "Several features of one table, a sequence, a table by frequency, a "
               "frozen one; steps in between.",
               [table("t", 6, 3, combiner="sqrtn", optimizer=adagrad(0.25)),
                table("u", 5, 2, combiner="mean", optimizer=sgd(0.5, scale_by_frequency=True)),
                table("v", 4, 2, combiner="sum")],
               [feature("a"), feature("s", max_sequence_length=2), feature("b"),
                feature("c", "u"), feature("d", "v")])
    features = {"a": ragged(IDS, WEIGHTS), "s": ragged([[1, 2, 3], [4]]),
                "b": sparse([[0, 0], [1, 0], [1, 1]], [1, 1, 5], [2, 2]),
                "c": ragged([[0, 1], [1, 1, 4]], [[1.0, 2.0], [0.5, 0.25, 1.0]]),
                "d": ragged([[3, 3], [0]], [[2.0, 1.0], [-1.0]])}
    shapes = {"a": [4, 3], "s": [2, 2, 3], "b": [2, 3], "c": [2, 2], "d": [2, 2]}

    def gradients(seed):
        out = {}
        for k, (name, shape) in enumerate(shapes.items()):
            count = 1
            for n in shape:
                count *= n
            out[name] = nested(numbers(count, seed + k), shape)
        return out

    for seed in (1, 2):
        # Rows that were updated are f32.
        v.told(features, gradients(seed), ["a", "b", "c", "d"], atol=2e-6, rtol=2e-6)
        v.update(features, gradients(seed))
    v.freeze("v")
    v.told(features, gradients(3), ["d"])
    v.told(features, {**gradients(4), "a": None}, ["a", "c"])
    v.told(features, gradients(3), ["s"], error={"errno": "EINVAL"})
    yield v


def replicas():
    v = Vector("told_replica", "A part of replica 1; the norm is of the parts that are given.",
               [table(rows=6, dim=3)], [feature()], engine={"replicas": 2})
    v.told({"f": ragged(IDS, WEIGHTS)}, {"f": nested(numbers(12, 5), [4, 3])}, ["f"], replica=1)
    v.told({"f": dense([1])}, {"f": [[1.0, 2.0, -2.0]]}, replica=2, error={"errno": "ERANGE"})
    yield v


def quantized():
    v = one_table("told_quantized", "Rows count as lookups of a quantized table see them.",
                  combiner="mean", quantization={"num_buckets": 5, "lower": -1, "upper": 1})
    v.told({"f": ragged(IDS, WEIGHTS)}, {"f": nested(numbers(12, 7), [4, 3])}, ["f"])
    yield v


def vectors():
    for made in (combiners, zero_denominators, policies, model, replicas, quantized):
        yield from made()

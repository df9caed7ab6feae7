# SPDX-License-Identifier: MIT
"""Vectors of gradient clip, decay, weight clip, accumulation and statistics."""

from vecbuild import Vector, adagrad, dense, feature, ragged, sgd, sparse, table

OPTIONS = ["options"]


def clip(name, clipvalue, what):
    v = Vector(f"clipvalue_{name}", f"The gradient clip takes {what}, and acts on the sum of a "
               "row: two gradients of 2 beyond the limit count once.",
               [table(dim=4, optimizer=adagrad(0.5, clipvalue=clipvalue))], [feature()],
               requires=OPTIONS)
    v.lookup({"f": dense([1, 2, 2, 3, 3])})
    v.apply({"f": [[3, -3, 0.5, -0.5], [2, -2, 1, 0.25], [2, -2, 1, 0.25],
                   [4, -4, 2, 0], [-4, 3.5, -1.5, 0]]})
    v.table()
    v.table(slot="accumulators")
    return v


def decay(name, by_rate, optimizer):
    extra = {"weight_decay_factor": 0.125}
    if by_rate is not None:
        extra["multiply_weight_decay_factor_by_learning_rate"] = by_rate
    v = Vector(f"weight_decay_{name}", "Weight decay acts on touched rows, before the optimizer, "
               "once a step however often a row occurs.",
               [table(optimizer={**optimizer, **extra})], [feature()], requires=OPTIONS)
    for seed in (1, 2):
        v.train({"f": ragged([[1, 2], [2], [5, 5]])}, seed=seed)
    v.table()
    return v


def decay_dynamic():
    v = Vector("weight_decay_times_dynamic_rate", "Weight decay times a dynamic rate takes the "
               "rate of the step.", [table(optimizer=sgd(
                   {"dynamic": "lr"}, weight_decay_factor=0.5,
                   multiply_weight_decay_factor_by_learning_rate=True))],
               [feature()], requires=OPTIONS)
    for seed, rate in enumerate((0.5, 0.125, 0)):
        v.train({"f": dense([1, 2])}, seed=seed, rates={"lr": rate})
    v.table()
    return v


def weight_clip(name, limits):
    v = Vector(f"clip_weight_{name}", "Values are clipped after the update, in touched rows "
               "only; slots are not clipped.",
               [table(initial={"arange": [-2, 0.1875]}, optimizer=adagrad(0.5, **limits))],
               [feature()], requires=OPTIONS)
    v.train({"f": dense([0, 1, 4, 7])}, {"f": [[2, -1, 0], [0, 0, 0], [-1, 3, 1], [-4, 1, 0]]})
    v.table()
    v.table(slot="accumulators")
    return v


def pipeline_order():
    v = Vector("gradient_pipeline_order", "Gradient clip, decay, optimizer, weight clip: another "
               "order gives other numbers.", [table(dim=2, combiner="sum", optimizer=sgd(
                   0.5, clipvalue=[-1, 0.5], weight_decay_factor=0.25, clip_weight_min=-0.75,
                   clip_weight_max=0.625))], [feature()], requires=OPTIONS)
    for _ in range(2):
        v.train({"f": ragged([[1, 5], [5], [7]])}, {"f": [[-3, 2], [1, 0.25], [-0.5, -2]]})
    v.table()
    return v


def accumulation_off(kind, optimizer):
    v = Vector(f"accumulation_off_{kind}", "Without accumulation each occurrence is an update of "
               "its own, in feature, sample, position order.",
               [table(combiner="sum", optimizer={**optimizer, "use_gradient_accumulation": False})],
               [feature("a"), feature("b")], requires=OPTIONS)
    for seed in (1, 2):
        v.train({"a": ragged([[1, 2, 1], [2]], [[1, 2, 0.5], [1]]), "b": dense([2, 5])}, seed=seed)
    v.table()
    if kind == "adagrad":
        v.table(slot="accumulators")
    return v


def statistics():
    v = Vector("statistics", "ids count every occurrence, unique_ids distinct rows per step over "
               "the features of the table; a reading clears its table alone; refused batches "
               "and inference do not count.",
               [table("t"), table("u")], [feature("a"), feature("b"), feature("c", "u")])
    batch = {"a": ragged([[1, 2, 2], [3]]), "b": sparse([[0, 0], [1, 1]], [3, 7], [2, 2]),
             "c": dense([5, 5])}
    v.train(batch)
    v.train({**batch, "a": ragged([[1], [1]])})
    v.stats("t")
    v.stats("t")
    v.train(batch)
    v.lookup(batch, training=False)
    v.enqueue({**batch, "c": dense([5, 8])}, error={"errno": "ERANGE", "contains": ["c", "8"]})
    v.stats("t", "ids")
    v.stats("t", "unique_ids")
    v.stats("u")
    return v


def statistics_replicas():
    v = Vector("statistics_replicas", "A row that two replicas touch in a step is one unique row; "
               "ids add up.", [table()], [feature()], engine={"replicas": 2})
    for r, ids in enumerate(([1, 2, 2], [2, 3, 7])):
        v.lookup({"f": dense(ids)}, replica=r)
    for r in (0, 1):
        v.apply({"f": {"fill": r + 1}}, replica=r)
    v.stats("t")
    v.table()
    return v


def vectors():
    yield clip("number", 1.5, "one number c for [-c, c]")
    yield clip("pair", [-1, 2.5], "a pair")
    yield clip("lower_only", [-1.5, None], "a lower limit alone")
    yield clip("upper_only", [None, 1.5], "an upper limit alone")
    yield decay("plain", None, sgd(0.25))
    yield decay("times_rate", True, sgd(0.25))
    yield decay("adagrad", False, adagrad(0.25))
    yield decay_dynamic()
    yield weight_clip("both", {"clip_weight_min": -1, "clip_weight_max": 1})
    yield weight_clip("min_only", {"clip_weight_min": -1})
    yield pipeline_order()
    yield accumulation_off("sgd", sgd(0.25))
    yield accumulation_off("adagrad", adagrad(0.25))
    yield statistics()
    yield statistics_replicas()

# SPDX-License-Identifier: MIT
"""Vectors of the combiner max: the largest number of each column, and who gets its gradient."""

from vecbuild import (Vector, adagrad, dense, feature, nested, numbers, ragged, sgd, sparse, splits,
                      table)

# Rows 1 and 4 are alike, 2 and 3 share a column with them, 5 is below 0 everywhere, 6 has both zeros.
ROWS = [[-2, 1, 0.5], [1, 2, -1], [1, 3, -1], [0.5, 2, 4], [1, 2, -1], [-3, -0.5, -4], [0, -0.0, 0],
        [-1, -0.25, -8]]
BAGS = [[1, 2, 3], [4, 1], [], [2, 2, 3, 2], [5, 7], [0], [6, 5, 0]]
ADAM = {"kind": "adam", "learning_rate": 0.125, "bias_correction": True}
FIVE = {"num_buckets": 5, "lower": -1, "upper": 2.5}
EINVAL = {"errno": "EINVAL", "contains": ["feature f", "max"]}


def model(name, about, optimizer=None, engine=None, features=None, **more):
    more.setdefault("initial", ROWS)
    on = table(rows=8, dim=3, combiner="max", optimizer=optimizer or sgd(0.25), **more)
    return Vector("max_" + name, about, [on], features or [feature()], engine=engine)


def bags():
    v = model("bags", "The largest number of each column and of equal ones the first id's; ids that "
              "occur twice, rows below 0, bags of one id and of none. The gradient of a column goes "
              "to its holder alone.")
    for seed in range(4):
        v.train({"f": ragged(BAGS)}, seed=seed)
        v.table()
    v.stats("t", "ids", "unique_ids")
    yield v
    v = model("first_of_equal_rows", "All rows are alike: the first id of each bag gets all.",
              initial={"fill": -1.5})
    v.train({"f": ragged([[3, 1, 2], [2, 2, 3], [7, 6, 7]])})
    v.table()
    yield v
    v = model("inputs", "Sparse, split and dense inputs of one model.",
              features=[feature("a"), feature("b"), feature("c")])
    for seed in (1, 2):
        v.train({"a": sparse([[0, 0], [0, 1], [2, 0], [2, 3]], [1, 2, 5, 3], [3, 4]),
                 "b": splits([4, 1, 7], [0, 2, 2, 3]), "c": dense([3, 3, 6])}, seed=seed)
        v.table()
    yield v
    v = model("inference", "Lookups that no gradient follows.")
    v.lookup({"f": ragged(BAGS)}, training=False)
    yield v


def touched():
    """Rows that hold nothing are touched all the same."""
    for name, optimizer in (("adagrad", adagrad(0.25)), ("adam", ADAM),
                            ("adam_of_all_rows", {**ADAM, "lazy_adam": False})):
        v = model(f"touches_{name}", "A row of a bag that holds no number has a gradient of zeros: "
                  "it is a touched row.", optimizer)
        for seed in range(3):
            v.train({"f": ragged([[1, 2, 3], [5, 7], [0, 5]])}, seed=seed)
        v.table()
        for slot in ("accumulators",) if name == "adagrad" else ("momenta", "velocities"):
            v.table(slot=slot)
        v.stats("t", "ids", "unique_ids")
        yield v
    v = model("rowwise", "A slot of one number sees the gradient that is left to a row.",
              {"kind": "rowwise_adagrad", "learning_rate": 0.25})
    v.train({"f": ragged([[1, 2, 3], [5, 7]])})
    v.table()
    v.table(slot="accumulators")
    yield v


def settings():
    for name, more in (("by_frequency", {"scale_by_frequency": True}),
                       ("each_occurrence", {"use_gradient_accumulation": False}),
                       ("clipped", {"clipvalue": 0.5}), ("max_norm", {"max_norm": 1.5})):
        v = model(name, "An option of the optimizer meets gradients of which each occurrence takes a "
                  "part.", adagrad(0.25, **more))
        for seed in (1, 2):
            v.lookup({"f": ragged(BAGS)})
            v.apply(v.grads(seed), **({} if name == "each_occurrence" else {"multiplier": 2.0}))
        v.table()
        v.table(slot="accumulators")
        yield v


def policies():
    for policy, what in (("drop", "is as if it were absent"), ("clamp", "is the nearest row"),
                         ("zero", "is a row of zeros, which may hold a number and takes no gradient")):
        v = model(f"policy_{policy}", f"An id outside of the table {what}.", out_of_range=policy)
        for seed in (1, 2):
            v.train({"f": ragged([[5, -1, 7], [-3], [9, 1], [7, 5, 8]])}, seed=seed)
        v.table()
        v.stats("t", "dropped_ids", "clamped_ids", "zeroed_ids")
        yield v
    v = model("quantized", "Levels are compared, and equal ones are ties.", quantization=FIVE)
    for seed in (1, 2):
        v.train({"f": ragged([[1, 2], [2, 1], [5, 7], [7, 5], [3, 2, 1]])}, seed=seed)
    v.table()
    yield v


def not_finite():
    rows = [["nan", 1, "-inf"], [1, "nan", "-inf"], ["inf", "nan", "-inf"], [2, 2, 2]]
    for combined in (None, FIVE):
        more = {"quantization": combined} if combined else {}
        v = Vector("max_nan" + ("_quantized" if combined else ""), "NaN is larger than all other "
                   "numbers, wherever it stands in a bag, and of several the first one holds; "
                   "infinities are numbers.",
                   [table(rows=4, dim=3, combiner="max", initial=rows, **more)], [feature()],
                   {"non_finite": "allow"})
        v.train({"f": ragged([[0, 1, 2], [3, 0], [1, 3], [2, 1], [3, 2]])})
        v.table()
        yield v
    for policy in ("drop", "allow"):
        v = model(f"gradient_{policy}", "A gradient that is not finite reaches the row that holds its "
                  "column and no other one of the bag.", engine={"non_finite": policy})
        v.lookup({"f": ragged([[1, 2, 3], [5, 7], [0]])})
        v.apply({"f": [[1, "nan", 1], ["inf", 1, 1], [1, 1, 1]]})
        v.table()
        v.stats("t", "unique_ids", "nonfinite_gradient_rows")
        yield v


def steps():
    v = model("pipelining", "The rows that a lookup read say who holds a number, also where the "
              "update before it has changed them by the time the gradient comes.",
              sgd(1.0), {"pipelining": True})
    ids = {"f": ragged([[1, 2], [2, 3], [5, 7, 6]])}
    v.lookup(ids)
    for seed in range(1, 5):
        v.lookup(ids)
        v.apply(v.grads(seed))
    v.apply(v.grads(9))
    v.table()
    yield v
    v = model("pipelining_drained", "The same where somebody looks at the table between the update "
              "and the next lookup.", sgd(1.0), {"pipelining": True})
    for seed in range(1, 5):
        v.lookup(ids)
        v.apply(v.grads(seed))
        v.table()
    yield v
    v = model("update_without_lookup", "Rows as the update finds them say who holds a number.",
              sgd(1.0))
    for seed in range(1, 5):
        v.update(ids, {"f": nested(numbers(9, seed), [3, 3])})
        v.table()
    v.train(ids)
    v.update({"f": ragged([[], [2, 1, 3]])}, {"f": nested(numbers(6, 3), [2, 3])})
    v.table()
    yield v
    v = model("update_with_pipelining", "Updates without a lookup between others that are held back.",
              sgd(1.0), {"pipelining": True})
    for seed in range(1, 4):
        v.lookup(ids)
        v.apply(v.grads(seed))
        v.update(ids, {"f": nested(numbers(9, seed + 5), [3, 3])})
    v.table()
    yield v
    v = model("discard", "A discarded batch gives nobody a gradient.")
    v.lookup(ids)
    v.discard()
    v.train(ids, seed=2)
    v.table()
    yield v
    v = model("frozen", "A frozen table stays, and holds numbers again once it is trained.")
    v.freeze()
    v.train(ids)
    v.update(ids, {"f": nested(numbers(9, 1), [3, 3])})
    v.table()
    v.freeze(frozen=False)
    v.train(ids)
    v.update(ids, {"f": nested(numbers(9, 1), [3, 3])})
    v.table()
    yield v


def replicas():
    for pipelining in (False, True):
        tables = [table(rows=8, dim=3, combiner="max", initial=ROWS, optimizer=sgd(0.5)),
                  table("u", rows=6, dim=2, combiner="max", optimizer=adagrad(0.25)),
                  table("w", rows=6, dim=2, combiner="sum", optimizer=adagrad(0.25))]
        features = [feature(), feature("g"), feature("q", max_sequence_length=2), feature("h", "u"),
                    feature("i", "w")]
        v = Vector("max_replicas" + ("_pipelined" if pipelining else ""), "Several replicas and "
                   "features share a table, one of them a sequence, beside tables with max and sum; "
                   "one part of a step has no lookup.",
                   tables, features, {"replicas": 2, "pipelining": pipelining})

        def batch(r, n):
            return {"f": ragged([[1, 2, 3], [4 + r, 1]]), "g": ragged([[n % 8, 5, 7], [2, 3], []]),
                    "q": ragged([[1, 2, 3], [n]]), "h": ragged([[0, 5], [n, 3, 2]]),
                    "i": ragged([[r, 2], [n]])}

        for n in range(4):
            for r in (0, 1):
                if n == 2 and r and not pipelining:
                    given = v.engine.answered(0)
                    v.update(batch(r, n), {
                        name: nested(numbers(len(lookup.samples) * lookup.feature.table.dim, k),
                                     lookup.shape + [lookup.feature.table.dim])
                        for k, (name, lookup) in enumerate(given.items())}, replica=r)
                    continue
                v.lookup(batch(r, n), replica=r)
            for r in (0, 1):
                if not (n == 2 and r and not pipelining):
                    v.apply(v.grads(n + r, replica=r), replica=r)
        for name in "tuw":
            v.table(name)
        yield v


def dims():
    for dim in (1, 2, 7, 16, 21, 33, 64, 75):
        rows = nested([((i * 11 + i // 3) % 17 - 8) / 8 for i in range(6 * dim)], [6, dim])
        v = Vector(f"max_dim_{dim}", f"Rows of {dim} columns, many of which are equal: each has its "
                   "own holder.", [table(rows=6, dim=dim, combiner="max", initial=rows)], [feature()])
        v.lookup({"f": ragged([[1, 2, 5, 0], [3], [4, 0, 4]])})
        v.apply({"f": nested(numbers(3 * dim, 1), [3, dim])})
        v.table()
        yield v


def hot_row():
    """More occurrences than one call of a kernel takes, of a row and of a bag."""
    v = Vector("max_hot_row", "A row that most samples ask for; each occurrence takes what it holds.",
               [table(rows=3, dim=1, combiner="max", initial=[[1], [2], [0.5]],
                      optimizer=sgd(1 / 1024))], [feature()])
    v.lookup({"f": ragged([[0, 2]] * 5000 + [[0, 1]])}, only=[])
    v.apply({"f": {"fill": 1}})
    v.table()
    yield v
    v = Vector("max_long_bag", "A bag of many ids whose holders stand at its end, before its middle "
               "and first of two.",
               [table(rows=4, dim=2, combiner="max", initial=[[-4, -4], [-1, -2], [-2, -1], [-4, -1]])],
               [feature()])
    v.train({"f": ragged([[0] * 3000 + [2] + [0] * 3000 + [3, 1], [1], [2]])})
    v.table()
    v.update({"f": ragged([[0] * 3000 + [2] + [0] * 3000 + [3, 1], [1], [2]])},
             {"f": nested(numbers(6, 5), [3, 2])})
    v.table()
    yield v


def refused():
    v = model("refuses_weights", "Weights are refused, as torch refuses them, and leave no trace.")
    for given in (ragged([[1, 2]], [[1, 1]]), sparse([[0, 0], [0, 1]], [1, 2], [1, 2], [1, 1])):
        v.enqueue({"f": given}, error=EINVAL)
        v.update({"f": given}, {"f": [[1, 1, 1]]}, error=EINVAL)
        v.serve({"f": given}, error=EINVAL)
    v.train({"f": ragged([[1, 2]])})
    v.table()
    yield v
    v = Vector("max_refuses_stacking", "Gains of a partitioned input cannot stand for a maximum.",
               [table("a", rows=64, dim=8, combiner="sum"), table("b", rows=64, dim=8, combiner="max")],
               [feature("f", "a", output_shape=[16]), feature("g", "b", output_shape=[16])])
    for flavour in ("tf", "jax"):
        v.stacking(flavour=flavour, sparse_cores=4, cores_per_device=4,
                   error={"errno": "ENOTSUP", "contains": ["table b", "max"]})
    yield v


def told():
    """Norms go by who holds the numbers of the rows as they are now."""
    for name, more in (("plain", {}), ("by_frequency", {"optimizer": sgd(scale_by_frequency=True)}),
                       ("quantized", {"quantization": FIVE}),
                       ("zero", {"out_of_range": "zero"}), ("drop", {"out_of_range": "drop"}),
                       ("clamp", {"out_of_range": "clamp"})):
        given = BAGS + ([[9, 1], [8], [-1, 5, 9]] if "out_of_range" in more else [])
        v = model(f"told_{name}", "The norm of gradients that go to the holders alone, before and after "
                  "a step that makes others hold.", more.pop("optimizer", None), **more)
        for seed in (1, 2):
            v.told({"f": ragged(given)}, {"f": nested(numbers(3 * len(given), seed), [len(given), 3])})
            v.train({"f": ragged(given)}, seed=seed)
        yield v
    v = Vector("max_told_model", "Features of one table, a sequence, a dense input, a table of sums, a "
               "frozen one.",
               [table(rows=8, dim=3, combiner="max", initial=ROWS, optimizer=adagrad(0.25)),
                table("u", rows=6, dim=2, combiner="sum"),
                table("w", rows=6, dim=2, combiner="max", frozen=True)],
               [feature(), feature("g"), feature("q", max_sequence_length=2), feature("d"),
                feature("i", "u"), feature("k", "w")])
    batch = {"f": ragged([[1, 2, 3], [4, 1], []]), "g": ragged([[2, 3, 5, 2]]),
             "q": ragged([[1, 2, 3], [5]]), "d": dense([3, 4]), "i": ragged([[1, 2]]),
             "k": ragged([[1, 2]])}
    gradients = {"f": nested(numbers(9, 1), [3, 3]), "g": nested(numbers(3, 2), [1, 3]),
                 "q": nested(numbers(12, 3), [2, 2, 3]), "d": nested(numbers(6, 4), [2, 3]),
                 "i": nested(numbers(2, 5), [1, 2]), "k": nested(numbers(2, 6), [1, 2])}
    v.told(batch, gradients)
    v.update(batch, gradients)
    v.told(batch, {**gradients, "g": None})
    v.told({**batch, "f": ragged([[1, 8]])}, {**gradients, "f": [[1, 2, 3]]},
           error={"errno": "ERANGE", "contains": ["f", "8"]})
    yield v


def serving():
    v = model("serving", "The lookup on the CPU: forms, pruned ids, empty bags and sequences.")
    v.serve({"f": ragged(BAGS)})
    v.serve({"f": sparse([[0, 0], [0, 1], [1, 0], [2, 0], [2, 1]], [-1, 5, -7, 7, 5], [4, 2])})
    v.serve({"f": sparse([[0, 0, 0], [0, 0, 1], [1, 2, 0]], [5, 7, 1], [2, 3, 2])})
    v.serve({"f": dense([5, 1, 6])})
    v.serve({"f": splits([1, 2, 5, 7], [0, 2, 2, 4])})
    v.serve({"g": ragged([[5, 7, 1], [2]])}, config=[feature("g", "t", max_sequence_length=2)])
    yield v
    v = model("serving_long_bags", "Bags that go over several chunks of the lookup on the CPU, and bags "
              "that begin where a chunk ends; all rows are below 0.",
              initial=[[-1 - i / 8, i - 9, -2] for i in range(8)])
    places = [[0, k] for k in range(512)] + [[1, 0], [1, 1]] + [[2, k] for k in range(1300)]
    ids = [(k * 5) % 8 for k in range(512)] + [7, 6] + [7 - k // 1299 for k in range(1300)]
    v.serve({"f": sparse(places, ids, [4, 1300])})
    yield v


def checkpoints():
    v = model("checkpoint", "A checkpoint knows the combiner.")
    v.train({"f": ragged(BAGS)})
    v.save()
    v.train({"f": ragged(BAGS)}, seed=2)
    v.restore()
    v.train({"f": ragged(BAGS)}, seed=3)
    v.table()
    yield v


def vectors():
    for part in (bags, touched, settings, policies, not_finite, steps, replicas, dims, hot_row,
                 refused, told, serving, checkpoints):
        yield from part()

# SPDX-License-Identifier: MIT
"""Vectors of slots, null gradients, learning rates and long sums."""

from vecbuild import Vector, adagrad, dense, feature, numbers, ragged, sgd, table


def slots_given():
    v = Vector("slots_given", "A slot that the vector gives is where the optimizer starts.",
               [table(rows=4, dim=2, optimizer=adagrad(),
                      slots={"accumulators": [[1, 2], [3, 4], [0.25, 0.5], [9, 16]]})],
               [feature()], requires=["slots"])
    v.table(slot="accumulators")
    v.train({"f": dense([2, 3, 2])})
    v.table()
    v.table(slot="accumulators")
    return v


def null_gradients():
    features = [feature("a"), feature("b"), feature("c", "u")]
    v = Vector("null_and_missing_gradients", "A null gradient and one left out are zeros: values "
               "stay, rows count as touched.",
               [table(optimizer=adagrad()), table("u", dim=2, optimizer=adagrad())], features)
    batch = {"a": dense([1, 2]), "b": dense([2, 3]), "c": dense([4, 5, 5])}
    v.lookup(batch)
    v.apply({"a": v.grads(3, "a")["a"], "b": None})
    for name in ("t", "u"):
        v.stats(name, "ids", "unique_ids")
        v.table(name)
        v.table(name, slot="accumulators")
    v.lookup(batch)
    v.apply({})
    v.table()
    v.stats("t", "ids", "unique_ids")
    return v


def null_touches():
    v = Vector("null_gradient_decays_rows", "Rows of a feature without gradient are touched: "
               "weight decay reaches them, and no other row.",
               [table(optimizer=sgd(0.5, weight_decay_factor=0.25))],
               [feature("a"), feature("b")], requires=["options"])
    v.lookup({"a": dense([1]), "b": dense([6, 7])})
    v.apply({"a": [[0, 0, 0]], "b": None})
    v.table()
    return v


def fill_gradient():
    v = Vector("gradient_as_fill", "A filled gradient has the shape of the activations.",
               [table(combiner="sqrtn")], [feature(), feature("s", max_sequence_length=2)])
    v.lookup({"f": ragged([[1, 2, 3, 4], [5]]), "s": ragged([[6], [7, 0, 1]])})
    v.apply({"f": {"fill": 0.5}, "s": {"fill": -1}})
    v.table()
    return v


def dynamic_rates():
    rate = {"dynamic": "warmup"}
    tables = [table("a", optimizer=sgd(rate)), table("b", optimizer=adagrad(rate)),
              table("c", optimizer=sgd({"dynamic": "other"})), table("d", optimizer=sgd(0.25))]
    v = Vector("dynamic_rates", "Rates by name: one shared by two tables, one of its own, one "
               "constant; each step brings its values.", tables,
               [feature("f" + n, n) for n in "abcd"])
    batch = {"f" + n: dense([1, 2]) for n in "abcd"}
    for seed, (warm, other) in enumerate([(0.5, 0.125), (0, 2), (0.25, 0)]):
        v.train(batch, seed=seed, rates={"warmup": warm, "other": other})
    for name in "abcd":
        v.table(name)
    return v


def dynamic_rate_missing():
    tables = [table("a", optimizer=sgd({"dynamic": "warmup"})),
              table("b", optimizer=sgd({"dynamic": "cooldown"}))]
    v = Vector("dynamic_rate_missing", "A dynamic rate without a value, or a name that no table "
               "has: an error, and the gradients may be given again.", tables,
               [feature("fa", "a"), feature("fb", "b")])
    v.lookup({"fa": dense([1]), "fb": dense([2])})
    v.apply(v.grads(1), error={"contains": ["warmup"]})
    v.apply(v.grads(1), rates={"warmup": 1}, error={"contains": ["cooldown"]})
    v.apply(v.grads(1), rates={"warmup": 1, "cooldown": 1, "heat": 1},
            error={"errno": "ENOENT", "contains": ["heat"]})
    v.apply(v.grads(1), rates={"warmup": 0.5, "cooldown": 0.25})
    v.table("a")
    v.table("b")
    return v


def hot_row(name, kind, optimizer, count):
    bags = [[2] * 37 + [1] if i % 3 else [2] * 36 for i in range(count)]
    v = Vector(name, f"One row occurs more than {count * 36} times in a step, over several runs of "
               f"256, and is updated once ({kind}).",
               [table(rows=4, dim=2, combiner="mean", optimizer=optimizer)], [feature()])
    v.enqueue({"f": ragged(bags)})
    v.dequeue(only=[])
    v.apply({"f": [numbers(2, i) for i in range(count)]})
    v.table()
    return v


def hot_row_dense():
    v = Vector("hot_row_300_dense", "One row in 300 samples, two runs of 256; every gradient is "
               "dyadic, so the sum is exact in f32 and a lost occurrence shows.",
               [table(rows=3, dim=1, initial={"fill": 1}, optimizer=sgd(0.0625))], [feature()])
    ids = [1] * 300
    ids[7] = ids[290] = 0
    v.enqueue({"f": dense(ids)})
    v.dequeue(only=[])
    v.apply({"f": [[((i * 5) % 17 - 4) / 8] for i in range(300)]})
    v.table()
    v.stats("t", "ids", "unique_ids")
    return v


def run_edges(count):
    v = Vector(f"hot_row_{count}_occurrences", f"Exactly {count} occurrences of a row, at the edge "
               "of a run of 256; each counts once.",
               [table(rows=2, dim=2, combiner="sum", optimizer=sgd(1), initial={"fill": 0})],
               [feature()])
    v.enqueue({"f": ragged([[1] * count])})
    v.dequeue()
    v.apply({"f": [[0.5, -1]]})
    v.table()
    return v


def vectors():
    yield from (make() for make in (
        slots_given, null_gradients, null_touches, fill_gradient, dynamic_rates,
        dynamic_rate_missing, hot_row_dense))
    yield hot_row("hot_row_sgd", "sgd", sgd(0.25), 20)
    yield hot_row("hot_row_adagrad", "adagrad", adagrad(0.25), 20)
    yield from (run_edges(count) for count in (255, 256, 257, 513))

# SPDX-License-Identifier: MIT
"""Vectors of several replicas and of core counts."""

from vecbuild import Vector, adagrad, dense, feature, nested, numbers, ragged, sgd, splits, table


def two_features(replicas, **engine):
    tables = [table("t", combiner="mean", optimizer=adagrad(0.25)),
              table("u", dim=2, combiner="sum", optimizer=sgd(0.25))]
    return tables, [feature("a"), feature("b"), feature("c", "u")], \
        {"replicas": replicas, **engine}


def batch(r):
    return {"a": ragged([[1, 2, 2], [r]], [[1, 2, 0.5], [1]]), "b": dense([2, 3 + r]),
            "c": splits([0, 1, 7, r], [0, 3, 3, 4])}


def sum_over(replicas):
    tables, features, engine = two_features(replicas)
    v = Vector(f"replicas_{replicas}_sum_gradients", f"The gradients of {replicas} replicas are "
               "summed per row, never averaged, and applied once.", tables, features, engine)
    for r in range(replicas):
        v.lookup(batch(r), replica=r, only=["a", "c"])
    for r in range(replicas):
        v.apply({**v.grads(5 * r), "b": {"fill": 0.5 - r}}, replica=r)
    for name in "tu":
        v.table(name)
        v.stats(name)
    v.table(slot="accumulators")
    return v


def own_order():
    tables, features, engine = two_features(3)
    v = Vector("replicas_in_any_order", "Replicas hand in lookups and gradients in another order "
               "each step; the result does not depend on it.", tables, features, engine)
    for seed, order in enumerate(([1, 2, 0], [2, 0, 1])):
        for r in order:
            v.enqueue(batch(r), replica=r)
        for r in reversed(order):
            v.dequeue(replica=r, only=["a"] if r == 1 else [])
        for r in order:
            a = [[r / 4 + 0.5, -0.5, seed / 8], [0.25, 0.125, -r]]
            v.apply({"a": a, "b": {"fill": r - 0.75}, "c": {"fill": 0.25 * seed - r}}, replica=r)
    v.table("t")
    v.table("u")
    return v


def step_ahead():
    v = Vector("replica_a_step_ahead", "Replica 0 enqueues steps 1 to 3 while replica 1 has none: "
               "its step 2 waits for the gradients of both.",
               [table()], [feature()], {"replicas": 2})
    late = {"errno": "ETIME"}
    for ids in ([1, 2], [2, 3], [1, 3]):
        v.enqueue({"f": dense(ids)})
    v.dequeue()
    v.apply({"f": {"fill": 1}})
    v.dequeue(error=late)
    v.lookup({"f": dense([2, 7])}, replica=1)
    v.dequeue(error=late)
    v.apply({"f": {"fill": -0.25}}, replica=1)
    v.dequeue()
    v.apply({"f": {"fill": 0.5}})
    v.lookup({"f": dense([7, 7])}, replica=1)
    v.apply({"f": {"fill": 2}}, replica=1)
    v.dequeue()
    v.table()
    return v


def own_queue():
    v = Vector("replicas_dequeue_their_own", "A replica dequeues its own batches, and gives "
               "gradients for those alone.", [table()], [feature()], {"replicas": 2})
    v.enqueue({"f": dense([1, 2])}, replica=1)
    v.dequeue(error={})
    v.dequeue(replica=1)
    v.apply({"f": {"fill": 1}}, error={"errno": "EPROTO"})
    v.apply({"f": {"fill": 1}}, replica=1)
    v.apply({"f": {"fill": 1}}, replica=1, error={"errno": "EPROTO"})
    v.lookup({"f": dense([2, 3])})
    v.apply({"f": {"fill": 0.5}})
    v.table()
    return v


def differing_rates():
    v = Vector("replicas_differ_in_rate", "Replicas that give other rates for a step: an error; "
               "with the right one the step goes on.",
               [table(optimizer=sgd({"dynamic": "lr"}))], [feature()], {"replicas": 2})
    for r in (0, 1):
        v.lookup({"f": dense([1, 2 + r])}, replica=r)
    v.apply({"f": {"fill": 1}}, rates={"lr": 0.5})
    v.apply({"f": {"fill": 2}}, replica=1, rates={"lr": 0.25}, error={"contains": ["lr"]})
    v.apply({"f": {"fill": 2}}, replica=1, error={"contains": ["lr"]})
    v.apply({"f": {"fill": 2}}, replica=1, rates={"lr": 0.5})
    v.table()
    return v


def refused_replica():
    v = Vector("replica_batch_refused", "A bad batch of one replica is refused alone; the step "
               "completes with the next one.", [table()], [feature("views")], {"replicas": 2})
    v.lookup({"views": dense([1, 2])})
    v.enqueue({"views": dense([1, 88])}, replica=1,
              error={"errno": "ERANGE", "contains": ["views", "88"]})
    v.lookup({"views": dense([1, 3])}, replica=1)
    for r in (0, 1):
        v.apply({"views": {"fill": 1 - 3 * r}}, replica=r)
    v.table()
    v.stats("t", "ids", "unique_ids")
    return v


def null_of_one():
    v = Vector("replica_without_gradients", "One replica's gradients are null: its part is zeros, "
               "the other's counts.", [table(optimizer=adagrad())], [feature()], {"replicas": 2})
    for r in (0, 1):
        v.lookup({"f": dense([1, 2 + 3 * r])}, replica=r)
    v.apply({"f": None})
    v.apply(v.grads(2), replica=1)
    v.table()
    v.table(slot="accumulators")
    v.stats("t", "ids", "unique_ids")
    return v


def inference_of_one():
    v = Vector("replica_inference", "Inference on one replica needs nothing of the others, and "
               "sees what all have applied.", [table()], [feature()], {"replicas": 2})
    infer = {"f": dense([1, 2])}
    v.lookup(infer, replica=1, training=False)
    for r in (0, 1):
        v.lookup({"f": dense([1, 2 + r])}, replica=r)
        v.apply({"f": {"fill": r + 1}}, replica=r)
    v.lookup(infer, replica=1, training=False)
    v.lookup(infer, training=False)
    v.table()
    return v


def pipelined(replicas, early):
    name = "early" if early else "late"
    v = Vector(f"pipelining_{replicas}_replicas_{name}", "Stale by one with several replicas: an "
               "update is held until every replica has looked up the next step; gradients "
               f"come {'before' if early else 'after'} those lookups.",
               [table(rows=6, dim=2, optimizer=adagrad(0.25))], [feature()],
               {"replicas": replicas, "pipelining": True})

    def look():
        for r in range(replicas):
            v.lookup({"f": dense([1, 2 + r])}, replica=r)

    def give(seed):
        for r in range(replicas):
            v.apply(v.grads(seed + r), replica=r)

    look()
    for seed in range(3):
        if early:
            give(seed)
        look()
        if not early:
            give(seed)
    give(3)
    v.table()
    v.table(slot="accumulators")
    return v


def pipelined_ahead():
    v = Vector("pipelining_replica_ahead", "Replica 0 looks up step 2 before update 1 and replica "
               "1 after it is handed in: both see the initial table.",
               [table(rows=6, dim=2, optimizer=sgd(0.5))], [feature()],
               {"replicas": 2, "pipelining": True})
    b = {"f": dense([1, 2])}
    for r in (0, 1):
        v.lookup(b, replica=r)
    v.lookup(b)
    for r in (0, 1):
        v.apply({"f": {"fill": r + 1}}, replica=r)
    v.enqueue(b)
    v.dequeue(error={"errno": "ETIME"})
    v.lookup(b, replica=1)
    v.dequeue()
    v.lookup(b, replica=1)
    for step in (2, 3):
        for r in (0, 1):
            v.apply({"f": {"fill": step}}, replica=r)
    v.table()
    return v


def cores(n):
    """The same script for every count; only the engine's cores differ."""
    tables = [table("t", rows=23, dim=5, combiner="mean", optimizer=adagrad(0.25),
                    initial={"arange": [-0.875, 0.015625]}),
              table("u", rows=2, dim=3, combiner="sqrtn", optimizer=sgd(0.25))]
    features = [feature("a"), feature("s", max_sequence_length=2), feature("c", "u")]
    v = Vector(f"cores_{n}", f"{n} cores give what one core gives; a table has fewer rows than "
               "some core counts.", tables, features, {"cores": n})
    for seed in range(2):
        rows = [[(7 * i + 3 * j + seed) % 23 for j in range(i % 5)] for i in range(6)]
        weights = [[(x % 5 - 1) / 2 for x in row] for row in rows]
        v.train({"a": ragged(rows, weights), "s": ragged([[22, 0, 1], [seed]]),
                 "c": ragged([[0, 1, 1], [1]], [[1, 2, -1], [3]])}, seed=seed)
    v.table("t")
    v.table("t", slot="accumulators", rows=[0, 7, 22])
    v.table("u")
    v.stats("t", "ids", "unique_ids")
    return v


def cores_hot_row():
    v = Vector("cores_4_hot_row", "All ids of a batch on one row of one of four cores, more than "
               "one run of 256.", [table(rows=9, dim=4, combiner="sum", optimizer=sgd(0.0625))],
               [feature()], {"cores": 4})
    v.lookup({"f": ragged([[5] * 150, [5] * 150])})
    v.apply({"f": nested(numbers(8, 3), [2, 4])})
    v.table()
    return v


def sums_of_rows(kind, optimizer):
    """Each replica gives one sum for each of its rows, in any order of rows."""
    v = Vector(f"replicas_sums_{kind}", "Sums of each row's gradients, made where the samples are, "
               "are added over the replicas and applied once.",
               [table("t", combiner="mean", optimizer=optimizer),
                table("u", dim=2, combiner="sum", optimizer=optimizer)],
               [feature("a"), feature("c", "u")], {"replicas": 3})
    for seed in range(2):
        for r in range(3):
            v.lookup({"a": dense([5, r, 2 + r + seed]), "c": dense([7 - r, 1])}, replica=r)
        for r in range(3):
            v.apply(v.grads(4 * r + seed), replica=r, sums=True if r else None)
    for name in "tu":
        v.table(name)
        v.stats(name)
    return v


def sums_refused():
    refused = {"errno": "EINVAL"}
    v = Vector("replicas_sums_refused", "A sum belongs to one row: it is refused for bags, and for a "
               "table that applies each gradient by itself; the step then takes gradients.",
               [table(optimizer=sgd(0.25)),
                table("each", optimizer={**sgd(0.25), "use_gradient_accumulation": False})],
               [feature(), feature("g", "each")], {"replicas": 1})
    ones = {"f": {"fill": 1}, "g": {"fill": 1}}
    v.lookup({"f": ragged([[1, 2], [3]]), "g": dense([1])})
    v.apply(ones, sums=True, error={**refused, "contains": ["feature f", "a sum belongs to one row"]})
    v.apply(ones)
    v.lookup({"f": dense([1, 2]), "g": dense([1])})
    v.apply(ones, sums=True, error={**refused, "contains": ["table each", "by itself"]})
    v.apply(ones, sums=False)
    v.table()
    v.table("each")
    return v


def sums_of_updates():
    v = Vector("replicas_sums_updates", "Sums of a batch that is not looked up; without samples a "
               "replica has none.", [table(optimizer=adagrad(0.25))], [feature()], {"replicas": 2})
    for seed in range(2):
        v.update({"f": dense([4, 1])}, {"f": [[1, 2, seed], [-1, 0.5, 0]]}, sums=True)
        v.update({"f": dense([])}, {"f": []}, replica=1, sums=True)
    v.table()
    v.table(slot="accumulators")
    return v


def vectors():
    yield sums_of_rows("adagrad", adagrad(0.25))
    yield sums_of_rows("adam_corrected",
                       {"kind": "adam", "learning_rate": 0.125, "bias_correction": True})
    yield sums_of_updates()
    yield sums_refused()
    yield sum_over(2)
    yield sum_over(3)
    yield from (make() for make in (own_order, step_ahead, own_queue, differing_rates,
                                    refused_replica, null_of_one, inference_of_one))
    yield pipelined(2, True)
    yield pipelined(3, False)
    yield pipelined_ahead()
    yield from (cores(n) for n in (1, 2, 3, 4, 7))
    yield cores_hot_row()

# SPDX-License-Identifier: MIT
"""Vectors of frozen tables: without an optimizer, from the start, and switched between steps."""

from vecbuild import Vector, adagrad, dense, feature, ragged, sgd, table
from vecs_optimizers import ALL, CORRECTED

PIPELINED = {"pipelining": True}
NO_OPTIMIZER = {"errno": "EINVAL", "contains": ["no optimizer"]}
ADAM_EVERYWHERE = {**ALL["adam"], "lazy_adam": False}
KINDS = {"adagrad": adagrad(0.25), "adam": ALL["adam"], "adam_corrected": CORRECTED,
         "adam_non_lazy": ADAM_EVERYWHERE, "momentum": {"kind": "momentum", "learning_rate": 0.25, "momentum": 0.5},
         "ftrl": ALL["ftrl"]}


def bare(name="text", rows=8, dim=3):
    out = table(name, rows, dim)
    del out["optimizer"]
    return out


def both(v, first, second, replica=0):
    v.lookup({"word": ragged(first), "f": ragged(second)}, replica=replica)


def without_optimizer():
    v = Vector("frozen_without_optimizer", "A table without an optimizer is looked up beside one "
               "that trains, and stays as it is; its gradients may be null or anything.",
               [bare(), table(optimizer=adagrad(0.25))], [feature("word", "text"), feature()])
    for word in (None, {"fill": "nan"}, {"fill": 8}, {"fill": "inf"}):
        both(v, [[1, 2], [7]], [[1, 2], [2]])
        v.apply({"word": word, **v.grads(3, "f")})
        v.table("text")
    v.table()
    v.table(slot="accumulators")
    v.stats("text", "ids", "unique_ids")
    v.stats("t", "ids", "unique_ids")
    return v


def left_out():
    v = Vector("frozen_gradients_left_out", "Gradients of a table without an optimizer may be left "
               "out, also where weights and other features read it; policies hold as ever.",
               [{**bare(rows=4), "out_of_range": "drop"}, table(optimizer=sgd(0.5))],
               [feature("word", "text"), feature("f"), feature("more", "text")])
    for seed in (1, 2):
        v.lookup({"word": ragged([[1, 9], [3]], [[0.5, 2], [4]]), "f": dense([5, 6]),
                  "more": dense([0, 4])})
        v.apply(v.grads(seed, "f"))
    v.table("text")
    v.table()
    v.stats("text", "ids", "unique_ids", "dropped_ids")
    return v


def nothing_trains():
    v = Vector("frozen_nothing_trains", "Where no table has an optimizer a training batch is an "
               "error; inference goes on.", [bare(), bare("t")],
               [feature("word", "text"), feature()])
    batch = {"word": dense([1]), "f": dense([2])}
    v.enqueue(batch, error=NO_OPTIMIZER)
    v.lookup(batch, training=False)
    return v


def switched(kind, optimizer):
    v = Vector(f"frozen_and_thawed_{kind}", f"{kind}: a table that is frozen for two steps keeps its "
               "rows and slots, and its optimizer goes on later with the step that it had; the "
               "other table never stops.",
               [table(optimizer={**optimizer, "weight_decay_factor": 0.125, "clipvalue": 0.5,
                                 "clip_weight_max": 0.75}), table("u", optimizer=optimizer)],
               [feature(), feature("word", "u")])
    slots = list(v.engine.model.table("t").slots)

    def step(seed):
        both(v, [[1], [2, 3]], [[1, 2], [2, 6]])
        v.apply(v.grads(seed))

    step(1)
    v.freeze()
    for seed in (2, 3):
        step(seed)
        v.table()
    for slot in slots:
        v.table(slot=slot)
    v.freeze(frozen=False)
    step(4)
    for name in ("t", "u"):
        v.table(name)
        for slot in slots:
            v.table(name, slot=slot)
    return v


def from_start():
    v = Vector("frozen_from_start", "A table that is declared frozen, and is thawed after a step; "
               "freezing twice is freezing once.", [table(optimizer=adagrad(0.25), frozen=True)],
               [feature()])
    batch = {"f": dense([1, 2, 2])}
    v.train(batch, {"f": {"fill": "nan"}})
    v.table()
    v.table(slot="accumulators")
    v.freeze(frozen=False)
    v.train(batch)
    v.table()
    v.freeze()
    v.freeze()
    v.train(batch, {"f": None})
    v.freeze(frozen=False)
    v.freeze(frozen=False)
    v.train(batch, seed=2)
    v.table()
    v.table(slot="accumulators")
    return v


def refused():
    v = Vector("frozen_refused", "A table without an optimizer cannot be thawed, and may be frozen "
               "to no effect; there must be such a table.",
               [bare(), table()], [feature("word", "text"), feature()])
    v.freeze("text")
    v.freeze("text", frozen=False, error=NO_OPTIMIZER)
    v.freeze("none", error={"errno": "ENOENT", "contains": ["none"]})
    both(v, [[1]], [[1]])
    v.apply(v.grads(1))
    v.table("text")
    v.table()
    return v


def replicas():
    v = Vector("frozen_replicas", "Frozen for all replicas, between two steps.",
               [table(optimizer=adagrad(0.25)), bare()], [feature(), feature("word", "text")],
               {"replicas": 2})
    for seed, frozen in enumerate((False, True, False)):
        v.freeze(frozen=frozen)
        for r in (0, 1):
            both(v, [[r]], [[r, 2]], r)
        for r in (0, 1):
            v.apply(v.grads(seed + r), replica=r)
        v.table()
    v.table(slot="accumulators")
    v.table("text")
    return v


def in_flight():
    v = Vector("frozen_while_looked_up", "A freeze between a lookup and its gradients holds for "
               "these gradients; of two batches that are ahead it holds for both.",
               [table(optimizer=sgd(0.5)), table("u")], [feature(), feature("word", "u")])
    both(v, [[1]], [[1]])
    v.freeze()
    v.apply(v.grads(1))
    v.table()
    for _ in (0, 1):
        v.enqueue({"word": dense([2]), "f": dense([2])})
    v.dequeue()
    v.freeze(frozen=False)
    v.apply(v.grads(2))
    v.dequeue()
    v.freeze()
    v.apply(v.grads(3))
    v.table()
    v.table("u")
    return v


def pipelined():
    v = Vector("frozen_pipelined", "With pipelining the update that is held when a table is frozen "
               "still changes it, and lookups are stale by exactly one step all the same.",
               [table(optimizer=adagrad(0.25))], [feature()], PIPELINED)
    batch = {"f": dense([1, 2, 4])}
    v.train(batch, seed=1)
    v.train(batch, seed=2)
    v.freeze()
    v.train(batch, seed=3)
    v.train(batch, seed=4)
    v.freeze(frozen=False)
    v.train(batch, seed=5)
    v.train(batch, seed=6)
    v.lookup(batch)
    v.apply(v.grads(7))
    v.table()
    v.table(slot="accumulators")
    return v


def each_occurrence():
    v = Vector("frozen_without_accumulation", "Occurrences that are applied one by one are not "
               "applied to a frozen table either.",
               [table(optimizer=sgd(0.5, use_gradient_accumulation=False))], [feature()])
    for frozen in (True, False):
        v.freeze(frozen=frozen)
        v.train({"f": ragged([[1, 1, 1], [2, 1]])})
        v.table()
    return v


def saved():
    v = Vector("frozen_saved", "A frozen table is saved with its slots and its own step, one "
               "without an optimizer with its rows alone; a restore brings both back, writes to "
               "the frozen one too, and leaves it frozen.",
               [table(optimizer=CORRECTED), bare(), table("u", optimizer=CORRECTED)],
               [feature(), feature("word", "text"), feature("more", "u")])

    def step(seed):
        v.lookup({"f": dense([1, 2]), "word": dense([3, 4]), "more": dense([1, 2])})
        v.apply(v.grads(seed))

    def read():
        for name in ("t", "text", "u"):
            v.table(name)
        v.table(slot="velocities")

    step(1)
    v.freeze()
    step(2)
    step(3)
    v.save()
    v.freeze(frozen=False)
    step(4)
    v.freeze()
    v.restore()
    read()
    step(5)
    v.table()
    v.freeze(frozen=False)
    step(6)
    read()
    v.reopen()
    v.restore()
    step(4)
    read()
    return v


def vectors():
    yield from (make() for make in (
        without_optimizer, left_out, nothing_trains, from_start, refused, replicas, in_flight,
        pipelined, each_occurrence, saved))
    for kind, optimizer in KINDS.items():
        yield switched(kind, optimizer)

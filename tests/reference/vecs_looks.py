# SPDX-License-Identifier: MIT
"""Vectors of looks between the steps of a training, which change nothing about it."""

from vecbuild import Vector, adagrad, dense, feature, ragged, sgd, table
from vecs_optimizers import ALL

PIPELINED = {"pipelining": True}
KINDS = {"adagrad": adagrad(0.25), "adam_non_lazy": {**ALL["adam"], "lazy_adam": False}}


def looks(name, optimizer, engine):
    replicas = engine.get("replicas", 1)
    v = Vector(f"looks_{name}", "Reading rows, statistics, inference, serving and saving, between "
               "any two steps, see every update and change nothing: the last rows are those of "
               "the same steps without them.", [table(rows=6, optimizer=optimizer)], [feature()],
               engine)
    batches = ([[1, 2]], [[2, 2]], [[5, 1]], [[0]], [[1, 5, 2]], [[2]])
    look = (lambda: v.table(), lambda: v.stats("t", "ids", "unique_ids"),
            lambda: v.lookup({"f": ragged([[1, 2, 5]])}, training=False),
            lambda: v.serve({"f": ragged([[1, 2, 5]])}), v.save, lambda: v.table(rows=[3]))
    for k, rows in enumerate(batches):
        for r in range(replicas):
            v.lookup({"f": ragged(rows)}, replica=r)
        if k != 1:               # no update has counted this step yet
            look[k]()
        for r in range(replicas):
            v.apply(v.grads(k + r), replica=r)
        look[k - 1]()
        look[k - 4]()
    unseen = Vector("unseen", "", v.doc["tables"], v.doc["features"], engine)
    for k, rows in enumerate(batches):
        for r in range(replicas):
            unseen.lookup({"f": ragged(rows)}, replica=r)
        for r in range(replicas):
            unseen.apply(unseen.grads(k + r), replica=r)
    assert v.engine.read_table("t") == unseen.engine.read_table("t"), name
    v.table()
    for slot in v.engine.model.table("t").slots:
        v.table(slot=slot)
    return v


def write_between():
    v = Vector("looks_and_a_restore", "A restore while an update is held: the next lookup sees what "
               "was restored, as it is no look.", [table(optimizer=sgd(0.25))], [feature()],
               PIPELINED)
    batch = {"f": dense([1, 2])}
    v.save()
    v.train(batch, seed=1)
    v.train(batch, seed=2)
    v.table()
    v.restore()
    v.train(batch, seed=3)
    v.train(batch, seed=4)
    v.table()
    return v


def vectors():
    for name, engine in (("plain", {}), ("pipelined", PIPELINED),
                         ("pipelined_replicas", {"replicas": 2, **PIPELINED})):
        for kind, optimizer in KINDS.items():
            yield looks(f"{name}_{kind}", optimizer, engine)
    yield write_between()

# SPDX-License-Identifier: MIT
"""Vectors of save, restore and reopen."""

from vecbuild import Vector, adagrad, dense, feature, nested, numbers, ragged, sgd, table
from vecs_optimizers import ALL, CORRECTED, STEPS, read

MISSING = {"errno": "ENOENT"}
KINDS = {"sgd": sgd(), "adagrad": adagrad(0.25), **ALL}


def start(name, about, optimizer=None, engine=None, **more):
    return Vector(f"checkpoint_{name}", about,
                  [table(optimizer=optimizer or adagrad(0.25), **more)], [feature()], engine)


def steps(v, *which, replicas=1):
    for k in which:
        for r in range(replicas):
            v.lookup({"f": ragged(STEPS[k])}, replica=r)
        for r in range(replicas):
            v.apply(v.grads(3 * k + r), replica=r)


def round_trip(kind, optimizer):
    v = start(f"round_trip_{kind}", f"{kind}: a restore brings back parameters and slots, in the "
              "same engine and in a new one, and training goes on from there.", optimizer)
    steps(v, 0, 1)
    v.save()
    steps(v, 2)
    read(v)
    v.restore()
    read(v)
    steps(v, 3)
    read(v)
    v.reopen()
    v.restore()
    read(v)
    steps(v, 2)
    read(v)
    return v


def cores():
    v = start("other_cores", "Saved by three cores, restored by one, saved again, restored by "
              "four: the same rows.", engine={"cores": 3}, rows=13)
    steps(v, 0, 1)
    v.save()
    v.reopen(cores=1)
    v.restore()
    steps(v, 2)
    v.save("b")
    v.reopen(cores=4)
    v.restore("b")
    read(v)
    steps(v, 3)
    read(v)
    return v


def replicas():
    v = start("other_replicas", "Saved with one replica, restored with two that pipeline.")
    steps(v, 0)
    v.save()
    v.reopen(replicas=2, pipelining=True)
    v.restore()
    steps(v, 1, 2, replicas=2)
    read(v)
    v.save("b")
    v.reopen()
    v.restore("b")
    read(v)
    return v


def overwrite():
    v = start("overwrite", "A save into a folder that has a checkpoint replaces it; another folder "
              "keeps its own.")
    v.save("first")
    steps(v, 0)
    v.save()
    steps(v, 1)
    v.save()
    steps(v, 2)
    v.restore()
    read(v)
    v.restore("first")
    read(v)
    return v


def missing():
    v = start("missing", "There is nothing to restore from: an error, and nothing has changed.")
    steps(v, 0)
    v.restore("nowhere", error=MISSING)
    read(v)
    v.save("here")
    v.restore("here/below", error=MISSING)
    v.restore("nowhere", error=MISSING)
    steps(v, 1)
    read(v)
    return v


def outside():
    v = start("outside", "Folders lie inside the folder of the run.")
    for folder in ("/tmp/embeng-vector", "..", "a/../../b", ""):
        v.save(folder, error={"errno": "EINVAL"})
        v.restore(folder, error={"errno": "EINVAL"})
    v.save("a..b/..c")
    steps(v, 0)
    v.restore("a..b/..c")
    read(v)
    return v


def serving():
    v = start("without_optimizer", "Opened without slots: a restore takes the parameters alone, "
              "lookups work, a training batch does not.")
    steps(v, 0, 1)
    v.save()
    v.reopen(optimizer=False)
    v.lookup({"f": dense([1, 6])}, training=False)
    v.restore()
    v.table()
    v.lookup({"f": ragged([[1, 2, 2], [6]])}, training=False)
    v.enqueue({"f": dense([1, 6])}, error={"errno": "EINVAL", "contains": ["t"]})
    v.table(slot="accumulators", error=MISSING)
    v.lookup({"f": dense([3, 6])}, training=False)
    return v


def no_slots():
    v = start("of_parameters_alone", "A checkpoint without slots does not fill a model that has "
              "them: an error that names the slot, and nothing has changed.")
    v.reopen(optimizer=False)
    v.save()
    v.reopen()
    steps(v, 0)
    v.restore(error={"errno": "ENOENT", "contains": ["t", "accumulators"]})
    read(v)
    v.reopen(optimizer=False)
    v.restore()
    v.table()
    return v


def step_count():
    v = start("step_count", "Adam with bias correction goes on counting from the checkpoint's "
              "updates: back from more, and up from none.", CORRECTED)
    steps(v, 0, 1, 2)
    v.save()
    steps(v, 3, 0)
    v.restore()
    steps(v, 3)
    read(v)
    v.reopen()
    steps(v, 1)
    v.restore()
    steps(v, 3)
    read(v)
    return v


def pipeline_restore():
    v = start("restore_drains_pipeline", "A restore comes after the update that pipelining holds, "
              "and the next lookup sees the restored rows.", engine={"pipelining": True})
    steps(v, 0)
    v.save()
    steps(v, 1, 2)
    v.restore()
    read(v)
    steps(v, 3, 1)
    read(v)
    return v


def pipeline_save():
    v = start("save_drains_pipeline", "A save has the update that pipelining holds.",
              engine={"pipelining": True})
    steps(v, 0, 1)
    v.save()
    v.reopen()
    v.restore()
    read(v)
    return v


def in_flight():
    v = start("steps_in_flight", "A step that was looked up before a restore stays in flight: its "
              "gradients go to the restored rows. A save has whole updates only.")
    steps(v, 0)
    v.lookup({"f": ragged(STEPS[1])})
    v.save()
    v.apply(v.grads(4))
    v.lookup({"f": ragged(STEPS[2])})
    v.restore()
    read(v)
    v.apply(v.grads(5))
    read(v)
    return v


def odd_names():
    names = ["a/b", "with space", "\u00fcn\u00ef\u2713", "..", "parameters", "a\\\"b", "a"]
    v = Vector("checkpoint_odd_names", "Tables named with slashes, spaces, quotes, dots and beyond "
               "ASCII, in a folder named so.",
               [table(name, rows=3 + k, dim=2, optimizer=adagrad(0.5, initial_accumulator_value=k
                                                                 + 1))
                for k, name in enumerate(names)],
               [feature(f"f{k}", name) for k, name in enumerate(names)])
    v.train({f"f{k}": dense([k % 3, 2]) for k in range(len(names))})
    folder = "\u00fc \"x\"/..."
    v.save(folder)
    v.reopen()
    v.restore(folder)
    for name in names:
        read(v, name)
    return v


def stats():
    v = start("statistics", "A restore leaves the counts alone; a new engine begins at none.")
    steps(v, 0)
    v.save()
    steps(v, 1)
    v.restore()
    v.stats("t")
    steps(v, 2)
    v.stats("t")
    steps(v, 3)
    v.reopen()
    v.restore()
    v.stats("t")
    return v


def given_slots():
    v = start("given_slots", "Slots that the program filled are saved and restored like any other.",
              rows=4, slots={"accumulators": nested([abs(x) + 0.5 for x in numbers(12, 3)],
                                                    [4, 3])})
    v.save()
    v.train({"f": dense([0, 3, 3])})
    v.restore()
    read(v)
    v.train({"f": dense([1, 3, 2])})
    read(v)
    return v


def special_values():
    v = start("special_values", "Infinities, NaN, the smallest denormal and the largest number "
              "come back.", sgd(), {"non_finite": "allow"}, rows=2, dim=3,
              initial=[["nan", "inf", "-inf"], [2.0 ** -149, 3.4028234663852886e38, -0.0]])
    v.save()
    v.train({"f": dense([0, 1])}, {"f": {"fill": 1}})
    v.restore()
    v.table()
    return v


def many_tables():
    v = Vector("checkpoint_many_tables", "Tables of other dims, combiners and optimizers, one of "
               "them without a feature.",
               [table("t", rows=5, dim=1, optimizer=ALL["ftrl"]),
                table("u", rows=2, dim=17, optimizer=sgd()),
                table("idle", rows=3, dim=4, optimizer=ALL["adam"], initial={"row_id": 0.5}),
                table("w", rows=9, dim=5, combiner="sum", optimizer=adagrad())],
               [feature("f"), feature("g", "u"), feature("h", "w")], {"cores": 2})
    batch = {"f": dense([1, 4]), "g": dense([0, 1]), "h": ragged([[8, 1], [3]])}
    v.train(batch)
    v.save()
    v.train(batch, seed=7)
    v.reopen(cores=3)
    v.restore()
    for k, name in enumerate(("t", "u", "idle", "w")):
        read(v, name, v.doc["tables"][k]["optimizer"])
    v.train(batch, seed=9)
    v.table("w", slot="accumulators")
    return v


def many_chunks():
    v = start("many_chunks", "A table of several checksummed pieces: rows on both sides of every "
              "4 MiB.", sgd(1), rows=400000, dim=8, initial={"arange": [0, 1]})
    v.train({"f": dense([0, 131071, 131072, 399999])}, {"f": {"fill": 0.5}})
    v.save()
    v.reopen(cores=2)
    v.restore()
    v.table(rows=[0, 1, 131070, 131071, 131072, 131073, 262143, 262144, 399998, 399999])
    return v


def rates():
    v = start("dynamic_rate", "A rate that each step gives is no part of a checkpoint.",
              sgd({"dynamic": "lr"}))
    v.train({"f": dense([1, 2])}, rates={"lr": 0.5})
    v.save()
    v.reopen()
    v.restore()
    v.train({"f": dense([1, 3])}, rates={"lr": 0.25})
    v.lookup({"f": dense([1, 3])})
    v.apply({}, error={"contains": ["lr"]})
    v.table()
    return v


def vectors():
    yield from (round_trip(kind, optimizer) for kind, optimizer in KINDS.items())
    yield from (make() for make in (
        cores, replicas, overwrite, missing, outside, serving, no_slots, step_count,
        pipeline_restore, pipeline_save, in_flight, odd_names, stats, given_slots,
        special_values, many_tables, many_chunks, rates))

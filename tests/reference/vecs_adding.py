# SPDX-License-Identifier: MIT
"""Vectors of tables and features that are added to an open engine."""

from vecbuild import Vector, adagrad, dense, feature, ragged, sgd, table

BUSY = {"errno": "EBUSY"}
ADAM = {"kind": "adam", "learning_rate": 0.125, "bias_correction": True}
ALL_ROWS = {**ADAM, "lazy_adam": False}


def model(name, about, optimizer=None, engine=None):
    return Vector(name, about, [table(rows=6, dim=2, optimizer=optimizer or sgd(0.25))],
                  [feature()], engine=engine)


def more(name="u", **settings):
    return table(name, rows=5, dim=3, **settings)


def see_all(v, *slots):
    for name in ("t", "u"):
        v.table(name)
        for slot in slots:
            v.table(name, slot=slot)


def added():
    v = model("add_table_between_steps", "A table with a feature comes between two steps: rows and "
              "slots of the other stay, and both train.", adagrad(0.25))
    v.train({"f": dense([1, 2])})
    v.add_tables([more(optimizer=adagrad(0.5))], [feature("g", on="u")])
    see_all(v, "accumulators")
    v.train({"f": dense([2, 3]), "g": ragged([[1, 4], [2]])})
    see_all(v, "accumulators")
    v.stats("t", "ids", "unique_ids")
    v.stats("u", "ids", "unique_ids")
    return v


def at_first():
    v = model("add_table_before_any_step", "A table is added before the first step.")
    v.add_tables([more()], [feature("g", on="u")])
    v.train({"f": dense([1, 2]), "g": dense([3])})
    see_all(v)
    return v


def of_old_table():
    v = model("add_feature_of_a_table", "Another feature of the table that is there: ids of both "
              "features meet in its rows.", adagrad(0.25))
    v.train({"f": dense([1, 2])})
    v.add_tables(features=[feature("g"), feature("s", max_sequence_length=2)])
    v.train({"f": dense([2, 3]), "g": dense([3, 1, 1]), "s": ragged([[2, 4], [], [5]])})
    v.table()
    v.table(slot="accumulators")
    return v


def own_steps():
    v = model("added_adam_counts_its_own_steps", "Bias correction of a table goes by the steps since it "
              "came, that of the others by all.", ADAM)
    for seed in (1, 2):
        v.train({"f": dense([1, 2])}, seed=seed)
    v.add_tables([more(optimizer=ADAM)], [feature("g", on="u")])
    for seed in (3, 4):
        v.train({"f": dense([1, 3]), "g": dense([1, 2])}, seed=seed)
    see_all(v, "momenta", "velocities")
    v.save()
    v.train({"f": dense([1]), "g": dense([4])}, seed=5)
    v.restore()
    v.train({"f": dense([1]), "g": dense([4])}, seed=6)
    see_all(v, "momenta", "velocities")
    return v


def all_rows():
    v = model("added_adam_over_all_rows", "Adam over all rows of an added table begins with the first "
              "step that the table has.", ALL_ROWS)
    v.train({"f": dense([1, 2])})
    v.add_tables([more(optimizer=ALL_ROWS)], [feature("g", on="u")])
    v.train({"f": dense([3]), "g": dense([1, 2])}, seed=2)
    v.train({"f": dense([1]), "g": dense([4])}, seed=3)
    see_all(v, "momenta", "velocities")
    return v


def pipelined():
    v = model("add_table_pipelined", "With pipelining the step behind an added table does not see the "
              "update before it, as without the table.", adagrad(0.25), engine={"pipelining": True})
    for seed in (1, 2, 3):
        v.train({"f": dense([1, 2])}, seed=seed)
    v.add_tables([more(optimizer=adagrad(0.5))], [feature("g", on="u")])
    for seed in (4, 5, 6):
        v.train({"f": dense([1, 2]), "g": dense([1, 2])}, seed=seed)
    see_all(v, "accumulators")
    return v


def replicas():
    v = model("add_table_of_replicas", "The second replica has not fed the engine when the table comes.",
              adagrad(0.25), engine={"replicas": 2})
    v.add_tables([more(optimizer=adagrad(0.5))], [feature("g", on="u")])
    for seed in (1, 2):
        for r in (0, 1):
            v.lookup({"f": dense([1, 2 + r]), "g": dense([r])}, replica=r)
        for r in (0, 1):
            v.apply(v.grads(seed + r, replica=r), replica=r)
    see_all(v, "accumulators")
    return v


def frozen():
    v = model("added_table_is_frozen", "A table that comes frozen trains from when it is thawed, as its "
              "own first step.", ADAM)
    v.train({"f": dense([1])})
    v.add_tables([more(optimizer=ADAM, frozen=True)], [feature("g", on="u")])
    v.train({"f": dense([1]), "g": dense([1, 2])}, seed=2)
    v.table("u")
    v.freeze("u", False)
    v.train({"f": dense([1]), "g": dense([1, 2])}, seed=3)
    see_all(v, "momenta", "velocities")
    return v


def rates():
    v = model("added_table_has_a_rate", "A dynamic rate that comes with a table is wanted from then on.",
              sgd({"dynamic": "r"}))
    v.train({"f": dense([1])}, rates={"r": 0.5})
    v.add_tables([more(optimizer=sgd({"dynamic": "q"}))], [feature("g", on="u")])
    v.lookup({"f": dense([1]), "g": dense([2])})
    v.apply(v.grads(2), rates={"r": 0.5}, error={"errno": "EINVAL", "contains": ["q"]})
    v.apply(v.grads(2), rates={"r": 0.5, "q": 0.25})
    see_all(v)
    return v


def free_order():
    v = model("update_of_an_added_table", "Updates without a lookup before and after a table comes.",
              adagrad(0.25))
    v.update({"f": dense([1, 2])}, {"f": [[1.0, -1.0]] * 2})
    v.add_tables([more(optimizer=adagrad(0.5))], [feature("g", on="u")])
    v.update({"f": dense([2]), "g": dense([1, 3])}, {"f": [[1.0, -1.0]], "g": [[0.5, 1.0, -1.0]] * 2})
    v.lookup({"f": dense([2]), "g": dense([1, 3])}, training=False)
    see_all(v, "accumulators")
    return v


def several():
    v = model("add_tables_again", "Tables come one after another.", adagrad(0.25))
    for n, name in enumerate(("u", "w", "x"), 1):
        v.train({"f": dense([n]), **{other: dense([n]) for other in ("u", "w")[:n - 1]}}, seed=n)
        v.add_tables([more(name, optimizer=adagrad(0.5))], [feature(name, on=name)])
    v.train({name: dense([2, 4]) for name in ("f", "u", "w", "x")}, seed=9)
    for name in ("t", "u", "w", "x"):
        v.table(name)
    return v


def under_way():
    v = model("add_table_refused_in_a_step", "A batch that is enqueued, and a view without gradients, "
              "keep tables out; then they come.")
    v.enqueue({"f": dense([1])})
    v.add_tables([more()], [feature("g", on="u")], error=BUSY)
    v.dequeue()
    v.add_tables([more()], [feature("g", on="u")], error=BUSY)
    v.apply(v.grads(1))
    v.add_tables([more()], [feature("g", on="u")])
    v.train({"f": dense([1]), "g": dense([2])})
    see_all(v)
    return v


def twice():
    v = model("add_table_refused_twice", "A name that is there already is refused, and nothing comes of "
              "the rest of the step.")
    v.add_tables([more(), more("t")], error={"errno": "EEXIST", "contains": ["t"]})
    v.add_tables([more()], [feature("f", on="u")], error={"errno": "EEXIST", "contains": ["f"]})
    v.add_tables([more()], [feature("g", on="nowhere")], error={"errno": "ENOENT"})
    v.train({"f": dense([1, 2])})
    v.table()
    v.table("u", error={"errno": "ENOENT"})
    return v


def vectors():
    return [added(), at_first(), of_old_table(), own_steps(), all_rows(), pipelined(), replicas(),
            frozen(), rates(), free_order(), several(), under_way(), twice()]

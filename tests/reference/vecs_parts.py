# SPDX-License-Identifier: MIT
"""Vectors of tables that are parts of larger ones: rows that start as they do in the whole table."""

from vecbuild import Vector, adagrad, dense, feature, ragged, sgd, table
from vecs_model import of_table

ROWS, DIM = 37, 21  # the whole table has these
UNIFORM = {"kind": "uniform", "a": -1, "b": 3, "seed": 5}
NORMAL = {"kind": "truncated_normal", "a": 0.5, "b": 0.25, "seed": 7}
DEFAULT = {"kind": "default", "seed": 11}
CONSTANT = {"kind": "constant", "a": 0.75}
POSITIVE = {"kind": "uniform", "a": 0.25, "b": 2, "seed": 3}

CUTS = (
    ("whole", "All of a table is no part of it.", ROWS, DIM, {}),
    ("mod", "Every fifth row, from the third on.", 7, DIM, {"first_row": 2, "row_step": 5}),
    ("mod_last", "Every fifth row, up to the last one.", 8, DIM, {"first_row": 1, "row_step": 5}),
    ("div", "A run of rows in the middle.", 9, DIM, {"first_row": 10}),
    ("div_last", "The last run of rows.", 12, DIM, {"first_row": 25, "row_step": 1}),
    ("row", "One row, whose step leads nowhere.", 1, DIM, {"first_row": 36, "row_step": 1000}),
    ("columns_first", "The first 16 columns.", ROWS, 16, {"dim": DIM}),
    ("columns_last", "The columns behind the first 16.", ROWS, 5,
     {"dim": DIM, "first_column": 16}),
    ("columns_odd", "Columns that begin and end within a block of four random words.", ROWS, 6,
     {"dim": DIM, "first_column": 5}),
    ("column", "One column.", ROWS, 1, {"dim": DIM, "first_column": 19}),
    ("both", "Some columns of every fourth row.", 9, 7,
     {"first_row": 1, "row_step": 4, "dim": DIM, "first_column": 9}))


def part_of(cut, **more):
    name, about, rows, dim, part = cut
    return table(rows=rows, dim=dim, initial=None, part={"rows": ROWS, **part}, **more)


def without_initial(spec):
    return {key: value for key, value in spec.items() if key != "initial"}


def start(name, about, tables, features=None, **more):
    return Vector(f"part_{name}", about, [without_initial(t) for t in tables],
                  features or [feature()], **more)


def begins(cut):
    v = start(cut[0], cut[1] + " Its rows begin and are filled as in the whole.",
              [part_of(cut, initializer=UNIFORM)])
    v.table()
    v.fill(NORMAL)
    v.table()
    return v


def default():
    v = start("default", "By default the deviation is that of the whole table's columns.",
              [part_of(cut, name=f"t{k}", initializer=DEFAULT)
               for k, cut in enumerate((CUTS[0], CUTS[1], CUTS[8]))], [feature("f", "t0")])
    for k in range(3):
        v.table(f"t{k}")
        v.fill(CONSTANT, f"t{k}")
        v.table(f"t{k}", rows=[0])
        v.fill(DEFAULT, f"t{k}", first=0, count=2)
        v.table(f"t{k}", rows=[0, 1, 2])
    return v


def ranges():
    v = start("ranges", "Ranges of rows are filled one after the other, the empty one too.",
              [part_of(CUTS[10], initializer=CONSTANT)])
    for first, count, how in ((0, 1, UNIFORM), (3, 4, UNIFORM), (5, 0, NORMAL), (8, 1, NORMAL),
                              (2, 2, NORMAL), (9, 0, NORMAL)):
        v.fill(how, first=first, count=count)
        v.table()
    v.fill(UNIFORM, first=8, count=2, error={"errno": "ERANGE"})
    v.fill(UNIFORM, first=10, count=0, error={"errno": "ERANGE"})
    v.fill({"kind": "gaussian"}, error={"errno": "EINVAL", "contains": ["gaussian"]})
    v.fill(UNIFORM, "none", error={"errno": "ENOENT", "contains": ["none"]})
    v.fill(UNIFORM, slot="momenta", error={"errno": "ENOENT", "contains": ["momenta"]})
    v.table()
    return v


def slots(kind, optimizer, names):
    v = start(f"slots_{kind}", f"Slots are filled as those of the whole table; one of one number a row "
              f"is whole in each part: {kind}.",
              [part_of(CUTS[10], optimizer=optimizer, initializer=UNIFORM)])
    for name in names:
        v.fill(POSITIVE, slot=name)
        v.table(slot=name)
        v.fill({"kind": "default"}, slot=name, first=1, count=3)
        v.table(slot=name)
    v.table()
    return v


def trains():
    v = start("train", "Ids, updates and a checkpoint are of the part alone.",
              [part_of(CUTS[1], optimizer=adagrad(0.25), initializer=NORMAL, combiner="sum")],
              requires=["checkpoint"])
    v.train({"f": ragged([[0, 6, 6], [3], []])})
    v.enqueue({"f": dense([7])}, error={"errno": "ERANGE", "contains": ["7"]})
    v.save()
    v.train({"f": ragged([[1], [3, 6]])}, seed=2)
    v.table()
    v.reopen()
    v.table()
    v.restore()
    v.table()
    v.table(slot="accumulators")
    return v


def adds():
    v = start("added", "Parts beside a whole table and a quantized one, and parts that are added.",
              [table(initializer=UNIFORM),
               part_of(CUTS[3], name="u", initializer=UNIFORM,
                       quantization={"num_buckets": 5, "lower": -1, "upper": 3})],
              [feature(), feature("g", "u")])
    v.lookup({"f": dense([1, 2]), "g": dense([1, 2])}, training=False)
    v.add_tables([without_initial(part_of(CUTS[8], name="w", initializer=UNIFORM))],
                 [feature("h", "w")])
    v.train({"f": dense([1, 2]), "g": dense([1, 2]), "h": dense([36, 0])})
    for name in ("t", "u", "w"):
        v.table(name)
    return v


def initializers():
    v = start("initializers", "The library starts rows by the initializers of whole tables, too.",
              [table(name, initializer=how) for name, how in (
                  ("u", UNIFORM), ("n", NORMAL), ("d", DEFAULT), ("c", CONSTANT),
                  ("u2", {**UNIFORM, "seed": 6}))], [feature("f", "u")])
    for name in ("u", "n", "d", "c", "u2"):
        v.table(name)
    return v


def refused():
    good = {"rows": ROWS, "first_row": 2, "row_step": 5, "dim": DIM, "first_column": 5}
    for name, about, change, words in (
            ("rows_zero", "A whole table without rows.", {"rows": 0}, ["rows"]),
            ("rows_fewer", "A whole table of fewer rows than its part.", {"rows": 6}, ["6 rows"]),
            ("first_row_negative", "Rows from before the first one on.", {"first_row": -1},
             ["first_row -1"]),
            ("first_row_behind", "Rows that begin too late.", {"first_row": 31}, ["first_row 31"]),
            ("step_negative", "Rows backwards.", {"row_step": -1}, ["row_step -1"]),
            ("step_too_large", "A last row behind the whole table.", {"row_step": 6},
             ["row_step 6"]),
            ("step_far_too_large", "Steps that 64 bits do not add up.",
             {"row_step": 2 ** 62}, ["row_step 4611686018427387904"]),
            ("dim_less", "A whole table of fewer columns than its part.", {"dim": 5}, ["dim 5"]),
            ("column_negative", "Columns from before the first one on.", {"first_column": -1},
             ["first_column -1"]),
            ("column_behind", "A last column behind the whole table.", {"first_column": 16},
             ["first_column 16"])):
        yield of_table(f"part_{name}", about, "ERANGE", ["items", "part", *words],
                       rows=7, dim=6, part={**good, **change})
    yield of_table("initializer_unknown", "An initializer that nobody knows.", "EINVAL",
                   ["gaussian"], initializer={"kind": "gaussian"})


def vectors():
    for cut in CUTS:
        yield begins(cut)
    yield default()
    yield ranges()
    yield slots("adagrad", adagrad(0.5), ["accumulators"])
    yield slots("adam", {"kind": "adam", "learning_rate": 0.125}, ["momenta", "velocities"])
    yield slots("rowwise", {"kind": "rowwise_adagrad", "learning_rate": 0.125}, ["accumulators"])
    yield slots("partial", {"kind": "partial_rowwise_adam", "learning_rate": 0.125},
                ["momenta", "velocities"])
    yield trains()
    yield adds()
    yield initializers()
    yield from refused()

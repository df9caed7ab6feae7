# SPDX-License-Identifier: MIT
"""Vectors of models that must not build: one thing wrong in each."""

from vecbuild import Vector, adagrad, feature, sgd, table


def refused(name, about, errno=None, contains=(), tables=None, features=None, requires=None,
            engine=None):
    v = Vector("model_" + name, about, tables or [table("items")],
               features if features is not None else [feature("clicks", "items")],
               engine=engine, requires=requires)
    return v.refused(errno, contains)


def of_table(name, about, errno, contains, requires=None, **more):
    return refused(name, about, errno, contains, [table("items", **more)], requires=requires)


def sizes():
    for key, arg, what in (("vocabulary", "rows", "A table"), ("dim", "dim", "A row")):
        for value, word in ((0, "zero"), (-1, "negative")):
            yield of_table(f"{key}_{word}", f"{what} of size {value}.", "ERANGE",
                           ["items", str(value)], initial={"fill": 0}, **{arg: value})


def names():
    yield refused("table_twice", "Two tables of one name.", "EEXIST", ["items"],
                  [table("items"), table("users"), table("items", rows=9)])
    yield refused("feature_twice", "Two features of one name.", "EEXIST", ["clicks"],
                  features=[feature("clicks", "items"), feature("clicks", "items")])
    yield refused("unknown_table", "A feature of a table that is not there.", "ENOENT",
                  ["clicks", "persons"], features=[feature("clicks", "persons")])
    yield of_table("unknown_combiner", "A combiner that is none of sum, mean, sqrtn.", None,
                   ["median"], combiner="median")
    yield of_table("unknown_optimizer", "An optimizer kind that is not in the family.", None,
                   ["lamb"], optimizer={"kind": "lamb", "learning_rate": 0.1})
    yield of_table("unknown_policy", "A policy that is none of error, clamp, drop, zero.", None,
                   ["wrap"], out_of_range="wrap")


def numbers():
    for value, word in ((0, "zero"), (-0.5, "negative")):
        yield of_table(f"adagrad_accumulator_{word}", "Adagrad's initial accumulator is above 0.",
                       "ERANGE", ["items", "initial_accumulator_value"],
                       optimizer=adagrad(0.1, initial_accumulator_value=value))
    yield refused("sequence_length_negative", "max_sequence_length is not below 0.", "ERANGE",
                  ["clicks", "-1"], features=[feature("clicks", "items", max_sequence_length=-1)])


def options():
    yield of_table("clip_weight_crossed", "clip_weight_min above clip_weight_max.", None,
                   ["items"], ["options"],
                   optimizer=sgd(0.1, clip_weight_min=1, clip_weight_max=-1))
    yield of_table("clipvalue_crossed", "A gradient clip whose lower limit is above the upper.",
                   None, ["items"], ["options"], optimizer=sgd(0.1, clipvalue=[2, -2]))
    yield of_table("clipvalue_without_accumulation", "A gradient clip needs accumulation, be it "
                   "a clip at 0.", "EINVAL", ["items"], ["options"],
                   optimizer=adagrad(0.1, clipvalue=0.0, use_gradient_accumulation=False))


def hosts():
    yield refused("unknown_sharding", "A sharding that is neither div nor mod.", "EINVAL",
                  ["shuffle"], engine={"sharding": "shuffle"})
    for value, word in ((0, "zero"), (-2, "negative")):
        yield refused(f"hosts_{word}", "There is at least one host.", "ERANGE", [str(value)],
                      engine={"hosts": value})


def vectors():
    yield from hosts()
    yield from sizes()
    yield from names()
    yield from numbers()
    yield from options()

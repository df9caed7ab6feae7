# SPDX-License-Identifier: MIT
"""Vectors of numbers that are not finite or that cannot be there, and of multipliers."""

from refmodel import FROM_0
from vecbuild import Vector, adagrad, dense, feature, ragged, sgd, table
from vecs_optimizers import ALL as BASE
from vecs_proto import ALL as PROTO
from vecs_rowwise import ALL as ROWWISE

ALL = {"adagrad": adagrad(), **BASE, **PROTO, **ROWWISE}
BAD = {"nan": "nan", "inf": "inf", "minus_inf": "-inf"}
REFUSED = {"errno": "ERANGE"}


def refused():
    for name, x in BAD.items():
        v = Vector(f"gradient_{name}_refused", f"A gradient of {x} is an error that names feature, "
                   "sample and column. Nothing has changed, and the same step is given again.",
                   [table(optimizer=adagrad(0.5), dim=2), table("u", optimizer=sgd(), dim=2)],
                   [feature(), feature("g", "u")])
        v.lookup({"f": dense([1, 2, 1]), "g": dense([3, 0, 0])})
        v.apply({"f": [[1, 1], [1, 1], [1, x]], "g": [[1, 1]] * 3},
                error={**REFUSED, "contains": ["feature f", "sample 2", "column 1"]})
        v.apply({"f": [[1, 2], [3, 4], [5, 6]], "g": [[x, 1], [1, 1], [1, 1]]},
                error={**REFUSED, "contains": ["feature g", "sample 0", "column 0"]})
        v.apply({"f": [[1, 2], [3, 4], [5, 6]], "g": [[1, 1]] * 3})
        v.table()
        v.table(slot="accumulators")
        v.table("u")
        yield v


def of_an_empty_bag():
    v = Vector("gradient_of_an_empty_bag", "A gradient that reaches no row is refused as well.",
               [table()], [feature()])
    v.lookup({"f": ragged([[1], []])})
    v.apply({"f": [[1, 1, 1], [1, "nan", 1]]}, error=REFUSED)
    v.table()
    return v


def with_policy(policy, name, optimizer, engine=None, rows=6):
    v = Vector(f"gradient_{policy}_{name}", "Rows that a gradient which is not finite reaches are "
               + ("left as they are" if policy == "drop" else "updated with it")
               + ", slots too, and are counted; all other rows are updated.",
               [table(optimizer=optimizer, dim=2, rows=rows), table("u", optimizer=sgd(), dim=1)],
               [feature(), feature("g", "u")], {"non_finite": policy, **(engine or {})})
    v.lookup({"f": ragged([[1, 2], [2, 3], [4], [5, 5]]), "g": dense([0, 1, 2, 1])})
    v.apply({"f": [[1, 2], [3, "nan"], [4, 5], ["inf", 1]], "g": [[1], ["-inf"], [1], [2]]})
    v.lookup({"f": ragged([[1, 2], [], [3], [4]]), "g": dense([3, 3, 3, 3])})
    v.apply({"f": [[1, 1]] * 4, "g": [[1]] * 4})
    for on in ("t", "u"):
        v.table(on)
        v.stats(on, "unique_ids", "nonfinite_gradient_rows")
    if optimizer["kind"] == "adagrad":
        v.table(slot="accumulators")
    return v


def dropped():
    yield with_policy("drop", "sgd", sgd())
    yield with_policy("drop", "adagrad", adagrad(0.5))
    yield with_policy("drop", "each_occurrence", sgd(use_gradient_accumulation=False))
    yield with_policy("drop", "all_rows", {**ALL["adam"], "lazy_adam": False})
    yield with_policy("drop", "cores", adagrad(0.5), {"cores": 3})
    yield with_policy("allow", "sgd", sgd())
    yield with_policy("allow", "adagrad", adagrad(0.5))


def hot_row():
    """More occurrences than one call of a kernel takes."""
    for policy in ("drop", "allow"):
        v = Vector(f"gradient_{policy}_hot_row", "A row that every sample asks for is reached by "
                   "one gradient that is not finite.",
                   [table(rows=2, dim=1, combiner="sum")], [feature()], {"non_finite": policy})
        v.lookup({"f": ragged([[0] * 5000, [1], [0]])})
        v.apply({"f": [[1], [1], ["nan"]]})
        v.table()
        v.stats("t", "nonfinite_gradient_rows")
        yield v


def reopened():
    v = Vector("policy_of_a_reopen", "The policy is an option of the engine: a reopen may have "
               "another.", [table(initial={"fill": 1})], [feature()])
    for policy in ("drop", "error", "allow"):
        v.reopen(non_finite=policy)
        v.lookup({"f": dense([1, 2])})
        v.apply({"f": [[1, "nan", 1], [1, 1, 1]]}, error=REFUSED if policy == "error" else None)
        v.table()
    return v


def multipliers():
    for name, by in (("zero", 0), ("half", 0.5), ("minus_one", -1)):
        v = Vector(f"multiplier_{name}", f"The multiplier {by} is taken as it is.",
                   [table(optimizer=adagrad(0.5))], [feature()])
        v.lookup({"f": dense([1, 2, 1])})
        v.apply({"f": {"fill": 2}}, multiplier=by)
        v.table()
        v.table(slot="accumulators")
        yield v
    for name, by in BAD.items():
        v = Vector(f"multiplier_{name}", "A multiplier must be finite.", [table()], [feature()])
        v.lookup({"f": dense([1, 2, 1])})
        v.apply({"f": {"fill": 2}}, multiplier=by, error={**REFUSED, "contains": ["multiplier"]})
        v.apply({"f": {"fill": 2}}, multiplier=1)
        v.table()
        yield v


def rows():
    for name, x in BAD.items():
        yield Vector(f"row_{name}_refused", "A row that is not finite is refused by name.",
                     [table("users", rows=2, dim=2, initial=[[1, 2], [3, x]])],
                     [feature(on="users")]).refused("ERANGE", ["table users", "parameters"])


def slots():
    for kind, names in FROM_0.items():
        for slot in names:
            one = ALL[kind]
            yield Vector(f"slot_{kind}_{slot}_refused", f"{kind} cannot go on from {slot} below 0.",
                         [table("users", rows=1, dim=1, optimizer=one,
                                slots={slot: [[-0.25]]})], [feature(on="users")]).refused(
                                    "ERANGE", ["table users", slot])


def vectors():
    return [*refused(), of_an_empty_bag(), *dropped(), *hot_row(), reopened(), *multipliers(), *rows(),
            *slots()]

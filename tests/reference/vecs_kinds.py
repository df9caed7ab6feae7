# SPDX-License-Identifier: MIT
"""Vectors of what one optimizer alone has: forms, exponents, regularization, laziness."""

from vecbuild import Vector, adagrad, dense, feature, ragged, sgd, table
from vecs_optimizers import ADAM, CORRECTED, FTRL, MOMENTUM, STEPS, read, steps

LAZY_OFF = {"lazy_adam": False}


def several_steps(kind, optimizer):
    v = Vector(f"{kind}_four_steps", f"{kind} over four steps with rows that come back, twice in a "
               "bag and not at all.", [table(optimizer=optimizer, combiner="mean")], [feature()])
    for seed, rows in enumerate(STEPS):
        v.train({"f": ragged(rows)}, seed=seed)
    v.table()
    if kind == "adagrad":
        v.table(slot="accumulators")
    return v


def default_rate(kind, name, rate):
    optimizer = {"kind": kind}
    v = Vector(f"{kind}_defaults", f"{name} with nothing given: learning rate {rate}.",
               [table(optimizer=optimizer)], [feature()])
    v.train({"f": dense([1, 5, 5])}, {"f": {"fill": 16}})
    v.table()
    if kind == "adagrad":
        v.table(slot="accumulators")
    return v


def accumulator():
    v = Vector("adagrad_initial_accumulator", "The accumulator starts where the table says, in "
               "every row, and grows only in touched rows.",
               [table(optimizer=adagrad(0.25, initial_accumulator_value=4))], [feature()])
    v.table(slot="accumulators")
    for seed in (1, 2):
        v.train({"f": dense([1, 2, 1])}, seed=seed)
    v.table()
    v.table(slot="accumulators")
    return v


def zero_gradient():
    v = Vector("adagrad_zero_gradient", "Gradients of 0, and occurrences that cancel, leave values "
               "and accumulators; the rows count as touched.",
               [table(dim=2, optimizer=adagrad())], [feature()])
    v.train({"f": dense([1, 2, 2, 4])}, {"f": [[0, 0], [1.5, -2], [-1.5, 2], [1, 0]]})
    v.table()
    v.table(slot="accumulators")
    v.stats("t", "ids", "unique_ids")
    return v


def summed_once():
    v = Vector("adagrad_sums_before_squaring", "Four occurrences of a row: the square of their "
               "sum, not the sum of their squares, enters the accumulator.",
               [table(dim=2, combiner="sum", optimizer=adagrad(1))], [feature()])
    v.train({"f": ragged([[3, 3], [3], [1, 3]])}, {"f": [[1, -0.5], [0.25, 2], [0.5, 0.5]]})
    v.table()
    v.table(slot="accumulators")
    return v


def momenta():
    for name, more, what in (
            ("nesterov", {"use_nesterov": True}, "Nesterov's look ahead"),
            ("exponent_3", {"exponent": 3}, "the third root of the accumulator"),
            ("exponent_half", {"exponent": 0.5}, "the square of the accumulator"),
            ("exponent_1", {"exponent": 1}, "the accumulator itself"),
            ("beta2", {"beta2": 0.75}, "an accumulator that forgets"),
            ("beta2_zero", {"beta2": 0}, "an accumulator that holds the last square alone"),
            ("momentum_zero", {"momentum": 0, "use_nesterov": True}, "no momentum"),
            ("momentum_negative", {"momentum": -0.5}, "a momentum below 0"),
            ("all_settings", {"use_nesterov": True, "exponent": 1.5, "beta2": 0.5,
                              "momentum": 0.875}, "everything at once")):
        yield steps(f"adagrad_momentum_{name}", f"AdagradMomentum with {what}.",
                    {**MOMENTUM, **more})


def leaders():
    plain = {"kind": "ftrl", "learning_rate": 0.25}
    strong = {"l1_regularization_strength": 0.75, "l2_regularization_strength": 0.5, "beta": 1}
    for name, more, what in (
            ("plain", {}, "no regularization"),
            ("power_1", {"learning_rate_power": -1}, "a power of -1: the accumulator itself"),
            ("power_0_3", {"learning_rate_power": -0.3}, "a power of -0.3"),
            ("power_0", {"learning_rate_power": 0}, "a power of 0: the accumulator is ignored"),
            ("l1", {"l1_regularization_strength": 1.5}, "l1, which holds some values at 0"),
            ("l2", {"l2_regularization_strength": 0.75}, "l2"),
            ("beta", {"beta": 2}, "beta"),
            ("all_settings", {**strong, "learning_rate_power": -0.75,
                              "initial_accumulator_value": 0.5}, "everything at once"),
            ("multiply_linear", {"multiply_linear_by_learning_rate": True},
             "the linear slot multiplied by the rate"),
            ("multiply_linear_all_settings",
             {**strong, "multiply_linear_by_learning_rate": True, "learning_rate_power": -0.75},
             "the linear slot multiplied by the rate and everything else"),
            ("allow_zero_accumulator", {"allow_zero_accumulator": True},
             "allow_zero_accumulator, which has no effect")):
        yield steps(f"ftrl_{name}", f"FTRL with {what}.", {**plain, **more})


def ftrl_multiply_linear_rate_zero():
    return steps("ftrl_multiply_linear_rate_zero", "A rate of 0 is possible when it multiplies: "
                 "the linear slot keeps what the accumulator's growth gives it.",
                 {"kind": "ftrl", "learning_rate": 0, "multiply_linear_by_learning_rate": True})


def epsilons():
    for name, inside in (("inside", True), ("outside", False)):
        yield steps(f"adam_epsilon_{name}_sqrt", f"Adam's epsilon {name} the root; it is large, so "
                    "that the place shows.", {**ADAM, "epsilon": 0.5, "sum_inside_sqrt": inside})
    yield steps("adam_corrected_ignores_sum_inside_sqrt", "With bias correction epsilon stands "
                "beside the root, whatever sum_inside_sqrt says.",
                {**CORRECTED, "epsilon": 0.5, "sum_inside_sqrt": False})
    yield steps("adam_betas_zero", "Adam without memory: the sign of the gradient, but for "
                "epsilon.", {**ADAM, "beta_1": 0, "beta_2": 0})


def many_steps():
    v = Vector("adam_corrected_many_steps", "Bias correction over 24 steps: the count is the "
               "engine's, not the row's, so a row touched first in step 9 is corrected as of "
               "step 9.", [table(dim=2, optimizer={**CORRECTED, "beta_1": 0.875,
                                                   "beta_2": 0.984375})], [feature()])
    for step in range(1, 25):
        v.enqueue({"f": dense([1, 2 if step < 9 else 3])})
        v.dequeue(only=[])
        v.apply(v.grads(step))
        if step in (1, 9, 24):
            read(v)
    return v


def corrected_without_ids():
    v = Vector("adam_corrected_counts_empty_steps", "A step without ids counts, too: the next one "
               "is corrected as of its own number.", [table(optimizer=CORRECTED)], [feature()])
    v.train({"f": ragged([[], []])})
    v.train({"f": ragged([[1], [2]])})
    v.lookup({"f": ragged([[1], [2]])}, training=False)
    v.train({"f": ragged([[1], []])})
    read(v)
    return v


def not_lazy(name, about, more, batches=STEPS, requires=None):
    return steps(f"adam_non_lazy{name}", about, {**ADAM, **LAZY_OFF, **more}, batches, requires)


def all_not_lazy():
    yield not_lazy("", "Every row decays in every step; a row never touched stays where it is, for "
                   "its moments are 0.", {})
    yield not_lazy("_untouched_rows_decay", "Rows touched once move on while other rows are "
                   "touched, and while none is.", {}, [[[0, 1, 2], [7]], [[3], []], [[], []]])
    yield not_lazy("_corrected", "All rows, with bias correction.", {"bias_correction": True})
    yield not_lazy("_epsilon_outside", "All rows, epsilon outside the root.",
                   {"sum_inside_sqrt": False})
    yield not_lazy("_options", "Weight decay and clips reach every row.",
                   {"weight_decay_factor": 0.25, "clip_weight_max": 0.5, "clipvalue": 0.75},
                   requires=["options"])


def non_lazy_replicas():
    v = Vector("adam_non_lazy_two_replicas", "A row that only one replica touched is touched; the "
               "others have a gradient of 0, once a step.",
               [table(optimizer={**ADAM, **LAZY_OFF})], [feature()], engine={"replicas": 2})
    for step in range(2):
        for r, ids in enumerate(([1, 2 + step], [2, 7])):
            v.lookup({"f": dense(ids)}, replica=r)
        for r in (1, 0):
            v.apply(v.grads(step + r), replica=r)
    read(v)
    return v


def non_lazy_chunks():
    v = Vector("adam_non_lazy_many_rows", "Rows enough for several chunks, few of them touched: "
               "none is left out, none runs twice.",
               [table(rows=3000, dim=1, optimizer={**ADAM, **LAZY_OFF},
                      initial={"fill": 0.5}, slots={"momenta": {"fill": 0.25},
                                                    "velocities": {"fill": 0.5}})],
               [feature()], requires=["slots"])
    for ids in ([0, 1023, 1024], [2999, 1024, 0]):
        v.train({"f": dense(ids)})
    rows = [0, 1, 255, 256, 511, 512, 1022, 1023, 1024, 1025, 2047, 2048, 2998, 2999]
    for slot in (None, "momenta", "velocities"):
        v.table(slot=slot, rows=rows)
    return v


def pipelined(name, optimizer):
    v = Vector(f"pipelining_{name}", f"{name} with pipelining: a lookup is stale by one step, and "
               "what the updates do is the same.", [table(optimizer=optimizer)], [feature()],
               engine={"pipelining": True})
    for seed, rows in enumerate(STEPS):
        v.train({"f": ragged(rows)}, seed=seed)
    v.lookup({"f": ragged([[1, 2], [3]])})
    v.apply(v.grads(7))
    read(v)
    return v


def two_tables():
    v = Vector("all_kinds_in_one_model", "Five optimizers side by side, of one batch.",
               [table("a", optimizer=ADAM), table("b", optimizer=FTRL),
                table("c", optimizer=MOMENTUM), table("d", dim=5, optimizer=CORRECTED),
                table("e", optimizer={**ADAM, **LAZY_OFF}), table("f", dim=1)],
               [feature("f" + n, n) for n in "abcdef"])
    for seed in range(2):
        v.train({"f" + n: ragged([[1, k], [2]]) for k, n in enumerate("abcdef")}, seed=seed)
    for spec in v.doc["tables"]:
        read(v, spec["name"], spec["optimizer"])
    return v


def vectors():
    yield several_steps("sgd", sgd(0.25))
    yield several_steps("adagrad", adagrad(0.25))
    yield default_rate("sgd", "SGD", 0.01)
    yield default_rate("adagrad", "Adagrad", "0.001, accumulators from 0.1")
    yield accumulator()
    yield zero_gradient()
    yield summed_once()
    yield from momenta()
    yield from leaders()
    yield ftrl_multiply_linear_rate_zero()
    yield from epsilons()
    yield many_steps()
    yield corrected_without_ids()
    yield from all_not_lazy()
    yield non_lazy_replicas()
    yield non_lazy_chunks()
    for name, optimizer in (("adam", ADAM), ("adam_corrected", CORRECTED), ("ftrl", FTRL),
                            ("adagrad_momentum", MOMENTUM),
                            ("adam_non_lazy", {**ADAM, **LAZY_OFF})):
        yield pipelined(name, optimizer)
    yield two_tables()

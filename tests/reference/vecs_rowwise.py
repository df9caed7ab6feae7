# SPDX-License-Identifier: MIT
"""Vectors of the optimizers that users of torch, FBGEMM and Keras have, and of their options."""

from vecbuild import Vector, dense, feature, ragged, sgd, table
from vecs_checkpoint import round_trip
from vecs_kinds import pipelined
from vecs_model import of_table
from vecs_optimizers import (ADAM, CORRECTED, FTRL, MOMENTUM, RATE, accumulation_off,
                             clipped, decayed, defaults, duplicates, four_steps, hot_row, read,
                             replicas, steps, weight_clipped, zero_gradient)
from vecs_proto import ALL as PROTO, late_row

# Dyadic settings, so that f32 holds them exactly, far from their defaults.
ROWWISE = {"kind": "rowwise_adagrad", "learning_rate": 0.25, "epsilon": 0.0625}
PARTIAL = {"kind": "partial_rowwise_adam", "learning_rate": 0.125, "beta_1": 0.75,
           "beta_2": 0.9375, "epsilon": 0.0625}
ALL = {"rowwise_adagrad": ROWWISE, "partial_rowwise_adam": PARTIAL}
ADAGRAD = {"kind": "adagrad", "learning_rate": 0.25, "epsilon": 0.0625,
           "initial_accumulator_value": 0}
HAT = {**CORRECTED, "epsilon_hat": True}
L2 = {"weight_decay_factor": 0.125, "weight_decay_in_gradient": True}


def families():
    for kind, optimizer in ALL.items():
        for make in (defaults, four_steps, zero_gradient, duplicates, replicas, accumulation_off,
                     hot_row, clipped, weight_clipped, pipelined, round_trip):
            yield make(kind, optimizer)
        yield decayed(kind, optimizer, False)
        yield decayed(kind, optimizer, True)


def wide(kind, optimizer):
    """Rows of several vectors of every processor, with a rest."""
    v = Vector(f"{kind}_wide_rows", f"{kind} over rows of 70 elements: the mean is that of all.",
               [table(dim=70, rows=4, optimizer=optimizer, initial={"arange": [-1, 0.0078125]})],
               [feature()])
    for seed in (1, 2):
        v.train({"f": ragged([[1, 2], [2]])}, seed=seed)
    read(v)
    return v


def one_column(kind, optimizer):
    return steps(f"{kind}_one_column", f"{kind} over rows of one element, whose mean is its own.",
                 optimizer, dim=1)


def given(kind, optimizer, slots):
    return steps(f"slots_given_{kind}", f"Slots of {kind} start where the vector says; one has "
                 "one number a row.", optimizer, [[[2], [3, 2]], [[0, 0], []]], ["slots"], rows=4,
                 dim=2, slots=slots)


def rows_of_slots(kind, optimizer):
    """A slot of one number beside tables of others, read in any order of rows."""
    v = Vector(f"{kind}_rows_of_slots", "Slots of one number are read by rows, in any order, "
               "beside a table whose slots are wide.",
               [table("t", dim=5, optimizer=optimizer), table("u", dim=5, optimizer=ADAM)],
               [feature(), feature("g", "u")])
    v.train({"f": ragged([[1, 2], [7]]), "g": ragged([[1], [6]])})
    for slot in (None, *{"rowwise_adagrad": ("accumulators",),
                         "partial_rowwise_adam": ("momenta", "velocities")}[kind]):
        v.table("t", slot=slot, rows=[7, 0, 2, 7, 1])
    v.table("u", slot="velocities", rows=[6, 1])
    return v


def forms():
    yield wide("rowwise_adagrad", ROWWISE)
    yield wide("partial_rowwise_adam", PARTIAL)
    yield one_column("rowwise_adagrad", ROWWISE)
    yield one_column("partial_rowwise_adam", PARTIAL)
    yield given("rowwise_adagrad", ROWWISE, {"accumulators": [[1], [4], [0.25], [9]]})
    yield given("partial_rowwise_adam", PARTIAL,
                {"momenta": {"arange": [0.25, 0.125]}, "velocities": {"arange": [0.5, 0.25]}})
    yield rows_of_slots("rowwise_adagrad", ROWWISE)
    yield rows_of_slots("partial_rowwise_adam", PARTIAL)
    mean = {**ROWWISE, "mean_gradient": True}
    yield steps("rowwise_adagrad_mean_gradient", "The row moves as one, by the mean of its "
                "gradients.", mean)
    yield steps("rowwise_adagrad_mean_gradient_of_zero", "Gradients of a row that cancel: their "
                "mean is 0, and the row stays.", mean, [[[1], [1]]], dim=2)
    yield steps("rowwise_adagrad_initial_accumulator", "Accumulators that start elsewhere.",
                {**ROWWISE, "initial_accumulator_value": 0.75})
    yield steps("partial_rowwise_adam_betas_zero", "No memory: the gradient over its size.",
                {**PARTIAL, "beta_1": 0, "beta_2": 0})
    v = Vector("rowwise_kinds_of_one_rate", "Rates that change from step to step, one shared.",
               [table("t", optimizer={**ROWWISE, "learning_rate": RATE}),
                table("u", optimizer={**PARTIAL, "learning_rate": RATE})],
               [feature(), feature("g", "u")])
    for seed, lr in enumerate((0.5, 0, 0.125)):
        v.train({"f": ragged([[1, 2], [2]]), "g": ragged([[2], [3, 3]])}, seed=seed,
                rates={"lr": lr})
    read(v, "t", ROWWISE)
    read(v, "u", PARTIAL)
    yield v


def torch_forms():
    yield steps("adagrad_epsilon", "Adagrad from 0 with epsilon beside the root.", ADAGRAD)
    yield steps("adagrad_epsilon_and_start", "Adagrad from a start with epsilon beside the root.",
                {**ADAGRAD, "initial_accumulator_value": 0.75})
    yield zero_gradient("adagrad_epsilon", ADAGRAD)
    yield hot_row("adagrad_epsilon", ADAGRAD)
    yield accumulation_off("adagrad_epsilon", ADAGRAD)
    yield steps("adam_epsilon_hat", "Adam with bias correction and epsilon as it is beside the "
                "root.", HAT)
    yield steps("adam_epsilon_hat_not_lazy", "The same over all rows.",
                {**HAT, "lazy_adam": False})
    yield steps("adam_epsilon_hat_uncorrected", "epsilon_hat means nothing without bias "
                "correction.", {**ADAM, "epsilon_hat": True})
    yield steps("adamw", "Adam with decay by the rate, before the step.",
                {**CORRECTED, "weight_decay_factor": 0.25,
                 "multiply_weight_decay_factor_by_learning_rate": True}, requires=["options"])
    yield steps("adamw_not_lazy", "Every row decays at every step.",
                {**CORRECTED, "lazy_adam": False, "weight_decay_factor": 0.25,
                 "multiply_weight_decay_factor_by_learning_rate": True}, requires=["options"])
    yield late_row("adam_epsilon_hat_late_row", HAT)
    yield late_row("partial_rowwise_adam_late_row", PARTIAL)


def in_gradient():
    kinds = {"sgd": sgd(0.25), "adagrad": ADAGRAD, "ftrl": FTRL, "adagrad_momentum": MOMENTUM,
             "adam": ADAM, "adam_corrected": CORRECTED, **ALL,
             **{kind: optimizer for kind, optimizer in PROTO.items() if kind != "assign"}}
    for kind, optimizer in kinds.items():
        yield steps(f"weight_decay_in_gradient_{kind}", "Weight decay is a part of the gradient, "
                    f"and so of all that {kind} keeps.", {**optimizer, **L2},
                    requires=["options"])
    yield steps("weight_decay_in_gradient_after_clip", "The clip is of the gradient alone.",
                {**ADAM, **L2, "clipvalue": 0.5}, requires=["options"])
    yield steps("weight_decay_in_gradient_not_lazy", "Rows that no sample touched have the decay "
                "for a gradient.", {**ADAM, **L2, "lazy_adam": False}, requires=["options"])
    yield steps("weight_decay_in_gradient_of_nothing", "Without a factor there is none.",
                {**ADAM, "weight_decay_in_gradient": True}, requires=["options"])
    v = accumulation_off("weight_decay_in_gradient", {**ADAM, **L2})
    yield v


def by_frequency():
    scaled = {"scale_by_frequency": True}
    for kind, optimizer in (("sgd", sgd(0.25)), ("adagrad", ADAGRAD), ("adam", ADAM), *ALL.items()):
        yield steps(f"scale_by_frequency_{kind}", "The sum of a row's gradients is divided by how "
                    f"often the row is in the step, before {kind} sees it.",
                    {**optimizer, **scaled}, requires=["options"])
    yield hot_row("scale_by_frequency", {**ADAM, **scaled})
    yield replicas("scale_by_frequency", {**ADAM, **scaled})
    yield duplicates("scale_by_frequency", {**ADAM, **scaled})
    yield steps("scale_by_frequency_before_clip", "The clip is of the quotient.",
                {**sgd(0.25), **scaled, "clipvalue": 0.25}, requires=["options"])


def max_norms():
    limit = {"max_norm": 0.75}
    for kind, optimizer in (("sgd", sgd(0.25)), ("adagrad", ADAGRAD), ("adam", ADAM), *ALL.items()):
        yield steps(f"max_norm_{kind}", "A row that an update leaves longer is shortened; the "
                    "next update starts from there.", {**optimizer, **limit},
                    requires=["options"])
    yield wide("max_norm", {**sgd(0.25), "max_norm": 2})
    yield hot_row("max_norm", {**sgd(0.25), **limit})
    yield accumulation_off("max_norm", {**sgd(0.25), **limit})
    yield steps("max_norm_not_lazy", "Every row is updated, and so shortened.",
                {**ADAM, **limit, "lazy_adam": False}, requires=["options"])
    yield steps("max_norm_after_clip_weight", "The length is that of the clipped row.",
                {**sgd(0.25), **limit, "clip_weight_max": 0.5}, requires=["options"])
    yield steps("max_norm_not_reached", "Rows that are short enough stay as they are.",
                {**sgd(0.25), "max_norm": 64}, requires=["options"])


NUMBERS = {
    "rowwise_adagrad": {"epsilon": [0, -1, "inf"], "initial_accumulator_value": [-0.5, "nan"]},
    "partial_rowwise_adam": {"beta_1": [1, -0.5], "beta_2": [1, -0.5], "epsilon": [0]},
    "adagrad": {"epsilon": [-0.5, "inf"], "initial_accumulator_value": [0]},
    "sgd": {"max_norm": [-1, "inf"]},
}


def refused():
    for kind, keys in NUMBERS.items():
        for key, values in keys.items():
            for value in values:
                word = str(value).replace("-", "minus_").replace(".", "_")
                yield of_table(f"{kind}_{key}_not_{word}", f"{kind} does not take a {key} of "
                               f"{value}.", "ERANGE", ["items", key],
                               optimizer={"kind": kind, key: value})
    yield of_table("weight_decay_in_gradient_with_assign", "assign has no use for it.", "EINVAL",
                   ["items", "weight_decay_in_gradient", "assign"], ["options"],
                   optimizer={"kind": "assign", **L2})
    yield of_table("weight_decay_in_gradient_times_rate", "The rate is in the step already.",
                   "EINVAL", ["items", "weight_decay_in_gradient"], ["options"],
                   optimizer={**sgd(0.1), **L2,
                              "multiply_weight_decay_factor_by_learning_rate": True})
    yield of_table("scale_by_frequency_without_accumulation", "There is no sum to divide.",
                   "EINVAL", ["items", "scale_by_frequency", "accumulation"], ["options"],
                   optimizer={**sgd(0.1), "scale_by_frequency": True,
                              "use_gradient_accumulation": False})


def vectors():
    yield from families()
    yield from forms()
    yield from torch_forms()
    yield from in_gradient()
    yield from by_frequency()
    yield from max_norms()
    yield from refused()

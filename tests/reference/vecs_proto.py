# SPDX-License-Identifier: MIT
"""Vectors of the optimizers of the protocol buffer and of the second library."""

from vecbuild import Vector, dense, feature, ragged, table
from vecs_checkpoint import round_trip
from vecs_kinds import pipelined
from vecs_optimizers import (RATE, accumulation_off, clipped, decayed, defaults, duplicates,
                             four_steps, hot_row, read, replicas, slots_given, steps,
                             weight_clipped, zero_gradient)

# Dyadic settings, so that f32 holds them exactly, far from their defaults.
ALL = {
    "momentum": {"learning_rate": 0.25, "momentum": 0.5},
    "lion": {"learning_rate": 0.125, "beta1": 0.75, "beta2": 0.875},
    "rms_prop": {"learning_rate": 0.125, "rho": 0.75, "momentum": 0.5, "epsilon": 0.0625},
    "centered_rms_prop": {"learning_rate": 0.125, "rho": 0.75, "momentum": 0.5,
                          "epsilon": 0.0625},
    "adadelta": {"learning_rate": 0.5, "rho": 0.75, "epsilon": 0.0625},
    "proximal_adagrad": {"learning_rate": 0.25, "l1": 0.125, "l2": 0.5},
    "assign": {"learning_rate": 0.5},
    "laprop": {"learning_rate": 0.125, "b1": 0.75, "b2": 0.9375, "eps": 0.0625},
    "proximal_yogi": {"learning_rate": 0.25, "l1": 0.125, "l2": 0.5, "beta1": 0.75,
                      "beta2": 0.9375, "epsilon": 0.0625, "initial_accumulator_value": 0.25},
    "bounded_adagrad": {"learning_rate": 0.5, "max_var_update": 0.25, "max_accumulator": 4,
                        "update_accumulator_first": True},
    "online_yogi": {"learning_rate": 0.25, "l1": 0.125, "l2": 0.25, "beta2": 0.75},
    "frequency_aware_adagrad": {"learning_rate": 0.25, "l1_regularization_strength": 0.0625,
                                "l2_regularization_strength": 0.125, "max_lr_multiplier": 1.5,
                                "probability_exponent": 0.75, "accumulator_decay": 0.5,
                                "initial_accumulator_value": 0.25},
    "mdl_adagrad_light": {"learning_rate": 0.25, "l2": 0.125, "lr_power": -0.75,
                          "min_servable_mdl_benefit": 0.125, "mdl_mix_in_margin": 1,
                          "mdl_benefit_rampup_coeff": 0.5, "mdl_min_weight": 0.25,
                          "benefit_revisit_scale": 0.125, "max_event_benefit": 0.25,
                          "max_total_benefit": 0.1875, "mdl_hard_limit": 0.25,
                          "hard_limit_min_benefit": True, "mdl_regularize": True},
}
ALL = {kind: {"kind": kind, **settings} for kind, settings in ALL.items()}

# Kind, end of the name, what differs from ALL, words.
FORMS = (
    ("momentum", "nesterov", {"use_nesterov": True}, "Nesterov's look ahead"),
    ("momentum", "zero", {"momentum": 0}, "no momentum, which is SGD"),
    ("momentum", "negative", {"momentum": -0.5, "use_nesterov": True}, "a momentum below 0"),
    ("lion", "betas_zero", {"beta1": 0, "beta2": 0}, "no memory: the sign of the gradient"),
    ("lion", "beta1_zero", {"beta1": 0}, "the gradient's sign alone, while the slot remembers"),
    ("rms_prop", "no_momentum", {"momentum": 0}, "no momentum"),
    ("rms_prop", "rho_0", {"rho": 0}, "a mean of the last square alone"),
    ("rms_prop", "rho_1", {"rho": 1}, "a mean that never moves"),
    ("centered_rms_prop", "no_momentum", {"momentum": 0}, "no momentum"),
    ("centered_rms_prop", "momentum_negative", {"momentum": -0.5}, "a momentum below 0"),
    ("adadelta", "rho_0", {"rho": 0}, "means of the last squares alone"),
    ("adadelta", "rho_1", {"rho": 1}, "means that never move"),
    ("proximal_adagrad", "plain", {"l1": 0, "l2": 0}, "nothing to regularize, which is Adagrad"),
    ("proximal_adagrad", "l1", {"l2": 0}, "l1 alone, which holds some values at 0"),
    ("proximal_adagrad", "l1_strong", {"l1": 4, "l2": 0}, "an l1 that leaves little"),
    ("proximal_adagrad", "l2", {"l1": 0}, "l2 alone"),
    ("proximal_adagrad", "initial_accumulator", {"initial_accumulator_value": 0.75},
     "an accumulator that starts elsewhere"),
    ("laprop", "no_momentum", {"b1": 0}, "no momentum"),
    ("laprop", "b2_zero", {"b2": 0}, "squares without memory"),
    ("proximal_yogi", "plain", {"l1": 0, "l2": 0}, "nothing to regularize"),
    ("proximal_yogi", "l1_strong", {"l1": 2}, "an l1 that leaves little"),
    ("proximal_yogi", "betas_zero", {"beta1": 0, "beta2": 0}, "no memory but for the sign"),
    ("bounded_adagrad", "no_bounds", {"max_var_update": 0, "max_accumulator": 0},
     "both bounds off: 0 is none"),
    ("bounded_adagrad", "old_accumulator", {"update_accumulator_first": False},
     "the square counting from the next step on"),
    ("bounded_adagrad", "update_alone", {"max_accumulator": 0}, "a bound of the update alone"),
    ("bounded_adagrad", "accumulator_alone", {"max_var_update": 0, "max_accumulator": 0.75},
     "a bound of the accumulator alone"),
    ("bounded_adagrad", "accumulator_from_above",
     {"max_accumulator": 0.5, "initial_accumulator_value": 2, "update_accumulator_first": False},
     "an accumulator that starts above its bound"),
    ("online_yogi", "plain", {"l1": 0, "l2": 0}, "nothing to regularize"),
    ("online_yogi", "l1_strong", {"l1": 2}, "an l1 that holds values at 0"),
    ("online_yogi", "beta2_zero", {"beta2": 0}, "no memory but for the sign"),
    ("frequency_aware_adagrad", "exponent_0", {"probability_exponent": 0},
     "all rows alike, common or rare"),
    ("frequency_aware_adagrad", "exponent_negative", {"probability_exponent": -0.5},
     "rare rows moved less"),
    ("frequency_aware_adagrad", "no_limit", {"max_lr_multiplier": 1e6, "probability_exponent": 1},
     "rare rows moved by as much as they are rare"),
    ("frequency_aware_adagrad", "decay_1", {"accumulator_decay": 1}, "squares that stay"),
    ("frequency_aware_adagrad", "plain",
     {"l1_regularization_strength": 0, "l2_regularization_strength": 0},
     "nothing to regularize"),
)


# Settings of mdl_adagrad_light, each set alone beside the switch.
MDL_FORMS = (
    ("regularize", {}, "nothing but the switch: served is what has not lost"),
    ("l2", {"l2": 0.5}, "l2"),
    ("lr_power_0", {"lr_power": 0}, "the rate as it is given"),
    ("lr_power_minus_1", {"lr_power": -1}, "another power"),
    ("min_servable", {"min_servable_mdl_benefit": 0.75}, "a benefit that must be earned first"),
    ("min_servable_below_0", {"min_servable_mdl_benefit": -0.75}, "some loss forgiven"),
    ("mix_in", {"mdl_mix_in_margin": 2}, "shares between none and all"),
    ("rampup", {"mdl_benefit_rampup_coeff": 4, "mdl_mix_in_margin": 2},
     "early events that count less"),
    ("min_weight", {"mdl_min_weight": 0.25}, "a least share"),
    ("revisit", {"benefit_revisit_scale": 0.5, "mdl_mix_in_margin": 2,
                 "min_servable_mdl_benefit": 0.5}, "elements left out that come back"),
    ("max_event", {"max_event_benefit": 0.25}, "a limit of what one update counts"),
    ("max_total", {"max_total_benefit": 0.125}, "a limit of the benefit"),
    ("hard_limit", {"mdl_hard_limit": 0.5, "hard_limit_min_benefit": True,
                    "min_servable_mdl_benefit": 0.25}, "a limit of what is missing"),
    ("hard_limit_off", {"mdl_hard_limit": 0.5, "min_servable_mdl_benefit": 0.25},
     "that limit switched off"),
)


def mdl_forms():
    bare = {"kind": "mdl_adagrad_light", "learning_rate": 0.25}
    yield steps("mdl_adagrad_light_plain", "mdl_adagrad_light with the switch off, which is "
                "Adagrad; benefits are counted all the same.", bare)
    for end, more, what in MDL_FORMS:
        yield steps(f"mdl_adagrad_light_{end}", f"mdl_adagrad_light with {what}.",
                    {**bare, "mdl_regularize": True, **more})
    yield steps("mdl_adagrad_light_not_regularized", "Every setting but the switch: what is "
                "served is what is trained.", {**ALL["mdl_adagrad_light"], "mdl_regularize": False})


def forms():
    for kind, end, more, what in FORMS:
        yield steps(f"{kind}_{end}", f"{kind} with {what}.", {**ALL[kind], **more})


def all_rows():
    lion = {**ALL["lion"], "use_non_lazy": True}
    yield steps("lion_non_lazy", "Every row moves in every step by the sign of its momentum; a "
                "row never touched has none.", lion)
    yield steps("lion_non_lazy_untouched_rows", "Rows touched once move on while other rows are "
                "touched, and while none is.", lion, [[[0, 1, 2], [7]], [[3], []], [[], []]])
    yield steps("lion_non_lazy_decay", "Weight decay reaches every row.",
                {**lion, "weight_decay_factor": 0.25}, requires=["options"])


def late_row(name, optimizer):
    v = Vector(name, "The count of steps is the engine's, not the row's: a row touched first in "
               "step 9 sees step 9.", [table(dim=2, optimizer=optimizer)], [feature()])
    for step in range(1, 25):
        v.enqueue({"f": dense([1, 2 if step < 9 else 3])})
        v.dequeue(only=[])
        v.apply(v.grads(step))
        if step in (1, 9, 24):
            read(v)
    return v


def late_rows():
    for kind in ("laprop", "frequency_aware_adagrad"):
        yield late_row(f"{kind}_many_steps", ALL[kind])


def estimator(name, about, settings, touches, initial=4, engine=None):
    """touches: (step as the program counts it, rows) of each update."""
    optimizer = {"kind": "frequency_estimator", "learning_rate": {"dynamic": "step"}, **settings}
    v = Vector(f"frequency_estimator_{name}", about,
               [table(dim=1, rows=6, optimizer=optimizer, initial={"fill": initial})],
               [feature()], engine=engine)
    for step, rows in touches:
        v.train({"f": ragged((rows + [[]])[:2])}, rates={"step": step})
    read(v)
    return v


def estimators():
    settings = {"tau": 0.25, "max_delta": 64, "outlier_threshold": 8}
    touches = [(1, [[0, 1]]), (3, [[0, 0], [2]]), (4, [[0]]), (20, [[1], [2, 1]]), (21, [[]]),
               (30, [[0, 1, 2]])]
    yield estimator("touches", "The estimate follows the steps between two touches of a row, "
                    "whatever the gradient and however often it is in a step.", settings, touches)
    yield estimator("outliers", "A distance of the threshold times the estimate replaces it; one "
                    "just below is mixed in.", {**settings, "outlier_threshold": 2},
                    [(8, [[0]]), (15, [[1]]), (16, [[0, 1]]), (40, [[1]])])
    yield estimator("max_delta", "No distance counts for more than the limit, as an outlier "
                    "neither.", {**settings, "max_delta": 2}, touches)
    yield estimator("tau_0", "A weight of 0: only outliers change the estimate.",
                    {**settings, "tau": 0, "outlier_threshold": 2}, touches)
    yield estimator("tau_1", "A weight of 1: the estimate is the last distance.",
                    {**settings, "tau": 1}, touches)
    yield estimator("threshold_0", "A threshold of 0: every distance replaces the estimate.",
                    {**settings, "outlier_threshold": 0}, touches)
    yield estimator("weight_exponent", "weight_exponent is kept and changes no row.",
                    {**settings, "weight_exponent": 0.5}, touches)
    yield estimator("defaults", "Nothing but the step given.", {},
                    [(10, [[0, 1]]), (20, [[1]])], initial=16)
    v = Vector("frequency_estimator_two_replicas", "A row that both replicas touch is touched "
               "once a step.", [table(dim=1, optimizer={
                   "kind": "frequency_estimator", "learning_rate": {"dynamic": "step"},
                   **settings}, initial={"fill": 4})], [feature()], engine={"replicas": 2})
    for step in (2, 7):
        for r, rows in enumerate(([[1, 2], [2]], [[2], [3]])):
            v.lookup({"f": ragged(rows)}, replica=r)
        for r in (0, 1):
            v.apply(v.grads(step + r), replica=r, rates={"step": step})
    read(v)
    yield v


def step_counters():
    counted = {**ALL["frequency_aware_adagrad"], "step_counter": {"dynamic": "step"}}
    v = Vector("frequency_aware_adagrad_step_counter", "The step that the program gives, 0 being "
               "1, whatever the engine has counted; its rate may be dynamic, too.",
               [table(optimizer={**counted, "max_lr_multiplier": 8}),
                table("u", optimizer={**counted, "learning_rate": RATE})],
               [feature(), feature("g", "u")])
    for seed, step in enumerate((0, 5, 100, 7)):
        v.train({"f": ragged([[1, seed], [2]]), "g": ragged([[seed], [4]])}, seed=seed,
                rates={"step": step, "lr": 0.25})
    read(v)
    read(v, "u", counted)
    yield v


def together(name, about, optimizers, train):
    """One table of each, one batch for all of them."""
    v = Vector(name, about, [table(o["kind"], dim=2, optimizer=o) for o in optimizers],
               [feature(f"f{k}", o["kind"]) for k, o in enumerate(optimizers)])
    train(v, lambda rows: {f"f{k}": ragged(rows) for k in range(len(optimizers))})
    for o in optimizers:
        read(v, o["kind"], o)
    return v


def rates(v, batch):
    for seed, lr in enumerate((0.5, 0.25, 0.125)):
        v.train(batch([[1, 2], [2]]), seed=seed, rates={"lr": lr})


def two_steps(v, batch):
    for seed in range(2):
        v.train(batch([[1, seed], [2]]), seed=seed)


def vectors():
    for kind, optimizer in ALL.items():
        # two roots nearly alike, over a small rate, is what f32 makes least of
        rough = {"atol": 1e-4} if kind == "online_yogi" else {}
        yield defaults(kind, optimizer, **rough)
        for make in (four_steps, zero_gradient, duplicates, replicas, accumulation_off,
                     hot_row, clipped, weight_clipped):
            yield make(kind, optimizer)
        yield decayed(kind, optimizer, True)
        if kind != "assign":
            yield slots_given(kind, optimizer)
        yield pipelined(kind, optimizer)
        yield round_trip(kind, optimizer)
    yield from forms()
    yield from mdl_forms()
    yield from all_rows()
    yield from late_rows()
    yield from estimators()
    yield from step_counters()
    yield together("dynamic_rates_of_more_kinds", "Rates that change from step to step, one "
                   "shared by all.", [{**o, "learning_rate": RATE} for o in ALL.values()], rates)
    yield together("more_kinds_in_one_model", "Thirteen optimizers side by side, of one batch.",
                   list(ALL.values()), two_steps)

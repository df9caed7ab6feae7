# SPDX-License-Identifier: MIT
"""Vectors of hyperparameters that each step gives anew, as torch's param_groups change them."""

from refkinds import KINDS
from refoptim import EVERY, STRUCTURE
from vecbuild import Vector, dense, feature, ragged, sgd, table

STEPS = [[[1, 2], [2], [5, 5]], [[5], [1, 1], [3]], [[2], [3], [1, 5]], [[5], [2], [1]]]

# The values of each hyperparameter of a kind in four steps; all of them change at once.
VALUES = {
    "adagrad": {"epsilon": [0.5, 0.0625, 0, 2]},
    "adagrad_momentum": {"momentum": [0.5, 0, -0.25, 0.75], "use_nesterov": [0, 1, 1, 0],
                         "exponent": [2, 3, 2, 4], "beta2": [1, 0.75, 1, 0.5],
                         "epsilon": [0.0625, 0.5, 0.25, 0.125]},
    "ftrl": {"learning_rate_power": [-0.5, -0.75, -0.5, 0],
             "l1_regularization_strength": [0, 0.125, 0.5, 0],
             "l2_regularization_strength": [0.5, 0, 0.125, 0.25], "beta": [0, 0.5, 0.25, 0],
             "multiply_linear_by_learning_rate": [0, 1, 0, 0]},
    "adam": {"beta_1": [0.5, 0.75, 0, 0.875], "beta_2": [0.75, 0.5, 0.875, 0.5],
             "epsilon": [0.0625, 0.5, 0.25, 0.125], "sum_inside_sqrt": [1, 0, 0, 1],
             "bias_correction": [0, 1, 1, 0], "epsilon_hat": [0, 0, 1, 1]},
    "momentum": {"momentum": [0.5, 0.875, -0.25, 0], "use_nesterov": [1, 0, 1, 0]},
    "lion": {"beta1": [0.5, 0, 0.875, 0.75], "beta2": [0.75, 0.5, 0, 0.875]},
    "rms_prop": {"rho": [0.5, 0.875, 1, 0], "momentum": [0.5, 0, -0.25, 0.75],
                 "epsilon": [0.0625, 0.5, 0.25, 0.125]},
    "centered_rms_prop": {"rho": [0.5, 0.875, 0.25, 0.75], "momentum": [0.5, 0, -0.25, 0.75],
                          "epsilon": [0.0625, 0.5, 0.25, 0.125]},
    "adadelta": {"rho": [0.5, 0.875, 0.25, 0.75], "epsilon": [0.0625, 0.5, 0.25, 0.125]},
    "proximal_adagrad": {"l1": [0, 0.125, 0.5, 0], "l2": [0.5, 0, 0.125, 0.25]},
    "laprop": {"b1": [0.5, 0, 0.875, 0.75], "b2": [0.75, 0.5, 0.875, 0.25],
               "eps": [0.0625, 0.5, 0.25, 0.125]},
    "proximal_yogi": {"l1": [0, 0.125, 0.5, 0], "l2": [0.5, 0, 0.125, 0.25],
                      "beta1": [0.5, 0, 0.875, 0.75], "beta2": [0.75, 0.5, 0.875, 0.5],
                      "epsilon": [0.0625, 0.5, 0.25, 0.125]},
    "bounded_adagrad": {"update_accumulator_first": [0, 1, 1, 0],
                        "max_var_update": [0, 0.125, 0.0625, 0.5],
                        "max_accumulator": [0, 0.5, 0, 1]},
    "online_yogi": {"l1": [0, 0.125, 0.5, 0], "l2": [0.5, 0, 0.125, 0.25],
                    "beta2": [0.75, 0.5, 0.875, 0.5]},
    "frequency_estimator": {"tau": [0.5, 0.25, 1, 0.75], "max_delta": [100, 1, 2, 100],
                            "outlier_threshold": [10, 1, 100, 2],
                            "weight_exponent": [1, 0.5, -1, 1]},
    "frequency_aware_adagrad": {"l1_regularization_strength": [0, 0.125, 0.0625, 0],
                                "l2_regularization_strength": [0.125, 0, 0.0625, 0.25],
                                "max_lr_multiplier": [8, 1.5, 1, 4],
                                "probability_exponent": [0.5, 1, 0, 0.5],
                                "accumulator_decay": [1, 0.5, 0.75, 0.875],
                                "initial_accumulator_value": [0.125, 0.5, 0.25, 1]},
    "mdl_adagrad_light": {"l2": [0, 0.125, 0, 0.25], "lr_power": [-0.5, -0.75, 0, -0.5],
                          "min_servable_mdl_benefit": [0, 0.125, -0.5, 0],
                          "mdl_mix_in_margin": [0, 0.5, 0.25, 1],
                          "mdl_benefit_rampup_coeff": [0, 0.5, 2, 0],
                          "mdl_min_weight": [0, 0.25, 0.5, 1],
                          "benefit_revisit_scale": [0, 0.125, 0.5, 0],
                          "max_event_benefit": [0, 0.125, 1, 0],
                          "max_total_benefit": [0, 1, 0.5, 0], "mdl_hard_limit": [0, 0.5, 0, 2],
                          "hard_limit_min_benefit": [0, 1, 0, 1], "mdl_regularize": [1, 1, 0, 1]},
    "rowwise_adagrad": {"epsilon": [0.5, 0.0625, 0.25, 2], "mean_gradient": [0, 1, 0, 1]},
    "partial_rowwise_adam": {"beta_1": [0.5, 0.75, 0, 0.875], "beta_2": [0.75, 0.5, 0.875, 0.5],
                             "epsilon": [0.0625, 0.5, 0.25, 0.125]},
}
COMMON = {"weight_decay_factor": [0.125, 0, 0.5, 0.0625], "clip_min": ["-inf", -0.5, -0.25, -2],
          "clip_max": [0.75, 0.25, "inf", 1], "clip_weight_min": [-2, "-inf", -1, -0.5],
          "clip_weight_max": ["inf", 0.75, 1, 0.5], "max_norm": [0, 2, 1.5, 1]}


def optimizer_of(kind, values, **more):
    """All of these are dynamic, each by its own name."""
    return {"kind": kind, "learning_rate": 0.25, **more, "dynamic": {key: key for key in values}}


def read(v, kind, name="t"):
    v.table(name)
    for slot in KINDS[kind].SLOTS:
        v.table(name, slot=slot)


def steps(v, values, batches=None):
    for seed, rows in enumerate(batches or STEPS):
        v.train({"f": ragged(rows)}, seed=seed,
                rates={key: given[seed] for key, given in values.items()})


def of_kind(kind):
    missing = set(KINDS[kind].DEFAULTS) - set(VALUES[kind]) - set(STRUCTURE)
    assert missing <= {"initial_accumulator_value"}, f"{kind}: {missing} are not dynamic here"
    v = Vector(f"dynamic_{kind}", f"Each step gives every hyperparameter of {kind} another value.",
               [table(dim=1 if kind == "frequency_estimator" else 3,
                      optimizer=optimizer_of(kind, VALUES[kind]))], [feature()])
    steps(v, VALUES[kind])
    read(v, kind)
    return v


def common():
    assert set(COMMON) == set(EVERY)
    for kind, more, what in (("sgd", {}, "taken from the row"),
                             ("momentum", {"weight_decay_in_gradient": True},
                              "added to the gradient"),
                             ("adagrad", {"multiply_weight_decay_factor_by_learning_rate": True},
                              "times the rate")):
        v = Vector(f"dynamic_options_{kind}", "Each step gives clips, weight decay and max_norm "
                   f"another value; decay is {what}, and an infinite limit is none.",
                   [table(optimizer=optimizer_of(kind, COMMON, **more))], [feature()])
        steps(v, COMMON)
        read(v, kind)
        yield v


def corrected(kind, **more):
    values = {"beta_1": [0.5, 0.75, 0, 0.875], "beta_2": [0.75, 0.5, 0.875, 0.5]}
    v = Vector(f"dynamic_{kind}_corrected_betas", "Betas that change: the bias correction of step "
               "t is 1 - beta^t with the beta of this step, as torch.optim has it.",
               [table(optimizer=optimizer_of(kind, values, epsilon=0.0625, **more))], [feature()])
    steps(v, values)
    read(v, kind)
    return v


def shared():
    tables = [table("a", optimizer={"kind": "lion", "learning_rate": {"dynamic": "lr"},
                                    "dynamic": {"beta1": "beta", "beta2": "beta"}}),
              table("b", optimizer=sgd({"dynamic": "lr"}, dynamic={"weight_decay_factor": "beta",
                                                                   "max_norm": "lr"}))]
    v = Vector("dynamic_shared_name", "One name gives two hyperparameters of one table and one of "
               "another, and one a rate and a length.", tables,
               [feature("fa", "a"), feature("fb", "b")])
    for seed, (lr, beta) in enumerate([(0.5, 0.25), (1.5, 0), (0.25, 0.75)]):
        v.train({"fa": dense([1, 2]), "fb": dense([2, 2])}, seed=seed,
                rates={"lr": lr, "beta": beta})
    read(v, "lion", "a")
    v.table("b")
    return v


def refused():
    spec = {"kind": "adagrad", "learning_rate": 0.5, "epsilon": 1, "initial_accumulator_value": 0,
            "dynamic": {"epsilon": "eps", "clip_min": "low", "clip_max": "high"}}
    v = Vector("dynamic_refused", "A hyperparameter that is missing, or has a value that a constant "
               "could not have: an error, and the gradients may be given again.",
               [table(optimizer=spec)], [feature()])
    good = {"eps": 0.5, "low": -1, "high": 1}
    v.lookup({"f": dense([1, 2])})
    v.apply(v.grads(1), rates={"eps": 1, "low": -1},
            error={"errno": "EINVAL", "contains": ["high"]})
    for key, value, errno, words in (
            ("eps", -0.5, "ERANGE", ["eps", "epsilon", "-0.5"]),
            ("eps", "nan", "ERANGE", ["eps", "epsilon", "nan"]),
            ("eps", 0, "ERANGE", ["table t", "initial_accumulator_value"]),
            ("low", 2, "ERANGE", ["table t", "above"])):
        v.apply(v.grads(1), rates={**good, key: value},
                error={"errno": errno, "contains": words})
    v.apply(v.grads(1), rates={**good, "other": 1},
            error={"errno": "ENOENT", "contains": ["other"]})
    v.apply(v.grads(1), rates=good)
    read(v, "adagrad")
    return v


def replicas():
    v = Vector("dynamic_replicas_differ", "Replicas that give a hyperparameter different values: "
               "the second is refused, and may give the same.",
               [table(optimizer=optimizer_of("momentum", ["momentum"]))], [feature()],
               {"replicas": 2})
    for r in range(2):
        v.lookup({"f": dense([1, 2])}, replica=r)
    v.apply(v.grads(1), replica=0, rates={"momentum": 0.5})
    v.apply(v.grads(2, replica=1), replica=1, rates={"momentum": 0.25},
            error={"errno": "EINVAL", "contains": ["momentum"]})
    v.apply(v.grads(2, replica=1), replica=1, rates={"momentum": 0.5})
    read(v, "momentum")
    return v


def vectors():
    yield from (of_kind(kind) for kind in KINDS if kind in VALUES)
    yield from common()
    yield corrected("adam", bias_correction=True)
    yield corrected("partial_rowwise_adam")
    yield shared()
    yield refused()
    yield replicas()

# SPDX-License-Identifier: MIT
"""A model as a TPUEmbeddingConfiguration (docs/spec/semantics.md 4), in the wire form of reftpu."""

import reftpu as t
from refoptim import clip_limits
from referror import require

# Kind -> number of its message, and its fields: number, hyperparameter.
KINDS = {
    "sgd": (4, ()),
    "adagrad": (3, ()),
    "assign": (25, ()),
    "adagrad_momentum": (26, ((1, "momentum"), (2, "use_nesterov"), (3, "exponent"), (4, "beta2"),
                              (5, "epsilon"))),
    "ftrl": (5, ((1, "l1_regularization_strength"), (2, "l2_regularization_strength"),
                 (3, "learning_rate_power"), (6, "multiply_linear_by_learning_rate"), (7, "beta"),
                 (8, "allow_zero_accumulator"))),
    "adam": (6, ((3, "beta_1"), (4, "beta_2"), (5, "epsilon"), (8, "not lazy_adam"),
                 (10, "sum_inside_sqrt"))),
    "momentum": (8, ((1, "momentum"), (2, "use_nesterov"))),
    "lion": (29, ((1, "beta1"), (2, "beta2"), (3, "use_non_lazy"))),
    "rms_prop": (9, ((1, "rho"), (2, "momentum"), (3, "epsilon"))),
    "centered_rms_prop": (10, ((1, "rho"), (2, "momentum"), (3, "epsilon"))),
    "adadelta": (12, ((1, "rho"), (2, "epsilon"))),
    "proximal_adagrad": (14, ((1, "l1"), (2, "l2"))),
    "bounded_adagrad": (19, ((1, "update_accumulator_first"), (2, "max_var_update"),
                             (3, "max_accumulator"))),
    "online_yogi": (20, ((1, "l1"), (2, "l2"), (3, "beta2"))),
    "proximal_yogi": (21, ((1, "l1"), (2, "l2"), (3, "beta1"), (4, "beta2"), (5, "epsilon"))),
    "frequency_estimator": (23, ((1, "tau"), (2, "max_delta"), (3, "outlier_threshold"),
                                 (4, "weight_exponent"))),
    "frequency_aware_adagrad": (30, (
        (1, "l1_regularization_strength"), (2, "l2_regularization_strength"),
        (3, "max_lr_multiplier"), (4, "probability_exponent"), (5, "accumulator_decay"),
        (6, "initial_accumulator_value"), (7, "step_counter"))),
    "mdl_adagrad_light": (11, (
        (1, "l2"), (2, "lr_power"), (3, "min_servable_mdl_benefit"), (4, "mdl_mix_in_margin"),
        (5, "mdl_benefit_rampup_coeff"), (6, "mdl_min_weight"), (7, "benefit_revisit_scale"),
        (8, "max_event_benefit"), (9, "max_total_benefit"), (10, "mdl_hard_limit"),
        (11, "hard_limit_min_benefit"), (12, "mdl_regularize"))),
}


def setting(number, name, h, tags):
    """A field of a kind's message."""
    if name == "step_counter":
        return t.message(number, t.integer(1, tags[h[name]["dynamic"]])) if h[name] else b""
    value = not h[name[4:]] if name.startswith("not ") else h[name]
    return t.integer(number, value) if isinstance(value, bool) else t.real(number, value)


def kind_of(spec, h, tags, where):
    require(spec["kind"] in KINDS and not h.get("bias_correction"), "ENOTSUP",
            f"{where}: the protobuf has no optimizer {spec['kind']} with bias_correction")
    number, fields = KINDS[spec["kind"]]
    return t.message(number, b"".join(setting(n, name, h, tags) for n, name in fields))


def limits(number, low, high):
    return t.limits(number, low, high) if (low, high) != (None, None) else b""


def parameters(table, spec, tags):
    """OptimizationParameters of a table that has an optimizer."""
    h, dynamic = table.optimizer.h, table.optimizer.dynamic_rate()
    rate = t.rate(h["learning_rate"]) if dynamic is None else t.rate(tag=tags[dynamic])
    by_rate = h["weight_decay_factor"] and h["multiply_weight_decay_factor_by_learning_rate"]
    return t.parameters(
        kind_of(spec["optimizer"], h, tags, f"table {table.name}"), rate,
        limits(2, h["clip_weight_min"], h["clip_weight_max"]),
        limits(7, *clip_limits(h["clipvalue"])), t.real(16, h["weight_decay_factor"] or 0.0),
        t.integer(17, t.ENABLED if h["use_gradient_accumulation"] else t.DISABLED),
        t.integer(22, bool(by_rate)), levels(table),
        t.integer(28, t.ENABLED if h["low_dimensional_packing_status"] else 0))


def levels(table):
    q = table.quantization
    return t.quantization(q.buckets, q.lower, q.upper) if q else b""


def table_of(table, spec, tags, hosts, trains):
    require(table.optimizer or not trains, "EINVAL", f"table {table.name}: it has no optimizer")
    body = parameters(table, spec, tags) if table.optimizer else levels(table)
    return t.table(table.name, max(table.vocabulary_size, hosts), table.dim,
                   body if table.optimizer or table.quantization else None)


def configuration(engine):
    """Bytes of the model of an open engine."""
    model, specs = engine.model, engine.specs[0]
    tables = list(model.tables.values())
    tags = {name: tag for tag, name in enumerate(model.dynamic_rates())}
    trains = any(table.optimizer for table in tables)
    for feature in model.features.values():
        require(feature.output_shape and all(feature.output_shape), "EINVAL",
                f"feature {feature.name}: its output shape {feature.output_shape} is open")
    order = [table.name for table in tables]
    return (b"".join(table_of(table, spec, tags, engine.hosts, trains)
                     for table, spec in zip(tables, specs))
            + t.engine(t.TRAINING if trains else t.INFERENCE, hosts=engine.hosts,
                       cores=len(engine.replicas), sharding=engine.sharding == "mod",
                       pipelining=engine.pipelining)
            + b"".join(t.feature(f.name, order.index(f.table.name), f.output_shape)
                       for f in model.features.values()))

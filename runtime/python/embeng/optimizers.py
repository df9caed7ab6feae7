# SPDX-License-Identifier: MIT
"""Optimizers of tables. embeng-optimizers(7) has formulas, settings, defaults and slots.

Each function makes an :class:`Optimizer`. Its learning rate is a number, a
:class:`embeng.schedules.Schedule`, or the name of a rate that each update gives. Settings that are
left out are the library's defaults for the kind; those of all kinds (``weight_decay_factor``,
``clip_min``, ``clip_max``, ``clip_weight_min``, ``clip_weight_max``, ``max_norm``,
``scale_by_frequency``, ``weight_decay_in_gradient``, ``multiply_weight_decay_by_rate``,
``use_gradient_accumulation``, ``dynamic``) may be given to each function.
"""
from typing import Any

from . import _core
from .schedules import Schedule

Rate = float | str | Schedule


class Optimizer:
    """An optimizer and its settings. The functions of this module make one.

    Parameters
    ----------
    kind : str
        Name of the kind, as ``embeng_optimizer_text()`` has it.
    learning_rate : float, str or Schedule
        A constant rate, the name of a rate that each update gives, or a schedule.
    **settings
        Members of ``struct embeng_optimizer``. `dynamic` is a dict from hyperparameters to names of
        rates, by which each update gives their values.
    """

    __slots__ = ("kind", "learning_rate", "settings")

    def __init__(self, kind: str, learning_rate: Rate = 0.01, **settings: Any):
        self.kind = kind
        self.learning_rate = learning_rate
        self.settings = {name: value for name, value in settings.items() if value is not None}
        _core.describe_optimizer(self.describe("rate"))  # refuses what is wrong

    def describe(self, rate_name: str | None = None) -> dict[str, Any]:
        """Return it as the extension takes it; `rate_name` stands for a schedule."""
        rate = self.learning_rate
        if isinstance(rate, Schedule):
            rate = rate_name or "rate"
        key = "rate_name" if isinstance(rate, str) else "learning_rate"
        return {"kind": self.kind, key: rate, **self.settings}

    def full(self) -> dict[str, Any]:
        """Return all settings, with the defaults of the kind."""
        return _core.describe_optimizer(self.describe("rate"))

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, Optimizer) and self.kind == other.kind and
                self.learning_rate == other.learning_rate and self.settings == other.settings)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        settings = "".join(f", {name}={value!r}" for name, value in sorted(self.settings.items()))
        return f"{self.kind}({self.learning_rate!r}{settings})"

    def __reduce__(self) -> Any:
        return _rebuild, (self.kind, self.learning_rate, self.settings)


def _rebuild(kind: str, learning_rate: Rate, settings: dict[str, Any]) -> Optimizer:
    return Optimizer(kind, learning_rate, **settings)


def sgd(learning_rate: Rate = 0.01, **settings: Any) -> Optimizer:
    """w -= learning_rate * g."""
    return Optimizer("sgd", learning_rate, **settings)


def adagrad(learning_rate: Rate = 0.01, *, initial_accumulator_value: float | None = None,
            epsilon: float | None = None, **settings: Any) -> Optimizer:
    """a += g * g; w -= learning_rate * g / (sqrt(a) + epsilon), from 0.1."""
    return Optimizer("adagrad", learning_rate,
                     initial_accumulator_value=initial_accumulator_value, epsilon=epsilon,
                     **settings)


def adagrad_momentum(learning_rate: Rate = 0.01, *, momentum: float | None = None,
                     use_nesterov: bool | None = None, exponent: float | None = None,
                     beta2: float | None = None, epsilon: float | None = None,
                     **settings: Any) -> Optimizer:
    """Adagrad's preconditioner, then momentum."""
    return Optimizer("adagrad_momentum", learning_rate, momentum=momentum,
                     use_nesterov=use_nesterov, exponent=exponent, beta2=beta2, epsilon=epsilon,
                     **settings)


def ftrl(learning_rate: Rate = 0.01, *, initial_accumulator_value: float | None = None,
         learning_rate_power: float | None = None,
         l1_regularization_strength: float | None = None,
         l2_regularization_strength: float | None = None, beta: float | None = None,
         multiply_linear_by_learning_rate: bool | None = None, **settings: Any) -> Optimizer:
    """Follow the regularized leader."""
    return Optimizer("ftrl", learning_rate, initial_accumulator_value=initial_accumulator_value,
                     learning_rate_power=learning_rate_power,
                     l1_regularization_strength=l1_regularization_strength,
                     l2_regularization_strength=l2_regularization_strength, beta=beta,
                     multiply_linear_by_learning_rate=multiply_linear_by_learning_rate,
                     **settings)


def adam(learning_rate: Rate = 0.01, *, beta_1: float | None = None, beta_2: float | None = None,
         epsilon: float | None = None, lazy_adam: bool | None = None,
         sum_inside_sqrt: bool | None = None, bias_correction: bool | None = None,
         epsilon_hat: bool | None = None, **settings: Any) -> Optimizer:
    """Adam without bias correction, as TPUEmbedding has it."""
    return Optimizer("adam", learning_rate, beta_1=beta_1, beta_2=beta_2, epsilon=epsilon,
                     lazy_adam=lazy_adam, sum_inside_sqrt=sum_inside_sqrt,
                     bias_correction=bias_correction, epsilon_hat=epsilon_hat, **settings)


def momentum(learning_rate: Rate = 0.01, *, momentum: float | None = None,
             use_nesterov: bool | None = None, **settings: Any) -> Optimizer:
    """m = momentum * m + g; w -= learning_rate * m."""
    return Optimizer("momentum", learning_rate, momentum=momentum, use_nesterov=use_nesterov,
                     **settings)


def lion(learning_rate: Rate = 0.01, *, beta1: float | None = None, beta2: float | None = None,
         use_non_lazy: bool | None = None, **settings: Any) -> Optimizer:
    """The sign of two momenta mixed."""
    return Optimizer("lion", learning_rate, beta1=beta1, beta2=beta2, use_non_lazy=use_non_lazy,
                     **settings)


def rms_prop(learning_rate: Rate = 0.01, *, rho: float | None = None,
             momentum: float | None = None, epsilon: float | None = None,
             **settings: Any) -> Optimizer:
    """A mean of squares, then momentum."""
    return Optimizer("rms_prop", learning_rate, rho=rho, momentum=momentum, epsilon=epsilon,
                     **settings)


def centered_rms_prop(learning_rate: Rate = 0.01, *, rho: float | None = None,
                      momentum: float | None = None, epsilon: float | None = None,
                      **settings: Any) -> Optimizer:
    """Likewise, over the variance."""
    return Optimizer("centered_rms_prop", learning_rate, rho=rho, momentum=momentum,
                     epsilon=epsilon, **settings)


def adadelta(learning_rate: Rate = 0.01, *, rho: float | None = None,
             epsilon: float | None = None, **settings: Any) -> Optimizer:
    """Steps in the unit of the steps before."""
    return Optimizer("adadelta", learning_rate, rho=rho, epsilon=epsilon, **settings)


def proximal_adagrad(learning_rate: Rate = 0.01, *,
                     initial_accumulator_value: float | None = None, l1: float | None = None,
                     l2: float | None = None, **settings: Any) -> Optimizer:
    """Adagrad, then l1 and l2 in closed form."""
    return Optimizer("proximal_adagrad", learning_rate,
                     initial_accumulator_value=initial_accumulator_value, l1=l1, l2=l2,
                     **settings)


def assign(learning_rate: Rate = 0.01, **settings: Any) -> Optimizer:
    """w = g."""
    return Optimizer("assign", learning_rate, **settings)


def laprop(learning_rate: Rate = 0.01, *, b1: float | None = None, b2: float | None = None,
           eps: float | None = None, **settings: Any) -> Optimizer:
    """Momentum of normalized gradients."""
    return Optimizer("laprop", learning_rate, b1=b1, b2=b2, eps=eps, **settings)


def proximal_yogi(learning_rate: Rate = 0.01, *, initial_accumulator_value: float | None = None,
                  l1: float | None = None, l2: float | None = None, beta1: float | None = None,
                  beta2: float | None = None, epsilon: float | None = None,
                  **settings: Any) -> Optimizer:
    """Yogi, then l1 and l2 in closed form."""
    return Optimizer("proximal_yogi", learning_rate,
                     initial_accumulator_value=initial_accumulator_value, l1=l1, l2=l2,
                     beta1=beta1, beta2=beta2, epsilon=epsilon, **settings)


def bounded_adagrad(learning_rate: Rate = 0.01, *, initial_accumulator_value: float | None = None,
                    update_accumulator_first: bool | None = None,
                    max_var_update: float | None = None, max_accumulator: float | None = None,
                    **settings: Any) -> Optimizer:
    """Adagrad with bounds."""
    return Optimizer("bounded_adagrad", learning_rate,
                     initial_accumulator_value=initial_accumulator_value,
                     update_accumulator_first=update_accumulator_first,
                     max_var_update=max_var_update, max_accumulator=max_accumulator, **settings)


def online_yogi(learning_rate: Rate = 0.01, *, l1: float | None = None, l2: float | None = None,
                beta2: float | None = None, **settings: Any) -> Optimizer:
    """FTRL over Yogi's mean of squares."""
    return Optimizer("online_yogi", learning_rate, l1=l1, l2=l2, beta2=beta2, **settings)


def frequency_estimator(learning_rate: Rate = 0.01, *, tau: float | None = None,
                        max_delta: float | None = None, outlier_threshold: float | None = None,
                        weight_exponent: float | None = None, **settings: Any) -> Optimizer:
    """Steps between two touches of a row; dim 1."""
    return Optimizer("frequency_estimator", learning_rate, tau=tau, max_delta=max_delta,
                     outlier_threshold=outlier_threshold, weight_exponent=weight_exponent,
                     **settings)


def frequency_aware_adagrad(learning_rate: Rate = 0.01, *,
                            initial_accumulator_value: float | None = None,
                            l1_regularization_strength: float | None = None,
                            l2_regularization_strength: float | None = None,
                            max_lr_multiplier: float | None = None,
                            probability_exponent: float | None = None,
                            accumulator_decay: float | None = None,
                            step_counter: str | None = None, **settings: Any) -> Optimizer:
    """Adagrad that moves rare rows further."""
    return Optimizer("frequency_aware_adagrad", learning_rate,
                     initial_accumulator_value=initial_accumulator_value,
                     l1_regularization_strength=l1_regularization_strength,
                     l2_regularization_strength=l2_regularization_strength,
                     max_lr_multiplier=max_lr_multiplier,
                     probability_exponent=probability_exponent,
                     accumulator_decay=accumulator_decay, step_counter=step_counter, **settings)


def mdl_adagrad_light(learning_rate: Rate = 0.01, *, l2: float | None = None,
                      lr_power: float | None = None,
                      min_servable_mdl_benefit: float | None = None,
                      mdl_mix_in_margin: float | None = None,
                      mdl_benefit_rampup_coeff: float | None = None,
                      mdl_min_weight: float | None = None,
                      benefit_revisit_scale: float | None = None,
                      max_event_benefit: float | None = None,
                      max_total_benefit: float | None = None, mdl_hard_limit: float | None = None,
                      hard_limit_min_benefit: bool | None = None,
                      mdl_regularize: bool | None = None, **settings: Any) -> Optimizer:
    """Adagrad that serves what saves of the loss."""
    return Optimizer("mdl_adagrad_light", learning_rate, l2=l2, lr_power=lr_power,
                     min_servable_mdl_benefit=min_servable_mdl_benefit,
                     mdl_mix_in_margin=mdl_mix_in_margin,
                     mdl_benefit_rampup_coeff=mdl_benefit_rampup_coeff,
                     mdl_min_weight=mdl_min_weight, benefit_revisit_scale=benefit_revisit_scale,
                     max_event_benefit=max_event_benefit, max_total_benefit=max_total_benefit,
                     mdl_hard_limit=mdl_hard_limit, hard_limit_min_benefit=hard_limit_min_benefit,
                     mdl_regularize=mdl_regularize, **settings)


def rowwise_adagrad(learning_rate: Rate = 0.01, *, initial_accumulator_value: float | None = None,
                    epsilon: float | None = None, mean_gradient: bool | None = None,
                    **settings: Any) -> Optimizer:
    """Adagrad with one accumulator a row."""
    return Optimizer("rowwise_adagrad", learning_rate,
                     initial_accumulator_value=initial_accumulator_value, epsilon=epsilon,
                     mean_gradient=mean_gradient, **settings)


def partial_rowwise_adam(learning_rate: Rate = 0.01, *, beta_1: float | None = None,
                         beta_2: float | None = None, epsilon: float | None = None,
                         **settings: Any) -> Optimizer:
    """Adam with one mean of squares a row."""
    return Optimizer("partial_rowwise_adam", learning_rate, beta_1=beta_1, beta_2=beta_2,
                     epsilon=epsilon, **settings)


def adagrad_epsilon(learning_rate: Rate = 0.01, **settings: Any) -> Optimizer:
    """Adagrad that starts from 0, with epsilon 1e-10 beside the root, as torch has it."""
    return Optimizer("adagrad", learning_rate,
                     **{"initial_accumulator_value": 0.0, "epsilon": 1e-10, **settings})


def adam_corrected(learning_rate: Rate = 0.001, **settings: Any) -> Optimizer:
    """Adam with bias correction, epsilon 1e-8, as torch.optim.Adam has it."""
    return Optimizer("adam", learning_rate,
                     **{"bias_correction": True, "epsilon": 1e-8, **settings})


def adam_epsilon_hat(learning_rate: Rate = 0.001, **settings: Any) -> Optimizer:
    """Adam with bias correction and an epsilon that is not corrected, as SparseAdam has it."""
    return adam_corrected(learning_rate, **{"epsilon_hat": True, **settings})


def adamw(learning_rate: Rate = 0.001, **settings: Any) -> Optimizer:
    """Adam with decoupled weight decay of touched rows, as torch.optim.AdamW has it."""
    return adam_corrected(learning_rate, **{"weight_decay_factor": 0.01,
                                            "multiply_weight_decay_by_rate": True, **settings})

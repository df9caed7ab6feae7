# SPDX-License-Identifier: MIT
"""Optimizers of tables as ``torch.optim.Optimizer``, with torch's signatures and formulas.

Each class takes all parameters of a model. The tables among them are trained by their engines, the
others by torch's class of the same name, with the same param_groups. So adopting is one line::

    optimizer = embeng.torch.optim.Adam(model.parameters(), lr=1e-3)
    optimizer = embeng.torch.optim.wrap(torch_optimizer)        # or so, with its state

Hyperparameters in ``param_groups`` may change between steps, by schedulers too. ``state`` and
``state_dict()`` have torch's names; the tensors of tables in ``state`` are the engine's live
memory.

One thing differs from torch's dense optimizers, and is as with sparse gradients: only rows that a
batch touches are updated. Momentum does not move other rows on, weight decay does not shrink them,
and moments of other rows do not decay. The classes say what else differs.

The kind of optimizer is fixed when an engine is opened. An optimizer that gets a table of another
kind opens its engine again: rows are copied, and the parameter points to the new memory. A new
optimizer starts from new slots and from step 0, as any of torch does.
"""
import inspect
import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

import torch
import torch.optim.optimizer as _torch_optimizer
from torch import Tensor, nn

from .. import initializers
from .._errors import InvalidError, NotSupportedError, StepOrderError
from ..optimizers import Optimizer as Settings
from ._group import Group
from ._hosted import States, states
from ._table import TableParameter

Hyper = Mapping[str, Any]
ParamsT = Iterable[Any]

_pre_hooks: Mapping[int, Any] = getattr(_torch_optimizer, "_global_optimizer_pre_hooks", {})
_post_hooks: Mapping[int, Any] = getattr(_torch_optimizer, "_global_optimizer_post_hooks", {})


def is_table(parameter: Any) -> bool:
    """Return whether a parameter is a table of an engine."""
    return isinstance(parameter, TableParameter)


class TableOptimizer(torch.optim.Optimizer):
    """The base of the classes of this module, which is not made by itself.

    Parameters
    ----------
    params : iterable
        Parameters or groups of them, as for all of torch.optim.
    defaults : dict
        Hyperparameters of groups that do not have them.
    """

    torch_class: ClassVar[Any] = None
    """Trains the parameters that are no tables."""
    slots: ClassVar[dict[str, str]] = {}
    """From torch's names of state to slots of the engine."""
    counts_steps: ClassVar[str] = "tensor"
    """How state has the number of steps: "tensor", "int", or "" for not at all."""

    def __init__(self, params: ParamsT, defaults: dict[str, Any]):
        self._ready = False
        super().__init__(params, defaults)
        self._ready = True
        self._adopt()
        for group, members in self._plan.items():
            if group.owned and group.engine.step:
                self._start_again(group, members)

    # -- what a class says of itself

    @classmethod
    def structure(cls, hyper: Hyper) -> tuple[str, dict[str, Any]]:
        """Return the engine's kind, and settings that are fixed while an engine is open."""
        raise NotImplementedError

    @classmethod
    def dynamic(cls, hyper: Hyper, step: int) -> dict[str, float]:
        """Return hyperparameters of the engine that come with each step, learning_rate first."""
        raise NotImplementedError

    @classmethod
    def settings(cls, hyper: Hyper, prefix: str = "", **more: Any) -> Settings:
        """Return the engine's optimizer for hyperparameters of torch."""
        kind, fixed = cls.structure(hyper)
        names = {m: prefix + m for m in cls.dynamic(hyper, 1) if m != "learning_rate"}
        return Settings(kind, prefix + "learning_rate", **fixed, **more, dynamic=names or None)

    def _export(self, name: str, slot: Tensor, hyper: Hyper) -> Tensor:
        return slot

    def _import(self, name: str, value: Tensor, hyper: Hyper) -> Tensor:
        return value.to_dense() if value.is_sparse else value

    # -- tables and others

    def _adopt(self) -> None:
        """Take the tables among the parameters, and give the others to torch's class."""
        parts: dict[Group, dict[int, list[TableParameter]]] = {}
        dense: list[tuple[int, list[Any]]] = []
        for k, hyper in enumerate(self.param_groups):
            for parameter in hyper["params"]:
                if isinstance(parameter, TableParameter):
                    parts.setdefault(parameter.group, {}).setdefault(k, []).append(parameter)
            others = [p for p in hyper["params"] if not isinstance(p, TableParameter)]
            if others:
                dense.append((k, others))
        self._check_groups(parts)
        self._inner, self._inner_groups = self._make_inner(dense)
        self._plan = {group: [(k, f"{k}." if k else "") for k in members]
                      for group, members in parts.items()}
        self._structures = [self.structure(hyper) for hyper in self.param_groups]
        for group, members in parts.items():
            self._take(group, members)
        _watch_others()

    def _check_groups(self, parts: Mapping[Group, Mapping[int, Any]]) -> None:
        for group, members in parts.items():
            if len({bool(self.param_groups[k].get("maximize")) for k in members}) > 1:
                raise InvalidError(f"table {group.names[0]} and another of its module differ in "
                                   "maximize; it is the same for all tables of a module")
        for hyper in self.param_groups:
            if hyper.get("differentiable"):
                raise NotSupportedError("differentiable=True: steps of tables are not recorded")

    def _make_inner(self, dense: list[tuple[int, list[Any]]]) -> \
            tuple[torch.optim.Optimizer | None, list[tuple[Any, Any]]]:
        cls = self.torch_class
        if cls is None:
            if dense:
                raise NotSupportedError(
                    f"{type(self).__name__} trains tables alone; give parameters that are no "
                    "tables to an optimizer of torch.optim")
            return None, []
        hidden = ("params", "param_names")
        # A parameter of no size lets torch's class check the hyperparameters where all are tables.
        known = dict(dense) or {0: [nn.Parameter(torch.zeros(0, device="cpu"))]}
        accepted = set(inspect.signature(cls).parameters)
        groups = [{name: value for name, value in self.param_groups[k].items()
                   if name not in hidden} | {"params": known[k]} for k in known]
        inner = cls(groups, **{name: value for name, value in self.defaults.items()
                               if name in accepted})
        if not dense:
            return None, []
        inner.state = self.state
        return inner, [(self.param_groups[k], inner.param_groups[at])
                       for at, k in enumerate(known)]

    def _take(self, group: Group, members: Mapping[int, list[TableParameter]]) -> None:
        settings = {}
        for k, parameters in members.items():
            for parameter in parameters:
                more = {"scale_by_frequency": True} if group.scales.get(parameter.table) else {}
                settings[parameter.table] = self.settings(
                    self.param_groups[k], f"{k}." if k else "", **more)
        group.attach(self, settings)
        steps = [int(self.state[p]["step"]) for parameters in members.values()
                 for p in parameters if "step" in self.state.get(p, {})]
        if steps:
            group.engine.step = max(steps)
        for k, parameters in members.items():
            for parameter in parameters:
                self._bind_state(group, parameter, self.param_groups[k])

    def _start_again(self, group: Group, members: Iterable[tuple[int, str]]) -> None:
        """Start slots and steps anew: those that an optimizer of before left."""
        for k, _ in members:
            for parameter in self.param_groups[k]["params"]:
                if is_table(parameter) and parameter.group is group:
                    view = group.engine[parameter.table]
                    for slot in view.slots:
                        view.fill(initializers.default(), slot=slot)
        group.engine.step = 0

    def _bind_state(self, group: Group, parameter: TableParameter, hyper: Hyper) -> None:
        """Copy given state into the slots, then let state be the slots."""
        given = self.state.pop(parameter, {})
        state: dict[str, Any] = {}
        if self.counts_steps:
            state["step"] = torch.tensor(0.0, device="cpu") if self.counts_steps == "tensor" else 0
        there = group.engine[parameter.table].slots
        for name, slot in self.slots.items():
            if slot not in there:
                continue
            value = given.get(name)
            if group.hosts > 1:
                if value is not None:
                    width = self._import(name, value, hyper).reshape(len(parameter), -1)
                    group.write_rows(parameter.table, width, slot)
                continue
            memory = group.memory(parameter.table, slot)
            if value is not None and value.data_ptr() != memory.data_ptr():
                memory.copy_(self._import(name, value, hyper).reshape(memory.shape))
            state[name] = memory
        self.state[parameter] = state

    def _count(self) -> None:
        """Write the number of steps into state."""
        for group in self._plan:
            for parameter in group.parameters():
                state = self.state.get(parameter)
                if state and "step" in state:
                    step = group.engine.step
                    state["step"] = torch.tensor(float(step), device="cpu") \
                        if self.counts_steps == "tensor" else step

    def released(self, group: Group) -> bool:
        """Return whether :meth:`detach` was called."""
        return group not in self._plan

    def detach(self) -> None:
        """Let the tables go, for another optimizer. Their rows and slots stay."""
        for group in self._plan:
            group.detach()
        self._plan = {}

    # -- steps

    def rates(self, group: Group) -> tuple[dict[str, float], float]:
        """Return the rates that a step of a group's engine takes, and the sign of gradients."""
        rates: dict[str, float] = {}
        sign = 1.0
        for k, prefix in self._plan[group]:
            hyper = self.param_groups[k]
            step = group.engine.step + 1 if hyper.get("lr_decay") else 1
            values = self.dynamic(hyper, step)
            if prefix:
                values = {prefix + name: value for name, value in values.items()}
            rates = {**rates, **values} if rates else values
            if hyper.get("maximize"):
                sign = -1.0
        return rates, sign

    def _step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        if [self.structure(group) for group in self.param_groups] != self._structures:
            self._count()
            self._adopt()
        for group in self._plan:
            entries = group.gather()
            if entries or group.exchange is not None or group.hosts > 1:
                rates, sign = self.rates(group)
                group.apply(entries, rates, sign * group.multiplier)
        if self._inner is not None:
            for ours, theirs in self._inner_groups:
                theirs.update((name, value) for name, value in ours.items()
                              if name not in ("params", "param_names"))
            self._inner.step()
        return loss

    _step_with_hooks = torch.optim.Optimizer.profile_hook_step(_step)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Apply the gradients that wait, in one update of each engine.

        Tables without gradients since :meth:`zero_grad` stay as they are, and count no step.

        Parameters
        ----------
        closure : callable, optional
            Computes the loss again and returns it, as torch has it.
        """
        if self._optimizer_step_pre_hooks or self._optimizer_step_post_hooks or _post_hooks or \
                len(_pre_hooks) > 1:
            return self._step_with_hooks(closure)
        return self._step(closure)

    step.hooked = True  # type: ignore[attr-defined]

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients that wait. Others become None or zeros, as torch has it."""
        for group in self._plan:
            group.clear()
        if self._inner is not None:
            self._inner.zero_grad(set_to_none)

    # -- torch's ways to change and copy an optimizer

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters, as torch has it."""
        super().add_param_group(param_group)
        if self._ready:
            self._count()
            self._adopt()

    def state_dict(self) -> dict[str, Any]:
        """Return state in torch's names. Tensors of tables are live; copies are ``clone()``.

        Raises
        ------
        NotSupportedError
            Tables lie on several hosts; the sentence names the calls to use.
        """
        wanted = states.get()
        if wanted.tables != "leave":
            self._check_here(wanted.tables)
            self._count()
        kept: dict[Tensor, Any] = {}
        for hyper in self.param_groups:
            for parameter in hyper["params"]:
                if isinstance(parameter, TableParameter):
                    kept[parameter] = state = self.state[parameter]
                    state = {**state, **self._gather_slots(parameter, wanted)}
                    self.state[parameter] = {
                        name: self._export(name, value, hyper) if name in self.slots else value
                        for name, value in state.items()}
        try:
            return super().state_dict()
        finally:
            self.state.update(kept)

    def _check_here(self, tables: str) -> None:
        for group in self._plan:
            if group.hosts > 1 and tables == "refuse":
                raise NotSupportedError(
                    f"state_dict(): the slots of table {group.names[0]} lie on the {group.hosts} "
                    f"hosts "
                    "of a group. embeng.torch.local_state_dict() leaves them out; all hosts "
                    "together "
                    "call embeng.torch.gather_state_dict() for a state that has them, or "
                    "engine.save() of the module for a checkpoint")

    def _gather_slots(self, parameter: TableParameter, wanted: States) -> dict[str, Tensor]:
        """Read the slots of a table that lies on several hosts, which all hosts do together."""
        group = parameter.group
        if group.hosts == 1 or wanted.tables != "gather":
            return {}
        there = group.engine[parameter.table].slots
        return {name: group.read_rows(parameter.table, slot, wanted.host)
                for name, slot in self.slots.items() if slot in there}

    def __getstate__(self) -> dict[str, Any]:
        self._check_here("refuse")
        self._count()
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._ready = True
        given = {parameter: set(values) for parameter, values in self.state.items()}
        self._adopt()
        for group, members in self._plan.items():
            known = [given.get(p) for k, _ in members for p in self.param_groups[k]["params"]
                     if is_table(p) and p.group is group]
            if group.owned and group.hosts == 1 and self.slots and not any(known):
                self._start_again(group, members)


def _float(value: Any) -> float:
    return value if type(value) is float else float(value)


def _decay(hyper: Hyper) -> float:
    return _float(hyper.get("weight_decay", 0.0))


_L2 = {"weight_decay_in_gradient": True}


class SGD(TableOptimizer):
    """``torch.optim.SGD`` for tables and other parameters.

    Tables: ``g += weight_decay * w; buffer = momentum * buffer + g; w -= lr * buffer``, or with
    `nesterov` ``w -= lr * (g + momentum * buffer)``, of touched rows. `dampening` is 0.
    """

    torch_class: ClassVar[Any] = torch.optim.SGD
    slots = {"momentum_buffer": "momenta"}
    counts_steps = ""

    def __init__(self, params: ParamsT, lr: float | Tensor = 1e-3, momentum: float = 0,
                 dampening: float = 0, weight_decay: float | Tensor = 0, nesterov: bool = False, *,
                 maximize: bool = False, foreach: bool | None = None,
                 differentiable: bool = False, fused: bool | None = None):
        super().__init__(params, {
            "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay,
            "nesterov": nesterov, "maximize": maximize, "foreach": foreach,
            "differentiable": differentiable, "fused": fused})

    @classmethod
    def structure(cls, hyper: Hyper) -> tuple[str, dict[str, Any]]:
        if not hyper["momentum"]:
            return "sgd", _L2
        if hyper["dampening"]:
            raise NotSupportedError(f"dampening is {hyper['dampening']}; with tables it is 0")
        return "momentum", {**_L2, "use_nesterov": bool(hyper["nesterov"])}

    @classmethod
    def dynamic(cls, hyper: Hyper, step: int) -> dict[str, float]:
        found = {"learning_rate": _float(hyper["lr"]), "weight_decay_factor": _decay(hyper)}
        if hyper["momentum"]:
            found["momentum"] = _float(hyper["momentum"])
        return found


class Adagrad(TableOptimizer):
    """``torch.optim.Adagrad`` for tables and other parameters.

    Tables: ``g += weight_decay * w; sum += g * g; w -= clr * g / (sqrt(sum) + eps)`` with
    ``clr = lr / (1 + (step - 1) * lr_decay)``, of touched rows.
    """

    torch_class: ClassVar[Any] = torch.optim.Adagrad
    slots = {"sum": "accumulators"}

    def __init__(self, params: ParamsT, lr: float | Tensor = 1e-2, lr_decay: float = 0,
                 weight_decay: float = 0, initial_accumulator_value: float = 0,
                 eps: float = 1e-10, foreach: bool | None = None, *, maximize: bool = False,
                 differentiable: bool = False, fused: bool | None = None):
        super().__init__(params, {
            "lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable, "fused": fused})

    @classmethod
    def structure(cls, hyper: Hyper) -> tuple[str, dict[str, Any]]:
        start = float(hyper["initial_accumulator_value"])
        # The engine checks the epsilon that slots start with; each step gives its own.
        return "adagrad", {**_L2, "initial_accumulator_value": start, "epsilon": 1e-10}

    @classmethod
    def dynamic(cls, hyper: Hyper, step: int) -> dict[str, float]:
        rate = _float(hyper["lr"])
        if hyper["lr_decay"]:
            rate /= 1 + (step - 1) * hyper["lr_decay"]
        return {"learning_rate": rate, "epsilon": _float(hyper["eps"]),
                "weight_decay_factor": _decay(hyper)}


class RowWiseAdagrad(TableOptimizer):
    """Adagrad with one accumulator a row, with torchrec's signature; for tables alone.

    ``g += weight_decay * w; sum += mean(g * g); w -= clr / (sqrt(sum) + eps) * g``, of touched
    rows, with ``clr = lr / (1 + (step - 1) * lr_decay)``. Programs of torchrec train with it on
    devices (FBGEMM's EXACT_ROWWISE_ADAGRAD). ``mean_gradient=True`` is the formula of the class
    ``torchrec.optim.RowWiseAdagrad`` itself, in which a row moves as one.
    """

    slots = {"sum": "accumulators"}

    def __init__(self, params: ParamsT, lr: float | Tensor = 1e-2, lr_decay: float = 0.0,
                 weight_decay: float = 0.0, initial_accumulator_value: float = 0.0,
                 eps: float = 1e-10, *, maximize: bool = False, mean_gradient: bool = False):
        super().__init__(params, {
            "lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value, "maximize": maximize,
            "mean_gradient": mean_gradient})

    @classmethod
    def structure(cls, hyper: Hyper) -> tuple[str, dict[str, Any]]:
        start = float(hyper["initial_accumulator_value"])
        return "rowwise_adagrad", {**_L2, "initial_accumulator_value": start,
                                   "mean_gradient": bool(hyper["mean_gradient"])}

    @classmethod
    def dynamic(cls, hyper: Hyper, step: int) -> dict[str, float]:
        return Adagrad.dynamic(hyper, step)


class Adam(TableOptimizer):
    """``torch.optim.Adam`` for tables and other parameters.

    Tables: ``g += weight_decay * w``, then Adam with bias correction, of touched rows. ``step``
    counts the steps of the engine; moments of rows that a step does not touch stay as they are,
    which is the lazy form. `amsgrad` is False.
    """

    torch_class: ClassVar[Any] = torch.optim.Adam
    slots = {"exp_avg": "momenta", "exp_avg_sq": "velocities"}

    def __init__(self, params: ParamsT, lr: float | Tensor = 1e-3,
                 betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0, amsgrad: bool = False, *, foreach: bool | None = None,
                 maximize: bool = False, capturable: bool = False, differentiable: bool = False,
                 fused: bool | None = None, decoupled_weight_decay: bool = False):
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
            "amsgrad": amsgrad, "maximize": maximize, "foreach": foreach,
            "capturable": capturable, "differentiable": differentiable, "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay})

    @classmethod
    def structure(cls, hyper: Hyper) -> tuple[str, dict[str, Any]]:
        if hyper.get("amsgrad"):
            raise NotSupportedError("amsgrad is True; with tables it is False")
        decay = {"multiply_weight_decay_by_rate": True} if hyper.get("decoupled_weight_decay") \
            else _L2
        return "adam", {**decay, "bias_correction": True}

    @classmethod
    def dynamic(cls, hyper: Hyper, step: int) -> dict[str, float]:
        first, second = hyper["betas"]
        return {"learning_rate": _float(hyper["lr"]), "beta_1": _float(first),
                "beta_2": _float(second), "epsilon": _float(hyper["eps"]),
                "weight_decay_factor": _decay(hyper)}


class AdamW(Adam):
    """``torch.optim.AdamW`` for tables and other parameters.

    Tables: ``w -= lr * weight_decay * w``, then as :class:`Adam`, of touched rows.
    """

    torch_class: ClassVar[Any] = torch.optim.AdamW

    def __init__(self, params: ParamsT, lr: float | Tensor = 1e-3,
                 betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 1e-2, amsgrad: bool = False, *, maximize: bool = False,
                 foreach: bool | None = None, capturable: bool = False,
                 differentiable: bool = False, fused: bool | None = None):
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach,
                         maximize=maximize, capturable=capturable, differentiable=differentiable,
                         fused=fused, decoupled_weight_decay=True)


class SparseAdam(TableOptimizer):
    """``torch.optim.SparseAdam`` for tables, and for others whose gradients are sparse.

    Tables: Adam with bias correction and an epsilon that is not corrected, of touched rows. It is
    torch's formula and its laziness.
    """

    torch_class: ClassVar[Any] = torch.optim.SparseAdam
    slots = {"exp_avg": "momenta", "exp_avg_sq": "velocities"}
    counts_steps = "int"

    def __init__(self, params: ParamsT, lr: float | Tensor = 1e-3,
                 betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 maximize: bool = False):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})

    @classmethod
    def structure(cls, hyper: Hyper) -> tuple[str, dict[str, Any]]:
        return "adam", {"bias_correction": True, "epsilon_hat": True}

    @classmethod
    def dynamic(cls, hyper: Hyper, step: int) -> dict[str, float]:
        first, second = hyper["betas"]
        return {"learning_rate": _float(hyper["lr"]), "beta_1": _float(first),
                "beta_2": _float(second), "epsilon": _float(hyper["eps"])}


class RMSprop(TableOptimizer):
    """``torch.optim.RMSprop`` for tables and other parameters.

    Tables: ``ms = alpha * ms + (1 - alpha) * g * g; mom = momentum * mom + lr * g / sqrt(ms + eps *
    eps); w -= mom``, with `centered` over ``ms - mg * mg``, of touched rows. Torch has ``sqrt(ms) +
    eps``, a relative difference of at most ``eps / sqrt(ms)``. Torch's buffer has no learning rate
    in it, which is the same while the rate is constant; with a schedule and momentum old gradients
    keep the rate of their step here.
    """

    torch_class: ClassVar[Any] = torch.optim.RMSprop
    slots = {"square_avg": "ms", "momentum_buffer": "mom", "grad_avg": "mg"}

    def __init__(self, params: ParamsT, lr: float | Tensor = 1e-2, alpha: float = 0.99,
                 eps: float = 1e-8, weight_decay: float = 0, momentum: float = 0,
                 centered: bool = False, capturable: bool = False, foreach: bool | None = None,
                 maximize: bool = False, differentiable: bool = False):
        super().__init__(params, {
            "lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered,
            "weight_decay": weight_decay, "capturable": capturable, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable})

    @classmethod
    def structure(cls, hyper: Hyper) -> tuple[str, dict[str, Any]]:
        return ("centered_rms_prop" if hyper["centered"] else "rms_prop"), _L2

    @classmethod
    def dynamic(cls, hyper: Hyper, step: int) -> dict[str, float]:
        return {"learning_rate": _float(hyper["lr"]), "rho": _float(hyper["alpha"]),
                "momentum": _float(hyper["momentum"]), "epsilon": _float(hyper["eps"]) ** 2,
                "weight_decay_factor": _decay(hyper)}

    def _export(self, name: str, slot: Tensor, hyper: Hyper) -> Tensor:
        rate = _float(hyper["lr"])
        return slot / rate if name == "momentum_buffer" and rate else slot

    def _import(self, name: str, value: Tensor, hyper: Hyper) -> Tensor:
        value = super()._import(name, value, hyper)
        return value * _float(hyper["lr"]) if name == "momentum_buffer" else value


class Adadelta(TableOptimizer):
    """``torch.optim.Adadelta`` for tables and other parameters: its formula, of touched rows."""

    torch_class: ClassVar[Any] = torch.optim.Adadelta
    slots = {"square_avg": "accumulators", "acc_delta": "updates"}

    def __init__(self, params: ParamsT, lr: float | Tensor = 1.0, rho: float = 0.9,
                 eps: float = 1e-6, weight_decay: float = 0, foreach: bool | None = None, *,
                 capturable: bool = False, maximize: bool = False, differentiable: bool = False):
        super().__init__(params, {
            "lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
            "capturable": capturable, "foreach": foreach, "differentiable": differentiable})

    @classmethod
    def structure(cls, hyper: Hyper) -> tuple[str, dict[str, Any]]:
        return "adadelta", _L2

    @classmethod
    def dynamic(cls, hyper: Hyper, step: int) -> dict[str, float]:
        return {"learning_rate": _float(hyper["lr"]), "rho": _float(hyper["rho"]),
                "epsilon": _float(hyper["eps"]), "weight_decay_factor": _decay(hyper)}


class Tables(TableOptimizer):
    """Any optimizer of :mod:`embeng.optimizers` for tables, such as FTRL and Lion.

    Parameters
    ----------
    params : iterable
        Tables, or groups of them.
    optimizer : embeng.Optimizer
        The kind and its settings. Its learning rate is a number, and starts as `lr` of the groups,
        where schedulers change it.
    """

    counts_steps = "int"

    def __init__(self, params: ParamsT, optimizer: Settings, *, maximize: bool = False):
        if not isinstance(optimizer.learning_rate, int | float):
            raise InvalidError(f"the learning rate is {optimizer.learning_rate!r}; it is a number "
                               "here, and schedulers of torch.optim change it")
        super().__init__(params, {"lr": float(optimizer.learning_rate), "kind": optimizer.kind,
                                  "settings": optimizer.settings, "maximize": maximize})

    @classmethod
    def structure(cls, hyper: Hyper) -> tuple[str, dict[str, Any]]:
        return hyper["kind"], hyper["settings"]

    @classmethod
    def dynamic(cls, hyper: Hyper, step: int) -> dict[str, float]:
        return {"learning_rate": _float(hyper["lr"])}

    def _bind_state(self, group: Group, parameter: TableParameter, hyper: Hyper) -> None:
        self.slots = {slot: slot for slot in  # type: ignore[misc]
                      (*self.slots, *group.engine[parameter.table].slots)}
        super()._bind_state(group, parameter, hyper)


BY_TORCH: dict[type[torch.optim.Optimizer], type[TableOptimizer]] = {
    cls.torch_class: cls for cls in (SGD, Adagrad, Adam, AdamW, SparseAdam, RMSprop, Adadelta)
    if cls.torch_class}


def settings_of_class(cls: type[torch.optim.Optimizer]) -> Settings:
    """Return the engine's optimizer for a class of torch.optim or of this module.

    Raises
    ------
    NotSupportedError
        The engine has no such formula; the sentence names what it has.
    """
    ours = counterpart(cls)
    hyper = {name: parameter.default for name, parameter in
             inspect.signature(ours).parameters.items()}
    if "optimizer" in hyper:
        raise InvalidError("optimizer is the class Tables; give the embeng.Optimizer itself")
    if ours is AdamW:
        hyper["decoupled_weight_decay"] = True
    return ours.settings(hyper)


def counterpart(cls: type[torch.optim.Optimizer]) -> type[TableOptimizer]:
    """Return the class of this module for one of torch.optim; one of this module is its own.

    Raises
    ------
    NotSupportedError
        There is none; the sentence names those that there are.
    """
    if issubclass(cls, TableOptimizer):
        return cls
    found = BY_TORCH.get(cls)
    if found is None:
        names = ", ".join(known.__name__ for known in BY_TORCH)
        raise NotSupportedError(
            f"{cls.__module__}.{cls.__name__} has no counterpart for tables; those of torch.optim "
            f"are {names}. embeng.torch.optim has RowWiseAdagrad, too, and Tables for the engine's "
            "own kinds")
    return found


def wrap(optimizer: torch.optim.Optimizer) -> TableOptimizer:
    """Make an optimizer of this module of one of torch.optim, with its groups and its state.

    Parameters
    ----------
    optimizer : torch.optim.Optimizer
        The new one takes all that this one has, which is not to be used any more. Make schedulers
        afterwards.

    Returns
    -------
    TableOptimizer
        Trains tables by their engines and other parameters as before.

    Raises
    ------
    NotSupportedError
        Its class, or one of its settings, has no counterpart.
    """
    if isinstance(optimizer, TableOptimizer):
        return optimizer
    cls = counterpart(type(optimizer))
    made = cls.__new__(cls)
    groups = [dict(group) for group in optimizer.param_groups]
    TableOptimizer.__init__(made, groups, dict(optimizer.defaults))
    given = {parameter: state for parameter, state in optimizer.state.items() if state}
    made.state.update(given)
    made._adopt()
    return made


# -- other optimizers ---------------------------------------------------------------------------

_watching = False
_seen: "weakref.WeakKeyDictionary[torch.optim.Optimizer, int]" = weakref.WeakKeyDictionary()


def _refuse_tables(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
    if isinstance(optimizer, TableOptimizer) or \
            _seen.get(optimizer) == len(optimizer.param_groups):
        return
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if isinstance(parameter, TableParameter):
                raise StepOrderError(
                    f"{type(optimizer).__name__} of torch.optim has the table {parameter.table}, "
                    "which its engine trains; use embeng.torch.optim.wrap(optimizer), or leave "
                    "tables out: [p for p in model.parameters() if not embeng.torch.is_table(p)]")
    _seen[optimizer] = len(optimizer.param_groups)


def _watch_others() -> None:
    """Have torch's own optimizers refuse tables, which they would train once more."""
    global _watching
    if not _watching:
        _watching = True
        _torch_optimizer.register_optimizer_step_pre_hook(_refuse_tables)

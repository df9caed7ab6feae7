# SPDX-License-Identifier: MIT
"""State dicts of PyTorch: models, optimizers, and the files of torch.save.

torch is imported when one of these functions is called. Files are loaded with
``weights_only=True``, and mapped where torch allows it. They are written row by row in the zip
layout of torch.save, which is ``data.pkl`` and one record of raw numbers for each storage, so that
no table is copied to memory.
:mod:`embeng.checkpoint` documents which state is which slot.
"""
import math
import pickle
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from ._formats import (EXACT, Entry, Tensor, array_tensor, damaged, invalid, unknown, write_data)

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    FloatArray = NDArray[numpy.float32]

# By kind and slot: the names of the state, of which the first is written.
STATE_NAMES: dict[str, dict[str, tuple[str, ...]]] = {
    "adagrad": {"accumulators": ("sum", "momentum1")},
    "rowwise_adagrad": {"accumulators": ("sum", "momentum1")},
    "adam": {"momenta": ("exp_avg", "momentum1"), "velocities": ("exp_avg_sq", "momentum2")},
    "partial_rowwise_adam": {"momenta": ("exp_avg", "momentum1"),
                             "velocities": ("exp_avg_sq", "momentum2")},
    "momentum": {"momenta": ("momentum_buffer",)},
    "adadelta": {"accumulators": ("square_avg",), "updates": ("acc_delta",)},
    "rms_prop": {"ms": ("square_avg",)},
    "centered_rms_prop": {"ms": ("square_avg",), "mg": ("grad_avg",)},
    "lion": {"momenta": ("exp_avg",)},
    "sgd": {},
}

# Kinds whose whole state torch.optim or torchrec can load.
WRITTEN = ("sgd", "momentum", "adagrad", "rowwise_adagrad", "adam", "partial_rowwise_adam",
           "adadelta", "lion")

_MODEL_KEYS = ("state_dict", "model_state_dict", "model_state", "model")
_OPTIMIZER_KEYS = ("optimizer", "optimizer_state_dict", "optimizer_state", "optim")


class States(NamedTuple):
    """A source's tensors of the model, and the state of each parameter by its name."""

    tensors: list[Tensor]
    states: dict[str, dict[str, Any]]


def import_torch() -> Any:
    """Return torch, or say how to install it."""
    try:
        import torch
    except ImportError:
        raise ImportError("files of torch need PyTorch; install it with: "
                          "pip install embeng[torch]") from None
    return torch


# -- reading


def _dense(torch: Any, tensor: Any, where: str) -> None:
    if tensor.layout != torch.strided or tensor.is_quantized or tensor.device.type == "meta":
        raise invalid(f"{where}: it is a tensor of layout {tensor.layout} on device "
                      f"{tensor.device}; give a dense one that has numbers")


def torch_tensor(key: str, where: str, tensor: Any) -> Tensor:
    """Return a tensor of torch, on any device, as one that is converted piece by piece."""
    torch = import_torch()
    _dense(torch, tensor, where)
    tensor = tensor.detach()

    def read(first: int, count: int) -> "FloatArray":
        part = tensor[first:first + count].to("cpu", torch.float32)
        found: FloatArray = part.contiguous().numpy()
        return found

    return Tensor(key, where, tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."), read)


def any_tensor(key: str, where: str, value: Any) -> Tensor:
    """Return an array of numpy or torch, or what numpy makes an array of, as a tensor."""
    if type(value).__module__.partition(".")[0] == "torch" or hasattr(value, "detach"):
        return torch_tensor(key, where, value)
    import numpy

    try:
        array = numpy.asarray(value)
    except ValueError as error:
        raise invalid(f"{where}: {error}") from None
    return array_tensor(key, where, array)


def _is_tensor(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype")


def _inner(content: Mapping[Any, Any], names: tuple[str, ...]) -> Any:
    found = [name for name in names if isinstance(content.get(name), Mapping)]
    return content[found[0]] if found else None


def _split(content: Mapping[Any, Any]) -> tuple[Mapping[Any, Any], Any]:
    """Return the state dict of a model and that of an optimizer, which may be None."""
    if isinstance(content.get("state"), Mapping) and "param_groups" in content:
        return {}, content
    model, optimizer = _inner(content, _MODEL_KEYS), _inner(content, _OPTIMIZER_KEYS)
    return (content, None) if model is None and optimizer is None else (model or {}, optimizer)


def _listed(where: str, groups: Any, key: str) -> list[Any]:
    """Return the parameters, or their names, of all groups of an optimizer."""
    if not isinstance(groups, (list, tuple)):
        raise damaged(f"{where}: param_groups is no list")
    found: list[Any] = []
    for group in groups:
        part = group.get(key, []) if isinstance(group, Mapping) else None
        if not isinstance(part, (list, tuple)) or not all(isinstance(x, (int, str)) for x in part):
            raise damaged(f"{where}: a group of param_groups has no list {key} of numbers or names")
        found += part
    return found


def _group_names(where: str, groups: Any, params: Sequence[str] | None) -> dict[Any, str]:
    """Return names of the parameters that an optimizer numbers."""
    numbers = _listed(where, groups, "params")
    given = _listed(where, groups, "param_names") if params is None else list(params)
    if params is not None and len(given) != len(numbers):
        raise invalid(f"params: {len(given)} names, the optimizer of {where} has {len(numbers)} "
                      "parameters")
    if len(given) != len(numbers):
        return {}
    return dict(zip(numbers, map(str, given), strict=True))


def _states(where: str, optimizer: Any, params: Sequence[str] | None) -> dict[str, dict[str, Any]]:
    state = optimizer.get("state")
    if not isinstance(state, Mapping) or not all(isinstance(s, Mapping) for s in state.values()):
        raise damaged(f"{where}: the optimizer has no dict state with a dict for each parameter")
    names = _group_names(where, optimizer.get("param_groups", []), params)
    found: dict[str, dict[str, Any]] = {}
    for key, values in state.items():
        name = key if isinstance(key, str) else names.get(key)
        if name is None:
            raise invalid(f"{where}: the optimizer numbers its parameters, and has no names for "
                          "them; give params=[name for name, _ in model.named_parameters()]")
        if name in found:
            raise invalid(f"{where}: the optimizer has parameter '{name}' twice")
        found[name] = {str(part).rpartition(".")[2]: value for part, value in values.items()}
    return found


def states_of(content: Any, where: str, params: Sequence[str] | None) -> States:
    """Return tensors and states of a state dict, of a model's, an optimizer's or both."""
    if not isinstance(content, Mapping):
        raise damaged(f"{where}: it has a {type(content).__name__}, a state dict is needed")
    model, optimizer = _split(content)
    tensors = [any_tensor(str(key), f"{where}: tensor '{key}'", value)
               for key, value in model.items() if _is_tensor(value)]
    return States(tensors, {} if optimizer is None else _states(where, optimizer, params))


def read_torch(path: str, params: Sequence[str] | None) -> States:
    """Load a file of torch.save with weights_only=True, and return what it has."""
    torch = import_torch()
    with open(path, "rb") as file:
        zipped = file.read(2) == b"PK"
    try:
        content = torch.load(path, map_location="cpu", weights_only=True, mmap=zipped)
    except Exception as error:
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise damaged(f"{path}: torch.load(weights_only=True) cannot read it: {first}") from None
    return states_of(content, path, params)


def step_of(where: str, value: Any) -> int:
    """Return a step count of a number, a text, or a tensor of one element."""
    try:
        number = float(value) if not isinstance(value, (int, str)) else int(value)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        raise damaged(f"{where}: step {value!r} is no number") from None
    if not math.isfinite(number) or number != int(number) or not 0 <= number <= 2**62:
        raise damaged(f"{where}: step {number} is no whole number from 0 to 2**62")
    return int(number)


def slots_of_state(kind: str, where: str, state: dict[str, Any]) -> dict[str, Tensor]:
    """Return the slots of a table of an optimizer of `kind` that a parameter's state has.

    Raises
    ------
    UnknownNameError
        The kind has no counterpart.
    InvalidError
        Two names of one slot, or a momentum_buffer that rms_prop cannot take.
    """
    if kind not in STATE_NAMES:
        raise unknown(f"{where}: the state of optimizer {kind} is not that of one of torch; load "
                      "with slots=False, or give its slots as npy or safetensors")
    if kind.endswith("rms_prop") and state.get("momentum_buffer") is not None:
        raise invalid(f"{where}: momentum_buffer is not the slot mom, which contains the learning "
                      "rate; take it out of the state, and mom stays as it is")
    found = {}
    for slot, names in STATE_NAMES[kind].items():
        given = [name for name in names if state.get(name) is not None]
        if len(given) > 1:
            raise invalid(f"{where}: {' and '.join(given)} are both slot {slot}; keep one")
        if given:
            key = f"{where}: state '{given[0]}'"
            found[slot] = any_tensor(given[0], key, state[given[0]])
    return found


# -- writing


class _Storage(NamedTuple):
    number: int
    elements: int


class _Stored:
    """A tensor whose numbers are in a record of the file."""

    def __init__(self, storage: _Storage, shape: tuple[int, ...]):
        self.storage, self.shape = storage, shape


class _Pickler(pickle.Pickler):
    """Pickles stored tensors as torch.save does: by the number of their storage."""

    def __init__(self, file: BinaryIO, torch: Any):
        super().__init__(file, protocol=2)
        self.torch = torch

    def persistent_id(self, obj: Any) -> Any:
        if not isinstance(obj, _Storage):
            return None
        return "storage", self.torch.FloatStorage, str(obj.number), "cpu", obj.elements

    def reducer_override(self, obj: Any) -> Any:
        if not isinstance(obj, _Stored):
            return NotImplemented
        stride = tuple(math.prod(obj.shape[k + 1:]) for k in range(len(obj.shape)))
        arguments: Any = (obj.storage, 0, obj.shape, stride, False, OrderedDict())
        return self.torch._utils._rebuild_tensor_v2, arguments


def short_float(value: float) -> float:
    """Return the shortest decimal number that is the same float32: 0.1 and not 0.10000000149."""
    import numpy

    return float(str(numpy.float32(value)))


# By kind: the engine's settings of each hyperparameter of torch.optim, and torch's flags.
_HYPER: dict[str, dict[str, tuple[str, ...]]] = {
    "sgd": {},
    "momentum": {"momentum": ("momentum",), "nesterov": ("use_nesterov",)},
    "adagrad": {"eps": ("epsilon",), "initial_accumulator_value": ("initial_accumulator_value",)},
    "adam": {"betas": ("beta_1", "beta_2"), "eps": ("epsilon",)},
    "adadelta": {"rho": ("rho",), "eps": ("epsilon",)},
    "lion": {"betas": ("beta1", "beta2")},
}
_FLAGS: dict[str, dict[str, Any]] = {
    "sgd": {"momentum": 0, "dampening": 0, "nesterov": False},
    "momentum": {"dampening": 0},
    "adagrad": {"lr_decay": 0},
    "adam": {"amsgrad": False, "capturable": False},
    "adadelta": {"capturable": False},
    "lion": {},
}
_SAME = {"rowwise_adagrad": "adagrad", "partial_rowwise_adam": "adam"}


def _settings(optimizer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a param_group, without those that updates give by name."""
    kind = str(optimizer["kind"])
    kind = _SAME.get(kind, kind)
    named = {*optimizer["dynamic"], *(["learning_rate"] if optimizer["rate_name"] else [])}
    hyper = {"lr": ("learning_rate",), "weight_decay": ("weight_decay_factor",), **_HYPER[kind]}
    found: dict[str, Any] = {"foreach": None, "maximize": False, "differentiable": False,
                             "fused": None, **_FLAGS[kind]}
    for name, sources in hyper.items():
        values = [optimizer[source] for source in sources]
        values = [value if isinstance(value, bool) else short_float(value) for value in values]
        if not named & set(sources):
            found[name] = values[0] if len(values) == 1 else tuple(values)
    if kind == "adam":
        found["decoupled_weight_decay"] = optimizer["multiply_weight_decay_by_rate"]
    return found


class TorchTable(NamedTuple):
    """A table that is written: its key, its parameters, its slots, and its optimizer's settings."""

    key: str
    parameters: Entry
    slots: dict[str, Entry]
    optimizer: Mapping[str, Any] | None


def _check_kinds(tables: list[TorchTable]) -> None:
    for table in tables:
        optimizer = table.optimizer or {"kind": "sgd", "weight_decay_factor": 0}
        kind = optimizer["kind"]
        if kind not in WRITTEN:
            raise invalid(f"{table.key}: optimizer {kind} has no counterpart in torch.optim that "
                          f"could load its state; those with one are {', '.join(WRITTEN)}. Export "
                          "the slots as npy or safetensors")
        by_rate = kind == "adam" and optimizer.get("multiply_weight_decay_by_rate")
        if optimizer["weight_decay_factor"] and not by_rate and \
                not optimizer["weight_decay_in_gradient"]:
            raise invalid(f"{table.key}: the weight decay of its optimizer {kind} has no "
                          "counterpart in torch.optim, which adds it to the gradient, or with "
                          "AdamW multiplies it by the rate. Export the slots as npy or safetensors")


def _optimizer_state(tables: list[TorchTable], step: int,
                     store: Callable[[Entry | int], Any]) -> dict[str, Any]:
    state: dict[int, dict[str, Any]] = {}
    groups: list[dict[str, Any]] = []
    for number, table in enumerate(tables):
        optimizer = table.optimizer
        if optimizer is None:
            continue
        names = STATE_NAMES[optimizer["kind"]]
        own = {names[slot][0]: store(entry) for slot, entry in table.slots.items()}
        if own and optimizer["kind"] not in ("momentum", "lion"):
            own["step"] = store(step)
        if own:
            state[number] = own
        settings = _settings(optimizer)
        same = [g for g in groups if {k: g[k] for k in g if not k.startswith("param")} == settings]
        group = same[0] if same else {**settings, "params": [], "param_names": []}
        group["params"].append(number)
        group["param_names"].append(table.key)
        if not same:
            groups.append(group)
    return {"state": state, "param_groups": groups}


def _open_record(archive: Any, name: str, size: int) -> Any:
    """Open a record whose data begin at a multiple of 64 bytes, as torch has them."""
    import struct
    import zipfile

    info = zipfile.ZipInfo(f"archive/{name}")
    info.file_size = size
    before = archive.fp.tell() + 30 + len(info.filename) + 20 + 4
    padding = -before % 64
    info.extra = struct.pack("<2sH", b"FB", padding) + b"Z" * padding
    return archive.open(info, "w", force_zip64=True)


def write_torch(file: BinaryIO, tables: list[TorchTable], step: int, slots: bool,
                tell: Callable[[int], object]) -> None:
    """Write a state dict, or with `slots` a dict of state_dict and optimizer, for torch.load."""
    import io
    import zipfile

    torch = import_torch()
    if slots:
        _check_kinds(tables)
    records: list[Entry | int] = []

    def store(what: Entry | int) -> _Stored:
        shape = () if isinstance(what, int) else what.shape
        records.append(what)
        return _Stored(_Storage(len(records) - 1, math.prod(shape)), shape)

    content: dict[str, Any] = {table.key: store(table.parameters) for table in tables}
    if slots:
        content = {"state_dict": content, "optimizer": _optimizer_state(tables, step, store)}
    pickled = io.BytesIO()
    _Pickler(pickled, torch).dump(content)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, data in (("data.pkl", pickled.getvalue()), ("byteorder", b"little"),
                           ("version", b"3\n")):
            with _open_record(archive, name, len(data)) as record:
                record.write(data)
        for number, what in enumerate(records):
            _write_record(archive, number, what, tell)


def _write_record(archive: Any, number: int, what: Entry | int,
                  tell: Callable[[int], object]) -> None:
    import struct

    size = 4 if isinstance(what, int) else 4 * math.prod(what.shape)
    with _open_record(archive, f"data/{number}", size) as record:
        if isinstance(what, int):
            record.write(struct.pack("<f", what))
        else:
            write_data(record, [what], tell)


def check_dtype(tensor: Tensor, cast: bool) -> None:
    """Refuse numbers that float32 does not hold, unless they may be rounded."""
    if tensor.dtype in EXACT or (cast and tensor.dtype in ("float64", "int8", "uint8", "int16",
                                                           "int32", "int64")):
        return
    allowed = ", ".join(EXACT)
    raise invalid(f"{tensor.where}: its dtype is {tensor.dtype}; allowed is one that float32 holds "
                  f"exactly: {allowed}" + ("" if cast else "; cast=True rounds float64 and whole "
                                           "numbers"))

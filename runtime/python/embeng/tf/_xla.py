# SPDX-License-Identifier: MIT
"""Lookups in functions that XLA compiles, those with ``jit_compile=True``.

XLA compiles no operator of TensorFlow's C API, but calls functions in C by their names: those of
core/xla.c, which embeng.jax calls, too. TensorFlow's operator XlaCallModule puts a module of
StableHLO into what XLA compiles, and the module has the call. XLA then has the library write
activations into its own buffers, without Python.

Lookups alone are compiled. XLA may run calls in any order that their data allow, so that it could
run an update before a lookup that comes first in the program.
"""
import functools
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from .. import _core
from .._errors import NotSupportedError
from ._forms import DENSE, EVEN, LENGTHS, SPARSE, SPLITS, Call, Part, Place, infer_shape
from ._private import GraphOrParentsInXlaContext, xla_call_module

# The forms of core/xla.c; each is one of ids without bounds, or 1 + that of the bounds.
_FORMS = {DENSE: 0, EVEN: 0, SPLITS: 1, LENGTHS: 3}
_WEIGHTED, _PADDED, _POSITIONS = 4, 8, 16
_TYPES = {tf.int32: "i32", tf.int64: "i64", tf.float32: "f32"}
_VERSION = 9  # the version of modules that XlaCallModule takes

_MODULE = """module @embeng {{
  func.func public @main({parameters}) -> ({types}) {{
    %0:{count} = stablehlo.custom_call @embeng_lookup({names}) {{
      api_version = 4 : i32, has_side_effect = true,
      backend_config = {{tensorflow = 1 : i64, engine = {engine} : i64,
        features = array<i64: {features}>, forms = array<i64: {forms}>,
        padding = array<i64: {padding}>}}}} : ({arguments}) -> ({types})
    return {results} : {types}
  }}
}}
"""


def is_compiled() -> bool:
    """Whether what is traced now is part of a function that XLA compiles."""
    return not tf.executing_eagerly() and bool(
        GraphOrParentsInXlaContext(tf.compat.v1.get_default_graph()))


def refuse_compiled(what: str) -> None:
    """Refuse what XLA does not compile, while it is traced for it.

    Raises
    ------
    NotSupportedError
        A function with ``jit_compile=True`` is traced.
    """
    if is_compiled():
        raise NotSupportedError(f"{what} in a function with jit_compile=True: XLA compiles lookups "
                                "of the engine alone; leave jit_compile out, or call the lookup "
                                "for inference")


@functools.cache
def _register(path: str) -> None:
    _core.xla_register(path)


class _Feature(NamedTuple):
    """One feature as the function takes it; the shapes are those of its call and of its result."""

    form: int
    tensors: list[Any]
    found: list[int]
    shape: list[int]


def _know_shape(name: str, shape: Any) -> list[int]:
    if not shape.is_fully_defined():
        raise NotSupportedError(f"feature {name}: XLA compiles lookups of known shapes, and this "
                                f"one has the shape {shape}; give the function tensors of one "
                                "batch size, or leave jit_compile out")
    return list(shape.as_list())


def _read_feature(name: str, place: Place, part: Part) -> _Feature:
    if part.form == SPARSE:
        raise NotSupportedError(f"feature {name}: XLA compiles no lookup of sparse tensors; give "
                                "tf.RaggedTensor.from_sparse() of it, or leave jit_compile out")
    shape = found = _know_shape(name, infer_shape(place, part))
    ids = part.ids
    if part.form == DENSE:
        ids = tf.reshape(ids, [-1])
        found = [int(ids.shape[0]), place.dim]
    tensors = [ids, *part.bounds, *([] if part.weights is None else [part.weights])]
    for tensor in tensors:
        _know_shape(name, tensor.shape)
    form = _FORMS[part.form] | _POSITIONS * (part.form == DENSE) | \
        _WEIGHTED * (part.weights is not None) | _PADDED * (part.padding is not None)
    return _Feature(form, tensors, found, shape)


def _describe(dtype: Any, shape: Sequence[int]) -> str:
    return f"tensor<{''.join(f'{n}x' for n in shape)}{_TYPES[dtype]}>"


def _write_module(engine: int, call: Call, features: Sequence[_Feature],
                  tensors: Sequence[Any]) -> str:
    """Write the module of a call. The first argument and the last result are its token."""
    arguments = [_describe(tensor.dtype, tensor.shape.as_list()) for tensor in tensors]
    types = [_describe(tf.float32, shape) for shape in (*(f.found for f in features), [])]
    names = [f"%arg{k}" for k in range(len(arguments))]
    parameters = [f"{name}: {kind}" for name, kind in zip(names, arguments, strict=True)]
    return _MODULE.format(
        parameters=", ".join(parameters), types=", ".join(types), count=len(types),
        names=", ".join(names), engine=engine,
        features=", ".join(str(place.number) for place in call.places),
        forms=", ".join(str(feature.form) for feature in features),
        padding=", ".join(map(str, call.paddings)), arguments=", ".join(arguments),
        results=", ".join(f"%0#{k}" for k in range(len(types))))


def look_up(path: str, engine: int, call: Call) -> list[Any]:
    """Look up in a function that XLA compiles.

    Parameters
    ----------
    path : str
        The library of TensorFlow that has XLA.
    engine : int
        The engine's handle.
    call : Call
        The inputs.

    Raises
    ------
    NotSupportedError
        A shape is not known, or the form is one that XLA does not have.
    ImportError
        This TensorFlow's XLA takes no functions.
    """
    _register(os.fspath(path))
    features = [_read_feature(*given)
                for given in zip(call.names, call.places, call.parts, strict=True)]
    tensors = [tf.zeros([]), *(tensor for feature in features for tensor in feature.tensors)]
    shapes = [feature.found for feature in features]
    *found, _ = xla_call_module(
        args=tensors, version=_VERSION, module=_write_module(engine, call, features, tensors),
        Sout=[*shapes, []], Tout=[tf.float32] * (len(features) + 1), platforms=["CPU"],
        dim_args_spec=[], function_list=[], has_token_input_output=False, disabled_checks=[])
    return [tf.reshape(one, feature.shape) if feature.found != feature.shape else one
            for one, feature in zip(found, features, strict=True)]

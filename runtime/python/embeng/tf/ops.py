# SPDX-License-Identifier: MIT
"""Lookups and updates as operators of TensorFlow, in eager programs and in graphs.

The operators are registered by TensorFlow's C API: their kernels run without Python, read ids and
gradients where TensorFlow has them, and write activations into its outputs. Where a TensorFlow does
not export that API, or where ``EMBENG_TF_OPS=py_function`` says so, the same functions call the
engine by ``tf.py_function``, with the same numbers.

Operators name their engine by :attr:`embeng.Engine.handle`: whoever builds a graph keeps the
engine. They are stateful, so that ``tf.function`` runs them in the order of the program.
"""
import functools
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy
import tensorflow as tf

from .. import _core
from .._engine import Engine
from .._errors import BY_CODE, EmbengError, InvalidError
from .._inputs import Sparse
from . import _xla
from ._forms import BOUND_COUNTS, FORM_MASK, WEIGHTED, Call, as_engine_input, infer_shape, read_call
from ._strategy import do_not_convert

LIBRARY = "libtensorflow_framework.so.2"
_ERRNO = "embeng.errno"
Rates = Mapping[str, Any]


# -- which operators ---------------------------------------------------------------------------

@functools.cache
def _end_gradients() -> None:
    """Tell TensorFlow that no gradient goes through the operators of steps and of entries."""
    for name in ("EmbengEnqueue", "EmbengDequeue", "EmbengApplyGradients", "EmbengListEntries",
                 "EmbengLookupEntries", "EmbengUpdateEntries"):
        tf.no_gradient(name)


def _wrap_operators(names: Sequence[str]) -> dict[str, Any]:
    """Have TensorFlow write the Python functions of operators, as ``tf.load_op_library`` does."""
    from tensorflow.core.framework import op_def_pb2
    from tensorflow.python.framework import load_library, op_def_registry

    known = op_def_pb2.OpList(op=[op_def_registry.get(name) for name in names])
    text = load_library._pywrap_python_op_gen.GetPythonWrappers(known.SerializeToString())
    made: dict[str, Any] = {"__name__": "embeng.tf._generated", "_IS_TENSORFLOW_PLUGIN": True}
    exec(text, made)
    return made


@functools.cache
def _load_operators() -> dict[str, Any] | str:
    """Register the operators; return their functions, or why there are none."""
    if os.environ.get("EMBENG_TF_OPS", "c") == "py_function":
        return "EMBENG_TF_OPS asks for py_function"
    path = os.path.join(tf.sysconfig.get_lib(), LIBRARY)
    try:
        operators = _wrap_operators(_core.tensorflow_register(path))
    except (ImportError, AttributeError) as error:
        return str(error)
    _end_gradients()
    return operators


def why_not_native() -> str | None:
    """Return why operators run by ``tf.py_function``, or None where TensorFlow has ours."""
    found = _load_operators()
    return found if isinstance(found, str) else None


def _as_error(error: Any) -> EmbengError | None:
    """Return the exception of this package that an error of an operator stands for."""
    number = (error.experimental_payloads or {}).get(_ERRNO.encode())
    if number is None:
        return None
    kind = BY_CODE.get(int(number), EmbengError)
    text = str(error.message)
    text = text[text.find("}}") + 2:] if text.startswith("{{") else text
    made = kind(text.rsplit(" [Op:", 1)[0].strip())
    made.code = -int(number)
    return made


def run_operator(name: str, *arguments: Any, **settings: Any) -> Any:
    """Call the function of an operator, with embeng's exceptions in eager programs."""
    operators = _load_operators()
    assert not isinstance(operators, str)
    try:
        return operators[name](*arguments, **settings)
    except tf.errors.OpError as error:
        made = _as_error(error)
        if made is None:
            raise
        raise made from None


def _settle(call: Call, engine: Engine) -> dict[str, Any]:
    return {"handle": engine.handle, "features": [place.number for place in call.places],
            "forms": call.forms, "paddings": call.paddings}


# -- py_function -------------------------------------------------------------------------------

def take_parts(call: Call, arrays: list[Any]) -> dict[str, Any]:
    """Make inputs of the engine of the arrays of ids, bounds and weights, which it removes."""
    forms = call.forms
    ids = [arrays.pop(0) for _ in forms]
    bounds = [[arrays.pop(0) for _ in range(BOUND_COUNTS[form & FORM_MASK])] for form in forms]
    weights = [arrays.pop(0) if form & WEIGHTED else None for form in forms]
    parts = zip(call.names, forms, ids, bounds, weights, call.paddings, strict=True)
    return {name: as_engine_input(*part) for name, *part in parts}


def call_python(function: Callable[[list[Any]], Any], tensors: Sequence[Any], outputs: int,
                dtype: Any = tf.float32) -> Any:
    """Call a function of Python with arrays of numpy; it returns as many tensors of a type."""
    def run(*given: Any) -> Any:
        return function([tensor.numpy() for tensor in given])

    return tf.py_function(run, list(tensors), [dtype] * outputs)


def _lookup_by_python(engine: Engine, call: Call) -> list[Any]:
    def run(arrays: list[Any]) -> list[Any]:
        shapes = [array.shape for array in arrays[:len(call.names)]]
        inputs = take_parts(call, arrays)
        found = engine.lookup(inputs)
        outputs = []
        for name, place, shape in zip(call.names, call.places, shapes, strict=True):
            given, output = inputs[name], found[name]
            if isinstance(given, numpy.ndarray):
                output = output.reshape(*shape, place.dim)
            elif isinstance(given, Sparse) and len(given.shape) > 2:
                output = output.reshape(*given.shape[:-1], place.dim)
            outputs.append(output)
        return outputs

    tensors = [*call.ids, *call.bounds, *call.weights]
    return list(call_python(run, tensors, len(call.names)))


def _update_by_python(engine: Engine, call: Call, gradients: list[Any], rates: Rates,
                      multiplier: Any, replica: int) -> Any:
    def run(arrays: list[Any]) -> list[Any]:
        inputs = take_parts(call, arrays)
        given = {name: arrays.pop(0) for name in call.names}
        values = {name: float(arrays.pop(0)) for name in rates}
        engine.update(inputs, given, values, float(arrays.pop(0)), None, replica)
        return []

    tensors = [*call.ids, *call.bounds, *call.weights, *gradients, *rates.values(), multiplier]
    return call_python(run, tensors, 0)


def _weigh_by_python(engine: Engine, call: Call, gradients: list[Any]) -> list[Any]:
    def run(arrays: list[Any]) -> list[Any]:
        shapes = [array.shape for array, form in zip(arrays, call.forms, strict=False)
                  if form & WEIGHTED]
        inputs = take_parts(call, arrays)
        given = {name: arrays.pop(0) for name in call.names}
        wanted: dict[str, Any] = {name: None for name, form in zip(call.names, call.forms,
                                                                   strict=True) if form & WEIGHTED}
        found = engine.weight_gradients(inputs, given, wanted)
        return [found[name].reshape(shape) for name, shape in zip(wanted, shapes, strict=True)]

    tensors = [*call.ids, *call.bounds, *call.weights, *gradients]
    return list(call_python(run, tensors, len(call.weights)))


def _measure_by_python(engine: Engine, call: Call, gradients: list[Any]) -> Any:
    def run(arrays: list[Any]) -> list[Any]:
        inputs = take_parts(call, arrays)
        return [engine.gradient_norm(inputs, dict(zip(call.names, arrays, strict=True)))[0]]

    tensors = [*call.ids, *call.bounds, *call.weights, *gradients]
    return call_python(run, tensors, 1, tf.float64)[0]


# -- functions ---------------------------------------------------------------------------------

def look_up(engine: Engine, call: Call) -> list[Any]:
    """Look up inputs that were read: :func:`lookup` without the names."""
    if why_not_native() is None and _xla.is_compiled():
        return _xla.look_up(os.path.join(tf.sysconfig.get_lib(), LIBRARY), engine.handle, call)
    if why_not_native() is None:
        found = run_operator("embeng_lookup", call.ids, call.bounds, call.weights, N=len(call.names),
                     **_settle(call, engine))
    else:
        found = _lookup_by_python(engine, call)
    if not tf.executing_eagerly():
        for output, place, part in zip(found, call.places, call.parts, strict=True):
            output.set_shape(infer_shape(place, part))
    return list(found)


@do_not_convert
def lookup(engine: Engine, features: Mapping[str, Any]) -> dict[str, Any]:
    """Look features up.

    Parameters
    ----------
    engine : Engine
        The tables. A graph does not keep it.
    features : mapping of str to input
        By name of the feature: int32 or int64 ``[samples]``, one id a sample; ``[samples, ids]``,
        a bag a row; a ``tf.RaggedTensor`` or ``tf.SparseTensor``; :class:`Positions`; or
        :class:`embeng.Ragged` or :class:`embeng.Sparse` of tensors, with weights.

    Returns
    -------
    dict of str to tf.Tensor
        float32 ``[samples, dim]``, or ``[samples, max_sequence_length, dim]`` of sequence features
        that are given as bags. No gradient goes through them: see :func:`trained_lookup`.

    Raises
    ------
    EmbengError
        In eager programs the class of the error. In a graph it is a ``tf.errors.OpError`` with the
        same sentence: ``InvalidArgumentError`` for ids outside of their table, too, because loops
        over data take ``OutOfRangeError`` for the end of their data.

    Notes
    -----
    Thread-safe. One call looks all features up.
    """
    call = read_call(engine, features)
    return dict(zip(call.names, look_up(engine, call), strict=True))


def hand_in(engine: Engine, call: Call, gradients: Sequence[Any], rates: Rates | None = None,
            multiplier: Any = None, replica: int = 0) -> Any:
    """Update by inputs that were read and a gradient of each: :func:`update` without names."""
    _xla.refuse_compiled("an update")
    given = [tf.cast(gradient, tf.float32) for gradient in gradients]
    numbers = {name: tf.cast(rate() if callable(rate) else rate, tf.float32)
               for name, rate in (rates or {}).items()}
    factor = multiplier() if callable(multiplier) else multiplier
    factor = tf.cast(1.0 if factor is None else factor, tf.float32)
    if why_not_native() is not None:
        return _update_by_python(engine, call, given, numbers, factor, replica)
    return run_operator("embeng_update", call.ids, call.bounds, call.weights, given, list(numbers.values()),
                factor, replica=replica, rate_names=list(numbers), **_settle(call, engine))


@do_not_convert
def update(engine: Engine, features: Mapping[str, Any], gradients: Mapping[str, Any], *,
           rates: Rates | None = None, multiplier: Any = None, replica: int = 0) -> Any:
    """Give the rows of features the gradients of their activations: a step of the optimizers.

    Parameters
    ----------
    engine : Engine
        The tables.
    features : mapping of str to input
        As for :func:`lookup`.
    gradients : mapping of str to tf.Tensor
        One for each feature, of its activations' shape.
    rates : mapping of str to float, tf.Tensor or callable, optional
        Dynamic rates by name. A function without parameters is called while the graph is built.
    multiplier : float, tf.Tensor or callable, optional
        A factor of all gradients. A function is called as one of `rates` is.
    replica : int
        The replica whose part of the step it is.

    Returns
    -------
    tf.Operation or None
        An operation for the graph, which others may depend on; None in eager mode.
        ``tf.function`` runs it in any case, in the program's order.

    Raises
    ------
    EmbengError
        As for :func:`lookup`; nothing was changed then.
    """
    call = read_call(engine, features)
    if set(gradients) != set(call.names):
        raise InvalidError(f"gradients: they are of {list(gradients)}; give one for each of "
                           f"{list(call.names)}")
    return hand_in(engine, call, [gradients[name] for name in call.names], rates, multiplier,
                   replica)


def weigh(engine: Engine, call: Call, gradients: Sequence[Any]) -> list[Any]:
    """Compute the gradients of the weights of a call, in the order of :attr:`Call.weights`."""
    if not call.weights:
        return []
    _xla.refuse_compiled("gradients of weights")
    given = [tf.cast(gradient, tf.float32) for gradient in gradients]
    if why_not_native() is None:
        found = run_operator("embeng_weight_gradients", call.ids, call.bounds, call.weights, given,
                     **_settle(call, engine))
    else:
        found = _weigh_by_python(engine, call, given)
    if not tf.executing_eagerly():
        for output, weights in zip(found, call.weights, strict=True):
            output.set_shape(weights.shape)
    return list(found)


def measure_norm(engine: Engine, call: Call, gradients: Sequence[Any]) -> Any:
    """Compute the norm of the gradients of rows, a float64: :meth:`Engine.gradient_norm`."""
    _xla.refuse_compiled("a norm of gradients")
    given = [tf.cast(gradient, tf.float32) for gradient in gradients]
    if why_not_native() is None:
        norm = run_operator("embeng_gradient_norm", call.ids, call.bounds, call.weights, given,
                            **_settle(call, engine))
    else:
        norm = _measure_by_python(engine, call, given)
    if not tf.executing_eagerly():
        norm.set_shape([])
    return norm


@do_not_convert
def weight_gradients(engine: Engine, features: Mapping[str, Any],
                     gradients: Mapping[str, Any]) -> dict[str, Any]:
    """Compute the loss' gradients by the weights of ids, before the update of the same gradients.

    Parameters
    ----------
    engine : Engine
        The tables.
    features : mapping of str to input
        As for :func:`lookup`.
    gradients : mapping of str to tf.Tensor
        One for each feature, of its activations' shape.

    Returns
    -------
    dict of str to tf.Tensor
        float32 of the weights' shape, for each feature that has weights.
    """
    call = read_call(engine, features)
    found = weigh(engine, call, [gradients[name] for name in call.names])
    named = [name for name, part in zip(call.names, call.parts, strict=True)
             if part.weights is not None]
    return dict(zip(named, found, strict=True))


@do_not_convert
def trained_lookup(engine: Engine, features: Mapping[str, Any], anchor: Any, *,
                   rates: Rates | None = None, multiplier: Any = None, replica: int = 0,
                   counter: Any = None) -> dict[str, Any]:
    """Look features up, such that the gradient of `anchor` is an update of the tables.

    Parameters
    ----------
    engine, features, rates, multiplier, replica
        As for :func:`update`. Weights get their gradients, too.
    anchor : tf.Variable or tf.Tensor
        Any float32 number: a tape that computes its gradient, which is zeros, has the tables
        updated by the gradients of the activations, once for each time that it is computed.
    counter : tf.Variable, optional
        It is increased by one after each update, so that rates may depend on it.

    Returns
    -------
    dict of str to tf.Tensor
        As :func:`lookup`.

    Notes
    -----
    The engine has no gradients of gradients: a tape around the gradient sees none.
    """
    call = read_call(engine, features)

    @tf.custom_gradient
    def run(anchor: Any, *weights: Any) -> Any:
        def differentiate(*gradients: Any) -> Any:
            found = weigh(engine, call, gradients)
            with tf.control_dependencies(found):
                done = hand_in(engine, call, gradients, rates, multiplier, replica)
            with tf.control_dependencies([] if done is None else [done]):
                if counter is not None:
                    counter.assign_add(tf.ones_like(counter))
                return tf.zeros_like(anchor), *found

        return look_up(engine, call), differentiate

    outputs = run(tf.convert_to_tensor(anchor), *call.weights)
    return dict(zip(call.names, outputs, strict=True))

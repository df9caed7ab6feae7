# SPDX-License-Identifier: MIT
"""The only place where calls of a session become ops of a graph.

In eager mode a call is a call. In a graph it is an op with the session's token among its inputs: a
resource, so that TensorFlow's automatic control dependencies put the ops of a session into the
order of the program, also through loops and functions. Ops are placed on the first processor, where
the token is.

Steps are operators of the C API, whose kernels run without Python: EmbengEnqueue, EmbengDequeue and
EmbengApplyGradients. So are the lists of TPUEmbeddingV2: EmbengListEntries, EmbengLookupEntries and
EmbengUpdateEntries. Where there are none (:func:`embeng.tf.ops.why_not_native`) they are
``tf.py_function``. Both ask the session that the engine has.
"""
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy
import tensorflow as tf

from .._engine import Engine
from .._errors import EmbengError
from . import ops
from ._csr import Entries, TableFeatures, list_table, make_input
from ._features import Form
from ._forms import BOUND_COUNTS, FORM_MASK
from ._session import Session, timeout_ms

HOST = "/job:localhost/replica:0/task:0/device:CPU:0"
_numbers = itertools.count()


class Token:
    """The resource that orders the ops of a session."""

    def __init__(self) -> None:
        with tf.init_scope(), tf.device(HOST):
            self.handle = tf.raw_ops.VarHandleOp(dtype=tf.int64, shape=[],
                                                 shared_name=f"embeng_token_{next(_numbers)}")


def view_array(tensor: Any) -> Any:
    """Show the memory of an eager tensor as an array, without a copy."""
    return numpy.asarray(memoryview(tensor))


def _guard(function: Callable[..., Any]) -> Callable[..., Any]:
    """Have errors of the engine reach a graph's caller as tf.errors.InvalidArgumentError."""
    def guarded(token: Any, *tensors: Any) -> Any:
        try:
            return function(*map(view_array, tensors))
        except EmbengError as error:
            # TensorFlow takes a MemoryError or StopIteration by its kind; ValueError suits all.
            raise ValueError(f"{type(error).__name__}: {error}") from error

    return guarded


def call(token: Token, function: Callable[..., Any], inputs: Sequence[Any],
         outputs: Sequence[Any]) -> list[Any]:
    """Call a function with arrays, now or whenever the graph runs.

    Parameters
    ----------
    token : Token
        Calls with the same token keep the order of the program.
    function : callable
        Takes arrays, which it must not keep, and returns a list of arrays or None.
    inputs : sequence of tf.Tensor
        Its arguments.
    outputs : sequence of tf.TypeSpec
        Shapes and types of what it returns.

    Returns
    -------
    list of tf.Tensor
        Its results.

    Raises
    ------
    EmbengError
        In eager mode. A graph raises tf.errors.InvalidArgumentError with the same sentence.
    """
    if tf.executing_eagerly():
        found = function(*map(view_array, inputs))
        return [tf.convert_to_tensor(array) for array in found or ()]
    with tf.device(HOST):
        made = tf.py_function(_guard(function), [token.handle, *inputs],
                              [spec.dtype for spec in outputs])
    if not outputs:
        return []
    for tensor, spec in zip(made, outputs, strict=True):
        tensor.set_shape(spec.shape)
    return list(made)


def _is_native() -> bool:
    return not tf.executing_eagerly() and ops.why_not_native() is None


def _run_at_token(name: str, engine: Engine, token: Token, **given: Any) -> Any:
    """Make an operator of an engine, where the token is."""
    with tf.device(HOST):
        return ops.run_operator(name, handle=engine.handle, token=token.handle, **given)


def _run_step(name: str, session: Session, token: Token, **given: Any) -> Any:
    return _run_at_token(name, session.engine, token, timeout_ms=timeout_ms(), **given)


def _group_parts(forms: Sequence[Form], tensors: Sequence[Any]) -> dict[str, list[Any]]:
    """List the ids of all features, then their bounds, then their weights."""
    ids: list[Any] = []
    bounds: list[Any] = []
    weights: list[Any] = []
    at = 0
    for form in forms:
        parts = tensors[at:at + form.parts]
        at += form.parts
        ids.append(parts[0])
        bounds += parts[1:1 + BOUND_COUNTS[form.code & FORM_MASK]]
        weights += parts[-1:] if form.weighted else []
    return {"ids": ids, "bounds": bounds, "weights": weights}


def enqueue(session: Session, token: Token, replicas: Sequence[int],
            forms: Sequence[Sequence[Form]], tensors: Sequence[Any], mode: int) -> None:
    """Enqueue a batch for each of some replicas, in a mode of :meth:`Session.enqueue`."""
    def run(*arrays: Any) -> None:
        session.enqueue(replicas, forms, arrays, mode)

    if not _is_native():
        call(token, run, tensors, ())
        return
    flat = [form for part in forms for form in part]
    _run_step("embeng_enqueue", session, token, mode=int(mode), replicas=list(replicas),
              features=[session.numbers[form.name] for form in flat],
              forms=[form.code for form in flat], samples=[form.samples for form in flat],
              **_group_parts(flat, tensors))


def dequeue(session: Session, token: Token, replica: int,
            shapes: Sequence[Sequence[int]]) -> list[Any]:
    """Dequeue a replica's oldest batch, as a tensor of its shape for each feature."""
    def run() -> list[Any]:
        return [array.reshape(shape)
                for array, shape in zip(session.dequeue(replica), shapes, strict=True)]

    if not _is_native():
        return call(token, run, (), [tf.TensorSpec(shape, tf.float32) for shape in shapes])
    made = _run_step("embeng_dequeue", session, token, replica=replica, N=len(shapes),
                     ranks=[len(shape) for shape in shapes],
                     dims=[length for shape in shapes for length in shape])
    for tensor, shape in zip(made, shapes, strict=True):
        tensor.set_shape(shape)
    return list(made)


def apply_gradients(session: Session, token: Token, replica: int, gradients: Sequence[Any],
                    rates: Sequence[Any]) -> None:
    """Hand in a replica's gradients: a tensor for each feature, or None for those without."""
    given = {name: gradient for name, gradient in zip(session.features, gradients, strict=True)
             if gradient is not None}
    names = [f"rate_{k}" for k in range(len(rates))]

    def run(*arrays: Any) -> None:
        found = dict(zip(given, arrays, strict=False))
        values = map(float, arrays[len(given):])
        session.apply_gradients(replica, found, dict(zip(names, values, strict=True)))

    if not _is_native():
        call(token, run, [*given.values(), *rates], ())
        return
    _run_step("embeng_apply_gradients", session, token, replica=replica,
              features=[session.numbers[name] for name in given], rate_names=names,
              gradients=list(given.values()), rates=list(rates))


# -- lists of entries --------------------------------------------------------------------------

_COMBINERS = ("mean", "sum", "sqrtn")  # as the engine counts them


def list_entries(token: Token, engine: Engine,
                 tables: Sequence[TableFeatures]) -> list[tuple[Any, Entries]]:
    """List the entries of features, a list for each table, and a tensor of its length before it."""
    tensors = [tensor for table in tables for tensor in table.tensors]

    def run(*arrays: Any) -> list[Any]:
        found: list[Any] = []
        at = 0
        for table in tables:
            entries = list_table(table, arrays[at:at + len(table.tensors)])
            found += [numpy.array([len(entries.ids)], numpy.int32), *entries]
            at += len(table.tensors)
        return found

    if not _is_native():
        whole = tf.TensorSpec([None], tf.int32)
        specs = [tf.TensorSpec([1], tf.int32), whole, whole, tf.TensorSpec([None], tf.float32)]
        made = call(token, run, tensors, specs * len(tables))
        return [(made[k], Entries(*made[k + 1:k + 4])) for k in range(0, len(made), 4)]
    flat = [(number, form) for number, table in enumerate(tables) for form in table.forms]
    forms = [form for _, form in flat]
    found = _run_at_token(
        "embeng_list_entries", engine, token, N=len(tables), features=[k for k, _ in flat],
        forms=[form.code for form in forms], sample_counts=[form.samples for form in forms],
        names=[form.name for form in forms], table_names=[part.table.name for part in tables],
        rows=[part.table.vocabulary_size for part in tables],
        combiners=[_COMBINERS.index(part.table.combiner) for part in tables],
        **_group_parts(forms, tensors))
    for length, *lists in zip(*found, strict=True):
        length.set_shape([1])
        for tensor in lists:
            tensor.set_shape([None])
    return [(length, Entries(*lists)) for length, *lists in zip(*found, strict=True)]


def _describe_lists(lists: Mapping[str, tuple[Entries, int]]) -> dict[str, Any]:
    """Return the settings and inputs of an operator of lists, which are those of all tables."""
    samples, ids, gains = zip(*(entries for entries, _ in lists.values()), strict=True)
    return {"features": list(range(len(lists))), "names": list(lists),
            "sample_counts": [count for _, count in lists.values()],
            "sample_ids": samples, "token_ids": ids, "gains": gains}


def _make_inputs(lists: Mapping[str, tuple[Entries, int]], arrays: Sequence[Any]) -> dict[str, Any]:
    """Make inputs of the engine of the arrays of lists."""
    return {name: make_input(name, Entries(*arrays[3 * k:3 * k + 3]), count)
            for k, (name, (_, count)) in enumerate(lists.items())}


def look_up_entries(token: Token, engine: Engine,
                    lists: Mapping[str, tuple[Entries, int]]) -> list[Any]:
    """Look lists up: entries and a number of samples for each table of the engine, in its order."""
    def run(*arrays: Any) -> list[Any]:
        found = engine.lookup(_make_inputs(lists, arrays))
        return [found[name] for name in lists]

    specs = [tf.TensorSpec([count, table.dim], tf.float32)
             for table, (_, count) in zip(engine.tables, lists.values(), strict=True)]
    if not _is_native():
        return call(token, run, [tensor for part, _ in lists.values() for tensor in part], specs)
    made = _run_at_token("embeng_lookup_entries", engine, token, **_describe_lists(lists))
    for tensor, spec in zip(made, specs, strict=True):
        tensor.set_shape(spec.shape)
    return list(made)


def update_entries(token: Token, engine: Engine, lists: Mapping[str, tuple[Entries, int]],
                   gradients: Sequence[Any], rates: Sequence[Any], replica: int) -> None:
    """Update the tables by lists, as of :func:`look_up_entries`, and the gradients of each."""
    names = [f"rate_{k}" for k in range(len(rates))]

    def run(*arrays: Any) -> None:
        end = 3 * len(lists)
        given = dict(zip(lists, arrays[end:], strict=False))
        values = map(float, arrays[end + len(lists):])
        engine.update(_make_inputs(lists, arrays), given, dict(zip(names, values, strict=True)),
                      replica=replica)

    if not _is_native():
        call(token, run, [*(tensor for part, _ in lists.values() for tensor in part), *gradients,
                          *rates], ())
        return
    _run_at_token("embeng_update_entries", engine, token, replica=replica, rate_names=names,
                  gradients=list(gradients), rates=list(rates), **_describe_lists(lists))

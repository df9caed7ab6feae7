# SPDX-License-Identifier: MIT
"""Differentiable lookups on the TensorFlow backend of Keras, eagerly and in graphs.

Lookups and updates are stateful operations, which a tf.function runs in the order of the program.
The gradient of the layer's counter is the count after the update; the probe is a zero that the
layer adds to the losses, and its gradient is the number by which the program multiplied the loss.
"""
from collections.abc import Sequence
from typing import Any

import numpy

from ._framework import load_module
from ._inputs import Layout, find_weights
from ._tables import Tables

tf = load_module("tensorflow")


def _call_host(function: Any, tensors: Sequence[Any], outputs: int) -> list[Any]:
    """Call a function of the host that returns f32 arrays."""
    found = tf.numpy_function(function, list(tensors), [tf.float32] * outputs)
    return list(found) if isinstance(found, list | tuple) else [found]


def _call_update(tables: Tables, layouts: Sequence[Layout], trained: bool, counter: Any, scale: Any,
                 tensors: Sequence[Any], gradients: Sequence[Any]) -> list[Any]:
    weighted = any(layout.weighted for layout in layouts)

    def run(count: Any, factor: Any, *arrays: Any) -> list[Any]:
        held, parts = arrays[:len(tensors)], arrays[len(tensors):]
        found = tables.weight_gradients(layouts, held, parts) if weighted else []
        applied = not trained or tables.update(layouts, held, parts, float(factor))
        return [numpy.float32(count + 1 if applied else numpy.nan), *found]

    places = find_weights(layouts)
    count, *found = _call_host(run, [counter, scale, *tensors, *gradients], 1 + len(places))
    result: list[Any] = [tf.ensure_shape(count, ()), *[None] * len(tensors)]
    for place, part in zip(places, found, strict=True):
        result[1 + place] = tf.reshape(part, tf.shape(tensors[place]))
    return result


def look_up(tables: Tables, layouts: Sequence[Layout], counter: Any,
            tensors: Sequence[Any], trained: bool) -> tuple[Any, list[Any]]:
    """Look features up, differentiably.

    Parameters
    ----------
    tables : Tables
        The engine's.
    layouts : sequence of Layout
        The features.
    counter : Tensor
        Value of the layer's counter.
    tensors : sequence of Tensor
        Inputs and weights of the features, one after another.
    trained : bool
        Whether a gradient tape updates the tables.

    Returns
    -------
    (Tensor, list of Tensor)
        The probe, and activations ``[samples, dim]`` of each feature.
    """
    def run(*arrays: Any) -> list[Any]:
        return tables.look_up(layouts, arrays)

    @tf.custom_gradient
    def differentiable(count: Any, *parts: Any) -> Any:
        found = _call_host(run, parts, len(layouts))
        for output, layout in zip(found, layouts, strict=True):
            output.set_shape((None, tables.dims[layout.feature]))

        def differentiate(scale: Any, *gradients: Any) -> Any:
            return _call_update(tables, layouts, trained, count, scale, parts, gradients)

        return (tf.zeros((), tf.float32), *found), differentiate

    # A tape runs all that it has seen: it is not to see a layer that is not trained.
    probe, *found = differentiable(counter if trained else tf.stop_gradient(counter), *tensors)
    return probe, found


def synchronize() -> None:
    """Wait for updates that are under way: there are none, since a step ends before it returns."""

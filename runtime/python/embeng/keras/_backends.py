# SPDX-License-Identifier: MIT
"""The functions that each backend of Keras has for the layer: one module for each of them."""
from collections.abc import Sequence
from typing import Any, Protocol, cast

from .._errors import NotSupportedError
from ._framework import keras, load_module
from ._inputs import Layout
from ._tables import Tables

_MODULES = {"torch": "_torch", "jax": "_jax", "tensorflow": "_tensorflow"}


class Backend(Protocol):
    """A module of a backend.

    The layer's counter is an input of each lookup. Its gradient is the count after the update,
    which the optimizer of the model assigns to it, or NaN where no table was changed. The probe is
    a zero that the layer adds to the losses: its gradient is the number by which the program
    multiplied the loss.
    """

    def look_up(self, tables: Tables, layouts: Sequence[Layout], counter: Any,
                tensors: Sequence[Any], outers: Sequence[Any],
                trained: bool) -> tuple[Any, list[Any]]:
        """Look features up, differentiably, eagerly or in a compiled program.

        Parameters
        ----------
        tables : Tables
            The engine's.
        layouts : sequence of Layout
            The features.
        counter : tensor
            Value of the layer's counter.
        tensors : sequence of tensor
            Inputs and weights of the features, one after another.
        outers : sequence of tuple of int
            The shape of the activations of each feature, without dim.
        trained : bool
            Whether a backward updates the tables.

        Returns
        -------
        (tensor, list of tensor)
            The probe, and activations ``[samples, dim]`` of each feature.
        """
        ...

    def synchronize(self) -> None:
        """Wait for updates that are under way."""
        ...


def load_backend() -> Backend:
    """Import the functions of the backend that Keras runs on.

    Raises
    ------
    NotSupportedError
        It is another one than torch, JAX and TensorFlow.
    """
    name = keras.backend.backend()
    if name not in _MODULES:
        raise NotSupportedError(f"the backend {name} of Keras has no gradients to train tables by; "
                                "use torch, jax or tensorflow")
    return cast(Backend, load_module(f"{__package__}.{_MODULES[name]}"))

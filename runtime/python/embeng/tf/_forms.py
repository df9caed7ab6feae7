# SPDX-License-Identifier: MIT
"""Inputs of TensorFlow programs as the operators take them: ids, bounds and weights, and a form."""
import operator
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy
import tensorflow as tf

from .._engine import Engine
from .._errors import InvalidError, UnknownNameError
from .._inputs import Ragged, Sparse

# core/tensorflow.h has the same numbers.
DENSE, EVEN, SPLITS, LENGTHS, SPARSE = range(5)
FORM_MASK, WEIGHTED, SEQUENCE, PADDED = 7, 8, 16, 32


class Positions(NamedTuple):
    """Ids of any shape, each a sample of its own: activations are ``[*shape, dim]``.

    Parameters
    ----------
    ids : tf.Tensor of int32 or int64
        The shape may be any.
    """

    ids: Any


class Part(NamedTuple):
    """One feature of a call: a form, its ids, its bounds, its weights or None, its padding or None.
    """

    form: int
    ids: Any
    bounds: tuple[Any, ...] = ()
    weights: Any = None
    padding: int | None = None


class Place(NamedTuple):
    """A feature in its engine: its number, the columns of its rows, and the rows of a sequence."""

    number: int
    dim: int
    sequence_length: int


class Call(NamedTuple):
    """The features of a call, and its tensors in the order in which operators take them."""

    names: tuple[str, ...]
    places: tuple[Place, ...]
    parts: tuple[Part, ...]

    @property
    def forms(self) -> list[int]:
        """The form of each feature, with the flags of weights and of padding."""
        return [part.form | WEIGHTED * (part.weights is not None) |
                PADDED * (part.padding is not None) for part in self.parts]

    @property
    def paddings(self) -> list[int]:
        """The padding of each feature, and 0 for those that have none."""
        return [part.padding or 0 for part in self.parts]

    @property
    def ids(self) -> list[Any]:
        """The ids of each feature."""
        return [part.ids for part in self.parts]

    @property
    def bounds(self) -> list[Any]:
        """The bounds of all features, one after another."""
        return [bound for part in self.parts for bound in part.bounds]

    @property
    def weights(self) -> list[Any]:
        """The weights of the features that have them."""
        return [part.weights for part in self.parts if part.weights is not None]

    def select(self, chosen: Sequence[int]) -> "Call":
        """Return the call of some of the features."""
        return Call(tuple(self.names[k] for k in chosen), tuple(self.places[k] for k in chosen),
                    tuple(self.parts[k] for k in chosen))


_known: "weakref.WeakKeyDictionary[Engine, tuple[int, dict[str, Place]]]" = \
    weakref.WeakKeyDictionary()


def find_places(engine: Engine) -> dict[str, Place]:
    """Return where the features of an engine are, by name; an engine may get more of them."""
    count = len(engine.features)
    found = _known.get(engine)
    if found is not None and found[0] == count:
        return found[1]
    dims = {table.name: table.dim for table in engine.tables}
    places = {feature.name: Place(k, dims[feature.table], feature.max_sequence_length)
              for k, feature in enumerate(engine.features)}
    _known[engine] = count, places
    return places


def _read_ids(name: str, ids: Any) -> Any:
    ids = tf.convert_to_tensor(ids)
    if ids.dtype in (tf.int32, tf.int64):
        return ids
    if ids.dtype.is_integer:
        return tf.cast(ids, tf.int64)
    raise InvalidError(f"feature {name}: ids are int32 or int64, not {ids.dtype.name}")


def _read_weights(weights: Any) -> Any:
    return None if weights is None else tf.cast(weights, tf.float32)


def _read_matrix(name: str, ids: Any, weights: Any, padding: int | None = None) -> Part:
    ids = _read_ids(name, ids)
    if ids.shape.rank == 1 and weights is None and padding is None:
        return Part(DENSE, ids)
    if ids.shape.rank == 1:
        return Part(EVEN, ids[:, tf.newaxis], (), weights, padding)
    if ids.shape.rank == 2:
        return Part(EVEN, ids, (), weights, padding)
    raise InvalidError(f"feature {name}: its ids have the shape {ids.shape}; give [samples] or "
                       "[samples, ids], or Positions of any shape")


def _read_padding(name: str, padding: Any) -> int | None:
    """Read a number that is known when a graph is made, because it is a setting of operators."""
    if padding is None:
        return None
    known = tf.get_static_value(padding) if isinstance(padding, tf.Tensor) else padding
    try:
        return operator.index(known)
    except TypeError:
        raise InvalidError(f"feature {name}: padding is {padding!r}; give an integer that is known "
                           "when the graph is made") from None


def _read_bags(name: str, bags: Ragged) -> Part:
    padding = _read_padding(name, bags.padding)
    weights = _read_weights(bags.weights)
    given = [bound for bound in (bags.splits, bags.lengths, bags.starts) if bound is not None]
    if len(given) > 1:
        raise InvalidError(f"feature {name}: it has two of splits, lengths and starts")
    if not given:
        return _read_matrix(name, bags.values, weights, padding)
    ids = _read_ids(name, bags.values)
    bound = _read_ids(name, given[0])
    if bags.lengths is not None:
        return Part(LENGTHS, ids, (bound,), weights, padding)
    if bags.starts is not None:
        bound = tf.concat([bound, tf.shape(ids, out_type=bound.dtype)], 0)
    return Part(SPLITS, ids, (bound,), weights, padding)


def read_part(name: str, given: Any) -> Part:
    """Read one input.

    Parameters
    ----------
    name : str
        The feature, for messages.
    given
        A tensor ``[samples]`` or ``[samples, ids]``, a ``tf.RaggedTensor`` of one ragged
        dimension, a ``tf.SparseTensor``, :class:`Positions`, or :class:`embeng.Ragged` or
        :class:`embeng.Sparse` of tensors, which may have weights.

    Raises
    ------
    InvalidError, NotSupportedError
        It is something else; the sentence says what to give.
    """
    if isinstance(given, Positions):
        return Part(DENSE, _read_ids(name, given.ids))
    if isinstance(given, Ragged):
        return _read_bags(name, given)
    if isinstance(given, Sparse):
        return Part(SPARSE, _read_ids(name, given.values),
                    (tf.cast(given.indices, tf.int64), tf.cast(given.shape, tf.int64)),
                    _read_weights(given.weights))
    if isinstance(given, tf.SparseTensor):
        return Part(SPARSE, _read_ids(name, given.values), (given.indices, given.dense_shape))
    if isinstance(given, tf.RaggedTensor):
        if given.values.shape.rank != 1:
            raise InvalidError(f"feature {name}: a ragged tensor has one ragged dimension and no "
                               f"other one behind it, not the shape {given.shape}")
        return Part(SPLITS, _read_ids(name, given.values), (given.row_splits,))
    return _read_matrix(name, given, None)


def read_call(engine: Engine, features: Mapping[str, Any]) -> Call:
    """Read the inputs of a call by the features' names.

    Raises
    ------
    UnknownNameError
        The engine has no such feature.
    InvalidError
        No feature is given, or an input has a form that there is not.
    """
    places = find_places(engine)
    if not features:
        raise InvalidError("inputs: no feature is given")
    unknown = [name for name in features if name not in places]
    if unknown:
        raise UnknownNameError(f"inputs: there is no feature {unknown[0]!r}; the features are "
                               f"{list(places)}")
    return Call(tuple(features), tuple(places[name] for name in features),
                tuple(read_part(name, given) for name, given in features.items()))


def infer_shape(place: Place, part: Part) -> Any:
    """Return the static shape of a feature's activations, as far as it is known."""
    if part.form == DENSE:
        return part.ids.shape.concatenate([place.dim])
    if part.form == SPARSE:
        shape = tf.get_static_value(part.bounds[1])
        rank = part.bounds[1].shape[0]
        if rank is None:
            return tf.TensorShape(None)
        dims: list[int | None] = [None] * (rank - 1)
        if shape is not None:
            dims = [int(n) for n in shape[:-1]]
    else:
        held = part.ids if part.form == EVEN else part.bounds[0]
        samples = held.shape[0]
        less = part.form == SPLITS and samples
        dims = [samples - 1 if less else samples]
    if len(dims) == 1 and place.sequence_length:
        dims.append(place.sequence_length)
    return tf.TensorShape([*dims, place.dim])


def as_engine_input(form: int, ids: Any, bounds: list[Any], weights: Any,
                    padding: int = 0) -> Any:
    """Make of arrays of numpy what :meth:`embeng.Engine.lookup` takes for the form."""
    kind = form & FORM_MASK
    if kind == DENSE:
        return numpy.ravel(ids)
    if kind == SPARSE:
        return Sparse(bounds[0], ids, tuple(int(n) for n in bounds[1]), weights)
    bags = Ragged(ids, weights=weights, padding=padding if form & PADDED else None)
    if kind == EVEN:
        return bags
    return bags._replace(**{"splits" if kind == SPLITS else "lengths": bounds[0]})


BOUND_COUNTS = {DENSE: 0, EVEN: 0, SPLITS: 1, LENGTHS: 1, SPARSE: 2}

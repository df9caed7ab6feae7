# SPDX-License-Identifier: MIT
"""The features and tables of a layer: structure, names, and checks of settings."""
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .._errors import InvalidError, NotSupportedError
from ._framework import keras
from .configs import is_feature
from .embed_reduce import COMBINERS

_PLACEMENTS = ("auto", "sparsecore", "default_device")
_SPARSECORES = "EMBENG_KERAS_SPARSECORES"

# The engine's names have at most as many bytes.
_LONGEST = 63


def serves_sparsecores() -> bool:
    """Whether the engine stands for SparseCores, as the environment has it."""
    found = os.environ.get(_SPARSECORES, "")
    if found not in ("", "engine", "none"):
        raise InvalidError(f"{_SPARSECORES} is {found!r}; it is 'engine', which is the default, or "
                           "'none'")
    return found != "none"


def is_in_engine(table: Any) -> bool:
    return table.placement == "sparsecore" or (table.placement == "auto" and serves_sparsecores())


def _check_feature(path: str, feature: Any) -> None:
    where = f"feature {path}"
    if not is_feature(feature):
        raise InvalidError(f"{where}: its settings are {feature!r}; give a FeatureConfig")
    table = feature.table
    if table.placement not in _PLACEMENTS:
        raise InvalidError(f"{where}: the placement {table.placement!r} of table {table.name} is "
                           f"none of {', '.join(_PLACEMENTS)}")
    if table.placement == "sparsecore" and not serves_sparsecores():
        raise NotSupportedError(f"{where}: the placement of table {table.name} is 'sparsecore', "
                                f"and {_SPARSECORES}=none says that there is no SparseCore; unset "
                                "the variable, or give the placement 'auto'")
    if table.combiner not in COMBINERS:
        raise InvalidError(f"{where}: the combiner {table.combiner!r} of table {table.name} is "
                           f"none of {', '.join(COMBINERS)}")
    if feature.output_shape and feature.output_shape[-1] != table.embedding_dim:
        raise InvalidError(f"{where}: its output_shape {tuple(feature.output_shape)} does not end "
                           f"in {table.embedding_dim}, the embedding_dim of table {table.name}")
    if feature.input_shape and feature.output_shape and \
            len(feature.output_shape) != max(len(feature.input_shape), 2):
        raise NotSupportedError(f"{where}: its output_shape {tuple(feature.output_shape)} keeps "
                                "the rows of a sample apart, which this layer does not; use ids "
                                "[samples, n, 1], whose activations are [samples, n, dim]")


def _as_sequences_of(structure: Any, values: Any) -> Any:
    """Give values with lists where a structure has them, and tuples: a file knows lists alone."""
    if isinstance(structure, dict) and isinstance(values, dict) and set(structure) == set(values):
        return {key: _as_sequences_of(structure[key], value) for key, value in values.items()}
    if not (isinstance(structure, list | tuple) and isinstance(values, list | tuple) and
            len(structure) == len(values)):
        return values
    parts = [_as_sequences_of(*pair) for pair in zip(structure, values, strict=True)]
    return type(structure)(*parts) if hasattr(structure, "_fields") else type(structure)(parts)


class Features:
    """The features by path, and the structure that they came in. Keras does not look inside."""

    def __init__(self, given: Any):
        self.given = given
        self.paths: list[str] = []
        self.by_path: dict[str, Any] = {}
        for keys, feature in keras.tree.flatten_with_path(given):
            path = self._name_path(keys, feature)
            _check_feature(path, feature)
            self.paths.append(path)
            self.by_path[path] = feature
        if not self.paths:
            raise InvalidError("feature_configs has no feature")
        self.structure = keras.tree.pack_sequence_as(given, self.paths)

    def _name_path(self, keys: Sequence[Any], feature: Any) -> str:
        """Name a feature by its keys; where these are like those of others, by a number, too."""
        plain = ".".join(str(key) for key in keys) or str(getattr(feature, "name", "feature"))
        if len(plain.encode()) > _LONGEST:
            plain = plain.encode()[:_LONGEST - 10].decode(errors="ignore") + "..."
        path, number = plain, 2
        while path in self.by_path:
            path, number = f"{plain}#{number}", number + 1
        return path

    def flatten(self, values: Any, what: str) -> dict[str, Any]:
        """Give a nested structure as a dict of paths."""
        found: dict[str, Any] = {}

        def take(path: str, value: Any) -> None:
            found[path] = value

        try:
            given = _as_sequences_of(self.structure, values)
            keras.tree.map_structure_up_to(self.structure, take, self.structure, given)
        except (TypeError, ValueError) as error:
            raise InvalidError(f"{what} have another structure than feature_configs, whose "
                               f"features are {', '.join(self.paths)}: {error}") from error
        return found

    def pack(self, values: Mapping[str, Any]) -> Any:
        """Give a dict of paths in the nested structure."""
        return keras.tree.pack_sequence_as(self.given, [values[path] for path in self.paths])


def find_tables(features: Iterable[Any]) -> dict[str, Any]:
    """Give the tables of features by their names."""
    found: dict[str, Any] = {}
    for feature in features:
        table = feature.table
        if found.setdefault(table.name, table) is not table:
            raise InvalidError(f"two tables have the name {table.name}; give each its own, or "
                               "share one TableConfig between the features")
    return found


def check_stacking(stacking: Any, tables: Mapping[str, Any]) -> None:
    """Refuse names that are no tables'. The engine stacks tables itself, and no number changes."""
    if stacking in ("auto", None):
        return
    if isinstance(stacking, str) or not isinstance(stacking, Sequence):
        raise InvalidError(f"table_stacking is {stacking!r}; give 'auto', None, or lists of names")
    for group in stacking:
        for name in [group] if isinstance(group, str) else group:
            if name not in tables:
                raise InvalidError(f"table_stacking names {name!r}; the tables are "
                                   f"{', '.join(tables)}")

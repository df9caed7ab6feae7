# SPDX-License-Identifier: MIT
"""Arrays that the extension cannot use where they are: it calls these to have them converted.

numpy is imported when it is first needed, so that ``import embeng`` stays fast.
"""
from typing import Any


def empty(shape: tuple[int, ...]) -> Any:
    """Return a new float32 array whose elements are not set."""
    import numpy

    return numpy.empty(shape, numpy.float32)


def empty_ids(shape: tuple[int, ...]) -> Any:
    """Return a new int64 array whose elements are not set."""
    import numpy

    return numpy.empty(shape, numpy.int64)


def as_buffer(array: Any) -> Any:
    """Return numpy's view of an object that has its array interface, or None."""
    if not hasattr(array, "__array_interface__"):
        return None
    import numpy

    return numpy.asarray(array)


def _refuse(what: str, found: str, wanted: str) -> TypeError:
    return TypeError(f"{what}: {found}; give {wanted}")


def as_ids(array: Any, what: str) -> Any:
    """Return ids as a contiguous array of int32 or int64."""
    import numpy

    try:
        found = numpy.asarray(array)
    except ValueError as error:
        raise ValueError(f"{what}: {error}; lists of different lengths are embeng.Ragged."
                         "from_lists(...)") from None
    if found.dtype in (numpy.int32, numpy.int64):
        return numpy.require(found, found.dtype.newbyteorder("="), ["C", "A"])
    if found.size == 0:
        return numpy.zeros(found.shape, numpy.int64)
    if found.dtype.kind not in "iu":
        raise _refuse(what, f"ids of {found.dtype}", "whole numbers")
    if found.dtype == numpy.uint64 and int(found.max()) > 2**63 - 1:
        raise ValueError(f"{what}: the id {int(found.max())} does not fit int64")
    return found.astype(numpy.int64, order="C")


def as_floats(array: Any, what: str) -> Any:
    """Return numbers as a contiguous array of float32."""
    import numpy

    found = numpy.asarray(array)
    if found.dtype.kind not in "fiu" and found.dtype.name != "bfloat16":
        raise _refuse(what, f"numbers of {found.dtype}", "real numbers")
    return numpy.require(found, numpy.float32, ["C", "A"])

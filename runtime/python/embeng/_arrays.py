# SPDX-License-Identifier: MIT
"""Arrays that the extension cannot use where they are: it calls these to have them converted.

numpy is imported when it is first needed, so that ``import embeng`` stays fast.
"""
import errno
from typing import Any

from ._errors import OutOfRangeError


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


def _as_array(array: Any, what: str, hint: str) -> Any:
    import numpy

    try:
        return numpy.asarray(array)
    except (ValueError, TypeError, RuntimeError) as error:
        if type(error) is ValueError:
            raise ValueError(f"{what}: {error}; {hint}") from None
        if type(error) not in (TypeError, RuntimeError):
            raise  # it is not numpy's, but of a method of the object
        raise TypeError(f"{what}: numpy cannot read {type(array).__name__}: {error}") from None


def _refuse_large(number: int, what: str) -> OutOfRangeError:
    error = OutOfRangeError(f"{what}: the id {number} does not fit int64")
    error.code = -errno.ERANGE
    return error


def as_ids(array: Any, what: str) -> Any:
    """Return ids as a contiguous array of int32 or int64."""
    import numpy

    found = _as_array(array, what, "lists of different lengths are embeng.Ragged.from_lists(...)")
    if found.dtype.str[1:] in ("i4", "i8"):
        return numpy.require(found, found.dtype.newbyteorder("="), ["C", "A"])
    if found.size == 0:
        return numpy.zeros(found.shape, numpy.int64)
    if found.dtype == object:  # numbers beyond 64 bits are such
        for number in found.flat:
            if type(number) is int and not -2**63 <= number < 2**63:
                raise _refuse_large(number, what)
    if found.dtype.kind not in "iu":
        raise _refuse(what, f"ids of {found.dtype}", "whole numbers")
    if found.dtype == numpy.uint64 and int(found.max()) > 2**63 - 1:
        raise _refuse_large(int(found.max()), what)
    return found.astype(numpy.int64, order="C")


def as_floats(array: Any, what: str) -> Any:
    """Return numbers as a contiguous array of float32."""
    import numpy

    found = _as_array(array, what, "give an array of one shape")
    if found.dtype.kind not in "fiu" and found.dtype.name != "bfloat16":
        raise _refuse(what, f"numbers of {found.dtype}", "real numbers")
    return numpy.require(found, numpy.float32, ["C", "A"])

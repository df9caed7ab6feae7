# SPDX-License-Identifier: MIT
"""Exceptions of the package.

Each is an :class:`EmbengError` and one of Python's own kinds, so that a program may catch either.
The sentence is the library's: it names what was wrong, where, what was allowed, and what to do.
"""
import errno


class EmbengError(Exception):
    """An error of the library.

    Attributes
    ----------
    code : int
        Negative errno, as the C function returned it.
    status : int
        Status of the device (``enum embeng_status``), 0 when the library refused by itself.
    """

    code: int = 0
    status: int = 0


class InvalidError(EmbengError, ValueError):
    """A shape, a type or a combination that is not allowed (EINVAL, EEXIST)."""


class OutOfRangeError(EmbengError, IndexError, ValueError):
    """An id outside of its table, or a number outside of its interval (ERANGE)."""


class UnknownNameError(EmbengError, KeyError):
    """A table, feature, slot or rate that there is not (ENOENT)."""

    def __str__(self) -> str:
        return Exception.__str__(self)  # KeyError's would put it in quotes


class CheckpointNotFoundError(EmbengError, FileNotFoundError):
    """A folder without a checkpoint (ENOENT)."""


class CheckpointError(EmbengError):
    """A checkpoint that is damaged, or none (EBADMSG, ENODATA)."""


class StepOrderError(EmbengError, RuntimeError):
    """Steps out of order, or a wait that nobody can end (EPROTO, EDEADLK)."""


class WaitTimeoutError(EmbengError, TimeoutError):
    """A deadline passed; the sentence names what is missing (ETIME)."""


class BusyError(EmbengError, RuntimeError):
    """Something is in use (EBUSY)."""


class NoMemoryError(EmbengError, MemoryError):
    """No memory, or none within a limit (ENOMEM, EDQUOT)."""


class NotSupportedError(EmbengError, NotImplementedError):
    """This device or build does not have it (ENOTSUP)."""


class DeviceError(EmbengError, OSError):
    """A device or file that failed, or is not there (EIO, ENODEV, ENOSPC, ...)."""


class AccessError(EmbengError, PermissionError):
    """A device or file that is not yours (EACCES, EPERM)."""


class InterruptedWaitError(EmbengError, InterruptedError):
    """A wait that :meth:`Engine.interrupt` ended (EINTR)."""


BY_CODE: dict[int, type[EmbengError]] = {
    errno.EINVAL: InvalidError,
    errno.EEXIST: InvalidError,
    errno.ERANGE: OutOfRangeError,
    errno.ENOENT: UnknownNameError,
    errno.EBADMSG: CheckpointError,
    errno.ENODATA: CheckpointError,
    errno.EPROTO: StepOrderError,
    errno.EDEADLK: StepOrderError,
    errno.ETIME: WaitTimeoutError,
    errno.EBUSY: BusyError,
    errno.ENOMEM: NoMemoryError,
    errno.EDQUOT: NoMemoryError,
    errno.ENOTSUP: NotSupportedError,
    errno.EACCES: AccessError,
    errno.EPERM: AccessError,
    errno.EINTR: InterruptedWaitError,
    **dict.fromkeys((errno.EIO, errno.ENODEV, errno.ENXIO, errno.ENOSPC, errno.ESHUTDOWN,
                     errno.EHOSTDOWN, errno.EMFILE, errno.ENFILE, errno.EFBIG, errno.ENOTDIR,
                     errno.EISDIR, errno.EROFS, errno.ENAMETOOLONG, errno.ELOOP,
                     errno.ENOTEMPTY), DeviceError),
}

# SPDX-License-Identifier: MIT
"""Errors of the engine that come out of XLA as its own: they have embeng's code and sentence."""
import re
from collections.abc import Iterator
from contextlib import contextmanager

from .._errors import BY_CODE, EmbengError, NotSupportedError

_SENTENCE = re.compile(r"embeng error (-?\d+): ([^\n]*)")

# The refusal of XLA to compile a call with an effect for several devices.
_SHARDED = "Side-effect HLO must have sharding"


def find_error(error: BaseException) -> EmbengError | None:
    """Return the error of the engine that an exception of JAX tells of, or None.

    Parameters
    ----------
    error : BaseException
        An exception that a program of JAX raised.

    Returns
    -------
    EmbengError or None
        An exception of embeng's class for the code, with its sentence.
    """
    text = str(error)
    if _SHARDED in text and "embeng_" in text:
        return NotSupportedError("jit cannot spread an update over the devices of sharded arrays; "
                                 "map it by jax.shard_map, and pass axis_name")
    found = _SENTENCE.search(text)
    if isinstance(error, EmbengError) or not found:
        return error if isinstance(error, EmbengError) else None
    code = int(found[1])
    made = BY_CODE.get(-code, EmbengError)(found[2].strip())
    made.code = code
    return made


@contextmanager
def raising() -> Iterator[None]:
    """Raise errors of the engine that come out of XLA as embeng's exceptions.

    >>> with embeng.jax.raising():
    ...     jax.block_until_ready(step(state, batch))
    """
    try:
        yield
    except Exception as error:
        found = find_error(error)
        if found is None or found is error:
            raise
        raise found from error

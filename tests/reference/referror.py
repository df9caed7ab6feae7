# SPDX-License-Identifier: MIT
"""The one failure that the reference reports, by errno name."""


class RefError(Exception):
    def __init__(self, errno, text):
        super().__init__(text)
        self.errno = errno


def require(condition, errno, text):
    if not condition:
        raise RefError(errno, text)

# SPDX-License-Identifier: MIT
"""Hosts that are threads of one process, for tests of groups."""
import threading
from collections.abc import Callable
from typing import Any

from embeng import Group, Transport

Results = list[Any]


def run_hosts(hosts: int | list[Transport], act: Callable[[Group], Any],
              **options: Any) -> Results:
    """Run a function on each host, and return what it returned, by rank."""
    transports = Group.threads(hosts) if isinstance(hosts, int) else hosts
    results: Results = [None] * len(transports)

    def run(rank: int) -> None:
        try:
            with Group(transports[rank], **{"deadline": 30, **options}) as group:
                results[rank] = act(group)
        except BaseException as error:
            results[rank] = error

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(len(transports))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results

# SPDX-License-Identifier: MIT
"""The rows that a batch reads, by the hosts that would have them, and what goes with them."""

import math

from embref import Batch
from referror import require


def place(row, rows, hosts, sharding):
    """(host, number there) of a row."""
    if sharding == "mod":
        return row % hosts, row // hosts
    least, longer = divmod(rows, hosts)
    head = longer * (least + 1)
    if row < head:
        return divmod(row, least + 1)
    host, number = divmod(row - head, least)
    return longer + host, number


def _lists(engine, lookups, hosts, sharding):
    """Table -> for each host its rows that the batch reads."""
    lists = {}
    for name, table in engine.model.tables.items():
        found = {r for lookup in lookups.values() if lookup.feature.table is table
                 for sample in lookup.samples for r, _ in sample.entries if r is not None}
        lists[name] = [[] for _ in range(hosts)]
        for row in sorted(found, key=lambda r: place(r, table.vocabulary_size, hosts, sharding)):
            lists[name][place(row, table.vocabulary_size, hosts, sharding)[0]].append(row)
    return lists


def _sums(lookups, flat, lists, tables):
    sums = {name: {row: [0.0] * tables[name].dim for rows in hosts for row in rows}
            for name, hosts in lists.items()}
    for name, lookup in lookups.items():
        table = lookup.feature.table
        for row, gradient in lookup.occurrences(flat[name]):
            sums[table.name][row] = [a + g for a, g in zip(sums[table.name][row], gradient)]
    return {name: list(rows.values()) for name, rows in sums.items()}


def spread(engine, features, gradients, hosts=1, sharding="div"):
    """The rows, activations and sums that a spread step compares."""
    require(sharding in ("div", "mod"), "EINVAL", f"there is no sharding {sharding}")
    require(1 <= hosts <= 65536, "ERANGE", f"{hosts} hosts; give 1 to 65536")
    lookups = engine.inference_lookups(features)
    batch = Batch(lookups, 0)
    batch.read()
    flat = engine.flat_gradients(batch, gradients)
    for name, rows in flat.items():
        require(all(math.isfinite(g) for row in rows for g in row), "ERANGE",
                f"feature {name}: a gradient is not finite")
    lists = _lists(engine, lookups, hosts, sharding)
    return {"rows": lists, "activations": batch.out,
            "sums": _sums(lookups, flat, lists, engine.model.tables)}

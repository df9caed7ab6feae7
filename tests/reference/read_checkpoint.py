#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Reads a checkpoint as embeng-checkpoint(5) says, with nothing of embeng.

usage: read_checkpoint.py FOLDER

Checks all that the page promises. The checkpoint in the tree has the value
1000 * table + 100 * array + element + 0.5 everywhere; it was written once, so a change of
the format that forgets old checkpoints shows here.
"""
import hashlib
import json
import os
import re
import struct
import sys

SLOTS = {"sgd": [], "adagrad": ["accumulators"], "adagrad_momentum": ["accumulators", "momenta"],
         "ftrl": ["accumulators", "linears"], "adam": ["momenta", "velocities"],
         "rowwise_adagrad": ["accumulators"], "partial_rowwise_adam": ["momenta", "velocities"]}
# Slots that have one number a row.
ONE_NUMBER = {"rowwise_adagrad": ["accumulators"], "partial_rowwise_adam": ["velocities"]}


def width_of(table, slot):
    """Numbers of a row of the parameters or of a slot, which the index says, too."""
    kind = table["optimizer"] and table["optimizer"]["kind"]
    width = 1 if slot in ONE_NUMBER.get(kind, ()) else table["dim"]
    if slot in table["slots"] and "slot_widths" in table:
        assert table["slot_widths"][table["slots"].index(slot)] == width
    return width


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def once(pairs):
    keys = [key for key, _ in pairs]
    assert len(keys) == len(set(keys)), f"two members of one name in {keys}"
    return dict(pairs)


def read_index(folder):
    with open(os.path.join(folder, "index.json"), "rb") as file:
        text = file.read()
    assert text.endswith(b'"\n}\n')
    assert text[-12:-4] == b"%08x" % crc32c(text[:-12]), "index_crc32c"
    index = json.loads(text.decode("utf-8"), object_pairs_hook=once)
    assert index["schema"] == "embeng.checkpoint.index/1" and \
        index["requires"] == [name for name in ("mod", "shared", "delta", "chunk_tables")
                              if name in index["requires"]]
    size = index["chunk_bytes"]
    assert 4096 <= size <= 4 << 20 and size & (size - 1) == 0
    assert list(index)[-1] == "index_crc32c"
    assert re.fullmatch("[0-9a-f]{16}", index["model_hash"])
    own_up(index)
    homes = [file for file in index["files"] if "shares" not in file]
    assert ("chunk_tables" in index["requires"]) == any("chunk_table" in file for file in homes)
    chunks = "".join(file["chunk_table"]["sha256"] if "chunk_table" in file else file["chunks"]
                     for file in homes)
    assert index["chunks_sha256"] == hashlib.sha256(chunks.encode()).hexdigest()
    return index


def own_up(index):
    """Gives each entry that shares a file the name and the length that its home has."""
    homes = {}
    for number, entry in enumerate(index["files"]):
        home = entry.get("shares", number)
        homes.setdefault(home, []).append(entry)
        if home != number:
            assert not {"name", "bytes", "chunks", "chunk_table"} & set(entry)
            assert home < number and "shares" not in index["files"][home]
        for key in ("name", "bytes", "chunks", "chunk_table"):
            if key in index["files"][home]:
                entry[key] = index["files"][home][key]
    for group in homes.values():
        for entry in group:
            entry["all"] = group
    assert ("shared" in index["requires"]) == (len(homes) < len(index["files"]))


def crcs(data, size):
    return [crc32c(data[at:at + size]) for at in range(0, len(data), size)]


def check_chunks(entry, data, size):
    """Returns where the data end of which the chunks are."""
    assert len(data) == entry["bytes"]
    table = entry.get("chunk_table")
    if not table:
        assert entry["chunks"] == "".join("%08x" % crc for crc in crcs(data, size))
        return len(data)
    sums = crcs(data[:table["at"]], size)
    first = struct.pack(f"<{len(sums)}I", *sums)
    second = struct.pack(f"<{-(-len(first) // size)}I", *crcs(first, size))
    assert data[table["at"]:] == first + second
    assert table["sha256"] == hashlib.sha256(first).hexdigest()
    assert table["crc32c"] == "%08x" % crc32c(second)
    return table["at"]


def check_table(header, begin, end):
    """The chunk table is the header's last tensor, which is taken out of it."""
    name, tensor = list(header.items())[-1]
    assert name == "embeng/chunk_table" and tensor["dtype"] == "I32"
    assert tensor["shape"] == [(end - begin) // 4, 1]
    assert tensor["data_offsets"][1] - tensor["data_offsets"][0] == end - begin
    del header[name]


def read_header(data):
    (length,) = struct.unpack("<Q", data[:8])
    assert (8 + length) % 64 == 0 and data[8:9] == b"{"
    header = json.loads(data[8:8 + length].decode("utf-8"), object_pairs_hook=once)
    assert all(isinstance(text, str) for text in header.pop("__metadata__").values())
    return 8 + length, header


def read_shard(folder, index, entry):
    """Rows of an entry, by tensor."""
    assert re.fullmatch(r"embeng-\d+-[0-9a-f]{16}-\d{8,}\.safetensors", entry["name"])
    with open(os.path.join(folder, entry["name"]), "rb") as file:
        data = file.read()
    data_end = check_chunks(entry, data, index["chunk_bytes"])
    end, header = read_header(data)
    if data_end < len(data):
        check_table(header, data_end, len(data))
    owners = {name: other for other in entry["all"] for name in other["tensors"]}
    assert list(header) == sorted(header, key=str.encode) and set(header) == set(owners)
    rows = {}
    for name, tensor in header.items():
        begin, stop = tensor["data_offsets"]
        owner = owners[name]
        table = index["tables"][owner["table"]]
        shape = [owner["rows"], width_of(table, name.rpartition("/")[2])]
        numbers = "delta" in owner and name.endswith("/row_numbers")
        if numbers:
            shape[1] = 1
        assert tensor["dtype"] == ("I64" if numbers else "F32") and tensor["shape"] == shape
        at = owner["tensors"][name]
        assert at == end, "a hole, or an overlap"
        assert stop - begin == (8 if numbers else 4) * shape[0] * shape[1]
        if owner is entry:
            kind = "q" if numbers else "f"
            rows[name] = struct.unpack(f"<{shape[0] * shape[1]}{kind}", data[at:at + stop - begin])
        end += stop - begin
    assert end == data_end, "bytes behind the last tensor"
    return rows


def rows_in_order(index):
    """(table, row) as the files must hold them, and the stride inside a file."""
    hosts, sharding = (index["engine"].get(*key) for key in (("hosts", 1), ("sharding", "div")))
    mod = hosts > 1 and sharding == "mod"
    assert mod == ("mod" in index["requires"])
    order = []
    for number, table in enumerate(index["tables"]):
        q, e = divmod(table["rows"], hosts)
        for host in range(hosts):
            first = host * q + min(host, e)
            rows = range(host, table["rows"], hosts) if mod else \
                range(first, first + q + (host < e))
            order += [(number, row, host) for row in rows]
    return order, hosts if mod else 1


def read_tables(folder, index):
    """All elements by name of tensor, in row order."""
    order, stride = rows_in_order(index)
    tables, at = {}, 0
    base = [entry for entry in index["files"] if "delta" not in entry]
    deltas = index["files"][len(base):]
    assert ("delta" in index["requires"]) == bool(deltas)
    for entry in base:
        number, count = entry["table"], entry["rows"]
        table = index["tables"][number]
        mine = order[at:at + count]
        assert {(t, host) for t, _, host in mine} == {(number, mine[0][2])}
        assert [row for _, row, _ in mine] == \
            [entry["first_row"] + stride * k for k in range(count)]
        at += count
        for name, values in read_shard(folder, index, entry).items():
            dim = width_of(table, name.rpartition("/")[2])
            whole = tables.setdefault(name, [None] * (table["rows"] * dim))
            for k, (_, row, _) in enumerate(mine):
                whole[row * dim:(row + 1) * dim] = values[k * dim:(k + 1) * dim]
    assert at == len(order)
    put_deltas(folder, index, deltas, tables)
    return tables


def put_deltas(folder, index, deltas, tables):
    """Rows of later deltas replace those of earlier ones."""
    before = (0, -1)
    for entry in deltas:
        table = index["tables"][entry["table"]]
        assert "first_row" not in entry and entry["delta"] - before[0] in (0, 1)
        assert (entry["delta"], entry["table"]) > before
        assert ("shares" in entry) == (entry["delta"] == before[0])
        before = (entry["delta"], entry["table"])
        tensors = read_shard(folder, index, entry)
        numbers = tensors.pop(table["name"] + "/row_numbers")
        assert list(numbers) == sorted(set(numbers)) and len(numbers) == entry["rows"]
        assert numbers and 0 <= numbers[0] and numbers[-1] < table["rows"]
        assert len(tensors) == 1 + len(table["slots"])
        for name, values in tensors.items():
            dim = width_of(table, name.rpartition("/")[2])
            for k, row in enumerate(numbers):
                tables[name][row * dim:(row + 1) * dim] = values[k * dim:(k + 1) * dim]


def main():
    folder = sys.argv[1]
    index = read_index(folder)
    tables = read_tables(folder, index)
    assert index["step"] == 2 and json.loads(index["program_state"]) == {"epoch": 3}
    expected = 0
    for number, table in enumerate(index["tables"]):
        kind = table["optimizer"] and table["optimizer"]["kind"]
        assert table["slots"] == (SLOTS[kind] if kind else [])
        for array, slot in enumerate(["parameters", *table["slots"]]):
            expected += 1
            want = [1000 * number + 100 * array + element + 0.5
                    for element in range(table["rows"] * width_of(table, slot))]
            assert tables[table["name"] + "/" + slot] == want, (table["name"], slot)
    assert len(tables) == expected == 6
    print(f"{expected} tensors in {len({f['name'] for f in index['files']})} files read as the page says")


if __name__ == "__main__":
    main()

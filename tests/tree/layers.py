#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Object files call downwards only, and never in a circle.

Reads the symbols of static libraries and draws an arrow from one object file to another wherever
the first uses a symbol that the second defines. A table says which layer an object file belongs
to. layers.py fails on every circle of object files, on every arrow against the table, on an object
file that the table does not name and on a name in it that no object file has.

usage: layers.py TABLE ARCHIVE...

The form of TABLE: one room a line, "room: file file ...", each file a name of an object without
its suffix, or a pattern such as avx2*. Rooms of one paragraph are one layer, and a blank line
begins the next layer below. Files call within their room and into the rooms of layers below, not
into another room of their own layer. Lines that begin with # are comments.
"""
import collections
import fnmatch
import os
import re
import subprocess
import sys

DEFINED = set("ABCDGRSTVW")
LINE = re.compile(r"^(.*)\[(?:.*/)?([^]/]+)\]: (\S+) (\S)")


class Rooms:
    """The table: a room and a layer for each object file."""

    def __init__(self, path):
        self.patterns = []  # (pattern, room, layer, line)
        self.used = set()
        layer, fresh = 0, False
        with open(path, encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                line = line.strip()
                if not line:
                    layer, fresh = layer + fresh, False
                if not line or line.startswith("#"):
                    continue
                room, colon, files = line.partition(":")
                if not colon or not files.split():
                    sys.exit(f"{path}:{number}: not of the form 'room: file file ...': {line}")
                self.patterns += [(file, room, layer, number) for file in files.split()]
                fresh = True

    def find(self, name):
        """The room and layer of an object file, or None."""
        for pattern, room, layer, number in self.patterns:
            if fnmatch.fnmatchcase(name, pattern):
                self.used.add((pattern, number))
                return room, layer
        return None

    def unused(self):
        """Names that no object file has. Patterns may match nothing: avx2* does on arm64."""
        return [pattern for pattern, _, _, number in self.patterns
                if (pattern, number) not in self.used and "*" not in pattern]


def read_symbols(archives):
    """Symbol -> object file that defines it, and (object file, symbol) for each use."""
    nm = os.environ.get("NM", "nm")
    text = subprocess.run([nm, "-A", "-P", *archives], check=True, stdout=subprocess.PIPE,
                          text=True).stdout
    owners, uses, names = {}, [], {}
    for line in text.splitlines():
        found = LINE.match(line)
        if not found:
            continue
        archive, member, symbol, kind = found.groups()
        name = re.sub(r"(\.c)?\.o(bj)?$", "", member)
        if names.setdefault(name, archive) != archive:
            sys.exit(f"{names[name]} and {archive} both have an object file {name}.o")
        if kind in DEFINED:
            if owners.get(symbol, name) != name and kind not in "VW":
                sys.exit(f"{symbol} is defined by {owners[symbol]}.o and by {name}.o")
            owners.setdefault(symbol, name)
        elif kind in "Uw":
            uses.append((name, symbol))
    return set(names), owners, uses


def draw_arrows(owners, uses):
    """(from, to) -> symbols."""
    arrows = collections.defaultdict(set)
    for name, symbol in uses:
        owner = owners.get(symbol, name)
        if owner != name:
            arrows[name, owner].add(symbol)
    return arrows


def find_circles(names, arrows):
    """Sets of object files that reach each other: Tarjan's strongly connected components."""
    ahead = collections.defaultdict(list)
    for source, target in sorted(arrows):
        ahead[source].append(target)
    number, low, stack, circles = {}, {}, [], []

    def visit(name):
        number[name] = low[name] = len(number)
        stack.append(name)
        for target in ahead[name]:
            if target not in number:
                visit(target)
                low[name] = min(low[name], low[target])
            elif target in stack:
                low[name] = min(low[name], number[target])
        if low[name] == number[name]:
            at = stack.index(name)
            circles.append(set(stack[at:]))
            del stack[at:]

    for name in sorted(names):
        if name not in number:
            visit(name)
    return [circle for circle in circles if len(circle) > 1]


def check_arrows(rooms, arrows, circles):
    """The arrows that must not be, each with what is wrong about it."""
    wrong = []
    for (source, target), symbols in sorted(arrows.items()):
        reasons = []
        above, below = rooms.find(source), rooms.find(target)
        if any(source in circle and target in circle for circle in circles):
            reasons.append("in a circle")
        if above and below and above != below and above[1] >= below[1]:
            reasons.append(f"{above[0]} may not call {below[0]}")
        if reasons:
            wrong.append(f"{source}.o -> {target}.o ({', '.join(sorted(symbols))}): "
                         f"{', '.join(reasons)}")
    return wrong


def main(table, archives):
    rooms = Rooms(table)
    names, owners, uses = read_symbols(archives)
    arrows = draw_arrows(owners, uses)
    if not arrows:
        sys.exit(f"nm finds no object file of {' '.join(archives)} that uses another, so nothing "
                 "was checked; it cannot read what -flto compiles")
    circles = find_circles(names, arrows)
    wrong = [f"{name}.o: in no room of {table}" for name in sorted(names) if not rooms.find(name)]
    wrong += [f"{pattern} of {table}: there is no such object file" for pattern in rooms.unused()]
    wrong += check_arrows(rooms, arrows, circles)
    largest = max(map(len, circles), default=0)
    print(f"largest circle: {largest} of {len(names)} object files; {len(arrows)} arrows, "
          f"{len(wrong)} complaints")
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2:]))

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes embeng-api(7), in mdoc, from docs/api.txt, whose head says what is in it.

usage: api.py TABLE PAGE
"""
import re
import sys
from typing import NamedTuple

DATE = "November 21, 2026"


class Row(NamedTuple):
    line: int
    section: str
    kind: str  # the kind of optimizer, or ""
    name: str
    counterparts: list
    proofs: list


class Section(NamedTuple):
    title: str
    words: list
    rows: list


def fail(line, what):
    sys.exit(f"api: line {line}: {what}")


def parts(text):
    """Parted by commas that stand in no parentheses."""
    out, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and not depth:
            out.append("")
        else:
            out[-1] += letter
    return [part.strip() for part in out]


def row_of(number, text, section, kind):
    cells = [cell.strip() for cell in text.split(" | ")]
    if len(cells) != 3 or not all(cells):
        fail(number, f"three cells, none of them empty, are a row; this has {cells}")
    return Row(number, section, kind, cells[0], parts(cells[1]), parts(cells[2]))


def read(path):
    """Sections with their rows."""
    sections, kind = [], ""
    with open(path, encoding="utf-8") as table:
        for number, line in enumerate(table, 1):
            mark, text = line[:2], line[2:].strip()
            if not line.strip() or mark == "# ":
                continue
            if mark == "= ":
                sections.append(Section(text, [], []))
                kind = ""
            elif not sections:
                fail(number, "it stands in no section")
            elif mark == ": ":
                sections[-1].words.append(text)
            elif mark == "@ ":
                kind = text
            else:
                sections[-1].rows.append(row_of(number, line.strip(), sections[-1].title, kind))
    return sections


def escape(text):
    text = text.replace("\\", "\\e").replace('"', "\\(dq")
    return re.sub(r"^(?=[.'])", r"\\&", text)


def words(text):
    """Sentences, each on a line."""
    return escape(re.sub(r"\. +(?=[A-Z])", ".\n", text)).split("\n")


def item(row):
    return [f".It {escape(row.name)}",
            escape("; ".join(row.counterparts)) + "\n.br",
            ".Em " + escape(" ".join(row.proofs))]


def section(s):
    out = [f".Sh {escape(s.title)}"] + [line for text in s.words for line in words(text)]
    out.append(".Bl -tag -width Ds -compact")
    return out + [line for row in s.rows for line in item(row)] + [".El"]


HEAD = f"""\
.\\" SPDX-License-Identifier: MIT
.\\" Made from docs/api.txt by docs/man/api.py.
.Dd {DATE}
.Dt EMBENG-API 7
.Os
.Sh NAME
.Nm embeng-api
.Nd counterparts of the public TPU embedding APIs
.Sh DESCRIPTION
This page lists each field, option and method of the public TPU embedding APIs, with its
counterpart here and with tests that show that both mean the same.
Words in parentheses tell what is different.
Names in
.Em this type
are the tests: conformance vectors, by their names in
.Pa tests/vectors ,
which
.Xr embeng 1
runs; unit tests, as
.Em file : Ns Em test ;
tests in virtual machines, which have
.Em vm/
before their names; and scripts of
.Pa tests/cli .
A test of the sources checks that all of these exist."""

TAIL = """\
.Sh SEE ALSO
.Xr embeng 1 ,
.Xr embeng-vector 5 ,
.Xr embeng-optimizers 7 ,
.Xr embeng-schedules 7 ,
.Xr embeng-sparsecore 7"""


def main():
    lines = [HEAD]
    for one in read(sys.argv[1]):
        lines += section(one)
    with open(sys.argv[2], "w", encoding="utf-8") as page:
        page.write("\n".join(lines + [TAIL]) + "\n")


if __name__ == "__main__":
    main()

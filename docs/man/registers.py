#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes embeng-registers(7), in mdoc, from the comments and tables of embeng_regs.h and
embeng_fields.h.

usage: registers.py REGS FIELDS PAGE
"""
import re
import sys

DATE = "November 27, 2026"
TITLE = re.compile(r"^DOC: (.*)$")
NAME = r"(\w+)"
NUMBER = r"(0x[0-9a-f]+|\d+)"
REGISTER = re.compile(rf"X\({NAME}, {NUMBER}, {NUMBER}, (DEVICE|DRIVER), {NAME}, \"([^\"]*)\"\)")
BOOT_ERROR = re.compile(rf"X\({NAME}, {NUMBER}, \"([^\"]*)\"\)")

GROUP = re.compile(rf"X\({NAME}, {NUMBER}, {NUMBER}, \"([^\"]*)\"\)")
FIELD = re.compile(rf"X\({NAME}, {NAME}, {NUMBER}, {NUMBER}, {NAME}\)")
VALUE = re.compile(rf"X\({NAME}, {NAME}, {NAME},[ \t\\\n]*\"([^\"]*)\"\)")


def fail(what):
    sys.exit(f"registers: {what}")


def escape(text):
    """Text as it is, and no request where a line begins."""
    text = re.sub(r"[&@](?=\w)|\bstruct (?=embeng_)", "", text)
    return re.sub(r"^(?=[.'])", r"\\&", text.replace("\\", "\\e"))


def sections(header):
    """Titles and lines of the header's DOC blocks."""
    comment = re.search(r"^/\*\n(.*?)\*/", header, re.S | re.M)
    found = []
    for line in comment[1].split("\n"):
        line = re.sub(r"^ \* ?", "", line).rstrip()
        title = TITLE.match(line)
        if title:
            found.append((title[1], []))
        elif found:
            found[-1][1].append(line)
    return found or fail("no DOC block")


def prose(lines):
    """Paragraphs; what is indented stands as it is."""
    out, literal = [], False
    for line in lines + [""]:
        indented = line.startswith(" ") or (literal and not line)
        if indented and not literal:
            out.append(".Bd -literal")
        if literal and (not indented or not line):
            out.append(".Ed")
            indented = False
        literal = indented
        if line:
            out.append(escape(line if literal else re.sub(r"\. +(?=[A-Z])", ".\n", line)))
        elif out and out[-1] != ".Pp":
            out.append(".Pp")
    while out and out[-1] == ".Pp":
        out.pop()
    return [line for at, line in enumerate(out)
            if line != ".Pp" or not out[at + 1].startswith(".Bd")]


def table(header, name, row):
    """Rows of a table that is a macro."""
    body = re.search(rf"#define {name}\(X\)(.*?[^\\])\n\n", header, re.S)
    rows = row.findall(body[1]) if body else []
    if not rows or len(rows) != body[1].count("X("):
        fail(f"{name} is not what it was")
    return rows


def register(row, header):
    name, offset, size, writer, reset, words = row
    constant = re.search(rf"#define {reset} {NUMBER}", header)
    reset = constant[1] if constant else reset
    return [f".It {offset} Va {name}", escape(words) + ";",
            f"{size} bytes, written by the {writer.lower()}, {reset} after a reset"]


def fields(header):
    """Groups of registers, fields, and names of their values."""
    out = [".Sh GROUPS", ".Bl -tag -width Ds"]
    for name, first, end, words in table(header, "EMBENG_REGISTER_GROUP_TABLE", GROUP):
        out += [f".It {name.lower()}", f"{escape(words)}: {first} up to, but without, {end}"]
    out += [".El", ".Sh FIELDS", ".Ql embeng regs", "shows these fields and takes their names.",
            ".Va OPTIMIZERS", "has a flag for each optimizer besides.", ".Bl -tag -width Ds"]
    for register_name, name, bit, bits, kind in table(header, "EMBENG_REGISTER_FIELD_TABLE", FIELD):
        last = int(bit) + int(bits) - 1
        place = f"bit {bit}" if bits == "1" else f"bits {bit} to {last}"
        out += [f".It Va {register_name}.{name}", f"{place}, a {kind.lower().replace('_', ' ')}"]
    out += [".El", ".Sh VALUES", ".Bl -tag -width Ds"]
    for kind, name, _, words in table(header, "EMBENG_REGISTER_VALUE_TABLE", VALUE):
        out += [f".It {kind.lower().replace('_', ' ')} Cm {name}", escape(words)]
    return out + [".El"]


def page(header, fields_header):
    out = [".\\\" Made from embeng_regs.h and embeng_fields.h.", f".Dd {DATE}", ".Dt EMBENG-REGISTERS 7", ".Os",
           ".Sh NAME", ".Nm embeng-registers",
           ".Nd registers of an embedding engine, as its driver uses them", ".Sh DESCRIPTION",
           "This page describes the registers that", ".Ql embeng regs", "shows.",
           "Structures and values are in", ".Pa embeng_regs.h", "and", ".Pa embeng_engine.h ."]
    for title, lines in sections(header):
        out += [f".Ss {title}"] + prose(lines)
    out += [".Sh REGISTERS", "The offsets are those in BAR 0.", ".Bl -tag -width Ds"]
    for row in table(header, "EMBENG_REGISTER_TABLE", REGISTER):
        out += register(row, header)
    out += [".El"] + fields(fields_header)
    out += [".Sh BOOT ERRORS", "These are the values of",
            ".Va BOOT_ERROR .", ".Bl -tag -width Ds"]
    for name, value, words in table(header, "EMBENG_BOOT_ERROR_TABLE", BOOT_ERROR):
        out += [f".It {value} Pq Dv {name}", escape(words)]
    out += [".El", ".Sh SEE ALSO", ".Xr embeng 1 ,", ".Xr embeng_emu 4 ,",
            ".Xr embeng-firmware 5"]
    return "\n".join(out) + "\n"


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    headers = []
    for path in sys.argv[1:3]:
        with open(path, encoding="utf-8") as file:
            headers.append(file.read())
    with open(sys.argv[3], "w", encoding="utf-8") as file:
        file.write(page(*headers))


if __name__ == "__main__":
    main()

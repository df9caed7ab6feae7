# SPDX-License-Identifier: MIT
"""Finds definitions in C by their names: functions, macros, variables and types.

A definition begins in the first column, and a function's braces stand there alone, as kernel style
has it. Definitions that a macro expands to, such as one function for each optimizer, belong to the
macro. A definition is found by its name and not by its file, so it may move to another file.
"""
import collections
import os
import re
from typing import NamedTuple

ROOMS = ("uapi", "engine", "firmware-loader", "runtime/src", "runtime/json", "kmod")
TESTS = os.path.join("kmod", "tests")

COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
DEFINE = re.compile(r"#\s*define\s+(\w+)")
ATTRIBUTE = re.compile(r"__attribute__\s*\(\(.*?\)\)")
TEMPLATE = re.compile(r"\b[A-Z_]+\((\w+)\)(?=\s*\()")  # KERNEL(name)(arguments)
FUNCTION = re.compile(r"(\w+)\s*\(")
VARIABLE = re.compile(r"(\w+)\s*(?:\[[^]]*\]\s*)*=")
TYPE = re.compile(r"\b(?:struct|union|enum)\s+(\w+)\s*\{")


class Definition(NamedTuple):
    """The text of a definition and where it stands."""
    file: str  # relative to the root
    start: int
    text: str


def name_of(head):
    """The name that the lines in front of a body define, or None."""
    head = TEMPLATE.sub(r"\1", ATTRIBUTE.sub("", COMMENT.sub("", head)))
    for form in (VARIABLE, TYPE, FUNCTION):
        found = form.search(head)
        if found:
            return found.group(1)
    return None


def end_of(lines, first):
    """The line behind a definition that begins with @first, and the head of it."""
    if lines[first].startswith("#"):
        last = first
        while lines[last].endswith("\\\n"):
            last += 1
        return last + 1, lines[first]
    for last in range(first, len(lines)):
        text = COMMENT.sub("", lines[last]).rstrip()
        if text.endswith("{"):
            body = next((at for at in range(last + 1, len(lines)) if lines[at].startswith("}")),
                        len(lines) - 1)
            return body + 1, "".join(lines[first:last + 1])
        if text.endswith(";") or not text:
            return last + 1, "".join(lines[first:last + 1])
    return len(lines), ""


def definitions_in(file, text):
    """Pairs of a name and its definition."""
    # A comment's text is no definition, whatever it begins with.
    bare = COMMENT.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)
    lines, shapes = text.splitlines(True), bare.splitlines(True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    at = 0
    while at < len(lines):
        define = DEFINE.match(shapes[at])
        if not define and not re.match(r"\w", shapes[at]):
            at += 1
            continue
        end, head = end_of(shapes, at)
        name = define.group(1) if define else name_of(head)
        if name:
            yield name, Definition(file, starts[at], text[starts[at]:starts[end]])
        at = end


def read_definitions(root):
    """Name -> definitions of it in the rooms; a static function may have several."""
    found = collections.defaultdict(list)
    for room in ROOMS:
        for folder, _, names in sorted(os.walk(os.path.join(root, room))):
            for name in sorted(names):
                file = os.path.relpath(os.path.join(folder, name), root)
                if not name.endswith((".c", ".h")) or file.startswith(TESTS):
                    continue
                with open(os.path.join(root, file), encoding="utf-8") as source:
                    text = source.read()
                for defined, definition in definitions_in(file, text):
                    found[defined].append(definition)
    return found

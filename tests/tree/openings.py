#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A C file says at its top what it does.

usage: openings.py SOURCE-ROOT [PATTERN...]

The files of ROOMS are checked, or those that match the patterns. Each begins with its SPDX line and
then, perhaps after an empty line, with a block comment of two lines of text at least: what the file
does, why it is a file of its own, which memory it owns for how long, and which lock its callers
hold. In the rooms of BRIEF, which are tests, one line is enough. A kernel-doc comment, which
describes one function or structure, does not count. Before the files, the check runs on planted
files that lack such a comment. Prints what is wrong, a line each.
"""
import pathlib
import re
import sys

# A room: a pattern relative to the root, where ** stands for any folders. To add one, add a line.
ROOMS = """
engine/**/*.c
firmware-loader/*.c
kmod/*.c
kmod/emulator/*.c
kmod/tests/*.c
runtime/cli/**/*.c
runtime/examples/*.c
runtime/json/*.c
runtime/text/*.c
runtime/src/**/*.c
runtime/mpi/*.c
""".split()
BRIEF = ["tests/**/*.c"]

LINES_LEAST = 2
OPENING = re.compile(r"[^\n]*SPDX-License-Identifier: [^\n]*\n\n?/\*(?!\*)(.*?)\*/", re.DOTALL)


def fault(text, least=LINES_LEAST):
    """Returns what is wrong with the top of a file, or None."""
    opening = OPENING.match(text)
    if not opening:
        return "no block comment after the SPDX line: say what the file does"
    lines = [line for line in opening.group(1).split("\n") if line.strip(" \t*")]
    if len(lines) < least:
        return f"its opening comment has {len(lines)} lines of text, {least} are the least"
    return None


SPDX = "// SPDX-License-Identifier: MIT\n"
BAD = {
    "no comment": SPDX + "#include <a.h>\n\n/*\n * A function.\n * Its text.\n */\n",
    "one line": SPDX + "/* A file. */\n#include <a.h>\n",
    "one line of a block": SPDX + "/*\n *\n * A file.\n */\n",
    "line comments": SPDX + "// A file,\n// and more.\n",
    "kernel-doc": SPDX + "/**\n * a() - a function\n * @b: a number\n */\n",
    "two empty lines": SPDX + "\n\n/*\n * A file,\n * and more.\n */\n",
    "no SPDX line": "/*\n * A file,\n * and more.\n */\n",
}
GOOD = {
    "a block": SPDX + "/*\n * A file,\n * and more.\n */\n#include <a.h>\n",
    "an empty line": SPDX + "\n/*\n * A file,\n * and more.\n */\n",
    "an SPDX line in a block": "/* SPDX-License-Identifier: MIT */\n/* A file,\n * and more. */\n",
}


def main():
    root = pathlib.Path(sys.argv[1])
    wrong = [f"a planted file passed: {name}" for name, text in BAD.items() if not fault(text)]
    wrong += [f"a good planted file failed: {name}: {fault(text)}"
              for name, text in GOOD.items() if fault(text)]
    wrong += [f"a planted test is judged wrongly: {name}" for name, text in BAD.items()
              if bool(fault(text, 1)) == name.startswith("one line")]
    for pattern in sys.argv[2:] or ROOMS + BRIEF:
        files = sorted(path for path in root.glob(pattern) if path.is_file())
        if not files:
            wrong.append(f"{pattern} matches no file")
        for path in files:
            said = fault(path.read_text(encoding="utf-8"), 1 if pattern in BRIEF else LINES_LEAST)
            if said:
                wrong.append(f"{path.relative_to(root).as_posix()}: {said}")
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

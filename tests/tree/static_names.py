#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Static functions have names that tell them apart.

A stack trace, a profile and a breakpoint name a function without its file: "give+0x1c" is of no
use where three files have a give(). So within one binary no other file defines a function of a
static function's name, and each name has two words at least, which also keeps it clear of the
kernel's and the C library's. universal-ctags lists the functions; macros are not expanded, so that
functions that a macro makes, a kernel of engine/ for example, are not seen. Prints what is wrong, a
line each.

usage: static_names.py SOURCE-ROOT
"""

import collections
import os
import pathlib
import subprocess
import sys

# A binary: its name, the sources whose names are judged, and sources that it has beside them.
# A name of the latter is only wrong where one of the former has it too.
# To add a binary is to add a line. engine/ is judged with libembeng.so, which it is linked into.
BINARIES = (
    ("embeng.ko", ["kmod/*.c"], []),
    ("embeng_emu.ko", ["kmod/emulator/*.c"], ["engine/**/*.c"]),
    ("embeng", ["runtime/cli/**/*.c", "runtime/examples/item2vec/*.c", "firmware-loader/image.c",
                "firmware-loader/source*.c"],
     ["runtime/src/**/*.c", "runtime/json/*.c", "engine/**/*.c"]),
    ("libembeng.so", ["runtime/src/**/*.c", "runtime/json/*.c", "runtime/text/*.c",
                      "engine/**/*.c"], []),
    ("libembeng-openmpi.so", ["runtime/mpi/*.c"], []),
    ("embeng._core", ["runtime/python/core/*.c"], []),
    ("mkimage", ["firmware-loader/*.c"], ["engine/hash/sha256.c", "engine/kernels/optimizers.c"]),
)

# Macros that stand like a function's head, without a semicolon: ctags is told to skip them.
MACROS = ("DEFINE_FREE", "DEFINE_TASKS", "KERNEL_OPTIMIZERS")

# A macro that stands for words in front of a function: ctags is told which.
PREFIX = "INLINE=static inline"


def sources(root, patterns):
    """Paths below root that match, sorted; each pattern has to match something."""
    found = set()
    for pattern in patterns:
        paths = [str(path.relative_to(root)) for path in root.glob(pattern)]
        if not paths:
            raise SystemExit(f"static_names.py: {pattern} matches no file")
        found.update(paths)
    return sorted(found)


def functions_of(root, paths):
    """The functions that C files define: a list of name, path, and whether it is static."""
    if not paths:
        return []
    ctags = subprocess.run(
        ["ctags", "--options=NONE", "-I", ",".join(macro + "+" for macro in MACROS), "-D", PREFIX,
         "-f", "-", "--sort=no", "--languages=C", "--c-kinds=f", "--fields=fk", "-L", "-"],
        input="\n".join(paths), cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if ctags.returncode:
        raise SystemExit(f"static_names.py: ctags failed, universal-ctags is needed:\n{ctags.stderr}")
    functions = []
    for line in ctags.stdout.splitlines():
        # The pattern between the path and the fields may hold tabs; "file:" is the last field.
        if not line.startswith("!"):
            fields = line.split("\t")
            functions.append((fields[0], fields[1], fields[-1] == "file:"))
    return functions


def complaints(root, name, judged, beside):
    """Yields a line for each fault of a binary's names."""
    own = functions_of(root, sources(root, judged))
    static = sorted({function for function, _, is_static in own if is_static})
    if not static:
        yield f"{name}: no static function found in {' '.join(judged)}"
    files = collections.defaultdict(set)
    for function, path, _ in own + functions_of(root, sources(root, beside)):
        files[function].add(path)
    for function in static:
        places = " ".join(sorted(files[function]))
        if function.isupper():
            yield f"{name}: {function}() is a macro: name it in MACROS, it hides a function: {places}"
            continue
        if len(files[function]) > 1:
            yield f"{name}: {function}() is defined more than once: {places}"
        if "_" not in function.strip("_"):
            yield f"{name}: {function}() is one word, a verb and a noun would tell more: {places}"


def main():
    """Judges each binary."""
    if len(sys.argv) != 2:
        raise SystemExit("usage: static_names.py SOURCE-ROOT")
    root = pathlib.Path(os.path.abspath(sys.argv[1]))
    wrong = [line for binary in BINARIES for line in complaints(root, *binary)]
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

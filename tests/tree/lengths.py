#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A function is short enough to be understood at once.

usage: lengths.py SOURCE-ROOT

A function of C or Python that has more than FUNCTION_MOST lines is an error. In C these are the
lines from its opening brace to its closing one, which stand alone in the first column; in Python
those from its def to its end. A file of more than FILE_WARNS lines is a warning, which is printed
and fails nothing: length is a reason to look whether the file is one concern, and cutting it where
it is one makes splinters that are read only together. Before the files, the check runs on planted
functions. Prints what is wrong, a line each.
"""
import ast
import pathlib
import sys

FUNCTION_MOST = 60
FILE_WARNS = 800

FOLDERS = ("docs", "engine", "firmware-loader", "kmod", "runtime", "scripts", "tests", "uapi")


def functions_of_c(text):
    """Pairs of line number and length of the functions of a C file."""
    start = 0
    for number, line in enumerate(text.splitlines(), 1):
        if line == "{":
            start = number
        elif line.startswith("}") and start:
            yield start, number - start + 1
            start = 0


def functions_of_python(text):
    """The same of a Python file."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.lineno, node.end_lineno - node.lineno + 1


READERS = {".c": functions_of_c, ".h": functions_of_c, ".py": functions_of_python,
           ".sh": lambda text: ()}


def long_functions(name, text):
    """Yields a line for each function of a file that is too long."""
    for number, length in READERS[pathlib.Path(name).suffix](text):
        if length > FUNCTION_MOST:
            yield f"{name}:{number}: a function of {length} lines; {FUNCTION_MOST} are the most"


def planted(lines):
    """A function of so many lines in each language that has a reader of functions."""
    return {"a.c": "static int\nf(void)\n{\n" + "\tg();\n" * (lines - 2) + "}\n",
            "a.h": "int a[] = {\n" + "1,\n" * lines + "};\n\nSTART_TEST(f)\n{\n" +
                   "\n" * (lines - 2) + "}\nEND_TEST\n",
            "a.py": "class A:\n    def f(self):\n" + "        f()\n" * (lines - 1)}


def wrong_plants():
    """Planted functions of which the check says what is not so."""
    for lines, count in ((FUNCTION_MOST, 0), (FUNCTION_MOST + 1, 1)):
        for name, text in planted(lines).items():
            if len(list(long_functions(name, text))) != count:
                yield f"{name}: a planted function of {lines} lines is taken for something else"


def main():
    """Checks all files."""
    if len(sys.argv) != 2:
        raise SystemExit("usage: lengths.py SOURCE-ROOT")
    root = pathlib.Path(sys.argv[1])
    wrong = list(wrong_plants())
    files = sorted(path for folder in FOLDERS for path in (root / folder).rglob("*")
                   if path.suffix in READERS and path.is_file())
    if not files:
        wrong.append(f"there are no sources in {root}")
    for path in files:
        text = path.read_text(encoding="utf-8")
        name = path.relative_to(root).as_posix()
        wrong += long_functions(name, text)
        if text.count("\n") > FILE_WARNS:
            print(f"warning: {name} has {text.count(chr(10))} lines: is it one concern?")
    for fault in wrong:
        print(fault, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

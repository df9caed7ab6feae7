#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A program that was linked with the last release runs with this libembeng.

abidiff of libabigail compares the libraries of the last tag (v0.1.0, for example) and of this tree,
by their debugging information and public headers. Nothing is suppressed; functions may be added. A
library with another soname may differ, since it is installed beside the old one. Before the first
tag there is no release to be held to. That a change is seen is shown each time, by libraries with
changes. Those of the header are in one of them, since each makes all files be compiled again; the
report has to name every one.

usage: library_abi.py SOURCE-ROOT
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(".")
PARTS = ["meson.build", "meson_options.txt", "uapi", "engine", "firmware-loader", "runtime", "docs"]
OPTIONS = ["-Daccel=disabled", "-Dcli=disabled", "-Dprotobuf=disabled", "-Dtests=disabled",
           "-Doptimization=0", "-Ddefault_library=shared"]
LIBRARY = "build/runtime/libembeng.so"
HEADER = "runtime/include/embeng.h"
MAP = "runtime/libembeng.map"


def run(*command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, **more)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}:\n{done.stdout[-2000:]}")
    return done.stdout


def build(tree):
    """Builds the library of a tree, again after a change; returns its path."""
    if not (tree / "build").exists():
        run("meson", "setup", "build", *OPTIONS, cwd=tree)
    run("meson", "compile", "-C", "build", "embeng:shared_library", cwd=tree)
    return tree / LIBRARY


def soname(library):
    return re.search(r"\(SONAME\).*\[(.*)\]", run("readelf", "-d", library))[1]


def compare(old, new, old_headers, new_headers):
    """abidiff's report, "" where a program that used the old library can use the new one.

    Structures that no public header defines are left out before they are compared: programs do not
    see them, and handles point to so many that abidiff needs minutes for a change in one.
    """
    command = ["abidiff", "--no-added-syms", "--drop-private-types", "--headers-dir1", old_headers,
               "--headers-dir2", new_headers, old, new]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode & 3:
        raise RuntimeError(f"abidiff: {done.stderr}")
    return done.stdout if done.returncode else ""


def last_tag():
    done = subprocess.run(["git", "describe", "--tags", "--abbrev=0", "--match", "v[0-9]*"],
                          cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


class LibraryAbi(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.tree = pathlib.Path(cls.scratch.name) / "tree"
        cls.tree.mkdir()
        for part in PARTS:
            if (ROOT / part).is_dir():
                shutil.copytree(ROOT / part, cls.tree / part,
                                ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(ROOT / part, cls.tree)
        cls.library = pathlib.Path(cls.scratch.name) / "libembeng.so"
        shutil.copy(build(cls.tree), cls.library)

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def report_of(self, *edits):
        """The report of a library that has these changes alone: (path, text, instead)."""
        before = {path: (self.tree / path).read_text(encoding="utf-8") for path, _, _ in edits}
        try:
            for path, text, instead in edits:
                now = (self.tree / path).read_text(encoding="utf-8")
                self.assertEqual(now.count(text), 1, f"{path}: {text}")
                (self.tree / path).write_text(now.replace(text, instead), encoding="utf-8")
            return compare(self.library, build(self.tree), ROOT / "runtime/include",
                           self.tree / "runtime/include")
        finally:
            for path, text in before.items():
                (self.tree / path).write_text(text, encoding="utf-8")

    def test_since_the_last_release(self):
        tag = last_tag()
        if not tag:
            self.assertEqual(compare(self.library, self.library, ROOT / "runtime/include",
                                     ROOT / "runtime/include"), "")
            print("# no release is tagged yet, so there is no ABI to keep")
            return
        released = pathlib.Path(self.scratch.name) / "released"
        released.mkdir()
        archive = subprocess.run(["git", "archive", tag], cwd=ROOT, check=True,
                                 stdout=subprocess.PIPE).stdout
        subprocess.run(["tar", "-x"], cwd=released, input=archive, check=True)
        old = build(released)
        if soname(old) != soname(self.library):
            print(f"# {tag} has another soname, {soname(old)}")
            return
        self.assertEqual(compare(old, self.library, released / "runtime/include",
                                 ROOT / "runtime/include"), "",
                         f"programs that use {tag} would break; give the library a new soversion")

    def test_a_function_less_is_found(self):
        report = self.report_of((MAP, "\tembeng_interrupt;\n", ""))
        self.assertRegex(report, r"1 Removed[^\n]*\n(.*\n)*.*embeng_interrupt")

    def test_changes_of_the_header_are_found(self):
        """A moved member, another number and another parameter, each in its own words."""
        header = (self.tree / HEADER).read_text(encoding="utf-8")
        enum = re.search(r"\nenum embeng_reset \{.*?\}", header, re.S)[0]
        line = re.search(r"EMBENG_API int embeng_register_write\([^;]*;", header)[0]
        source = "runtime/src/device/registers.c"
        report = self.report_of(
            (HEADER, "\tchar kind[16];\n\tchar variant[16];\n",
             "\tchar variant[16];\n\tchar kind[16];\n"),
            (HEADER, enum, enum.replace("{", "{ EMBENG_RESET_NEW,", 1)),
            (HEADER, line, line.replace("uint32_t offset", "uint64_t offset")),
            (source, "embeng_register_write(const char *name, uint32_t offset",
             "embeng_register_write(const char *name, uint64_t offset"),
            (source, "width_of(offset)", "width_of((uint32_t)offset)"),
            (source, "accel_register_write(&parsed, offset,",
             "accel_register_write(&parsed, (uint32_t)offset,"))
        self.assertRegex(report, r"'char (kind|variant)\[16\]' offset changed")
        self.assertRegex(report, r"'embeng_reset::EMBENG_RESET_\w+' from value")
        self.assertRegex(report, r"function int embeng_register_write\(.*\n *parameter 2 ")

    def test_a_function_more_is_none(self):
        report = self.report_of(
            (MAP, "local:\n", "\tembeng_answer;\nlocal:\n"),
            (HEADER, "#ifdef __cplusplus\n}\n", "/** embeng_answer() - a number. Return: it. */\n"
             "EMBENG_API int embeng_answer(void);\n\n#ifdef __cplusplus\n}\n"),
            ("runtime/src/device/registers.c", "enum writer {",
             "int embeng_answer(void)\n{\n\treturn 42;\n}\n\nenum writer {"))
        self.assertEqual(report, "")


if __name__ == "__main__":
    ROOT = pathlib.Path(sys.argv[1]).resolve()
    os.environ.pop("DESTDIR", None)
    unittest.main(argv=sys.argv[:1])

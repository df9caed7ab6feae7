#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""libembeng exports the functions of its public headers, each with a version, and nothing else.

usage: symbols.py SOURCE-ROOT LIBRARY
"""
import pathlib
import re
import subprocess
import sys
import unittest

ROOT, LIBRARY = pathlib.Path("."), ""


def public_functions(header):
    """Functions that a header declares with EMBENG_API."""
    code = re.sub(r"/\*.*?\*/", "", header, flags=re.S)
    return set(re.findall(r"^EMBENG_API\s[^;{]*?\b(\w+)\(", code, re.M))


def mapped_functions(text):
    """Function -> version, and the versions in their order; a function listed twice is an error."""
    found, versions = {}, []
    for version, body in re.findall(r"^(\w[\w.]*) \{\n(.*?)^\}", text, re.S | re.M):
        versions.append(version)
        for name in re.findall(r"^\t(\w+);$", body, re.M):
            if name in found:
                raise ValueError(f"{name} is in {found[name]} and in {version}")
            found[name] = version
    return found, versions


def exported_functions(lines):
    """Function -> version, of the lines that `nm -D --defined-only` prints."""
    fields = [line.split() for line in lines]
    return dict(re.split("@+", name) if "@" in name else (name, "no version")
                for _, kind, name in fields if kind != "A")


def complain(headers, mapped, exported):
    """A sentence for each function that is not where it belongs."""
    for name in sorted(headers - set(mapped)):
        yield f"{name} is in a header, but not in runtime/libembeng.map: add it to the newest version"
    for name in sorted(set(mapped) - headers):
        yield f"{name} is in runtime/libembeng.map, but in no header: nobody can call it"
    for name in sorted(headers - set(exported)):
        yield f"{name} is in a header, but the library does not export it"
    for name in sorted(set(exported) - headers):
        yield f"{name} is exported, but in no header: it is private"
    for name in sorted(set(exported) & set(mapped)):
        if exported[name] != mapped[name]:
            yield f"{name} is exported with {exported[name]}, but the map says {mapped[name]}"


class Symbols(unittest.TestCase):
    def test_this_library(self):
        headers = set().union(*(public_functions(path.read_text(encoding="utf-8"))
                                for path in (ROOT / "runtime/include").rglob("*.h")))
        mapped, _ = mapped_functions((ROOT / "runtime/libembeng.map").read_text(encoding="utf-8"))
        lines = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], check=True, text=True,
                               capture_output=True).stdout.splitlines()
        self.assertGreater(len(headers), 100)
        self.assertEqual(list(complain(headers, mapped, exported_functions(lines))), [])

    def test_newest_version(self):
        """It is not newer than the library."""
        text = (ROOT / "runtime/include/embeng/error.h").read_text(encoding="utf-8")
        numbers = dict(re.findall(r"#define EMBENG_VERSION_(MAJOR|MINOR) (\d+)", text))
        _, versions = mapped_functions((ROOT / "runtime/libembeng.map").read_text(encoding="utf-8"))
        newest = [int(number) for number in re.fullmatch(r"LIBEMBENG_(\d+)\.(\d+)",
                                                         versions[-1]).groups()]
        self.assertLessEqual(newest, [int(numbers["MAJOR"]), int(numbers["MINOR"])])

    def test_what_is_wrong_is_seen(self):
        headers = public_functions("EMBENG_API int f(int a);\n/* EMBENG_API int no(void); */\n"
                                   "EMBENG_API const struct x *\ng(void (*h)(int));\n")
        self.assertEqual(headers, {"f", "g"})
        mapped, versions = mapped_functions(
            "A_0.1 {\nglobal:\n\tf;\nlocal:\n\t*;\n};\nA_0.2 {\nglobal:\n\tg;\n} A_0.1;\n")
        self.assertEqual((mapped, versions), ({"f": "A_0.1", "g": "A_0.2"}, ["A_0.1", "A_0.2"]))
        exported = exported_functions(["0 A A_0.1", "1 T f@@A_0.1", "2 T g@@A_0.2"])
        self.assertEqual(list(complain(headers, mapped, exported)), [])
        self.assertEqual(len(list(complain(headers | {"new"}, mapped, exported))), 2)
        self.assertEqual(len(list(complain(headers - {"f"}, mapped, exported))), 2)
        self.assertEqual(len(list(complain(headers, {"f": "A_0.1"}, exported))), 1)
        self.assertEqual(len(list(complain(headers, mapped, {"f": "A_0.1"}))), 1)
        self.assertEqual(len(list(complain(headers, mapped, {**exported, "f": "A_0.2"}))), 1)
        self.assertEqual(len(list(complain(headers, mapped, {**exported, "own": "A_0.1"}))), 1)
        with self.assertRaises(ValueError):
            mapped_functions("A {\n\tf;\n};\nB {\n\tf;\n};\n")


if __name__ == "__main__":
    ROOT, LIBRARY = pathlib.Path(sys.argv[1]), sys.argv[2]
    unittest.main(argv=sys.argv[:1])

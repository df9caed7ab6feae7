#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Each public function that takes a handle is called on a handle over a group of hosts by some test, so that
somebody has decided what it does there.

usage: handle_calls.py SOURCE-ROOT
"""
import pathlib
import re
import sys

# These are made of other public functions alone.
BUILT_ON_OTHERS = {"embeng_classic_apply"}
# Tests of handles over hosts, and what they share.
TESTS = ["tests/thread/test_hosts_*.c", "tests/unit/support/hosts_help.h"]


def handle_functions(header):
    """Functions of a header that take a handle."""
    code = re.sub(r"/\*.*?\*/", "", header, flags=re.S)
    found = re.findall(r"^EMBENG_API\s[^;{]*?\b(\w+)\(([^;]*)\);", code, re.M | re.S)
    return {name for name, arguments in found
            if re.search(r"struct embeng \*(?!\*)", arguments)}


def main():
    root = pathlib.Path(sys.argv[1])
    headers = [root / "runtime/include/embeng.h", *root.glob("runtime/include/embeng/*.h")]
    functions = set().union(*(handle_functions(h.read_text()) for h in headers))
    tests = "\n".join(t.read_text() for pattern in TESTS for t in sorted(root.glob(pattern)))
    called = set(re.findall(r"\b(embeng_\w+)\(", tests))
    missing = sorted(functions - called - BUILT_ON_OTHERS)
    for name in missing:
        print(f"{name}() takes a handle, and no test calls it on one over a group of hosts")
    if not functions:
        print("no header has a function that takes a handle")
    sys.exit(bool(missing) or not functions)


main()

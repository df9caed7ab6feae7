# SPDX-License-Identifier: MIT
"""Test files of other projects as modules, and their cases one by one."""
import linecache
import sys
import types
import unittest


def load_module(name: str, text: str, path: str) -> types.ModuleType:
    """Make a module of a file's text. Tracebacks show its lines, and AutoGraph finds them."""
    module = types.ModuleType(name)
    sys.modules[name] = module
    linecache.cache[path] = len(text), None, text.splitlines(True), path
    exec(compile(text, path, "exec"), module.__dict__)
    return module


def list_cases(module: types.ModuleType) -> list[unittest.TestCase]:
    """List the cases of a module."""
    def flatten(suite: unittest.TestSuite) -> list[unittest.TestCase]:
        found: list[unittest.TestCase] = []
        for test in suite:
            found += flatten(test) if isinstance(test, unittest.TestSuite) else [test]
        return found

    return flatten(unittest.defaultTestLoader.loadTestsFromModule(module))


def run_case(case: unittest.TestCase) -> tuple[str, str]:
    """Run a case. Return "passed", "failed" or "skipped", and the text of the latter two."""
    result = unittest.TestResult()
    case.run(result)
    for what, found in (("failed", result.failures), ("failed", result.errors),
                        ("skipped", result.skipped)):
        if found:
            return what, found[0][1]
    return "passed", ""

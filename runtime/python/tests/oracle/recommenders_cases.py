# SPDX-License-Identifier: MIT
"""Run TensorFlow Recommenders' tests of its layer against embeng.tf.tfrs, and print the outcomes.

usage: recommenders_cases.py

The result is a line of JSON: from each case to its outcome and text. It is a program of its own,
because TensorFlow reads which Keras it has when it starts.
"""
import json
import linecache
import os
import sys
import types
import unittest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from embeng.tf import tfrs
from upstream import FILES, read

NAME = "tpu_embedding_layer_test"


def _each(suite: unittest.TestSuite) -> list[unittest.TestCase]:
    found: list[unittest.TestCase] = []
    for test in suite:
        found += _each(test) if isinstance(test, unittest.TestSuite) else [test]
    return found


def _load() -> types.ModuleType:
    """Load the file, with our layer in the package that it imports."""
    parts = ["tensorflow_recommenders", "layers", "embedding"]
    for count in range(1, 4):
        package = types.ModuleType(".".join(parts[:count]))
        package.__path__ = []
        sys.modules[package.__name__] = package
    package.__dict__["tpu_embedding_layer"] = tfrs.layers.embedding.tpu_embedding_layer
    text = read(NAME)
    if text is None:
        raise SystemExit("EMBENG_ORACLES names no folder")
    module = types.ModuleType(f"oracle_{NAME}")
    sys.modules[module.__name__] = module
    path = FILES[NAME].path
    linecache.cache[path] = len(text), None, text.splitlines(True), path  # for AutoGraph
    exec(compile(text, path, "exec"), module.__dict__)
    return module


def main() -> None:
    """Run each case, and print what became of all."""
    outcomes = {}
    for case in _each(unittest.defaultTestLoader.loadTestsFromModule(_load())):
        if case.id().endswith(".test_session"):
            continue  # TensorFlow's own base class has it
        result = unittest.TestResult()
        case.run(result)
        problems = result.failures + result.errors
        outcomes[case.id().split(".")[-1]] = problems[0][1] if problems else "passed"
    print(json.dumps(outcomes))


if __name__ == "__main__":
    main()

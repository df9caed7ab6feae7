# SPDX-License-Identifier: MIT
"""Runs one of keras-rs' own test files against embeng.keras, on the backend of KERAS_BACKEND.

Arguments: the name of the file in upstream.py, and a machine. The files tell one with a TPU by the
variable TPU_NAME of the environment. "none" is one without, for them and for the layer; on "engine"
the engine is the TPU; on "auto" the tables also have this placement. It prints a JSON object of the
cases: "passed", "skipped" or the traceback of each.
"""
import json
import os
import sys
import types
import unittest
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
os.environ.pop("TPU_NAME", None)
FILE, MACHINE = sys.argv[1:3]
if MACHINE == "none":
    os.environ["EMBENG_KERAS_SPARSECORES"] = "none"
else:
    os.environ["TPU_NAME"] = "embeng"

import keras_rs.layers  # noqa: E402 - its modules are replaced below
import keras_rs.src.layers.embedding as package  # noqa: E402
from keras_rs.src.utils import tpu_test_utils as utilities  # noqa: E402

import embeng.keras  # noqa: E402
from upstream import KERAS_RS_FILES, read  # noqa: E402

_OURS = {
    "distributed_embedding": ["DistributedEmbedding"],
    "distributed_embedding_config": ["TableConfig", "FeatureConfig"],
    "embed_reduce": ["EmbedReduce"],
}


def _replace_modules() -> None:
    """Put our classes where the files import keras-rs'."""
    for name, members in _OURS.items():
        full = f"{package.__name__}.{name}"
        module = types.ModuleType(full)
        for member in members:
            setattr(module, member, getattr(embeng.keras, member))
        sys.modules[full] = module
        setattr(package, name, module)
    # One replica, and no TPU to be looked for.
    utilities._shared_strategy = utilities.DummyStrategy()
    # Their package has no base class of tests.
    testing = _execute("keras_rs.src.testing", "keras_rs_test_case")
    keras_rs.src.testing = testing


def _execute(module_name: str, name: str) -> types.ModuleType:
    text = read(name)
    assert text is not None, "EMBENG_ORACLES names no folder"
    module = types.ModuleType(module_name)
    sys.modules[module.__name__] = module
    exec(compile(text, KERAS_RS_FILES[name].path, "exec"), module.__dict__)
    return module


def _load(name: str) -> unittest.TestSuite:
    module = _execute(f"oracle_{name}", name)
    if MACHINE == "auto":
        cases: Any = module.DistributedEmbeddingTest  # type: ignore[attr-defined]
        theirs = cases.setUp

        def set_up(self: Any) -> None:
            theirs(self)
            self.placement = "auto"

        cases.setUp = set_up
    return unittest.defaultTestLoader.loadTestsFromModule(module)


class _Result(unittest.TestResult):
    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, str] = {}

    def stopTest(self, test: unittest.TestCase) -> None:
        self.found.setdefault(test.id().split(".", 1)[1], "passed")
        super().stopTest(test)

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        self.found[test.id().split(".", 1)[1]] = "skipped"

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:
        super().addFailure(test, err)
        self.found[test.id().split(".", 1)[1]] = self.failures[-1][1]

    def addError(self, test: unittest.TestCase, err: Any) -> None:
        super().addError(test, err)
        self.found[getattr(test, "id", str)().split(".", 1)[-1]] = self.errors[-1][1]


def main() -> None:
    _replace_modules()
    result = _Result()
    _load(FILE).run(result)
    print("RESULTS " + json.dumps(result.found))


main()

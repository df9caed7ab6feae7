# SPDX-License-Identifier: MIT
"""Run TensorFlow Recommenders' tests of its layer against embeng.tf.tfrs, and print the outcomes.

usage: recommenders_cases.py

The result is a line of JSON: from each case to its outcome and text. It is a program of its own,
because TensorFlow reads which Keras it has when it starts.
"""
import json
import os
import sys
import types

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from cases import list_cases, load_module, run_case
from embeng.tf import tfrs
from upstream import FILES, read

NAME = "tpu_embedding_layer_test"


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
    return load_module(f"oracle_{NAME}", text, FILES[NAME].path)


def main() -> None:
    """Run each case, and print what became of all."""
    outcomes = {}
    for case in list_cases(_load()):
        if case.id().endswith(".test_session"):
            continue  # TensorFlow's own base class has it
        what, text = run_case(case)
        outcomes[case.id().split(".")[-1]] = text if what == "failed" else what
    print(json.dumps(outcomes))


if __name__ == "__main__":
    main()

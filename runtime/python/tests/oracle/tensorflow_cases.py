# SPDX-License-Identifier: MIT
"""Run TensorFlow's own tests of TPUEmbedding against embeng.tf, and print what became of each case.

usage: tensorflow_cases.py FILE...

The files are named as in :mod:`upstream`. They import modules of TensorFlow that make ops for a
TPU. Modules with our classes stand in for those while the files are loaded, and
:mod:`sparse_core_kernels` for the operators that prepare batches. The result is a line of JSON for
each file: its name, and from each of its cases to its outcome and text.

It is a program of its own, because TensorFlow can have several logical processors only if they are
asked for before it starts.
"""
import json
import os
import sys
import tempfile
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow
from absl import flags, logging
from tensorflow.python.tpu import tpu_embedding_for_serving as their_serving

import embeng.tf as ours
import sparse_core_kernels
from cases import list_cases, load_module, run_case
from embeng.tf._tables import LiveVariable
from embeng.tf.config_spec import AdagradParameters
from upstream import FILES, TENSORFLOW_BASES, read

REPLICAS = 2
PACKAGE = "tensorflow.python.tpu.tests"
_embedding = ours.tpu.experimental.embedding


def _module(name: str, **members: Any) -> types.ModuleType:
    module = types.ModuleType(name)
    module.__dict__.update(members)
    return module


def _resolver(*args: Any, **named: Any) -> Any:
    return ours.distribute.cluster_resolver.TPUClusterResolver(replicas=REPLICAS)


def _stand_ins() -> dict[str, types.ModuleType]:
    members = {
        "tensorflow.python.distribute.tpu_strategy": {
            "TPUStrategy": ours.distribute.TPUStrategy,
            "TPUStrategyV2": ours.distribute.TPUStrategy},
        "tensorflow.python.distribute.cluster_resolver.tpu_cluster_resolver": {
            "TPUClusterResolver": _resolver,
            "initialize_tpu_system": ours.tpu.experimental.initialize_tpu_system},
        "tensorflow.python.tpu.tpu_embedding_v2": {
            "TPUEmbedding": _embedding.TPUEmbedding,
            "TPUEmbeddingVariable": LiveVariable},
        "tensorflow.python.tpu.tpu_embedding": {
            "AdagradParameters": AdagradParameters},
        "tensorflow.python.tpu.tpu_embedding_v1": {
            "TPUEmbeddingV0": _embedding.TPUEmbeddingV0},
        "tensorflow.python.tpu.tpu_embedding_for_serving": {
            "TPUEmbeddingForServing": _embedding.TPUEmbeddingForServing,
            "cpu_embedding_lookup": their_serving.cpu_embedding_lookup},
    }
    made = {name: _module(name, **found) for name, found in members.items()}
    made["tensorflow.python.tpu.ops.gen_xla_ops"] = sparse_core_kernels
    return made


@contextmanager
def _in_place(modules: dict[str, types.ModuleType]) -> Iterator[None]:
    """Have imports find the modules, also as attributes of their packages."""
    saved = {}
    for name, module in modules.items():
        package, _, last = name.rpartition(".")
        parent = sys.modules.get(package)
        saved[name] = sys.modules.get(name), parent, getattr(parent, last, None)
        sys.modules[name] = module
        if parent is not None:
            setattr(parent, last, module)
    try:
        yield
    finally:
        for name, (module, parent, attribute) in saved.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module
            if parent is None:
                continue
            if attribute is None:
                delattr(parent, name.rpartition(".")[2])
            else:
                setattr(parent, name.rpartition(".")[2], attribute)


def _load(name: str) -> types.ModuleType:
    text = read(name)
    if text is None:
        raise SystemExit("EMBENG_ORACLES names no folder")
    return load_module(f"{PACKAGE}.{name}", text, FILES[name].path)


def run_file(module: types.ModuleType) -> dict[str, tuple[str, str]]:
    """Run the cases of one file; those that it imports from others are left out."""
    cases = [case for case in list_cases(module) if type(case).__module__ == module.__name__]
    return {".".join(case.id().split(".")[-2:]): run_case(case) for case in cases
            if not case.id().endswith(".test_session")}


def main() -> None:
    """Load the files that are named, run their cases, and print the outcomes."""
    logging.set_verbosity(logging.INFO)  # one case reads the log
    _resolver()
    made = _stand_ins()
    made[PACKAGE] = _module(PACKAGE, __path__=[])
    with tempfile.TemporaryDirectory() as folder, _in_place(made):
        os.environ["TEST_TMPDIR"] = folder
        for name in TENSORFLOW_BASES:
            setattr(made[PACKAGE], name, _load(name))
        modules = {name: _load(name) for name in sys.argv[1:]}
        flags.FLAGS(["cases", f"--test_tmpdir={folder}"])
        tensorflow.compat.v1.enable_v2_behavior()
        for name, module in modules.items():
            print(json.dumps({"file": name, "cases": run_file(module)}), flush=True)


if __name__ == "__main__":
    main()

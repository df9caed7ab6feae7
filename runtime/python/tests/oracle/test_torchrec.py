# SPDX-License-Identifier: MIT
"""torchrec's own tests, run against embeng.torch in place of torchrec.

torchrec and FBGEMM need not be installed: the modules that the files import are made here, with our
classes in them. Where torchrec is installed, the file about fused collections gets ours for those
alone: their plain collections are then the oracle, and their tensors and settings the input. A case
that cannot pass is in CANNOT with its reason, and must fail as long as it is.
"""
import enum
import importlib.util
import sys
import types
import unittest
from typing import Any

import pytest
import torch

import embeng.torch
from cases import list_cases, load_module, run_case
from upstream import FILES, TORCHREC, read

HAVE_TORCHREC = importlib.util.find_spec("torchrec") is not None
SCRIPTING = "torch.jit.script has no words for an engine; torch.export and torch.compile trace it"
TRACING = "torch.fx traces into Python code that reads keys; torch.export traces the module"
REFERENCE = "the case needs torchrec's own collection as its reference, which is not installed"
CANNOT: dict[str, str] = {
    "embedding_modules:EmbeddingBagCollectionTest.test_fx": TRACING,
    "embedding_modules:EmbeddingCollectionTest.test_fx": TRACING,
    "embedding_modules:EmbeddingBagCollectionTest.test_scripting": SCRIPTING,
    "embedding_modules:EmbeddingCollectionTest.test_scripting": SCRIPTING,
}
if not HAVE_TORCHREC:
    CANNOT["fused_embedding_modules:FusedEmbeddingBagCollectionTest.test_optimizer_fusion"] = \
        REFERENCE


def _missing(name: str) -> Any:
    """Stand in for a name that this package does not have: using it fails the case."""
    if name.startswith("__"):
        raise AttributeError(name)

    def fail(*unused: Any, **also: Any) -> Any:
        raise NotImplementedError(f"embeng.torch has no {name}")

    return fail


def _module(name: str, **members: Any) -> types.ModuleType:
    module = types.ModuleType(name)
    module.__dict__.update(members, __getattr__=_missing, __path__=[])
    return module


class _EmbeddingLocation(enum.IntEnum):
    DEVICE = 0
    MANAGED = 1
    MANAGED_CACHING = 2
    HOST = 3


def _stand_ins(file: str) -> dict[str, types.ModuleType]:
    """Modules that the files import, with our classes under torchrec's names."""
    ours = {name: getattr(embeng.torch, name) for name in embeng.torch.__all__}
    if HAVE_TORCHREC and file == "fused_embedding_modules":
        import torchrec  # noqa: F401 - the others are imported with it

        name = "torchrec.modules.fused_embedding_modules"
        return {name: _module(name, **ours)}
    names = ["torchrec", "torchrec.modules", "torchrec.sparse", "torchrec.sparse.jagged_tensor",
             "torchrec.modules.embedding_configs", "torchrec.modules.embedding_modules",
             "torchrec.modules.fused_embedding_modules"]
    made = {name: _module(name, **ours) for name in names}
    made["torchrec"].optim = embeng.torch.optim  # type: ignore[attr-defined]
    made["torchrec.fx"] = _module("torchrec.fx", symbolic_trace=torch.fx.symbolic_trace)
    made["torchrec.test_utils"] = _module("torchrec.test_utils", skip_if_asan_class=lambda c: c)
    location = {"EmbeddingLocation": _EmbeddingLocation}
    made["fbgemm_gpu"] = _module("fbgemm_gpu")
    name = "fbgemm_gpu.split_table_batched_embeddings_ops_training"
    made[name] = _module(name, **location)
    return made


def _load(name: str) -> types.ModuleType | None:
    text = read(name)
    if text is None:
        return None
    made = _stand_ins(name)
    saved = {key: sys.modules.get(key) for key in made}
    sys.modules.update(made)
    try:
        return load_module(f"oracle_{name}", text, FILES[name].path)
    finally:
        for key, value in saved.items():
            if value is None:
                del sys.modules[key]
            else:
                sys.modules[key] = value


def _cases() -> list[Any]:
    found = []
    for name in FILES:
        if FILES[name].repository != TORCHREC:
            continue
        module = _load(name)
        if module is None:
            skip = pytest.mark.skip(f"the oracle {FILES[name].path} is not there: EMBENG_ORACLES "
                                    "names no folder")
            found.append(pytest.param(None, id=name, marks=skip))
            continue
        for case in list_cases(module):
            label = f"{name}:{case.id().split('.', 1)[1]}"
            reason = CANNOT.get(label)
            marks = [pytest.mark.xfail(reason=reason, strict=True)] if reason else []
            found.append(pytest.param(case, id=label, marks=marks))
    return found


@pytest.mark.parametrize("case", _cases())
def test_torchrec(case: unittest.TestCase) -> None:
    """Runs one case of theirs."""
    what, text = run_case(case)
    assert what != "failed", text
    if what == "skipped":
        pytest.skip("the oracle itself skips it: " + text)

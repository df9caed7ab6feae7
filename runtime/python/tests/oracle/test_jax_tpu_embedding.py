# SPDX-License-Identifier: MIT
"""jax-tpu-embedding's own tests of batches, lookups and gradients, run against embeng.jax on a CPU.

Its Python modules are read from the folder of oracles; its compiled module, which needs a later
Python, is a stand-in over ours, and so are the primitives of SparseCores. A CPU is taken for a
device with SparseCores. A case that cannot pass is in CANNOT with its reason, and must fail as long as
it is.
"""
import enum
import importlib
import os
import pathlib
import sys
import types
import unittest
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy
import pytest

if not os.environ.get("EMBENG_ORACLES"):
    pytest.skip("EMBENG_ORACLES names no folder", allow_module_level=True)

import jax  # noqa: E402

import embeng.jax as ours  # noqa: E402
from embeng.jax import sizes  # noqa: E402
from embeng.jax.coordinates import rows_of_coordinates  # noqa: E402
from cases import list_cases, load_module, run_case  # noqa: E402
from upstream import JAX_TPU_FILES, read  # noqa: E402

LIBRARY = "jax_tpu_embedding.sparsecore.lib"
CASES = ("preprocess_input", "pybind_input", "sparse_coo_input", "matmul", "matmul_grad")
BUFFER = "ids that a buffer does not hold are an error, unless ids may be dropped"
ROUNDING = "a rate that is computed inside jit on a CPU differs from one outside by one rounding"
PROGRAM = "the optimizer is a program of its own for SparseCores, which a CPU does not run"
CANNOT: dict[str, str] = {
    "preprocess_input:PreprocessSparseDenseMatmulInputTest."
    "test_preprocess_local_batch_size_exceeds_limit":
        "the limit is one of their bits of an item; ours takes such a batch",
    "preprocess_input:PreprocessSparseDenseMatmulInputTest."
    "test_preprocess_suggested_buffer_size_4sc": BUFFER,
    "matmul:ErrorHandlingTest.test_static_buffer_size_was_too_small": BUFFER,
    "matmul:TpuSparseDenseMatmulTest.test_sparse_dense_matmul_quantized":
        "quantized lookups are an engine's; the functional lookup refuses them",
    "pybind_input:MinibatchingNodeTest.test_minibatching_node_creation":
        "minibatching over hosts needs their network service",
    "matmul_grad:TpuSparseDenseMatmulGradTest."
    "test_tpu_sparse_dense_matmul_grad_sharded_two_tables_stacked":
        "the case writes into an array of JAX, which is read-only on a CPU",
    "matmul_grad:TpuSparseDenseMatmulGradTest."
    "test_tpu_sparse_dense_matmul_grad_with_learning_rate_function": ROUNDING,
    "matmul_grad:TpuSparseDenseMatmulGradTest."
    "test_tpu_sparse_dense_matmul_grad_with_learning_rate_object": ROUNDING,
    "matmul_grad:TpuSparseDenseMatmulGradTest.test_custom_optimizer_adagrad": PROGRAM,
    "matmul_grad:TpuSparseDenseMatmulGradTest.test_custom_optimizer_stacked": PROGRAM,
    "matmul_grad:TpuSparseDenseMatmulGradTest.test_sparse_dense_matmul_one_chip_unsharded0": PROGRAM,
    "matmul_grad:TpuSparseDenseMatmulGradTest.test_sparse_dense_matmul_one_chip_unsharded1": PROGRAM,
}


class _Strategy(enum.Enum):
    MOD = 1
    DIV = 2


def _run(features: Any, feature_weights: Any, feature_specs: Any, local_device_count: int,
         global_device_count: int, *, num_sc_per_device: int,
         sharding_strategy: Any = _Strategy.MOD, has_leading_dimension: bool = False,
         allow_id_dropping: bool = False, batch_number: int = 0, enable_minibatching: bool = False,
         all_reduce_interface: Any = None) -> Any:
    """Do what the compiled function does, by ours."""
    found, stats = ours.preprocess_sparse_dense_matmul_input(
        list(features), None if feature_weights is None else list(feature_weights),
        list(feature_specs), local_device_count, global_device_count,
        num_sc_per_device=num_sc_per_device, sharding_strategy=getattr(sharding_strategy, "name", sharding_strategy),
        has_leading_dimension=has_leading_dimension, allow_id_dropping=allow_id_dropping,
        enable_minibatching=enable_minibatching, all_reduce_interface=all_reduce_interface,
        check_tables=False)  # some cases have ids beyond their table
    compiled = types.SimpleNamespace(
        max_ids_per_partition=stats.max_ids_per_partition,
        max_unique_ids_per_partition=stats.max_unique_ids_per_partition,
        required_buffer_sizes=stats.required_buffer_size_per_sc,
        dropped_id_count=stats.id_drop_counters)
    return (*found.sparse_dense_matmul_input, int(found.num_minibatches.reshape(-1)[0]), compiled)


def _run_coordinates(indices: Any, values: Any, dense_shapes: Any, feature_specs: Any,
                     local_device_count: int, global_device_count: int, **options: Any) -> Any:
    features = [rows_of_coordinates(*one)
                for one in zip(indices, values, dense_shapes, strict=True)]
    return _run(features, None, feature_specs, local_device_count, global_device_count, **options)


def _make_compiled(name: str) -> types.ModuleType:
    module = types.ModuleType(name)
    module.__dict__.update(
        ShardingStrategy=_Strategy, AllReduceInterface=object, MinibatchingNode=object,
        SparseDenseMatmulInputStats=object, preprocess_sparse_dense_matmul_input=_run,
        preprocess_sparse_dense_matmul_sparse_coo_input=_run_coordinates,
        **{name: getattr(sizes, name) for name in (
            "compute_row_pointers_size_per_device", "compute_theoretical_max_coo_buffer_size",
            "compute_coo_buffer_size_per_device")})
    return module


def _make_package(name: str, path: pathlib.Path) -> types.ModuleType:
    """Make a package without running its __init__, which asks for what is not installed."""
    module = types.ModuleType(name)
    module.__path__ = [str(path)]
    return module


def _stand_ins(folder: str) -> dict[str, types.ModuleType]:
    root = pathlib.Path(folder, "jax-tpu-embedding", "jax_tpu_embedding")
    made: dict[str, types.ModuleType] = {}
    for name in ("", ".sparsecore", ".sparsecore.lib", ".sparsecore.lib.nn", ".sparsecore.lib.core",
                 ".sparsecore.lib.nn.tests", ".sparsecore.lib.core.tests", ".sparsecore.lib.fdo",
                 ".sparsecore.lib.core.primitives", ".sparsecore.utils"):
        whole = "jax_tpu_embedding" + name
        made[whole] = _make_package(whole, root.joinpath(*name.split(".")[1:]))
    compiled = f"{LIBRARY}.core.pybind_input_preprocessing"
    made[compiled] = _make_compiled(compiled)
    for name in (f"{LIBRARY}.proto", f"{LIBRARY}.proto.embedding_spec_pb2", "portpicker",
                 "jax_tpu_embedding.sparsecore.lib.nn.embedding_proto_utils"):
        made[name] = mock.MagicMock(name=name)
    return made


@contextmanager
def _installed(made: dict[str, types.ModuleType]) -> Iterator[None]:
    saved = {name: module for name, module in sys.modules.items()
             if name.split(".")[0] == "jax_tpu_embedding"}
    for name in saved:
        del sys.modules[name]
    with mock.patch.dict(sys.modules, made):
        yield


def _put_ours(embedding: Any, utils: Any) -> None:
    """Have the module of lookups use ours, and take a CPU for a device of 4 SparseCores."""
    utils.NUM_SC_PER_DEVICE_MAP["cpu"] = 4

    def choose(cores: int | None) -> int:
        return cores or utils.num_sparsecores_per_device(jax.devices()[0])

    def look_up(*args: Any, num_sc_per_device: int | None = None, **options: Any) -> Any:
        return ours.tpu_sparse_dense_matmul(*args, num_sc_per_device=choose(num_sc_per_device),
                                            **options)

    def update(*args: Any, num_sc_per_device: int | None = None, **options: Any) -> Any:
        return ours.tpu_sparse_dense_matmul_grad(*args, num_sc_per_device=choose(num_sc_per_device),
                                                 **options)

    embedding.tpu_sparse_dense_matmul = look_up
    embedding.tpu_sparse_dense_matmul_grad = update


def _load(name: str) -> types.ModuleType:
    text = read(name)
    assert text is not None
    return load_module(f"oracle_{name}", text, JAX_TPU_FILES[name].path)


def _cases() -> list[Any]:
    folder = os.environ.get("EMBENG_ORACLES")
    if not folder or not pathlib.Path(folder, "jax-tpu-embedding").is_dir():
        skip = pytest.mark.skip("the oracle jax-tpu-embedding is not there: EMBENG_ORACLES names no "
                                "folder that has it")
        return [pytest.param(None, id="jax-tpu-embedding", marks=skip)]
    for name in ("embedding", "embedding_spec", "table_stacking"):
        read(name)  # refuses other versions
    jax.config.update("jax_num_cpu_devices", 4)
    importlib.import_module("absl.flags").FLAGS.mark_as_parsed()
    found = []
    with _installed(_stand_ins(folder)):
        _put_ours(importlib.import_module(f"{LIBRARY}.nn.embedding"),
                  importlib.import_module("jax_tpu_embedding.sparsecore.utils.utils"))
        for name in CASES:
            for case in list_cases(_load(name)):
                label = f"{name}:{case.id().split('.', 1)[1]}"
                reason = CANNOT.get(label.split(" (")[0])
                marks = [pytest.mark.xfail(reason=reason, strict=True)] if reason else []
                found.append(pytest.param(case, id=label, marks=marks))
    return found


@pytest.mark.parametrize("case", _cases())
def test_jax_tpu_embedding(case: unittest.TestCase) -> None:
    """Runs one case of theirs."""
    numpy.random.seed(0)
    what, text = run_case(case)
    assert what != "failed", text
    if what == "skipped":
        pytest.skip("the oracle itself skips it: " + text)

# SPDX-License-Identifier: MIT
"""Test files of other projects that are run against this package.

They are not in this tree. EMBENG_ORACLES names a folder that has each below the name of its
project, as it stands in the project's repository at the commit that is named here; a file whose hash
is another one is refused. Without the folder the tests that need them are skipped.
"""
import hashlib
import os
import pathlib
from typing import NamedTuple


class Upstream(NamedTuple):
    """A test file: its project's repository, a commit, its path there, and its SHA-256."""

    repository: str
    commit: str
    path: str
    sha256: str


TORCHREC = "meta-pytorch/torchrec"
TORCHREC_COMMIT = "376cac6ad13c3a6e7fd43cc0fe432abbc7c39f7d"

# Cases, and the modules beside them that they import; all others are stand-ins.
JAX_TPU = "jax-ml/jax-tpu-embedding"
JAX_TPU_COMMIT = "566086da396606ee54df20e2e08c1d64749ae93c"
_JAX_TPU_LIB = "jax_tpu_embedding/sparsecore/lib/"
JAX_TPU_FILES = {name: Upstream(JAX_TPU, JAX_TPU_COMMIT, _JAX_TPU_LIB + path, sha256)
                 for name, path, sha256 in (
    ("preprocess_input", "nn/tests/preprocess_sparse_dense_matmul_input_test.py",
     "c0bc5f3f96ce531304cf97d4ceb1e6db6046a88bc0e328222dccb788e2f4aa57"),
    ("pybind_input", "core/tests/pybind_input_preprocessing_test.py",
     "4fd83d363de5f3aa7208705233590d31e054a010d21e3404fc7bf9db3aff6169"),
    ("sparse_coo_input", "core/tests/sparse_coo_input_preprocessing_test.py",
     "b80e79e032a5d629cc2fc2a9a5e1439b332b835a99adf1e7b76f780c7e8150d2"),
    ("matmul", "nn/tests/tpu_sparse_dense_matmul_test.py",
     "9d00a7eb09ca856b92cefb2bcdea8b8e37764a8427713e6759826ec4a75c428b"),
    ("matmul_grad", "nn/tests/tpu_sparse_dense_matmul_grad_test.py",
     "b63f9533c062c35a2884d95b3d165c223c63d185446e9a7531dbccedfbcb3686"),
    ("embedding", "nn/embedding.py",
     "f31663d371d20133e8efbfb54f447e9065ea748e88fd1df11619af1d9dbb3998"),
    ("embedding_spec", "nn/embedding_spec.py",
     "16f3f105549be7a95d83c64527aa6a3984daecdef2eff0a1ebf2667c3f5a860a"),
    ("table_stacking", "nn/table_stacking.py",
     "b607c3cee58730f7e1bc46ba50f26326e0bbcaffceb143c7678b22c4861e40de"))}

FILES = {
    "embedding_modules": Upstream(
        TORCHREC, TORCHREC_COMMIT, "torchrec/modules/tests/test_embedding_modules.py",
        "70b9cd1999c56a5bfece1f5563d2abf52fff7c8198e2a4c1bf3397ea94daf0a1"),
    "fused_embedding_modules": Upstream(
        TORCHREC, TORCHREC_COMMIT, "torchrec/modules/tests/test_fused_embedding_modules.py",
        "5e01c9e404bb419a8d586c09d0fe26fcef73109ac11ed6e0a5311e2dad198457"),
}


def read(name: str) -> str | None:
    """Return the text of a file, or None where there is no folder of oracles."""
    folder = os.environ.get("EMBENG_ORACLES")
    if not folder:
        return None
    upstream = {**FILES, **JAX_TPU_FILES}[name]
    path = pathlib.Path(folder, upstream.repository.split("/")[1], upstream.path)
    text = path.read_bytes()
    found = hashlib.sha256(text).hexdigest()
    if found != upstream.sha256:
        raise ValueError(f"{path} has the hash {found}; that of {upstream.commit} is "
                         f"{upstream.sha256}")
    return text.decode()

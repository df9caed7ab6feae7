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

# Cases, and modules that they import. These import others, so the folder has all of
# jax_tpu_embedding/ as it stands at this commit; what is compiled there has stand-ins.
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

# TensorFlow 2.21.0's files, as a copy of its repository has them at this commit.
TENSORFLOW = "theIArchitecture/tensorflow"
TENSORFLOW_COMMIT = "802a41cfb1e74aea250c1d872ac1df502ceb1424"
TENSORFLOW_FOLDER = "tensorflow/python/tpu/"
TENSORFLOW_HASHES = {
    "tests/tpu_embedding_base_test.py":
        "5b7a5e7f0651fd3f406131573a129b7ea233a4fe3a00b5c0bd0e1543109a47c5",
    "tests/tpu_embedding_v2_correctness_base_test.py":
        "019b7cda9ca8f077e873463ad049665928dd76a9d9798fc72b6326362e50f3b9",
    "tests/tpu_embedding_v1_checkpoint_test.py":
        "0e7560a194f841a88fc6379418054e60250715f433b8c6dd3c04637c229b9589",
    "tests/tpu_embedding_v1_correctness_test.py":
        "b6038834430aece9e247186274af1d6c5f3d9faa08329f5e2fa3769a4e1b912c",
    "tests/tpu_embedding_v2_checkpoint_test.py":
        "811116100493c662bd22d7778be987e1e10bf4fdae2787843e60302f4f124120",
    "tests/tpu_embedding_v2_correctness_dense_lookup_test.py":
        "3f6e3e87552f6d281283fa65081d93deca11dfef1c70944eab36e8b1f26d8a49",
    "tests/tpu_embedding_v2_correctness_hd_ragged_forward_test.py":
        "1d53004f1035ae9f832bb700c846a23207735a21b65fa9fb7399f2e877097bd7",
    "tests/tpu_embedding_v2_correctness_hd_ragged_training_test.py":
        "aa3803e5d2f6619a76ac6847e10ce26c0aa8ad2cf049877836155d6409bfa733",
    "tests/tpu_embedding_v2_correctness_hd_sparse_forward_test.py":
        "28380d1b29effd867a64d068f86179b464a754b014401c5e2259499a2e7a2777",
    "tests/tpu_embedding_v2_correctness_hd_sparse_training_test.py":
        "344157f10e1074019458b46ac504d6c35c6d4bbb44c0ce412a3817e3c444e481",
    "tests/tpu_embedding_v2_correctness_ragged_forward_test.py":
        "f2be0ac60a8167ec691a732aa21f4e16ce810cccf72802c877748f00e2b71345",
    "tests/tpu_embedding_v2_correctness_ragged_training_test.py":
        "1ac1c08948901e438511b32a5d992cddad002cc08a0ca391fa4723a68dc9afc5",
    "tests/tpu_embedding_v2_correctness_sequence_feature_test.py":
        "9d693d0ae085cc24cb0996c8a12904962fac2d6a3b0e0d0f13ce993304ffbedd",
    "tests/tpu_embedding_v2_correctness_sparse_forward_test.py":
        "854672a34ae51e28ef35fe5ab7668d34e2681d6586714f8f9e605e63329f783e",
    "tests/tpu_embedding_v2_correctness_sparse_training_test.py":
        "103086c3e092308ca04d2a35ddf186b4aac87f9f776f3b1efeb1a284f34d66ff",
    "tests/tpu_embedding_v2_enqueue_mode_test.py":
        "1ef68df529bb79224bd37199e33142f2d89e4264c6f70fe8f1a678f915efd5f0",
    "tests/tpu_embedding_v2_hd_invalid_input_test.py":
        "12643d657d620880d1d52654a29c219623f26f20738e3c7480004584b7b4c24c",
    "tests/tpu_embedding_v2_hd_valid_input_test.py":
        "b65d0282667e5ea61f92bc209785896a36351cf2c801819d16a353d921193dd5",
    "tests/tpu_embedding_v2_initialization_test.py":
        "c667837037fe06d1b3986815aa0636ed00a8585620f978590773c43a7b79cd15",
    "tests/tpu_embedding_v2_invalid_input_test.py":
        "b5d56ea0349afa88809683c317661262d323940e69f26117cf4f70c2dd51ec24",
    "tests/tpu_embedding_v2_mp_strategy_test.py":
        "bebae238cbb397694159a9ab168aaffb950ddb855288067e06b24d73311f2f27",
    "tests/tpu_embedding_v2_sequence_feature_test.py":
        "a30d0fbe9adc83a4eb5aea7ccab00c8711b1b80c113661d241972b463d891fde",
    "tests/tpu_embedding_v2_valid_input_test.py":
        "b19696a9cdc029499d5da7ab1aa406da5d03451983fe0b128a2fb92b1048405f",
    "tests/tpu_initialization_test.py":
        "90812a441be85fac74c85d2b2ea20450a2e0428e9bfef7dbbc9154d45821f0ff",
    "tpu_embedding_for_serving_test.py":
        "6147fd359f1aade3622ba24163198dea3fe8541789039ab2a6eb6536642d399a",
    "tpu_embedding_v2_utils_test.py":
        "b7d615d2bc1b2a9d27f1af2c95fdcef806fa1735031e1c1dc450d7a2024b9974",
    "tpu_embedding_v3_cpu_ops_test.py":
        "678a2ad24de8925d527581903b25e85478388b609a0f7bf53160b40631b4e926",
}
# The other files import these two as modules.
TENSORFLOW_BASES = ("tpu_embedding_base_test", "tpu_embedding_v2_correctness_base_test")
FILES.update({
    pathlib.Path(path).stem: Upstream(TENSORFLOW, TENSORFLOW_COMMIT, TENSORFLOW_FOLDER + path, sha)
    for path, sha in TENSORFLOW_HASHES.items()})
KERAS_RS = "keras-team/keras-rs"
KERAS_RS_COMMIT = "812d35bf0cb2452e66433e52880eb892a99bb8c9"

# TensorFlow 2.21 has this one no more: it is of TensorFlow's own repository, from before.
FILES["tpu_embedding_v2_optimizer_test"] = Upstream(
    "tensorflow/tensorflow", "4136a3d4910fb3cc7a86f3a6769aa1823ab7bdf1",
    TENSORFLOW_FOLDER + "tests/tpu_embedding_v2_optimizer_test.py",
    "8477fb048e98eb8cb951a4713729d9cf091ea22207b78e65f08c51ef1c8bb176")

KERAS_RS_FILES = {
    "keras_rs_distributed_embedding": Upstream(
        KERAS_RS, KERAS_RS_COMMIT, "keras_rs/src/layers/embedding/distributed_embedding_test.py",
        "c3fb700b777162e86ea8d883dec5f87de5a8cceeb98a6719d759e5b55ebec4a7"),
    "keras_rs_embed_reduce": Upstream(
        KERAS_RS, KERAS_RS_COMMIT, "keras_rs/src/layers/embedding/embed_reduce_test.py",
        "1cb3fbb286d1377a1d8825cd31c3d3ed467ebe0584cdae7c3a79cc46092cc4b1"),
    "keras_rs_test_case": Upstream(  # not a test: their base class
        KERAS_RS, KERAS_RS_COMMIT, "keras_rs/src/testing/test_case.py",
        "b3387ada03e7cc4476de81e002d524f6220580f853ca157a2f87ccef18e50797"),
}

RECOMMENDERS = "tensorflow/recommenders"
FILES["tpu_embedding_layer_test"] = Upstream(
    RECOMMENDERS, "cf1dafa988f223ed5f30b68cb9aed518484b3a1d",
    "tensorflow_recommenders/layers/embedding/tpu_embedding_layer_test.py",
    "ec15a9746617b0c7c4aad1dd81d3d27db170c1bef2ebc8b9385e15030632e643")
FILES.update({**JAX_TPU_FILES, **KERAS_RS_FILES})


def read(name: str) -> str | None:
    """Return the text of a file, or None where there is no folder of oracles."""
    folder = os.environ.get("EMBENG_ORACLES")
    if not folder:
        return None
    upstream = FILES[name]
    path = pathlib.Path(folder, upstream.repository.split("/")[1], upstream.path)
    text = path.read_bytes()
    found = hashlib.sha256(text).hexdigest()
    if found != upstream.sha256:
        raise ValueError(f"{path} has the hash {found}; that of {upstream.commit} is "
                         f"{upstream.sha256}")
    return text.decode()

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
    upstream = FILES[name]
    path = pathlib.Path(folder, upstream.repository.split("/")[1], upstream.path)
    text = path.read_bytes()
    found = hashlib.sha256(text).hexdigest()
    if found != upstream.sha256:
        raise ValueError(f"{path} has the hash {found}; that of {upstream.commit} is "
                         f"{upstream.sha256}")
    return text.decode()

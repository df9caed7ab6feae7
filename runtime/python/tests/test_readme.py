# SPDX-License-Identifier: MIT
"""The Python of README.md and of the package's own page runs as it is pasted."""
import pathlib
import subprocess
import sys

import pytest

TOP = pathlib.Path(__file__).parents[3]
PASTED = {
    "README.md": ("## In Python", "import torch"),
    "runtime/python/README.md": ("## numpy", "import embeng"),
}


def _find_code(page: str, heading: str, first: str) -> str:
    text = (TOP / page).read_text(encoding="utf-8")
    section = text.split(heading, 1)[1].split("\n## ", 1)[0]
    lines = section[section.index("    " + first):].split("\n\n", 1)[0].splitlines()
    return "\n".join(line[4:] for line in lines)


@pytest.mark.parametrize("page", PASTED)
def test_pasted(page: str, tmp_path: pathlib.Path) -> None:
    """Runs the code of a page in a process of its own."""
    code = _find_code(page, *PASTED[page])
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True,
                          text=True, check=False)
    assert done.returncode == 0, done.stderr
    if page == "README.md":
        assert 0 < float(done.stdout) < 0.69, "20 steps should bring the loss below that of chance"

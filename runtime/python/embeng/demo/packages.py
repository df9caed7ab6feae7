# SPDX-License-Identifier: MIT
"""The data of the demo: packages that this machine knows, and the packages that they depend on.

Debian's package lists have most; dpkg's status has those that are installed; the distributions that
Python has installed are there on any machine. Control fields are those of deb-control(5); the
binaries of a source package are one basket, since they share most of their dependencies.
"""
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

STATUS = "/var/lib/dpkg/status"
SOURCES = ("apt", "dpkg", "python")

_FIELD = re.compile(r"^(Package|Source|Section|Maintainer|Installed-Size|Depends|Pre-Depends):"
                    r"[ \t]*(.*(?:\n[ \t].*)*)", re.MULTILINE)
_NAME = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9+._-]*)")


class Basket(NamedTuple):
    """A package: the packages that it needs, and what else is known of it."""

    name: str
    items: tuple[str, ...]
    section: str
    maintainer: str
    size: float  # KiB
    parts: int


class Source(NamedTuple):
    """Baskets, where they came from, and a remark on them."""

    baskets: list[Basket]
    origin: str
    remark: str


class NoDataError(Exception):
    """There is no data of the kind that was asked for."""


def _first_names(field: str) -> Iterator[str]:
    """Yield the first alternative of each dependency of a control field."""
    for entry in field.split(","):
        found = _NAME.match(entry)
        if found:
            yield found[1]


class _Growing:
    """A source package while its binaries are read."""

    def __init__(self) -> None:
        self.items: dict[str, None] = {}
        self.section = self.maintainer = ""
        self.size = 0.0
        self.parts = 0

    def add(self, fields: dict[str, str]) -> None:
        for name in ("Depends", "Pre-Depends"):
            self.items.update(dict.fromkeys(_first_names(fields.get(name, ""))))
        self.section = self.section or fields.get("Section", "")
        self.maintainer = self.maintainer or fields.get("Maintainer", "")
        size = fields.get("Installed-Size", "0")
        self.size += float(size) if size.isdigit() else 0
        self.parts += 1


def parse_control(text: str) -> list[Basket]:
    """Return the source packages of control stanzas, such as those of dpkg's status."""
    growing: dict[str, _Growing] = {}
    for stanza in text.split("\n\n"):
        fields = dict(_FIELD.findall(stanza))
        name = _NAME.match(fields.get("Source") or fields.get("Package", ""))
        if name:
            growing.setdefault(name[1], _Growing()).add(fields)
    return [Basket(name, tuple(g.items), g.section, g.maintainer, g.size, g.parts)
            for name, g in growing.items()]


def _read_apt() -> Source:
    if not shutil.which("apt-cache"):
        raise NoDataError("there is no apt-cache here: this is no Debian, and none that derives "
                          "from it")
    done = subprocess.run(["apt-cache", "dumpavail"], capture_output=True, check=False)
    baskets = parse_control(done.stdout.decode(errors="replace"))
    if done.returncode or not baskets:
        raise NoDataError("apt has no package lists; apt-get update fetches them")
    return Source(baskets, "apt's package lists (apt-cache dumpavail)", "")


def _read_dpkg(path: str = STATUS) -> Source:
    try:
        text = Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise NoDataError(f"{path}: {error.strerror}") from None
    return Source(parse_control(text), f"dpkg's status ({path})",
                  "these are installed packages alone, which is little data")


def _read_python() -> Source:
    """Read the metadata of installed distributions of Python."""
    from importlib import metadata

    baskets = []
    for distribution in metadata.distributions():
        about = distribution.metadata
        items = dict.fromkeys(name[1].lower().replace("_", "-")
                              for name in map(_NAME.match, distribution.requires or []) if name)
        topics = [c for c in about.get_all("Classifier") or [] if c.startswith("Topic ::")]
        files = distribution.files or []
        baskets.append(Basket(str(about["Name"]), tuple(items), topics[0] if topics else "",
                              str(about["Author"] or about["Author-email"] or ""),
                              sum(file.size or 0 for file in files) / 1024, len(files)))
    return Source(baskets, "the metadata of Python's installed distributions",
                  "these are few packages, which is little data")


def read_source(name: str | None) -> Source:
    """Read packages.

    Parameters
    ----------
    name : str or None
        One of SOURCES, or the path of a file of control stanzas. By default the first of SOURCES
        that this machine has.

    Raises
    ------
    NoDataError
        There is none; the sentence says why.
    """
    readers = {"apt": _read_apt, "dpkg": _read_dpkg, "python": _read_python}
    if name is not None:
        return readers[name]() if name in readers else _read_dpkg(name)._replace(
            origin=name, remark="")
    why = []
    for reader in readers.values():
        try:
            found = reader()
        except NoDataError as error:
            why.append(str(error))
            continue
        remark = "; ".join([*why, found.remark] if found.remark else why)
        return found._replace(remark=remark)
    raise NoDataError("; ".join(why))

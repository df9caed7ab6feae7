# SPDX-License-Identifier: MIT
"""Builds that are measured: folders that are there, or revisions of this repository."""
import os
import subprocess

from turns import Failed, call, say

HERE = os.path.dirname(os.path.abspath(__file__))


def revision_of(name):
    """The whole name of a commit of the repository that this file lies in; None: it is none."""
    try:
        return call(["git", "-C", HERE, "rev-parse", "--verify", "--quiet", "--end-of-options",
                     f"{name}^{{commit}}"]).strip()
    except Failed:
        return None


def unpack(revision, folder):
    """The tree of a commit; nothing of the repository is changed."""
    os.makedirs(folder)
    top = call(["git", "-C", HERE, "rev-parse", "--show-toplevel"]).strip()
    with subprocess.Popen(["git", "-C", top, "archive", revision], stdout=subprocess.PIPE) as tree:
        unpacked = subprocess.run(["tar", "-x", "-C", folder], stdin=tree.stdout, check=False)
    if tree.returncode or unpacked.returncode:
        raise Failed(f"{revision}: its tree could not be unpacked into {folder}")


def build(name, revision, scratch):
    """The build folder of the revision that @name is, within @scratch."""
    folder = os.path.join(scratch, revision)
    if not os.path.isdir(folder):
        say(f"building {name}, {revision[:12]}")
        unpack(revision, os.path.join(folder, "source"))
        call(["meson", "setup", os.path.join(folder, "build"), os.path.join(folder, "source")])
        call(["ninja", "-C", os.path.join(folder, "build"), "runtime/embeng"])
    return os.path.join(folder, "build")


def folders(names, scratch):
    """
    Returns a build folder for each name: the folder itself, or one to which the revision is built.
    All revisions are resolved before the first build, which takes minutes: meanwhile HEAD may
    become another commit.
    """
    revisions = [None if os.path.isdir(name) else revision_of(name) for name in names]
    return [build(name, revision, scratch) if revision else name
            for name, revision in zip(names, revisions)]

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Lets each allocation of a verb fail in turn, those of json-c and libc included. Speaks TAP.

usage: test_command.py EMBENG-COMMAND FAIL-NTH-LIBRARY

A verb then fails with one of its exit statuses, or what it wrote is right all the same. It neither
crashes nor hangs, and a folder that it works in has a whole checkpoint. A sample of the failures runs
unless EMBENG_FAIL_NTH_WHOLE is set; EMBENG_TEST_SEED draws it.
"""
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

SAMPLE = 8
SECONDS = 60


class Command:
    """The command, in a folder of its own."""

    def __init__(self, path, library, folder):
        self.path, self.library, self.folder = os.path.abspath(path), os.path.abspath(library), folder
        self.count = folder / "count"

    def run(self, arguments, nth=None):
        """Exit status, output and the number of allocations."""
        environment = dict(os.environ)
        environment.pop("EMBENG_DEVICE", None)
        if nth is not None:
            environment |= {"LD_PRELOAD": self.library, "EMBENG_FAIL_NTH": str(nth),
                            "EMBENG_FAIL_NTH_COUNT": str(self.count)}
        self.count.unlink(missing_ok=True)
        done = subprocess.run([self.path, *arguments], cwd=self.folder, env=environment,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=SECONDS,
                              check=False)
        count = int(self.count.read_text().split()[0]) if self.count.exists() else 0
        return done.returncode, done.stdout, done.stderr, count

    def is_whole(self, folder):
        """Whether all that a folder keeps is whole; a folder without a checkpoint is."""
        if not (self.folder / folder / "index.json").exists():
            return True
        return self.run(["checkpoint", "verify", folder])[0] == 0 and \
            self.run(["checkpoint", "list", folder])[0] == 0


# Each verb, whether it writes into the folder "ck", and whether its output is always the same.
VERBS = {
    "ls": (["checkpoint", "ls", "ck", "--json"], False, True),
    "verify": (["checkpoint", "verify", "ck", "--json"], False, True),
    "list": (["checkpoint", "list", "ck"], False, True),
    "dump": (["checkpoint", "dump", "ck", "items_in", "--names"], False, True),
    "step": (["checkpoint", "step", "ck", "5"], True, True),
    "grow": (["checkpoint", "grow", "ck", "items_in=12", "--json"], True, True),
    "lookup": (["lookup", "ck", "items_in", "milk", "3"], False, True),
    "plan": (["plan", "--checkpoint", "ck", "--json", "-d", "soft:cores=1"], False, False),
    "train": (["train", "baskets.txt", "--resume", "ck", "--epochs", "3", "--json", "-d",
               "soft:cores=1,memory=4M"], True, False),
    "info": (["info", "-d", "soft:cores=1,memory=4M", "--json"], False, False),
}


def try_one(command, name, nth, want):
    """A complaint, or None."""
    arguments, writes, same = VERBS[name]
    if writes:
        shutil.rmtree(command.folder / "ck")
        shutil.copytree(command.folder / "good", command.folder / "ck")
    try:
        code, out, err, _ = command.run(arguments, nth)
    except subprocess.TimeoutExpired:
        return "hangs"
    if code < 0 or code > 11:
        return f"exit status {code}: {err.decode(errors='replace').strip()[-200:]}"
    if code == 0 and same and out != want:
        return f"succeeds with another output: {out[:200]}"
    if code and not out and not err:
        return f"fails with {code} and says nothing"
    if writes and not command.is_whole("ck"):
        return "leaves a checkpoint that is not whole"
    return None


def try_verb(command, name, whole):
    """Complaints about a verb, the failures that were tried, and how many there are."""
    arguments, writes, _ = VERBS[name]
    if writes:
        shutil.rmtree(command.folder / "ck", ignore_errors=True)
        shutil.copytree(command.folder / "good", command.folder / "ck")
    code, want, err, count = command.run(arguments, 0)
    if code or not count:
        return [f"without a failure: exit status {code}, {count} allocations: {err}"], 0, count
    numbers = range(1, count + 1)
    if not whole and count > SAMPLE:
        numbers = sorted(random.sample(numbers, SAMPLE))
    complaints = []
    for nth in numbers:
        complaint = try_one(command, name, nth, want)
        if complaint:
            complaints.append(f"allocation {nth}: {complaint}")
    return complaints, len(numbers), count


def main():
    """Tries each verb."""
    whole = "EMBENG_FAIL_NTH_WHOLE" in os.environ
    seed = int(os.environ.get("EMBENG_TEST_SEED", time.time_ns()))
    random.seed(seed)
    only = sys.argv[3:] or list(VERBS)
    print(f"# seed {seed}\n1..{len(only)}")
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        command = Command(sys.argv[1], sys.argv[2], pathlib.Path(folder))
        (command.folder / "baskets.txt").write_text(
            "milk bread butter jam\nnail screw hammer saw\n" * 60, encoding="ascii")
        code, _, err, _ = command.run(["train", "baskets.txt", "--save", "good", "--epochs", "2",
                                       "-d", "soft:cores=1,memory=4M"])
        if code:
            print(f"Bail out! {err}")
            return 1
        shutil.copytree(command.folder / "good", command.folder / "ck")
        for number, name in enumerate(only, 1):
            complaints, tried, count = try_verb(command, name, whole)
            failed |= bool(complaints)
            for complaint in complaints:
                print(f"# {complaint}")
            print(f"{'not ok' if complaints else 'ok'} {number} - {name}: {tried} of {count} "
                  "allocations failed in turn", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())

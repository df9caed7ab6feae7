#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Shows that the tests in virtual machines catch mistakes that are made in the kernel modules.

usage: mutate_kmod.py SOURCE-ROOT [sample N SEED | NAME...]

The modules are built first, each with one mutation (modules.sh). Then a virtual machine loads one
after the other and runs the tests that the mutation names, until one fails (machine.sh). It is
caught, too, by a complaint of the kernel's, by memory or a module that stays in use, by a machine
that stops and by one that hangs. After the last four the next module gets a machine that is booted
anew. All tests must pass with the unchanged modules first; so must those of a mutation that has a
scene, with the scene alone.
A sample is N of all mutations, chosen by a seed. Speaks TAP. Exit status 0 when every mutation is
caught.
"""
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from typing import NamedTuple

from definitions import read_definitions
from mutate import changes_of, chosen, mutated_files, say, write_files
from mutations_kmod import KMOD_MUTATIONS

HERE = os.path.dirname(os.path.abspath(__file__))
BOOT_S = 900  # until a machine runs its first test: it may have to build, and the host may be busy
FIRST_S = 600  # for a test whose time is not known
REST_S = 90  # for what a machine does around each test, and to notice that a test is late
DRIVER, EMULATOR = "kmod/embeng.ko", "kmod/emulator/embeng_emu.ko"


class Module(NamedTuple):
    """A module that machines load, and the tests that they run on it."""
    ident: str
    target: str
    path: str  # "-" for the one of the build
    tests: tuple


class Verdict(NamedTuple):
    failed: bool
    words: str


class Broken(Exception):
    """Why nothing can be judged."""


def target_of(texts):
    return EMULATOR if any(file.startswith("kmod/emulator/") for file in texts) else DRIVER


def build_modules(root, folder, sources):
    """@sources: ident -> the files that are changed for it. Those that do not build have a log and
    no module."""
    with open(os.path.join(folder, "modules"), "w", encoding="utf-8") as listed:
        for ident, texts in sources.items():
            for file in texts:
                os.makedirs(os.path.dirname(os.path.join(folder, ident, file)), exist_ok=True)
            write_files(os.path.join(folder, ident), texts)
            print(ident, target_of(texts), *texts, file=listed)
    done = subprocess.run([os.path.join(HERE, "modules.sh"), root, folder], stdout=sys.stderr,
                          check=False)
    if done.returncode:
        raise Broken("the modules cannot be built")


def start_reading(stream):
    """A queue of a stream's lines; None at its end."""
    lines = queue.Queue()

    def read():
        for line in stream:
            lines.put(line.rstrip("\n"))
        lines.put(None)
    threading.Thread(target=read, daemon=True).start()
    return lines


class Machine:
    """A virtual machine that works off a list of modules, as far as it comes."""

    def __init__(self, modules, seconds):
        self.modules = {module.ident: module for module in modules}
        self.seconds = seconds
        self.verdicts = {}
        self.running = None

    def patience(self):
        """Seconds until the next verdict."""
        if self.running is None:
            return BOOT_S if not self.verdicts else REST_S
        tests = self.modules[self.running].tests
        return sum(REST_S + (20 + 4 * self.seconds[test] if test in self.seconds else FIRST_S)
                   for test in tests)

    def hear(self, line):
        """Takes a line of machine.sh. Return: True when the patience begins anew."""
        kind, _, rest = line.partition(" ")
        first, _, words = rest.partition(" ")
        if kind == "begin":
            self.running = first
        elif kind == "took" and self.modules[self.running].path == "-":
            self.seconds[words] = int(first)
        elif kind in ("passed", "failed") and first == self.running:
            self.verdicts[first] = Verdict(kind == "failed", words)
            self.running = None
        return kind in ("begin", "passed", "failed")

    def listen(self, lines):
        """Until the machine ends. Yields pairs of an ident and its verdict."""
        until, told = time.monotonic() + self.patience(), 0
        while True:
            try:
                line, ended = lines.get(timeout=max(0, until - time.monotonic())), "stops"
            except queue.Empty:
                line, ended = None, "hangs"
            if line is None and self.running is not None:
                self.verdicts[self.running] = Verdict(True, f"the machine {ended}")
            if line is not None and self.hear(line):
                until = time.monotonic() + self.patience()
            yield from list(self.verdicts.items())[told:]
            told = len(self.verdicts)
            if line is None:
                return

    def work(self, root, folder):
        """Yields pairs of an ident and its verdict."""
        path = os.path.join(folder, "list")
        with open(path, "w", encoding="utf-8") as listed:
            for test, seconds in self.seconds.items():
                print("took", seconds, test, file=listed)
            for module in self.modules.values():
                print("module", module.ident, module.target, module.path, *module.tests,
                      file=listed)
        command = [os.path.join(root, "tests", "vm", "run"), "--timeout", "100000", "--",
                   os.path.join(HERE, "machine.sh"), os.path.join(root, "build"), path]
        log = os.path.join(folder, "machine.log")
        with open(log, "w", encoding="utf-8") as errors, \
                subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=errors, text=True, errors="replace") as machine:
            try:
                yield from self.listen(start_reading(machine.stdout))
            finally:
                machine.terminate()
        if not self.verdicts:
            with open(log, encoding="utf-8", errors="replace") as said:
                raise Broken("the machine does not come to a test:\n" + said.read()[-2000:])


def judge_modules(root, folder, modules):
    """Yields pairs of an ident and its verdict. Ends behind unchanged modules that fail."""
    seconds, left = {}, {module.ident: module for module in modules}
    while left:
        machine = Machine(left.values(), seconds).work(root, folder)
        for ident, verdict in machine:
            yield ident, verdict
            if left.pop(ident).path == "-" and verdict.failed:
                machine.close()
                return


def sources_of(root, wanted):
    """Ident -> files, of each mutation and of each scene."""
    definitions, sources = read_definitions(root), {}
    for number, (mutation, texts) in enumerate(wanted):
        sources[f"m{number}"] = texts
        if mutation.scene:
            sources[f"s{number}"] = mutated_files(root, mutation.scene, definitions)
    return sources


def modules_of(folder, wanted, sources):
    """The unchanged modules, and those that were built."""
    every = dict.fromkeys(test for mutation, _ in wanted for test in mutation.units)
    yield Module("unchanged", DRIVER, "-",
                 tuple(test for test in every
                       if not all(m.scene for m, _ in wanted if test in m.units)))
    for ident, texts in sources.items():
        path = os.path.join(folder, ident + ".ko")
        if os.path.exists(path):
            yield Module(ident, target_of(texts), path, wanted[int(ident[1:])][0].units)


def judge_mutation(folder, number, mutation, verdicts):
    """Returns (caught, words)."""
    verdict, scene = verdicts.get(f"m{number}"), verdicts.get(f"s{number}")
    if verdict is None or (mutation.scene and scene is None):
        with open(os.path.join(folder, f"m{number}.log"), encoding="utf-8") as log:
            return False, "it does not build:\n" + log.read()[-2000:]
    if scene and scene.failed:
        return False, f"its scene fails alone: {scene.words}"
    return verdict.failed, f"caught by {verdict.words}" if verdict.failed else "nothing fails"


def report(folder, wanted, found):
    """Says each result as soon as it is known to be one. Return: True if all are good."""
    verdicts, number, good = {}, 0, True

    def may_say():
        mutation = wanted[number][0]
        idents = [f"m{number}"] + ([f"s{number}"] if mutation.scene else [])
        return all(ident in verdicts or not os.path.exists(os.path.join(folder, ident + ".ko"))
                   for ident in idents)
    for ident, verdict in found:
        verdicts[ident] = verdict
        if ident == "unchanged" and not say(1, not verdict.failed, ident, verdict.words):
            return False
        while number < len(wanted) and "unchanged" in verdicts and may_say():
            mutation = wanted[number][0]
            caught, words = judge_mutation(folder, number, mutation, verdicts)
            good &= say(number + 2, caught, mutation.name, words)
            number += 1
    return good and number == len(wanted)


def main():
    root = os.path.abspath(sys.argv[1])
    wanted = changes_of(root, chosen(sys.argv[2:], KMOD_MUTATIONS))
    sources = sources_of(root, wanted)
    print(f"TAP version 13\n1..{len(wanted) + 1}", flush=True)
    with tempfile.TemporaryDirectory(prefix="embeng-mutation-") as folder:
        try:
            build_modules(root, folder, sources)
            modules = list(modules_of(folder, wanted, sources))
            return 0 if report(folder, wanted, judge_modules(root, folder, modules)) else 1
        except Broken as failure:
            say(1, False, "unchanged", str(failure))
            return 1


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Shows that the tests catch mistakes: makes named ones in a copy of the engine.

usage: mutate.py SOURCE-ROOT [places | GROUP | sample N SEED | NAME...]

Each mutation replaces one place of the source: a text in the function, macro or type that it names,
in whatever file that is. The text must be there exactly once, so that a mutation that no longer
applies fails, by its name, instead of passing silently. The copy is built, and tests run until
something fails: then it is caught. They are the unit tests that the mutation names, and then the
vectors.
As many copies as there are processors. Speaks TAP. Exit status 0 when the unchanged copy passes
and every mutation is caught.
A group is engine, queue, boot, library, session or checkpoint, each a list of a mutations_*.py.
With "places" nothing is built: each mutation is made in memory and must change its file, at its
place alone, those of mutate_kmod.py too. A sample is N of all mutations, chosen by a seed.
"""
import collections
import concurrent.futures
import contextlib
import itertools
import os
import pathlib
import queue
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from typing import NamedTuple

from definitions import read_definitions
from mutations import MUTATIONS
from mutations_api import LIBRARY_MUTATIONS
from mutations_boot import BOOT_MUTATIONS
from mutations_checkpoint import CHECKPOINT_MUTATIONS
from mutations_kmod import KMOD_MUTATIONS
from mutations_library import SESSION_MUTATIONS
from mutations_queue import QUEUE_MUTATIONS

COPIED = ["meson.build", "meson_options.txt", "uapi", "engine", "firmware-loader", "runtime",
          "docs", "scripts", "tests"]
GROUPS = {"engine": MUTATIONS, "queue": QUEUE_MUTATIONS, "boot": BOOT_MUTATIONS,
          "library": LIBRARY_MUTATIONS, "session": SESSION_MUTATIONS,
          "checkpoint": CHECKPOINT_MUTATIONS}
EVERY = [mutation for group in GROUPS.values() for mutation in group]
PATIENCE_S = 900  # with what is not mutated, on a machine that is busy
HANG_FACTOR, HANG_S = 10, 15  # a mutated test hangs that takes so many times as long, and more


def copy_tree(root, to):
    for name in COPIED:
        path = os.path.join(root, name)
        if os.path.isdir(path):
            shutil.copytree(path, os.path.join(to, name),
                            ignore=shutil.ignore_patterns("__pycache__", "*.o"))
        elif os.path.exists(path):
            shutil.copy(path, to)


def environment(tree, timeout):
    """A test that fails leaves its folders behind: they go with the one that @tree is in."""
    return {**os.environ, "EMBENG_SOURCE_ROOT": tree, "TMPDIR": os.path.dirname(tree),
            "CK_DEFAULT_TIMEOUT": str(timeout)}


def run(command, tree, timeout=PATIENCE_S):
    """Exit status and output; None for one that ran too long."""
    try:
        done = subprocess.run(command, cwd=tree, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, errors="replace", timeout=timeout, check=False,
                              env=environment(tree, timeout))
    except subprocess.TimeoutExpired:
        return None, ""
    return done.returncode, done.stdout


TOLD_LINES = 20  # a failing test's last lines


def run_vectors(command, tree, timeout):
    """As run(), but it ends at the first vector that differs, and the output at that vector.

    Nothing but conform itself has its output open, so that this ends when it does.
    """
    late, lines = threading.Event(), collections.deque(maxlen=TOLD_LINES)
    with subprocess.Popen(command, cwd=tree, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace", env=environment(tree, timeout)) as conform:
        timer = threading.Timer(timeout, lambda: (late.set(), conform.kill()))
        timer.daemon = True
        timer.start()
        for line in conform.stdout:
            lines.append(line)
            if line.startswith("not ok"):
                lines.extend(itertools.takewhile(lambda text: text[0] == "#", conform.stdout))
                conform.kill()
        status = conform.wait()
        timer.cancel()
    return None if late.is_set() else status, "".join(lines)


class BuildFailed(Exception):
    """A build failed; the message is its output."""


def build(tree, target):
    status, output = run(["ninja", "-C", "build", target], tree, PATIENCE_S)
    if status != 0:
        raise BuildFailed("it does not build:\n" + output[-2000:])


VECTORS = "vectors"
COMMANDS = {VECTORS: ["build/runtime/embeng", "conform", "-d", "soft", "--cores", "3",
                      "tests/vectors"]}


THREADS = pathlib.Path(__file__).resolve().parents[1] / "thread"


def command_of(test):
    folder = "thread" if (THREADS / f"{test}.c").exists() else "unit"
    return COMMANDS.get(test, [f"build/tests/{folder}/{test}"])


def build_test(tree, test):
    build(tree, command_of(test)[0].removeprefix("build/"))


class Failure(NamedTuple):
    """A test that failed, and the end of what it printed."""
    test: str
    output: str


def run_test(tree, test, timeout):
    """Builds and runs a test. Returns None when it passes."""
    build_test(tree, test)
    do = run_vectors if test == VECTORS else run
    status, output = do(command_of(test), tree, timeout)
    if status == 0:
        return None
    told = f"{test} ({'hang' if status is None else f'exit status {status}'})"
    return Failure(told, "\n".join(output.splitlines()[-TOLD_LINES:]))


def tests_of(mutation):
    return [*mutation.units, VECTORS]


@contextlib.contextmanager
def one_of(trees):
    """A copy that nobody else uses meanwhile."""
    tree = trees.get()
    try:
        yield tree
    finally:
        trees.put(tree)


def text_of(path):
    with open(path, encoding="utf-8") as source:
        return source.read()


class Misplaced(Exception):
    """Why a mutation has no place."""


class Place(NamedTuple):
    """A text in a file, relative to the root: at which character it begins, and its length."""
    file: str
    at: int
    length: int


def pattern_of(mutation):
    """Finds a mutation's text however its lines are broken and indented."""
    return re.compile(r"[\s\\]+".join(map(re.escape, mutation.old.replace("\\\n", " ").split())))


def place_of(mutation, definitions):
    """The one place of a mutation; Misplaced when there is none, or another one."""
    named = definitions.get(mutation.where, [])
    if not named:
        raise Misplaced(f"nothing is named {mutation.where}, where it should be")
    pattern = pattern_of(mutation)
    found = [(one, match) for one in named for match in pattern.finditer(one.text)]
    if len(found) != 1:
        files = ", ".join(sorted({definition.file for definition in named}))
        raise Misplaced(
            f"its place in {mutation.where} ({files}) is there {len(found)} times, not once")
    holder, match = found[0]
    return Place(holder.file, holder.start + match.start(), len(match.group()))


def mutated(text, place, mutation):
    """The text of a file with the mutation made."""
    end = place.at + place.length
    if not pattern_of(mutation).fullmatch(text, place.at, end) or mutation.new == mutation.old:
        raise Misplaced(f"it changes nothing in {place.file}")
    return text[:place.at] + mutation.new + text[end:]


def mutated_files(root, edits, definitions):
    """File -> its text with the edits made, for each file that they change."""
    texts = {}
    placed = [(edit, place_of(edit, definitions)) for edit in edits]
    # From behind, so that the places in front stay where they are.
    for edit, place in sorted(placed, key=lambda pair: pair[1], reverse=True):
        text = texts.get(place.file) or text_of(os.path.join(root, place.file))
        texts[place.file] = mutated(text, place, edit)
    return texts


def edits_of(mutation):
    return [mutation, *mutation.also]


def write_files(root, texts):
    for file, text in texts.items():
        with open(os.path.join(root, file), "w", encoding="utf-8") as source:
            source.write(text)


def first_failing(tree, tests, limits):
    return next(filter(None, (run_test(tree, test, limits[test]) for test in tests)), None)


def mutate(trees, mutation, texts, limits):
    """Returns (caught, words). @texts: the files it changes. @limits: seconds of each test."""
    with one_of(trees) as tree:
        kept = {file: text_of(os.path.join(tree, file)) for file in texts}
        try:
            write_files(tree, texts)
            caught = first_failing(tree, tests_of(mutation), limits)
            return caught is not None, f"caught by {caught.test}" if caught else "nothing fails"
        except BuildFailed as failure:
            return False, str(failure)
        finally:
            write_files(tree, kept)


def say(number, passed, name, words):
    print(f"{'ok' if passed else 'not ok'} {number} - {name}", flush=True)
    for line in words.splitlines():
        print(f"# {line}", flush=True)
    return passed


def prepare(root, tree):
    """Makes a copy of the sources and configures it. Returns the error's text, or None."""
    os.mkdir(tree)
    copy_tree(root, tree)
    status, output = run(["meson", "setup", "build", "-Doptimization=0", "-Ddebug=false",
                          "-Dwerror=false"], tree)
    return None if status == 0 else output[-2000:]


def unchanged(trees, test):
    """Runs a test without a mutation. Returns its failure, or None, and the seconds it took."""
    with one_of(trees) as tree:
        try:
            build_test(tree, test)
            started = time.monotonic()
            failure = run_test(tree, test, PATIENCE_S)
            seconds = time.monotonic() - started
            return f"{failure.test}\n{failure.output}" if failure else None, seconds
        except BuildFailed as failure:
            return str(failure), 0


def limits_of(trees, pool, tests):
    """Runs all tests without a mutation. Returns the first failure, or None, and the seconds that
    each test may take."""
    results = list(pool.map(lambda test: unchanged(trees, test), tests))
    failing = next((words for words, _ in results if words), None)
    return failing, {test: HANG_S + HANG_FACTOR * s for test, (_, s) in zip(tests, results)}


def chosen(words, every):
    """The mutations of a group, or those of these names, or all."""
    if len(words) == 1 and words[0] in GROUPS:
        return GROUPS[words[0]]
    if len(words) == 3 and words[0] == "sample":
        return random.Random(int(words[2])).sample(every, int(words[1]))
    named = {m.name: m for m in every}
    for word in words:
        if word not in named:
            sys.exit(f"there is no mutation '{word}'")
    return [named[word] for word in words or named]


def check_places(root):
    """Sources move; who moves them learns here, in no time, that a mutation has to follow."""
    every, definitions = EVERY + KMOD_MUTATIONS, read_definitions(root)
    print(f"TAP version 13\n1..{len(every)}", flush=True)
    good = True
    for number, mutation in enumerate(every, 1):
        try:
            mutated_files(root, [*edits_of(mutation), *mutation.scene], definitions)
            good &= say(number, True, mutation.name, "")
        except Misplaced as failure:
            good &= say(number, False, mutation.name, str(failure))
    return 0 if good else 1


def changes_of(root, mutations):
    """Pairs of a mutation and the files that it changes, those of one file beside each other."""
    definitions, wrong, found = read_definitions(root), [], []
    for mutation in mutations:
        try:
            edits = [*edits_of(mutation), *mutation.scene]
            found.append((mutation, mutated_files(root, edits, definitions)))
        except Misplaced as failure:
            wrong.append(f"mutation '{mutation.name}': {failure}")
    if wrong:
        sys.exit("\n".join(wrong))
    return sorted(found, key=lambda pair: sorted(pair[1]))


def main():
    root = os.path.abspath(sys.argv[1])
    if sys.argv[2:] == ["places"]:
        return check_places(root)
    # A build takes the last mutation back, too: those of one file share what is compiled.
    wanted = changes_of(root, chosen(sys.argv[2:], EVERY))
    tests = dict.fromkeys(test for m, _ in wanted for test in reversed(tests_of(m)))
    jobs = min(len(os.sched_getaffinity(0)), len(wanted) or 1)
    print(f"TAP version 13\n1..{len(wanted) + 1}", flush=True)
    with tempfile.TemporaryDirectory(prefix="embeng-mutation-") as folder, \
            concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        names = [os.path.join(folder, str(job)) for job in range(jobs)]
        failing = next(filter(None, pool.map(lambda tree: prepare(root, tree), names)), None)
        trees = queue.Queue()
        for name in names:
            trees.put(name)
        if failing is None:
            failing, limits = limits_of(trees, pool, list(tests))
        if not say(1, failing is None, "unchanged", failing or "all pass"):
            return 1
        results = pool.map(lambda pair: mutate(trees, *pair, limits), wanted)
        good = True
        for number, ((mutation, _), (passed, words)) in enumerate(zip(wanted, results), 2):
            good &= say(number, passed, mutation.name, words)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

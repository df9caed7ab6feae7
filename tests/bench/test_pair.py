#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests the commands that tests/bench/pair calls, its comparison and its exit status. The builds
are stand-ins, which print times that the test chooses.

usage: test_pair.py EMBENG-COMMAND
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
PAIR = os.path.join(HERE, "pair")
EMBENG = ""

# A stand-in for a build's command. Call n prints the n-th time of the file "times" beside it.
STAND_IN = """#!/usr/bin/env python3
import json, os, sys
here = os.path.dirname(os.path.abspath(__file__))
times = json.load(open(os.path.join(here, "times")))
with open(os.path.join(here, "..", "..", "calls"), "a+") as calls:
    calls.write(" ".join([os.path.basename(os.path.dirname(here)), *sys.argv[1:]]) + "\\n")
ms = times.pop(0)
json.dump(times, open(os.path.join(here, "times"), "w"))
print(json.dumps({"results": ms and [
    {"workload": "W1", "op": "train", "optimizer": "sgd", "step_ms": {"median": ms},
     "stage_ms": {"check": ms / 200, "lookup": ms / 2, "update": 3}}]}))
"""


# A repository whose command takes, in the n-th revision, n milliseconds.
PROJECT = """project('embeng')
subdir('runtime')
"""
RUNTIME = """custom_target('embeng', input: 'stand_in', output: 'embeng',
  command: ['install', '-m', '755', '@INPUT@', '@OUTPUT@'])
"""
REVISION = """#!/usr/bin/env python3
import json
print(json.dumps({"results": [{"workload": "W1", "op": "fwd", "optimizer": None,
                               "step_ms": {"median": %d}, "stage_ms": {}}]}))
"""


def run(*arguments, command=PAIR):
    return subprocess.run([command, "--busy", *arguments], capture_output=True, text=True)


class Pair(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def build(self, name, times):
        """A build folder whose command takes these times in turn."""
        runtime = os.path.join(self.folder, name, "runtime")
        os.makedirs(runtime)
        with open(os.path.join(runtime, "times"), "w", encoding="ascii") as f:
            json.dump(times, f)
        command = os.path.join(runtime, "embeng")
        with open(command, "w", encoding="ascii") as f:
            f.write(STAND_IN)
        os.chmod(command, 0o755)
        return os.path.join(self.folder, name)

    def pair(self, first, second, *arguments):
        return run(self.build("first", first), self.build("second", second), *arguments)

    def calls(self):
        with open(os.path.join(self.folder, "calls"), encoding="ascii") as f:
            return f.read().splitlines()

    def line(self, done, label):
        """Numbers of the table's line."""
        found = re.search(rf"(?m)^ *{label} +([0-9].*)$", done.stdout.split("FASTER")[1])
        return [float(x) for x in re.findall(r"[0-9.]+", found[1])]

    def test_ratios_are_those_of_the_rounds(self):
        done = self.pair([10, 20, 40], [11, 18, 60], "--rounds", "3")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(self.line(done, "W1 train sgd"), [20, 18, 0.9, 1.1, 1.5, 1, 3])
        self.assertEqual(self.line(done, "lookup"), [10, 9, 0.9, 1.1, 1.5, 1, 3])
        self.assertEqual(self.line(done, "update"), [3, 3, 1, 1, 1, 0, 3])

    def test_short_stages_are_left_out(self):
        self.assertNotIn("check", self.pair([10], [10], "--rounds", "1").stdout)

    def test_the_order_changes_from_round_to_round(self):
        self.pair([1, 1, 1], [1, 1, 1], "--rounds", "3", "--", "--workload", "W4")
        self.assertEqual(self.calls(), [f"{b} bench --workload W4 --json" for b in
                                        ("first", "second", "second", "first", "first", "second")])

    def test_nothing_to_compare(self):
        done = self.pair([0], [0])
        self.assertEqual(done.returncode, 2)
        self.assertIn("pair: these options measure no step", done.stderr)

    def test_a_build_that_is_not_there(self):
        done = run("/nowhere", "/nowhere")
        self.assertEqual(done.returncode, 2)
        self.assertIn("pair: /nowhere/runtime/embeng: No such file", done.stderr)

    def test_an_option_that_embeng_bench_refuses(self):
        build = os.path.dirname(os.path.dirname(EMBENG))
        done = run(build, build, "--", "--op", "frob")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--op takes fwd", done.stderr)

    def test_no_rounds(self):
        self.assertEqual(self.pair([1], [1], "--rounds", "0").returncode, 2)

    def test_the_command_with_itself(self):
        build = os.path.dirname(os.path.dirname(EMBENG))
        done = run(build, build, "--rounds", "1", "--", "--scale", "0.002", "--runs", "5", "--op",
                   "train", "--op", "ring")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for label in ("W1 train adagrad", "W1 ring empty x 1 polled", "W1 ring bag of 20 x 64 waiting"):
            first, second, least, middle, most, faster, rounds = self.line(done, label)
            self.assertGreater(first, 0)
            self.assertEqual((least, most, rounds), (middle, middle, 1))
            if middle != 1:  # printed with three digits, 1.000 is either
                self.assertEqual(faster, middle < 1)
            self.assertAlmostEqual(second / first, middle, delta=0.2 * middle)


class Revisions(unittest.TestCase):
    """In a repository of two commits that has a copy of the script."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.bench = os.path.join(self.folder, "tests", "bench")
        os.makedirs(self.bench)
        for name in ("pair", "builds.py", "turns.py"):
            shutil.copy(os.path.join(HERE, name), self.bench)
        self.write("meson.build", PROJECT)
        self.write("runtime/meson.build", RUNTIME)
        self.git("init", "-q")
        for n in (1, 2):
            self.write("runtime/stand_in", REVISION % n)
            self.git("add", "meson.build", "runtime")
            self.git("-c", "user.name=t", "-c", "user.email=t@t", "commit", "-q", "-m", str(n))

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="ascii") as f:
            f.write(text)

    def git(self, *arguments):
        return subprocess.run(["git", "-C", self.folder, *arguments], check=True,
                              capture_output=True, text=True).stdout

    def pair(self, *arguments):
        return run(*arguments, "--rounds", "1", command=os.path.join(self.bench, "pair"))

    def test_revisions_are_built(self):
        self.write("runtime/stand_in", "what is not committed")
        done = self.pair("HEAD~", "HEAD")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn(f"building HEAD~, {self.git('rev-parse', 'HEAD~')[:12]}\n", done.stdout)
        self.assertRegex(done.stdout, r"W1 fwd +1\.0000 +2\.0000 ms +2\.000")
        self.assertEqual(self.git("worktree", "list").count("\n"), 1)

    def test_what_revisions_name_is_found_out_before_building(self):
        """The first revision's build commits, as someone at work would."""
        commit = (f"git -C {self.folder} -c user.name=t -c user.email=t@t commit -q "
                  "--allow-empty -m 4")
        self.write("runtime/meson.build", RUNTIME + f"run_command({commit.split()}, check: true)\n")
        self.git("-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qam", "3")
        names = [self.git("rev-parse", name)[:12] for name in ("HEAD", "HEAD~")]
        done = self.pair("HEAD", "HEAD~")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn(f"building HEAD, {names[0]}\nbuilding HEAD~, {names[1]}\n", done.stdout)

    def test_one_revision_is_built_once(self):
        done = self.pair("HEAD", "HEAD")
        self.assertEqual(done.returncode, 0)
        self.assertEqual(done.stdout.count("building"), 1)
        self.assertRegex(done.stdout, r"W1 fwd +2\.0000 +2\.0000 ms")

    def test_a_folder_goes_before_a_revision(self):
        os.makedirs(os.path.join(self.folder, "HEAD"))
        done = subprocess.run([os.path.join(self.bench, "pair"), "--busy", "HEAD", "HEAD"],
                              capture_output=True, text=True, cwd=self.folder)
        self.assertEqual(done.returncode, 2)
        self.assertIn("pair: HEAD/runtime/embeng: No such file", done.stderr)

    def test_a_revision_that_does_not_build(self):
        self.write("meson.build", "frob")
        self.git("-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qam", "3")
        done = self.pair("HEAD~", "HEAD")
        self.assertEqual(done.returncode, 2)
        self.assertIn("pair: meson setup", done.stderr)
        self.assertIn("ERROR", done.stderr)


if __name__ == "__main__":
    EMBENG = os.path.abspath(sys.argv.pop(1))
    unittest.main()

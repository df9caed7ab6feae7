#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests the commands that tests/bench/compare calls and repeats, its output and its exit status. A
stand-in for the peer writes inputs as torch_peer.py does, and gives times that the test chooses.

usage: test_compare.py EMBENG-COMMAND
"""
import importlib.machinery
import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
COMPARE = os.path.join(HERE, "compare")
EMBENG = ""

import floors  # noqa: E402
import turns  # noqa: E402


def load_compare():
    loader = importlib.machinery.SourceFileLoader("compare", COMPARE)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("compare", loader))
    loader.exec_module(module)
    return module


compare = load_compare()

STAND_IN = f"""
import array, json, os, sys
sys.dont_write_bytecode = True
sys.path.insert(0, {HERE!r})
import torch_peer
a = torch_peer.parse(sys.argv[1:])
w = torch_peer.scaled(torch_peer.WORKLOADS[a.workload], a.scale)
n = w.samples * w.pool
if a.dump:
    os.makedirs(a.dump)
    for b in range(a.batches):
        for t, rows in enumerate(w.rows):
            ids = array.array("q", [k * 7919 % rows for k in range(n)])
            ids.tofile(open(f"{{a.dump}}/ids_{{b}}_{{t}}.bin", "wb"))
            if w.pooled:
                offsets = array.array("q", range(0, n, w.pool))
                offsets.tofile(open(f"{{a.dump}}/offsets_{{b}}_{{t}}.bin", "wb"))
    floats = array.array("f", [0.5] * (w.dim * (w.samples if w.pooled else n)))
    floats.tofile(open(f"{{a.dump}}/grad.bin", "wb"))
else:
    ms = {{"min": 1.0, "median": 2.0, "max": 3.0}}
    print(json.dumps({{"workload": a.workload, "op": a.op, "optimizer": a.optimizer,
                      "threads": a.threads, "step_ms": ms}}))
"""


def run(*arguments, peer=STAND_IN):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "peer.py")
        with open(path, "w", encoding="ascii") as f:
            f.write(peer)
        return subprocess.run(
            [COMPARE, "--embeng", EMBENG, "--python", sys.executable, "--peer", path, *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)


class Whole(unittest.TestCase):
    def test_all_cases_run_on_the_same_input(self):
        done = run("--scale", "0.002", "--rounds", "1")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for case in floors.all_cases():
            self.assertIn(f"\n{case.title}\n", "\n" + done.stdout)
            for floor in case.floors:
                self.assertRegex(done.stdout, rf"(?m)^{floor.name} .* not judged: scaled$")
        self.assertIn("  peer    W1   fwd ", done.stdout)
        self.assertIn("  embeng  W5   partition weights and statistics", done.stdout)

    def test_a_peer_that_fails(self):
        done = run("--scale", "0.002", "--only", "W1 fwd over", peer="raise SystemExit('broken')")
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, "exit status 1\nbroken")

    def test_a_command_that_is_not_there(self):
        done = run("--scale", "0.002", "--only", "ring", "--embeng", "/nowhere/embeng")
        self.assertEqual(done.returncode, 2)
        self.assertIn("/nowhere/embeng: No such file", done.stderr)

    def test_no_such_case(self):
        done = run("--only", "frob")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("no case has frob", done.stderr)

    def test_a_list_of_all_floors(self):
        done = run("--list")
        self.assertEqual(done.returncode, 0)
        self.assertEqual(len(done.stdout.splitlines()), 34)

    def test_what_to_install(self):
        done = subprocess.run([COMPARE, "--python", "/bin/false", "--embeng", EMBENG],
                              stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("apt-get install python3-torch python3-numpy", done.stderr)

    def test_too_few_runs(self):
        self.assertEqual(run("--runs", "4").returncode, 2)


def result(ms, **more):
    return {"workload": "W1", "op": "fwd", "optimizer": None, "threads": 1,
            "step_ms": {"min": ms, "median": ms, "max": ms}, **more}


class Judgement(unittest.TestCase):
    """Floors and aims are judged on steps that do not run: the test gives their times."""

    case = floors.Case("two over one", "", [floors.Step(True, ["W1"]), floors.Step(False, ["x"])],
                       [floors.Floor("ratio", 2, 3)],
                       lambda steps: {"ratio": floors.ratio(steps), "beside": 0.25})

    def measure(self, ours, warnings=(), case=None, clock=None):
        """Exit's verdict and the text; ours takes these ms in turn, the peer always 6."""
        case = case or self.case
        times, said = iter(ours), []
        with mock.patch.object(compare, "run_peer", lambda a, s: ([result(6)], [])), \
                mock.patch.object(compare, "run_ours",
                                  lambda a, s, f: ([result(next(times))], list(warnings))), \
                mock.patch.object(turns, "wait_for_idle", lambda patience: None), \
                mock.patch.object(compare.time, "monotonic", clock or (lambda: 0)), \
                mock.patch.object(compare, "say", said.append):
            a = compare.parse(["--rounds", "2"])
            good = compare.print_table(a, [case], compare.measure_all(a, [case]))
        return good, "\n".join(said)

    def test_a_floor_that_holds(self):
        good, said = self.measure([2.5, 2.5])
        self.assertTrue(good)
        self.assertRegex(said, r"ratio +2\.400 >= +2\.000 +3\.000  floor holds")
        self.assertEqual(said.count("  peer "), 2)
        self.assertEqual(said.count("  embeng "), 2)

    def test_an_aim_that_is_reached(self):
        good, said = self.measure([2, 2])
        self.assertTrue(good)
        self.assertIn("aim reached", said)

    def test_rounds_are_taken_by_their_median(self):
        good, said = self.measure([1, 3])
        self.assertTrue(good)
        self.assertRegex(said, r"ratio +3\.000")

    def test_a_floor_that_holds_at_the_third_attempt(self):
        good, said = self.measure([4, 4, 4, 4, 3, 3])
        self.assertTrue(good)
        self.assertIn("two over one, attempt 3", said)

    def test_a_floor_that_does_not_hold(self):
        good, said = self.measure([4] * 6)
        self.assertFalse(good)
        self.assertIn("DOES NOT HOLD", said)
        self.assertEqual(said.count("  embeng "), 6)

    def test_what_has_no_floor_is_told_and_never_judged(self):
        good, said = self.measure([2, 2])
        self.assertTrue(good)
        self.assertRegex(said, r"(?m)^beside +0\.250 +no floor$")

    def test_what_has_no_floor_tells_that_something_ran(self):
        _, said = self.measure([2] * 6, warnings=["busy"])
        self.assertRegex(said, r"(?m)^beside +0\.250 +no floor: something else ran$")

    def test_a_disturbed_run_is_repeated_and_never_sure(self):
        good, said = self.measure([2] * 6, warnings=["busy"])
        self.assertFalse(good)
        self.assertIn("NOT SURE", said)
        self.assertEqual(said.count("  warning: busy"), 6)

    def narrow(self, *rooms):
        """The case, where limits leave these ratios in turn."""
        rooms = iter(rooms)
        return self.case._replace(room="room", figures=lambda steps: {
            "ratio": floors.ratio(steps), "room": next(rooms)})

    def test_attempts_below_whose_floor_the_limits_are_do_not_count(self):
        good, said = self.measure([4] * 8 + [2.5, 2.5], case=self.narrow(1.5, 1.75, 1.99, 1.9, 2))
        self.assertTrue(good)
        self.assertIn("two over one, attempt 5", said)
        self.assertIn("  room: 1.750, below the floor of 2.000: the attempt does not count", said)
        self.assertEqual(said.count("does not count"), 4)
        self.assertRegex(said, r"ratio +2\.400 >= +2\.000 +3\.000  floor holds")
        self.assertRegex(said, r"(?m)^room +2\.000 +no floor$")

    def test_an_attempt_does_not_count_either_where_it_held(self):
        good, said = self.measure([2, 2] + [4] * 6, case=self.narrow(1.9, 2.1, 2.1, 2.1))
        self.assertFalse(good)
        self.assertEqual(said.count("does not count"), 1)
        self.assertEqual(said.count("two over one, attempt"), 3)
        self.assertRegex(said, r"ratio +1\.500 .*DOES NOT HOLD")

    def test_attempts_count_once_patience_is_over(self):
        seconds = iter([0, 599, 600, 601, 700, 800])
        good, said = self.measure([4] * 10, case=self.narrow(*[1.5] * 5),
                                  clock=lambda: next(seconds))
        self.assertFalse(good)
        self.assertEqual(said.count("does not count"), 2)
        self.assertEqual(said.count("after 600 seconds, too: the attempt counts"), 3)
        self.assertEqual(said.count("two over one, attempt"), 4)
        self.assertIn("DOES NOT HOLD", said)

    def test_processors_that_stay_busy(self):
        with mock.patch.object(turns, "busy_share", lambda: 0.5), \
                self.assertRaisesRegex(turns.Failed, "still 50% busy"):
            turns.wait_for_idle(0)

    def test_idle_processors_are_waited_for(self):
        shares = iter([0.5, 0.06, 0.01])
        with mock.patch.object(turns, "busy_share", lambda: next(shares)):
            turns.wait_for_idle(600)
        self.assertEqual(list(shares), [])


class Figures(unittest.TestCase):
    """By hand."""

    stages = {"check": 1, "lookup": 6, "partition": 2, "update": 1, "ring": 0.5, "copy": 0.5,
              "other": 1}

    def test_shares_of_a_step(self):
        r = result(12, run_ms=[10, 14], stage_ms=self.stages, of_limit=0.9)
        self.assertEqual(floors.guarded(r), 2 / 12)
        figures = floors.lookup_extra([[r], [r], [r]])
        self.assertEqual(figures, {floors.LIMIT_LOOKUP: 0.9, floors.GUARDS: 2 / 12,
                                   floors.DIRECT: 1.2})

    def test_memory(self):
        memory = {"table_bytes": 1000, "buffer_bytes": 30, "engine_bytes": 20}
        r = result(1, memory=memory, of_limit=0.7)
        self.assertEqual(floors.train_extra([[r]]), {floors.LIMIT_TRAIN: 0.7, floors.MEMORY: 0.05})

    def test_two_threads_beside_what_memory_gives_to_them(self):
        case = floors.two_threads("fwd", None, (1.75, 1.95))
        one, two = result(10, limit_ms=8), result(6.25, limit_ms=4, of_limit=0.64)
        self.assertEqual(case.figures([[[one]], [[two]]]),
                         {"W1 fwd, two threads over one": 1.6, "W1 fwd, limits of two over one": 2,
                          "W1 fwd, two threads, share of the limit": 0.64})
        self.assertEqual([case.within_reach({"W1 fwd, limits of two over one": v})
                          for v in (1.74, 1.75)], [False, True])

    def test_partitions_by_the_stream(self):
        limits = {"stream_bytes_per_s": {"median": 2 * floors.JAX_STREAM}}
        self.assertEqual(floors.of_jax(result(1, ids_per_s=276e6, limits=limits)), 3)

    def test_rings(self):
        def ring(command, wait, commands, us):
            return result(1, command=command, wait=wait, commands_per_step=commands,
                          us_per_command={"median": us}, engine_us_per_command=0.25)

        results = [ring("empty", "polled", 1, 0.5), ring("empty", "waiting", 1, 9),
                   ring("bag of 20", "polled", 1, 1.5), ring("bag of 20", "polled", 8, 9)]
        self.assertEqual(floors.ring_figures([[results]]), {floors.EMPTY: 0.5, floors.SMALL: 1.25})

    def test_less_is_better_where_it_is_said(self):
        less = floors.Floor("x", 1.5, 0.6, less=True)
        self.assertEqual([less.holds(v) for v in (1.5, 1.6)], [True, False])
        self.assertEqual([less.reached(v) for v in (0.6, 0.7)], [True, False])
        more = floors.Floor("x", 1.5, 2)
        self.assertEqual([more.holds(v) for v in (1.5, 1.4)], [True, False])
        self.assertEqual([more.reached(v) for v in (2, 1.9)], [True, False])


if __name__ == "__main__":
    EMBENG = os.path.abspath(sys.argv.pop(1))
    unittest.main()

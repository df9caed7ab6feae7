#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Builds and tests embeng in stages, and says where the time went.

usage: check.py [--whole] [STAGE...]

    quick      unit, tree and conform suites of the plain build: what to run between two edits
    plain      every suite of the plain build but mutation, and but one of the two MPIs
    vm         the kernel modules in virtual machines (vm.py)
    mutation   mistakes made on purpose, which tests must catch (tests/mutation), in the engine and
               the library and, in a virtual machine, in the kernel modules
    asan       what has no threads under AddressSanitizer and UBSan
    tsan       what has threads under ThreadSanitizer
    fuzz       every parser under libFuzzer (fuzz.py)
    python     the Python package, as pip builds it (python_package.py)
    distributed  groups of hosts: their tests in the plain build, and jobs over hosts that fail in
               every phase (tests/mpi/distributed.py)

Without a STAGE, all but quick and distributed. Long stages run a sample of what they have; --whole
runs all of it.
WERROR=true in the environment makes a compiler's warning an error.

Ends with one line, "N passed, N failed". Where a program reports its own cases (Check,
TAP) those are what is counted; any other test counts as one. A test that crashes, hangs,
or could not run counts as failed, and so does a build that did not build.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from typing import NamedTuple

import fuzz
import python_package
import sanitized
import vm
from cases import Count, cases

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Build(NamedTuple):
    """A build of meson's and the tests that run in it."""
    title: str
    directory: str
    options: list = []
    sample: list = []  # suites that run without --whole; if empty, all but mutation
    whole: list = []  # suites that run with --whole; if empty, those of sample
    multiplier: int = 1  # sanitizers are slow, and a slow test is not a hung one
    environment: dict = {}
    without: list = []  # suites whose tests a sample leaves out, whatever else they are in


# Groups of hosts take longest. As processes they run under one MPI, and under the other the next day;
# as threads likewise under one of the two sanitizers.
BUILDS = {
    "quick": Build("quick", "build", sample=["unit", "tree", "conform"]),
    "plain": Build("plain", "build", without=["openmpi" if vm.TODAY % 2 else "mpich"]),
    "asan": Build("ASan+UBSan", "build-asan",
                  sanitized.OPTIONS + ["-Db_sanitize=address,undefined"],
                  ["unit", "hostile", "example", "sample"],
                  ["unit", "hostile", "example", "conform", "cli"], 4,
                  {"ASAN_OPTIONS": "detect_leaks=1:strict_string_checks=1:"
                                   "detect_stack_use_after_return=1",
                   "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"},
                  ["thread"] if vm.TODAY % 2 else []),
    "tsan": Build("TSan", "build-tsan", sanitized.OPTIONS + ["-Db_sanitize=thread"],
                  ["thread"], [], 6,
                  {"TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1"},
                  [] if vm.TODAY % 2 else ["unit", "example"]),
}
NAMED = ["quick", "distributed"]  # stages that run only if they are named
# With vm before mutation, the modules that vm builds are those that mutations begin with.
STAGES = ["plain", "vm", "mutation", "asan", "tsan", "fuzz", "python"]
MUTATIONS = {"mutate.py": 5, "mutate_kmod.py": 2}  # how many a sample has
FUZZ_SHARE = 0.1  # a sample makes this share of each target's runs
# Tests of groups of hosts that other suites than mpi have.
DISTRIBUTED = ["hosts", "test_bytes_counted", "test_group_exchange", "test_group_faults",
               "test_hosts_bits", "test_hosts_calls", "test_hosts_checkpoint", "test_hosts_choice",
               "test_hosts_crash", "test_hosts_faults", "test_hosts_grads", "test_hosts_norm",
               "test_hosts_plan", "test_hosts_rows", "test_hosts_spread", "test_hosts_state",
               "test_hosts_waits", "test_place", "test_place_bits", "test_plan_counted",
               "test_relay", "test_spread"]
SLOWEST = 10  # tests that are named at the end


def say(text):
    print(text, flush=True)


def build(stage, suites):
    """Configures once and compiles. True when everything built; what @suites need is left to
    meson test."""
    directory = os.path.join(TOP, stage.directory)
    if not os.path.exists(os.path.join(directory, "build.ninja")):
        shutil.rmtree(directory, ignore_errors=True)
        if subprocess.call(["meson", "setup", directory, sanitized.WERROR, *stage.options],
                           cwd=TOP):
            return False
    return bool(suites) or subprocess.call(["ninja", "-C", directory]) == 0


def fixed_addresses():
    """TSan of gcc 12 cannot place its shadow on hosts that randomize 32 bits of an address."""
    prefix = ["setarch", os.uname().machine, "-R"]
    works = shutil.which("setarch") and not subprocess.call(
        [*prefix, "true"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return prefix if works else []


def run_tests(stage, suites, whole, names=()):
    """Runs these suites of the stage, or tests, and returns meson's record of each test. With @whole,
    loops of which a sanitizer runs a sample are run in full."""
    directory = os.path.join(TOP, stage.directory)
    log = os.path.join(directory, "meson-logs", "testlog.json")
    if os.path.exists(log):
        os.remove(log)  # a run that dies early must not be judged by the one before
    command = ["meson", "test", "-C", directory, "--print-errorlogs", "-t",
               str(stage.multiplier)]
    for suite in suites:
        command += ["--suite", suite]
    for suite in stage.without if not whole and not names else []:
        command += ["--no-suite", suite]
    if not suites and not names:
        command += ["--no-suite", "mutation"]
    command += names
    if "-Db_sanitize=thread" in stage.options:
        command = fixed_addresses() + command
    environment = {**os.environ, **stage.environment,
                   "CK_TIMEOUT_MULTIPLIER": str(stage.multiplier)}
    if whole:
        environment["EMBENG_TEST_WHOLE"] = "1"
    subprocess.call(command, cwd=TOP, env=environment)
    if not os.path.exists(log):
        return []
    with open(log, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def judge(record):
    """One test's cases, with meson's verdict on the whole program as the last word."""
    count = cases(record.get("stdout") or "")
    if record["result"] == "OK":
        return count if count != Count() else Count(passed=1)
    if record["result"] == "SKIP" and count.skipped:
        return count
    return count._replace(failed=max(count.failed, 1))


def run_build(name, whole, slow):
    """Builds, runs the suites, adds (seconds, test) of each to @slow, and counts the cases."""
    stage = BUILDS[name]
    suites = whole and stage.whole or stage.sample
    say(f"\n== {stage.title}: build in {stage.directory}/")
    if not build(stage, suites):
        say(f"FAILED {stage.title}: the build")
        return Count(failed=1)
    say(f"== {stage.title}: test {', '.join(suites) or 'everything'}")
    return count_records(stage, run_tests(stage, suites, whole), slow)


def count_records(stage, records, slow):
    """Counts the cases of meson's records, and names what failed."""
    total = Count()
    for record in records:
        slow.append((record["duration"], f"{stage.title}: {record['name']}"))
        count = judge(record)
        total = total.plus(count)
        if count.failed:
            say(f"FAILED {stage.title}: {record['name']} ({record['result']}, "
                f"{count.failed} of {count.passed + count.failed} cases)")
    if not records:
        say(f"FAILED {stage.title}: no test ran")
        total = Count(failed=1)
    for name in sorted(set(total.skipped)):
        say(f"== {stage.title}: SKIP {name}: this machine lacks it, "
            f"{total.skipped.count(name)} tests")
    return total


def run_fuzz(whole):
    say("\n== fuzz: build in build-fuzz/, run, measure")
    return Count(*fuzz.stage(os.path.join(TOP, "build-fuzz"), 1 if whole else FUZZ_SHARE))


def run_python(whole):
    say("\n== python: the package, in build-python/")
    return Count(*python_package.stage(whole=whole))


def run_mutation_script(script, words):
    say(f"\n== mutation: {script}: {' '.join(words) or 'all'}")
    command = [sys.executable, os.path.join(TOP, "tests", "mutation", script), TOP, *words]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    count = cases(done.stdout)
    if done.returncode or count.failed:
        say(done.stdout)
        return count._replace(failed=max(count.failed, 1))
    return count


def run_mutations(whole):
    """All of them, or a sample that is another one every day."""
    total = Count()
    for script, number in MUTATIONS.items():
        words = [] if whole else ["sample", str(number), time.strftime("%Y%m%d")]
        total = total.plus(run_mutation_script(script, words))
    return total


def run_vm():
    say("\n== virtual machine: the kernel modules, on Debian's kernels")
    return vm.stage()


def run_distributed(slow):
    """Tests of groups of hosts in the plain build, then jobs that fail."""
    stage = BUILDS["plain"]
    say("\n== distributed: build in build/")
    if not build(stage, []):
        say("FAILED distributed: the build")
        return Count(failed=1)
    total = Count()
    for suites, names in (["mpi"], []), ([], DISTRIBUTED):
        total = total.plus(count_records(stage, run_tests(stage, suites, True, names), slow))
    say("== distributed: jobs over hosts")
    command = [sys.executable, os.path.join(TOP, "tests", "mpi", "distributed.py"),
               os.path.join(TOP, stage.directory)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        lines = []
        for line in process.stdout:
            say(line.rstrip())
            lines.append(line)
    count = cases("".join(lines))
    if process.returncode and not count.failed:
        count = count._replace(failed=1)
    return total.plus(count)


def run_stage(name, whole, slow):
    if name in BUILDS:
        return run_build(name, whole, slow)
    return {"fuzz": lambda: run_fuzz(whole), "mutation": lambda: run_mutations(whole),
            "python": lambda: run_python(whole), "vm": run_vm,
            "distributed": lambda: run_distributed(slow)}[name]()


def where_time_went(stages, slow):
    say("\nWhere the time went:")
    for name, count, seconds in stages:
        say(f"  {seconds:6.0f} s  {name}: {count.passed} of {count.passed + count.failed} pass")
    for seconds, name in sorted(slow, reverse=True)[:SLOWEST]:
        say(f"  {seconds:6.0f} s    {name}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--whole", action="store_true", help="no samples, all of each stage")
    parser.add_argument("stages", nargs="*", metavar="STAGE",
                        help=f"{', '.join(NAMED + STAGES)}; without one, {', '.join(STAGES)}")
    given = parser.parse_args()
    for name in given.stages:
        if name not in NAMED + STAGES:
            parser.error(f"there is no stage '{name}'; there are {', '.join(NAMED + STAGES)}")
    total, stages, slow = Count(), [], []
    for name in given.stages or STAGES:
        began = time.monotonic()
        count = run_stage(name, given.whole, slow)
        stages.append((name, count, time.monotonic() - began))
        total = total.plus(count)
    where_time_went(stages, slow)
    say(f"\n{total.passed} passed, {total.failed} failed")
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main())

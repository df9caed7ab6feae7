#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Builds and tests embeng in stages, and says where the time went.

usage: check.py [--whole] [--build] [STAGE...]

    quick      unit, tree and conform suites of the plain build: what to run between two edits
    plain      every suite of the plain build but mutation
    vm         the kernel modules in virtual machines (vm.py)
    mutation   mistakes made on purpose, which tests must catch (tests/mutation), in the engine and
               the library and, in a virtual machine, in the kernel modules
    asan       what has no threads under AddressSanitizer and UBSan
    tsan       what has threads under ThreadSanitizer
    fuzz       every parser under libFuzzer (fuzz.py)
    python     the Python package, as pip builds it (python_package.py)

Without a STAGE, all but quick. Long stages run a sample of what they have; --whole runs all of it.
WERROR=true in the environment makes a compiler's warning an error.

Virtual machines wait for half of their time. Meanwhile this script, called with --build, which runs
no test, makes the builds of asan, tsan and fuzz and the environment of python, at the lowest
priority. A stage makes again what failed there, and tells of it.

Ends with one line, "N passed, N failed". Where a program reports its own cases (Check,
TAP) those are what is counted; any other test counts as one. A test that crashes, hangs,
or could not run counts as failed, and so does a build that did not build.
"""
import argparse
import concurrent.futures
import json
import os
import shutil
import signal
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


BUILDS = {
    "quick": Build("quick", "build", sample=["unit", "tree", "conform"]),
    "plain": Build("plain", "build"),
    "asan": Build("ASan+UBSan", "build-asan",
                  sanitized.OPTIONS + ["-Db_sanitize=address,undefined"],
                  ["unit", "hostile", "example", "sample"],
                  ["unit", "hostile", "example", "conform", "cli"], 4,
                  {"ASAN_OPTIONS": "detect_leaks=1:strict_string_checks=1:"
                                   "detect_stack_use_after_return=1",
                   "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"}),
    "tsan": Build("TSan", "build-tsan", sanitized.OPTIONS + ["-Db_sanitize=thread"],
                  ["thread"], [], 6,
                  {"TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1"}),
}
# The stages that mostly wait for virtual machines stand before those in AHEAD, which are built
# meanwhile.
STAGES = ["plain", "vm", "mutation", "asan", "tsan", "fuzz", "python"]
AHEAD = ["asan", "tsan", "fuzz", "python"]
MUTATIONS = {"mutate.py": 5, "mutate_kmod.py": 2}  # how many a sample has
FUZZ_SHARE = 0.1  # a sample makes this share of each target's runs
SLOWEST = 10  # tests that are named at the end


def say(text):
    print(text, flush=True)


def configure(stage):
    """Configures once. True when that went well."""
    directory = os.path.join(TOP, stage.directory)
    if os.path.exists(os.path.join(directory, "build.ninja")):
        return True
    shutil.rmtree(directory, ignore_errors=True)
    return subprocess.call(["meson", "setup", directory, sanitized.WERROR, *stage.options],
                           cwd=TOP) == 0


def build(stage, suites):
    """Configures and compiles. True when everything built; what @suites need is left to meson
    test."""
    directory = os.path.join(TOP, stage.directory)
    return configure(stage) and (bool(suites) or subprocess.call(["ninja", "-C", directory]) == 0)


def introspect(directory, what):
    return json.loads(subprocess.run(["meson", "introspect", directory, what], check=True,
                                     stdout=subprocess.PIPE).stdout)


def build_for(stage, suites):
    """Configures, and compiles what tests of these suites need."""
    directory = os.path.join(TOP, stage.directory)
    if not configure(stage):
        return
    needed = {target for test in introspect(directory, "--tests") for target in test["depends"]
              if {name.split(":")[-1] for name in test["suite"]} & set(suites)}
    files = [os.path.relpath(name, directory) for target in introspect(directory, "--targets")
             if target["id"] in needed for name in target["filename"]]
    subprocess.call(["ninja", "-C", directory, *files])


def build_stage(name, whole):
    """Makes what the stage would make before its tests."""
    if name in BUILDS:
        stage = BUILDS[name]
        build_for(stage, whole and stage.whole or stage.sample)
    elif name == "fuzz":
        fuzz.build(os.path.join(TOP, "build-fuzz"))
    elif name == "python":
        python_package.prepare()


def start_building(names, whole):
    """Builds these stages at the lowest priority. Returns the process, of a group of its own."""
    command = ["nice", "-n", "19", sys.executable, os.path.abspath(__file__), "--build"]
    return subprocess.Popen([*command, *(["--whole"] if whole else []), *names],
                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL, start_new_session=True)


def end_building(process):
    """Ends it with all that it started, where it has not ended by itself."""
    if process and process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()


def fixed_addresses():
    """TSan of gcc 12 cannot place its shadow on hosts that randomize 32 bits of an address."""
    prefix = ["setarch", os.uname().machine, "-R"]
    works = shutil.which("setarch") and not subprocess.call(
        [*prefix, "true"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return prefix if works else []


def run_tests(stage, suites):
    """Runs these suites of the stage, returns meson's record of each test."""
    directory = os.path.join(TOP, stage.directory)
    log = os.path.join(directory, "meson-logs", "testlog.json")
    if os.path.exists(log):
        os.remove(log)  # a run that dies early must not be judged by the one before
    command = ["meson", "test", "-C", directory, "--print-errorlogs", "-t",
               str(stage.multiplier)]
    for suite in suites:
        command += ["--suite", suite]
    if not suites:
        command += ["--no-suite", "mutation"]
    if "-Db_sanitize=thread" in stage.options:
        command = fixed_addresses() + command
    environment = {**os.environ, **stage.environment,
                   "CK_TIMEOUT_MULTIPLIER": str(stage.multiplier)}
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
    records = run_tests(stage, suites)
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
        say(f"== {stage.title}: SKIP {name}: this processor lacks it, "
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
    """All of them, or a sample that is another one every day. Those in kernel modules go on beside
    the others, as a virtual machine leaves a processor idle."""
    def run(script, number):
        return run_mutation_script(
            script, [] if whole else ["sample", str(number), time.strftime("%Y%m%d")])
    total = Count()
    with concurrent.futures.ThreadPoolExecutor() as pool:
        for count in pool.map(run, MUTATIONS, MUTATIONS.values()):
            total = total.plus(count)
    return total


def run_vm():
    say("\n== virtual machine: the kernel modules, on Debian's kernels")
    return vm.stage()


def run_stage(name, whole, slow):
    if name in BUILDS:
        return run_build(name, whole, slow)
    return {"fuzz": lambda: run_fuzz(whole), "mutation": lambda: run_mutations(whole),
            "python": lambda: run_python(whole), "vm": run_vm}[name]()


def where_time_went(stages, slow):
    say("\nWhere the time went:")
    for name, count, seconds in stages:
        say(f"  {seconds:6.0f} s  {name}: {count.passed} of {count.passed + count.failed} pass")
    for seconds, name in sorted(slow, reverse=True)[:SLOWEST]:
        say(f"  {seconds:6.0f} s    {name}")


def run_stages(names, whole):
    """Returns (name, count, seconds) of each, and (seconds, name) of each test of a build."""
    stages, slow, ahead = [], [], None
    try:
        for place, name in enumerate(names):
            began = time.monotonic()
            later = [other for other in names[place + 1:] if other in AHEAD]
            if name == "vm" and later:
                ahead = start_building(later, whole)
            elif name in AHEAD and ahead:
                ahead.wait()
            count = run_stage(name, whole, slow)
            stages.append((name, count, time.monotonic() - began))
    finally:
        end_building(ahead)
    return stages, slow


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--whole", action="store_true", help="no samples, all of each stage")
    parser.add_argument("--build", action="store_true", help="build what the stages need, no more")
    parser.add_argument("stages", nargs="*", metavar="STAGE",
                        help=f"quick, {', '.join(STAGES)}; without one, all but quick")
    given = parser.parse_args()
    for name in given.stages:
        if name not in [*BUILDS, *STAGES]:
            parser.error(f"there is no stage '{name}'; there are quick, {', '.join(STAGES)}")
    names = given.stages or STAGES
    if given.build:
        for name in names:
            build_stage(name, given.whole)
        return 0
    stages, slow = run_stages(names, given.whole)
    total = Count()
    for _, count, _ in stages:
        total = total.plus(count)
    where_time_went(stages, slow)
    say(f"\n{total.passed} passed, {total.failed} failed")
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main())

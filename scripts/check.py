#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Builds and tests embeng: plain, under ASan+UBSan, under TSan, fuzzed (fuzz.py), and the
kernel modules in a virtual machine (vm.py).

Ends with one line, "N passed, N failed". Where a program reports its own cases (Check,
TAP) those are what is counted; any other test counts as one. A test that crashes, hangs,
or could not run counts as failed, and so does a build that did not build.
"""
import json
import os
import shutil
import subprocess
import sys
import time
from typing import NamedTuple

import fuzz
import sanitized
import vm
from cases import Count, cases

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Stage(NamedTuple):
    title: str
    directory: str
    options: list
    suites: list  # empty: all
    multiplier: int  # sanitizers are slow, and a slow test is not a hung one
    environment: dict


STAGES = [
    Stage("plain", "build", [], [], 1, {}),
    Stage("ASan+UBSan", "build-asan", sanitized.OPTIONS + ["-Db_sanitize=address,undefined"],
          ["unit", "hostile", "conform", "example", "cli"], 4,
          {"ASAN_OPTIONS": "detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1",
           "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"}),
    Stage("TSan", "build-tsan", sanitized.OPTIONS + ["-Db_sanitize=thread"],
          ["thread"], 6, {"TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1"}),
]


def say(text):
    print(text, flush=True)


def build(stage):
    """Configures once and compiles. True when everything built; what a stage's suites need is
    left to meson test."""
    directory = os.path.join(TOP, stage.directory)
    if not os.path.exists(os.path.join(directory, "build.ninja")):
        shutil.rmtree(directory, ignore_errors=True)
        if subprocess.call(["meson", "setup", directory, *stage.options], cwd=TOP):
            return False
    return bool(stage.suites) or subprocess.call(["ninja", "-C", directory]) == 0


def fixed_addresses():
    """TSan of gcc 12 cannot place its shadow on hosts that randomize 32 bits of an address."""
    prefix = ["setarch", os.uname().machine, "-R"]
    works = shutil.which("setarch") and not subprocess.call(
        [*prefix, "true"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return prefix if works else []


def run_tests(stage):
    """Runs the stage's suites, returns meson's record of each test."""
    directory = os.path.join(TOP, stage.directory)
    log = os.path.join(directory, "meson-logs", "testlog.json")
    if os.path.exists(log):
        os.remove(log)  # a run that dies early must not be judged by the one before
    command = ["meson", "test", "-C", directory, "--print-errorlogs", "-t",
               str(stage.multiplier)]
    for suite in stage.suites:
        command += ["--suite", suite]
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


def run_stage(stage):
    say(f"\n== {stage.title}: build in {stage.directory}/")
    if not build(stage):
        say(f"== {stage.title}: the build failed")
        return Count(failed=1)
    say(f"== {stage.title}: test {', '.join(stage.suites) or 'everything'}")
    records = run_tests(stage)
    total = Count()
    for record in records:
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


def run_fuzz():
    say("\n== fuzz: build in build-fuzz/, run, measure")
    return Count(*fuzz.stage(os.path.join(TOP, "build-fuzz")))


def run_vm():
    say("\n== virtual machine: the kernel modules, on Debian's kernel")
    return vm.stage()


def timed(title, work, *given):
    began = time.monotonic()
    total = work(*given)
    say(f"== {title}: {total.passed} of {total.passed + total.failed} cases pass, "
        f"{time.monotonic() - began:.0f} s")
    return total


def main():
    total = Count()
    for stage in STAGES:
        total = total.plus(timed(stage.title, run_stage, stage))
    total = total.plus(timed("fuzz", run_fuzz)).plus(timed("virtual machine", run_vm))
    say(f"\n{total.passed} passed, {total.failed} failed")
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main())

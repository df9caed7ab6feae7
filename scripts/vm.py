#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests the kernel modules: each script of tests/vm in a virtual machine of its own.

usage: vm.py [--kernel NAME]... [--script NAME]... [--jobs N] [ROW...]

A row of the matrix is a machine and a way to load the emulator; without a name, all of them.
Kernels are named as tests/vm/run takes them; without a name, the oldest that is supported (stock)
and the newest that Debian carries. Each script's output and the kernel's messages are kept in
build/vm/KERNEL/ROW/. When all is asked for, the modules' sources, their builds for every kernel
that Debian carries, their installation and the machine are checked too (tests/kmod).
"""
import argparse
import concurrent.futures
import datetime
import glob
import os
import re
import subprocess
import sys
import time
from typing import NamedTuple

from cases import Count, tap

TODAY = datetime.date.today().toordinal()
TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.join(TOP, "build")


class Row(NamedTuple):
    what: str
    machine: list = []  # options of tests/vm/run
    emulator: list = []  # parameters of embeng_emu
    without: dict = {}  # script: why this row has no use for it


OWN = "loads an emulator of its own, with an IOMMU and at the usual place, as in the first row"

# The first is what make check runs, by itself. The others change one thing each.
ROWS = {
    "donor": Row("BARs in shared memory of QEMU's, AVX2 and FMA"),
    "vga": Row("BARs in the half of a standard VGA's memory that text leaves",
               ["--qemu", "-device VGA"], ["donor=1234:1111:0:0x800000"],
               {"chaos": OWN, "hostile": OWN}),
    "memmap": Row("BARs in memory that memmap= keeps free",
                  ["--cmdline", "memmap=16M$0x20000000 pci=no_e820"], ["memmap=16M@0x20000000"],
                  {"chaos": OWN, "hostile": OWN}),
    "portable": Row("a processor without AVX2 and FMA", ["--cpu", "qemu64"]),
    "swiotlb": Row("all DMA through bounce buffers", ["--cmdline", "swiotlb=force"]),
    "iommu": Row("the emulator's own IOMMU", [], ["iommu=1"],
                 {"emulator": "plays the driver by physical addresses, which the IOMMU refuses; "
                              "it loads with one where it means to", "chaos": OWN, "hostile": OWN}),
}

# Scripts that load the emulator themselves take its parameters.
LOADS = ("doctor", "emulator", "firmware", "generation", "sleep", "validate")
# Without an instrumented kernel a script has less to see, and less time for it.
QUICK = ("hostile",)
# The instrumented kernel takes 20 minutes for all vectors, and the rows after the first change how
# memory is reached, not what is computed: there each has its share of them.
SHARED = ("debug", "accel")
# make check gives this script a part of the vectors, another one every time.
PARTED, PARTS = "accel", 4
# Files that a script takes along where the machine's file tree does not outlive it.
CARRIED = {"chaos": ("tests/vm/chaos.sh", "tests/vm/tap.sh", "build/tests/vm/vm-hostile_chaos"),
           "sleep": ("tests/vm/sleep.sh", "tests/vm/tap.sh", "build/tests/vm/vm-sleep")}
# A program of tests/vm that builds what its script needs and machines do not build themselves.
BUILDER = {"generation": "with_generation", "python": "with_python"}
# Around every script on that kernel, by tests/vm/run.
WRAPPERS = ("debug",)
SECONDS = 1200  # tests/vm/run gives the instrumented kernel more
KERNELS = ["stock", "newest"]
# A script waits half of its time, so that three machines share two processors; with four, tests of
# time limits failed.
JOBS = 3
MACHINE_GIB = 1.5  # memory that one virtual machine takes: its own, and QEMU's beside it
# make check leaves this to make check-kernel: it builds the tree a second time.
RARE = ["generation"]
# Every day it runs one of these lines; make check-kernel runs all. "machine" and "install" are scripts of
# tests/kmod, which run on this host. A script that no line has runs every day.
THIRDS = [["accel", "chaos", "hostile"],
          ["doctor", "report", "tools", "validate"],
          ["install", "machine", "python", "record", "sleep", "top"]]
# make check runs the rule for the driver's node on both kernels. It runs these, which take longest, on
# one of them, every other day on the other; make check-kernel runs all on both.
ON_BOTH, BY_TURNS = ["udev"], ["driver", "emulator"]
# These take longest and start first, so that no processor idles beside the last one.
LONGEST = ["driver", "accel", "validate", "top", "emulator", "tools", "chaos"]
# The kernel's own words for what must not happen on its account.
COMPLAINT = re.compile(r"\] (?:WARNING: |BUG: |kernel BUG |Oops|-+\[ cut here).*")
PLAN = re.compile(r"^1\.\.(\d+)$", re.M)


class Result(NamedTuple):
    count: Count
    seconds: float


def scripts():
    """Every script of tests/vm that is run and not sourced."""
    found = [path for path in glob.glob(os.path.join(TOP, "tests", "vm", "*.sh"))
             if os.access(path, os.X_OK)]
    return sorted({os.path.basename(path)[:-3] for path in found} - set(WRAPPERS))


def words(kernel, row, script, sample):
    """Returns the arguments of a script, after the folder of the build, which all scripts get."""
    others = list(ROWS)[1:]
    if sample and script == PARTED:
        return [str(TODAY % PARTS), str(PARTS)]
    if script in LOADS:
        return ROWS[row].emulator
    if (kernel, script) == SHARED and row in others:
        return [str(others.index(row)), str(len(others))]
    return ["quick"] if script in QUICK and kernel != "debug" else []


def machine(kernel, row, script, log, sample):
    """The command that boots the row's machine and runs the script there."""
    files = " ".join(os.path.join(TOP, name) for name in CARRIED.get(script, ()))
    carry = ["--carry", files] if files else []
    builder = [os.path.join(TOP, "tests", "vm", BUILDER[script])] if script in BUILDER else []
    return [*builder, os.path.join(TOP, "tests", "vm", "run"), "--kernel", kernel,
            "--timeout", str(SECONDS), "--log", log, *ROWS[row].machine, *carry, "--",
            os.path.join(TOP, "tests", "vm", script + ".sh"), BUILD,
            *words(kernel, row, script, sample)]


def judge(output, status):
    """The cases, as many as the plan promised, and the exit status as the last word."""
    count = tap(output)
    plan = PLAN.findall(output)
    promised = [str(count.passed + count.failed + len(count.skipped))]
    if plan != promised or (status and not count.failed):
        return count._replace(failed=count.failed + 1)
    return count


def complaints(output, files):
    """Returns what to print of a failed script: each bad case with its output, or the last lines."""
    lines = output.splitlines()
    shown, on = [], False
    for line in lines:
        on = line.startswith("not ok") or (on and line.startswith("#"))
        if on:
            shown.append(line)
    return "\n".join((shown[:60] or lines[-40:]) + [f"  kept: {name}" for name in files])


def of_the_kernel(path):
    """A case that fails when the kernel's log has a complaint; words to show."""
    if not os.path.exists(path):
        return Count(), ""
    with open(path, encoding="utf-8", errors="replace") as log:
        found = COMPLAINT.findall(log.read())
    return Count(failed=1 if found else 0), "".join(f"{line}\n" for line in found[:5])


def record(name, command, path, logs=(), environment=None):
    """Runs a script, keeps what it says in a file, and judges it and the kernel's messages."""
    for log in logs:
        if os.path.exists(log):
            os.remove(log)
    began = time.monotonic()
    done = subprocess.run(command, cwd=TOP, env={**os.environ, **(environment or {})},
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    output = done.stdout.decode(errors="replace")
    with open(path, "w", encoding="utf-8") as file:
        file.write(output)
    complained = [of_the_kernel(log) for log in logs]
    count = judge(output, done.returncode)
    for more, _ in complained:
        count = count.plus(more)
    result = Result(count, time.monotonic() - began)
    verdict = "FAILED" if result.count.failed else "ok"
    print(f"{verdict} {name}: {result.count.passed} pass, {result.count.failed} fail, "
          f"{result.seconds:.0f} s", flush=True)
    if result.count.failed:
        for _, words in complained:
            print(words, end="")
        print(complaints(output, (path, *logs)), flush=True)
    return result


def folder_of(*names):
    folder = os.path.join(BUILD, "vm", *names)
    os.makedirs(folder, exist_ok=True)
    return folder


def run(kernel, row, script, sample=False):
    folder = folder_of(kernel, row)
    path, log = (os.path.join(folder, f"{script}.{end}") for end in ("tap", "dmesg"))
    return record(f"{kernel} {row} {script}", machine(kernel, row, script, log, sample), path,
                  [log], {"EMBENG_EMU": " ".join(ROWS[row].emulator)})


def on_host(kernel, script, *arguments):
    """A script of tests/kmod, which runs on the host."""
    return record(f"{kernel} {script}",
                  [os.path.join(TOP, "tests", "kmod", script + ".sh"), kernel, *arguments],
                  os.path.join(folder_of(kernel), script + ".tap"))


class Plan(NamedTuple):
    """Scripts that run on one kernel."""
    rows: list
    names: list  # scripts in machines
    beside: tuple = ()  # scripts of the host, which take a machine's place
    before: tuple = ()  # scripts of the host that end before the kernel's machines begin


def run_pooled(plans, jobs, sample=False):
    """Runs a plan of each kernel, the machines of a later one beside those of an earlier one, so
    many at a time: {(kernel, row or None, script): Result}. @sample: of what is long, a part."""
    running, results = {}, {}
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for kernel, plan in plans.items():
            results |= {(kernel, None, name): on_host(kernel, name) for name in plan.before}
            machines = [(kernel, row, name) for row in plan.rows for name in plan.names
                        if name not in ROWS[row].without]
            machines.sort(key=lambda m: LONGEST.index(m[2]) if m[2] in LONGEST else len(LONGEST))
            running |= {what: pool.submit(run, *what, sample) for what in machines}
            running |= {(kernel, None, name): pool.submit(on_host, kernel, name)
                        for name in plan.beside}
        return results | {what: future.result() for what, future in running.items()}


def run_all(kernel, rows, names, jobs, beside=()):
    """run_pooled() of one kernel: {(row or None, script): Result}."""
    results = run_pooled({kernel: Plan(rows, names, tuple(beside))}, jobs)
    return {(row, name): result for (_, row, name), result in results.items()}


def total_of(results):
    total = Count()
    for result in results.values():
        total = total.plus(result.count)
    return total


def cell(results, row, name):
    if name in ROWS[row].without:
        return "-"
    count = results[row, name].count
    return f"{count.passed}/{count.passed + count.failed}"


def table(kernel, rows, names, results):
    """Rows by scripts, cases that passed of those there are."""
    print(f"\n{kernel:10}" + "".join(f"{name:>10}" for name in names))
    for row in rows:
        cells = "".join(f"{cell(results, row, name):>10}" for name in names)
        print(f"{row:10}{cells}   {ROWS[row].what}")
    for row in rows:
        for name, why in ROWS[row].without.items():
            if name in names:
                print(f"{row} without {name}: {why}")


def modules(kernel, static, install):
    """Runs the two scripts about the modules on this host, with these arguments, and counts their
    cases: "static" checks and builds them for the kernel, "install" installs them for the stock
    kernel. The builds of the first are what machines load and, if the kernel is stock, what the
    second installs."""
    return on_host(kernel, "static", *static).count.plus(
        on_host("stock", "install", *install).count)


def jobs_for(wanted):
    """As many machines at a time as there is memory for; fewer than wanted are told of."""
    with open("/proc/meminfo", encoding="ascii") as file:
        free = int(re.search(r"MemAvailable: *(\d+)", file.read()).group(1)) / 2**20
    jobs = max(1, min(wanted, 2 * len(os.sched_getaffinity(0)), int(free / MACHINE_GIB)))
    if jobs < wanted:
        print(f"vm.py: {jobs} virtual machine at a time, not {wanted}: {free:.1f} GiB of memory "
              f"are free, {len(os.sched_getaffinity(0))} processors", flush=True)
    return jobs


def stage():
    """For make check, on one kind of BAR: scripts on the stock kernel, without RARE and those whose
    turn it is on the newest or on another day. The newest kernel's modules are built while those of
    the other are checked."""
    first, jobs = next(iter(ROWS)), jobs_for(JOBS)
    on_newest = ON_BOTH + (BY_TURNS if TODAY % 2 else [])
    elsewhere = set(RARE) | set(on_newest) - set(ON_BOTH)
    for day, names in enumerate(THIRDS):
        elsewhere |= set(names) if TODAY % len(THIRDS) != day else set()
    return total_of(run_pooled({
        "newest": Plan([first], on_newest),
        "stock": Plan([first], [name for name in scripts() if name not in elsewhere],
                      tuple({"machine", "install"} - elsewhere), ("static",)),
    }, jobs, True))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--kernel", action="append", help=f"default: {' and '.join(KERNELS)}")
    parser.add_argument("--script", action="append", help="default: all")
    parser.add_argument("--jobs", type=int, default=JOBS, help="machines at a time (%(default)s)")
    parser.add_argument("rows", nargs="*", metavar="ROW", help=", ".join(ROWS))
    given = parser.parse_args()
    for row in given.rows:
        if row not in ROWS:
            parser.error(f"there is no row '{row}'; there are {', '.join(ROWS)}")
    for name in given.script or []:
        if name not in scripts():
            parser.error(f"there is no script '{name}'; there are {', '.join(scripts())}")
    return given


def main():
    given = arguments()
    kernels = given.kernel or KERNELS
    rows, names, jobs = given.rows or list(ROWS), given.script or scripts(), jobs_for(given.jobs)
    total = Count()
    for kernel in kernels:
        beside = []
        if not given.rows and not given.script and kernel in ("stock", "debug"):
            total = total.plus(modules(kernel, ["checkpatch"], ["dkms"]))
            beside = ["machine"]
        results = run_all(kernel, rows, names, jobs, beside)
        table(kernel, rows, names, results)
        total = total.plus(total_of(results))
    if kernels == KERNELS and not given.rows and not given.script:
        total = total.plus(on_host("stock", "builds").count)
        total = total.plus(on_host("stock", "project").count)
    print(f"\n{total.passed} passed, {total.failed} failed")
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main())

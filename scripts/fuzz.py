#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Builds the fuzz targets with clang, runs each for a bounded number of inputs, and looks at
what its corpus covers: of every file that parses what others wrote, LEAST of the lines.

The seed is fixed and printed, so that a failure can be had again; --seed takes another.
A target's runs start from tests/fuzz/corpus/TARGET, and from the vectors of the tree. These alone
have to cover the lines, those of all targets together: what a run finds beyond them differs from
machine to machine. Where they no longer do, --grow TARGET runs the target for longer and adds what
reaches more to its corpus.
"""
import argparse
import concurrent.futures
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
from typing import NamedTuple

import sanitized

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CORPUS = os.path.join(TOP, "tests", "fuzz", "corpus")
VECTORS = os.path.join(TOP, "tests", "vectors")
# Data alone, no line that runs; and finding files and telling of them, not reading them.
LEFT_OUT = ["runtime/cli/conform/conform.c", "runtime/cli/conform/hosts.c",
            "runtime/cli/conform/keys.c", "runtime/cli/conform/list.c"]
LEAST = 90.0  # percent of lines
SEED = 1
SECONDS = 120  # a target that needs longer for its runs is cut short, on a slow machine
GROW_SECONDS = 300


class Target(NamedTuple):
    runs: int
    files: list  # patterns of the files in which coverage is measured
    length: int = 1024  # most bytes of an input
    seeds: str = ""


TARGETS = {
    "batch": Target(5000, [
        "runtime/src/batch/[!p]*.c", "runtime/src/model/shape.c"]),
    "blob": Target(30000, ["engine/blob/*.c", "engine/model/extend.c", "engine/model/load.c"]),
    "checkpoint": Target(15000, [
        "runtime/src/checkpoint/checkpoint.c", "runtime/src/checkpoint/checkpoint_delta.c",
        "runtime/src/checkpoint/index.c", "runtime/src/checkpoint/index_delta.c",
        "runtime/src/checkpoint/index_files.c", "runtime/src/checkpoint/index_model.c",
        "runtime/src/checkpoint/index_table.c",
        "runtime/src/checkpoint/names.c", "runtime/src/checkpoint/read.c",
        "runtime/src/base/json_strict.c", "runtime/src/checkpoint/safetensors.c",
        "runtime/src/checkpoint/shards.c"], 4096),
    "commands": Target(8000, [
        "engine/lookup/batch*.c", "engine/lookup/ids.c", "engine/lookup/lookup.c",
        "engine/lookup/scales.c", "engine/kernels/ranges.c", "engine/model/dispatch.c",
        "engine/model/lookup_verb.c", "engine/model/rows.c",
        "engine/model/stage.c", "engine/model/stats.c", "engine/memory/table_memory.c",
        "engine/queue/command.c", "engine/queue/complete.c", "engine/queue/fetch.c",
        "engine/step/step.c", "engine/update/update.c"]),
    "data": Target(100000, [
        "runtime/examples/item2vec/basket.c", "runtime/examples/item2vec/dataset.c",
        "runtime/examples/item2vec/debian.c", "runtime/examples/item2vec/format.c",
        "runtime/examples/item2vec/look.c", "runtime/examples/item2vec/ratings.c",
        "runtime/examples/item2vec/record.c", "runtime/examples/item2vec/sniff.c",
        "runtime/examples/item2vec/source.c"]),
    "doctor": Target(1500, [
        "runtime/cli/doctor/[bn]*.c", "runtime/cli/doctor/driver*.c",
        "runtime/cli/doctor/firmware.c", "runtime/cli/doctor/h*.c", "runtime/cli/doctor/limits.c",
        "runtime/cli/doctor/machine.c", "runtime/cli/doctor/platform.c"], 2048),
    "decode": Target(2000, [
        "runtime/cli/decode/blob.c", "runtime/cli/decode/command.c",
        "runtime/cli/decode/descriptor.c", "runtime/cli/decode/dump*.c",
        "runtime/cli/decode/firmware.c", "runtime/cli/decode/line.c",
        "runtime/cli/decode/recording.c", "runtime/cli/decode/registers.c",
        "runtime/cli/decode/ring.c", "runtime/cli/recording/*.c",
        "runtime/cli/decode/sheet.c", "runtime/cli/decode/trace.c"], 4096),
    "exchange": Target(20000, ["engine/exchange/*.c"]),
    "firmware": Target(30000, [
        "engine/control/firmware.c", "engine/control/boot.c", "engine/control/signature.c"]),
    "json": Target(50000, ["runtime/json/json_*.c"]),
    "junit": Target(30000, ["runtime/cli/vm/junit.c", "runtime/cli/vm/tap_read.c"]),
    "partition": Target(20000, [
        "engine/partition/*.c", "engine/lookup/grid.c", "engine/memory/operand.c",
        "engine/hash/highway.c"]),
    "preprocess": Target(8000, [
        "runtime/src/batch/partitioned.c", "runtime/src/batch/partitioned_describe.c",
        "runtime/src/session/partitioned_error.c", "runtime/src/sparsecore/preprocess.c"]),
    "replay": Target(3000, [
        "runtime/cli/replay/difference.c", "runtime/cli/replay/place.c",
        "runtime/cli/replay/play.c", "runtime/cli/replay/twin.c",
        "runtime/cli/replay/where.c"], 8192),
    "rings": Target(8000, [
        "engine/control/admin.c", "engine/memory/region.c", "engine/queue/context.c",
        "engine/queue/queue*.c", "engine/queue/ring.c"]),
    "serving": Target(5000, ["runtime/src/serving/check.c", "runtime/src/serving/plan.c"]),
    "snapshot": Target(100000, ["runtime/cli/device/snapshot.c"], 16384),
    "stacks": Target(20000, ["engine/lookup/stacks*.c"]),
    "stream": Target(20000, [
        "runtime/src/checkpoint/stream_open.c", "runtime/src/checkpoint/stream_read.c",
        "runtime/src/checkpoint/tar.c"], 16384),
    "tensors": Target(100000, ["runtime/cli/tensors/[!s]*.c", "runtime/cli/tensors/safetensors_read.c"], 4096),
    "top": Target(100000, ["runtime/cli/top/fdinfo.c", "runtime/cli/top/sample.c"], 4096),
    "tpu": Target(400000, [
        "runtime/src/compat/tpu/handle.c", "runtime/src/compat/tpu/import.c",
        "runtime/src/compat/tpu/optimizer.c", "runtime/src/compat/tpu/wire.c"]),
    # The others of that folder parse nothing: they start programs, ask the kernel, and load files.
    "trace": Target(50000, [
        "runtime/cli/trace/events.c", "runtime/cli/trace/report.c",
        "runtime/cli/trace/steps.c"], 4096),
    "vector": Target(6000, ["runtime/cli/conform/*.c"], 4096, VECTORS),
}

# Pieces of work are small, so that the short inputs of a fuzzer have several.
OPTIONS = ["-Dfuzz=true", "-Db_sanitize=address,undefined", sanitized.WERROR,
           *sanitized.OPTIONS, "-Dc_args=-g1 -DEMBENG_SMALL_PIECES"]
ENVIRONMENT = {"ASAN_OPTIONS": "detect_leaks=1:strict_string_checks=1:"
                               "detect_stack_use_after_return=0",
               "UBSAN_OPTIONS": "print_stacktrace=1"}


def say(text):
    print(text, flush=True)


def build(directory):
    if not os.path.exists(os.path.join(directory, "build.ninja")):
        shutil.rmtree(directory, ignore_errors=True)
        if subprocess.call(["meson", "setup", directory, *OPTIONS], cwd=TOP,
                           env={**os.environ, "CC": "clang"}):
            return False
    return subprocess.call(["ninja", "-C", directory, "fuzz"]) == 0


def program(directory, name):
    return os.path.join(directory, "tests", "fuzz", "fuzz-" + name)


def seeds_of(name):
    return [path for path in (os.path.join(CORPUS, name), TARGETS[name].seeds)
            if os.path.isdir(path)]


def call(directory, name, arguments, profile=os.devnull):
    """Returns whether all was well, and what the target printed."""
    command = [program(directory, name), "-timeout=20", f"-max_len={TARGETS[name].length}",
               f"-artifact_prefix={directory}/{name}-", *arguments]
    done = subprocess.run(command, env={**os.environ, **ENVIRONMENT, "LLVM_PROFILE_FILE": profile},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", check=False)
    return done.returncode == 0, done.stdout


def search(directory, name, seed, work, limits):
    """Runs a target until one of its @limits; what it finds is kept in a folder of @work."""
    fresh = os.path.join(work, name)
    os.mkdir(fresh)
    return call(directory, name,
                [f"-seed={seed}", *limits, "-len_control=0", fresh, *seeds_of(name)])


def run(directory, name, seed, work, share):
    """The corpus alone, whose coverage counts, and then what a fuzzer makes of it, in this share of
    the target's runs."""
    good, output = call(directory, name, ["-runs=0", *seeds_of(name)],
                        os.path.join(work, name + ".profraw"))
    if not good:
        return good, output
    return search(directory, name, seed, work,
                  [f"-runs={int(TARGETS[name].runs * share)}", f"-max_total_time={SECONDS}"])


def what_went_wrong(output):
    """Returns libFuzzer's output without its progress and its dictionary, which hide the fault."""
    return "\n".join(line for line in output.splitlines()
                     if not line.startswith(("#", "INFO", "\tNEW_FUNC")) and "# Uses" not in line)


def told(name, good, output):
    say(f"{'ok' if good else 'FAILED'} fuzz target {name}: "
        f"{(output.splitlines() or ['no output'])[-1]}")
    if not good:
        say(what_went_wrong(output))
    return good


def grow(directory, names, seed):
    """Adds inputs that reach lines or branches which the corpus does not; returns who failed."""
    failed = []
    for name in names:
        with tempfile.TemporaryDirectory() as work:
            say(f"fuzz target {name}: seed {seed}, {GROW_SECONDS} seconds")
            good, output = search(directory, name, seed, work,
                                  ["-use_counters=0", f"-max_total_time={GROW_SECONDS}"])
            if good:
                good, output = call(directory, name, ["-set_cover_merge=1", "-use_counters=0",
                                                      os.path.join(CORPUS, name),
                                                      os.path.join(work, name)])
        if not told(name, good, output):
            failed.append(name)
    return failed


def run_all(directory, names, seed, work, share):
    failed = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = {name: pool.submit(run, directory, name, seed, work, share) for name in names}
    for name, one in runs.items():
        if not told(name, *one.result()):
            failed.append(name)
    return failed


def files_of(name):
    found = []
    for pattern in TARGETS[name].files:
        found += glob.glob(os.path.join(TOP, pattern))
    return sorted(path for path in found if os.path.relpath(path, TOP) not in LEFT_OUT)


def llvm_cov(directory, names, verb, work, *more):
    """A file that several targets hold is covered by all of their corpora together."""
    profile = os.path.join(work, "all.profdata")
    names = [name for name in names if os.path.exists(os.path.join(work, name + ".profraw"))]
    if not names:
        return ""
    subprocess.run(["llvm-profdata", "merge", "-sparse", "-o", profile,
                    *(os.path.join(work, name + ".profraw") for name in names)], check=True)
    programs = [program(directory, name) for name in names]
    objects = [word for path in programs[1:] for word in ("-object", path)]
    command = ["llvm-cov", verb, f"-instr-profile={profile}", programs[0], *objects, *more]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          check=True).stdout


def wanted_files(names):
    return {os.path.realpath(path) for name in names for path in files_of(name)}


def coverage(directory, names, work):
    """Percent and number of lines by file; of a file that no target holds 0."""
    table = {path: (0.0, 0) for path in sorted(wanted_files(names))}
    document = json.loads(llvm_cov(directory, names, "export", work, "-summary-only") or
                          '{"data": [{"files": []}]}')
    for entry in document["data"][0]["files"]:
        path, lines = os.path.realpath(entry["filename"]), entry["summary"]["lines"]
        if path in table:
            table[path] = (lines["percent"], lines["count"])
    return {os.path.relpath(path, TOP): share for path, share in table.items()}


def print_missing(directory, names, work):
    path, wanted = "", wanted_files(names)
    for line in llvm_cov(directory, names, "show", work).splitlines():
        columns = line.split("|", 2)
        if line.startswith("/"):
            path = os.path.realpath(line.rstrip(":"))
        elif path in wanted and len(columns) > 2 and columns[1].strip() == "0":
            say(f"{os.path.relpath(path, TOP)}:{columns[0].strip()}:{columns[2]}")


def fuzz(directory, names, seed, missing, share=1):
    """Prints what there is to say; returns how many cases passed and failed."""
    say(f"fuzz: seed {seed}, at least {LEAST} % of the lines of each file")
    with tempfile.TemporaryDirectory() as work:
        failed = run_all(directory, names, seed, work, share)
        table = coverage(directory, names, work)
        if missing:
            print_missing(directory, names, work)
    low = [path for path, (percent, _) in table.items() if percent < LEAST]
    for path, (percent, lines) in table.items():
        say(f"{'FAILED' if path in low else 'ok'} {percent:6.2f} % of {lines:4} lines  {path}")
    bad = len(failed) + len(low)
    return len(names) + len(table) - bad, bad


def stage(directory, share):
    """Every target for a share of its runs, as a stage of check.py: cases that passed, cases that
    failed."""
    if not build(directory):
        say("fuzz: the build failed")
        return 0, 1
    return fuzz(directory, sorted(TARGETS), SEED, False, share)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--directory", default=os.path.join(TOP, "build-fuzz"))
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--missing", action="store_true", help="print the lines not covered")
    parser.add_argument("--grow", action="store_true", help="add to the corpus what reaches more")
    parser.add_argument("targets", nargs="*", default=sorted(TARGETS), metavar="TARGET")
    given = parser.parse_args()
    if not build(given.directory):
        return 1
    if given.grow:
        return 1 if grow(given.directory, given.targets, given.seed) else 0
    passed, failed = fuzz(given.directory, given.targets, given.seed, given.missing)
    say(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

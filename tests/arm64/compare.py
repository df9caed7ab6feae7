#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The same bits on arm64: builds the engine, the library and bits.c for it, runs them emulated.

usage: compare.py NATIVE-BITS VARIANT[,VARIANT...] DIRECTORY GCC-FLAG... -- SOURCE... --
       LIBRARY-SOURCE...

Builds in DIRECTORY. Every line that bits prints there with the portable variant must be the
line that NATIVE-BITS prints here with each VARIANT that this processor has. Speaks TAP.
"""
import concurrent.futures
import hashlib
import os
import shutil
import subprocess
import sys

CC = "aarch64-linux-gnu-gcc"
AR = "aarch64-linux-gnu-ar"
QEMU = "qemu-aarch64"
LACKING = 3  # exit status of bits where the processor lacks the variant


def run(command):
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            check=False)
    return result.returncode, result.stdout


def bail(text):
    print(f"Bail out! {text}")
    sys.exit(1)


def compile_one(source, directory, flags):
    name = hashlib.sha256(source.encode()).hexdigest()[:16] + ".o"
    target = os.path.join(directory, name)
    status, output = run([CC, *flags, "-ffunction-sections", "-c", source, "-o", target])
    return target, f"{source}:\n{output}" if status else ""


def link(directory, program, made, count):
    """The library is an archive: what reads JSON is compiled, and not pulled in."""
    objects = [target for target, _ in made]
    archive = os.path.join(directory, "libembeng.a")
    status, output = run([AR, "rc", archive, *objects[count:]])
    if not status:
        status, output = run([CC, "-static", *objects[:count], archive, "-o", program, "-lm",
                              "-pthread"])
    return [output] if status else []


def build(directory, flags, sources, library):
    """Path of bits for arm64, linked statically: the emulator needs no system of it."""
    for tool in (CC, AR, QEMU):
        if not shutil.which(tool):
            bail(f"{tool} is missing; make deps installs what packages.txt lists")
    shutil.rmtree(directory, ignore_errors=True)
    os.makedirs(directory)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        made = list(pool.map(lambda source: compile_one(source, directory, flags),
                             sources + library))
    failed = [complaint for _, complaint in made if complaint]
    program = os.path.join(directory, "bits")
    if not failed:
        failed = link(directory, program, made, len(sources))
    if failed:
        print("\n".join("# " + line for line in failed[0].splitlines()))
        bail("the build for arm64 failed")
    return program


def lines_of(command):
    """Title and hash of each line, or None where the processor lacks the variant."""
    status, output = run(command)
    if status == LACKING:
        return None
    if status:
        bail(f"{' '.join(command)} ended with {status}: {output.strip()[-500:]}")
    pairs = (line.rsplit(": ", 1) for line in output.splitlines() if not line.startswith("#"))
    return dict(pairs)


def main():
    native, variants, directory = sys.argv[1:4]
    first = sys.argv.index("--")
    second = sys.argv.index("--", first + 1)
    program = build(directory, sys.argv[4:first], sys.argv[first + 1:second],
                    sys.argv[second + 1:])
    foreign = lines_of([QEMU, program, "portable"])
    number = failed = 0
    for variant in variants.split(","):
        here = lines_of([native, variant])
        if here is None:
            number += 1
            print(f"ok {number} - arm64 # SKIP {variant}: this processor lacks it")
            continue
        for title in {**foreign, **here}:
            number += 1
            same = foreign.get(title) == here.get(title)
            failed += not same
            print(f"{'ok' if same else 'not ok'} {number} - {title}: arm64 equals {variant}")
            if not same:
                print(f"# arm64 {foreign.get(title)}, {variant} {here.get(title)}")
    print(f"1..{number}")
    return 1 if failed or not foreign else 0


if __name__ == "__main__":
    sys.exit(main())

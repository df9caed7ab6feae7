#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Builds the Python package as a user's pip does, installs it, tests it.

usage: python_package.py [pytest argument...]

The environment is build-python/venv, with what the extras "dev", "frameworks" and "oracles" of
pyproject.toml pin. Where the tree has no change that is not committed, the wheel is built from the
source distribution, otherwise from the tree itself. With arguments, only pytest runs, with these.

Tests of TensorFlow, Keras and JAX are many: of these, only those that are marked as a sample run,
unless the stage is whole or the arguments say otherwise. Test files of other projects run where
EMBENG_ORACLES names a folder that has them, as runtime/python/tests/oracle/upstream.py lists them.
"""
import os
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as xml
from glob import glob

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOM = os.path.join(TOP, "build-python")
BIN = os.path.join(ROOM, "venv", "bin")
TESTS = os.path.join(TOP, "runtime", "python", "tests")
EXTRAS = ["dev", "frameworks", "oracles"]
# Tests that load TensorFlow or JAX. Their threads make it unsafe to fork, which others do.
FRAMEWORKS = [os.path.join(TESTS, name) for name in ("frameworks", "jax", "keras", "tf")]
WHEEL_BYTES = 3 << 20  # most of a wheel
IMPORT_MS = 30  # most of "import embeng"
# Waits in seconds before pip tries again, which has gigabytes to fetch.
PAUSES = (5, 30, 120)


def say(text):
    print(text, flush=True)


def run(*command, **options):
    return subprocess.run(command, check=True, cwd=TOP, **options)


def install(*wanted):
    """Lets pip install what it may have to fetch: a network that fails for a while is no error."""
    command = [os.path.join(BIN, "python"), "-m", "pip", "install", "--quiet",
               "--disable-pip-version-check", *wanted]
    for pause in PAUSES:
        try:
            run(*command)
            return
        except subprocess.CalledProcessError as error:
            say(f"== python: pip ended with {error.returncode}; it tries again in {pause} s")
        time.sleep(pause)
    run(*command)


def make_environment():
    """Makes the environment, again when its requirements changed."""
    import tomllib  # from 3.11 on, as the package itself; the other stages run on older ones

    with open(os.path.join(TOP, "pyproject.toml"), "rb") as file:
        extras = tomllib.load(file)["project"]["optional-dependencies"]
    wanted = [line for extra in EXTRAS for line in extras[extra]]
    noted = os.path.join(ROOM, "requirements.txt")
    text = "\n".join(wanted)
    if os.path.exists(noted):
        with open(noted, encoding="utf-8") as file:
            if file.read() == text:
                return
    shutil.rmtree(os.path.join(ROOM, "venv"), ignore_errors=True)
    run(sys.executable, "-m", "venv", os.path.join(ROOM, "venv"))
    # The pip of an older Python starts a broken download again, or gives up: the pinned one first.
    install(*[line for line in wanted if line.startswith("pip==")])
    install("--resume-retries=20", *wanted)
    with open(noted, "w", encoding="utf-8") as file:
        file.write(text)


def build_wheel():
    """Builds the wheel and returns its path."""
    began = time.monotonic()
    shutil.rmtree(os.path.join(ROOM, "dist"), ignore_errors=True)
    dist = os.path.join(ROOM, "dist")
    clean = not run("git", "status", "--porcelain", capture_output=True).stdout.strip()
    source = TOP
    environment = {**os.environ, "PATH": BIN + os.pathsep + os.environ["PATH"]}
    if clean:
        run(os.path.join(BIN, "python"), "-c",
            f"import mesonpy; mesonpy.build_sdist({dist!r})", env=environment,
            stdout=subprocess.DEVNULL)
        source = glob(os.path.join(dist, "*.tar.gz"))[0]
    run(os.path.join(BIN, "pip"), "wheel", "--quiet", "--no-deps", "--no-build-isolation",
        "--disable-pip-version-check", "-w", dist, source, env=environment)
    wheel = glob(os.path.join(dist, "*.whl"))[0]
    origin = "the source distribution" if clean else "the tree"
    say(f"== python: {os.path.basename(wheel)}, {os.path.getsize(wheel) >> 10} KiB, built from "
        f"{origin} in {time.monotonic() - began:.0f} s")
    return wheel


def build_command():
    """Returns the path of the command `embeng`, whose bits the package's are compared with.

    The plug-ins for MPI are beside it.
    """
    for build in ("build", "build-python/command"):
        command = os.path.join(TOP, build, "runtime", "embeng")
        if os.path.exists(command):
            return command
    build = os.path.join(ROOM, "command")
    run("meson", "setup", build, "-Daccel=disabled", "-Dtests=disabled", stdout=subprocess.DEVNULL)
    run("ninja", "-C", build, stdout=subprocess.DEVNULL)
    return os.path.join(build, "runtime", "embeng")


def run_all(command, whole):
    """Runs the tests in two processes: those without a framework, then those with one."""
    apart = [f"--ignore={folder}" for folder in FRAMEWORKS]
    total = [0, 0]
    for arguments in ([TESTS, *apart], [*FRAMEWORKS, *([] if whole else ["-m", "sample"])]):
        for place, count in enumerate(run_pytest(arguments, command)):
            total[place] += count
    return total


def run_pytest(arguments, command):
    """Runs the tests, which compare with @command, and returns how many passed and failed.

    A skipped one is said by name.
    """
    report = os.path.join(ROOM, "pytest.xml")
    if os.path.exists(report):
        os.remove(report)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1",
                   "EMBENG_COMMAND": command}
    workers = str(len(os.sched_getaffinity(0)))
    subprocess.run([os.path.join(BIN, "python"), "-m", "pytest", "-q", "-p", "no:cacheprovider",
                    f"--junitxml={report}", "--durations=10", "-n", workers, *arguments],
                   check=False, cwd=ROOM, env=environment)
    if not os.path.exists(report):
        say("FAILED python: pytest did not end")
        return 0, 1
    passed = failed = 0
    for case in xml.parse(report).getroot().iter("testcase"):
        skipped = case.find("skipped")
        why = "" if skipped is None else f"{skipped.get('message')} {skipped.text}"
        bad = case.find("failure") is not None or case.find("error") is not None
        if skipped is not None and skipped.get("type") == "pytest.xfail":
            skipped = None  # a test that has to fail, and does
        elif skipped is not None and "oracle" not in why.lower():
            say(f"FAILED python: {case.get('name')} was skipped: {why}")
            bad = True
        if bad:
            failed += 1
        elif skipped is None:
            passed += 1
    if not passed + failed:
        say("FAILED python: no test ran")
        failed = 1
    return passed, failed


def measure_import():
    """The least of five imports, in ms, beside what Python itself takes."""
    def least(code):
        times = []
        for _ in range(5):
            began = time.monotonic()
            run(os.path.join(BIN, "python"), "-I", "-c", code)
            times.append(time.monotonic() - began)
        return min(times)
    return 1000 * (least("import embeng") - least("pass"))


def checks(wheel):
    """Checks without pytest: pairs of a sentence and whether it holds."""
    package = os.path.join(TOP, "runtime", "python", "embeng")
    python = os.path.join(BIN, "python")
    took = measure_import()
    yield f"the wheel has at most {WHEEL_BYTES >> 20} MiB", os.path.getsize(wheel) <= WHEEL_BYTES
    # A busy machine is no reason to fail: the limit is for one that is not.
    yield f"import embeng takes {took:.0f} ms, of {IMPORT_MS}", took <= 3 * IMPORT_MS
    yield from typing_checks(python, package)


def typing_checks(python, package):
    """Runs three programs that check types, all at once: each takes one processor a while."""
    programs = {
        "mypy --strict": ["-m", "mypy", "--strict", "--no-incremental", "--config-file",
                          os.path.join(TOP, "pyproject.toml"), package],
        "pyright": ["-m", "pyright", "-p", os.path.join(TOP, "pyproject.toml"), "--pythonpath",
                    python],
        "stubtest": ["-m", "mypy.stubtest", "embeng._core"],
    }
    # Two of them are mypy's, which locks its cache.
    running = {what: subprocess.Popen([python, *words], cwd=ROOM, text=True,
                                      env={**os.environ, "MYPY_CACHE_DIR": f".cache-{words[1]}"},
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
               for what, words in programs.items()}
    for what, process in running.items():
        output = process.communicate()[0]
        if process.returncode:
            say(output)
        yield what, process.returncode == 0


def stage(arguments=(), whole=False):
    """Returns how many cases passed and failed."""
    os.makedirs(ROOM, exist_ok=True)
    try:
        make_environment()
        command = build_command()
        wheel = build_wheel()
        run(os.path.join(BIN, "pip"), "install", "--quiet", "--disable-pip-version-check",
            "--no-deps", "--force-reinstall", wheel)
    except subprocess.CalledProcessError as error:
        say(f"FAILED python: {' '.join(error.cmd[:4])} ... ended with {error.returncode}")
        return 0, 1
    if arguments:
        return run_pytest([TESTS, *arguments], command)
    passed, failed = run_all(command, whole)
    for what, holds in checks(wheel):
        passed, failed = passed + holds, failed + (not holds)
        if not holds:
            say(f"FAILED python: {what}")
    return passed, failed


if __name__ == "__main__":
    counts = stage(sys.argv[1:])
    say(f"{counts[0]} passed, {counts[1]} failed")
    sys.exit(1 if counts[1] else 0)

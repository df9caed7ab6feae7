#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""embeng doctor names each cause, and that cause alone. Speaks TAP.

usage: doctor_trees.py EMBENG-COMMAND

A recorded tree is made for each case of doctor_cases.py: BASE, which is a machine without a fault,
with some files changed. The checks that warn or find a problem must then be the ones that the case
names, so that a check that sees too much fails as well as one that sees too little. The last cases
are trees that somebody made to harm who reads them.
"""
import json
import os
import pty
import shutil
import subprocess
import sys
import tempfile

from doctor_cases import (ADDRESS, BASE, CASES, Folder, Link, NODE, P, PCI, UNLOADED, W, node)


def put(root, path, content):
    name = root + path
    os.makedirs(os.path.dirname(name), exist_ok=True)
    if content is Folder:
        os.makedirs(name, exist_ok=True)
    elif isinstance(content, Link):
        os.symlink(content, name)
    else:
        with open(name, "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())


def make_tree(root, changes):
    for path, content in {**BASE, **changes}.items():
        if content is not None:
            put(root, path, content)


class Tester:
    """Runs the command on trees and counts."""

    def __init__(self, embeng):
        self.embeng, self.number, self.failed = embeng, 0, 0
        self.environment = {k: v for k, v in os.environ.items() if k != "EMBENG_DEVICE"}

    def report(self, name, faults):
        self.number += 1
        self.failed += bool(faults)
        print(f"{'not ok' if faults else 'ok'} {self.number} - {name}")
        for fault in faults:
            print(f"#   {fault}")

    def run(self, *arguments):
        return subprocess.run([self.embeng, "doctor", *arguments], env=self.environment, check=False,
                              capture_output=True, timeout=60)

    def examine(self, root, *arguments):
        """The document and the exit status."""
        done = self.run("--root", root, "--json", *arguments)
        try:
            return json.loads(done.stdout), done.returncode
        except ValueError:
            return {"checks": [], "said": done.stdout.decode(errors="replace")}, done.returncode


def named(document):
    return {row["name"]: row["verdict"] for row in document["checks"] if row["verdict"] in (P, W)}


def judge(document, code, expected, wanted_code, words):
    faults = []
    if document.get("schema") != "embeng.doctor/1":
        faults.append(f"no document: {document}")
    if named(document) != expected:
        faults.append(f"named {named(document)}, not {expected}")
        faults += [f"{row['name']}: {row['seen']}" for row in document["checks"]
                   if row["verdict"] in (P, W)]
    if code != wanted_code:
        faults.append(f"exit status {code}, not {wanted_code}")
    bad = [row for row in document["checks"] if row["verdict"] in (P, W)]
    if words and not any(words in row[part] for row in bad for part in ("seen", "why", "fix")):
        faults.append(f"no line says '{words}': {[row['seen'] for row in bad]}")
    faults += [f"{row['name']} has no {part}" for row in bad for part in ("why", "fix")
               if not row[part]]
    return faults


def try_case(tester, name, changes, expected, code, words):
    with tempfile.TemporaryDirectory() as root:
        make_tree(root, changes)
        tester.report(name, judge(*tester.examine(root), expected, code, words))


def try_well(tester):
    """In the tree without a fault every check but the lookup is made and is well."""
    with tempfile.TemporaryDirectory() as root:
        make_tree(root, {})
        document, _ = tester.examine(root)
        others = {row["name"]: row["seen"] for row in document["checks"] if row["verdict"] != "ok"}
        tester.report("every check is made", [str(others)] if list(others) != ["lookup"] else [])


def try_devices(tester):
    """A device that is named is checked alone."""
    other = PCI.replace("01:00.0", "02:00.0")
    second = {path.replace(PCI, other).replace("accel0", "accel1"): content
              for path, content in BASE.items() if path.startswith(PCI)}
    with tempfile.TemporaryDirectory() as root:
        make_tree(root, {**second, PCI + "/resets/wedged": "1\n",
                         "/dev/accel/accel1": node()[NODE].replace("261:0", "261:1"),
                         other + "/accel/accel1/dev": "261:1\n",
                         "/dev/accel/by-path/pci-0000:02:00.0": Link("../accel1")})
        document, code = tester.examine(root)
        bad = [(row["name"], row["device"]) for row in document["checks"]
               if row["verdict"] == P]
        tester.report("the device at fault is named",
                      [] if (bad, code) == ([("wedged", ADDRESS)], 7) else [str(bad), str(code)])
        for name in ("pci:0000:02:00.0", "/dev/accel/accel1", "pci:0000:02:00.0,path=mapped",
                     "/dev/accel/by-path/pci-0000:02:00.0"):
            document, code = tester.examine(root, "-d", name)
            devices = {row["device"] for row in document["checks"]} - {None}
            tester.report(f"-d {name} checks it alone",
                          judge(document, code, {}, 0, "") +
                          ([] if devices == {"0000:02:00.0"} else [str(devices)]))
        for name in ("pci:0000:03:00.0", "/dev/accel/accel7", "nowhere", ""):
            document, code = tester.examine(root, "-d", name)
            wanted = ({"function": P}, 6, "pci:" + ADDRESS) if name else ({"wedged": P}, 7, "")
            tester.report(f"-d '{name}'", judge(document, code, *wanted))
        document, code = tester.examine(root, "-d", "soft")
        tester.report("-d soft has nothing to do with them", judge(document, code, {}, 0, ""))


def try_record(tester):
    """A record of a tree gives the same document, and has nothing about people in it."""
    with tempfile.TemporaryDirectory() as folder:
        root, record = os.path.join(folder, "root"), os.path.join(folder, "record")
        make_tree(root, {PCI + "/resets/wedged": "1\n", "/etc/group": "render:x:106:alice,bob\n",
                         "/proc/cmdline": "root=UUID=77 swiotlb=force\n"})
        before, code = tester.examine(root, "--record", record)
        after, again = tester.examine(record)
        tester.report("a record answers as its tree",
                      [] if (before, code) == (after, again) and code == 7
                      else [f"{code}, {again}", str(named(before)), str(named(after))])
        found = subprocess.run(["grep", "-rE", "alice|UUID", record], capture_output=True, check=False)
        tester.report("and leaves people out", [found.stdout.decode()] if found.stdout else [])
        done = tester.run("--root", root, "--record", record)
        tester.report("a folder with something in it is not written to",
                      [] if done.returncode == 2 and b"not empty" in done.stderr.lower()
                      else [str(done.returncode), done.stderr.decode()])


def try_record_modprobe(tester):
    """A record has what modprobe goes by: joined lines, and links that hide other files."""
    for name, files, check in (
            ("lines that a backslash joins", {"/etc/modprobe.d/x.conf": "blacklist \\\nembeng\n"},
             "driver-blacklisted"),
            ("links that hide a file", {"/etc/modprobe.d/x.conf": Link("/dev/null"),
                                        "/usr/lib/modprobe.d/x.conf": "blacklist embeng\n"},
             "driver-loaded")):
        with tempfile.TemporaryDirectory() as folder:
            root, record = os.path.join(folder, "root"), os.path.join(folder, "record")
            make_tree(root, {**UNLOADED, **files})
            before = tester.examine(root, "--record", record)
            tester.report(f"a record has {name}",
                          judge(*before, {check: P}, 9, "") +
                          ([] if tester.examine(record) == before else ["the record differs"]))


def try_text(tester):
    """A person is shown a line for each check, and below them why the bad ones matter."""
    with tempfile.TemporaryDirectory() as root:
        make_tree(root, {PCI + "/resets/wedged": "1\n", **node("0666")})
        lines = tester.run("--root", root).stdout.decode().splitlines()
        wanted = [f"PROBLEM  wedged              {ADDRESS}: it is wedged: it did not come back from "
                  "a reset",
                  f"warning  node-mode           {ADDRESS}: {NODE} is of the group render, mode 0666"]
        faults = [f"no line '{line}' at both places" for line in wanted if lines.count(line) != 2]
        faults += [f"{line} has no reason below it" for line in wanted
                   if not lines[len(lines) - lines[::-1].index(line)].startswith("  why  ")]
        if lines[-1] != "1 problem, 1 warning, 35 ok, 2 not checked":
            faults.append(lines[-1])
        tester.report("text for people", faults)
        verbose = tester.run("--root", root, "-v").stdout.decode().splitlines()
        tester.report("-v shows what was not checked",
                      [] if any(line.startswith("-        lookup ") for line in verbose) and
                      not any(line.startswith("-        lookup ") for line in lines) else verbose)


def run_on_terminal(tester, environment, *arguments):
    """Runs the command with a terminal as its output, and returns the bytes that it writes."""
    ours, theirs = pty.openpty()
    with subprocess.Popen([tester.embeng, "doctor", *arguments], stdout=theirs,
                          env={**tester.environment, **environment}):
        os.close(theirs)
        written = b""
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # the other side is closed
                piece = b""
            if not piece:
                os.close(ours)
                return written
            written += piece


def try_colors(tester):
    with tempfile.TemporaryDirectory() as root:
        make_tree(root, {PCI + "/resets/wedged": "1\n"})
        tester.environment.pop("NO_COLOR", None)
        written = run_on_terminal(tester, {"TERM": "xterm"}, "--root", root)
        tester.report("a terminal gets colours",
                      [] if b"\x1b[31mPROBLEM\x1b[0m  wedged" in written else [str(written)])
        for environment in ({"TERM": "xterm", "NO_COLOR": "1"}, {"TERM": "dumb"}):
            written = run_on_terminal(tester, environment, "--root", root)
            tester.report(f"but not with {environment}",
                          [] if b"PROBLEM  wedged" in written and b"\x1b" not in written
                          else [str(written)])


def try_usage(tester):
    for arguments, words in ((["x"], "'x'"), (["--root", "/nowhere/at/all"], "/nowhere/at/all"),
                             (["--root", "/dev/null"], "/dev/null")):
        done = tester.run(*arguments, "--json")
        document = json.loads(done.stdout)
        tester.report(f"refused: {' '.join(arguments)}",
                      [] if done.returncode == 2 and document["schema"] == "embeng.doctor/1" and
                      document["error"]["code"] == 2 and words in document["error"]["message"]
                      else [str(done)])


def try_soft(tester):
    """The soft device of this machine gives the right sums; nothing else is asked of it."""
    done = tester.run("-d", "soft:cores=2", "--json")
    rows = {row["name"]: row for row in json.loads(done.stdout)["checks"]}
    tester.report("a lookup on the soft device",
                  [] if done.returncode == 0 and rows["lookup"]["verdict"] == "ok" and
                  "soft:cores=2" in rows["lookup"]["seen"] and
                  rows["node"]["stopped_by"] == "function" else [str(rows)])


def harm_large(root):
    """Each file is a gigabyte, most of which is a hole."""
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.join(folder, name)
            if not os.path.islink(path):
                os.truncate(path, 1 << 30)


def harm_binary(root):
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.join(folder, name)
            if not os.path.islink(path) and name not in ("vendor", "device"):
                with open(path, "wb") as file:
                    file.write(bytes(range(256)) * 16)


def replace_files(root, make):
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.join(folder, name)
            if name not in ("vendor", "device"):
                os.remove(path)
                make(path)


def harm_words(root):
    """Each file has one word without an end."""
    replace_files(root, lambda path: put("", path, "9" * 5000))


def harm_lines(root):
    replace_files(root, lambda path: put("", path, "\n:-. / 0x \n - \n:::\n0::/..\n" * 500))


def harm_mounts(root):
    """A process in thousands of groups, and a group thousands of folders deep."""
    deep = "/a" * 2000
    put(root, "/proc/self/cgroup", f"0::{deep}\n" * 50)
    put(root, "/proc/self/mountinfo",
        "21 1 0:20 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n" * 50)


def harm_names(root):
    """Thousands of functions, processors and files, and names that no machine has."""
    for i in range(10, 4300):
        for path in ("/sys/bus/pci/devices/x%d", "/etc/modprobe.d/%d.conf",
                     "/sys/devices/system/cpu/cpu%d"):
            put(root, path % i, "")
    for name in (b"\xff\xfe", b"\x1b[2J", b"a\nb", b"0000:01:00.0x"):
        os.makedirs(root.encode() + b"/sys/bus/pci/devices/" + name)


def harm_missing(root):
    for name in os.listdir(root):
        shutil.rmtree(os.path.join(root, name))


HARMS = [
    ("files of a gigabyte", harm_large),
    ("files of all bytes", harm_binary),
    ("files of one long word", harm_words),
    ("files of broken lines", harm_lines),
    ("folders in place of files", lambda root: replace_files(root, os.mkdir)),
    ("pipes in place of files", lambda root: replace_files(root, os.mkfifo)),
    ("links to themselves",
     lambda root: replace_files(root, lambda path: os.symlink(os.path.basename(path), path))),
    ("links out of the tree",
     lambda root: replace_files(root, lambda path: os.symlink("/proc/kmsg", path))),
    ("links to a parent",
     lambda root: replace_files(root, lambda path: os.symlink("..", path))),
    ("groups without an end", harm_mounts),
    ("thousands of names", harm_names),
    ("an empty tree", harm_missing),
]


def try_harm(tester, name, harm):
    """The command ends by itself, with a document and with a status of its own."""
    with tempfile.TemporaryDirectory() as root:
        make_tree(root, {})
        harm(root)
        document, code = tester.examine(root)
        faults = [] if document.get("schema") == "embeng.doctor/1" else [str(document)[:500]]
        if code not in range(12):
            faults.append(f"exit status {code}")
        done = tester.run("--root", root, "-v")
        if done.returncode != code:
            faults.append(f"exit status {done.returncode} as text, {code} as a document")
        if any(byte < 32 and byte != 10 or byte > 126 for byte in done.stdout):
            faults.append("bytes that are no text are printed")
        tester.report(f"harm: {name}", faults)


def main():
    tester = Tester(sys.argv[1])
    for case in CASES:
        try_case(tester, *case)
    try_well(tester)
    try_devices(tester)
    try_record(tester)
    try_record_modprobe(tester)
    try_text(tester)
    try_colors(tester)
    try_usage(tester)
    try_soft(tester)
    for name, harm in HARMS:
        try_harm(tester, name, harm)
    print(f"1..{tester.number}")
    return 1 if tester.failed else 0


if __name__ == "__main__":
    sys.exit(main())

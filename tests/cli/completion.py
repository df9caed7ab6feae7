#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Presses TAB behind calls of embeng in bash, zsh and fish. Speaks TAP.

usage: completion.py EMBENG FOLDER

FOLDER has the completions. bash and zsh run in a terminal of their own: the text and the TAB are
typed, and a key that the test binds prints the line as it then is. fish is asked for what it would
offer. A shell that is not installed fails its cases.
"""
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time

SECONDS = 20
# The name of the soft device says how much memory is free, which changes from call to call.
DEVICE = r"soft:cores=\d+,memory=\d+"
SHOWN = re.compile(r"<<<(.*?)>>>", re.S)

BASH = r"""PS1='READY'; set +o history; bind 'set enable-bracketed-paste off'
bind 'set completion-query-items 0'; bind 'set page-completions off'
show_line() { printf '<<<%s>>>\n' "$READLINE_LINE"; }
bind -x '"\C-t": show_line'
source FOLDER/embeng.bash
"""
ZSH = r"""PS1='READY'; unset zle_bracketed_paste; fpath=(FOLDER $fpath)
autoload -Uz compinit && compinit -u -D
show_line() { print -r -- "<<<$BUFFER>>>"; zle reset-prompt; }
zle -N show_line; bindkey '^T' show_line
"""

# A line as typed, and the line that it becomes.
BECOMES = {
    "embeng chec": "embeng checkpoint ",
    "embeng checkpoint verif": "embeng checkpoint verify ",
    "embeng info --js": "embeng info --json ",
    "embeng checkpoint dump --for": "embeng checkpoint dump --format ",
    "embeng info -d so": "embeng info -d DEVICE ",
    "embeng info --device soft:co": "embeng info --device DEVICE ",
    "embeng fw verify imag": "embeng fw verify image.fw ",
    "embeng checkpoint ls fold": "embeng checkpoint ls folder/",
    "embeng checkpoint reshard --sharding m": "embeng checkpoint reshard --sharding mod ",
    "embeng reset --fu": "embeng reset --function ",
    "embeng --vers": "embeng --version ",
    "embeng regs progr": "embeng regs progress ",
    "embeng regs capab": "embeng regs capabilities ",
    "embeng regs features.quant": "embeng regs features.quantization ",
    "embeng regs --save imag": "embeng regs --save image.fw ",
    "embeng fault set drop": "embeng fault set drop_completion ",
    "embeng fault clear link": "embeng fault clear link_down ",
    "embeng list x": "embeng list x",
    "embeng top --sort st": "embeng top --sort stalls ",
    "embeng decode --as reco": "embeng decode --as recording ",
    "embeng config convert --to pro": "embeng config convert --to protobuf ",
}
# A line as typed, some words that are offered behind it, and some that are not.
OFFERS = {
    "embeng checkpoint l": (("list", "ls"), ("verify", "conform")),
    "embeng re": (("regs", "reset"), ("list",)),
    "embeng fw ": (("pack", "sign", "verify"), ("ls", "info")),
    "embeng regs boot_": (("boot_state", "boot_error"), ("capabilities",)),
    "embeng fault list ": (("drop_completion", "link_down"), ("set",)),
    "embeng top --sort ": (("busy", "stalls"), ("image.fw",)),
    "embeng train --seed ": ((), ("image.fw",)),
    "embeng train --split ": (("seed", "time"), ("image.fw",)),
    "embeng plan --c": (("--checkpoint", "--cores"), ("--json", "--table")),
}


class Terminal:
    """A shell in a terminal of its own."""

    def __init__(self, command, setup, folder, environment):
        self.pid, self.fd = pty.fork()
        if not self.pid:
            os.chdir(folder)
            os.execvpe(command[0], command, environment)
        self.type(f"source {setup}\r")
        self.read_until("READY")
        self.drain()

    def type(self, text):
        os.write(self.fd, text.encode())

    def read(self, seconds):
        ready, _, _ = select.select([self.fd], [], [], seconds)
        return os.read(self.fd, 65536).decode(errors="replace") if ready else ""

    def drain(self):
        while self.read(0.3):
            pass

    def read_until(self, pattern):
        text, end = "", time.monotonic() + SECONDS
        while not re.search(pattern, text, re.S) and time.monotonic() < end:
            text += self.read(0.2)
        return text

    def press_tab(self, line, times):
        """Returns the line after the TABs, and everything that was shown."""
        self.type(line + "\t" * times)
        time.sleep(0.2)
        text = self.read(0.5)
        self.type("\x14")
        text += self.read_until(r"<<<.*?>>>")
        self.type("\x05\x15")  # to the end of the line, and away with it
        self.drain()
        found = SHOWN.findall(text)
        return (found[-1] if found else ""), text

    def close(self):
        os.close(self.fd)
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)


class Report:
    def __init__(self):
        self.number = self.failed = 0

    def case(self, good, name, said=""):
        self.number += 1
        self.failed += not good
        print(f"{'ok' if good else 'not ok'} {self.number} - {name}")
        if not good:
            print("\n".join("# " + line for line in repr(said).split("\\n")), flush=True)


def is_completed(expected, text):
    """Whether a line or a word is what was expected."""
    return re.fullmatch(re.escape(expected.rstrip()).replace("DEVICE", DEVICE), text)


def try_terminal(report, name, terminal):
    for line, expected in BECOMES.items():
        became, shown = terminal.press_tab(line, 1)
        same = is_completed(expected, became.replace("\\", "").rstrip(" ="))
        report.case(same, f"{name}: {line}", (became, shown))
    for line, (offered, others) in OFFERS.items():
        _, shown = terminal.press_tab(line, 2)
        words = set(re.findall(r"[\w-]+", shown.replace(line, "")))
        report.case(words.issuperset(offered) and not words.intersection(others), f"{name}: {line}",
                    shown)
    terminal.close()


def try_fish(report, folder, work, environment):
    def offers(line):
        asked = f"source {folder}/embeng.fish; complete -C '{line}'"
        done = subprocess.run(["fish", "--no-config", "-c", asked], cwd=work, env=environment,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8",
                              check=False)
        return {row.split("\t")[0] for row in done.stdout.splitlines()}

    for line, expected in BECOMES.items():
        start, last = line.rsplit(" ", 1)
        word = expected[len(start) + 1:].rstrip()
        found = offers(line)
        good = not found if word == last else (
            len(found) == 1 and is_completed(word, next(iter(found))))
        report.case(good, f"fish: {line}", found)
    for line, (offered, others) in OFFERS.items():
        found = offers(line)
        report.case(found.issuperset(offered) and not found.intersection(others), f"fish: {line}",
                    found)


def make_emulator(work, embeng):
    """A folder with an embeng that finds the faults of an emulated device in a tree of its own."""
    tree = os.path.join(work, "tree")
    os.makedirs(os.path.join(tree, "sys/module/embeng_emu"))
    os.makedirs(os.path.join(tree, "sys/devices/platform/embeng_emu.0/pci0eb0:00"))
    for name in ("drop_completion", "link_down"):
        at = os.path.join(tree, "sys/kernel/debug/embeng_emu/0/faults", name)
        os.makedirs(at)
        for file in ("about", "target_is", "value_is", "count", "per_mille", "target", "seed",
                     "value", "value_default", "tries", "hits"):
            with open(os.path.join(at, file), "w", encoding="utf-8") as text:
                text.write("queue\n" if file in ("about", "target_is", "value_is") else "0\n")
    folder = os.path.join(work, "bin")
    os.mkdir(folder)
    path = os.path.join(folder, "embeng")
    with open(path, "w", encoding="utf-8") as script:
        script.write(f'''#!/bin/sh
[ "$1" != fault ] || set -- "$@" --root '{tree}'
exec '{embeng}' "$@"
''')
    os.chmod(path, 0o755)
    return folder


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    embeng, folder = map(os.path.abspath, sys.argv[1:])
    report = Report()
    with tempfile.TemporaryDirectory() as work:
        os.mkdir(os.path.join(work, "folder"))
        open(os.path.join(work, "image.fw"), "wb").close()
        environment = {**os.environ, "HOME": work, "ZDOTDIR": work, "TERM": "dumb", "COLUMNS": "200",
                       "LC_ALL": "C.UTF-8",
                       "PATH": make_emulator(work, embeng) + os.pathsep + os.environ["PATH"]}
        for name, command, setup in (("bash", ["bash", "--norc", "--noprofile", "-i"], BASH),
                                     ("zsh", ["zsh", "-f", "-i"], ZSH)):
            if not shutil.which(name):
                report.case(False, f"{name} is installed")
                continue
            path = os.path.join(work, f"{name}.setup")
            with open(path, "w", encoding="utf-8") as file:
                file.write(setup.replace("FOLDER", folder))
            try_terminal(report, name, Terminal(command, path, work, environment))
        if shutil.which("fish"):
            try_fish(report, folder, work, environment)
        else:
            report.case(False, "fish is installed")
    print(f"1..{report.number}")
    sys.exit(1 if report.failed else 0)


if __name__ == "__main__":
    main()

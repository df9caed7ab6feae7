# SPDX-License-Identifier: MIT
"""Hosts that are network namespaces of this machine, on a bridge that is a namespace, too.

Each has a name of its own, an address in 10.99.0.0/24 and a link that can be slowed or cut. No address is reached
from outside, and all is removed by close(), also what a run before left behind.
"""
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

PREFIX = f"embeng{os.getpid() % 10000}"
INTERFACE = "eth0"


def say(*words, check=True):
    """Runs a command, and raises OSError with its sentence where it fails."""
    done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)
    if check and done.returncode:
        raise OSError(f"{' '.join(words)}: {done.stdout.strip() or done.returncode}")
    return done.stdout


class Hosts:
    """@count hosts, whose names are in @names."""

    def __init__(self, count):
        self.switch = PREFIX + "sw"
        self.names = [f"{PREFIX}h{number}" for number in range(count)]
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="embeng-netns-"))
        try:
            self.make()
        except (OSError, FileNotFoundError):
            self.close()
            raise

    def make(self):
        say("ip", "netns", "add", self.switch)
        say("ip", "-n", self.switch, "link", "add", "bridge", "type", "bridge")
        say("ip", "-n", self.switch, "link", "set", "bridge", "up")
        lines = "127.0.0.1 localhost\n" + "".join(
            f"10.99.0.{number + 1} {name}\n" for number, name in enumerate(self.names))
        for number, name in enumerate(self.names):
            etc = pathlib.Path("/etc/netns", name)
            etc.mkdir(parents=True)
            (etc / "hosts").write_text(lines, encoding="ascii")
            say("ip", "netns", "add", name)
            say("ip", "link", "add", INTERFACE, "netns", name, "type", "veth", "peer", "name", self.port(number),
                "netns", self.switch)
            say("ip", "-n", name, "addr", "add", f"10.99.0.{number + 1}/24", "dev", INTERFACE)
            for link in INTERFACE, "lo":
                say("ip", "-n", name, "link", "set", link, "up")
            say("ip", "-n", self.switch, "link", "set", self.port(number), "master", "bridge", "up")
        self.agent = self.folder / "agent"
        self.agent.write_text(
            "#!/bin/sh\n# Takes the place of ssh: agent HOST COMMAND...\nhost=$1\nshift\n"
            "exec ip netns exec \"$host\" unshare -u sh -c \"hostname $host; $*\"\n", encoding="ascii")
        self.agent.chmod(0o755)

    @staticmethod
    def port(number):
        return f"p{number}"

    def cut(self, number):
        """A command that cuts the link of a host."""
        return f"ip -n {self.switch} link set {self.port(number)} down"

    def flap(self, number, seconds):
        """A command that cuts a link for a time, and does not wait for its end."""
        return (f"{self.cut(number)}; (sleep {seconds}; ip -n {self.switch} link set {self.port(number)} up) "
                "</dev/null >/dev/null 2>&1 &")

    def mend(self):
        for number in range(len(self.names)):
            say("ip", "-n", self.switch, "link", "set", self.port(number), "up")

    def slow(self, rate):
        """Limits what every host sends, or ends that with None."""
        for name in self.names:
            say("tc", "-n", name, "qdisc", "del", "dev", INTERFACE, "root", check=False)
            if rate:
                say("tc", "-n", name, "qdisc", "add", "dev", INTERFACE, "root", "tbf", "rate", rate, "burst", "256k",
                    "latency", "200ms")

    def processes(self):
        return [int(word) for name in self.names for word in say("ip", "netns", "pids", name, check=False).split()
                if word.isdigit()]

    def end_processes(self, grace=0):
        """Kills what still runs on the hosts. Returns how many there were after @grace seconds."""
        until = time.monotonic() + grace
        while self.processes() and time.monotonic() < until:
            time.sleep(0.1)
        left = self.processes()
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        return len(left)

    def close(self):
        self.end_processes()
        for name in [*self.names, self.switch]:
            say("ip", "netns", "del", name, check=False)
            shutil.rmtree(pathlib.Path("/etc/netns", name), ignore_errors=True)
        try:
            os.rmdir("/etc/netns")
        except OSError:
            pass
        shutil.rmtree(self.folder, ignore_errors=True)

# SPDX-License-Identifier: MIT
"""Processes that are measured in turn, once the processors are idle."""
import os
import subprocess
import time

IDLE = 0.05


class Failed(Exception):
    """It could not be measured: the sentence says why."""


def say(text):
    print(text, flush=True)


def busy_share(seconds=1.0):
    """Share of all processors' time that is not idle, by /proc/stat."""
    def ticks():
        with open("/proc/stat", encoding="ascii") as f:
            t = [int(x) for x in f.readline().split()[1:9]]
        return sum(t) - t[3] - t[4], sum(t)

    before = ticks()
    time.sleep(seconds)
    after = ticks()
    return (after[0] - before[0]) / max(1, after[1] - before[1])


def wait_for_idle(patience):
    until = time.monotonic() + patience
    while (share := busy_share()) >= IDLE:
        if time.monotonic() > until:
            raise Failed(f"the processors were still {share:.0%} busy with something else after "
                         f"{patience} seconds; end that, or give more --patience")


def call(command, environment=None):
    """Runs the command on the soft device, whatever EMBENG_DEVICE says, and returns its output."""
    inherited = {k: v for k, v in os.environ.items() if k != "EMBENG_DEVICE"}
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              check=False, env={**inherited, **(environment or {})})
    except OSError as error:
        raise Failed(f"{command[0]}: {error.strerror}") from error
    if done.returncode:
        raise Failed(f"{' '.join(command)}: exit status {done.returncode}\n"
                     f"{(done.stderr or done.stdout).strip()}")
    return done.stdout

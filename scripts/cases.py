# SPDX-License-Identifier: MIT
"""Counts what test programs say about their own cases: Check's summaries, or TAP."""
import re
from typing import NamedTuple

CHECK_SUMMARY = re.compile(r"^\d+%: Checks: (\d+), Failures: (\d+), Errors: (\d+)", re.M)
TAP_LINE = re.compile(r"^(ok|not ok)\b([^\n]*)", re.M)
SKIP = re.compile(r"#\s*SKIP\b[^\n]*", re.I)
# The only things that may be skipped: a kernel variant that the processor lacks, and hosts that are
# network namespaces where the system makes none.
LACKING = re.compile(r"# SKIP (avx2|avx512): this processor lacks it\b|"
                     r"# SKIP (namespaces): none can be made: ")


class Count(NamedTuple):
    passed: int = 0
    failed: int = 0
    skipped: tuple = ()  # names of what the machine lacks, once per case

    def plus(self, other):
        return Count(*(a + b for a, b in zip(self, other)))


def skips(output):
    """Counts skipped cases. Only what LACKING has excuses one; others have failed."""
    lines = set(SKIP.findall(output))
    lacking = [LACKING.match(line) for line in lines]
    names = sorted(match.group(1) or match.group(2) for match in lacking if match)
    return Count(failed=len(lines) - len(names), skipped=tuple(names))


def tap(output):
    """The lines of TAP, whatever else a program of its own said in between."""
    count = skips(output)
    for verdict, rest in TAP_LINE.findall(output):
        if verdict == "not ok":
            count = count.plus(Count(failed=1))
        elif not SKIP.search(rest):
            count = count.plus(Count(passed=1))
    return count


def cases(output):
    """Counts the cases that an output reports: by Check's summaries, else by TAP's lines."""
    summaries = CHECK_SUMMARY.findall(output)
    if not summaries:
        return tap(output)
    count = skips(output)
    for checks, failures, errors in summaries:
        bad = int(failures) + int(errors)
        count = count.plus(Count(int(checks) - bad, bad))
    return count

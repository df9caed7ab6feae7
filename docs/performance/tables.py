#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Print the measured figures of docs/performance/*.json as tables, as the pages have them.

usage: tables.py                           list the tables
       tables.py NAME                      print one
       tables.py peers MACHINE [--summary] print one machine's column of the comparison with peers
       tables.py --check                   do the pages hold these tables? exit status 1 if not
       tables.py --write                   put them into the pages

A page has a table between the lines `<!-- table: NAME ... -->` and `<!-- end of table -->`, with the
words that are given here on the command line. The figures are printed as the JSON spells them.
"""
import json
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
PAGES = [HERE.parent / "performance.md", HERE / "details.md", HERE / "tried.md"]
BLOCK = re.compile(r"^<!-- table: ([^\n]*) -->\n(.*?)^<!-- end of table -->$", re.M | re.S)


class Figure(str):
    """A number as the JSON spells it: 0.040 is a figure of three digits."""


def load(name):
    text = (HERE / f"{name}.json").read_text(encoding="utf-8")
    return json.loads(text, parse_float=Figure, parse_int=Figure)


def names():
    return sorted(path.stem for path in HERE.glob("*.json"))


def grouped(figure):
    """Large whole numbers with commas, as one reads them."""
    return f"{int(figure):,}" if figure.isdigit() and len(figure) > 3 else str(figure)


def cell(value):
    if value is None:
        return "-"
    if isinstance(value, list):
        return " / ".join(grouped(one) for one in value)
    return grouped(value) if isinstance(value, Figure) else value


def table(columns, rows):
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    return "\n".join(lines + ["| " + " | ".join(map(cell, row)) + " |" for row in rows]) + "\n"


def limit(case, key):
    if key not in case:
        return None
    return f"at most {case[key]}" if case.get("at_most") else str(case[key])


def holding(case, key, runs):
    """How many of the runs hold the floor or the aim."""
    line = float(case[key])
    return sum(float(run) <= line if case.get("at_most") else float(run) >= line for run in runs)


def verdict(case, runs):
    """Floor and aim against the figures of one machine, by the digits that are printed."""
    if "floor" not in case:
        return ""
    aims, floors = holding(case, "aim", runs), holding(case, "floor", runs)
    if aims == len(runs):
        return "aim"
    part = {0: "neither", len(runs): "floor"}.get(floors, f"floor in {floors} of {len(runs)}")
    return f"aim in {aims} of {len(runs)}, {part}" if aims else part


def peers(machine=None, summary=None):
    data = load("peers")
    if machine is None:
        machines = list(data["machines"])
        return table(["case", *machines], [[case["case"], *[case["runs"].get(one) for one in machines]]
                                           for case in data["cases"]])
    cases = [case for case in data["cases"]
             if machine in case["runs"] and (summary is None or case.get("summary"))]
    if not cases:
        raise SystemExit(f"tables: no machine {machine}; there are {', '.join(data['machines'])}")
    return table(["", "each run", "floor", "aim", "holds"],
                 [[case["case"], case["runs"][machine], limit(case, "floor"), limit(case, "aim"),
                   verdict(case, case["runs"][machine])] for case in cases])


def render(words):
    name, *more = words
    if name not in names():
        raise SystemExit(f"tables: no table {name}; there are {', '.join(names())}")
    if name == "peers":
        return peers(*more)
    data = load(name)
    return table(data["columns"], data["rows"])


def filled(text):
    return BLOCK.sub(lambda match: f"<!-- table: {match[1]} -->\n{render(match[1].split())}"
                                   "<!-- end of table -->", text)


def main(words):
    if not words:
        print("\n".join(names()))
        return 0
    if words[0] not in ("--check", "--write"):
        print(render(words), end="")
        return 0
    shown = set()
    wrong = 0
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        shown |= {match[1].split()[0] for match in BLOCK.finditer(text)}
        if filled(text) == text:
            continue
        if words[0] == "--write":
            page.write_text(filled(text), encoding="utf-8")
            continue
        print(f"{page}: a table is not what {HERE.name}/*.json says; see tables.py --write",
              file=sys.stderr)
        wrong = 1
    for name in set(names()) - shown:
        print(f"{HERE / name}.json: no page shows it", file=sys.stderr)
        wrong = 1
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

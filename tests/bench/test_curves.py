#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests the measurements of tests/bench/curves, its output, its JSON and its drawings.

usage: test_curves.py EMBENG-COMMAND
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

HERE = os.path.dirname(os.path.abspath(__file__))
CURVES = os.path.join(HERE, "curves")
EMBENG = ""
SVG = "{http://www.w3.org/2000/svg}"


def run(*arguments):
    return subprocess.run([CURVES, "--embeng", EMBENG, "--scale", "0.001", "--runs", "5",
                           *arguments], capture_output=True, text=True)


class Curves(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def test_points_are_printed_kept_and_drawn(self):
        done = run("--only", "pool", "--most", "16", "--json", self.path("j"), "--svg",
                   self.path("svg"))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        with open(self.path("j"), encoding="utf-8") as file:
            results = json.load(file)["results"]
        self.assertEqual([r["shape"]["ids_per_sample"] for r in results], [1, 4, 16])
        self.assertEqual([(r["varied"], r["value"]) for r in results],
                         [("pool", 1), ("pool", 4), ("pool", 16)])
        for r in results:
            self.assertEqual((r["shape"]["rows"], r["shape"]["samples"]), ([1000], 4))
            ns = r["step_ms"]["median"] * 1e6 / r["ids_per_step"]
            self.assertRegex(done.stdout,
                             rf"(?m)^pool +{r['value']}  dim  64 +{ns:.2f} ns/id .* %$")
        self.assertEqual(os.listdir(self.path("svg")), ["pool.svg"])
        with open(self.path("svg/pool.svg"), encoding="utf-8") as file:
            self.assertIn("SPDX-License-Identifier: MIT", file.readlines()[1])
        drawn = xml.etree.ElementTree.parse(self.path("svg/pool.svg")).getroot()
        texts = [t for e in drawn.iter(f"{SVG}text") for t in e.itertext()]
        for text in ("ids of a bag", "ns an id", "dim 64", "gather limit, dim 64"):
            self.assertIn(text, texts)
        # one mark for each point and one in the key; gnuplot 6 paints white behind each
        marks = [e for e in drawn.iter(f"{SVG}use")
                 if "id" not in e.attrib and e.attrib.get("color") != "#FFFFFF"]
        self.assertEqual(len(marks), len(results) + 1)

    def test_both_dims_over_rows_are_in_one_drawing(self):
        done = run("--only", "rows", "--most", "100000", "--svg", self.folder)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(os.listdir(self.folder), ["rows.svg"])
        with open(self.path("rows.svg"), encoding="utf-8") as file:
            text = file.read()
        self.assertIn("dim 16", text)
        self.assertIn("dim 64", text)

    def test_without_gnuplot_the_way_out_is_told(self):
        done = subprocess.run([sys.executable, CURVES, "--embeng", EMBENG, "--svg", self.folder],
                              capture_output=True, text=True, env={"PATH": self.folder})
        self.assertEqual(done.returncode, 2)
        self.assertIn("apt-get install gnuplot-nox", done.stderr)

    def test_a_run_that_fails_is_told(self):
        done = run("--only", "pool", "--most", "1", "--threads", "0")
        self.assertEqual(done.returncode, 2)
        self.assertIn("exit status 2", done.stderr)


if __name__ == "__main__":
    EMBENG = sys.argv.pop(1)
    unittest.main()

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Random numbers of the reference: known answers, and moments of its distributions."""

import unittest

from refrandom import Initializer, Part, fnv1a, philox, truncated_normal
from referror import RefError


class Words(unittest.TestCase):
    def test_known_answers_of_random123(self):
        for counter, key, words in (
                ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
                ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2,
                 [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
                ([0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344], [0xA4093822, 0x299F31D0],
                 [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1])):
            self.assertEqual(philox(counter, key), words)

    def test_known_answers_of_fnv(self):
        self.assertEqual(fnv1a(""), 0xCBF29CE484222325)
        self.assertEqual(fnv1a("a"), 0xAF63DC4C8601EC8C)
        self.assertEqual(fnv1a("foobar"), 0x85944171F73967E8)


class Distributions(unittest.TestCase):
    def test_truncated_normal(self):
        self.assertAlmostEqual(truncated_normal(2 ** 31), 0, delta=1e-8)
        self.assertAlmostEqual(truncated_normal(0), -2, delta=1e-7)
        self.assertAlmostEqual(truncated_normal(2 ** 32 - 1), 2, delta=1e-7)
        # One deviation is at the half of (0.954499736 - 0.682689492), behind the lower limit.
        word = round((0.954499736104 - 0.682689492137) / 2 / 0.954499736104 * 2 ** 32)
        self.assertAlmostEqual(truncated_normal(word), -1, delta=1e-8)

    def test_uniform(self):
        row = Initializer({"kind": "uniform", "a": 2, "b": 4}, "t").row("t", 0, 3, range(4000))
        self.assertTrue(all(2 <= x < 4 for x in row))
        self.assertAlmostEqual(sum(row) / len(row), 3, delta=0.05)
        self.assertEqual(len(set(row)), 4000)


class Parts(unittest.TestCase):
    WHOLE = {"rows": 10, "first_row": 1, "row_step": 2, "dim": 8, "first_column": 3}

    def test_places(self):
        part = Part(self.WHOLE, "t", 5, 4)
        self.assertEqual([part.row(r) for r in range(5)], [1, 3, 5, 7, 9])
        self.assertEqual(list(part.columns(False)), [3, 4, 5, 6])
        self.assertEqual(list(part.columns(True)), [0])
        whole = Part(None, "t", 5, 4)
        self.assertEqual((whole.row(4), list(whole.columns(False))), (4, [0, 1, 2, 3]))

    def test_outside(self):
        for change in ({"first_row": 2}, {"row_step": 3}, {"dim": 6}, {"first_column": 5},
                       {"rows": 4}):
            with self.assertRaises(RefError):
                Part({**self.WHOLE, **change}, "t", 5, 4)


if __name__ == "__main__":
    unittest.main()

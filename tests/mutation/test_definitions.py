#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A mutation finds its definition by name in whatever file that is, and is refused by name else."""
import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True

from definitions import definitions_in
from mutate import Misplaced, edits_of, mutated, mutated_files, place_of
from mutations import Edit, Mutation

SOURCE = """// SPDX-License-Identifier: MIT
/*
static int in_a_comment(void)
 */
#define LIMIT 3u
#define STEP(w) \\
	w = w - 1; \\
	w = w * 2;

static const int numbers[2] = {
	[0] = 1,
};

struct pair {
	int first;
};

int declared(int x);

/* Twice. */
static int twice(int x)
{
	if (x > 1) {
		return x + x;
	}
	return x + x;
}

static inline __attribute__((always_inline)) float KERNEL(add)(float a,
							       float b)
{
	return a + b;
}
"""


def index(file="a.c", text=SOURCE):
    found = {}
    for name, definition in definitions_in(file, text):
        found.setdefault(name, []).append(definition)
    return found


class Found(unittest.TestCase):
    def test_names(self):
        self.assertEqual(list(index()), ["LIMIT", "STEP", "numbers", "pair", "declared", "twice",
                                         "add"])

    def test_text_is_the_whole_definition(self):
        found = index()
        self.assertTrue(found["STEP"][0].text.endswith("w = w * 2;\n"))
        self.assertTrue(found["twice"][0].text.endswith("}\n\treturn x + x;\n}\n"))
        self.assertEqual(found["add"][0].text.count("\n"), 5)
        for (one,) in found.values():
            self.assertEqual(SOURCE[one.start:one.start + len(one.text)], one.text)

    def test_a_file_may_have_another_name(self):
        mutation = Mutation("m", "add", "a + b", "a - b")
        for file in ("a.c", "b/c.h"):
            place = place_of(mutation, index(file))
            self.assertEqual(place.file, file)
            self.assertEqual(mutated(SOURCE, place, mutation), SOURCE.replace("a + b", "a - b"))


    def test_lines_may_be_broken_elsewhere(self):
        mutation = Mutation("m", "add", "a + b", "a - b")
        broken = SOURCE.replace("a + b", "a\n\t\t+ b")
        place = place_of(mutation, index(text=broken))
        self.assertEqual(mutated(broken, place, mutation), SOURCE.replace("a + b", "a - b"))


class Several(unittest.TestCase):
    """A mistake in two places, of one file and of two."""

    def change(self, mutation, files):
        with tempfile.TemporaryDirectory() as root:
            for file in files:
                with open(os.path.join(root, file), "w", encoding="utf-8") as source:
                    source.write(files[file])
            definitions = {}
            for file in files:
                for name, found in index(file, files[file]).items():
                    definitions.setdefault(name, []).extend(found)
            return mutated_files(root, edits_of(mutation), definitions)

    def test_in_one_file(self):
        mutation = Mutation("m", "LIMIT", "3u", "44444u", also=(Edit("add", "a + b", "a - b"),
                                                               Edit("twice", "x > 1", "x")))
        changed = SOURCE.replace("3u", "44444u").replace("a + b", "a - b").replace("x > 1", "x")
        self.assertEqual(self.change(mutation, {"a.c": SOURCE}), {"a.c": changed})

    def test_in_two_files(self):
        mutation = Mutation("m", "LIMIT", "3u", "4u", also=(Edit("other", "return 1", "return 2"),))
        other = "int other(void)\n{\n\treturn 1;\n}\n"
        self.assertEqual(self.change(mutation, {"a.c": SOURCE, "b.c": other}),
                         {"a.c": SOURCE.replace("3u", "4u"),
                          "b.c": other.replace("return 1", "return 2")})


class Refused(unittest.TestCase):
    def refuse(self, mutation, words):
        with self.assertRaisesRegex(Misplaced, words):
            mutated(SOURCE, place_of(mutation, index()), mutation)

    def test_no_such_name(self):
        self.refuse(Mutation("m", "in_a_comment", "int", "long"), "nothing is named in_a_comment")

    def test_not_there(self):
        self.refuse(Mutation("m", "add", "x + x", ""), r"in add \(a.c\) is there 0 times")

    def test_there_twice(self):
        self.refuse(Mutation("m", "twice", "x + x", ""), r"in twice \(a.c\) is there 2 times")

    def test_changes_nothing(self):
        self.refuse(Mutation("m", "add", "a + b", "a + b"), "changes nothing in a.c")


if __name__ == "__main__":
    unittest.main()

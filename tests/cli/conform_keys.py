#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every key of the vector format: used by a vector, refused when it is misspelt or missing, and
heard, that is, a vector with a wrong expectation under it fails.

usage: conform_keys.py EMBENG-COMMAND VECTORS PAGE
"""
import copy
import functools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

EMBENG, VECTORS, PAGE = "", {}, ""

# Objects of a file by their place, with the keys that each may have; "!" behind a required one.
# "*" is any name, "[]" each element of a list.
KEYS = {
    "": "schema! name! about source requires engine tables! features! model_error steps!",
    "engine": "replicas cores hosts sharding pipelining fixed_shapes non_finite",
    "tables[]": "name! vocabulary_size! dim! combiner optimizer initial slots out_of_range "
                "quantization frozen initializer part",
    "tables[].quantization": "num_buckets! lower! upper!",
    "tables[].initializer": "kind! a b seed",
    "tables[].part": "rows! first_row row_step dim first_column",
    "features[]": "name! table! max_sequence_length output_shape validate_weights_and_indices",
    "model_error": "errno contains",
    "steps[].error": "errno contains",
    "steps[].enqueue": "replica training features!",
    "steps[].dequeue": "replica expect! atol rtol",
    "steps[].apply_gradients": "replica gradients! learning_rates multiplier sums",
    "steps[].update": "replica features! gradients! learning_rates multiplier sums",
    "steps[].discard": "replica",
    "steps[].expect_gradients": "replica features! gradients! norm tables weights atol rtol",
    "steps[].expect_table": "table! slot rows values! atol rtol",
    "steps[].lookup": "features! expect! atol rtol config",
    "steps[].save": "dir!",
    "steps[].restore": "dir!",
    "steps[].reopen": "engine optimizer",
    "steps[].reopen.engine": "replicas cores hosts sharding pipelining fixed_shapes non_finite",
    "steps[].expect_stats": "table! ids unique_ids dropped_ids clamped_ids zeroed_ids "
                            "nonfinite_gradient_rows",
    "steps[].freeze": "table! frozen!",
    "steps[].fill": "table! slot first count initializer!",
    "steps[].fill.initializer": "kind! a b seed",
    "steps[].stacking": "flavour! sparse_cores! cores_per_device activation_limit_bytes expect!",
    "steps[].stacking.expect[]": "name width tables row_offsets rotations sample_offsets",
    "steps[].partition": "flavour! sparse_cores! cores_per_device! device features! "
                         "max_ids_per_partition! max_unique_ids_per_partition! minibatching bucket "
                         "allow_id_dropping suggested_buffer_size rotation expect!",
    "steps[].partition.expect": "row_pointers items dropped_ids max_ids max_unique_ids "
                                "required_buffer minibatches padding",
    "steps[].partition.expect.padding": "id gain",
    "steps[].spread": "hosts sharding features! gradients expect! atol rtol",
    "steps[].spread.expect": "rows activations sums",
    "steps[].enqueue.features.*": "dense shape sparse ragged weights",
    "steps[].enqueue.features.*.sparse": "indices! values! shape!",
    "steps[].enqueue.features.*.ragged": "rows values row_splits",
}


def keys_of(place):
    return {key.rstrip("!"): key.endswith("!") for key in KEYS[place].split()}


def places(value, place="", path=()):
    """Every object of a vector: its place in the format, and the keys and indices that lead to it."""
    if isinstance(value, list):
        for k, one in enumerate(value):
            if isinstance(one, (list, dict)):
                yield from places(one, place + "[]", (*path, k))
    if not isinstance(value, dict):
        return
    yield place, path
    free = place.endswith("features") and place != "features"
    for key, one in value.items():
        if isinstance(one, (list, dict)):
            below = "*" if free else key
            yield from places(one, f"{place}.{below}" if place else below, (*path, key))


@functools.cache
def objects_at():
    """All objects of all vectors: {place: [(name of the vector, path), ...]}."""
    found = {}
    for name in sorted(VECTORS):
        for place, path in places(VECTORS[name]):
            found.setdefault(place, []).append((name, path))
    return found


def follow(vector, path):
    for step in path:
        vector = vector[step]
    return vector


def objects(place, wanted=lambda found: True):
    """(vector, object) of each wanted object of this place, the vectors copied."""
    for name, path in objects_at().get(place, []):
        if wanted(follow(VECTORS[name], path)):
            vector = copy.deepcopy(VECTORS[name])
            yield vector, follow(vector, path)


def with_key(place, key):
    """A copied vector that has the key, and the object that has it."""
    for pair in objects(place, lambda found: found.get(key) is not None):
        return pair
    raise AssertionError(f"no vector has {place}.{key}")


def run(vectors, *options):
    """Exit status, document and text of a run of these vectors."""
    with tempfile.TemporaryDirectory() as folder:
        for k, vector in enumerate(vectors):
            path = os.path.join(folder, f"{k:03}.json")
            with open(path, "w", encoding="utf-8") as out:
                json.dump(vector, out)
        done = subprocess.run([EMBENG, "conform", "-d", "soft", "--json", *options, folder],
                              capture_output=True, text=True, check=False, timeout=240)
    return done.returncode, json.loads(done.stdout)


class Used(unittest.TestCase):
    def test_every_key_is_in_a_vector(self):
        for place in KEYS:
            for key in keys_of(place):
                with_key(place, key)

    def test_no_key_is_unknown_here(self):
        for place in KEYS:
            for name, path in objects_at()[place]:
                self.assertLessEqual(set(follow(VECTORS[name], path)), set(keys_of(place)), place)


class Page(unittest.TestCase):
    """embeng-vector(5)."""

    def test_every_key(self):
        for place in KEYS:
            for key in keys_of(place):
                self.assertTrue(re.search(rf'\.(It )?Va (.* )?{key}\b|"{key}"', PAGE),
                                f"{place}.{key}")

    def test_every_verb(self):
        verbs = {key for vector in VECTORS.values() for step in vector["steps"] for key in step}
        self.assertGreater(len(verbs), 12)
        for verb in verbs - {"error"}:
            self.assertTrue(re.search(rf"\.It Cm (.* )?{verb}\b", PAGE), verb)

    def test_example(self):
        example = json.loads(re.search(r"^\{\"schema\".*?^\.Ed", PAGE, re.S | re.M)[0][:-3])
        self.assertEqual(run([example])[0], 0)
        example["steps"][-1]["expect_table"]["values"][0][0] += 1
        self.assertEqual(run([example])[0], 1)


class Malformed(unittest.TestCase):
    def refused(self, vector, word):
        status, document = run([vector])
        self.assertEqual(status, 2, word)
        self.assertEqual(document["error"]["name"], "EBADMSG")
        self.assertIn(word, document["error"]["message"])

    def test_misspelt_key(self):
        for place in KEYS:
            vector, found = next(objects(place))
            found["frob"] = 1
            self.refused(vector, "frob")

    def test_missing_key(self):
        for place in KEYS:
            for key in (key for key, required in keys_of(place).items() if required):
                vector, found = with_key(place, key)
                del found[key]
                self.refused(vector, f"'{key}'")

    def test_wrong_type(self):
        for place in KEYS:
            for key in keys_of(place):
                vector, found = with_key(place, key)
                # a rate and a clip may be objects and lists, a matrix and a gradient both
                found[key] = True if not isinstance(found[key], bool) else 1
                self.refused(vector, key)

    def test_error_without_a_step(self):
        vector, found = next(objects("steps[].error"))
        step = next(s for s in vector["steps"] if s.get("error") is found)
        for verb in [key for key in step if key != "error"]:
            del step[verb]
        self.refused(vector, "verb")


class ModelErrors(unittest.TestCase):
    """A value that a model refuses is no malformed file."""

    def test_model_error(self):
        wrong = []
        for key, value in (("combiner", "frob"), ("out_of_range", "frob"), ("dim", 0),
                           ("vocabulary_size", -1), ("optimizer", {"kind": "frob"})):
            vector, found = next(objects("tables[]"))
            found[key] = value
            wrong.append(vector)
        status, document = run(wrong)
        self.assertEqual(status, 1)
        for one in document["vectors"]:
            self.assertEqual([(f["step"], f["verb"]) for f in one["failures"]], [(0, "model")])


def next_number(value):
    """The first number of nested lists, moved; False: there is none."""
    for k, one in enumerate(value):
        if isinstance(one, list) and next_number(one):
            return True
        if isinstance(one, (int, float)):
            value[k] = one + 1
            return True
    return False


def falsify(value):
    """Something else of the same type, or None."""
    value = copy.deepcopy(value)
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + 1
    if isinstance(value, str):
        return value + "x"
    if isinstance(value, list):
        if value and all(isinstance(one, str) for one in value):
            return value[:-1] + [value[-1] + "x"]
        return value if next_number(value) else None
    return None


FALSE = {
    "steps[].dequeue.expect": None, "steps[].lookup.expect": None,
    "steps[].expect_table": ["values"],
    "steps[].expect_stats": ["ids", "unique_ids", "dropped_ids", "clamped_ids", "zeroed_ids",
                             "nonfinite_gradient_rows"],
    "steps[].stacking.expect[]": None, "steps[].partition.expect": None,
    "steps[].partition.expect.padding": ["id", "gain"],
    "steps[].spread.expect.rows": None, "steps[].spread.expect.activations": None,
    "steps[].spread.expect.sums": None,
}


def falsified(place, key):
    """A vector with another expectation there."""
    for vector, found in objects(place, lambda f: key in f and falsify(f[key]) is not None):
        if not any("error" in step for step in vector["steps"]):
            found[key] = falsify(found[key])
            return vector
    raise AssertionError(f"no vector to falsify {place}.{key} of")


def names_in(place):
    """Keys of free names: those of the first vector that has any."""
    return keys_of(place) if place in KEYS else [next(
        key for name, path in objects_at()[place]
        for key, value in follow(VECTORS[name], path).items() if falsify(value) is not None)]


class Heard(unittest.TestCase):
    def fail(self, vectors):
        status, document = run(vectors)
        self.assertEqual(status, 1)
        passed = [one["name"] for one in document["vectors"] if one["result"] != "failed"]
        self.assertEqual(passed, [])
        return document["vectors"]

    def test_expectations(self):
        self.fail([falsified(place, key) for place, keys in FALSE.items()
                   for key in keys or names_in(place) if key != "padding"])

    def test_shape(self):
        wrong = []
        for place in ("steps[].dequeue.expect", "steps[].lookup.expect"):
            vector, found = next(objects(place, bool))
            name = next(iter(found))
            found[name] = found[name][:-1]
            wrong.append(vector)
        vector, found = next(objects("steps[].stacking", lambda f: len(f["expect"]) > 1))
        del found["expect"][-1]
        self.fail(wrong + [vector])

    def test_configuration(self):
        wrong = []
        for key in ("hex", "import_hex"):
            vector, found = with_key("steps[].expect_config", key)
            vector["tables"][0]["dim"] += 1
            wrong.append(vector)
        vector, found = with_key("steps[].expect_config", "hex")
        found["hex"] = found["hex"][:-2]
        other, found = with_key("steps[].expect_config", "hex")
        found["hex"] += "00"
        for one in self.fail(wrong + [vector, other]):
            self.assertIn("differ from byte", one["failures"][0]["message"])
        for hexadecimal in ("0", "0g", "zz"):
            vector, found = with_key("steps[].expect_config", "hex")
            found["hex"] = hexadecimal
            self.assertIn("hexadecimal", self.fail([vector])[0]["failures"][0]["message"])

    def test_errors(self):
        wrong = []
        for place in ("steps[].error", "model_error"):
            for key, value in (("errno", "ECANCELED"), ("contains", ["frob"])):
                vector, found = with_key(place, key)
                found[key] = value
                wrong.append(vector)
        vector, found = with_key("steps[].error", "errno")
        del next(step for step in vector["steps"] if step.get("error") is found)["error"]
        other, _ = with_key("", "model_error")
        del other["model_error"]
        self.fail(wrong + [vector, other])

    def test_error_that_does_not_come(self):
        wrong = []
        for verb in ("enqueue", "dequeue", "apply_gradients", "expect_table", "lookup", "save",
                     "restore", "reopen", "expect_config", "expect_stats", "stacking",
                     "partition", "spread", "freeze", "fill", "update", "discard",
                     "expect_gradients"):
            vector = copy.deepcopy(next(
                VECTORS[n] for n in sorted(VECTORS)
                if any(verb in step and "error" not in step for step in VECTORS[n]["steps"])))
            next(step for step in vector["steps"]
                 if verb in step and "error" not in step)["error"] = {}
            wrong.append(vector)
        for one in self.fail(wrong):
            self.assertIn("must fail", one["failures"][0]["message"])
        model = copy.deepcopy(VECTORS["keys_requires"])
        model["model_error"] = {}
        self.fail([model])


class Skipped(unittest.TestCase):
    def test_none_of_the_tree(self):
        status, document = run(VECTORS.values())
        self.assertEqual((status, document["failed"], document["skipped"]), (0, 0, 0))
        self.assertEqual(document["passed"], len(VECTORS))
        self.assertGreaterEqual(len(VECTORS), 250)

    def test_only_what_is_named_or_a_program(self):
        program = copy.deepcopy(VECTORS["keys_requires"])
        program["tables"][0]["optimizer"] = {"kind": "program"}
        hardware = copy.deepcopy(VECTORS["keys_requires"])
        hardware["requires"] = ["hardware_fault"]
        status, document = run([program, hardware])
        self.assertEqual((status, document["skipped"]), (0, 2))
        self.assertEqual([one["lacks"] for one in document["vectors"]],
                         [["optimizer:program", "program"], ["hardware_fault"]])


if __name__ == "__main__":
    EMBENG = sys.argv[1]
    VECTORS = {path.stem: json.loads(path.read_text(encoding="utf-8"))
               for path in pathlib.Path(sys.argv[2]).rglob("*.json")}
    PAGE = pathlib.Path(sys.argv[3]).read_text(encoding="utf-8")
    unittest.main(argv=sys.argv[:1])

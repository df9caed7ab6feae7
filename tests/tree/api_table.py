#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""docs/api.txt: what it names is there, and nothing that must have a row is without one.

usage: api_table.py SOURCE-ROOT BUILD-ROOT
"""
import json
import pathlib
import re
import subprocess
import sys
import unittest

ROOT, BUILD = pathlib.Path("."), pathlib.Path(".")
SECTIONS, HEADERS, PAGE, PROTO, VECTORS, LISTED = [], "", "", "", {}, ""

# Functions that have no counterpart in the family: devices, memory and other files of ours.
OURS = {
    "embeng_device_info", "embeng_device_list", "embeng_registers_read", "embeng_register_write", "embeng_device_reset",
    "embeng_close", "embeng_get_model", "embeng_interrupt", "embeng_ask", "embeng_log", "embeng_buffer_alloc", "embeng_buffer_free",
    "embeng_memory_export", "embeng_buffer_import", "embeng_usage", "embeng_last_error",
    "embeng_model_blob", "embeng_optimizer_text", "embeng_optimizer_by_name",
    "embeng_model_get_engine", "embeng_update", "embeng_discard", "embeng_open_with", "embeng_lookup",
    "embeng_add_tables",
    "embeng_table_map", "embeng_table_unmap", "embeng_batch_bags", "embeng_batch_keyed",
    "embeng_step", "embeng_set_step", "embeng_memory_register", "embeng_memory_unregister",
    "embeng_group_transport", "embeng_group_threads", "embeng_group_open", "embeng_group_close", "embeng_group_rank",
    "embeng_group_ranks", "embeng_group_host", "embeng_group_begin", "embeng_group_wait",
    "embeng_group_end", "embeng_group_exchange", "embeng_open_group",
    "embeng_batch_gather", "embeng_spread_unique", "embeng_spread_pool", "embeng_spread_sum",
}
OUR_HEADERS = {"checkpoint.h", "error.h", "hosts.h", "plan.h", "stream.h"}


def rows():
    return [row for section in SECTIONS for row in section.rows]


def text_of(path):
    return (ROOT / path).read_text(encoding="utf-8")


def members(header_text):
    """Members of every public structure."""
    found = {}
    for name, body in re.findall(r"^struct (embeng_\w+) \{\n(.*?)^\};", header_text, re.S | re.M):
        words = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
        # the names in "int32_t a, b[4];" and "int (*fn)(...);"
        for line in re.findall(r"[^;{}]+;", words):
            pointer = re.search(r"\(\*(\w+)\)", line)
            names = [pointer[1]] if pointer else re.findall(r"(\w+)\s*(?:\[[^\]]*\])?\s*[,;]", line)
            found.setdefault(name, set()).update(names)
    return found


def public_functions(header_text):
    return set(re.findall(r"\b(embeng_\w+)\(", re.sub(r"/\*.*?\*/", "", header_text, flags=re.S)))


def optimizer_page():
    """Kind -> (keys, slots), as embeng-optimizers(7) has them."""
    found = {}
    for line in PAGE.split("\n"):
        kind = re.match(r"\.It Cm (\w+)$", line)
        entry = re.match(r"\.It (key|slot) Ta Va (\w+) ", line)
        if kind:
            found[kind[1]] = ([], [])
        elif entry:
            list(found.values())[-1][entry[1] == "slot"].append(entry[2])
    return found


def proto_fields():
    """Every message.field of our copy of the protobuf; a choice's fields are its message's."""
    inside = []
    for line in PROTO.split("\n"):
        opened = re.match(r" *(message|enum|oneof) (\w+) \{", line)
        field = re.match(r" *(?:repeated )?[\w.]+ (\w+) = \d+;", line)
        if opened and not line.rstrip().endswith("}"):
            inside.append((opened[1], inside[-1][1] if opened[1] == "oneof" else opened[2]))
        elif line.strip() == "}":
            inside.pop()
        elif field and inside and inside[-1][0] != "enum":
            yield f"{inside[-1][1]}.{field[1]}"


def counterpart_is_there(text, structures, functions):
    name = re.sub(r" \(.*\)$", "", text)
    command = re.fullmatch(r'"embeng (\w+)(?: (\w+))?.*"', name)
    if command:
        done = subprocess.run([BUILD / "runtime" / "embeng", command[1], "--help"],
                              capture_output=True, text=True, check=False)
        return done.returncode == 0 and (not command[2] or f"  {command[2]} " in done.stdout)
    if re.fullmatch(r"embeng_\w+\(\)", name):
        return name[:-2] in functions
    if name.startswith("struct "):
        return name[7:] in structures
    if "." in name:
        structure, member = name.split(".")
        return member in structures.get(structure, ())
    if re.fullmatch(r"EMBENG_\w+", name):
        return re.search(rf"\b{name}\b", HEADERS) is not None
    return re.search(rf"typedef .*\(\*{name}\)|\b{name}\b", HEADERS) is not None


def proof_is_there(text):
    if text in VECTORS:
        return True
    if text.endswith(".sh"):
        return (ROOT / "tests/cli" / text).exists() and f"'{text[:-3]}'" in LISTED
    source, test = text.split(":") if ":" in text else ("", "")
    folder, _, name = source.rpartition("/")
    return any(f"{path.name}'" in LISTED and
               f"START_TEST({test})" in path.read_text(encoding="utf-8")
               for path in (ROOT / "tests" / (folder or "unit")).rglob(f"{name}.c"))


def uses(vector, kind, key):
    """Does a table of this vector have this setting of this kind, given or by default?"""
    return any(table.get("optimizer", {}).get("kind") == kind
               and (key is None or key in table["optimizer"]) for table in vector["tables"])


def reads(vector, kind, slot):
    kinds = {table["name"]: table.get("optimizer", {}).get("kind") for table in vector["tables"]}
    return any(step.get("expect_table", {}).get("slot") == slot
               and kinds[step["expect_table"]["table"]] == kind for step in vector["steps"])


class Table(unittest.TestCase):
    def test_names_are_there_once(self):
        seen = set()
        for row in rows():
            self.assertNotIn((row.section, row.name), seen)
            seen.add((row.section, row.name))

    def test_counterparts(self):
        structures, functions = members(HEADERS), public_functions(HEADERS)
        self.assertGreater(len(structures), 30)
        self.assertGreater(len(functions), 100)
        self.assertIn("clip_min", structures["embeng_optimizer"])
        for row in rows():
            for one in row.counterparts:
                self.assertTrue(counterpart_is_there(one, structures, functions),
                                f"line {row.line}: {one} is in no header")

    def test_proofs(self):
        for row in rows():
            for one in row.proofs:
                self.assertTrue(proof_is_there(one), f"line {row.line}: there is no {one}")

    def test_what_is_not_there_is_seen(self):
        structures, functions = members(HEADERS), public_functions(HEADERS)
        for one in ("embeng_frob()", "embeng_optimizer.frob", "struct embeng_frob", "EMBENG_FROB",
                    "embeng_frob_fn", '"embeng frob"', '"embeng config frob"'):
            self.assertFalse(counterpart_is_there(one, structures, functions), one)
        for one in ("frob", "test_model:frob", "test_frob:takes", "vm/test_fences:frob", "frob.sh"):
            self.assertFalse(proof_is_there(one), one)

    def test_every_optimizer(self):
        """Its settings and slots, each with a vector that has it."""
        page = optimizer_page()
        self.assertEqual(set(page), {row.kind for row in rows() if row.kind})
        for kind, (keys, slots) in page.items():
            own = {row.name: row for row in rows() if row.kind == kind}
            self.assertLessEqual(set(keys) | set(slots), set(own), kind)
            for key in keys:
                self.assertTrue(any(uses(VECTORS[one], kind, key) for one in own[key].proofs),
                                f"{kind}.{key}")
            for slot in slots:
                self.assertTrue(any(reads(VECTORS[one], kind, slot) for one in own[slot].proofs),
                                f"{kind}.{slot}")

    def test_every_field_of_the_protobuf(self):
        names = {row.name for row in rows()}
        fields = list(proto_fields())
        self.assertGreater(len(fields), 120)
        self.assertEqual([field for field in fields if field not in names], [])

    def test_every_function(self):
        """Every function of libembeng is in the table, or OURS says that it has no counterpart."""
        named = {re.sub(r"\(\).*", "", one) for row in rows() for one in row.counterparts}
        ours = set(OURS)
        self.assertLessEqual(ours, public_functions(HEADERS))
        for header in OUR_HEADERS:
            ours |= public_functions(text_of(f"runtime/include/embeng/{header}"))
        self.assertEqual(public_functions(HEADERS) - named - ours, set())


def load():
    global ROOT, BUILD, HEADERS, PAGE, PROTO, LISTED
    ROOT, BUILD = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(ROOT / "docs/man"))
    import api
    SECTIONS.extend(api.read(ROOT / "docs/api.txt"))
    HEADERS = "\n".join(path.read_text(encoding="utf-8") for path in sorted(
        (ROOT / "runtime/include").rglob("*.h")))
    PAGE, PROTO = text_of("docs/man/embeng-optimizers.7"), text_of("runtime/proto/tpu.proto")
    LISTED = "".join(path.read_text(encoding="utf-8")
                     for path in (ROOT / "tests").rglob("meson.build"))
    for path in (ROOT / "tests/vectors").rglob("*.json"):
        VECTORS[path.stem] = json.loads(path.read_text(encoding="utf-8"))


if __name__ == "__main__":
    load()
    unittest.main(argv=sys.argv[:1])

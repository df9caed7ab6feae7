#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Validates documents of the command against the schemas in docs/schemas.

usage: schemas.py FILE...             the document of each file keeps to its schema, or that of each
                                      line, where there are several
       schemas.py --table VERB...     each verb has a schema, and no schema is open

A document names its schema: {"schema": "embeng.plan/1"} is described by embeng.plan-1.json. A
document must also stop to be valid when any of its objects that the schema names member by member
gets a member more: a schema that lets it pass says less than it seems to.
"""
import copy
import json
import os
import re
import sys
import warnings

import jsonschema

HERE = os.path.dirname(os.path.abspath(__file__))
SCHEMAS = os.path.join(HERE, "..", "..", "docs", "schemas")
BASE = "file:///schemas/"  # where schemas that refer to each other are said to lie
NAME = re.compile(r"embeng\.([a-z-]+)-(\d+)\.json")
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def load_schemas():
    """Returns every schema by the name that documents have: {"embeng.plan/1": {...}}."""
    found = {}
    for name in sorted(os.listdir(SCHEMAS)):
        parts = NAME.fullmatch(name)
        if parts:
            with open(os.path.join(SCHEMAS, name), encoding="utf-8") as file:
                found[f"embeng.{parts[1]}/{parts[2]}"] = json.load(file)
    return found


def validator(schemas, name):
    """A validator of one schema, which may refer to another one by the name of its file."""
    store = {BASE + other.replace("/", "-") + ".json": schema for other, schema in schemas.items()}
    resolver = jsonschema.RefResolver(BASE, schemas[name], store=store)
    return jsonschema.Draft202012Validator(schemas[name], resolver=resolver)


def place(error):
    return "/".join(str(part) for part in error.absolute_path) or "the document"


def leaves(error):
    """The errors at the bottom: of a choice, those of the alternative that has the fewest."""
    branches = {}
    for cause in error.context:
        branches.setdefault(cause.schema_path[0], []).extend(leaves(cause))
    return min(branches.values(), key=len) if branches else [error]


def objects(value, path=()):
    """The path of every object in a document."""
    if isinstance(value, dict):
        yield path
        for key, member in value.items():
            yield from objects(member, path + (key,))
    elif isinstance(value, list):
        for index, member in enumerate(value[:3]):
            yield from objects(member, path + (index,))


def with_member(document, path):
    """A copy with a member that no schema describes, in the object at the path."""
    changed = copy.deepcopy(document)
    at = changed
    for key in path:
        at = at[key]
    at["no such member"] = {"no such member": {}}
    return changed


def faults(schemas, document):
    """Says in sentences what is wrong with one document."""
    name = document.get("schema") if isinstance(document, dict) else None
    if name not in schemas:
        return [f"docs/schemas has no schema for {name!r}"]
    check = validator(schemas, name)
    found = [f"{place(leaf)}: {leaf.message[:200]}"
             for error in check.iter_errors(document) for leaf in leaves(error)]
    if found:
        return found
    return [f"{'/'.join(map(str, path)) or 'the document'}: one member more passes unnoticed"
            for path in objects(document) if check.is_valid(with_member(document, path))]


def read_documents(text):
    """The document that a text is, or one for each of its lines."""
    try:
        return [json.loads(text)]
    except ValueError:
        lines = text.splitlines()
        if len(lines) < 2 or not lines[1].startswith("{"):
            raise
        return [json.loads(line) for line in lines]


def validate(paths):
    schemas = load_schemas()
    bad = 0
    for path in paths:
        try:
            with open(path, encoding="utf-8") as file:
                documents = read_documents(file.read())
        except ValueError as error:
            found = [f"this is not one JSON document: {error}"]
        else:
            found = [fault for document in documents for fault in faults(schemas, document)]
        for fault in found[:8]:
            print(f"{os.path.basename(path)}: {fault}")
        bad += bool(found)
    return bad


def open_objects(schema, path="#"):
    """Places in a schema where an object has named members and lets others pass."""
    if isinstance(schema, list):
        for index, part in enumerate(schema):
            yield from open_objects(part, f"{path}/{index}")
    elif isinstance(schema, dict):
        if schema.get("type") == "object" and "additionalProperties" not in schema:
            yield path
        for key, part in schema.items():
            yield from open_objects(part, f"{path}/{key}")


def check_table(verbs):
    """Each verb has a schema, each schema is one of the dialect and describes all members."""
    schemas, bad = load_schemas(), []
    bad += [f"embeng {verb} --json has no schema: add docs/schemas/embeng.{verb}-1.json"
            for verb in verbs if f"embeng.{verb}/1" not in schemas]
    for name, schema in schemas.items():
        jsonschema.Draft202012Validator.check_schema(schema)
        if schema.get("$schema") != DIALECT:
            bad.append(f"{name}: $schema is not {DIALECT}")
        if not schema.get("title") or not schema.get("description"):
            bad.append(f"{name}: a schema needs a title and a description")
        bad += [f"{name}: {path}: the object needs additionalProperties"
                for path in open_objects(schema)]
    print("\n".join(bad))
    return len(bad)


def main():
    warnings.simplefilter("ignore", DeprecationWarning)  # RefResolver, which Debian 12 needs
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if sys.argv[1] == "--table":
        sys.exit(1 if check_table(sys.argv[2:]) else 0)
    sys.exit(1 if validate(sys.argv[1:]) else 0)


if __name__ == "__main__":
    main()

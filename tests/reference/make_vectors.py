#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write tests/vectors/FAMILY/NAME.json from the scripts here and the f64 reference.

    make_vectors.py [--check] [--list] [--out FOLDER]

Each script makes a family: vecs_lookup.py makes tests/vectors/lookup/. Only the scripts of OF_KINDS
share one, tests/vectors/optimizers/, which has a folder for each kind of optimizer with all vectors
of that kind; vectors with tables of several kinds are in tests/vectors/optimizers/several/.

--check writes nothing: exit status 1 when a file in the tree is not what the
reference gives now, is missing, or comes from no script.
"""

import argparse
import pathlib
import sys

import vecs_adding
import vecs_checkpoint
import vecs_config
import vecs_dynamic
import vecs_errors
import vecs_finite
import vecs_free
import vecs_frozen
import vecs_gradients
import vecs_hosts
import vecs_inputs
import vecs_keys
import vecs_kinds
import vecs_lookup
import vecs_looks
import vecs_max
import vecs_model
import vecs_optimizers
import vecs_options
import vecs_parts
import vecs_partition
import vecs_policies
import vecs_proto
import vecs_quantization
import vecs_replicas
import vecs_rowwise
import vecs_serving
import vecs_settings
import vecs_shapes
import vecs_spread
import vecs_stacking
import vecs_steps
import vecs_train
from vecbuild import pretty

SCRIPTS = (vecs_lookup, vecs_inputs, vecs_train, vecs_options, vecs_steps, vecs_replicas,
           vecs_shapes, vecs_errors, vecs_model, vecs_checkpoint, vecs_optimizers, vecs_kinds,
           vecs_settings, vecs_proto, vecs_rowwise, vecs_policies, vecs_serving, vecs_partition,
           vecs_quantization, vecs_stacking, vecs_hosts, vecs_config,
           vecs_keys, vecs_finite, vecs_frozen, vecs_looks, vecs_free, vecs_gradients, vecs_max,
           vecs_dynamic, vecs_adding, vecs_spread, vecs_parts)
OF_KINDS = (vecs_optimizers, vecs_kinds, vecs_settings, vecs_proto, vecs_rowwise)
HERE = pathlib.Path(__file__).resolve().parent


def family(module, vector):
    """The folder of a vector, below that of all."""
    if module not in OF_KINDS:
        return module.__name__.removeprefix("vecs_")
    kinds = {table["optimizer"]["kind"] for table in vector.doc["tables"]}
    return f"optimizers/{kinds.pop() if len(kinds) == 1 else 'several'}"


def build():
    """Path below the folder of all -> text, for every vector of every script."""
    files, names = {}, set()
    for module in SCRIPTS:
        for vector in module.vectors():
            name = vector.doc["name"]
            assert name not in names, f"two vectors are named {name}"
            names.add(name)
            files[f"{family(module, vector)}/{name}.json"] = pretty(vector.doc) + "\n"
    return files


def check(files, out):
    """Paths of the files that differ from the reference."""
    there = {path.relative_to(out).as_posix() for path in out.rglob("*.json")}
    return sorted(name for name in there | set(files) if name not in there
                  or name not in files
                  or (out / name).read_text(encoding="utf-8") != files[name])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    parser.add_argument("--list", action="store_true", help="print the paths")
    parser.add_argument("--out", type=pathlib.Path, default=HERE.parent / "vectors")
    args = parser.parse_args()
    files = build()
    if args.list:
        print("\n".join(sorted(files)))
    elif args.check:
        wrong = check(files, args.out)
        for name in wrong:
            print(f"{name}: not what the reference gives", file=sys.stderr)
        return 1 if wrong else 0
    else:
        for name, text in files.items():
            (args.out / name).parent.mkdir(parents=True, exist_ok=True)
            (args.out / name).write_text(text, encoding="utf-8")
        print(f"{len(files)} vectors in {args.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

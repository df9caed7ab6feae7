#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The files that projects copy for their CI say what the services take, and name what embeng needs.

usage: ci_examples.py SOURCE-ROOT

Held are the structure of the workflow and of the pipeline, as far as their services' schemas tell
it; that both build the Containerfile and keep the report that the Makefile writes; and that the
Containerfile installs the packages of packages.txt for the build, and those that embeng vm asks for.
scripts/container.sh runs the Containerfile's lines.
"""
import pathlib
import re
import sys

import yaml

REPORT, LOG = "junit.xml", "kernel.log"


class Unsound(Exception):
    """A fault of a file, as a sentence."""


def must(holds, why):
    if not holds:
        raise Unsound(why)


def keys(where, value, allowed, needed=()):
    must(isinstance(value, dict), f"{where} is no mapping")
    for key in value:
        must(key in allowed, f"{where} has '{key}', which is none of {', '.join(allowed)}")
    for key in needed:
        must(key in value, f"{where} has no '{key}'")


def texts(where, value):
    must(isinstance(value, list) and all(isinstance(one, str) for one in value),
         f"{where} is no list of texts")
    return value


def github(folder):
    # "on" is a boolean to YAML 1.1, and a text to GitHub.
    flow = {str(key).replace("True", "on"): value
            for key, value in yaml.safe_load((folder / "github.yml").read_text()).items()}
    keys("github.yml", flow, ("name", "on", "jobs", "permissions", "env"), ("on", "jobs"))
    must(set(texts("on", flow["on"])) <= {"push", "pull_request"}, "on has an event unknown here")
    uses, runs = {}, []
    for name, job in flow["jobs"].items():
        keys(name, job, ("runs-on", "timeout-minutes", "steps"), ("runs-on", "steps"))
        must(isinstance(job["timeout-minutes"], int), "timeout-minutes is no number")
        for step in job["steps"]:
            keys("a step", step, ("name", "uses", "with", "run", "if"))
            must(("uses" in step) != ("run" in step), f"a step has both or none of uses, run: {step}")
            if "run" in step:
                runs.append(step["run"])
                continue
            must(re.fullmatch(r"[\w.-]+/[\w./-]+@v\d+", step["uses"]), f"{step['uses']} is no action")
            uses[step["uses"].split("@")[0]] = step.get("with", {})
    image = uses["docker/build-push-action"]
    must(image["file"] == "Containerfile" and image["load"] is True, "the image is not loaded")
    must(image["build-args"].startswith("EMBENG="), "the image does not get EMBENG")
    must(any(f" {image['tags']} make check" in run for run in runs), "no step runs make check")
    kept = uses["actions/upload-artifact"]["path"].split()
    must(kept == [REPORT, LOG], f"what is kept is {kept}")


def gitlab(folder):
    pipeline = yaml.safe_load((folder / "gitlab.yml").read_text())
    keys("gitlab.yml", pipeline, ("stages", "image", "test"), ("stages", "image", "test"))
    stages = texts("stages", pipeline.pop("stages"))
    for name, job in pipeline.items():
        keys(name, job, ("stage", "image", "services", "rules", "script", "artifacts", "timeout"),
             ("stage", "script"))
        must(job["stage"] in stages, f"{name} is of no stage")
        texts(f"{name}: script", job["script"])
        for rule in job.get("rules", []):
            keys(f"{name}: a rule", rule, ("changes", "when", "allow_failure"))
    script = "\n".join(pipeline["image"]["script"])
    must("-f Containerfile" in script and '"EMBENG=' in script, "the image is not built")
    must(f'push "{pipeline["test"]["image"]}"' in script, "the image that is pushed is not tested in")
    must("make check" in pipeline["test"]["script"], "no line runs make check")
    kept = pipeline["test"]["artifacts"]
    keys("artifacts", kept, ("when", "paths", "reports"), ("when", "paths", "reports"))
    must(kept["when"] == "always" and kept["paths"] == [REPORT, LOG], "files are not kept")
    must(kept["reports"] == {"junit": REPORT}, "the report is not shown")


def needed_to_build(root):
    part = (root / "packages.txt").read_text().split("# build\n")[1].split("\n\n")[0]
    return {line.split()[0] for line in part.splitlines()} - {"check"}


def needed_to_boot(root):
    text = (root / "runtime/vm/machine.sh").read_text()
    return set(re.findall(r"[\w-]+=([\w-]+)", text.split("for tool in ")[1].split("; do")[0]))


def containerfile(root, folder):
    text = (folder / "Containerfile").read_text()
    for line in text.splitlines():
        must(not line or line[0] == "#" or re.match(r"(FROM|ARG|ENV|RUN) \S", line),
             f"the Containerfile has a line that scripts/container.sh does not know: {line}")
    installed = set()
    for line in re.findall(r"install -y --no-install-recommends ([^&\n]*)", text):
        installed |= set(line.split())
    must(needed_to_build(root) <= installed,
         f"packages to build are missing: {needed_to_build(root) - installed}")
    # Every Debian has util-linux.
    must(needed_to_boot(root) - {"util-linux"} <= installed,
         f"packages to boot are missing: {needed_to_boot(root) - installed}")


def makefile(folder):
    text = (folder / "Makefile").read_text()
    must(f"embeng vm --junit {REPORT} --log {LOG} -- " in text, "make check writes no report")


def main():
    root = pathlib.Path(sys.argv[1])
    folder = root / "runtime/examples/ci"
    try:
        github(folder)
        gitlab(folder)
        containerfile(root, folder)
        makefile(folder)
    except Unsound as why:
        sys.exit(f"runtime/examples/ci: {why}")


if __name__ == "__main__":
    main()

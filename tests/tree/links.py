#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Links and paths in the documentation lead to something that exists.

usage: links.py SOURCE-ROOT

Checked, in every Markdown file of the tree: that relative links lead to a file and, after a #, to a
heading of it; that a path in backticks that begins with a folder of the tree exists, unless it has
NAME, CHANGE or VARIANT in it, which stand for any; that a function in backticks, as in
`engine_run()`, is named somewhere in the sources. Every page below docs/ can be reached from
README.md in three clicks.

Checked in the sources: where one cites docs/spec/NAME.md and a number, that page has a section with
the number; a file that a comment names exists, and a C file without a folder in front exists in the
same room (engine/, runtime/, ...); a comment of a C file does not name that file itself when it
says where something else is done. Before the tree, the last check runs on planted comments.
"""
import os
import pathlib
import re
import subprocess
import sys

import english

CLICKS = 3
FENCE = re.compile(r"^ *(```|~~~)")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`]+)`")
PATH = re.compile(r"^[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)+/?$")
ANY = re.compile(r"NAME|CHANGE|VARIANT|ROOM|FAMILY")
FUNCTION = re.compile(r"^([a-z_][a-z0-9_]*)\(\)$")
CITED = re.compile(r"docs/spec/(\w+)\.md,? ((?:\d+(?:\.\d+)*(?:, | and | to )?)+)")
SECTION = re.compile(r"^#+ (\d+(?:\.\d+)*)\.? ")
# A file that a comment names. In <...> are headers of the system.
FILE = re.compile(r"(?<![\w./<-])((?:\.\./)*(?:[\w-]+/)*[\w-]+\.(?:c|h|py|sh))\b(?!\()")
FOREIGN = {"table_stacking.py", "layers/embedding/tpu_embedding_layer.py"}  # files of jax and tensorflow
SOURCES = (".c", ".h", ".py", ".sh", ".build")


def tracked(root):
    """Files that are or would be committed, as paths relative to the root."""
    # safe.directory: the tree may belong to another user than the one who runs the tests.
    names = subprocess.run(["git", "-c", "safe.directory=*", "-c", "core.quotePath=false",
                            "ls-files", "--cached", "--others", "--exclude-standard"], cwd=root,
                           check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    return sorted(name for name in set(names) if (root / name).is_file())


def text_of(root, name):
    return (root / name).read_text(encoding="utf-8")


def prose(text):
    """The lines outside fenced and indented blocks of code."""
    fenced, blank, inside = False, True, False
    for line in text.splitlines():
        if FENCE.match(line):
            fenced = not fenced
            continue
        # An indented line is code when it follows a blank one, outside of a list.
        inside = line.startswith("    ") and (blank or inside) and bool(line.strip())
        blank = not line.strip()
        if not fenced and not inside:
            yield line


def anchor(heading):
    """A heading as hosts of repositories name it in links."""
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", words).replace(" ", "-")


def anchors(text):
    found, seen = set(), {}
    for line in prose(text):
        match = re.match(r"^#+ (.*)$", line)
        if match:
            name = anchor(match.group(1))
            count = seen.get(name, 0)
            seen[name] = count + 1
            found.add(f"{name}-{count}" if count else name)
    return found


def misnamed(name, text, files):
    """Yields what is wrong with each file that the comments of a source name."""
    room = name.split("/")[0]
    for block in english.blocks_of(name, text):
        for line, words in block:
            for cited in FILE.findall(words):
                tail = "/" + cited.lstrip("./")
                found = [file for file in files if ("/" + file).endswith(tail)]
                if cited in FOREIGN or ANY.search(cited):
                    continue
                if not found:
                    yield f"{name}:{line}: there is no file {cited}"
                elif name.endswith(".c") and cited == os.path.basename(name):
                    yield f"{name}:{line}: names itself, {cited}; is another file meant?"
                elif (cited.endswith(".c") and "/" not in cited and room != "tests"
                      and not any(file.startswith(room + "/") for file in found)):
                    yield f"{name}:{line}: {cited} is not in {room}/ but {found[0]}: give its path"


PLANTED = ["engine/a.c", "engine/b/c.c", "runtime/d.c", "uapi/e.h", "tests/f.sh"]
MISNAMED = ["gone.c", "gone/a.c", "a.c", "d.c", "gone.sh"]
NAMED = ["c.c", "b/c.c", "engine/b/c.c", "../runtime/d.c", "e.h", "<gone.h>", "f.sh", "test_NAME.c"]


def planted():
    """Yields names that misnamed() judges wrongly, in a comment of engine/a.c."""
    for cited in MISNAMED + NAMED:
        faults = list(misnamed("engine/a.c", f"/* It is in {cited}. */", PLANTED))
        if len(faults) != (cited in MISNAMED):
            yield f"links.py: a planted comment that names {cited} is judged wrongly: {faults}"


class Tree:
    def __init__(self, root):
        self.root = root
        self.files = tracked(root)
        self.pages = {name: text_of(root, name) for name in self.files if name.endswith(".md")}
        self.sources = {name: text_of(root, name) for name in self.files
                        if name.endswith(SOURCES) and not name.startswith("tests/fuzz/corpus/")}
        self.folders = {name.split("/")[0] for name in self.files if "/" in name}
        self.words = set(re.findall(r"\b[a-z_][a-z0-9_]*\b", "\n".join(
            text for name, text in self.sources.items() if name.endswith((".c", ".h", ".py")))))

    def target(self, page, link):
        """The file that a link of a page means, relative to the root, and the anchor in it."""
        path, _, part = link.partition("#")
        where = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
        return where, part

    def links(self, page):
        for line in prose(self.pages[page]):
            for link in LINK.findall(CODE.sub("", line)):
                if not re.match(r"^[a-z]+:", link):
                    yield link

    def wrong_links(self, page):
        for link in self.links(page):
            where, part = self.target(page, link)
            if not (self.root / where).exists():
                yield f"{page}: {link} leads to no file"
            elif part and where in self.pages and part not in anchors(self.pages[where]):
                yield f"{page}: {link}: {where} has no heading #{part}"

    def wrong_names(self, page):
        for code in CODE.findall("\n".join(prose(self.pages[page]))):
            function = FUNCTION.match(code)
            if function and function.group(1) not in self.words:
                yield f"{page}: `{code}` is no function of the tree"
            if (PATH.match(code) and not ANY.search(code) and
                    code.split("/")[0] in self.folders and not (self.root / code).exists()):
                yield f"{page}: `{code}` does not exist"

    def far_pages(self):
        near = reached = {"README.md"}
        for _ in range(CLICKS):
            near = {where for page in near for where, _ in
                    (self.target(page, link) for link in self.links(page)) if where in self.pages}
            reached = reached | near
        for page in self.pages:
            if page.startswith("docs/") and page not in reached:
                yield f"{page} cannot be reached from README.md in {CLICKS} clicks"

    def sections(self, name):
        page = self.pages.get(f"docs/spec/{name}.md", "")
        return {match.group(1) for match in map(SECTION.match, page.splitlines()) if match}

    def wrong_citations(self):
        count = 0
        for name, text in self.sources.items():
            if name.endswith("links.py"):
                continue
            for page, numbers in CITED.findall(text):
                for number in re.findall(r"\d+(?:\.\d+)*", numbers):
                    count += 1
                    if number not in self.sections(page):
                        yield f"{name}: docs/spec/{page}.md has no section {number}"
        if not count:
            yield "no source file cites docs/spec"

    def wrong_files(self):
        for name, text in self.sources.items():
            if not name.endswith("links.py"):
                yield from misnamed(name, text, self.files)


def main():
    tree = Tree(pathlib.Path(sys.argv[1]))
    wrong = [fault for page in tree.pages for check in (tree.wrong_links, tree.wrong_names)
             for fault in check(page)]
    wrong += [*tree.far_pages(), *tree.wrong_citations(), *planted(), *tree.wrong_files()]
    for fault in wrong:
        print(fault, file=sys.stderr)
    return 1 if wrong or not tree.pages else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Comments and pages are written in sentences.

usage: english.py SOURCE-ROOT [PATTERN...]

The files of COVERED are checked, or those that match the patterns. Two faults of style are found,
which a program can see:

- A sentence begins with Of, Who, Whom, Whose, What or Which and is not a question. Such a sentence
  hides its subject. The thing that it is about comes first: "Commands that wait are left alone."
- A comment or a description says only "so", "the same" or "as above", or begins with one of them
  ("so, in bytes") or with an ellipsis. It means nothing without the line above it.

Sentences are those of comments in C, Promela, shell, Python, Meson and the like, of docstrings, of
descriptions of kernel modules and their parameters, and of the text of manual pages, Markdown and
docs/abi. Headings, code and examples are not text. Before the files, the checks run on planted
faults in each kind of file.
"""
import ast
import io
import pathlib
import re
import sys
import tokenize

# One line for each room or page that is written by these rules: a pattern relative to the root,
# where ** stands for any folders.
COVERED = """
docs/abi/*
docs/*.md
docs/*/*.md
docs/man/*.[1-9]
docs/**/*.py
engine/**/*.[ch]
engine/**/meson.build
firmware-loader/*.[ch]
firmware-loader/**/meson.build
firmware-loader/embeng/*.txt
kmod/**/*.[ch]
kmod/**/Kbuild
kmod/package/*
runtime/**/*.[ch]
runtime/**/meson.build
runtime/examples/ci/*
runtime/vm/*
runtime/proto/*.proto
runtime/python/*.md
runtime/python/**/*.py
runtime/python/**/*.pyi
scripts/*.py
scripts/*.sh
tests/**/*.[ch]
tests/**/*.py
tests/**/*.sh
tests/**/meson.build
tests/bench/compare
tests/bench/curves
tests/bench/pair
tests/kmod/checkpatch.allowed
tests/kmod/sparse
tests/model/*.pml
tests/tree/*.layers
tests/vm/debug.config
tests/vm/run
tests/vm/with_python
uapi/*.[ch]
CONTRIBUTING.md
Kbuild
Makefile
README.md
meson.build
meson_options.txt
packages.txt
""".split()

HEADLESS = r"(of|who|whom|whose|what|which)\b"
FIRST = re.compile(HEADLESS, re.IGNORECASE)
LATER = re.compile(r"(Of|Who|Whom|Whose|What|Which)\b")
END = re.compile(r"[.?!][\"')]*\s+")
EMPTY = re.compile(r"^(as above|as before|ditto|likewise)\.?$|(^|[,:;] )(so|the same)\.?$"
                   r"|\((so|the same)\)|^(so|the same)[,;:] |^\.\.\.", re.IGNORECASE)

STRING = r'"(?:\\.|[^"\\\n])*"'
C_TOKEN = re.compile(STRING + r"|'(?:\\.|[^'\\\n])*'|/\*.*?\*/|//[^\n]*", re.DOTALL)
MODULE_TEXT = re.compile(rf"MODULE_(?:PARM_DESC\(\w+,|DESCRIPTION\()\s*((?:{STRING}\s*)+)\)")
# A description has one of these in front of it: "@name: in:", "struct name -", "name() -".
KERNEL_DOC = re.compile(r"@[\w.]+: *(?:(?:in|out): *)?|(?:(?:struct|enum|union) )?\w+(?:\(\))? - ")
MACRO = re.compile(r"^(?:[A-Z][a-z0-9]|Fl|In|No|Li)$")
# Macros of a manual page whose line is text, or part of a sentence.
INLINE = set("Ar Cm Dv Em Er Fa Fl Fn Ic In Li Nm Pa Pq Ql Dq Sq Sx Va Vt Xr Ev Sy No Ns".split())


class Blocks:
    """Paragraphs, list items and descriptions, each a list of (line number, text)."""

    def __init__(self):
        self.found = []
        self.open = False

    def end(self):
        self.open = False

    def add(self, number, text):
        if not text:
            return
        if not self.open:
            self.found.append([])
            self.open = True
        self.found[-1].append((number, text))

    def begin(self, number, text):
        self.end()
        self.add(number, text)


def comment_line(blocks, number, line):
    """A line of a comment, without its marks."""
    text = line.strip()
    if not text or text.startswith("DOC:"):
        blocks.end()
    elif re.match(r"@[\w.]+:|- ", text) or (KERNEL_DOC.match(text) and not blocks.open):
        blocks.begin(number, KERNEL_DOC.sub("", text.removeprefix("- "), count=1))
    else:
        blocks.add(number, text)


def blocks_of_c(text):
    blocks, last = Blocks(), -1
    for token in C_TOKEN.finditer(text):
        number = text.count("\n", 0, token.start()) + 1
        comment = token.group()
        if comment.startswith("/*"):
            blocks.end()
            for i, line in enumerate(comment[2:-2].split("\n")):
                comment_line(blocks, number + i, re.sub(r"^\s*\*+", "", line))
            blocks.end()
        elif comment.startswith("//"):
            # Comments on lines that follow each other are one.
            if text[max(last, 0):token.start()].strip() or last < 0:
                blocks.end()
            comment_line(blocks, number, comment[2:])
            last = token.end()
    for module_text in MODULE_TEXT.finditer(text):
        number = text.count("\n", 0, module_text.start()) + 1
        parts = re.findall(STRING, module_text.group(1))
        blocks.begin(number, "".join(part[1:-1] for part in parts))
        blocks.end()
    return blocks.found


# A comment behind code: what follows the last " # " of a line, if no quotation mark does.
BEHIND_CODE = re.compile(r"""\S.*\s# ([^'"]*)$""")


def blocks_of_script(text):
    blocks = Blocks()
    for number, line in enumerate(text.split("\n"), 1):
        comment = re.match(r"\s*#(?!!)(.*)", line)
        behind = BEHIND_CODE.match(line)
        comment_line(blocks, number, comment.group(1) if comment else "")
        if behind and not comment:
            comment_line(blocks, number, behind.group(1))
            blocks.end()
    return blocks.found


# The head of a parameter in numpydoc, "name : type": its description stands behind it.
PARAMETER = re.compile(r"\s*[\w*][\w*, ]* : .*$")


def blocks_of_python(text):
    blocks, last = Blocks(), 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        number, column = token.start
        if token.type != tokenize.COMMENT or token.string.startswith("#!"):
            continue
        alone = not token.line[:column].strip()
        if not alone or number != last + 1:
            blocks.end()
        comment_line(blocks, number, token.string[1:])
        last = number if alone else 0
    for node in ast.walk(ast.parse(text)):
        if (isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
                and ast.get_docstring(node) is not None):
            blocks.end()
            first = node.body[0].value
            for number, line in enumerate(first.value.split("\n"), first.lineno):
                comment_line(blocks, number, line)
                if PARAMETER.match(line):
                    blocks.end()
    return blocks.found


def words_of_macro(line):
    """The words of a macro's line that stand in the page."""
    words = [word for word in line[1:].split() if not MACRO.match(word)]
    return re.sub(r" ([.,;:?!)])", r"\1", " ".join(words))


def blocks_of_manual(text):
    blocks, literal = Blocks(), False
    for number, line in enumerate(text.split("\n"), 1):
        macro = line[1:].split()[0] if re.match(r"\.\w", line) else ""
        if macro in ("Bd", "Ed"):
            literal = macro == "Bd" and ("-literal" in line or "-unfilled" in line)
            blocks.end()
        elif literal:
            continue
        elif line.startswith('.\\"'):
            blocks.begin(number, line[3:].strip())
            blocks.end()
        elif macro == "It":
            for cell in line.split(" Ta ")[1:]:
                blocks.begin(number, cell)
            blocks.end()
        elif macro == "Nd":
            blocks.begin(number, line[4:])
            blocks.end()
        elif macro in INLINE:
            blocks.add(number, words_of_macro(line))
        elif macro or not line:
            blocks.end()
        else:
            blocks.add(number, line)
    return blocks.found


def blocks_of_markdown(text):
    blocks, fenced, blank, code = Blocks(), False, True, False
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    # The first row of a table is its heading.
    text = re.sub(r"^\|.*(?=\n\|[-:| ]+$)", "", text, flags=re.MULTILINE)
    for number, line in enumerate(text.split("\n"), 1):
        bare = line.strip().replace("**", "")
        if re.match(r" *(```|~~~)", line):
            fenced = not fenced
            blocks.end()
            continue
        code = line.startswith("    ") and (blank or code) and bool(bare) and not blocks.open
        blank = not bare
        if fenced or code:
            continue
        if blank or re.match(r"#+ |<!--|\|[-:| ]+$", bare):
            blocks.end()
        elif bare.startswith("|"):
            for cell in bare.strip("|").split("|"):
                blocks.begin(number, cell.strip())
            blocks.end()
        elif re.match(r"([-*+]|\d+\.) ", bare):
            blocks.begin(number, bare.split(" ", 1)[1].strip())
        else:
            blocks.add(number, bare)
    return blocks.found


def blocks_of_abi(text):
    blocks = Blocks()
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.startswith(("What:", "#")):
            blocks.end()
        elif line.startswith("Description:"):
            blocks.begin(number, re.sub(r"^Description:\s*(\(R[WO]\)|\(WO\))?\s*", "", line))
        else:
            blocks.add(number, line.strip())
    return blocks.found


def blocks_of(name, text):
    if name.startswith("docs/abi/"):
        return blocks_of_abi(text)
    if name.endswith((".c", ".h", ".pml", ".proto")):
        return blocks_of_c(text)
    if name.endswith(".md"):
        return blocks_of_markdown(text)
    if re.search(r"\.[1-9]$", name):
        return blocks_of_manual(text)
    if name.endswith(".py") or re.match(r"#!.*python", text):
        return blocks_of_python(text)
    return blocks_of_script(text)


def sentences(text):
    """Pairs of offset and sentence."""
    start = 0
    for end in END.finditer(text):
        yield start, text[start:end.end()].strip()
        start = end.end()
    yield start, text[start:].strip()


def line_at(block, offset):
    """The number of the line of a block in which an offset of its joined text is."""
    for number, text in block:
        if offset <= len(text):
            return number
        offset -= len(text) + 1
    return block[-1][0]


def faults(name, text):
    for block in blocks_of(name, text):
        whole = " ".join(line for _, line in block)
        if EMPTY.search(whole):
            yield f"{name}:{block[0][0]}: says nothing by itself: {whole}"
        for offset, sentence in sentences(whole):
            headless = LATER.match(sentence) if offset else FIRST.match(sentence)
            if headless and not re.search(r"\?[\"')]*$", sentence):
                yield f"{name}:{line_at(block, offset)}: begins with {headless.group()}: {sentence}"


# Each has two faults.
PLANTED = {
    "a.c": "/**\n * struct a - an a\n * @b: so\n *\n * It is. Of what\n * it was.\n */\n",
    "m.c": 'MODULE_PARM_DESC(a, "of the "\n\t"a");\nMODULE_DESCRIPTION("It is. Who it was.");\n',
    "s.c": "/**\n * struct s\n * @a: so, in bytes\n */\nint s; /* ... and the rest */\n",
    "a.h": "int a; /* what it was */\n// It is. Who\n// is it? Whose it is.\n",
    "a.sh": "#!/bin/sh\n# It is. Which it was.\ntrue\n# the same\n",
    "b.sh": "true # what is true\necho '# what' # which it was\n# What now?\n",
    "a": "#!/usr/bin/python3\n\"\"\"An a.\n\nOf it.\n\"\"\"\na = '# of'  # of b\n",
    "c.py": "def c():\n    \"\"\"Go.\n\n    a, b : int\n        What it is.\n    c : d\n        Of e.\n    \"\"\"\n",
    "b.py": "def b():\n    # It is. Of\n    # it.\n    return b  # so\n",
    "a.md": "# What it is\n\nIt is. Of\nit.\n\n- who it is\n\n    Of code\n",
    "a.7": ".Sh A\nIt is\n.Va a .\nWhat it was.\n.Bl -tag\n.It Of a\nof it\n.El\n",
    "docs/abi/a": "What:\t\ta\nDescription:\t(RO) what it is. It\n\t\tis. Of it.\n",
}


def main():
    root = pathlib.Path(sys.argv[1])
    wrong = [f"the planted faults of {name} were not found" for name, text in PLANTED.items()
             if len(list(faults(name, text))) != 2]
    for pattern in sys.argv[2:] or COVERED:
        files = sorted(path for path in root.glob(pattern) if path.is_file())
        if not files:
            wrong.append(f"{pattern} matches no file")
        for path in files:
            wrong += faults(path.relative_to(root).as_posix(), path.read_text(encoding="utf-8"))
    for fault in wrong:
        print(fault, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

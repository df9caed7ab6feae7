#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes embeng_*(3), in mdoc, from the comments of libembeng's headers.

usage: man3.py --list HEADER...       names of the pages, one a line
       man3.py -o FOLDER HEADER...    writes them

A comment that begins with two stars documents what follows it up to the next blank line:
functions share its page, which bears the first one's name, the others become links to it. A
structure gets a page, too. A public function without a comment is an error, and so is one that
returns an int without saying which.
"""
import argparse
import os
import re
import sys
from typing import NamedTuple

DATE = "November 21, 2026"
COMMENT = re.compile(r"/\*\*\n?(.*?)\*/\n", re.S)
FUNCTION = re.compile(r"^EMBENG_API\s+([^;]+?)\b(\w+)\(([^;]*)\);", re.M | re.S)
STRUCTURE = re.compile(r"^struct (\w+) \{\n(.*?)^\};", re.M | re.S)
CALLBACK = re.compile(r"^typedef\s+[^;]*?\(\*(\w+)\)\([^;]*\);", re.M | re.S)
HEAD = re.compile(r"^(?:struct |typedef )?(\w+)(?:\(\))?(?: / \w+\(\))* - (.*)$", re.S)
WORD = re.compile(r"(embeng_\w+)\(\)(\W*)$")


class Page(NamedTuple):
    names: list
    brief: str
    header: str
    declarations: str
    parameters: list
    text: list  # paragraphs
    returns: list
    structure: bool


def fail(where, what):
    sys.exit(f"man3: {where}: {what}")


def lines_of(comment):
    """The comment's lines without their decoration."""
    return [re.sub(r"^ ?\* ?", "", line).rstrip() for line in comment.strip("\n ").split("\n")]


def paragraphs(lines):
    """Lists of lines, parted at empty ones."""
    found, at = [], []
    for line in lines + [""]:
        if line:
            at.append(line)
        elif at:
            found.append(at)
            at = []
    return found


def take_parameters(lines):
    """Splits "@name: words" with their continuation lines off the front of a comment."""
    parameters, rest = [], []
    for line in lines:
        match = re.match(r"@(\w+): ?(.*)", line)
        if match and not rest:
            parameters.append([match[1], match[2]])
        elif parameters and not rest and re.match(r"\s+\S", line):
            parameters[-1][1] += " " + line.strip()
        else:
            rest.append(line)
    return parameters, rest


def take_returns(parts):
    """Cuts the text at "Return:"."""
    text, returns = [], []
    for part in parts:
        whole = "\n".join(part)
        if returns or not re.search(r"(^|\s)Return: ", whole):
            (returns if returns else text).append(whole)
            continue
        before, after = re.split(r"(?:^|(?<=\s))Return: ", whole, maxsplit=1)
        if before.strip():
            text.append(before.rstrip())
        returns.append(after)
    return text, returns


def page_of(comment, following, header):
    functions = FUNCTION.findall(following)
    structure = STRUCTURE.match(following)
    callback = CALLBACK.match(following)
    lines = lines_of(comment)
    first = [lines.pop(0)]
    while lines and lines[0] and not lines[0].startswith("@"):
        first.append(lines.pop(0).strip())
    brief = " ".join(first)
    head = HEAD.match(brief)
    if functions:
        names = [name for _, name, _ in functions]
    elif structure or callback:
        names = [(structure or callback)[1]]
    else:
        return None
    if head:
        if head[1] != names[0]:
            fail(header, f"the comment of {names[0]} is about {head[1]}")
        brief = head[2]
    parameters, rest = take_parameters(lines)
    text, returns = take_returns(paragraphs(rest))
    if not head and ". " in brief:
        brief, more = brief.split(". ", 1)
        text.insert(0, more)
    elif ". Return: " in brief:
        brief, more = brief.split(". Return: ", 1)
        returns.insert(0, more)
    return Page(names, brief, header, following.rstrip(), parameters, text, returns,
                bool(structure))


def headers_below(top, header):
    """The header and all that it includes, seen from the folder."""
    with open(os.path.join(top, header), encoding="utf-8") as file:
        included = re.findall(r'^#include "(.*)"$', file.read(), re.M)
    found = {header}
    for name in included:
        found |= headers_below(top, os.path.normpath(os.path.join(os.path.dirname(header), name)))
    return found


def pages_of(path, top):
    """Every page of one header."""
    with open(path, encoding="utf-8") as file:
        source = file.read()
    header = os.path.relpath(path, top)
    pages, documented = [], set()
    for match in COMMENT.finditer(source):
        following = source[match.end():]
        # A structure has no blank line before its end; functions end at the next one.
        end = re.search(r"\n\s*\n|\n/\*", following)
        page = page_of(match[1], following[:end.start() + 1 if end else None], header)
        if page:
            pages.append(page)
            documented.update([] if page.structure else page.names)
    for page in pages:
        if "EMBENG_API int " in page.declarations and not page.returns:
            fail(header, f"{page.names[0]}() does not say what it returns")
    bare = [name for _, name, _ in FUNCTION.findall(source) if name not in documented]
    if bare:
        fail(header, f"without a comment: {', '.join(bare)}")
    return pages


def merge(pages):
    """A structure and the function that fills it may have one name, and then share a page."""
    merged = {}
    for page in pages:
        other = merged.get(page.names[0])
        if not other:
            merged[page.names[0]] = page
            continue
        function, structure = (page, other) if other.structure else (other, page)
        merged[page.names[0]] = function._replace(
            declarations=structure.declarations + "\n\n" + function.declarations,
            parameters=structure.parameters + function.parameters,
            text=function.text + structure.text, structure=True)
    return list(merged.values())


def related(page, names):
    """Pages of what the declarations mention."""
    found = set(re.findall(r"\bembeng_\w+", page.declarations)) & names - set(page.names)
    return sorted(found)


def escape(text):
    text = text.replace("\\", "\\e")
    return "\\&" + text if text[:1] in ".'" else text


def words(text):
    """Prose in mdoc: references to functions and arguments as macros."""
    out, line = [], []

    def flush():
        if line:
            out.append(escape(" ".join(line)))
            line.clear()

    for word in text.split():
        reference = WORD.match(word.lstrip("("))
        argument = re.match(r"@(\w+)(\W*)$", word)
        if reference and not word.startswith("("):
            flush()
            out.append(f".Xr {reference[1]} 3{tail(reference[2])}")
        elif argument:
            flush()
            out.append(f".Fa {argument[1]}{tail(argument[2])}")
        else:
            line.append(word.replace("&struct", "struct"))
            if word.endswith((".", "!", "?")) or len(" ".join(line)) > 72:
                flush()
    flush()
    return "\n".join(out)


def tail(punctuation):
    return "".join(" " + c for c in punctuation) if punctuation else ""


def prose(text):
    """A paragraph; indented lines in it are shown as they are."""
    out, at = [], []
    for line in text.split("\n"):
        if re.match(r"\s+\S", line) and not at:
            out.append(".Dl " + escape(line.strip()))
        else:
            at.append(line.strip())
    if at:
        out.append(words(" ".join(at)))
    return "\n".join(out)


def literal(text):
    # Continuation lines are aligned in the header; here it is enough that they are seen as such.
    text = re.sub(r"^\t+ +", "    ", text.replace("EMBENG_API ", ""), flags=re.M)
    body = "\n".join(escape(line) for line in text.split("\n"))
    return f".Bd -literal\n{body}\n.Ed"


def render(page, names, include):
    title = page.names[0]
    out = [".\\\" SPDX-License-Identifier: MIT",
           ".\\\" Made from the comments of " + page.header,
           f".Dd {DATE}", f".Dt {title.upper()} 3", ".Os embeng", ".Sh NAME"]
    for index, name in enumerate(page.names):
        out.append(f".Nm {name}" + (" ," if index < len(page.names) - 1 else ""))
    out.append(f".Nd {words(page.brief).replace(chr(10), ' ')}".replace(" .Xr ", " ")
               .replace(" .Fa ", " "))
    out += [".Sh LIBRARY", "libembeng (pkg-config embeng)", ".Sh SYNOPSIS", f".In {include}",
            literal(page.declarations), ".Sh DESCRIPTION"]
    body = [prose(text) for text in page.text]
    if page.parameters:
        out.append(words("The members are:" if page.structure else "The arguments are:"))
        out.append(".Bl -tag -width Ds")
        for name, text in page.parameters:
            out += [f".It Fa {name}", words(text)]
        out.append(".El")
    if not body and not page.parameters:
        body = [words(page.brief + ".")]
    for index, text in enumerate(body):
        if index or page.parameters:
            out.append(".Pp")
        out.append(text)
    if page.returns:
        out.append(".Sh RETURN VALUES")
        out += ["\n.Pp\n".join(prose(text) for text in page.returns)]
    also = [f".Xr {name} 3" for name in related(page, names)]
    out += [".Sh SEE ALSO", " ,\n".join([".Xr embeng 1"] + also), ""]
    return "\n".join(out)


def write(folder, page, names, core):
    with open(os.path.join(folder, page.names[0] + ".3"), "w", encoding="utf-8") as file:
        file.write(render(page, names, "embeng.h" if page.header in core else page.header))
    for name in page.names[1:]:
        with open(os.path.join(folder, name + ".3"), "w", encoding="utf-8") as file:
            file.write(f".so man3/{page.names[0]}.3\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("-o", dest="folder")
    parser.add_argument("header", nargs="+")
    arguments = parser.parse_args()
    top = os.path.commonpath([os.path.dirname(os.path.abspath(h)) for h in arguments.header])
    core = headers_below(top, "embeng.h")
    pages = merge([page for header in arguments.header for page in pages_of(header, top)])
    names = {name for page in pages for name in page.names}
    if arguments.list:
        print("\n".join(sorted(name + ".3" for name in names)))
        return
    for page in pages:
        write(arguments.folder, page, names, core)


if __name__ == "__main__":
    main()

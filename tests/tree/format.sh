#!/bin/sh
# SPDX-License-Identifier: MIT
# C is formatted as .clang-format says, and as that of engine/ does there. Three kinds of files are
# not looked at: contracts, whose tables stand in columns; kmod/, which checkpatch.pl judges (the two
# disagree); and the fuzzers' corpus, which is no source.
# usage: format.sh SOURCE-ROOT
set -eu

cd "$1"
command -v clang-format-19 >/dev/null || {
	echo "clang-format-19 is missing; make deps installs what packages.txt lists" >&2
	exit 1
}

# An indent of spaces has to be found, or the files that follow are not looked at.
planted=$(mktemp --suffix=.c)
trap 'rm -f "$planted"' EXIT
printf 'int f(void)\n{\n    return 1;\n}\n' >"$planted"
if clang-format-19 --style=file:.clang-format --dry-run -Werror "$planted" 2>/dev/null; then
	echo "clang-format-19 finds no fault in a planted one" >&2
	exit 1
fi

files=$(find engine firmware-loader runtime tests -name '*.[ch]' ! -path 'tests/fuzz/corpus/*' | sort)
# shellcheck disable=SC2086
if ! clang-format-19 --style=file --dry-run -Werror $files >/dev/null 2>&1; then
	for file in $files; do
		clang-format-19 --style=file "$file" | diff -u "$file" - || :
	done | head -n 100 >&2
	echo "make it so: clang-format-19 -i FILE" >&2
	exit 1
fi

#!/bin/sh
# SPDX-License-Identifier: MIT
# C is formatted as .clang-format says, and as those of engine/ and kmod/ do there. Contracts are
# not: their tables stand in columns. The fuzzers' corpus is no source.
# usage: format.sh SOURCE-ROOT
set -eu

cd "$1"
command -v clang-format >/dev/null || {
	echo "clang-format is missing; make deps installs what packages.txt lists" >&2
	exit 1
}

# An indent of spaces has to be found, or the files that follow are not looked at.
planted=$(mktemp --suffix=.c)
trap 'rm -f "$planted"' EXIT
printf 'int f(void)\n{\n    return 1;\n}\n' >"$planted"
if clang-format --style=file:.clang-format --dry-run -Werror "$planted" 2>/dev/null; then
	echo "clang-format finds no fault in a planted one" >&2
	exit 1
fi

files=$(find engine firmware-loader kmod runtime tests -name '*.[ch]' ! -path 'tests/fuzz/corpus/*' \
	! -name '*.mod.c' | sort)
# shellcheck disable=SC2086
if ! clang-format --style=file --dry-run -Werror $files >/dev/null 2>&1; then
	for file in $files; do
		clang-format --style=file "$file" | diff -u "$file" - || :
	done | head -n 100 >&2
	echo "make it so: clang-format -i FILE" >&2
	exit 1
fi

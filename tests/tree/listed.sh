#!/bin/sh
# SPDX-License-Identifier: MIT
# Sources are listed by name in meson.build: a test that nobody listed would never run.
# usage: listed.sh SOURCE-ROOT
set -eu

cd "$1"
lists=$(find . -name meson.build ! -path './build*' -exec cat {} +)
missing=$(find engine firmware-loader runtime tests -name '*.c' | sort | while read -r source; do
	name=${source##*/}
	case $source in
	runtime/examples/*/*) name=${source#runtime/examples/} ;;
	runtime/examples/*) name=${name%.c} ;;
	runtime/cli/*) name=${source#runtime/cli/} ;;
	engine/kernels/*) ;;
	engine/*) name=${source#engine/} ;;
	runtime/src/*) name=${source#runtime/src/} ;;
	esac
	case $lists in *["'/"]"$name'"*) ;; *) echo "$source" ;; esac
done)
if [ -n "$missing" ]; then
	printf 'in no meson.build:\n%s\n' "$missing" >&2
	exit 1
fi

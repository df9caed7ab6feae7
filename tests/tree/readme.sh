#!/bin/sh
# SPDX-License-Identifier: MIT
# The C of README.md compiles as the body of a function against the header beside it.
# usage: readme.sh SOURCE-ROOT
set -eu

body=$(awk '/^## In C/ { on = 1; next } /^[^ ]/ { on = 0 } on' "$1/README.md")
case $body in
*embeng_open*) ;;
*) echo "README.md has no C under '## In C'" >&2; exit 1 ;;
esac

printf '#include <embeng.h>\n#include <stdio.h>\nint readme(void)\n{\n%s\nreturn 0;\n}\n' "$body" |
	cc -std=c11 -Wall -Wextra -Werror \
	   -I"$1/runtime/include" -fsyntax-only -x c -

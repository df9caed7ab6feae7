#!/bin/sh
# SPDX-License-Identifier: MIT
# A program that uses the library may run another one at any time: each descriptor that the library
# and the command open closes then (O_CLOEXEC), and no name of a temporary file can be guessed. A
# program with more rights than its caller takes no path from his environment (secure_getenv).
# usage: descriptors.sh SOURCE-ROOT
set -eu

# leaking FILE...: calls that open something without the flag, a call that spans lines as a whole
leaking()
{
	awk '
	/^[[:space:]]*(\/\*|\*)/ { next }
	{
		if (!open_call && match($0, /(^|[^_A-Za-z0-9>.*])(open|openat|creat|fopen|popen|mkstemp|mkostemp|tmpnam|tempnam|mktemp|eventfd|epoll_create1?|memfd_create|pipe2?|dup[23]?|socket|accept4?)\(/)) {
			call = ""
			at = FILENAME ":" FNR
			open_call = 1
		}
		if (!open_call)
			next
		call = call $0
		if ($0 !~ /[;{]$/)
			next
		open_call = 0
		if (call !~ /CLOEXEC/ && call !~ /open\([^;]*"[rwa]b?[+]?e"/)
			print at ": " call
	}' "$@"
}

# trusting FILE...: calls that believe the environment whoever the caller is
trusting()
{
	grep -HnE '(^|[^_[:alnum:]])getenv\(' "$@" || true
}

cd "$1"
planted=$(mktemp --suffix=.c)
trap 'rm -f "$planted"' EXIT
printf 'int a = open(path,\n\tO_RDONLY);\nFILE *f = fopen(path, "r");\nint b = dup(1);\nchar *c = getenv("C"), *d = secure_getenv("D");\n' >"$planted"
if [ "$(leaking "$planted" | wc -l)" -ne 3 ] || [ "$(trusting "$planted" | wc -l)" -ne 1 ]; then
	echo "a planted fault is not found" >&2
	exit 1
fi
# shellcheck disable=SC2046
found=$(leaking $(find runtime firmware-loader -name '*.c' | sort))
if [ -n "$found" ]; then
	printf '%s\n' "$found" "say O_CLOEXEC, or \"re\" to fopen()" >&2
	exit 1
fi
# shellcheck disable=SC2046
found=$(trusting $(find runtime firmware-loader engine -name '*.[ch]' | sort))
if [ -n "$found" ]; then
	printf '%s\n' "$found" "say secure_getenv()" >&2
	exit 1
fi

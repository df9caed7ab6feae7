#!/bin/sh
# SPDX-License-Identifier: MIT
# The example of embeng-ring(7) compiles, as it stands there, after the headers that it names.
# The page names every command of the engine.
# usage: ring_page.sh SOURCE-ROOT
set -eu

page=$1/docs/man/embeng-ring.7
code=$(awk '/^\.Sh EXAMPLES/ { on = 1 } on && /^\.Ed/ { exit } text { print }
	on && /^\.Bd -literal/ { text = 1 }' "$page")
case $code in
*embeng_doorbell_tail*embeng_arm_then_recheck*) ;;
*) echo "$page has no example of a ring" >&2; exit 1 ;;
esac
commands=$(sed -n 's/^\tX(\([A-Z_]*\), [0-9]*, 0x[0-9a-f]*, .*/\1/p' "$1/uapi/embeng_engine.h")
[ "$(echo "$commands" | grep -c -x -e NOP -e SNAPSHOT_END)" -eq 2 ] ||
	{ echo "EMBENG_OPCODE_TABLE is not where it was" >&2; exit 1; }
for command in $commands; do
	sed '/^\.Sh EXAMPLES/,$d' "$page" | grep -q -w "$command" ||
		{ echo "$page does not name the command $command" >&2; exit 1; }
done
# shellcheck disable=SC2046
{
	printf '#include <stdint.h>\n#include <string.h>\n#include <sys/ioctl.h>\n'
	sed -n 's/^\.In \(.*\)/#include <\1>/p' "$page" | sort -u
	printf '%s\n' "$code"
} | cc -std=gnu11 -Wall -Wextra -Werror -I"$1/uapi" $(pkg-config --cflags libdrm) -fsyntax-only -x c -

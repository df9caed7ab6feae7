#!/bin/sh
# SPDX-License-Identifier: MIT
# Every public header compiles alone and twice, as C11 and C++17, also for 32 bits. Speaks TAP.
# usage: headers.sh SOURCE-ROOT
set -u

root=$1
number=0
failed=0

# Twice, because a missing include guard shows only then.
compile()
{
	header=$1
	shift
	printf '#include "%s"\n#include "%s"\nextern int not_empty;\n' "$header" "$header" |
		"$@" -Wall -Wextra -Werror -I"$root/uapi" -I"$root/runtime/include" \
		     -fsyntax-only - 2>&1
}

# try NAME HEADER COMPILER...
try()
{
	name=$1
	shift
	number=$((number + 1))
	if message=$(compile "$@"); then
		echo "ok $number - $name"
	else
		failed=1
		echo "not ok $number - $name"
		echo "$message" | sed 's/^/# /'
	fi
}

# Only the compilers of x86 know -m32, and the kernel's asm/ lies where they look for 64 bits
# alone: gcc-multilib links it, but that cannot be installed beside a cross compiler.
widths=-O0
[ "$(uname -m)" = x86_64 ] && widths="-O0 -m32"
include="-idirafter /usr/include/$(gcc -print-multiarch) $(pkg-config --cflags libdrm)"

headers=$(ls "$root"/uapi/*.h "$root"/runtime/include/embeng.h "$root"/runtime/include/embeng/*.h) || exit 1
for header in $headers; do
	for width in $widths; do
		label="${header##*/}$([ "$width" = -m32 ] && echo ' for 32 bits')"
		try "$label as C11" "$header" gcc $include "$width" -std=c11 -pedantic -x c
		try "$label as C++17" "$header" g++ $include "$width" -std=c++17 -x c++
	done
done
try "for a parser, without EMBENG_API" "$root/runtime/include/embeng.h" gcc $include -DEMBENG_API= \
	-std=c11 -pedantic -x c
# A program that drives the rings itself has both sides' headers in one file.
printf '#include <embeng.h>\n#include "embeng_accel.h"\n#include "embeng_regs.h"\n' \
	>"${both:=$(mktemp)}"
try "all together as C11" "$both" gcc $include -std=c11 -pedantic -x c
try "all together as C++17" "$both" g++ $include -std=c++17 -x c++
# Structures with their size set, where the language has designators.
cat >"$both" <<'END'
#pragma once
#include <embeng.h>
int is_sized(void);
int is_sized(void)
{
	struct embeng_error e = EMBENG_INIT(embeng_error);
	struct embeng_table_config t = EMBENG_INIT(embeng_table_config, .name = "t", .dim = 3);

	return e.size == sizeof(e) && t.dim == 3;
}
END
try "EMBENG_INIT as C99" "$both" gcc $include -std=c99 -pedantic -x c
try "EMBENG_INIT as C++20" "$both" g++ $include -std=c++20 -pedantic -Wno-missing-field-initializers \
	-x c++
rm -f "$both"
echo "1..$number"
exit $failed

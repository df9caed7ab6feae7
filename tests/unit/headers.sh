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

# Only the compilers of x86 know -m32.
widths=-O0
[ "$(uname -m)" = x86_64 ] && widths="-O0 -m32"

# The kernel's headers for -m32 are those of x86_64: gcc-multilib links them to where gcc looks,
# but it cannot be installed beside a cross compiler.
kernel=/usr/include/x86_64-linux-gnu

headers=$(ls "$root"/uapi/*.h "$root"/runtime/include/embeng.h "$root"/runtime/include/embeng/*.h) || exit 1
for header in $headers; do
	for width in $widths; do
		label="${header##*/}$([ "$width" = -m32 ] && echo ' for 32 bits')"
		try "$label as C11" "$header" gcc "$width" -idirafter "$kernel" -std=c11 -pedantic -x c
		try "$label as C++17" "$header" g++ "$width" -idirafter "$kernel" -std=c++17 -x c++
	done
done
echo "1..$number"
exit $failed

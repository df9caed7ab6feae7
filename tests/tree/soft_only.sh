#!/bin/sh
# SPDX-License-Identifier: MIT
# The smallest libembeng, as a wheel or a static program has it: the soft device alone, in a static
# library. It is configured where no package can be found, built, installed, and used from outside
# by pkg-config alone. Then each option is off alone, which must configure. Speaks TAP, and says
# how long the build took.
# usage: soft_only.sh SOURCE-ROOT ABSENT.C
set -u

source=$1
absent=$2
. "$(dirname "$0")/verdict.sh"
stage=$(mktemp -d) || exit 1
trap 'rm -rf "$stage"' EXIT
mkdir "$stage/none"

configure()
{
	# Optimized code takes seven times as long to compile, and is tested elsewhere.
	PKG_CONFIG_LIBDIR=$stage/none meson setup "$stage/build" "$source" -Dwerror=true \
		-Daccel=disabled -Dcli=disabled -Dprotobuf=disabled -Dtests=disabled \
		-Ddefault_library=static -Doptimization=0 -Ddebug=false --prefix="$stage/usr" --libdir=lib
}

compile()
{
	began=$(date +%s)
	ninja -C "$stage/build" || return 1
	echo $(($(date +%s) - began)) >"$stage/seconds"
}

# Headers, the library, its .pc file and manual pages, but no command, driver or firmware.
installed()
{
	meson install -C "$stage/build" --no-rebuild --quiet || return 1
	others=$(cd "$stage/usr" && find . ! -type d ! -path './include/embeng*' \
		! -path './share/man/man[357]/embeng*.[357]' ! -path ./lib/libembeng.a \
		! -path ./lib/pkgconfig/embeng.pc)
	[ -z "$others" ] || { echo "$others"; return 1; }
	pages=$(cd "$stage/usr/share/man" && ls man5/embeng-vector.5 man5/embeng-firmware.5 2>/dev/null)
	[ -z "$pages" ] || { echo "$pages"; return 1; }
	[ -f "$stage/usr/share/man/man3/embeng_open.3" ]
}

# program NAME C-FILE: by what pkg-config says, and nothing else
program()
{
	flags=$(pkg-config --cflags --libs embeng) || return 1
	# shellcheck disable=SC2086
	cc -std=c11 -Wall -Wextra -Werror "$2" $flags -o "$stage/$1" && "$stage/$1"
}

# Libraries that ldd lists for a program beside those of libc.
loads_libc_alone()
{
	ldd "$stage/lookup" >"$stage/loaded" || return 1
	grep -q 'libc\.so' "$stage/loaded" || { cat "$stage/loaded"; return 1; }
	! grep -vE '(linux-vdso|libc|libm|libpthread|libdl|/ld-linux[a-z0-9-]*)\.so' "$stage/loaded"
}

# A program's own functions cannot clash with those inside the library.
public_names()
{
	symbols=$(nm -g --defined-only "$stage/usr/lib/libembeng.a" |
		awk '$2 ~ /^[TDBRWVC]$/ { print $3 }')
	echo "$symbols" | grep -q '^embeng_open$' || { echo "embeng_open is missing"; return 1; }
	! echo "$symbols" | grep -v '^embeng_'
}

says()
{
	[ "$(pkg-config --variable="$1" embeng)" = "$2" ]
}

# alone OPTION...: these options, and everything else on
alone()
{
	rm -rf "$stage/other"
	meson setup "$stage/other" "$source" "$@" >"$stage/other.log" 2>&1 ||
		{ tail -n 5 "$stage/other.log"; return 1; }
	! grep -E '^(WARNING|DEPRECATION|ERROR)' "$stage/other.log"
}

verdict "a soft library is configured where there are no packages" configure
verdict "and built" compile
echo "# built in $(cat "$stage/seconds" 2>/dev/null) s on $(nproc) processors"
verdict "it installs what was built" installed
PKG_CONFIG_LIBDIR=$stage/usr/lib/pkgconfig
export PKG_CONFIG_LIBDIR
verdict "an example compiles with pkg-config's flags, and runs" program lookup \
	"$source/runtime/examples/lookup.c"
verdict "which loads the C library alone" loads_libc_alone
verdict "only embeng_ names are public" public_names
verdict "what was left out says so" program absent "$absent"
verdict "pkg-config says that there are no devices of the driver" says accel no
verdict "and no protobufs" says protobuf no
unset PKG_CONFIG_LIBDIR
for option in accel cli mpi protobuf tui tests; do
	verdict "without $option alone" alone "-D$option=disabled"
done
verdict "both libraries" alone -Ddefault_library=both
echo "1..$number"
exit $failed

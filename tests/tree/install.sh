#!/bin/sh
# SPDX-License-Identifier: MIT
# What gets installed serves a program from outside: pkg-config, header, library. Speaks TAP.
# usage: install.sh SOURCE-ROOT BUILD-ROOT
set -u

source=$1
build=$2
. "$(dirname "$0")/verdict.sh"
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT

compile()
{
	flags=$(pkg-config --cflags --libs embeng) || return 1
	# shellcheck disable=SC2086
	cc -std=c11 -Wall -Wextra -Werror "$source/runtime/examples/lookup.c" $flags -o "$stage/lookup"
}

run()
{
	LD_LIBRARY_PATH=$(dirname "$(find "$stage" -name libembeng.so.0)") "$stage/lookup"
}

option()
{
	meson introspect --buildoptions "$build" | python3 -c "
import json, sys
print(next(o['value'] for o in json.load(sys.stdin) if o['name'] == '$1'))"
}

# The command finds its library under a prefix that the loader does not search, and packages have no
# paths in their programs.
finds_library()
{
	command=$(find "$stage" -path '*/bin/embeng')
	[ -n "$command" ] || { echo "no command"; return 1; }
	prefix=$(option prefix)
	case $prefix in
	/usr | /usr/local) expected= ;;
	*) expected="[$prefix/$(option libdir)]" ;;
	esac
	found=$(readelf -d "$command" | sed -n 's/.*(RU\?N\?PATH).*: //p')
	[ "$found" = "$expected" ] || { echo "'$found' in place of '$expected'"; return 1; }
}

# Everything exported is part of the API by its name.
exports()
{
	symbols=$(nm -D --defined-only "$(find "$stage" -name 'libembeng.so.0.*')" |
		awk '$2 != "A" { print $3 }')
	[ -n "$symbols" ] || { echo "nothing is exported"; return 1; }
	strangers=$(echo "$symbols" | grep -v '^embeng_')
	[ -z "$strangers" ] || { echo "$strangers"; return 1; }
}

verdict "meson install" env DESTDIR="$stage" meson install -C "$build" --no-rebuild --quiet
PKG_CONFIG_SYSROOT_DIR=$stage
PKG_CONFIG_PATH=$(dirname "$(find "$stage" -name embeng.pc)")
export PKG_CONFIG_SYSROOT_DIR PKG_CONFIG_PATH
verdict "a program compiles with pkg-config's flags" compile
verdict "and runs with the installed library" run
verdict "the command finds the library" finds_library
verdict "only embeng_ names are exported" exports
echo "1..$number"
exit $failed

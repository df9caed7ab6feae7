#!/bin/sh
# SPDX-License-Identifier: MIT
# The kernel modules build without a word from gcc -W1 and sparse, against a kernel's headers; and
# where the source is named, checkpatch.pl --strict has nothing to say that is not allowed.
# They are built anew, where machines find them: not to be run beside one.
# usage: static.sh KERNEL [checkpatch]	Speaks TAP.
set -u

kernel=$1
top=$(cd "$(dirname "$0")/../.." && pwd)
. "$top/tests/vm/kernel.sh"
. "$top/tests/vm/build.sh"
. "$top/tests/vm/tap.sh"
trap 'rm -rf "$folder"' EXIT
kernel_named "$kernel" || exit 1

# All of them, since gcc has nothing to say of what it does not compile. Machines that start
# meanwhile wait.
modules_build()
{
	build_alone "$top" "$kernel_release" build_anew >"$folder/build" 2>&1 ||
		{ tail -n 40 "$folder/build"; return 1; }
}

build_anew()
{
	rm -rf "$top/build/kmod-$kernel_release" && build_modules "$top" "$kernel_release" \
		"$kernel_headers" W=1 C=2 CHECK="$top/tests/kmod/sparse"
}

silently()
{
	! grep -E 'warning:|error:' "$folder/build"
}

# Each C file but those with vectors and the suites, which need KUnit: a build that checks nothing is silent too.
all_were_checked()
{
	find "$top/kmod" "$top/engine" -name '*.c' ! -path '*/kernels/*' ! -path '*/tests/*' |
		wc -l >"$folder/files"
	grep -E '^ *CHECK ' "$folder/build" | grep -vcE '/engine/kernels/|/kmod/tests/' >"$folder/checked"
	paste "$folder/files" "$folder/checked"
	[ "$(cat "$folder/files")" -eq "$(cat "$folder/checked")" ]
}

# File, type and what was said, a line each. In a copy: it leaves files where it runs.
checkpatch()
{
	kernel_source && mkdir "$folder/tree" &&
		cp -a "$top/kmod" "$top/uapi" "$top/Kbuild" "$folder/tree/" || return 1
	cd "$folder/tree" && find kmod uapi Kbuild -name '*.[ch]' -o -name Kbuild | sort |
		while read -r file; do
			perl "$source/tree/scripts/checkpatch.pl" --root "$source/tree" --strict --terse \
				--show-types --no-summary -f "$file"
		done >"$folder/said" 2>&1
	sed -n 's/^\([^:]*\):[0-9]*: [A-Z]*:\([A-Z_]*\): .*/\1 \2/p' "$folder/said" |
		sort -u >"$folder/types"
	awk '!/^#/ { print $1, $2 }' "$top/tests/kmod/checkpatch.allowed" | sort -u >"$folder/allowed"
	[ -s "$folder/types" ]
}

nothing_new()
{
	comm -23 "$folder/types" "$folder/allowed" | while read -r file type; do
		grep "^$file:.*:$type:" "$folder/said"
	done >"$folder/new"
	cat "$folder/new"
	[ ! -s "$folder/new" ]
}

# Every line that checkpatch printed has the form of a finding: another one says that it failed.
nothing_odd()
{
	! grep -vE '^[^:]*:[0-9]*: [A-Z]*:[A-Z_]*: ' "$folder/said"
}

nothing_stale()
{
	comm -13 "$folder/types" "$folder/allowed" >"$folder/stale"
	cat "$folder/stale"
	[ ! -s "$folder/stale" ]
}

check "$kernel: the modules build" modules_build
check "$kernel: gcc and sparse have nothing to say" silently
check "$kernel: sparse saw every file" all_were_checked
if [ "${2-}" = checkpatch ]; then
	check 'checkpatch.pl runs' checkpatch
	check 'checkpatch.pl says nothing that is not allowed' nothing_new
	check 'and nothing else' nothing_odd
	check 'all that is allowed is needed' nothing_stale
fi
finish

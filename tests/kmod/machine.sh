#!/bin/sh
# SPDX-License-Identifier: MIT
# The virtual machine itself: what tests/vm/run shares with it, and how it ends. Speaks TAP.
# usage: machine.sh KERNEL
set -u

kernel=$1
top=$(cd "$(dirname "$0")/../.." && pwd)
. "$top/tests/vm/build.sh"
. "$top/tests/vm/tap.sh"
shared=$(mktemp -d /dev/shm/embeng.XXXXXX) || exit 1
holder=
trap 'rm -rf "$folder" "$shared"; [ -z "$holder" ] || kill "$holder"' EXIT

# ends STATUS ARGUMENT...: tests/vm/run does, with that status
ends()
{
	wanted=$1
	shift
	"$top/tests/vm/run" --kernel "$kernel" "$@"
	status=$?
	echo "exit status $status"
	[ $status -eq "$wanted" ]
}

# says PATTERN ARGUMENT...: and ends with 125
says()
{
	pattern=$1
	shift
	ends 125 "$@" >"$folder/said" 2>&1
	status=$?
	cat "$folder/said"
	[ $status -eq 0 ] && grep -qe "$pattern" "$folder/said"
}

# Which no machine has that just booted.
process()
{
	while :; do
		sleep 600 >/dev/null 2>&1 &
		holder=$!
		[ "$holder" -lt 2000 ] || break
		kill "$holder"
	done
}

copies()
{
	mkdir -p "$folder/tree" "$folder/copy" || return 1
	cp -r "$top/Kbuild" "$top/kmod" "$top/engine" "$top/uapi" "$top/firmware-loader" "$folder/tree/"
	touch "$folder/tree/engine/old.c" "$folder/tree/kmod/old.h"
	build_copy "$folder/tree" "$folder/copy" || return 1
	touch "$folder/copy/engine/old.o" "$folder/copy/kmod/embeng.mod.c"
	rm "$folder/tree/engine/old.c" "$folder/tree/kmod/old.h"
	build_copy "$folder/tree" "$folder/copy" || return 1
	(cd "$folder/copy" && rm engine/old.o kmod/embeng.mod.c) && diff -r "$folder/tree" "$folder/copy"
}

echo in >"$shared/in"
ln -s "$shared" "$folder/link"
check 'a copy of the sources has what the tree has, and what was built' copies
check 'a command ends with its status, a folder below /dev is shared, by a link too' \
	ends 7 --share "$folder/link" -- \
	sh -c "cat $folder/link/in >$shared/out && cmp $shared/in $folder/link/out && exit 7"
check 'what was written there stays' cmp "$shared/in" "$shared/out"
process
check 'a folder that cannot be shared is told of' \
	says "has no place for /proc/$holder\$" --share "/proc/$holder" -- true
check 'so is a machine that does not start' says 'stopped before' --qemu -no-such-option -- true
check 'a command that takes too long ends with 124' ends 124 --timeout 5 -- sleep 600
check 'files that are carried leave no place for what is shared' \
	ends 2 --share "$shared" --carry /bin/true -- true
finish

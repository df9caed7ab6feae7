#!/bin/sh
# SPDX-License-Identifier: MIT
# The virtual machine itself: what tests/vm/run shares with it, and how it ends. Speaks TAP.
# usage: machine.sh KERNEL
set -u

kernel=$1
top=$(cd "$(dirname "$0")/../.." && pwd)
. "$top/tests/vm/build.sh"
. "$top/tests/vm/tap.sh"
shared=$(mktemp -d '/dev/shm/embeng a,b.XXXXXX') || exit 1
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

# says STATUS PATTERN ARGUMENT...: and ends with that status
says()
{
	wanted=$1 pattern=$2
	shift 2
	ends "$wanted" "$@" >"$folder/said" 2>&1
	status=$?
	cat "$folder/said"
	[ $status -eq 0 ] && grep -qe "$pattern" "$folder/said"
}

# Starts a process with a number from 2000 on, which no machine has that just booted.
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

# Also what looks like a plan of TAP and is none, a zero byte, an end without a new line.
prints()
{
	text='a\n1..5 b\n\000\303\244'
	# shellcheck disable=SC2059
	ends 7 -- sh -c "printf '$text'; exit 7" >"$folder/printed" 2>"$folder/complaints"
	ended=$?
	cat "$folder/complaints"
	# shellcheck disable=SC2059
	printf "${text}exit status 7\\n" | cmp - "$folder/printed" && [ $ended -eq 0 ]
}

# The output of these runs is no terminal, and another one is, whose type the command gets.
knows_terminal()
{
	[ "$("$top/tests/vm/run" --kernel "$kernel" -- sh -c 'echo $TERM')" = dumb ] || return 1
	script -qec "TERM=vt52 '$top/tests/vm/run' --kernel '$kernel' -- sh -c 'echo is \$TERM'" \
		/dev/null </dev/null >"$folder/typed"
	cat "$folder/typed"
	grep -q 'is vt52' "$folder/typed"
}

# More than a pipe holds, while nobody reads.
waits_for_readers()
{
	seq 100000 >"$folder/numbers"
	ends 0 -- seq 100000 2>"$folder/complaints" | {
		sleep 15
		head -n 100000 | cmp - "$folder/numbers"
	}
}

# Nothing is left of one that is interrupted.
interrupted()
{
	mkdir "$folder/scratch"
	TMPDIR="$folder/scratch" timeout -s TERM 10 "$top/tests/vm/run" --kernel "$kernel" \
		--timeout 500 -- sleep 400
	status=$?
	ls "$folder/scratch"
	echo "exit status $status"
	[ $status -eq 124 ] && [ -z "$(ls "$folder/scratch")" ] && ! pgrep -f "$folder/scratch"
}

check 'what a command prints comes as it is, with its exit status' prints
if [ "$kernel" = debug ]; then
	finish
fi
check 'and without colours, where nobody has a terminal' knows_terminal
check 'tracefs is where programs look for it' ends 0 -- test -d /sys/kernel/tracing/events/embeng
check 'and all of it, when its reader is slow' waits_for_readers
check 'a machine that is interrupted is gone' interrupted
echo in >"$shared/in"
ln -s "$shared" "$folder/link"
check 'a copy of the sources has what the tree has, and what was built' copies
check 'a command ends with its status, a folder below /dev is shared, by a link too' \
	ends 7 --share "$folder/link" -- \
	sh -c "cat $folder/link/in >'$shared/out' && cmp '$shared/in' $folder/link/out && exit 7"
check 'what was written there stays' cmp "$shared/in" "$shared/out"
process
check 'a folder that cannot be shared is told of' \
	says 125 "has no place for /proc/$holder\$" --share "/proc/$holder" -- true
check 'so is a machine that does not start' says 125 'stopped before' --qemu -no-such-option -- true
check 'and a recording that cannot be written' \
	says 2 'cannot be written' --record "$folder/none/recording" -- true
check 'a command that takes too long ends with 124' ends 124 --timeout 5 -- sleep 600
check 'files that are carried leave no place for what is shared' \
	ends 2 --share "$shared" --carry /bin/true -- true
finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs a command on the instrumented kernel, then sees that the kernel has nothing to report of
# it: tests that are added to the command's own if it speaks TAP, and else are told of when they
# fail. Exits with the command's status, or 1. tests/vm/run does so on this kernel.
# usage: debug.sh SOURCE-FOLDER COMMAND [ARGUMENT...]
set -u

top=$1
shift
. "$top/tests/vm/tap.sh"
debug=/sys/kernel/debug

# A plan is left out: more tests follow.
run()
{
	live=
	! sed -u '' /dev/null 2>/dev/null || live=-u # not busybox's
	{
		"$@"
		echo $? >"$folder/status"
	} | tee "$folder/tap" | sed $live '/^1\.\.[0-9][0-9]*$/d'
	number=$(grep -acE '^(not )?ok ' "$folder/tap")
	status=$(cat "$folder/status")
}

# True if the command printed a TAP plan. The output of other commands is left as it is.
speaks_tap()
{
	grep -aqx '1\.\.[0-9][0-9]*' "$folder/tap"
}

as_planned()
{
	echo "exit status $status"
	[ "$status" -eq 0 ] && ! grep -ax '1\.\.[0-9][0-9]*' "$folder/tap" | grep -vx "1\.\.$number"
}

# The kernel has every setting of debug.config: a checker that is compiled out finds nothing.
complete()
{
	zcat /proc/config.gz >"$folder/config" && [ -s "$folder/config" ] &&
		! grep -E '^(# )?CONFIG_' "$top/tests/vm/debug.config" | grep -vxFf "$folder/config"
}

# The newest first: what another one needs goes after it.
unload()
{
	sed -n 's/^\(embeng[^ ]*\) .*/\1/p' /proc/modules >"$folder/modules"
	while read -r module; do
		rmmod "$module" || return 1
	done <"$folder/modules"
}

# Told of only when two scans agree, and once it is older than five seconds.
nothing_leaked()
{
	sleep 6
	echo scan >"$debug/kmemleak" && echo scan >"$debug/kmemleak" &&
		cat "$debug/kmemleak" >"$folder/leaks" && cat "$folder/leaks" &&
		[ ! -s "$folder/leaks" ]
}

# Bits of /proc/sys/kernel/tainted: bad page, oops, warning, lockup. Modules from elsewhere are
# what is tested here.
untainted()
{
	cat /proc/sys/kernel/tainted
	[ $(($(cat /proc/sys/kernel/tainted) & (1 << 5 | 1 << 7 | 1 << 9 | 1 << 14))) -eq 0 ]
}

# Lockdep ends with its first report, DMA debugging when it runs out of memory.
still_on()
{
	grep 'debug_locks: *1' /proc/lockdep_stats && grep -x N "$debug/dma-api/disabled"
}

silent()
{
	! dmesg | grep -E -A 40 'BUG:|WARNING:|INFO:|KASAN|UBSAN:|ODEBUG:|Oops|Call Trace|DMA-API: embeng|deadlock|lockup|self-detected stall|corrupt'
}

of_the_kernel()
{
	check 'debug: the kernel has every feature of debug.config' complete
	check 'debug: modules unload' unload
	check 'debug: no memory has leaked' nothing_leaked
	check 'debug: DMA was used as it should be' grep -x 0 "$debug/dma-api/error_count"
	check 'debug: lockdep and DMA debugging looked on to the end' still_on
	check 'debug: no warning has tainted the kernel' untainted
	check 'debug: no report in the log' silent
}

echo 1 >"$debug/dma-api/all_errors"
export CK_TIMEOUT_MULTIPLIER=20
run "$@"
if speaks_tap; then
	check 'debug: the command did as it planned' as_planned
	of_the_kernel
	echo "1..$number"
else
	of_the_kernel >"$folder/verdicts"
	grep -A 1000 '^not ok' "$folder/verdicts"
fi
rm -rf "$folder"
[ "$status" -ne 0 ] || status=$failed
exit "$status"

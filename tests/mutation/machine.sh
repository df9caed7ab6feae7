#!/bin/sh
# SPDX-License-Identifier: MIT
# Loads kernel modules, one after the other, and runs tests on each until one fails. In a virtual
# machine.
# usage: tests/vm/run -- tests/mutation/machine.sh BUILD-FOLDER LIST
# A line of LIST is either "took SECONDS TEST", how long a test took in a machine before, or
# "module ID MODULE FILE TEST...": MODULE is kmod/embeng.ko or kmod/emulator/embeng_emu.ko, and FILE
# is loaded in its place, or - for the module of the build. A TEST is a program or script of tests/vm,
# with "plain:" in front where the device is not to have an IOMMU.
# Prints "begin ID"; for each test that passes "took SECONDS TEST"; and then "passed ID" or
# "failed ID WORDS". Ends early when the next module needs a machine that is booted anew.
set -u

build=$1
list=$2
here=$(cd "$(dirname "$0")/../vm" && pwd)
. "$here/tap.sh"
kernel=$build/kmod-$(uname -r)
emulator=/sys/kernel/debug/embeng_emu/0
complaint='BUG|WARNING|Oops|Call Trace|embeng.*(refuses to|unmapped)'
mkdir "$folder/took" "$folder/kept"
cp "$kernel/kmod/embeng.ko" "$kernel/kmod/emulator/embeng_emu.ko" "$folder/kept/"
modprobe vgem

# limit TEST: seconds that it may take
limit()
{
	if [ -e "$folder/took/$1" ]; then
		echo $((20 + 4 * $(cat "$folder/took/$1")))
	else
		echo 600
	fi
}

# load TEST: the modules as the test wants them. Where there is a driver, there is an IOMMU, by which
# memory shows that is unmapped too early or never.
load()
{
	options=iommu=1 driver='' drives=true
	case $1 in
	vm-function | vm-registers | vm-work | vm-faults) options='' drives=false ;;
	vm-d3_keeps) options=d3_keeps=1 drives=false ;;
	vm-iommu_refused) drives=false ;;
	vm-two_devices) options='devices=2 memory=64M' ;;
	vm-accel_forbidden) driver=mapped_queues=0 ;;
	*.sh | plain:*) options='' ;;
	esac
	# shellcheck disable=SC2086
	insmod "$kernel/kmod/emulator/embeng_emu.ko" $options || return 1
	! $drives || insmod "$kernel/kmod/embeng.ko" $driver
}

# remove MODULE: a fence, or a program that was killed, may keep it for a moment
remove()
{
	tries=50
	while [ -d "/sys/module/$1" ]; do
		[ $((tries -= 1)) -gt 0 ] || return 1
		rmmod "$1" 2>/dev/null || sleep 0.1
	done
}

# fails WORDS...: why the module is caught
fails()
{
	[ -n "$words" ] || words="$test: $*"
}

# needs_boot WORDS...: it is, and this machine is of no use any more
needs_boot()
{
	fails "$@"
	spoiled=true
}

run_test()
{
	seconds=$(limit "$test")
	within="timeout -k 5 $seconds"
	case $test in
	*.sh)
		# As far as its first case that fails.
		$within "$here/$test" "$build" 2>&1 | awk '{ print } /^not ok/ { exit }' >"$folder/said"
		grep -qE '^(not ok|1\.\.)' "$folder/said" || fails 'does not come to its end'
		;;
	*) program "${test#plain:}" >"$folder/said" 2>&1 ;;
	esac
	! grep -q '^not ok' "$folder/said" || fails "$(grep -m 1 '^not ok' "$folder/said")"
}

# Takes the modules away and looks at what they leave.
look_at_rest()
{
	[ "$(cat $emulator/unmapped_in_use 2>/dev/null || echo 0)" -eq 0 ] ||
		fails 'memory was unmapped that the device reaches'
	remove embeng || needs_boot 'the driver cannot be unloaded'
	[ "$(cat $emulator/mapped_pages 2>/dev/null || echo 0)" -eq 0 ] || fails 'memory stays mapped'
	remove embeng_emu || needs_boot 'the emulator cannot be unloaded'
	dmesg >"$folder/messages"
	! grep -qE "$complaint" "$folder/messages" ||
		needs_boot "$(grep -m 1 -oE "($complaint).*" "$folder/messages")"
}

# judge TEST: leaves the reason for which it fails in $words
judge()
{
	test=$1
	dmesg -C
	began=$(date +%s)
	if load "$test"; then run_test; else fails 'the modules do not load'; fi
	took=$(($(date +%s) - began))
	look_at_rest
}

words='' spoiled=false
for module in embeng embeng_emu; do
	remove $module || exit 1
done
while read -r kind id module file tests; do
	if [ "$kind" = took ]; then
		echo "$id" >"$folder/took/$module"
		continue
	fi
	echo "begin $id"
	cp "$folder/kept/embeng.ko" "$kernel/kmod/"
	cp "$folder/kept/embeng_emu.ko" "$kernel/kmod/emulator/"
	[ "$file" = - ] || cp "$file" "$kernel/$module"
	words=''
	for test in $tests; do
		judge "$test"
		[ -z "$words" ] || break
		echo "took $took $test"
		[ "$file" != - ] || echo "$took" >"$folder/took/$test"
	done
	if [ -z "$words" ]; then echo "passed $id"; else echo "failed $id $words"; fi
	! $spoiled || exit 0
done <"$list"

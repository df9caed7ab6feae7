#!/bin/sh
# SPDX-License-Identifier: MIT
# Two users' programs made of chance, faults, resets, unplugging, sleep and want of memory, all at
# once, and a bystander that must not notice more than it is told. Speaks TAP.
# usage: tests/vm/run [--kernel debug] -- tests/vm/chaos.sh BUILD-FOLDER [SECONDS [SEED]]
set -u

build=$1
seconds=${2:-60}
seed=${3:-$(date +%s)}
. "$(dirname "$0")/tap.sh"
modules=$build/kmod-$(uname -r)/kmod
emulator=/sys/kernel/debug/embeng_emu/0

# Behind an IOMMU every address that was not mapped shows.
load()
{
	rmmod embeng && rmmod embeng_emu && insmod "$modules/emulator/embeng_emu.ko" iommu=1 &&
		insmod "$modules/embeng.ko" && echo 1000 >/sys/module/embeng/parameters/hang_ms &&
		echo 1 >/sys/module/suspend/parameters/pm_test_delay
}

is()
{
	echo "$1: $(cat "$1")"
	[ "$(cat "$1")" = "$2" ]
}

quiet()
{
	! dmesg | grep -E -A 20 'BUG|WARNING|Oops|Call Trace|refuses to let go|unmapped'
}

echo "# seed $seed"
check 'an empty group is frozen' alone freeze_nobody
check 'the modules load' load
program vm-hostile_chaos --seed "$seed" --seconds "$seconds"
check 'no sleep failed' is /sys/power/suspend_stats/fail 0
check 'the device reached nothing that was unmapped' is "$emulator/unmapped_in_use" 0
check 'the driver unloads' rmmod embeng
check 'no page stays mapped' is "$emulator/mapped_pages" 0
check 'no complaint in the log' quiet
finish

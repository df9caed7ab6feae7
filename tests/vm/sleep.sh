#!/bin/sh
# SPDX-License-Identifier: MIT
# The machine sleeps with the device in it. Speaks TAP.
# usage: tests/vm/run --carry "THIS tap.sh vm-sleep" -- tests/vm/sleep.sh BUILD-FOLDER [PARAMETER...]
set -u

build=$1
shift
place=$*
. "$(dirname "$0")/tap.sh"
modules=$build/kmod-$(uname -r)/kmod

load()
{
	rmmod embeng && rmmod embeng_emu && insmod "$modules/emulator/embeng_emu.ko" $place "$1" &&
		insmod "$modules/embeng.ko"
}

quiet()
{
	! dmesg | grep -E 'BUG|WARNING|Oops|Call Trace|failed to suspend|Some devices failed'
}

check 'an empty group is frozen' alone freeze_nobody
echo 1 >/sys/module/suspend/parameters/pm_test_delay
for keeps in 0 1; do
	check "d3_keeps=$keeps: loads" load d3_keeps=$keeps
	program vm-sleep
done
check 'no sleep failed' grep -qx 0 /sys/power/suspend_stats/fail
check 'and several succeeded' [ "$(cat /sys/power/suspend_stats/success)" -gt 2 ]
check 'no complaint in the log' quiet
finish

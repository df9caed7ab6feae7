#!/bin/sh
# SPDX-License-Identifier: MIT
# The driver's tests, in a virtual machine. Speaks TAP.
# usage: tests/vm/run -- tests/vm/driver.sh BUILD-FOLDER
set -u

build=$1
. "$(dirname "$0")/tap.sh"
address=0eb0:00:00.0
function=/sys/bus/pci/devices/$address
debug=/sys/kernel/debug/accel/$address
tracing=/sys/kernel/tracing

# quiet: the kernel complained of nothing since it started
quiet()
{
	! dmesg | grep -E 'BUG|WARNING|Oops|Call Trace|embeng.*(refuses to|does not come|unmapped)'
}

# is FILE TEXT: an attribute says so
is()
{
	[ "$(cat "$function/$1")" = "$2" ] || { echo "$1: $(cat "$function/$1")"; false; }
}

grows()
{
	before=$(cat "$function/$1")
	"$build/tests/vm/vm-accel_queue" >/dev/null
	echo "$before, then $(cat "$function/$1")"
	[ "$(cat "$function/$1")" -gt "$before" ]
}

# with_file COMMAND...: while the node is open
with_file()
{
	exec 9<>"/dev/accel/$(ls "$function/accel")"
	"$@"
	set -- $?
	exec 9>&-
	return "$1"
}

fdinfo()
{
	cat "/proc/$$/fdinfo/9"
	grep -q "drm-driver:[[:space:]]*embeng" "/proc/$$/fdinfo/9" &&
		grep -q "drm-pdev:[[:space:]]*$address" "/proc/$$/fdinfo/9" &&
		grep -q drm-total-memory "/proc/$$/fdinfo/9" &&
		grep -q "drm-engine-compute:[[:space:]]*0 ns" "/proc/$$/fdinfo/9"
}

traced()
{
	mount -t tracefs tracing "$tracing" 2>/dev/null
	echo 1 >"$tracing/events/embeng/enable" || return 1
	"$build/tests/vm/vm-accel_submit" >/dev/null
	echo 0 >"$tracing/events/embeng/enable"
	for event in embeng_submit embeng_complete embeng_event embeng_admin; do
		grep -m 1 "$event:" "$tracing/trace" || return 1
	done
}

program vm-accel_memory
program vm-accel_queue
program vm-accel_submit
check 'the firmware version is told' grep -E '^[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+$' \
	"$function/firmware_version"
check 'the interface version is told' is interface_version 0.1
check 'commands are counted' grows counters/commands
check 'no table memory is left in use' is table_memory_used 0
check 'no reset was needed' is resets/sequence 0
check 'fdinfo tells of memory' with_file fdinfo
check 'debugfs shows the registers' grep -E 'MAGIC +0x474e424d' "$debug/registers"
check 'tracepoints fire' traced
program vm-accel_life
program vm-accel_ladder
program vm-accel_upload
program vm-accel_telemetry
check 'resets are counted' is resets/wedged 0
check 'the driver unloads' rmmod embeng
check 'and loads again' insmod "$build/kmod-$(uname -r)/kmod/embeng.ko"
check 'the node is back' [ -d "$function/accel" ]
check 'no complaint in the log' quiet
finish

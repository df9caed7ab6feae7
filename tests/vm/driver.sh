#!/bin/sh
# SPDX-License-Identifier: MIT
# The driver's tests, in a virtual machine. Speaks TAP.
# usage: tests/vm/run -- tests/vm/driver.sh BUILD-FOLDER
set -u

build=$1
source=$(cd "$(dirname "$0")/../.." && pwd)
. "$source/tests/vm/tap.sh"
address=0eb0:00:00.0
function=/sys/bus/pci/devices/$address
debug=/sys/kernel/debug/accel/$address
tracing=/sys/kernel/tracing

# quiet: the kernel complained of nothing since it started
quiet()
{
	! dmesg | grep -E 'BUG|WARNING|Oops|Call Trace|embeng.*(refuses to|unmapped)'
}

# came_back: the driver gave up no device since the kernel started
came_back()
{
	! dmesg | grep -E 'embeng.*does not come'
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

# A file holds the module: what would be its last call is refused.
stays()
{
	rmmod embeng 2>"$folder/refused"
	[ $? -ne 0 ] && grep -i 'in use' "$folder/refused" && [ -e "/dev/accel/$(ls "$function/accel")" ]
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

# compat: calls of a 32-bit program
compat()
{
	cc -m32 -Os -std=gnu11 -Wall -Wextra -Werror -ffreestanding -fno-stack-protector -fno-pie \
		-fcf-protection=none -static -nostdlib -no-pie -I "$source/uapi" \
		-idirafter "/usr/include/$(cc -print-multiarch)" $(pkg-config --cflags libdrm) \
		"$source/tests/vm/compat.c" -o "$folder/compat" || return 1
	"$folder/compat" "/dev/accel/$(ls "$function/accel")"
	set -- $?
	[ "$1" -eq 0 ] || echo "compat.c: the check of line $1 (modulo 256) fails"
	return "$1"
}

for part in file memory region queue foreign submit wait; do
	program vm-accel_$part
done
check 'the firmware version is told' grep -E '^[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+$' \
	"$function/firmware_version"
check 'the interface version is told' is interface_version 0.1
check 'commands are counted' grows counters/commands
check 'no table memory is left in use' is table_memory_used 0
check 'no reset was needed' is resets/sequence 0
check 'fdinfo tells of memory' with_file fdinfo
check 'debugfs shows the registers' grep -E 'MAGIC +0x474e424d' "$debug/registers"
check 'tracepoints fire' traced
check 'a 32-bit program can do it all' compat
modprobe vgem
program vm-accel_fence
program vm-accel_fence_judged
program vm-accel_fence_ends
program vm-accel_life
program vm-accel_ladder
program vm-accel_upload
program vm-accel_telemetry
program vm-accel_hang
check 'every device came back' came_back
program vm-accel_recovery
check 'resets are counted' is resets/wedged 0
module=$build/kmod-$(uname -r)/kmod/embeng.ko
check 'the driver stays while its node is open' with_file stays
check 'the driver unloads' rmmod embeng
check 'and loads again, mapped queues forbidden' insmod "$module" mapped_queues=0
program vm-accel_forbidden
check 'and unloads' rmmod embeng
check 'and loads again' insmod "$module"
check 'the node is back' [ -d "$function/accel" ]
check 'no complaint in the log' quiet
finish

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
image=/lib/firmware/embeng/embeng.fw
embeng=$build/runtime/embeng

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
	alone switch_events 1 || return 1
	"$build/tests/vm/vm-accel_submit" >/dev/null
	alone switch_events 0 || return 1
	for event in embeng_submit embeng_command embeng_submit_take embeng_complete embeng_event \
		embeng_admin embeng_reset; do
		grep -m 1 "$event:" "$tracing/trace" || return 1
	done
}

# Every file that docs/abi describes, but what only a hang leaves.
described()
{
	mkdir /sys/kernel/config/embeng_emu/described || return 1
	sed -n 's/^What:[[:space:]]*//p' "$source"/docs/abi/* | grep -v devcoredump |
		sed "s/ADDRESS/$address/; s/DEVICE/0/; s/FAULT/*/; s/FOLDER/described/
			s/hwmonN/hwmon*/; s|PID/fdinfo/FD|self/fdinfo/0|" >"$folder/whats"
	: >"$folder/missing"
	while read -r what; do
		set -- $what
		[ -e "$1" ] || echo "$what is not there" >>"$folder/missing"
	done <"$folder/whats"
	rmdir /sys/kernel/config/embeng_emu/described
	cat "$folder/missing"
	[ -s "$folder/whats" ] && [ ! -s "$folder/missing" ]
}

is_described()
{
	while read -r what; do
		# shellcheck disable=SC2254
		case $1 in $what) return 0 ;; esac
	done <"$folder/whats"
	return 1
}

# And every file that there is; of DRM's own three, DRM says what they are.
undescribed()
{
	by_driver=/sys/bus/pci/drivers/embeng/$address
	find "$by_driver/counters" "$by_driver/resets" "$debug" /sys/kernel/debug/embeng_emu/0 -type f |
		grep -vE "^$debug/(name|clients|gem_names)$" >"$folder/files"
	while read -r file; do
		is_described "$file" || echo "$file is not in docs/abi"
	done <"$folder/files" >"$folder/missing"
	cat "$folder/missing"
	[ -s "$folder/files" ] && [ ! -s "$folder/missing" ]
}

# Prints the counters that grow with training, one a line.
work()
{
	for name in counters/commands counters/batches counters/updates counters/ids \
		counters/unique_rows counters/bytes_read counters/bytes_written busy_time_ns; do
		cat "$function/$name"
	done
}

# The counters keep their values when the PCI core resets the device, and when the driver does.
outlives()
{
	work >"$folder/before"
	echo 1 >"$function/reset" && "$embeng" reset -d "$(node)" || return 1
	work | paste "$folder/before" - | tee "$folder/both"
	awk '$2 < $1 || !$1 { less = 1 } END { exit less || NR != 8 }' "$folder/both"
}

worked()
{
	work | paste "$folder/before" - | tee "$folder/both"
	awk '$2 <= $1 { idle = 1 } END { exit idle || NR != 8 }' "$folder/both"
}

bind()
{
	echo "$address" >/sys/bus/pci/drivers/embeng/bind && [ -d "$function/accel" ]
}

unbind()
{
	echo "$address" >/sys/bus/pci/drivers/embeng/unbind && [ ! -e "$function/accel" ]
}

# Room is taken by a string.
largest()
{
	{
		cat "$source/firmware-loader/embeng/firmware.txt"
		printf 'filler = '
		head -c 4173000 /dev/zero | tr '\0' x
		echo
	} >"$folder/largest.txt"
	"$embeng" fw pack "$folder/largest.txt" "$source/firmware-loader/embeng/self-tests.txt" \
		-o "$image" && [ "$(stat -c %s "$image")" -gt $((4 * 1024 * 1024 - 4096)) ]
}

boots_again()
{
	before=$(cat "$function/resets/functions")
	echo 1 >"$function/reset" && is resets/functions $((before + 1)) && is resets/wedged 0
}

# binds_not PATTERN REASON: and the kernel's newest messages say why, and everybody is told
binds_not()
{
	! bind && [ ! -e "$function/accel" ] && dmesg | tail -n 20 | grep -e "$1" &&
		grep "^$address $2" /sys/bus/pci/drivers/embeng/refusals
}

# answers CODE PATTERN ARGUMENT...: what the command says on either output
answers()
{
	code=$1 pattern=$2
	shift 2
	"$embeng" "$@" >"$folder/said" 2>&1
	[ $? -eq "$code" ] && grep -e "$pattern" "$folder/said" && return
	cat "$folder/said"
	return 1
}

# A machine with an engine is not given a soft device because the engine has no driver.
answers_for_no_other()
{
	answers 0 "^registers of pci:$address" regs magic &&
		answers "$1" 'name the device "soft"' info && answers "$1" "$2" info -d "pci:$address" &&
		answers 0 soft info -d soft
}

# A device that did not come back can be asked, and says what to do.
wedges()
{
	fault=/sys/kernel/debug/embeng_emu/0/faults/firmware_refuses
	echo 11 >"$fault/value" && echo 4294967295 >"$fault/count" || return 1
	answers 10 'did not come back from a reset' reset -d "$(node)" &&
		answers 0 'BOOT_STATE.*0x1 ' regs boot_state boot_error &&
		answers 10 "did not come back.*echo $address >/sys" info &&
		answers 10 'did not come back' reset -d "$(node)"
	set -- $?
	echo 0 >"$fault/count"
	return "$1"
}

# The log has what a reset was, who was hit, where the dump is and how it ended.
log_tells()
{
	for text in 'interface 0.1, [0-9]* MiB' 'the engine is reset (' \
		'is back after a reset of the engine, firmware [0-9]' \
		'of vm-accel_[a-z_]*\[[0-9]*\]: stalled, it is reset' \
		"a dump is in /sys/bus/pci/devices/$address/devcoredump/data"; do
		dmesg | grep -m 1 -e "$text" || { echo "missing: $text"; return 1; }
	done
}

node()
{
	echo "/dev/accel/$(ls "$function/accel")"
}

# Verbs that train or measure take a device as others do.
benches()
{
	"$embeng" bench -d "$(node)" --op fwd --op ring --scale 0.002 --runs 5 --batches 1 --json |
		python3 -c 'import json, sys
print(*{r["device"] for r in json.load(sys.stdin)["results"]})' | tee "$folder/devices"
	grep -q "^$(node)" "$folder/devices"
}

# A line for no command, and for each of three ways and three batches.
measured()
{
	"$build/tests/bench/accel" 64 | tee "$folder/measured"
	[ "$(grep -cE '^(empty ioctl|validated|mapped).* [0-9]+$' "$folder/measured")" -eq 10 ]
}

compares()
{
	seq 1 200 | awk '{ for (i = 0; i < 4; i++) printf "item%d ", ($1 * 7 + i * i * 3) % 53
		print "" }' >"$folder/baskets"
	"$embeng" train "$folder/baskets" -d "$(node)" --epochs 1 --min-count 1 --dim 8 --batch 64 \
		--save "$folder/saved" &&
		"$embeng" checkpoint compare "$folder/saved" -d "$(node)" --batches 4
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

for part in file memory region queue other_file submit wait; do
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
check 'what docs/abi describes is there' described
check 'and it describes all there is' undescribed
check 'embeng bench takes the device' benches
check 'what the driver costs can be measured' measured
check 'embeng checkpoint compare takes it' compares
modprobe vgem
work >"$folder/before"
program vm-accel_fence
check 'each counter of work has grown' worked
check 'and falls in no reset' outlives
alone program vm-cgroup || report no 'vm-cgroup runs with one processor'
program vm-accel_priority
check 'table memory is told' [ "$(cat "$function/table_memory_total")" -gt 0 ]
program vm-accel_fence_judged
program vm-accel_fence_ends
program vm-accel_teardown
program vm-accel_bars
program vm-accel_shares
program vm-accel_stuck_page
program vm-accel_rungs
program vm-accel_upload
program vm-accel_telemetry
program vm-accel_dead
program vm-accel_hang
check 'every device came back' came_back
program vm-accel_recovery
program vm-accel_bus
check 'resets are counted' is resets/wedged 0
module=$build/kmod-$(uname -r)/kmod/embeng.ko
check 'the driver is unbound' unbind
mv "$image" "$folder/image"
check 'without firmware it does not bind, and says so' binds_not \
	"cannot read firmware embeng/embeng.fw" 'firmware -2: /lib/firmware/embeng/embeng.fw cannot'
check 'commands answer for this device or none' answers_for_no_other 10 'embeng.fw cannot be read'
{
	printf x
	tail -c +2 "$folder/image"
} >"$image"
check 'nor with what is no image' binds_not \
	'firmware embeng/embeng.fw of .* bytes refused: error 3, byte 0: this is not a firmware image' \
	'firmware -74: refused: error 3, byte 0: this is not a firmware image'
check 'commands say so' answers 10 'did not take it: firmware -74' info -d "pci:$address"
check 'an image as large as any is made' largest
check 'it boots' bind
check 'and again when it was reset' boots_again
check 'and goes' unbind
mv "$folder/image" "$image"
check 'but with firmware again' bind
check 'which is told no more' [ -z "$(cat /sys/bus/pci/drivers/embeng/refusals)" ]
check 'a device that was given up is described' wedges
check 'and is unbound' unbind
check 'nothing was refused' answers_for_no_other 9 'is loaded, but not bound'
check 'and comes back' bind
check 'the log tells it all' log_tells
check 'the driver stays while its node is open' with_file stays
check 'the driver unloads' rmmod embeng
check 'and loads again, mapped queues forbidden' insmod "$module" mapped_queues=0
program vm-accel_forbidden
check 'and unloads' rmmod embeng
check 'and loads again' insmod "$module"
check 'the node is back' [ -d "$function/accel" ]
check 'no complaint in the log' quiet
finish

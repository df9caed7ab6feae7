#!/bin/sh
# SPDX-License-Identifier: MIT
# The emulator's tests, in a virtual machine. Speaks TAP.
# usage: tests/vm/run -- tests/vm/emulator.sh BUILD-FOLDER [PARAMETER...]
# The module's parameters say where BARs live when that is not the usual place.
set -u

build=$1
shift
place=$*
here=$(dirname "$0")
. "$here/tap.sh"
pci=/sys/bus/pci
function=0eb0:00:00.0

gone()
{
	[ ! -e "$pci/devices/$function" ]
}

there()
{
	[ -e "$pci/devices/$function" ]
}

# load PARAMETER...: the emulator afresh, without the driver
load()
{
	rmmod embeng 2>/dev/null
	rmmod embeng_emu 2>/dev/null
	insmod "$build/kmod-$(uname -r)/kmod/emulator/embeng_emu.ko" $place "$@"
}

# At the usual place.
refused()
{
	! (place='' && load "$@") 2>/dev/null
}

# says PATTERN: the kernel's newest messages have a line like it
says()
{
	dmesg | tail -n 20 | grep -e "$1"
}

functions()
{
	ls "$pci/devices" | grep -c '^0eb'
}

lspci_is()
{
	lspci -vvv -nn -s "$function" | sed 's/Memory at [0-9a-f]*/Memory at ADDRESS/' >"$folder/lspci"
	sed 1d "$here/function.lspci" | diff - "$folder/lspci"
}

removed_and_found()
{
	echo 1 >"$pci/devices/$function/remove" && gone || return 1
	echo 1 >"$pci/rescan" && there && lspci_is
}

# Nanoseconds that the emulator's threads have run, by their processes' clocks, which every kernel
# has: CPUCLOCK_SCHED is 2.
run_time()
{
	python3 -c '
import glob, time
print(sum(time.clock_gettime_ns(~int(comm.split("/")[2]) << 3 | 2)
          for comm in glob.glob("/proc/[0-9]*/comm")
          if open(comm).read().startswith("embeng")))'
}

# A busy host only ever adds to what is measured, so one window of twelve is enough.
idle()
{
	sleep 2
	for window in $(seq 12); do
		idle_window && return
	done
	return 1
}

idle_window()
{
	before=$(run_time)
	sleep 10
	echo "$before $(run_time)" | awk '{
		share = ($2 - $1) / 10e9 * 100
		printf "# idle: %.3f %% of a core\n", share
		exit $1 == 0 || share >= 1
	}'
}

make=/sys/kernel/config/embeng_emu
debug=/sys/kernel/debug/embeng_emu
driver=$build/kmod-$(uname -r)/kmod/embeng.ko

# Opens the driver's node and closes it.
use_driver()
{
	(exec 3<>/dev/accel/accel0)
}

bound()
{
	[ "$(basename "$(readlink "$pci/devices/$function/driver")")" = embeng ] &&
		[ -e /dev/accel/accel0 ]
}

unbind_and_bind()
{
	echo "$function" >"$pci/drivers/embeng/unbind" && [ ! -e /dev/accel/accel0 ] &&
		echo "$function" >"$pci/drivers/embeng/bind" && bound && use_driver
}

remove_under_driver()
{
	echo 1 >"$pci/devices/$function/remove" && gone && [ ! -e /dev/accel/accel0 ] &&
		echo 1 >"$pci/rescan" && bound && use_driver
}

reset_under_driver()
{
	echo 1 >"$pci/devices/$function/reset" && bound && use_driver
}

gone_for_good()
{
	echo 1 >"$debug/0/faults/config_all_ones/count" || return 1
	for try in $(seq 100); do
		od -An -tx1 -N4 "$pci/devices/$function/config" | grep -qx ' ff ff ff ff' && return
		sleep 0.1
	done
	return 1
}

# In the background: a write that hangs cannot be killed.
bus_error_ends()
{
	rm -f "$folder/ended"
	(echo "$1" >"$debug/0/bus_error"; : >"$folder/ended") &
	for try in $(seq 600); do
		[ ! -e "$folder/ended" ] || return 0
		sleep 0.1
	done
	return 1
}

unload_while_open()
{
	(exec 3<>/dev/accel/accel0 && rmmod embeng_emu) && gone && [ ! -e /dev/accel/accel0 ]
}

# train DEVICE NAME: a small training; its tables as bits
train()
{
	"$build/runtime/embeng" train "$folder/baskets" -d "$1" --epochs 1 --min-count 1 --dim 8 \
		--batch 64 --seed 5 --save "$folder/$2" >/dev/null &&
		cat "$folder/$2"/*.safetensors >"$folder/$2.bits"
}

# Both at once, each with the bits of the soft device.
two_train()
{
	seq 1 400 | awk '{ for (i = 0; i < 5; i++) printf "item%d ", ($1 * 7 + i * i * 3) % 97
		print "" }' >"$folder/baskets"
	train soft:cores=1 soft || return 1
	train pci:0eb0:00:00.0 first &
	train pci:0eb1:00:00.0 second || return 1
	wait $! && [ -s "$folder/soft.bits" ] && cmp "$folder/soft.bits" "$folder/first.bits" &&
		cmp "$folder/soft.bits" "$folder/second.bits"
}

nodes()
{
	ls -d "$pci"/drivers/embeng/0eb*/accel/accel* | wc -l
}

# set_word FOLDER WORD VALUE
set_word()
{
	echo "$3" >"$make/$1/$2"
}

power()
{
	echo "$2" >"$make/$1/power"
}

# Bus errors for the second device as long as the file stands, whether it is there or not.
strike_second()
{
	while [ -e "$folder/striking" ]; do
		for word in nonfatal fatal abandoned permanent; do
			echo $word >"$debug/1/bus_error"
		done
	done 2>/dev/null
}

# The device comes and goes for so many seconds meanwhile.
comes_and_goes()
{
	: >"$folder/striking"
	strike_second &
	end=$(($(date +%s) + $1))
	status=0 rounds=0
	while [ $status -eq 0 ] && [ "$(date +%s)" -lt $end ]; do
		power a 1 && power a 0 || status=1
		rounds=$((rounds + 1))
	done
	rm "$folder/striking"
	wait
	echo "$rounds rounds"
	return $status
}

vectors_are()
{
	second=$(cat "$make/$1/function")
	[ -e "$pci/devices/$second" ] && lspci -s "$second" -vv | grep "MSI-X: Enable. Count=$2"
}

[ -e /sys/module/embeng_emu ] || load
check 'an idle device costs less than 1 % of a core' idle
grep idle: "$folder/out"

check 'it loads' load
check 'lspci says what it should' lspci_is
check 'a removed function is found again, at its place' removed_and_found
program vm-function
program vm-registers
load
program vm-work
program vm-faults
load d3_keeps=1
program vm-d3_keeps
load devices=3 cores=1
check 'devices=3 makes three functions' [ "$(functions)" -eq 3 ]
load iommu=1
check 'it loads with an IOMMU' there
program vm-iommu_refused
for wrong in cores=0 cores=65 queues=1 queues=1025 vectors=0 vectors=33 memory=12Q memory=0 \
	memmap=16M memmap=0@0x20000000 memmap=1M@0x100001 memmap=4M@0x2000000 \
	memmap=8K@0xfebff000 donor=1af4 donor=1af4:1110:2:0x7fffffff donor=1af4:1110:9 \
	donor=ffff:ffff:0 donor=1af4:1110:2junk donor=1af4:1110:2:0x1000junk donor=1af4:1110:2:; do
	check "$wrong is refused" refused "$wrong"
	check "and said to be wrong" says "embeng_emu: $wrong "
done
check 'two places are refused' refused memmap=1M@0x20000000 donor=1af4:1110:2
check 'and said to be two' says 'embeng_emu: donor=1af4:1110:2 and memmap=1M@0x20000000 exclude'
check 'it loads after refusals' load

check 'a folder is a device that is off' mkdir "$make/a"
check 'of one kind with the others' grep -qx 64 "$make/a/queues"
check 'its vectors are set' set_word a vectors 3
! set_word a cores 0 2>"$folder/out"
check 'not to what cannot be' [ $? -eq 0 ]
check 'it is switched on' power a 1
check 'with these vectors' vectors_are a 3
check 'there are two functions' [ "$(functions)" -eq 2 ]
! set_word a cores 4 2>"$folder/out"
check 'what is on does not change' [ $? -eq 0 ]
! rmmod embeng_emu 2>"$folder/out"
check 'a folder keeps the module' [ $? -eq 0 ]
check 'it is switched off' power a 0
check 'and gone' [ "$(functions)" -eq 1 ]
power a 1
check 'rmdir takes the device away' rmdir "$make/a"
check 'too' [ "$(functions)" -eq 1 ]
mkdir "$make/a"
check 'a device comes and goes under bus errors' comes_and_goes 3
check 'it comes and goes with a driver' insmod "$driver"
check 'under bus errors' comes_and_goes 6
check 'and the first one is as it was' use_driver
rmdir "$make/a"

for mode in iommu=0 iommu=1; do
	load $mode
	check "$mode: the driver loads" insmod "$driver"
	check "$mode: it binds" bound
	program vm-interrupts
	check "$mode: unbind and bind" unbind_and_bind
	check "$mode: remove and rescan" remove_under_driver
	check "$mode: function-level reset" reset_under_driver
	check "$mode: no memory was unmapped under the device" \
		grep -qx 0 /sys/kernel/debug/embeng_emu/0/unmapped_in_use
	check "$mode: rmmod with an open file" unload_while_open
done
for word in nonfatal fatal abandoned permanent; do
	load
	check "gone for good, $word: the driver loads" insmod "$driver" answer_timeout_ms=3000
	check "gone for good, $word: it answers all ones" gone_for_good
	check "gone for good, $word: the bus error ends" bus_error_ends "$word"
	check "gone for good, $word: the driver has given it up" \
		grep -qx disconnected "$debug/0/bus_error"
done
load vectors=1
check 'vectors=1: the driver loads' insmod "$driver"
check 'vectors=1: it binds' bound
program vm-accel_wait
program vm-accel_submit
program vm-accel_rungs
load devices=2 memory=64M
check 'two devices: the driver loads' insmod "$driver"
check 'two devices: each has a node' [ "$(nodes)" -eq 2 ]
check 'two devices: both train at once, with the bits of soft' two_train
program vm-two_devices
load
check 'rmmod removes the function' sh -c "rmmod embeng_emu && [ ! -e $pci/devices/$function ]"
check 'no address stays claimed' sh -c '! grep embeng /proc/iomem'

finish

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

refused()
{
	! load "$@" 2>/dev/null
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
	diff "$here/function.lspci" "$folder/lspci"
}

removed_and_found()
{
	echo 1 >"$pci/devices/$function/remove" && gone || return 1
	echo 1 >"$pci/rescan" && there && lspci_is
}

# Nanoseconds that the emulator's threads have run.
run_time()
{
	for task in /proc/[0-9]*; do
		case $(cat "$task/comm" 2>/dev/null) in
		embeng*) cut -d' ' -f1 "$task/schedstat" ;;
		esac
	done | awk '{ sum += $1 } END { printf "%.0f\n", sum }'
}

idle()
{
	sleep 2
	before=$(run_time)
	sleep 30
	echo "$before $(run_time)" | awk '{
		share = ($2 - $1) / 30e9 * 100
		printf "# idle: %.3f %% of a core\n", share
		exit share >= 1
	}'
}

check 'an idle device costs less than 1 % of a core' idle
grep idle: "$folder/out"

check 'it loads' load
check 'lspci says what it should' lspci_is
check 'a removed function is found again, at its place' removed_and_found
program vm-function
load devices=3 cores=1
check 'devices=3 makes three functions' [ "$(functions)" -eq 3 ]
load iommu=1
check 'it loads with an IOMMU' there
program vm-stranger
for wrong in cores=0 cores=65 queues=1 queues=1025 vectors=0 vectors=33 memory=12Q memory=0 \
	memmap=16M memmap=0@0x20000000 memmap=1M@0x100001 memmap=4M@0x2000000 \
	donor=1af4 donor=1af4:1110:2:0x7fffffff donor=1af4:1110:9 donor=ffff:ffff:0; do
	check "$wrong is refused" refused "$wrong"
	check "and said to be wrong" says "embeng_emu: ${wrong%%=*}="
done
check 'it loads after refusals' load
check 'rmmod removes the function' sh -c "rmmod embeng_emu && [ ! -e $pci/devices/$function ]"
check 'no address stays claimed' sh -c '! grep embeng /proc/iomem'

finish

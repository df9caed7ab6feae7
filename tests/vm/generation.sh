#!/bin/sh
# SPDX-License-Identifier: MIT
# Drivers and devices of two generations, in a virtual machine: each driver with each device, and each
# device with each firmware. Speaks TAP.
# usage: tests/vm/with_generation tests/vm/run -- tests/vm/generation.sh BUILD-FOLDER [PARAMETER...]
set -u

build=$1
shift
place=$*
source=$(cd "$(dirname "$0")/../.." && pwd)
. "$source/tests/vm/tap.sh"
first=$build second=$build/generation/build
vector=$source/tests/vectors/train/hot_row_sgd.json

# modules FOLDER: where the kernel modules of a build are
modules()
{
	echo "$1/kmod-$(uname -r)/kmod"
}

# swap DRIVER DEVICE FIRMWARE ID: loads modules and firmware of these builds
swap()
{
	rmmod embeng
	rmmod embeng_emu
	cp "$3/firmware-loader/embeng.fw" /lib/firmware/embeng/embeng.fw &&
		insmod "$(modules "$2")/emulator/embeng_emu.ko" $place ${4:+device=$4} &&
		insmod "$(modules "$1")/embeng.ko"
}

function_is()
{
	[ "$(cat /sys/bus/pci/devices/0eb0:00:00.0/device)" = "$1" ]
}

bound()
{
	ls /dev/accel/accel*
}

unbound()
{
	! ls /dev/accel/accel* && [ ! -e /sys/bus/pci/devices/0eb0:00:00.0/driver ]
}

# says COMMAND PATTERN...: a command of a build, and what its output has to have
says()
{
	eval "$1" >"$folder/said" 2>&1
	cat "$folder/said"
	shift
	for pattern; do
		grep -qE -- "$pattern" "$folder/said" || { echo "no line has '$pattern'"; return 1; }
	done
}

lacks()
{
	eval "$1" >"$folder/said" 2>&1 || { cat "$folder/said"; return 1; }
	cat "$folder/said"
	! grep -E -- "$2" "$folder/said"
}

trains()
{
	"$1/runtime/embeng" conform -d "$(ls /dev/accel/accel*)" "$vector"
}

check 'the second device, the first driver: loads' swap "$first" "$second" "$first" 0x0002
check 'the function has the new id' function_is 0x0002
check 'the first driver leaves it alone' unbound
check 'an id that root adds is taken' sh -c 'echo 0eb0 0002 >/sys/bus/pci/drivers/embeng/new_id'
check 'the function is bound now' bound
check 'its interface is newer' says "$first/runtime/embeng info" '^interface +0\.2'
check 'the first driver and library train on it' trains "$first"

check 'the second device, the second driver: loads' swap "$second" "$second" "$second" 0x0002
check 'the second driver binds to it' bound
check 'the library lists it by its id' says "$second/runtime/embeng list" 'Device 0eb0:0002'
check 'the new register has its value' says "$second/runtime/embeng regs" 'GENERATION +(0x0*)?2( |$)'
check 'the new capability is there' says "$second/runtime/embeng info" \
	'^capabilities.*second generation' '^interface +0\.2'
check 'it trains' trains "$second"

check 'the second device, the first firmware: loads' swap "$second" "$second" "$first" 0x0002
check 'it boots an image of before' bound
check 'which does not switch the capability on' lacks "$second/runtime/embeng info" 'second generation'
check 'it trains with that' trains "$second"

check 'the first device, the second driver: loads' swap "$second" "$first" "$first" ''
check 'the function has the first id' function_is 0x0001
check 'the second driver binds to it, too' bound
check 'the new register reads 0' says "$second/runtime/embeng regs" 'GENERATION +(0x)?0+( |$)'
check 'the new capability is not there' lacks "$second/runtime/embeng info" 'second generation'
check 'the second driver and library train on it' trains "$second"

check 'the first device, the second firmware: loads' swap "$second" "$first" "$second" ''
check 'it refuses the image of the newer interface' unbound
check 'and says why' says 'cat /sys/bus/pci/drivers/embeng/refusals' 'another version of the interface'
check 'the kernel has nothing to complain of' sh -c "! dmesg | grep -E 'BUG|WARNING|Oops|Call Trace'"
finish

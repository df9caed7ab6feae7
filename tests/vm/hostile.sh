#!/bin/sh
# SPDX-License-Identifier: MIT
# The driver among programs that mean no good, in a virtual machine. Speaks TAP.
# usage: tests/vm/run --kernel debug -- tests/vm/hostile.sh BUILD-FOLDER [SECONDS [SEED]]
#        tests/vm/run -- tests/vm/hostile.sh BUILD-FOLDER quick [SEED]
# SECONDS is the fuzzer's time (300). quick: some seconds of what needs no instrumented kernel.
set -u

build=$1
seconds=${2:-300}
seed=${3:-$(date +%s)}
. "$(dirname "$0")/tap.sh"
tests=$(dirname "$0")/../../kmod/tests
modules=$build/kmod-$(uname -r)/kmod
function=/sys/bus/pci/devices/0eb0:00:00.0
debug=/sys/kernel/debug/accel/0eb0:00:00.0
emulator=/sys/kernel/debug/embeng_emu/0

# Behind an IOMMU every address that was not mapped shows; with one there are no bounce buffers.
load()
{
	rmmod embeng 2>/dev/null
	rmmod embeng_emu 2>/dev/null
	iommu=1
	! grep -q swiotlb=force /proc/cmdline || iommu=0
	insmod "$modules/emulator/embeng_emu.ko" iommu=$iommu && insmod "$modules/embeng.ko"
}

empty()
{
	cat "$1"
	[ -z "$(cat "$1")" ]
}

# is FILE TEXT
is()
{
	echo "$1: $(cat "$1")"
	[ "$(cat "$1")" = "$2" ]
}

quiet()
{
	! dmesg | grep -E -A 20 'BUG|WARNING|Oops|Call Trace|embeng.*(refuses to|does not come|unmapped)'
}

# Nothing is left of what was done, though nobody cleaned up.
clean()
{
	check "$1: no context is left" empty "$debug/contexts"
	check "$1: no table memory is in use" is "$function/table_memory_used" 0
	check "$1: the device is not given up" is "$function/resets/wedged" 0
	check "$1: the device reached nothing that was unmapped" is "$emulator/unmapped_in_use" 0
}

# hostile NAME SECONDS: a program, then what it left
hostile()
{
	program "vm-hostile_$1" --seed "$seed" --seconds "$2"
	clean "$1"
}

# Results of KUnit suites, in the kernel's log; each file of theirs has one.
suites()
{
	before=$(dmesg | wc -l)
	insmod "$modules/tests/embeng_test.ko" || return 1
	rmmod embeng_test
	dmesg | tail -n +$((before + 1)) | sed 's/^\[[^]]*\] //' >"$folder/ktap"
	grep -E '^(not )?ok ' "$folder/ktap" | sed 's/^\(.*ok\) [0-9]*/\1/' >"$folder/suites"
	cat "$folder/ktap"
	! grep -q '^not ok' "$folder/suites" &&
		[ "$(grep -c '^ok embeng-' "$folder/suites")" -eq "$(ls "$tests"/*_test.c | wc -l)" ]
}

echo "# seed $seed"
check 'the modules load' load
if [ "$seconds" = quick ]; then
	hostile fuzz 6
	hostile writers 6
else
	check 'KUnit suites' suites
	grep -E '^ *ok [0-9]+ [a-z_]+$|^# Totals' "$folder/ktap" | sed 's/^ */# /'
	hostile fuzz "$seconds"
	echo "# of $(objdump -dr "$modules/embeng.ko" | grep -c 'R_.*__sanitizer_cov_trace_pc') places"
	hostile writers "$((seconds / 5))"
	hostile failing 0
fi
check 'the driver unloads' rmmod embeng
check 'no page stays mapped' is "$emulator/mapped_pages" 0
check 'no complaint in the log' quiet
finish

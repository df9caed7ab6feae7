#!/bin/sh
# SPDX-License-Identifier: MIT
# embeng validate on a device behind the driver, in a virtual machine: a device in order passes, and
# one that is broken in one way fails the suite that is meant to find it. Speaks TAP.
# usage: tests/vm/run -- tests/vm/validate.sh BUILD-FOLDER [PARAMETER...]
set -u

build=$1
shift
place=$*
source=$(cd "$(dirname "$0")/../.." && pwd)
. "$source/tests/vm/tap.sh"
address=0eb0:00:00.0
function=/sys/bus/pci/devices/$address
emulator=/sys/kernel/debug/embeng_emu/0
parameters=/sys/module/embeng/parameters
modules=$build/kmod-$(uname -r)/kmod
embeng=$build/runtime/embeng
forever=4294967295

# Each fault of the emulator: its settings, the suite and check that find it, options of the run, and
# the suites that are then not run. Settings are WORD=VALUE with commas; count is for ever without one.
# A fault that strikes any queue, the driver's own too, is aimed at the first one of a program.
# There is no fault that no suite finds.
faults='
drop_completion    target=1                    device commands    -            interrupt,dma,memory,fences,numeric
delay_completion   target=1,value=3000000000   device commands    -            interrupt,dma,memory,fences,numeric
corrupt_completion target=1                    device commands    -            interrupt,dma,memory,fences,numeric
stall_queue        target=1                    device commands    -            interrupt,dma,memory,fences,numeric
refuse_mapping     -                           device commands    -            interrupt,dma,memory,fences,numeric
heartbeat_stops    -                           device heartbeat   -            interrupt,dma,memory,fences,numeric
engine_dies        count=1                     device heartbeat   -            interrupt,dma,memory,fences,numeric
refuse_region      -                           dma regions        -            memory,fences,numeric
dma_error          -                           dma transfers      -            memory,fences,numeric
ecc_correctable    -                           memory errors      -            numeric
ecc_uncorrectable  -                           memory errors      -            numeric
lose_interrupt     target=1                    interrupt vectors  -            dma,memory,fences,numeric
repeat_interrupt   target=1,value=5            interrupt vectors  -            dma,memory,fences,numeric
firmware_refuses   -                           reset engine       --allow-reset -
firmware_slow      value=5000000000            reset engine       --allow-reset -
firmware_dies      count=1                     reset engine       --allow-reset -
config_all_ones    count=1                     link present       -            device,interrupt,dma,memory,fences,numeric
link_down          count=1,value=15000000000   link present       -            device,interrupt,dma,memory,fences,numeric
'

node()
{
	echo "/dev/accel/$(ls "$function/accel")"
}

# validate ARGUMENT...: the document is in $folder/document
validate()
{
	"$embeng" validate -d "$(node)" --json --seed 17 --mib 1 "$@" >"$folder/document" 2>"$folder/err"
}

# holds EXPRESSION: true of the document d, of suites by name s and of their checks c[suite, check]
holds()
{
	python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
s = {x["name"]: x for x in d["suites"]}
c = {(x["name"], y["name"]): y for x in d["suites"] for y in x["checks"]}
for (suite, name), y in c.items():
    if y["result"] == "failed":
        print(suite, name, "failed:", y["message"])
for name, x in s.items():
    if x["result"] == "not run":
        print(name, "not run:", x["checks"][0]["message"])
sys.exit(not eval("(" + sys.argv[2] + ")"))' "$folder/document" "$1"
}

# exits CODE ARGUMENT...: a run ends with that code
exits()
{
	code=$1
	shift
	validate "$@"
	got=$?
	[ $got -eq "$code" ] || { echo "exit $got"; cat "$folder/err" "$folder/document"; false; }
}

# healthy ARGUMENT...: everything passes or is skipped
healthy()
{
	exits 0 "$@"
	set -- $?
	python3 -c 'import json, sys
for x in json.load(open(sys.argv[1]))["suites"]:
    print(x["name"], x["result"], round(sum(y["ms"] for y in x["checks"])), "ms")
    for y in x["checks"]:
        print("  ", y["name"], y["result"], round(y["ms"]), "ms", y["message"], y.get("measured"))' \
		"$folder/document"
	holds 'd["failed"] == 0 == d["not_run"]' && return "$1"
}

# A device that was broken for good is made anew, with its driver.
renew()
{
	rmmod embeng
	rmmod embeng_emu
	# shellcheck disable=SC2086
	insmod "$modules/emulator/embeng_emu.ko" $place && insmod "$modules/embeng.ko" &&
		echo 2000 >"$parameters/admin_timeout_ms" &&
		echo 8000 >"$parameters/answer_timeout_ms" && ls "$function/accel" >/dev/null
}

arm()
{
	for word in $(echo "$2" | tr , ' '); do
		[ "$word" = - ] || echo "${word#*=}" >"$emulator/faults/$1/${word%%=*}" || return 1
	done
	case $2 in
	*count=*) ;;
	*) echo $forever >"$emulator/faults/$1/count" ;;
	esac
}

# finds FAULT SETTINGS SUITE CHECK OPTIONS SUITES: a run on a device with that fault
finds()
{
	[ "$5" = - ] && suites=quick || suites="device reset $5"
	renew && arm "$1" "$2" || return 1
	# shellcheck disable=SC2086
	exits 1 $suites
	set -- "$@" $?
	echo 0 >"$emulator/faults/$1/count"
	echo "$1 struck $(cat "$emulator/faults/$1/hits") times"
	holds "c['$3', '$4']['result'] == 'failed' and
		[n for n in s if s[n]['result'] == 'failed'] == ['$3'] and
		[n for n in '$6'.split(',') if n != '-' and s[n]['result'] != 'not run'] == []" &&
		return "$7"
}

# A failure has its message, and suites behind it say why they were not run.
tap_tells()
{
	echo $forever >"$emulator/faults/dma_error/count"
	"$embeng" validate -d "$(node)" --tap device dma fences >"$folder/tap"
	set -- $?
	echo 0 >"$emulator/faults/dma_error/count"
	cat "$folder/tap"
	[ "$1" -eq 1 ] && grep -q '^not ok 5 - dma: transfers$' "$folder/tap" &&
		grep -q '    - message: "command 0 that moves no rows failed: ' "$folder/tap" &&
		grep -q '^ok 13 - fences: order # SKIP not run: suite dma failed$' "$folder/tap" &&
		grep -qx 1..15 "$folder/tap"
}

# Every fault that the emulator has is in the table above.
complete()
{
	ls "$emulator/faults" | sort >"$folder/there"
	echo "$faults" | awk 'NF { print $1 }' | sort >"$folder/listed"
	diff "$folder/there" "$folder/listed"
}

# slow: so much time for each row of a lookup
slow()
{
	echo 50000 >"$emulator/speed/ns_per_row"
	exits 1 throughput
	set -- $?
	echo 0 >"$emulator/speed/ns_per_row"
	holds "c['throughput', 'rows']['result'] == 'failed' and
		0 < c['throughput', 'rows']['measured'] < c['throughput', 'rows']['limit'] and
		'the device is slow' in c['throughput', 'rows']['message']" && return "$1"
}

# hot: the emulator's surroundings make it so
hot()
{
	echo 94000 >"$emulator/thermal/ambient_mc"
	echo 1 >"$emulator/thermal/time_ms"
	sleep 1
	exits 5 device
	set -- $?
	grep -q 'degrees Celsius' "$folder/document" || set -- 1
	echo 30000 >"$emulator/thermal/ambient_mc"
	sleep 1
	return "$1"
}

# busy: another program has tables on the device
busy()
{
	"$embeng" bench -d "$(node)" --op fwd --scale 0.002 --runs 101 --batches 8 >/dev/null 2>&1 &
	other=$!
	for try in $(seq 100); do
		[ "$(cat "$function/table_memory_used")" -gt 0 ] && break
		sleep 0.1
	done
	exits 5 device && grep -q 'embeng (process' "$folder/document" && exits 0 device --force
	set -- $?
	kill $other
	wait $other
	return "$1"
}

# The device is as it was: nothing is left of what validation made there.
left_nothing()
{
	[ "$(cat "$function/table_memory_used")" -eq 0 ] &&
		! grep context "/sys/kernel/debug/accel/$address/contexts"
}

asked='suite reset takes the tables'
refuses_reset()
{
	"$embeng" validate -d "$(node)" reset 2>"$folder/err"
	[ $? -eq 2 ] && grep "$asked" "$folder/err"
}

check 'a device in order passes quick' healthy quick --mib 4
sed 's/^/# /' "$folder/out"
check 'and full, with resets' healthy full --allow-reset
sed 's/^/# /' "$folder/out"
check 'and leaves nothing behind' left_nothing
check 'one reset of each rung was made' holds \
	'[c["reset", r]["result"] for r in ("queue", "engine", "function")] == 3 * ["passed"]'
check 'resets are not made unasked' refuses_reset
check 'a hot device is refused' hot
check 'and one in use, unless forced' busy
check 'a slow device is named, with its share of the limit' slow
check 'TAP tells of a failure and of what it kept from running' tap_tells
check 'each fault of the emulator has its row' complete
echo "$faults" | awk 'NF' >"$folder/rows"
while read -r fault settings suite name options others; do
	check "$fault: suite $suite fails at $name" finds "$fault" "$settings" "$suite" "$name" "$options" "$others"
	sed 's/^/# /' "$folder/out"
done <"$folder/rows"
check 'and the device is in order again' renew
check 'which validation agrees with' healthy quick

finish

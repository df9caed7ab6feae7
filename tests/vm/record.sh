#!/bin/sh
# SPDX-License-Identifier: MIT
# Recordings of an emulated device, with faults, resets and several programs at a time: each is run
# again, and everything is the same. Speaks TAP.
# usage: tests/vm/run -- tests/vm/record.sh BUILD-FOLDER
set -u

build=$1
. "$(dirname "$0")/tap.sh"
top=$(cd "$(dirname "$0")/../.." && pwd)
embeng=$build/runtime/embeng
device=/sys/kernel/config/embeng_emu/recorded
for i in $(seq 40); do
	echo "w$((i % 6)) w$(((i + 1) % 6)) w$(((i + 2) % 6))"
done >"$folder/baskets.txt"

# power_on BYTES: a device with a recording of so many bytes
power_on()
{
	mkdir "$device" && echo "$1" >"$device/record" && echo 1 >"$device/power" || return 1
	address=$(cat "$device/function") subject=pci:$address
	for _ in $(seq 50); do
		! "$embeng" info -d "$subject" >/dev/null 2>&1 || break
		sleep 0.2
	done
	recording=$(ls /sys/kernel/debug/embeng_emu/*/recording | tail -n 1) && [ -r "$recording" ]
}

train()
{
	"$embeng" train "$folder/baskets.txt" -d "$subject" --min-count 1 --epochs 1 --dim 4
}

# fails PATTERN COMMAND...: the command fails and says such a thing
fails()
{
	pattern=$1
	shift
	if "$@" >"$folder/said" 2>&1; then
		echo "it succeeds"
		return 1
	fi
	grep -e "$pattern" "$folder/said" || { cat "$folder/said"; false; }
}

# keeps NAME: a copy of the recording so far
keeps()
{
	cat "$recording" >"$folder/$1.ebrc" && [ -s "$folder/$1.ebrc" ]
}

# same NAME EXPRESSION [OPTION...]: the copy runs again with the same results, and of the document d
# the expression holds
same()
{
	file=$folder/$1.ebrc wanted=$2
	shift 2
	"$embeng" replay "$file" --json "$@" >"$folder/document" || { cat "$folder/document"; return 1; }
	python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
print(d)
sys.exit(not (d["verdict"] == "same" and eval(sys.argv[2])))' "$folder/document" "$wanted"
}

set_fault()
{
	"$embeng" fault set "$@" -d "$subject"
}

check 'a device that records' power_on 64M
check 'a training' train
check 'its recording' keeps train
check 'runs again' same train 'd["commands"] == d["completions"] > 30 and d["outputs"] > 25'
check 'on other cores' same train 'd["cores"] == 5 and d["commands"] > 30' --cores 5
check 'is shown in words' sh -c '"$0" decode "$1" | grep "LOOKUP, step 1, command 0"' "$embeng" \
	"$folder/train.ebrc"

check 'a command is to fail' set_fault dma_error 1
check 'the training fails' fails 'an error in its memory or in a transfer' train
check 'its recording, too' keeps failed
check 'the fault strikes again' same failed 'd["faults"] >= 1 and d["injected_faults"] >= 1'
check 'a region is to be refused' set_fault refuse_region 1
check 'the training fails with it' fails 'has the memory key' train
check 'memory errors are to be corrected' set_fault ecc_correctable 3
check 'the training goes on' train
check 'a completion is to be lost' set_fault drop_completion 1
train >"$folder/out" 2>&1
check 'a completion is to come late' set_fault delay_completion 1 --value 1000000
check 'the training waits for it' train
check 'a reset' "$embeng" reset -d "$subject"
check 'and a training after it' train
check 'a reset of the function' "$embeng" reset -d "$subject" --function
(train >"$folder/first" 2>&1; echo $? >"$folder/first.status") &
train >"$folder/second" 2>&1
echo $? >"$folder/second.status"
wait
check 'two programs at a time' test "$(cat "$folder/first.status" "$folder/second.status")" = "0
0"
check 'the recording of all that' keeps all
check 'runs again with its faults' same all '(d["faults"] >= 7 and d["injected_faults"] >= 6 and
	d["commands"] > 200 and d["problem"] is None)'
check 'on one core with other kernels' same all 'd["commands"] > 200' --cores 1 --variant portable

check 'the device goes' rmdir "$device"
check 'a device with a small recording' power_on 40000
check 'goes on when it is full' train
check 'which the kernel says' sh -c 'dmesg | grep "the recording ends here: it is as long as"'
check 'what there is' keeps small
check 'runs again' same small 'd["entries"] > 4'
check 'the second device goes' rmdir "$device"
finish

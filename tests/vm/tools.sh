#!/bin/sh
# SPDX-License-Identifier: MIT
# embeng regs, fault, trace and reset on the emulator, in a virtual machine. Speaks TAP.
# usage: tests/vm/run -- tests/vm/tools.sh BUILD-FOLDER
set -u

build=$1
source=$(cd "$(dirname "$0")/../.." && pwd)
. "$source/tests/vm/tap.sh"
address=0eb0:00:00.0
function=/sys/bus/pci/devices/$address
embeng=$build/runtime/embeng

# asks CODE ARGUMENT...: the document is in $folder/said, and keeps to its schema
asks()
{
	code=$1
	shift
	"$embeng" "$@" --json >"$folder/said.json"
	status=$?
	[ $status -eq "$code" ] || { echo "exit status $status"; cat "$folder/said.json"; return 1; }
	/usr/bin/python3 "$source/tests/cli/schemas.py" "$folder/said.json"
}

# holds EXPRESSION: of the document d
holds()
{
	/usr/bin/python3 -c 'import json, os, sys
d = json.load(open(sys.argv[1]))
sys.exit(not eval(sys.argv[2]))' "$folder/said.json" "$1" || { cat "$folder/said.json"; false; }
}

node=/dev/accel/$(ls "$function/accel")

# The emulator's own folders are what is listed, each with words.
lists_all()
{
	asks 0 fault list &&
		holds 'd["address"] == "0eb0:00:00.0"' &&
		holds 'sorted(f["name"] for f in d["faults"]) == sorted(os.listdir("/sys/kernel/debug/embeng_emu/0/faults"))' &&
		holds 'len(d["faults"]) == 18 and all(len(f["about"]) > 10 for f in d["faults"])' &&
		holds 'all(f["value"] == f["value_default"] for f in d["faults"])'
}

strikes()
{
	asks 0 regs -d "pci:$address" --diff "$folder/before.json" || return 1
	holds '"COUNT_ECC_CORRECTABLE" not in [c["register"] for c in d["changes"]]' || return 1
	asks 0 fault set ecc_correctable 2 -d "$node" && holds 'd["fault"]["count"] == 2' || return 1
	"$build/tests/vm/vm-accel_submit" >/dev/null
	asks 0 fault list ecc_correctable && holds 'd["faults"][0]["hits"] == 2 and not d["faults"][0]["count"]'
}

counted()
{
	asks 0 regs --diff "$folder/before.json" &&
		holds '[c["after"] - c["before"] for c in d["changes"] if c["register"] == "COUNT_ECC_CORRECTABLE"] == [2]' &&
		holds '"COUNT_COMMANDS" in [c["register"] for c in d["changes"]]'
}

cleared()
{
	asks 0 fault set firmware_slow forever --value 5 --per-mille 1 && asks 0 fault clear &&
		holds 'd["cleared"] == ["firmware_slow"]' && asks 0 fault list firmware_slow &&
		holds '(d["faults"][0]["count"], d["faults"][0]["value"], d["faults"][0]["per_mille"]) == (0, 1000000000, 1000)'
}

# A user who is no administrator.
refused()
{
	for call in 'fault list' 'fault set dma_error' 'trace start' 'trace show'; do
		setpriv --reuid=65534 --regid=65534 --clear-groups "$embeng" $call
		[ $? -eq 4 ] || return 1
	done
}

# train DEVICE [COMMAND...]: the command runs the training
train()
{
	device=$1
	shift
	seq 1 100 | awk '{ for (i = 0; i < 4; i++) printf "item%d ", ($1 * 7 + i * i * 3) % 31
		print "" }' >"$folder/baskets"
	"$@" "$embeng" train "$folder/baskets" -d "$device" --epochs 1 --min-count 1 --dim 8 \
		--batch 64 --max-steps 6
}

# traced ARGUMENT...: of trace show. Each step has lookups and an update, in this order, and the stages
# add up. A drain behind the last one may have its number.
traced()
{
	asks 0 trace show "$@" --chrome "$folder/steps.chrome" || return 1
	holds 'd["lost"] == d["unreadable"] == d["strange"] == 0' &&
		holds '{s["step"] for s in d["steps"]} >= {1, 2, 3, 4, 5, 6}' &&
		holds 'all([c["command"] for c in s["commands"] if c["command"] != "DRAIN"] == ["LOOKUP", "UPDATE"] for s in d["steps"] if s["step"] in range(1, 7))' &&
		holds 'all(c["status"] == "OK" for s in d["steps"] for c in s["commands"] if s["step"])' &&
		holds 'all(c["completed_ns"] - c["submitted_ns"] == sum(v or 0 for v in c["stage_ns"].values()) for s in d["steps"] for c in s["commands"])' &&
		holds 'all((c["stage_ns"]["accept"] is None) == (c["command"] != "LOOKUP") for s in d["steps"] for c in s["commands"])' &&
		/usr/bin/python3 -c 'import json, sys
events = json.load(open(sys.argv[1]))["traceEvents"]
assert sum(e["ph"] == "b" for e in events) == sum(e["ph"] == "e" for e in events) > 40' "$folder/steps.chrome"
}

# The library records a program that shares its queues with the device, which no driver sees.
runs_traced()
{
	train "$node,path=mapped" "$embeng" trace run -o "$folder/run.trace" -- >"$folder/ran" &&
		grep -q '^context 1, step 6: ' "$folder/ran" && traced "$folder/run.trace"
}

waits_for_a_fence()
{
	alone "$embeng" trace start && "$build/tests/vm/vm-accel_fence" >/dev/null
	alone "$embeng" trace stop && asks 0 trace show &&
		holds 'max(c["stage_ns"]["wait"] for s in d["steps"] for c in s["commands"]) > 10**6'
}

check 'a snapshot is saved' "$embeng" regs --save "$folder/before.json"
check 'and keeps to its schema' /usr/bin/python3 "$source/tests/cli/schemas.py" "$folder/before.json"
check 'all faults are listed' lists_all
check 'a fault strikes' strikes
check 'and the registers tell' counted
check 'faults are cleared' cleared
check 'only an administrator may' refused
check 'recording begins' alone "$embeng" trace start
check 'a program trains' train "$node,path=validated"
check 'recording ends' alone "$embeng" trace stop
check 'every step is there, with times' traced
check 'a program is run and traced that bypasses the driver' runs_traced
modprobe vgem
check 'a command that waits for a fence waits in the ring' waits_for_a_fence
check 'reset' asks 0 reset -d "$node"
finish

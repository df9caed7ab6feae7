#!/bin/sh
# SPDX-License-Identifier: MIT
# embeng fault, on folders that are made here as the emulator makes them. tests/vm/tools.sh does the
# same on the emulator. Speaks TAP.
# usage: fault.sh EMBENG-COMMAND
set -u

. "$(dirname "$0")/checks.sh"

case $embeng in /*) ;; *) embeng=$PWD/$embeng ;; esac
cd "$folder" || exit 1

# fault NUMBER NAME TARGET UNIT DEFAULT WORDS: the files of a fault
fault()
{
	at=tree/sys/kernel/debug/embeng_emu/$1/faults/$2
	mkdir -p "$at"
	echo "$3" >"$at/target_is"
	echo "$4" >"$at/value_is"
	echo "$5" | tee "$at/value" >"$at/value_default"
	echo "$6" >"$at/about"
	echo 1000 >"$at/per_mille"
	echo 4294967295 >"$at/target"
	for file in count seed tries hits; do
		echo 0 >"$at/$file"
	done
}

# device NUMBER DOMAIN: an emulated device
device()
{
	mkdir -p "tree/sys/devices/platform/embeng_emu.$1/pci$2:00" tree/sys/module/embeng_emu
	fault "$1" drop_completion queue '' 1 'a completion is not written'
	fault "$1" firmware_refuses device 'boot error' 11 'a boot fails with this error'
	fault "$1" link_down device nanoseconds 1000000000 'the device is absent'
}

set_to() { cat "tree/sys/kernel/debug/embeng_emu/0/faults/$1/$2"; }

expect 'no folder' 2 fault list --root nowhere
mkdir tree
expect 'an emulator that is not loaded' 6 fault list --root tree
says err 'is said with the remedy' 'modprobe embeng_emu'
mkdir -p tree/sys/module/embeng_emu
expect 'no debugfs' 3 fault list --root tree
says err 'is said, too' 'mount -t debugfs'
mkdir -p tree/sys/kernel/debug/embeng_emu
expect 'no device' 6 fault list --root tree
says err 'is made in configfs' 'mkdir /sys/kernel/config/embeng_emu/NAME'
expect 'a soft device' 3 fault list -d soft --root tree
says err 'has no faults' 'in software and has no faults'

device 0 0eb0
expect 'list' 0 fault list --root tree
says out 'a fault in words' '^drop_completion  *off  *a completion is not written$'
says out 'its target' '^  *strikes a queue$'
says out 'a boot error by name' 'boot error 11 (SELF_TEST)$'
expect 'list, for scripts' 0 fault list --root tree --json
document 'all of them' '[(f["name"], f["count"], f["target"], f["value_is"], f["value_default"]) for f in d["faults"]] == [("drop_completion", 0, None, None, 1), ("firmware_refuses", 0, None, "boot error", 11), ("link_down", 0, None, "nanoseconds", 1000000000)] and d["address"] == "0eb0:00:00.0" and d["number"] == 0'
expect 'one of them' 0 fault list link_down --root tree --json
document 'alone' '[f["name"] for f in d["faults"]] == ["link_down"]'

expect 'set' 0 fault set drop_completion --target 3 --root tree
says out 'says what was set' '^drop_completion  *1 more '
[ "$(set_to drop_completion count) $(set_to drop_completion target)" = '1 3' ] &&
	report ok 'and it is' || report no 'and it is'
expect 'set again' 0 fault set drop_completion forever --per-mille 5 --seed 0x11 --root tree --json
document 'for ever' 'd["fault"]["forever"] and d["fault"]["per_mille"] == 5 and d["fault"]["seed"] == 17 and d["fault"]["target"] is None'
[ "$(set_to drop_completion count) $(set_to drop_completion target)" = '4294967295 4294967295' ] &&
	report ok 'and the target is any again' || report no 'and the target is any again'
expect 'a boot error by name' 0 fault set firmware_refuses 2 --value hash --root tree
[ "$(set_to firmware_refuses value) $(set_to firmware_refuses count)" = '9 2' ] &&
	report ok 'is its number' || report no 'is its number'
expect 'a time' 0 fault set link_down --value 5000 --root tree
[ "$(set_to link_down value)" = 5000 ] && report ok 'is written' || report no 'is written'
expect 'clear one' 0 fault clear link_down --root tree
says out 'says so' '^link_down is off$'
[ "$(set_to link_down value) $(set_to link_down count)" = '1000000000 0' ] &&
	report ok 'its value is the default' || report no 'its value is the default'
expect 'clear all' 0 fault clear --root tree --json
document 'those that were armed' 'd["cleared"] == ["drop_completion", "firmware_refuses"]'
[ "$(set_to drop_completion per_mille) $(set_to drop_completion count)" = '1000 0' ] &&
	report ok 'and nothing is left' || report no 'and nothing is left'
expect 'clear again' 0 fault clear --root tree --json
document 'nothing was armed' 'd["cleared"] == []'

expect 'a misspelt fault' 2 fault set drop_completon --root tree
says err 'is corrected' 'Did you mean: drop_completion'
expect 'no fault' 2 fault set --root tree
expect 'two names' 2 fault list a b --root tree
expect 'three words' 2 fault set drop_completion 1 2 --root tree
expect 'no count' 2 fault set drop_completion 0 --root tree
says err 'says what is allowed' 'the count takes a whole number from 1 to 4294967295'
expect 'an unused value' 2 fault set drop_completion --value 3 --root tree
says err 'is refused' 'does not use a value'
expect 'a target of the device' 2 fault set link_down --target 1 --root tree
says err 'is refused, too' 'strikes the whole device'
expect 'no boot error' 2 fault set firmware_refuses --value NONE --root tree
expect 'another boot error' 2 fault set firmware_refuses --value 99 --root tree --json
document 'is named' 'd["command"] == "set" and "99" in d["error"]["message"]'
expect 'more than a thousand' 2 fault set drop_completion --per-mille 1001 --root tree
[ "$(set_to drop_completion count)$(set_to firmware_refuses count)" = 00 ] &&
	report ok 'nothing of that is written' || report no 'nothing of that is written'

device 1 0eb1
expect 'two devices' 2 fault list --root tree
says err 'want a name' 'there are 2 emulated devices'
expect 'the second' 0 fault list -d pci:0eb1:00:00.0 --root tree --json
document 'by its address' 'd["number"] == 1'
expect 'a device that is not emulated' 6 fault set link_down -d pci:0000:01:00.0 --root tree
says err 'has none to inject' 'pci:0000:01:00.0 is no device of the emulator'
rm tree/sys/kernel/debug/embeng_emu/1/faults/link_down/about
expect 'an older emulator' 2 fault list -d pci:0eb1:00:00.0 --root tree
says err 'lacks a file' 'link_down: a file is missing'

finish

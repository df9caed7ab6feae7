#!/bin/sh
# SPDX-License-Identifier: MIT
# The rule for device nodes with udev itself, in a virtual machine. Speaks TAP.
# usage: tests/vm/run -- tests/vm/udev.sh BUILD-FOLDER
set -u

build=$1
here=$(dirname "$0")
. "$here/tap.sh"
# The command's files are below a root of their own in the machine, which udev minds.
export SYSTEMD_IGNORE_CHROOT=1
address=0eb0:00:00.0
link=/dev/accel/by-path/pci-$address

# udevd alone: no other rule is needed to judge ours.
begin()
{
	mkdir -p /run/udev/rules.d && cp "$here/../../kmod/package/60-embeng.rules" /run/udev/rules.d/ &&
		/lib/systemd/systemd-udevd --daemon && udevadm control --reload && again
}

again()
{
	udevadm trigger --action=add --subsystem-match=accel && udevadm settle --timeout=60
}

# is FORMAT WORDS: of the node, as stat says
is()
{
	stat -c "$1" "/dev/accel/$(ls "/sys/bus/pci/devices/$address/accel")" | tee "$folder/is"
	[ "$(cat "$folder/is")" = "$2" ]
}

is_found()
{
	[ "$("$build/runtime/embeng" list --json | python3 -c 'import json, sys
print([d["name"] for d in json.load(sys.stdin)["devices"] if d["address"] == sys.argv[1]][0])' \
		"pci:$address")" = "$(readlink -f "$link")" ]
}

# In the group and nothing else, a user may open the device and train.
used_by_group()
{
	setpriv --reuid nobody --regid nogroup --groups render \
		"$build/runtime/embeng" info -d "$link"
}

used_by_stranger()
{
	setpriv --reuid nobody --regid nogroup --clear-groups "$build/runtime/embeng" info -d "$link"
}

refused_to_stranger()
{
	used_by_stranger 2>&1 && return 1
	used_by_stranger 2>&1 | grep render
}

check 'udev takes the rule' begin
check 'the node is of the group render' is %G render
check 'which reads and writes it, others do not' is %a 660
check 'a link has the PCI address' [ -c "$link" ]
check 'the command finds the same node' is_found
check 'the group may use it' used_by_group
check 'others may not, and are told of the group' refused_to_stranger
check 'the driver unloads' rmmod embeng
check 'and loads' insmod "$build/kmod-$(uname -r)/kmod/embeng.ko"
check 'udev sees the new node' udevadm settle --timeout=60
check 'which is of the group too' is %G render
check 'and has the link' [ -c "$link" ]
udevadm control --exit
finish

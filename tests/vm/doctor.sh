#!/bin/sh
# SPDX-License-Identifier: MIT
# embeng doctor names each cause that a virtual machine can have, and that one alone. Speaks TAP.
# usage: tests/vm/run -- tests/vm/doctor.sh BUILD-FOLDER [PARAMETER...]
# The emulator's parameters say where BARs live when that is not the usual place.
#
# A virtual machine cannot have these: an unknown id, BARs without a place or below 4 GiB, another power
# state than D0 (the driver keeps the device awake, and so does the kernel without a driver), an IOMMU
# group and its mode, a link, errors of a bus (AER), an old kernel, a build by DKMS, Secure Boot and
# compressed modules, an installed image older than the device's limit, old readings, and slow
# processors. tests/cli/doctor_trees.py has them in recorded trees.
set -u

build=$1
shift
place=$*
. "$(dirname "$0")/tap.sh"
address=0eb0:00:00.0
function=/sys/bus/pci/devices/$address
driver=/sys/bus/pci/drivers/embeng
emulator=/sys/kernel/debug/embeng_emu/0
modules=$build/kmod-$(uname -r)/kmod
image=/lib/firmware/embeng/embeng.fw
recovery=/lib/firmware/embeng/recovery.fw
embeng=$build/runtime/embeng
# The machine may copy all DMA, which is a cause as well.
always=
! grep -qw swiotlb=force /proc/cmdline || always=swiotlb:warning

# names CODE "CHECK:VERDICT..." [COMMAND...]: what warns or is a problem is this and no more, in the
# document of `embeng doctor`, run by the command
names()
{
	code=$1 wanted=$2
	shift 2
	"$@" "$embeng" doctor --json >"$folder/document"
	status=$?
	python3 -c '
import json, sys
rows = json.load(open(sys.argv[1]))["checks"]
bad = [row for row in rows if row["verdict"] in ("warning", "problem")]
for row in bad:
    print(row["name"], row["verdict"], row["seen"])
print("wanted:", sys.argv[2])
sys.exit(sorted(row["name"] + ":" + row["verdict"] for row in bad) != sorted(sys.argv[2].split()))' \
		"$folder/document" "$wanted $always" || return 1
	[ $status -eq "$code" ] || { echo "exit status $status"; return 1; }
}

# names_alone CODE "CHECK:VERDICT..." [COMMAND...]: where nothing of the device is looked at
names_alone()
{
	kept=$always always=
	names "$@"
	set -- $?
	always=$kept
	return "$1"
}

# settle: the node as udev would have it
settle()
{
	node=/dev/accel/$(ls "$function/accel") && chgrp render "$node" && chmod 0660 "$node"
}

bind()
{
	echo "$address" >"$driver/bind" && settle
}

binds_not()
{
	! { echo "$address" >"$driver/bind"; } 2>/dev/null
}

unbind()
{
	echo "$address" >"$driver/unbind"
}

rebind()
{
	unbind && bind
}

# fault NAME VALUE COUNT
fault()
{
	echo "$2" >"$emulator/faults/$1/value" && echo "$3" >"$emulator/faults/$1/count"
}

# Users, whose locked memory is not limited unless that is what is tried.
in_group() { prlimit --memlock=unlimited setpriv --reuid nobody --regid nogroup --groups render "$@"; }
outside() { prlimit --memlock=unlimited setpriv --reuid nobody --regid nogroup --clear-groups "$@"; }
little_locked() { prlimit --memlock=65536 setpriv --reuid nobody --regid nogroup --groups render "$@"; }

# The same answers come from a record, but for the lookup.
records()
{
	rm -rf "$folder/record"
	"$embeng" doctor --json --record "$folder/record" >"$folder/here" &&
		"$embeng" doctor --json --root "$folder/record" >"$folder/there" && python3 -c '
import json, sys
here, there = ({row["name"]: row for row in json.load(open(name))["checks"]} for name in sys.argv[1:])
assert here.pop("lookup")["verdict"] == "ok"
assert there.pop("lookup")["verdict"] == "not checked"
# Free memory is read by several checks, and changes between them.
for rows in here, there:
    del rows["memory-limit"]["seen"]
for name in here:
    if here[name] != there[name]:
        print(here[name], there[name])
sys.exit(here != there)' "$folder/here" "$folder/there"
}

# Each line of a person's output begins with a verdict; the lookup is the last one.
prints()
{
	"$embeng" doctor >"$folder/text" && cat "$folder/text" &&
		grep "^ok  *lookup  *$address: a lookup of 2 bags on $node gave the right sums" "$folder/text" &&
		grep '^0 problems' "$folder/text"
}

# moved COMMAND...: while the node is not there
moved()
{
	mv "$node" /dev/elsewhere
	"$@"
	set -- $?
	mv /dev/elsewhere "$node"
	return "$1"
}

# in_container COMMAND...: with a /dev of its own, which has no node
in_container()
{
	unshare --mount sh -c 'mount -t tmpfs none /dev && mknod -m 666 /dev/null c 1 3 && exec "$@"' sh "$@"
}

# Another device's number under this node's name.
with_wrong_number()
{
	mknod -m 660 "$node" c 261 63 && chgrp render "$node" && "$@"
	set -- $?
	rm "$node"
	return "$1"
}

# The controller of devices is one of version 1 alone.
forbid_device()
{
	mkdir -p "$folder/devices" && mount -t cgroup -o devices none "$folder/devices" &&
		mkdir -p "$folder/devices/few" && echo 'c 261:* rwm' >"$folder/devices/few/devices.deny"
}

forbidden()
{
	alone forbid_device && sh -c 'echo $$ >"$0/few/cgroup.procs"; exec "$@"' "$folder/devices" "$@"
	set -- $?
	alone umount "$folder/devices"
	return "$1"
}

# make_group FILE VALUE: a control group with this limit
make_group()
{
	group=/sys/fs/cgroup/doctor
	grep -q ' /sys/fs/cgroup cgroup2 ' /proc/mounts || mount -t cgroup2 none /sys/fs/cgroup || return 1
	echo '+memory +cpu' >/sys/fs/cgroup/cgroup.subtree_control && mkdir -p $group &&
		echo "$2" >"$group/$1"
}

# limited FILE VALUE COMMAND...: in a control group with this limit
limited()
{
	alone make_group "$1" "$2" || return 1
	shift 2
	sh -c 'echo $$ >"$0/cgroup.procs"; exec "$@"' $group "$@"
	set -- $?
	alone rmdir $group
	return "$1"
}

# with_pages MODE COMMAND...: huge pages
with_pages()
{
	file=/sys/kernel/mm/transparent_hugepage/enabled
	before=$(sed 's/.*\[\(.*\)\].*/\1/' $file)
	echo "$1" >$file
	shift
	"$@"
	set -- $?
	echo "$before" >$file
	return "$1"
}

# A summer's day, and the time in which the engine takes its temperature.
hot()
{
	echo 200000 >"$emulator/thermal/ambient_mc" && echo 1 >"$emulator/thermal/time_ms" && sleep 1 && names "$@"
	set -- $?
	echo 25000 >"$emulator/thermal/ambient_mc" && sleep 1
	return "$1"
}

# Another first byte, by which images are known.
spoil()
{
	{
		printf x
		tail -c +2 "$folder/image"
	} >"$image"
}

corrects()
{
	fault ecc_correctable 0 1 && "$embeng" doctor >/dev/null && names "$@"
}

wedge()
{
	fault firmware_refuses 11 4294967295 && ! "$embeng" reset -d "$node"
	set -- $?
	fault firmware_refuses 11 0
	return "$1"
}

# Modules as modprobe finds them: of this kernel, in memory, since those of the machine are read-only.
place_modules()
{
	mkdir -p "/lib/modules/$(uname -r)" &&
		mount -t tmpfs modules "/lib/modules/$(uname -r)" &&
		mkdir -p "/lib/modules/$(uname -r)/updates" &&
		cp "$modules/embeng.ko" "/lib/modules/$(uname -r)/updates/" &&
		depmod "$(uname -r)" 2>/dev/null
	grep embeng "/lib/modules/$(uname -r)/modules.dep"
}

blacklist()
{
	mkdir -p /etc/modprobe.d && echo 'blacklist embeng' >/etc/modprobe.d/doctor.conf
}

without_driver()
{
	rmmod embeng
}

without_function()
{
	rmmod embeng_emu
}

quiet()
{
	! dmesg | grep -E 'BUG|WARNING|Oops|Call Trace|embeng.*(refuses to|unmapped)'
}

cp "$image" "$folder/image"

# -- the node --

check 'a new node is of root alone' names 0 node-mode:warning
check 'which others may not open' names 4 node-mode:problem outside
check 'the node is given to the group' settle
check 'a machine without a fault' names 0 ''
check 'says so to people' prints
check 'and can be recorded' records
check 'a user of the group' names 0 '' in_group
check 'a user outside of the group' names 4 node-access:problem outside
check 'little locked memory' names 0 memlock:warning little_locked
check 'no node' moved names 6 node:problem
check 'a container without the node' names 6 node:problem in_container
check 'which is said' grep 'this container has no' "$folder/document"
check "another device's number" moved with_wrong_number names 6 node-number:problem
check 'a control group that forbids the device' names 4 node-access:problem forbidden

# -- the machine --

check 'a control group with little memory' names 0 memory-limit:warning limited memory.max 134217728
check 'a quota of processor time' names 0 processor-quota:warning limited cpu.max '50000 100000'
check 'no huge pages' with_pages never names 0 huge-pages:warning

# -- the device --

check 'a reset' "$embeng" reset -d "$node"
check 'is told' names 0 hung:warning
check 'and forgotten' rebind
check 'a memory error' corrects 0 ecc:warning
check 'the driver is bound anew' rebind
check 'too hot' hot 0 temperature:warning
check 'a command that fails' fault dma_error 0 1
check 'is found by the lookup' names 7 lookup:problem
check 'the driver is bound anew' rebind
check 'a device that does not come back' wedge
check 'is named, and why' names 10 'firmware-refused:problem wedged:problem hung:warning'
check 'the driver is bound anew' rebind
check 'nothing is left of it' names 0 ''

# -- firmware --

rm "$image"
check 'an image that is removed while it runs' names 0 firmware-file:warning
check 'the driver is unbound' unbind
check 'without firmware it does not bind' binds_not
check 'which is said' names 10 firmware-file:problem
cp "$folder/image" "$recovery"
check 'the recovery image boots' bind
check 'which is said, and why' names 0 'firmware-file:warning firmware-fallback:warning'
check 'what is no image' spoil
check 'is not booted, but the other' rebind
check 'which is said' names 0 firmware-fallback:warning
check 'with the reason' grep 'this is not a firmware image' "$folder/document"
rm "$recovery"
check 'the driver is unbound' unbind
check 'with neither it does not bind' binds_not
check 'the image is named' names 10 firmware-refused:problem
cp "$folder/image" "$image"
fault firmware_refuses 6 1
check 'an image that is too old' binds_not
check 'is named' names 10 firmware-old:problem
fault firmware_refuses 17 1
check 'an image that is not signed' binds_not
check 'is named' names 10 firmware-signature:problem
fault firmware_dies 0 1
patience=/sys/module/embeng/parameters/answer_timeout_ms
echo 6000 >$patience
check 'a boot that does not end' binds_not
check 'is told by the driver' names 10 driver-probe:problem
check 'which says how a slow board gets longer' grep "$patience" "$folder/document"
check 'the driver is bound' bind
echo 20000 >$patience
check 'nothing is left of it' names 0 ''

# -- the bus and the driver --

check 'the driver is unbound' unbind
check 'which is named' names 9 driver-bound:problem
echo pci-stub >"$function/driver_override"
check 'a function that is kept for another driver' names 9 driver-bound:problem
check 'which is said' grep 'driver_override keeps it' "$folder/document"
modprobe pci-stub
check 'another driver' names 5 driver-bound:problem
echo "$address" >/sys/bus/pci/drivers/pci-stub/unbind
echo >"$function/driver_override"
check 'the driver is bound' bind
fault config_all_ones 0 1
check 'a card that was pulled out' names 7 answers:problem
check 'the driver unloads' without_driver
check 'and the emulator' without_function
check 'no function' names_alone 0 function:warning
check 'the lookup is made on the soft device' grep 'a lookup of 2 bags on soft gave' "$folder/document"
check 'no function, and one was named' names_alone 6 function:problem env EMBENG_DEVICE="pci:$address"
check 'the emulator loads' insmod "$modules/emulator/embeng_emu.ko" $place
check 'there is no module of this kernel' names 9 driver-built:problem
check 'there is one' place_modules
check 'a driver that is not loaded' names 9 driver-loaded:problem
check 'a blacklist' blacklist
check 'is named' names 9 driver-blacklisted:problem
rm /etc/modprobe.d/doctor.conf
check 'the driver loads as the page says' modprobe embeng
check 'the node is given to the group' settle
check 'nothing is left of it' names 0 ''
check 'no complaint in the log' quiet

# -- what stays until the machine is started again --

echo 128 >/proc/sys/kernel/tainted
check 'a kernel that has had an oops' names 0 taint:warning
check 'the driver unloads' without_driver
echo Y >/sys/module/module/parameters/sig_enforce
check 'a module without a signature' names 9 driver-signed:problem
check 'which the kernel refuses indeed' sh -c '! modprobe embeng'
finish

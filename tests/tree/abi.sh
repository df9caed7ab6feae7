#!/bin/sh
# SPDX-License-Identifier: MIT
# Every attribute, parameter and debugfs file of the kernel modules is described in docs/abi, and
# nothing else is; every field of an ioctl says which way it goes. That the files are there is for
# tests/vm/driver.sh to see. Speaks TAP.
# usage: abi.sh SOURCE-ROOT
set -u

cd "$1" || exit 1
number=0 failed=0
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT

# verdict NAME PATTERN: what the source has, one name a line in $scratch/has, is what is told of
# below the place that the pattern matches.
verdict()
{
	number=$((number + 1))
	sort -u "$scratch/has" >"$scratch/sorted"
	sed -n 's/^What:[[:space:]]*//p' docs/abi/* | sed -n "s|^$2\(.*\)|\1|p" | sort -u >"$scratch/told"
	if [ -s "$scratch/sorted" ] && cmp -s "$scratch/sorted" "$scratch/told"; then
		echo "ok $number - $1"
	else
		failed=1
		echo "not ok $number - $1"
		diff "$scratch/sorted" "$scratch/told" |
			sed -n 's/^</# in the source alone:/p; s/^>/# in docs\/abi alone:/p'
	fi
}

# parameters FILE...
parameters()
{
	sed -n 's/^module_param(\([a-z0-9_]*\),.*, 0[0-7]*[1-7][0-7]*);$/\1/p' "$@" >"$scratch/has"
}

# In groups: a name stands in the array of its group.
sed -n '/^static struct attribute \*device_attr/,/^};/s/.*&dev_attr_\([a-z_]*\)\.attr,$/\1/p
/^static struct attribute \*\(device\|clock\)_attr/,/^};/s/.*&number_\([a-z_]*\)\.attribute.*/\1/p
/^static struct attribute \*reset_attr/,/^};/s/.*&[a-z]*_\(attr_\)\{0,1\}\([a-z]*\)\.attr.*/resets\/\2/p
/^static struct attribute \*counter_attr/,/^};/s/.*&number_\([a-z_]*\)\.attribute.*/counters\/\1/p' \
	kmod/sysfs.c >"$scratch/has"
sed -n 's/.*hwmon_\(temp\|power\)_\([a-z]*\))$/hwmon\/hwmonN\/\11_\2/p' kmod/stats_hwmon.c >>"$scratch/has"
grep -q 'HWMON_T_LABEL' kmod/stats_hwmon.c && echo hwmon/hwmonN/temp1_label >>"$scratch/has"
grep -q 'HWMON_P_LABEL' kmod/stats_hwmon.c && echo hwmon/hwmonN/power1_label >>"$scratch/has"
verdict 'attributes of the function' /sys/bus/pci/drivers/embeng/ADDRESS/

parameters kmod/*.c
verdict 'parameters of the driver' /sys/module/embeng/parameters/

parameters kmod/emulator/*.c
verdict 'parameters of the emulator' /sys/module/embeng_emu/parameters/

sed -n 's/^	{ "\([a-z]*\)", show_.*/\1/p' kmod/debugfs.c >"$scratch/has"
verdict 'debugfs files of the driver' /sys/kernel/debug/accel/ADDRESS/

sed -n 's/^CONFIGFS_ATTR[A-Z_]*(emu_, \([a-z0-9_]*\));$/\1/p' kmod/emulator/configfs.c \
	>"$scratch/has"
verdict 'configfs files of the emulator' /sys/kernel/config/embeng_emu/FOLDER/

{
	sed -n '/make_fault_\(files\|words\)(/,/^}/s/.*debugfs_create_[a-z0-9_]*("\([a-z_]*\)".*/faults\/FAULT\/\1/p' \
		kmod/emulator/fault.c
	for folder in speed thermal; do
		sed -n "/ make_$folder(/,/^}/s/.*debugfs_create_[a-z0-9]*(\"\([a-z_]*\)\".*/$folder\/\1/p" \
			kmod/emulator/debugfs.c
	done
	sed -n 's/.*debugfs_create_[a-z0-9_]*("\([a-z_]*\)", 0[0-7]*, emu->debugfs.*/\1/p' \
		kmod/emulator/*.c
} >"$scratch/has"
verdict 'debugfs files of the emulator' /sys/kernel/debug/embeng_emu/DEVICE/

# Faults by name, in the text and in embeng_emu(4).
number=$((number + 1))
sed -n '/ faults\[EMU_FAULTS\]/,/^};/s/.*= { "\([a-z_]*\)",.*/\1/p' kmod/emulator/fault.c |
	while read -r fault; do
		grep -qw "$fault" docs/abi/debugfs-driver-embeng_emu && echo "$fault"
		grep -q "^\.It Cm $fault$" docs/man/embeng_emu.4 && echo "$fault"
	done >"$scratch/told"
words=$(grep -c '_FAULT_[A-Z_]*\] = {' kmod/emulator/fault.c)
# Each fault that the engine and the emulator ask for has its entry, in which nothing is left out.
asked=$(cat engine/port.h kmod/emulator/fault.h | grep -cE '^	(PORT|EMU)_FAULT_[A-Z_]+(,| = )')
told=$(tr -d '\n' <kmod/emulator/fault.c |
	grep -oE '_FAULT_[A-Z_]+\] = \{[^}]*"[a-z]+",[^}"]*"[a-z ]*",[^}"]*"[^"}]{10,}" \}' | wc -l)
[ "$words" -eq "$asked" ] && [ "$words" -eq "$told" ] || words=0
if [ "$words" -gt 0 ] && [ "$(wc -l <"$scratch/told")" -eq $((2 * words)) ]; then
	echo "ok $number - faults by name"
else
	failed=1
	echo "not ok $number - faults by name"
fi

# Lists fields of each structure that the comment above it does not describe with "in:" or "out:".
number=$((number + 1))
awk '/^ \* struct embeng_accel_/ { split("", told) }
	match($0, /^ \* @[a-z0-9_]+: (in|out): ./) { split($2, name, /[@:]/); told[name[2]] = 1 }
	/^struct embeng_accel_.* \{$/ { inside = $2; structs++ }
	/^\}/ { inside = "" }
	inside && /;$/ { field = $NF; sub(/(\[.*)?;/, "", field); fields++
		if (!(field in told)) print "# " inside "." field }
	END { if (structs < 15 || fields < 80) print "# " structs " structures, " fields " fields" }' \
	uapi/embeng_accel.h >"$scratch/untold"
if [ -s "$scratch/untold" ]; then
	failed=1
	echo "not ok $number - fields of ioctls say their direction"
	cat "$scratch/untold"
else
	echo "ok $number - fields of ioctls say their direction"
fi

echo "1..$number"
exit $failed

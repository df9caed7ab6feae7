#!/bin/sh
# SPDX-License-Identifier: MIT
# The library and the command on a device behind the driver, in a virtual machine: what runs on
# the soft device runs there, by both paths, with the same bits. Speaks TAP.
# usage: tests/vm/run -- tests/vm/accel.sh BUILD-FOLDER
set -u

build=$1
. "$(dirname "$0")/../cli/checks.sh"
embeng=$build/runtime/embeng
vectors=$(dirname "$0")/../vectors
node=$(ls /dev/accel/accel* | head -n 1)
address=pci:0eb0:00:00.0
export CK_DEFAULT_TIMEOUT=120

# same NAME FILE FILE: the files are the same, byte by byte
same()
{
	if cmp "$2" "$3" >"$folder/out" 2>"$folder/err"; then report ok "$1"; else report no "$1"; fi
}

# results DEVICE FILE: result lines of all vectors
results()
{
	"$embeng" conform -d "$1" "$vectors" >"$folder/tap" 2>/dev/null
	grep -E '^(ok|not ok|1\.\.)' "$folder/tap" >"$2"
}

# train DEVICE NAME: losses and tables of a small training
train()
{
	"$embeng" train "$folder/baskets" -d "$1" --epochs 1 --min-count 1 --dim 8 --batch 64 \
		--seed 5 --save "$folder/$2" >/dev/null 2>&1
	for file in "$folder/$2"/*.safetensors; do
		cat "$file"
	done >"$folder/$2.bits"
}

# program PATH NAME COUNT: a Check program of so many tests, by one path
program()
{
	CK_TAP_LOG_FILE_NAME="$folder/tap" EMBENG_PATH=$1 "$build/tests/vm/$2" \
		>"$folder/out" 2>"$folder/err"
	grep -E '^(ok|not ok)' "$folder/tap" >"$folder/lines"
	[ "$(wc -l <"$folder/lines")" -eq "$3" ] || report no "$1: $2 runs"
	while read -r line; do
		name=$(echo "$line" | cut -d: -f3)
		case $line in ok*) report ok "$1: $name" ;; *) report no "$1: $name" ;; esac
	done <"$folder/lines"
}

expect 'list' 0 list --json
document 'list has the device' 'any(x["name"] == "'"$node"'" and x["address"] == "'$address'" and x["driver"] == "embeng" and not x["problem"] for x in d["devices"])'
expect 'info' 0 info --json
document 'it is the default' 'd["device"]["name"] == "'"$node"'" and d["device"]["state"] == "running"'
expect 'info by address' 0 info -d $address,path=validated
says out 'the path is in the name' "^name  *$node,path=validated$"
expect 'registers' 0 regs -d $address magic boot_state --json
document 'registers are the device' '[r["value"] for r in d["registers"]] == [0x474e424d, 3]'
expect 'no such node' 6 info -d /dev/accel/accel63

seq 1 400 | awk '{ for (i = 0; i < 5; i++) printf "item%d ", ($1 * 7 + i * i * 3) % 97; print "" }' \
	>"$folder/baskets"
train soft:cores=1 soft
[ -s "$folder/soft.bits" ] && report ok 'training on soft' || report no 'training on soft'
for path in mapped validated; do
	train "$node,path=$path" "$path"
	same "$path: a training has the bits of soft" "$folder/soft.bits" "$folder/$path.bits"
	program $path vm-share 2
	program $path vm-session 3
	program $path vm-rescue 3
done

results soft "$folder/soft.lines"
[ "$(grep -c ^ok "$folder/soft.lines")" -gt 300 ] && report ok 'vectors on soft' ||
	report no 'vectors on soft'
for path in mapped validated; do
	results "$node,path=$path" "$folder/lines"
	same "$path: all vectors as on soft" "$folder/soft.lines" "$folder/lines"
done

expect 'reset' 0 reset -d "$node"
expect 'alive after a reset' 0 info -d "$node"
expect 'reset of the function' 0 reset -d "$node" --function
expect 'alive after a reset of the function' 0 info -d "$node"

echo "1..$number"
exit $failed

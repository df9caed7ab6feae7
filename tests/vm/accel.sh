#!/bin/sh
# SPDX-License-Identifier: MIT
# The library and the command on a device behind the driver, in a virtual machine: what runs on
# the soft device runs there, by both paths, with the same bits. Speaks TAP.
# usage: tests/vm/run -- tests/vm/accel.sh BUILD-FOLDER [PLACE OF]
# With PLACE and OF, of so many vectors only the one at that place, counted from 0.
set -u

build=$1
place=${2:-0}
of=${3:-1}
. "$(dirname "$0")/../cli/checks.sh"
embeng=$build/runtime/embeng
node=$(ls /dev/accel/accel* | head -n 1)
address=pci:0eb0:00:00.0
export CK_DEFAULT_TIMEOUT=120
EMBENG_SOURCE_ROOT=$(cd "$(dirname "$0")/../.." && pwd)
export EMBENG_SOURCE_ROOT

# same NAME FILE FILE: the files are the same, byte by byte
same()
{
	if cmp "$2" "$3" >"$folder/out" 2>"$folder/err"; then report ok "$1"; else report no "$1"; fi
}

find "$EMBENG_SOURCE_ROOT/tests/vectors" -name '*.json' | sort |
	awk -v place="$place" -v of="$of" '(NR - 1) % of == place' >"$folder/vectors"

# results DEVICE FILE: result lines of the vectors
results()
{
	xargs -s 1000000 "$embeng" conform -d "$1" <"$folder/vectors" >"$folder/tap" 2>/dev/null
	grep -E '^(ok|not ok|1\.\.)' "$folder/tap" >"$2"
}

# bits NAME: tables and slots of a checkpoint
bits()
{
	for file in "$folder/$1"/*.safetensors; do
		cat "$file"
	done >"$folder/$1.bits"
}

# train DEVICE NAME: a small training
train()
{
	"$embeng" train "$folder/baskets" -d "$1" --epochs 1 --min-count 1 --dim 8 --batch 64 \
		--seed 5 --save "$folder/$2" >/dev/null 2>&1
	bits "$2"
}

# demo DEVICE NAME: two epochs of the demo; what it says but for times
demo()
{
	"$embeng" demo --source "$folder/packages" -d "$1" --epochs 2 --save "$folder/$2" \
		2>"$folder/err" |
		grep -vE '^(Time per stage|Saved in|The engine is closed|[0-9.]+ s on )' >"$folder/$2.said"
	bits "$2"
}

# program PATH NAME: a Check program by one path; each of its tests is a line
program()
{
	: >"$folder/tap"
	CK_TAP_LOG_FILE_NAME="$folder/tap" EMBENG_PATH=$1 EMBENG_TEST_DEVICE=$node,path=$1 \
		"$build/tests/$2" >"$folder/out" 2>"$folder/err"
	status=$?
	grep -E '^(ok|not ok)' "$folder/tap" >"$folder/lines"
	[ -s "$folder/lines" ] || report no "$1: $2 runs"
	[ $status -eq 0 ] || grep -q '^not ok' "$folder/lines" ||
		report no "$1: $2 runs to its end (exit status $status)"
	while read -r line; do
		name=$(echo "$line" | cut -d: -f3)
		case $line in ok*) report ok "$1: $name" ;; *) report no "$1: $name" ;; esac
	done <"$folder/lines"
}

# as_nobody NAME CODE ARGUMENT...: as expect, without any rights
as_nobody()
{
	name=$1 code=$2
	shift 2
	setpriv --reuid=65534 --regid=65534 --clear-groups "$embeng" "$@" \
		>"$folder/out" 2>"$folder/err"
	[ $? -eq "$code" ] && report ok "$name" || report no "$name"
}

# driver unbind|bind: from the function, or to it
driver()
{
	echo ${address#pci:} >"/sys/bus/pci/drivers/embeng/$1"
}

expect 'list' 0 list --json
document 'list has the device' 'any(x["name"] == "'"$node"'" and x["address"] == "'$address'" and x["driver"] == "embeng" and x["description"] == "Device 0eb0:0001" and not x["problem"] for x in d["devices"])'
expect 'info' 0 info --json
document 'it is the default' 'd["device"]["name"] == "'"$node"'" and d["device"]["state"] == "running"'
expect 'info by address' 0 info -d $address,path=validated
says out 'the path is in the name' "^name  *$node,path=validated$"
expect 'registers' 0 regs -d $address magic boot_state --json
document 'registers are the device' '[r["value"] for r in d["registers"]] == [0x474e424d, 3]'
expect 'no such node' 6 info -d /dev/accel/accel63
expect 'a register that the device writes' 2 regs -d $address --write magic=1
says err 'is not for a driver to write' 'the device writes MAGIC'
expect 'plan' 0 plan -d "$node" --table t:1000x16:adam --replicas 2 --json
cp "$folder/out" "$folder/plan"
expect 'plan for soft' 0 plan -d soft:cores=2 --table t:1000x16:adam --replicas 2 --json
document 'a model needs the same memory on both' \
	'd["items"] == json.load(open("'"$folder"'/plan"))["items"]'

driver unbind
expect 'without a driver' 9 info -d $address
expect 'registers are there' 0 regs -d $address magic --json
document 'and are those of the device' '[r["value"] for r in d["registers"]] == [0x474e424d]'
expect 'and can be written' 0 regs -d $address --write boot_length=4096 boot_length --json
document 'and read' '[r["value"] for r in d["registers"]] == [4096]'
driver bind
expect 'with the driver again' 0 info -d $address

chmod 600 "$node"
as_nobody 'without rights to the node' 4 info -d "$node"
says err 'the group is told' 'usermod -aG render'
as_nobody 'a device without rights is listed' 0 list
says out 'with the reason' 'cannot be opened: .*permission denied'
chmod 666 "$node"
as_nobody 'with rights to the node' 0 info -d "$node"
as_nobody 'registers are the administrator'"'"'s' 4 regs -d "$node"
says err 'the capability is told' CAP_SYS_RAWIO
as_nobody 'a reset is the administrator'"'"'s' 4 reset -d "$node"
says err 'its capability is told' CAP_SYS_ADMIN
chmod 600 "$node"

seq 1 400 | awk '{ for (i = 0; i < 5; i++) printf "item%d ", ($1 * 7 + i * i * 3) % 97; print "" }' \
	>"$folder/baskets"
modprobe vgem
train soft:cores=1 soft
[ -s "$folder/soft.bits" ] && report ok 'training on soft' || report no 'training on soft'
# An eighth of the packages that apt knows: all of them take the machine minutes.
apt-cache dumpavail 2>/dev/null | awk 'BEGIN { RS = ""; ORS = "\n\n" } NR % 8 == 1' \
	>"$folder/packages"
[ -s "$folder/packages" ] || cp /var/lib/dpkg/status "$folder/packages"
demo soft:cores=1 demo
grep -q '^hit@10 ' "$folder/demo.said" && [ -s "$folder/demo.bits" ] &&
	report ok 'the demo on soft' || report no 'the demo on soft'
for path in mapped validated; do
	demo "$node,path=$path" "demo-$path"
	same "$path: the demo has the bits of soft" "$folder/demo.bits" "$folder/demo-$path.bits"
	same "$path: and says the same" "$folder/demo.said" "$folder/demo-$path.said"
done
for path in mapped validated; do
	train "$node,path=$path" "$path"
	same "$path: a training has the bits of soft" "$folder/soft.bits" "$folder/$path.bits"
	program $path vm/vm-share
	program $path vm/vm-session
	program $path vm/vm-import
	program $path vm/vm-session_hang
	# The library's unit tests that run on any device.
	program $path unit/test_session
	program $path unit/test_gradients
	program $path unit/test_partitioned_batch
	program $path unit/test_deadline
	program $path unit/test_buffer
	program $path unit/test_checkpoint
	program $path unit/test_serving_live
	program $path unit/test_free_order
	program $path unit/test_lookup_into
	program $path unit/test_gradient_norm
	program $path unit/test_weight_gradients
	program $path unit/test_table_map
	program $path unit/test_add_tables
	program $path unit/test_bags
	program $path unit/test_split_tables
	program $path unit/test_spread
done

results soft "$folder/soft.lines"
[ "$(wc -l <"$folder/vectors")" -gt $((800 / of)) ] && report ok 'there are vectors' ||
	report no 'there are vectors'
[ "$(grep -c ^ok "$folder/soft.lines")" -eq "$(wc -l <"$folder/vectors")" ] &&
	report ok 'vectors on soft' || report no 'vectors on soft'
program mapped unit/test_fences
program validated vm/vm-fences

for path in mapped validated; do
	results "$node,path=$path" "$folder/lines"
	same "$path: vectors as on soft" "$folder/soft.lines" "$folder/lines"
done

rmmod embeng && insmod "$build/kmod-$(uname -r)/kmod/embeng.ko" mapped_queues=0
expect 'mapped queues may be forbidden' 3 info -d "$node,path=mapped"
says err 'the way out is told' 'path=validated'
expect 'and are no capability then' 0 info -d "$node" --json
document 'the others are' 'not "mapped queues" in d["device"]["capabilities"] and "validated queues" in d["device"]["capabilities"]'
train "$node" forbidden
same 'without a path a training takes the other, with the bits of soft' "$folder/soft.bits" \
	"$folder/forbidden.bits"
rmmod embeng && insmod "$build/kmod-$(uname -r)/kmod/embeng.ko"

expect 'reset' 0 reset -d "$node"
expect 'alive after a reset' 0 info -d "$node"
expect 'event log' 0 regs -d "$node" --log --json
document 'a boot follows the reset' \
	'(lambda names: "BOOT" in names[names.index("RESET"):])([e["name"] for e in d["events"]])'
document 'events in their order' '(lambda n: n and n == sorted(n))([e["number"] for e in d["events"]])'
expect 'reset of the function' 0 reset -d "$node" --function
expect 'alive after a reset of the function' 0 info -d "$node"

echo "1..$number"
exit $failed

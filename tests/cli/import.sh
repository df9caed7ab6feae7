#!/bin/sh
# SPDX-License-Identifier: MIT
# embeng checkpoint import and export: the numbers of other programs' files, there and back. Speaks
# TAP.
# usage: import.sh EMBENG-COMMAND
set -u

. "$(dirname "$0")/checks.sh"

tests=$(cd "$(dirname "$0")" && pwd)
cd "$folder" || exit 1
case $embeng in /*) ;; *) embeng=$OLDPWD/$embeng ;; esac
python3 "$tests/tensor_files.py" || exit 1

# same NAME FILE: FILE has what out of the last call has
same()
{
	cmp -s "$2" out && report ok "$1" || report no "$1"
}

expect 'help of import' 0 checkpoint import --help
says out 'help names --table' '--table=NAME\[=TENSOR\]'
expect 'help of export' 0 checkpoint export --help

# There: every format and type gives the same rows.
expect 'a .npy' 0 checkpoint import items.npy -o items
says out 'a .npy, said' '^  items: 5 x 3, from the array of items.npy (f32)$'
expect 'its rows' 0 checkpoint dump items items
cp out rows
[ "$(head -1 rows)" = '0.5 -1.5 2.5' ] && report ok 'the first row' || report no 'the first row'
expect 'it is whole' 0 checkpoint verify items
expect 'its table' 0 checkpoint ls items --json
document 'its table, document' '([t["optimizer"] for t in d["tables"]] == ["none"] and
	d["tables"][0]["rows"] == 5 and d["tables"][0]["dim"] == 3 and d["step"] == 0)'
expect 'a lookup in it' 0 lookup items items 0
for file in fortran big; do
	expect "$file" 0 checkpoint import $file.npy -o $file
	expect "$file: dump" 0 checkpoint dump $file $file
	same "$file: the same rows" rows
done
expect 'a .safetensors' 0 checkpoint import some.safetensors -o some
says out 'a .safetensors, said' '^  b: 5 x 3, from b of some.safetensors (bf16)$'
says out 'what is left out' '^left out: 1 that is no matrix of floats$'
expect 'its rows of f32' 0 checkpoint dump some a.weight
same 'a.weight: the same rows' rows
expect 'its rows of bf16' 0 checkpoint dump some b
same 'b: the same rows' rows
expect 'a state_dict' 0 checkpoint import state.pt -o state --json
document 'a state_dict, document' '(d["command"] == "import" and d["left_out"] == 1 and
	[(t["name"], t["type"]) for t in d["tables"]] == [("emb.weight", "f32"), ("half", "f16")])'
for table in emb.weight half; do
	expect "state: $table" 0 checkpoint dump state $table
	same "state: $table: the same rows" rows
done
expect 'what is deeper' 0 checkpoint import deep.pth -o deep --table items=state.emb.weight \
	--table list.1 --table seven=7
for table in items seven; do
	expect "deep: $table" 0 checkpoint dump deep $table
	same "deep: $table: the same rows" rows
done
expect 'a column of a tensor' 0 checkpoint dump deep list.1
cut -d ' ' -f 2 rows >column
same 'a column of a tensor: the same numbers' column
expect 'several files' 0 checkpoint import items.npy some.safetensors -o several --table items \
	--table other=b
expect 'several files: ls' 0 checkpoint ls several --json
document 'several files: tables' '[t["name"] for t in d["tables"]] == ["items", "other"]'

# A pickle is data: what would run a command when Python loads it does nothing here.
expect 'a trap' 0 checkpoint import trap.pt -o trap
[ ! -e trapped ] && report ok 'the trap is not sprung' || report no 'the trap is not sprung'
expect 'its tensor' 0 checkpoint dump trap w
same 'trap: the same rows' rows

# Back.
expect 'to .npy' 0 checkpoint export state half -o back.npy
says out 'to .npy, said' '^back.npy: 1 tensor, 60 B$'
expect 'to .npy and there again' 0 checkpoint import back.npy -o back
expect 'back: dump' 0 checkpoint dump back back
same 'back: the same rows' rows
expect 'dump writes the same .npy' 0 checkpoint dump state half --format npy
same 'dump writes the same .npy' back.npy
expect 'to .safetensors' 0 checkpoint export deep -o all.safetensors --json
document 'to .safetensors, document' '(d["format"] == "safetensors" and d["file"] ==
	"all.safetensors" and [t["name"] for t in d["tensors"]] == ["items", "list.1", "seven"])'
python3 - <<'END' && report ok 'its header' || report no 'its header'
import json, struct
data = open("all.safetensors", "rb").read()
length = struct.unpack("<Q", data[:8])[0]
header = json.loads(data[8:8 + length])
assert length % 8 == 0 and len(data) == 8 + length + 140
assert header["list.1"] == {"dtype": "F32", "shape": [5, 1], "data_offsets": [60, 80]}
assert struct.unpack("<3f", data[8 + length:][:12]) == (0.5, -1.5, 2.5)
END
expect 'to .safetensors and there again' 0 checkpoint import all.safetensors -o again
expect 'again: dump' 0 checkpoint dump again seven
same 'again: the same rows' rows
golden=$tests/../golden/checkpoint
expect 'slots' 0 checkpoint export "$golden" users users/accumulators -o slots.safetensors
expect 'slots and there again' 0 checkpoint import slots.safetensors -o slots
"$embeng" checkpoint dump "$golden" users/accumulators >want
expect 'slots: dump' 0 checkpoint dump slots users/accumulators
same 'slots: the same numbers' want

# Slots that have one number a row.
widths=$tests/../golden/checkpoint-widths
seq 2200.5 2206.5 >want
expect 'one number: dump' 0 checkpoint dump "$widths" partial/velocities
same 'one number: the numbers' want
expect 'one number: part of the rows' 0 checkpoint dump "$widths" partial/velocities --rows=2:4
sed -n 3,4p want >part
same 'one number: the numbers of a part' part
expect 'one number: export' 0 checkpoint export "$widths" partial partial/velocities -o \
	widths.safetensors --json
document 'one number: the shapes' '[(t["rows"], t["dim"]) for t in d["tensors"]] == [(7, 2), (7, 1)]'
expect 'one number: there again' 0 checkpoint import widths.safetensors -o widths
expect 'one number: there again, dump' 0 checkpoint dump widths partial/velocities
same 'one number: the same numbers' want
expect 'one number: verify' 0 checkpoint verify "$widths"
expect 'one number: ls' 0 checkpoint ls "$widths" --json
document 'one number: sizes' '[t["bytes"] for t in d["tables"]] == [5 * 16, 4 * 4, 7 * 20]'
expect 'one number: reshard' 0 checkpoint reshard "$widths" three --hosts 3
expect 'one number: resharded' 0 checkpoint dump three partial/velocities
same 'one number: the same from three hosts' want
expect 'one number: grow' 0 checkpoint grow three partial=9
expect 'one number: grown' 0 checkpoint dump three partial/velocities
printf '0\n0\n' >>want
same 'one number: new rows start as the slot does' want

# Refusals of export.
expect 'export: no folder' 2 checkpoint export
expect 'export: no file' 2 checkpoint export state half
says err 'export: no file, said' 'give -o FILE.npy or'
expect 'export: unknown format' 2 checkpoint export state half -o half.csv
says err 'export: unknown format, said' "'half.csv' ends neither in .npy nor"
expect 'export: two in a .npy' 2 checkpoint export state half emb.weight -o two.npy
says err 'export: two in a .npy, said' 'a .npy has one table or slot, not 2'
expect 'export: all in a .npy' 2 checkpoint export state -o all.npy
expect 'export: twice the same' 2 checkpoint export state half half/parameters -o t.safetensors
says err 'export: twice the same, said' "'half' is given twice"
expect 'export: no such table' 2 checkpoint export state nothing -o n.npy --json
document 'export: no such table, document' '"nothing" in d["error"]["message"]'
expect 'export: no such slot' 2 checkpoint export state half/momenta -o n.npy
says err 'export: no such slot, said' "table 'half' has no slot 'momenta'"
ln -s /dev/full full.npy
expect 'export: a full disk' 5 checkpoint export state half -o full.npy
says err 'export: a full disk, said' 'full.npy: No space left'
[ ! -e n.npy ] && [ ! -e two.npy ] && report ok 'no file is left' || report no 'no file is left'

# Refusals of import.
refused()
{
	code=$1 words=$2
	shift 2
	expect "refused: $*" "$code" checkpoint import "$@"
	says err "refused: $*, said" "$words"
}
refused 2 'FILE is missing'
refused 2 'the folder is missing' items.npy
refused 2 'it holds a checkpoint, which is not replaced' items.npy -o state
refused 2 'nowhere.npy: cannot be opened: No such file' nowhere.npy -o none
refused 2 "tensor 'vector' has 1 dimension, and is no table" vector.npy -o none
refused 2 'numbers of another type' whole.npy -o none
refused 2 'row 1, column 0 is inf' inf.npy -o none
refused 11 'has 59 bytes of numbers, which are not 5 x 3' cut.npy -o none
refused 3 'is compressed' packed.pt -o none
refused 11 "'emb.weight' has no member with its numbers" lost.pt -o none
refused 3 'which torch wrote before version 1.6' old.pt -o none
refused 3 'no FOLDER/data.pkl' other.npz -o none
refused 3 'no .npy, no .safetensors and no zip' rows -o none
refused 3 'is not a regular file' . -o none
refused 2 "there is no tensor 'nothing'" state.pt -o none --table a=nothing
refused 2 "tensor 'ids' has 2 dimensions and numbers of another type" state.pt -o none --table ids
refused 2 "takes NAME or NAME=TENSOR, not '=a'" state.pt -o none --table =a
refused 2 "is in the files twice" items.npy ./items.npy -o none --table items
refused 2 'table half: table 0 has this name already' state.pt -o none --table half --table half
[ ! -e none ] && report ok 'no folder is left' || report no 'no folder is left'

finish

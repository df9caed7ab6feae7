#!/bin/sh
# SPDX-License-Identifier: MIT
# embeng checkpoint import --into: rows of tables and slots from files of other programs. Speaks TAP.
# usage: import-rows.sh EMBENG-COMMAND
set -u

. "$(dirname "$0")/checks.sh"

golden=$(cd "$(dirname "$0")/../golden" && pwd)
cd "$folder" || exit 1
case $embeng in /*) ;; *) embeng=$OLDPWD/$embeng ;; esac
cp -r "$golden/checkpoint-widths" widths && cp -r "$golden/checkpoint-mod" mod
before=$(cat widths/* mod/* | cksum)

# rows FOLDER WHAT FILE: dump
rows()
{
	"$embeng" checkpoint dump "$1" "$2" >"$3" 2>err || report no "rows of $2"
}

# npy FILE TYPE VALUE...: a .npy of rows of COLUMNS numbers
npy()
{
	python3 - "$@" <<'END'
import struct, sys
name, kind, columns, *values = sys.argv[1:]
shape = (len(values) // int(columns), int(columns))
head = ("{'descr': '%s', 'fortran_order': False, 'shape': %r, }" % (kind, shape)).ljust(117) + "\n"
code = {"<f2": "<%de", "<f4": "<%df", "<f8": "<%dd", ">f4": ">%df"}[kind] % len(values)
open(name, "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode()
                       + struct.pack(code, *map(float, values)))
END
}

expect 'ls' 0 checkpoint ls widths --json
rows widths partial old
rows widths partial/velocities old-velocities

# A whole slot of one number a row, from each type.
for type in '<f2' '<f4' '<f8' '>f4'; do
	rm -rf new
	npy v.npy "$type" 1 0.5 1.5 2.5 3.5 4.5 5.5 6.5
	expect "$type: import" 0 checkpoint import v.npy --into widths --table partial/velocities=v -o new
	printf '0.5\n1.5\n2.5\n3.5\n4.5\n5.5\n6.5\n' >want
	rows new partial/velocities got
	cmp -s got want && report ok "$type: the rows" || report no "$type: the rows"
done
says out 'what it says' '^  partial/velocities: rows 0 to 6, from the array of v.npy (f32)$'
rows new partial got
cmp -s got old && report ok 'the parameters stay' || report no 'the parameters stay'
expect 'it is whole' 0 checkpoint verify new
"$embeng" checkpoint ls widths --json >a && "$embeng" checkpoint ls new --json >b
python3 - <<'END' && report ok 'tables and step stay' || report no 'tables and step stay'
import json
a, b = (json.load(open(name)) for name in "ab")
assert a["tables"] == b["tables"] and a["step"] == b["step"] and a["model_hash"] == b["model_hash"]
END

# A part of the rows.
npy part.npy '<f4' 2 -1 -2 -3 -4
expect 'a part' 0 checkpoint import part.npy --into widths --table partial=part --first=3 -o part --json
document 'a part, document' '(d["replaced"] == [{"name": "partial", "first": 3, "rows": 2, "dim": 2,
	"file": "part.npy", "tensor": None, "type": "f32"}] and d["into"] == "widths" and d["dir"] == "part")'
rows part partial got
{ sed -n 1,3p old; printf -- '-1 -2\n-3 -4\n'; sed -n 6,7p old; } >want
cmp -s got want && report ok 'a part: the rows' || report no 'a part: the rows'
rows part partial/velocities got
cmp -s got old-velocities && report ok 'a part: the slot stays' || report no 'a part: the slot stays'

# Rows that are spread over hosts, of a chain of shards; every table and slot by their own names.
table=$("$embeng" checkpoint ls mod --json | python3 -c 'import json, sys
print(*[t["name"] for t in json.load(sys.stdin)["tables"]])')
for t in $table; do
	"$embeng" checkpoint export mod "$t" -o t.safetensors >/dev/null
	rm -rf hosts
	expect "hosts: $t" 0 checkpoint import t.safetensors --into mod -o hosts
	rows mod "$t" want && rows hosts "$t" got
	cmp -s got want && report ok "hosts: $t: the same" || report no "hosts: $t: the same"
done
t=$("$embeng" checkpoint ls mod --json | python3 -c 'import json, sys
print(max(json.load(sys.stdin)["tables"], key=lambda t: t["rows"])["name"])')
rows mod "$t" want
n=$("$embeng" checkpoint dump mod "$t" | wc -l)
d=$("$embeng" checkpoint dump mod "$t" | head -1 | wc -w)
npy ones.npy '<f4' "$d" $(seq 1 $((3 * d)))
expect 'hosts: a part' 0 checkpoint import ones.npy --into mod --table "$t=ones" --first=$((n - 4)) -o three
rows three "$t" got
python3 - "$n" "$d" <<'END' && report ok 'hosts: a part, the rows' || report no 'hosts: a part, the rows'
import sys
n, d = map(int, sys.argv[1:])
want, got = ([line.split() for line in open(name)] for name in ("want", "got"))
for row in range(3):
    want[n - 4 + row] = [str(row * d + k + 1) for k in range(d)]
assert want == got
END

[ "$before" = "$(cat widths/* mod/* | cksum)" ] && report ok 'the old ones are as they were' ||
	report no 'the old ones are as they were'

# refused CODE TEXT ARGUMENT...
refused()
{
	code=$1 text=$2
	shift 2
	expect "$text" "$code" checkpoint import "$@"
	says err "$text: said" "$text"
}
refused 2 '--first needs --into' part.npy -o none --first=1
refused 2 "the tensor for partial has 2 rows, the table has 7" part.npy --into widths -o none --table partial=part
refused 2 'has 2 rows, and from row 6 on the table has 1' part.npy --into widths -o none --table partial=part \
	--first=6
refused 2 'has 2 rows, and from row 9000000000000000000 on the table has 0' part.npy --into widths -o none \
	--table partial=part --first=9000000000000000000
refused 2 'has 2 columns, a row there has 1 numbers' part.npy --into widths -o none \
	--table partial/velocities=part --first=0
refused 2 "there is no table 'nothing'" part.npy --into widths -o none --table nothing=part
refused 2 "table 'partial' has no slot 'nothing'" part.npy --into widths -o none --table partial/nothing=part
refused 2 'is given twice' part.npy --into widths -o none --first=0 --table partial=part \
	--table partial/parameters=part
refused 2 'has the name of a table or TABLE/SLOT' part.npy --into widths -o none
refused 2 'it holds a checkpoint, which is not replaced' part.npy --into widths --table partial=part -o widths
refused 2 'index.json: cannot be opened' part.npy --into none -o other --table partial=part
npy negative.npy '<f4' 1 -1 1 1 1 1 1 1
refused 2 'velocities' negative.npy --into widths --table partial/velocities=negative -o none
npy inf.npy '<f4' 2 0 inf
refused 2 'row 0' inf.npy --into widths --table partial=inf --first=0 -o none
head -c 100 part.npy >cut.npy
refused 11 'cut.npy' cut.npy --into widths --table partial=cut -o none
[ ! -e none ] && report ok 'no folder is left' || report no 'no folder is left'

finish

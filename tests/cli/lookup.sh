#!/bin/sh
# SPDX-License-Identifier: MIT
# What lookup prints and exits with, from the checkpoint that example-serve saves. Speaks TAP.
# usage: lookup.sh EMBENG-COMMAND EXAMPLE-SERVE
set -u

. "$(dirname "$0")/checks.sh"

example=$2
dir=$folder/words.ckpt

# prints NAME EXPECTED ARGUMENT...: lookup exits with 0 and prints exactly this
prints()
{
	name=$1 expected=$2
	shift 2
	"$embeng" lookup "$@" >"$folder/out" 2>"$folder/err"
	[ $? -eq 0 ] && [ "$(cat "$folder/out")" = "$expected" ] && [ ! -s "$folder/err" ] &&
		report ok "$name" || report no "$name"
}

# refuses NAME CODE PATTERN ARGUMENT...: lookup exits with the code and says so
refuses()
{
	name=$1 code=$2 pattern=$3
	shift 3
	"$embeng" lookup "$@" >"$folder/out" 2>"$folder/err"
	[ $? -eq "$code" ] && cat "$folder/out" "$folder/err" | grep -q -e "$pattern" &&
		report ok "$name" || report no "$name"
}

"$example" "$dir" >"$folder/out" 2>"$folder/err"
[ "$(cat "$folder/out")" = "bag 0: 1.0000 1.5000
bag 1: 2.3333 2.8333" ] && report ok 'the example serves' || report no 'the example serves'

prints 'rows of a table' '3: 3 3.5
0: 0 0.5' "$dir" words 3 0
prints 'a bag of a feature' '1.5 2' "$dir" seen 0 3
prints 'weights' '2.25 2.75' "$dir" seen 0 3 -w 1,3
prints 'options come anywhere' '2.25 2.75' --weights=1,3 "$dir" --verify -f seen 0 3
prints 'negative ids of a feature are left out' '3 3.5' "$dir" seen -- -1 3
expected='{"schema":"embeng.lookup/1","dir":"/words.ckpt","table":"words","feature":"seen",'
expected=$expected'"ids":[0,3],"weights":[1,3],"activations":[[2.25,2.75]]}'
"$embeng" lookup "$dir" seen 0 3 -w 1,3 --json >"$folder/out" 2>"$folder/err"
[ $? -eq 0 ] && tr -d ' \n' <"$folder/out" >"$folder/flat" &&
	[ "$(sed "s,$folder,,g" "$folder/flat")" = "$expected" ] &&
	report ok 'a document' || report no 'a document'
"$embeng" lookup "$dir" words 3 --json >"$folder/out" 2>"$folder/err"
tr -d ' \n' <"$folder/out" |
	grep -q '"feature":null,"ids":\[3\],"weights":null,"activations":\[\[3,3.5\]\]}$' &&
	report ok 'a document of rows' || report no 'a document of rows'

refuses 'an id beyond the table' 2 'words: the table has no row 4, only rows 0 to 3' "$dir" words 0 4
refuses 'a negative row' 2 'words: the table has no row -1, only rows 0 to 3' "$dir" words -- -1
refuses 'an id of a feature beyond the table' 2 'feature seen, sample 0: id 4 is outside table words' "$dir" seen 4
refuses 'an unknown name' 2 'nobody: neither a table nor a feature' "$dir" nobody 1
refuses 'a feature that is a table' 2 'words: no feature has this name' "$dir" -f words 1
refuses 'weights of rows' 2 'words: rows of a table take no weights' "$dir" words 1 -w 1
refuses 'too few weights' 2 '1 weights for 2 ids' "$dir" seen 0 3 -w 1
for weight in nan inf -inf 1e39; do
	refuses "a weight of $weight" 2 'feature seen, sample 0: weight 1 is .*not finite' "$dir" seen 0 3 -w "1,$weight"
done
refuses 'an id that is none' 2 "'1.5' is no id" "$dir" words 1.5
refuses 'an id of more than 64 bits' 2 "is no id" "$dir" words 9223372036854775808
refuses 'weights that are none' 2 "'x' is no number" "$dir" seen 1 -w 2,x
refuses 'no ids' 2 'ids are missing' "$dir" words
refuses 'no name' 2 'a table or feature, and ids are missing' "$dir"
refuses 'nothing' 2 'DIR, a table or feature, and ids are missing'
refuses 'no checkpoint' 2 'nowhere' "$folder/nowhere" words 1
refuses 'a failure as a document' 2 '"name": "ERANGE"' "$dir" words 4 --json

for shard in "$dir"/*.safetensors; do
	printf '\101' | dd of="$shard" bs=1 conv=notrunc \
		seek=$(($(wc -c <"$shard") - 2)) 2>/dev/null
done
refuses 'a corrupt chunk' 11 'do not match their checksum' "$dir" words 1
refuses 'a corrupt chunk at open' 11 'do not match their checksum' "$dir" words 1 --verify

# step NAME PATTERN EXPECT: a vector whose lookup expects this fails and says so
step()
{
	cat >"$folder/v.json" <<-END
	{"schema": "embeng.vector/1", "name": "v", "tables": [{"name": "t",
	 "vocabulary_size": 2, "dim": 1, "initial": {"row_id": 0}}],
	 "features": [{"name": "f", "table": "t"}, {"name": "g", "table": "t"}],
	 "steps": [{"lookup": {"features": {"f": {"dense": [0, 1]}}, "expect": $3}}]}
	END
	"$embeng" conform -d soft "$folder/v.json" >"$folder/out" 2>"$folder/err"
	[ $? -eq 1 ] && grep -q -e "$2" "$folder/out" && report ok "$1" || report no "$1"
}

step 'other numbers fail a vector' 'at \[1\]\[0\]: got 1, expected 3' '{"f": [[0], [3]]}'
step 'another shape fails a vector' 'another shape' '{"f": [0, 1]}'
step 'an answer that nobody asked for' "'g' is not looked up" '{"g": [[0], [1]]}'

finish

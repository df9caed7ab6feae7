#!/bin/sh
# SPDX-License-Identifier: MIT
# embeng checkpoint compare: lookups of training and of serving. Speaks TAP.
# usage: compare.sh EMBENG-COMMAND EXAMPLE-SERVE
set -u

. "$(dirname "$0")/checks.sh"

golden=$(cd "$(dirname "$0")/../golden" && pwd)
dir=$folder/words.ckpt
"$2" "$dir" >"$folder/out" 2>"$folder/err" && report ok 'a checkpoint' || report no 'a checkpoint'

expect 'the same' 0 checkpoint compare "$dir" -d soft:cores=2
says out 'says so' '16 batches, seed 1: the same bits$'
says out 'has a feature' '^seen  *8192  *0  0$'
expect 'the same, JSON' 0 checkpoint compare "$dir" -d soft --batches 3 --samples 5 --seed 7 --json
document 'the same, document' '(d["command"] == "compare" and d["same"] is True and
	d["batches"] == 3 and d["seed"] == 7 and d["features"] == [
		{"name": "seen", "floats": 30, "differing": 0, "largest": 0, "first": None}])'
for name in checkpoint checkpoint-mod; do
	expect "$name" 0 checkpoint compare "$golden/$name" -d soft:cores=3 --json
	document "$name, document" 'd["same"] and sum(f["floats"] for f in d["features"]) > 1000'
done

expect 'no folder' 2 checkpoint compare
expect 'two folders' 2 checkpoint compare "$dir" other
says err 'two folders, said' "'other' is a second"
expect 'no batches' 2 checkpoint compare "$dir" --batches 0
expect 'no samples' 2 checkpoint compare "$dir" --samples 0
expect 'no seed' 2 checkpoint compare "$dir" --seed x
expect 'no checkpoint' 2 checkpoint compare "$folder/nowhere" --json
document 'no checkpoint, document' 'd["error"]["name"] == "ENOENT"'
expect 'no device' 6 checkpoint compare "$dir" -d embeng99
expect 'no room' 5 checkpoint compare "$dir" -d soft:memory=1

finish

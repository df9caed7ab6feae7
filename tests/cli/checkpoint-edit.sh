#!/bin/sh
# SPDX-License-Identifier: MIT
# Older checkpoints that a folder keeps, and commands that write a checkpoint again with something
# changed: step, grow, rename, compact. Speaks TAP.
# usage: checkpoint-edit.sh EMBENG-COMMAND
set -u

. "$(dirname "$0")/checks.sh"

golden=$(cd "$(dirname "$0")/../golden" && pwd)
cd "$folder" || exit 1
case $embeng in /*) ;; *) embeng=$OLDPWD/$embeng ;; esac

for i in $(seq 60); do
	echo "milk bread butter jam"
	echo "nail screw hammer saw"
done >baskets.txt

# rows DIR TABLE [OPTION...]: its rows, in the file NAME
rows()
{
	"$embeng" checkpoint dump "$@"
}

# same NAME: the files a and b are
same()
{
	cmp -s a b && report ok "$1" || report no "$1"
}

# -- the last checkpoints stay --

expect 'training' 0 train baskets.txt --save ck --epochs 5 --keep 3 -d soft:cores=1
expect 'list' 0 checkpoint list ck
[ "$(wc -l <out)" -eq 4 ] && report ok 'three are kept' || report no 'three are kept'
expect 'list, JSON' 0 checkpoint list ck --json
document 'list, document' '(d["command"] == "list" and len(d["checkpoints"]) == 3 and
	d["checkpoints"][0]["step"] > d["checkpoints"][1]["step"] > d["checkpoints"][2]["step"])'
middle=$(python3 -c 'import json; print(json.load(open("out"))["checkpoints"][1]["step"])')
for verb in 'ls ck' 'verify ck' 'dump ck items_in' 'step ck'; do
	expect "$verb, an older one" 0 checkpoint $verb --step "$middle"
	expect "$verb, none" 2 checkpoint $verb --step 999999
	says err "$verb, none is said" "no checkpoint of step 999999"
	expect "$verb, no number" 2 checkpoint $verb --step x
done
rows ck items_in >a
rows ck items_in --step "$middle" >b
cmp -s a b && report no 'older rows are others' || report ok 'older rows are others'
for keep in 0 x -1; do
	expect "refused: keep $keep" 2 train baskets.txt --save no --keep=$keep
	says err "explained: keep $keep" keep
done
expect 'list of nothing' 2 checkpoint list nowhere
expect 'list of two' 2 checkpoint list a b

# -- an older one becomes the current one --

expect 'go back' 0 checkpoint step ck "$middle" --step "$middle"
rows ck items_in >a
same 'the older rows are back'
expect 'the step is shown' 0 checkpoint step ck
says out 'the older step' "^$middle\$"
expect 'set the step' 0 checkpoint step ck 7 -o other --json
document 'set the step, document' 'd["step"] == 7 and d["out"] == "other" and len(d["tables"]) == 2'
expect 'the step that was set' 0 checkpoint step other --json
document 'the step that was set, document' 'd["step"] == 7'
rows other items_out >a
rows ck items_out >b
same 'rows stay when the step is set'
for step in -1 x 9223372036854775808 1.5; do
	expect "refused: step $step" 2 checkpoint step other -- "$step"
done
expect 'two steps' 2 checkpoint step other 1 2

# -- grow --

expect 'grow' 0 checkpoint grow other items_in=11 --init constant:0.25
rows other items_in --rows :8 >a
rows ck items_in >b
same 'rows that were there stay'
rows other items_in --rows 8: >out
[ "$(tr ' ' '\n' <out | sort -u)" = 0.25 ] && [ "$(wc -l <out)" -eq 3 ] &&
	report ok 'new rows' || report no 'new rows'
rows other items_in/accumulators --rows :8 >a
rows ck items_in/accumulators >b
same 'slots that were there stay'
[ "$(rows other items_in/accumulators --rows 8: | tr ' ' '\n' | sort -u)" = 0.100000001 ] &&
	report ok 'new slots' || report no 'new slots'
for seed in 1 2 1; do
	expect "grow by a seed $seed" 0 checkpoint grow ck items_in=20 --seed $seed -o seed
	rows seed items_in --rows 8: >seed$seed
done
cmp -s seed1 seed2 && report no 'seeds differ' || report ok 'seeds differ'
rows seed items_in --rows 8: >b
cp seed1 a
same 'a seed gives the same rows again'
# Over hosts, of either sharding, the rows are the same ones.
for sharding in div mod; do
	"$embeng" checkpoint reshard ck hosts --hosts 3 --sharding $sharding >/dev/null
	expect "grow over hosts, $sharding" 0 checkpoint grow hosts items_in=20 --seed 1
	rows hosts items_in --rows 8: >a
	same "new rows over hosts, $sharding"
	expect "whole over hosts, $sharding" 0 checkpoint verify hosts
done
for wrong in items_in=7 items_in=0 items_in=x items_in= items_in items=9 =9 \
	items_in=9223372036854775807; do
	expect "refused: grow $wrong" 2 checkpoint grow ck $wrong
done
expect 'nothing to grow' 2 checkpoint grow ck
for init in constant constant: constant:x uniform:1 uniform:2:1 normal:0:-1 constant:nan ones:1 \
	constant:1:2; do
	expect "refused: init $init" 2 checkpoint grow ck items_in=9 --init $init
done

# -- rename --

expect 'rename' 0 checkpoint rename ck items_in=items items_out=with=equals -o named
rows named items >a
rows ck items_in >b
same 'a table under its new name'
rows named with=equals/accumulators >a
rows ck items_out/accumulators >b
same 'a slot under its new name'
expect 'swap' 0 checkpoint rename ck items_in=items_out items_out=items_in -o swapped
rows swapped items_out >a
rows ck items_in >b
same 'tables swap their names'
for wrong in items=x items_in items_in= items_in=items_out '=x'; do
	expect "refused: rename $wrong" 2 checkpoint rename ck "$wrong"
done
expect 'nothing to rename' 2 checkpoint rename ck
expect 'names of rows go along' 0 checkpoint dump swapped items_out --names
says out 'names of rows' '^hammer	'

# -- values that are not finite --

python3 - <<'END'
import random

draw = random.Random(2)
with open("wild.txt", "w") as out:
    for b in range(1500):
        print(*["it%d" % (draw.randrange(5) * 20 + draw.randrange(20)) for k in range(5)], file=out)
END
"$embeng" train wild.txt --optimizer momentum --learning-rate 1 --epochs 4 --save wild >out 2>err
if [ -e wild/index.json ]; then
	expect 'the checkpoint of a run that diverged is finite' 0 checkpoint verify wild
else
	report ok 'a run that diverged at once saved nothing'
fi

# -- deltas --

cp -r "$golden/checkpoint-delta" chain
chmod -R u+w chain
for table in users words/é fixed users/accumulators; do
	rows "$golden/checkpoint-shared" "$table" >"whole-$(echo "$table" | tr / _)"
done
# like DIR NAME: all of its rows are those of the full checkpoint
like()
{
	for table in users words/é fixed users/accumulators; do
		rows "$1" "$table" >a
		cp "whole-$(echo "$table" | tr / _)" b
		same "$2: $table"
	done
}
like chain 'rows under deltas'
expect 'deltas are shown' 0 checkpoint ls chain
says out 'two deltas' 'a full checkpoint and 2 deltas'
expect 'deltas, JSON' 0 checkpoint list chain --json
document 'deltas, document' 'd["checkpoints"][0]["deltas"] == 2'
expect 'deltas are whole' 0 checkpoint verify chain
expect 'deltas are served' 0 checkpoint compare chain -d soft:cores=1
expect 'compact elsewhere' 0 checkpoint compact chain -o folded
like folded 'folded elsewhere'
expect 'compact' 0 checkpoint compact chain --keep 1 --json
document 'compact, document' 'd["folded"] == 2 and d["deltas"] == 0 and d["step"] == 2'
like chain 'folded'
expect 'no deltas are left' 0 checkpoint ls chain --json
document 'no deltas are left, document' 'd["deltas"] == 0 and d["files"] == 2'
index=$(cksum <chain/index.json)
expect 'nothing to compact' 0 checkpoint compact chain
[ "$(cksum <chain/index.json)" = "$index" ] && report ok 'it stays as it is' ||
	report no 'it stays as it is'
expect 'compact nothing' 2 checkpoint compact nowhere
expect 'compact two' 2 checkpoint compact chain folded
expect 'resharded' 0 checkpoint reshard "$golden/checkpoint-delta" three --hosts 3
like three 'resharded'

for i in $(seq 3000); do
	echo "a$i b$i c$i a$i"
	echo "a$i b$((i + 1)) c$i"
done >many.txt
expect 'training that saves deltas' 0 train many.txt --min-count 1 --save steps --delta --keep 4 \
	--save-every 1 --max-steps 3 --batch 4 -d soft:cores=1
says out 'the first save is said to be full' '^Saved in full: 18002 rows, .*; no delta, since the folder has no checkpoint$'
says out 'a delta is told' '^Saved delta 2 on the full checkpoint of step 1: [1-9][0-9]* rows, [1-9][0-9.]* '
expect 'deltas of a training' 0 checkpoint list steps --json
document 'deltas of a training, document' 'max(c["deltas"] for c in d["checkpoints"]) >= 2'
expect 'the same without' 0 train many.txt --min-count 1 --save steps2 --save-every 1 --max-steps 3 \
	--batch 4 -d soft:cores=1
for table in items_in items_out items_in/accumulators; do
	rows steps "$table" >a
	rows steps2 "$table" >b
	same "deltas of a training: $table"
done
expect 'a delta goes on' 0 train many.txt --min-count 1 --resume steps --delta --max-steps 2 \
	-d soft:cores=1 --json
document 'a delta goes on, document' 'd["checkpoint"]["deltas"] == d["checkpoint"]["saves"] == 1 and d["checkpoint"]["last_save"]["delta"] == 3 and d["checkpoint"]["last_save"]["base_step"] == 1 and 0 < d["checkpoint"]["last_save"]["rows"] < 18002 and d["checkpoint"]["last_save"]["bytes"] < d["checkpoint"]["bytes"]'
expect 'deltas need a folder' 2 train many.txt --delta
says err 'explained: --delta' 'needs a folder'

finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# `embeng top` and `embeng events` beside a program that trains, in a virtual machine. Speaks TAP.
# usage: tests/vm/run -- tests/vm/top.sh BUILD-FOLDER
set -u

build=$1
source=$(cd "$(dirname "$0")/../.." && pwd)
. "$source/tests/vm/tap.sh"
address=0eb0:00:00.0
function=/sys/bus/pci/devices/$address
faults=/sys/kernel/debug/embeng_emu/0/faults
embeng=$build/runtime/embeng
node=/dev/accel/$(ls "$function/accel")
idle_s=30

# holds FILE EXPRESSION: for the documents d on the lines of a file
holds()
{
	python3 -c 'import json, sys
d = [json.loads(line) for line in open(sys.argv[1])]
ok = eval(sys.argv[2])
if not ok:
    print(json.dumps(d[-1:], indent=1))
sys.exit(not ok)' "$1" "$2"
}

now()
{
	cut -d' ' -f1 /proc/uptime
}

# A program trains while three samples are taken, between two looks at the device's own counts.
watch_training()
{
	seq 1 400 | awk '{ for (i = 0; i < 6; i++) printf "item%d ", ($1 * 7 + i * i * 3) % 97
		print "" }' >"$folder/baskets"
	"$embeng" train "$folder/baskets" -d "$node" --epochs 100000 --min-count 1 --dim 16 \
		--batch 256 >"$folder/train" 2>&1 &
	trainer=$!
	for _ in $(seq 60); do
		[ "$(cat "$function/counters/updates")" -lt 20 ] || break
		sleep 1
	done
	echo "$(now) $(cat "$function/counters/ids")" >"$folder/begin"
	"$embeng" top --json --batch --count 3 --interval 2 >"$folder/samples"
	echo "$(now) $(cat "$function/counters/ids")" >"$folder/end"
	[ "$(wc -l <"$folder/samples")" -eq 3 ] || { cat "$folder/train" "$folder/samples"; return 1; }
}

# The rates of top are those of the device's counts, within a third.
rates_are_right()
{
	paste "$folder/begin" "$folder/end" | awk '{ print ($4 - $2) / ($3 - $1) }' >"$folder/rate"
	echo "ids a second by the device: $(cat "$folder/rate")"
	rate=$(cat "$folder/rate")
	holds "$folder/samples" "all($rate * 0.67 < s['devices'][0]['per_second']['ids'] < $rate * 1.5 for s in d)"
}

# corrects NUMBER: the emulator corrects an error of the table memory, which takes some time
corrects()
{
	echo 1 >"$faults/ecc_correctable/count"
	for _ in $(seq 100); do
		[ "$(cat "$function/counters/ecc_correctable")" -ge "$1" ] && return
		sleep 0.1
	done
	return 1
}

counts_an_error()
{
	"$embeng" top --json --batch --count 1 --interval 0.1 >"$folder/sound" || return 1
	before=$(cat "$function/counters/ecc_correctable")
	corrects $((before + 1)) || return 1
	"$embeng" top --json --batch --count 1 --interval 0.1 >"$folder/faulty" &&
		holds "$folder/sound" "d[0]['devices'][0]['counts']['ecc_correctable'] == $before" &&
		holds "$folder/faulty" "d[0]['devices'][0]['counts']['ecc_correctable'] == $before + 1"
}

# told PATTERN: the follower comes to tell it
told()
{
	for _ in $(seq 100); do
		grep -q -e "$1" "$folder/followed" && return
		sleep 0.1
	done
	cat "$folder/followed"
	return 1
}

follows()
{
	"$embeng" events -d "$node" --follow --json >"$folder/followed" 2>"$folder/warned" &
	follower=$!
	told '"name": "BOOT"' && before=$(cat "$function/counters/ecc_correctable") &&
		corrects $((before + 1)) && told '"name": "ECC_CORRECTABLE"'
}

tells_resets()
{
	"$embeng" reset -d "$node" && told '"source": "driver", "event": .*"rung": "engine", "cause": "request"' &&
		told '"name": "RESET"' &&
		holds "$folder/followed" "(lambda n: n == sorted(set(n)))([e['event']['number'] for e in d if e['source'] == 'device'])"
}

# ticks PID: hundredths of a second of processor time
ticks()
{
	awk '{ print $14 + $15 }' "/proc/$1/stat"
}

# costs_little ARGUMENT...: under 1 % of a processor, which is a tick in a second
costs_little()
{
	"$embeng" "$@" >/dev/null &
	watcher=$!
	sleep 5 # to start is not to watch
	before=$(ticks $watcher)
	sleep $idle_s
	spent=$(($(ticks $watcher) - before))
	kill $watcher
	echo "$spent hundredths of a second in $idle_s s"
	[ $spent -lt $idle_s ]
}

check 'a program trains and is watched' watch_training
check 'a context with its program' holds "$folder/samples" \
	"all([(c['pid'], c['program'], c['device']) for c in s['contexts']] == [($trainer, 'embeng', '$address')] for s in d)"
check 'ids a second are those of the device' rates_are_right
check 'all of them are of this context' holds "$folder/samples" \
	"all(0.67 < s['contexts'][0]['per_second']['ids'] / s['devices'][0]['per_second']['ids'] < 1.5 for s in d)"
check 'rows are updated' holds "$folder/samples" \
	"d[-1]['contexts'][0]['per_second']['unique_rows'] > 0 and d[-1]['devices'][0]['per_second']['updates'] > 0"
check 'the device works, and for this context' holds "$folder/samples" \
	"all(0 < s['devices'][0]['busy'] <= 1 and 0 < s['contexts'][0]['busy'] for s in d)"
check 'stalls of the device are the sum of their causes' holds "$folder/samples" \
	"(lambda c: abs(c['waits'] - sum(c['waits_' + w] for w in ('lookup', 'update', 'queue', 'space'))) <= 10 + c['waits'] / 50)(d[-1]['devices'][0]['counts'])"
check 'queues by their kind' holds "$folder/samples" \
	"{'input', 'gradient', 'transfer'} <= {q['kind'] for q in d[-1]['contexts'][0]['queue_list']} and len(d[-1]['contexts'][0]['queue_list']) == d[-1]['contexts'][0]['counts']['queues']"
check 'memory, temperature and power' holds "$folder/samples" \
	"(lambda v: 0 < v['table_memory_used'] < v['table_memory_total'] and 20000 < v['temperature_mc'] < v['temperature_limit_mc'] and v['power_uw'] > 0)(d[-1]['devices'][0])"
check 'an error of the memory is counted' counts_an_error
check 'watching a device that works costs little' costs_little top --batch
check 'events are followed' follows
check 'and resets with their cause' tells_resets
# The reset has taken its tables away.
wait $trainer 2>/dev/null
check 'watching an idle device costs little' costs_little top --batch
check 'following events costs little' costs_little events -d "$node" --follow
kill $follower
"$embeng" events -d "$node" >"$folder/words"
check 'the log in words' grep -E '^ +[0-9]+  [0-9.]+  BOOT +the firmware runs, version [0-9.]+ build [0-9]+$' "$folder/words"

finish

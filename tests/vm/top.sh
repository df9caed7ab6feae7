#!/bin/sh
# SPDX-License-Identifier: MIT
# `embeng top` and `embeng events` beside programs that train, in a virtual machine. Speaks TAP.
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
watched_s=20

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

# The rates of top are what the device counted in its seconds, which are those of the two looks. How fast
# the device is from one second to the next depends on the host.
rates_are_right()
{
	read -r since first <"$folder/begin" && read -r until last <"$folder/end" || return 1
	echo "$first ids of the device at $since s, $last at $until s"
	holds "$folder/samples" "all($first <= s['devices'][0]['counts']['ids'] <= $last for s in d) and 5.9 < sum(s['seconds'] for s in d) < $until - $since + 0.1" &&
		holds "$folder/samples" "all(abs(n['per_second']['ids'] * b['seconds'] / (n['counts']['ids'] - m['counts']['ids']) - 1) < 0.001 for a, b in zip(d, d[1:]) for m, n in [(a['devices'][0], b['devices'][0])])"
}

# The contexts with all that they have, as the driver lists them for root. How often the device
# reported a queue and counted an event is not part of it.
objects()
{
	sed 's/ events [0-9]*$//; s/ report [0-9]*//' "/sys/kernel/debug/accel/$address/contexts"
}

# Their queues alone, without the indices that move while a program trains.
queues()
{
	objects | sed 's/ sq_tail.*//; s/ regions .*//'
}

refused()
{
	cat "$function/counters/errors_program"
}

# The context of the program that trains is asked three times, and the program trains on.
asks_while_it_trains()
{
	queues >"$folder/before"
	errors=$(refused)
	"$embeng" top --json --hot --batch --count 3 --interval 1 >"$folder/asked" || return 1
	queues >"$folder/after"
	[ "$(refused)" -eq "$errors" ] || return 1
	updates=$(cat "$function/counters/updates")
	sleep 2
	kill -0 $trainer && [ "$(cat "$function/counters/updates")" -gt "$updates" ] &&
		grep -q ' queue ' "$folder/before" && diff "$folder/before" "$folder/after"
}

# hot_program STEPS [COMMAND...]: a program with known hot rows has trained, and waits
hot_program()
{
	steps=$1
	shift
	rm -f "$folder/go"
	mkfifo "$folder/go"
	"$@" "$build/tests/vm/vm-hot_rows" "$steps" <"$folder/go" >"$folder/hot" 2>&1 &
	hot=$!
	exec 3>"$folder/go"
	for _ in $(seq 300); do
		! grep -q trained "$folder/hot" || return 0
		sleep 0.1
	done
	cat "$folder/hot"
	return 1
}

# It trains on, and its hottest row is what all of its steps make of it.
hot_program_goes_on()
{
	echo go >&3
	exec 3>&-
	wait $hot
	status=$?
	cat "$folder/hot"
	return $status
}

# nobody COMMAND...: by a user without rights
nobody()
{
	setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
}

# scope NUMBER: Yama lets a user trace all of its processes (0) or only those that it started (1)
scope()
{
	[ ! -e /proc/sys/kernel/yama/ptrace_scope ] || echo "$1" >/proc/sys/kernel/yama/ptrace_scope
}

# The same user may still read the files of the program, and sees its context.
is_denied_by_yama()
{
	[ -e /proc/sys/kernel/yama/ptrace_scope ] || { echo 'a kernel without Yama denies nothing'; return; }
	scope 1
	its_reason 'right to trace that program: run this as root' nobody
	status=$?
	scope 0
	return $status
}

# A look is interrupted at several moments, some of them while it has a queue of the program.
is_interrupted()
{
	for seconds in 0.9 1.23 1.41 1.58 1.77 1.94 2.15; do
		timeout -s INT $seconds "$embeng" top --json --hot --batch --interval 0.1 >"$folder/cut"
		[ $? -eq 124 ] || return 1
		objects | diff "$folder/before" - || return 1
	done
	holds "$folder/cut" "any(c['hot'] and c['hot']['tables'] for s in d for c in s['contexts'])"
}

# look COMMAND...: one document with hot rows, by embeng behind a command such as nobody
look()
{
	"$@" "$embeng" top --json --hot --batch --count 1 --interval 0.1 >"$folder/look"
}

looks_into_a_known_program()
{
	hot_program 100 && objects >"$folder/before" && errors=$(refused) && look env &&
		objects >"$folder/after"
}

says_nothing_to_others()
{
	nobody_errors=$(refused)
	look nobody && [ "$(refused)" -eq "$nobody_errors" ] &&
		holds "$folder/look" "d[0]['contexts'] == [] and d[0]['hidden_processes'] > 0"
}

# its_reason PATTERN COMMAND...: a look by COMMAND succeeds, and there is a sentence instead of rows
its_reason()
{
	pattern=$1
	shift
	look "$@" && holds "$folder/look" \
		"[(bool(__import__('re').search('$pattern', c['hot']['reason'])), c['hot']['tables']) for c in d[0]['contexts']] == [(True, [])]"
}

# A file of the device, which gets a context at the first line of input, and all queues at the second.
empty_program()
{
	rm -f "$folder/go"
	mkfifo "$folder/go"
	python3 -c 'import errno, fcntl, os, struct, sys
node = os.open(sys.argv[1], os.O_RDWR)
print("opened", flush=True)
sys.stdin.readline()
fcntl.ioctl(node, 0x40106444, bytes(16))
print("made", flush=True)
sys.stdin.readline()
queue = struct.pack("8I", 4, 0, 0, 0, 4, 4, 0, 0) + bytes(72)
try:
    while True:
        fcntl.ioctl(node, 0xc0686447, bytearray(queue))
except OSError as error:
    print("full", errno.errorcode[error.errno], flush=True)
sys.stdin.readline()' "$node" <"$folder/go" >"$folder/empty" 2>&1 &
	empty=$!
	exec 3>"$folder/go"
	empty_comes_to opened
}

empty_comes_to()
{
	for _ in $(seq 100); do
		! grep -q "$1" "$folder/empty" || return 0
		sleep 0.1
	done
	cat "$folder/empty"
	return 1
}

has_no_context()
{
	empty_program && its_reason 'has not made its context' env
}

has_no_model()
{
	echo next >&3
	empty_comes_to made && its_reason 'has loaded no model' env
}

has_no_free_queue()
{
	echo next >&3
	empty_comes_to 'full ENOSPC' && its_reason 'refuses a queue: No space left' env
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

# Works once a second for as long as the virtual machine's processor has 1 % of one, where its host has
# nothing else to do. On a busy host the virtual machine's clock goes on while it stands still, and what
# a process seems to take of a processor grows as that of this one does.
one_percent()
{
	exec python3 -c 'import time
while True:
    for _ in range(30000): pass
    time.sleep(1)'
}

# costs_little PERCENT ARGUMENT...: embeng takes less of a processor than that
costs_little()
{
	percent=$1
	shift
	"$embeng" "$@" >/dev/null &
	watcher=$!
	one_percent &
	measure=$!
	sleep 5 # to start is not to watch
	spent=$(ticks $watcher) unit=$(ticks $measure)
	sleep $watched_s
	spent=$(($(ticks $watcher) - spent)) unit=$(($(ticks $measure) - unit))
	kill $measure
	echo "$*: $spent hundredths of a second in $watched_s s, of which 1 % were $unit" | tee -a "$folder/costs"
	kill $watcher && [ $unit -gt 0 ] && [ $spent -lt $((percent * unit)) ]
}

# clocks EXPRESSION: for the clock and its limit in a new sample
clocks()
{
	"$embeng" top --json --batch --count 1 --interval 0.1 >"$folder/clocks" &&
		holds "$folder/clocks" "[d[0]['devices'][0][k] for k in ('clock_hz', 'clock_limit_hz')] == $1"
}

# The driver is bound to a device of which the registers of clocks are 0.
has_no_clock()
{
	echo 0 >/sys/kernel/debug/embeng_emu/0/thermal/full_khz
	echo $address >/sys/bus/pci/drivers/embeng/unbind
	echo $address >/sys/bus/pci/drivers/embeng/bind
	clocks '[None, None]' && [ -e "$function/busy_time_ns" ] && [ ! -e "$function/clock_hz" ] &&
		[ ! -e "$function/clock_limit_hz" ]
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
check 'and the clock, of the highest that the device has' holds "$folder/samples" \
	"all(300e6 <= v['clock_hz'] <= v['clock_limit_hz'] == 10**9 for s in d for v in [s['devices'][0]]) and any(s['devices'][0]['clock_hz'] > 300e6 for s in d)"
check 'its context is asked while it trains, and keeps what it had' asks_while_it_trains
check 'ids a second of its tables, from the second look on' holds "$folder/asked" \
	"[[t['ids_per_second'] is not None and t['ids_per_second'] > 0 for t in s['contexts'][0]['hot']['tables']] for s in d] == [[False] * n, [True] * n, [True] * n] if (n := d[0]['contexts'][0]['hot']['table_count']) else False"
check 'hottest tables and rows are first' holds "$folder/asked" \
	"all(t == sorted(t, reverse=True) and r == sorted(r, reverse=True) and r for s in d[1:] for h in [s['contexts'][0]['hot']['tables']] for t in [[x['ids_per_second'] for x in h]] for r in [[y['count'] for y in x['rows']] for x in h][:1])"
check 'its documents keep to their schema' /usr/bin/python3 "$source/tests/cli/schemas.py" "$folder/asked"
check 'without --hot nobody is asked' holds "$folder/samples" "all(s['contexts'][0]['hot'] is None for s in d)"
check 'an error of the memory is counted' counts_an_error
check 'watching a device that works costs little' costs_little 1 top --batch
check 'with its hottest rows, too' costs_little 2 top --hot --batch
check 'events are followed' follows
check 'and resets with their cause' tells_resets
# The reset has taken its tables away.
wait $trainer 2>/dev/null
chmod 666 "$node"
scope 0
check 'a program with known hot rows is asked' looks_into_a_known_program
check 'its hottest tables and rows with their counts' holds "$folder/look" \
	"[(h['reason'], h['table_count'], [(t['table'], t['ids'], t['unique_ids'], t['steps'], t['hot_error'], [(r['row'], r['count']) for r in t['rows']]) for t in h['tables']]) for c in d[0]['contexts'] for h in [c['hot']]] == [(None, 2, [(1, 400, 200, 100, 0, [(41, 300), (5, 100)]), (0, 200, 200, 100, 0, [(1, 100), (3, 100)])])]"
check 'nothing of it is left' diff "$folder/before" "$folder/after"
check 'no command has failed' [ "$(refused)" -eq "$errors" ]
check 'nothing is left of looks that are interrupted' is_interrupted
check 'another user is told nothing' says_nothing_to_others
"$embeng" top --hot --batch --count 1 --interval 0.1 >"$folder/page"
check 'a page names the hottest row of each table' grep -E \
	'^ +1 +- +400  41 \(75 %\), 5 \(25 %\)$' "$folder/page"
check 'the program goes on' hot_program_goes_on
check 'a program of nobody' hot_program 10 nobody
check 'its own user may ask' look nobody
check 'and is told its hottest row' holds "$folder/look" \
	"(lambda t: (t['table'], t['rows'][0]))(d[0]['contexts'][0]['hot']['tables'][0]) == (1, {'row': 41, 'count': 30})"
check 'unless Yama denies it, and top says so' is_denied_by_yama
"$embeng" reset -d "$node"
check 'a lost context' its_reason 'lost in a reset' env
exec 3>&-
wait $hot 2>/dev/null
check 'no context yet' has_no_context
check 'no model yet' has_no_model
check 'no free queue' has_no_free_queue
exec 3>&-
wait $empty 2>/dev/null
check 'none of this was a failure of a program' [ "$(refused)" -eq "$errors" ]
check 'watching an idle device costs little' costs_little 1 top --batch
check 'following events costs little' costs_little 1 events -d "$node" --follow
kill $follower
"$embeng" events -d "$node" >"$folder/words"
check 'the log in words' grep -E '^ +[0-9]+  [0-9.]+  BOOT +the firmware runs, version [0-9.]+ build [0-9]+$' "$folder/words"
check 'a device that does not tell its clock' has_no_clock
sed 's/^/# /' "$folder/costs"

finish

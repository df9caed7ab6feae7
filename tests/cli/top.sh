#!/bin/sh
# SPDX-License-Identifier: MIT
# What top shows of recorded trees, and how its screen acts on keys. Speaks TAP.
# usage: top.sh EMBENG-COMMAND screen|no-screen; without a screen its keys are left out
set -u

. "$(dirname "$0")/checks.sh"
screen=$2 server=0

# put TREE FILE TEXT: a file of a recorded tree
put()
{
	mkdir -p "$1/$(dirname "$2")"
	printf '%s\n' "$3" >"$1/$2"
}

# device TREE ADDRESS NODE COUNT: a device, whose counts are multiples of COUNT
device()
{
	at=sys/bus/pci/devices/$2
	put "$1" "$at/vendor" 0x0eb0
	put "$1" "$at/device" 0x0001
	ln -sfn ../../../../bus/pci/drivers/embeng "$1/$at/driver"
	mkdir -p "$1/$at/accel/$3"
	put "$1" "$at/current_link_speed" '16.0 GT/s PCIe'
	put "$1" "$at/current_link_width" 8
	put "$1" "$at/firmware_version" 1.2.3.4
	put "$1" "$at/table_memory_total" 268435456
	put "$1" "$at/table_memory_used" 67108864
	put "$1" "$at/readings_age_ms" 0
	put "$1" "$at/cores_busy_ns" "$(($4 * 100000)) $(($4 * 300000))"
	put "$1" "$at/resets/wedged" 0
	for name in queues contexts engines functions; do put "$1" "$at/resets/$name" 0; done
	factor=1
	for name in commands batches updates ids unique_rows bytes_read bytes_written waits \
		waits_lookup waits_update waits_queue waits_space errors_program errors_model \
		errors_device ecc_correctable ecc_uncorrectable; do
		put "$1" "$at/counters/$name" $(($4 * factor))
		factor=$((factor + 1))
	done
	put "$1" "$at/hwmon/hwmon7/temp1_input" 61500
	put "$1" "$at/hwmon/hwmon7/temp1_crit" 95000
	put "$1" "$at/hwmon/hwmon7/power1_input" 12300000
	put "$1" "$at/clock_hz" 849500000
	put "$1" "$at/clock_limit_hz" 1000000000
}

# descriptor TREE PID PROGRAM FD ADDRESS CLIENT BUSY-NS IDS: a process with a device open
descriptor()
{
	put "$1" "proc/$2/comm" "$3"
	mkdir -p "$1/proc/$2/fd"
	ln -sfn /dev/accel/accel0 "$1/proc/$2/fd/$4"
	put "$1" "proc/$2/fdinfo/$4" "pos:	0
drm-driver:	embeng
drm-client-id:	$6
drm-pdev:	$5
drm-total-memory:	5120 KiB
drm-engine-compute:	$7 ns
embeng-context:	3
embeng-queues:	2
embeng-commands:	$8
embeng-ids:	$8
embeng-rows:	0
embeng-waits-lookup:	$8
embeng-waits-update:	0
embeng-waits-queue:	0
embeng-waits-space:	0"
}

# contexts TREE: what the driver tells root of context 3
contexts()
{
	put "$1" sys/kernel/debug/accel/0000:01:00.0/contexts \
'context 3 program train me[812] regions 4 memory 5242880 of 1073741824 events 17
  queue 5 kind 1 mapped sq_tail 17 sq_head 14 cq_head 26 cq_tail 28 report 6 state 1 wait 2 replica 0 step 7
  queue 6 kind 3 validated sq_tail 7 sq_head 7 cq_head 7 cq_tail 7 report 6 state 0 wait 0 replica 0 step 0'
}

a=$folder/a b=$folder/b
device "$a" 0000:01:00.0 accel0 1000
device "$b" 0000:01:00.0 accel0 3000
descriptor "$a" 812 'train me' 4 0000:01:00.0 9 1000000000 100
descriptor "$b" 812 'train me' 4 0000:01:00.0 9 2000000000 500
# The same file in another process and once more in the first, and another file.
for tree in "$a" "$b"; do
	descriptor "$tree" 812 'train me' 5 0000:01:00.0 9 2000000000 500
	descriptor "$tree" 900 worker 3 0000:01:00.0 9 2000000000 500
	descriptor "$tree" 77 other 3 0000:01:00.0 12 0 0
	contexts "$tree"
done
# A descriptor that is no device, and a device of another driver.
ln -sfn /dev/null "$b/proc/812/fd/1"
descriptor "$b" 901 stranger 3 0000:01:00.0 1 0 0
put "$b" proc/901/fdinfo/3 "drm-driver:	amdxdna
drm-client-id:	1
drm-pdev:	0000:01:00.0"

expect 'one recorded tree' 0 top --root "$b"
says out 'devices and contexts are counted' '^embeng top: 1 device, 2 contexts, no rates yet$'
says out 'a device by its address, with its state' '^0000:01:00.0 .* running$'
says out 'counts of errors' '^0000:01:00.0  *39000  *42000  *45000  *48000  *51000 '
expect 'two trees' 0 top --root "$a" --root "$b" --interval 2
says out 'the time between them is the interval' 'rates over 2.00 s$'
says out 'work of the device in a second' \
	'^0000:01:00.0  accel0    20 %   4.00k   5.00k      2.00k    3.00k     6.00k        7.00k    64.0 MiB   256.0 MiB   61.5 C   12.3 W   850 MHz  16.0 GT/s PCIe x8   running$'
says out 'stalls by their cause' '^0000:01:00.0     8.00k   9.00k   10.0k   11.0k   12.0k$'
says out 'a context with its program' \
	'^    812  train me         0000:01:00.0     3   50 %       2     200     200       0     5.0 MiB       200  update$'
says out 'the busiest context is first' '^    812'
[ "$(grep -nE '^ +(812|77) ' "$folder/out" | cut -d: -f2 | tr -s ' ' | cut -d' ' -f2 | tr '\n' ' ')" = '812 77 ' ] &&
	report ok 'contexts in the order of their work' || report no 'contexts in the order of their work'
expect 'sorted by process' 0 top --root "$a" --root "$b" --sort pid
[ "$(grep -nE '^ +(812|77) ' "$folder/out" | cut -d: -f2 | tr -s ' ' | cut -d' ' -f2 | tr '\n' ' ')" = '77 812 ' ] &&
	report ok 'in the order of processes' || report no 'in the order of processes'

# The emulator's bus is none of PCI Express.
cp -a "$b" "$folder/bus"
put "$folder/bus" sys/bus/pci/devices/0000:01:00.0/current_link_speed Unknown
put "$folder/bus" sys/bus/pci/devices/0000:01:00.0/current_link_width 0
expect 'a bus without links' 0 top --root "$folder/bus"
says out 'has none to show' '12.3 W   850 MHz  -  *running$'

# A driver that has no files of clocks, and a device that stopped telling its clock.
cp -a "$b" "$folder/clock"
rm "$folder/clock/sys/bus/pci/devices/0000:01:00.0/clock_hz" \
	"$folder/clock/sys/bus/pci/devices/0000:01:00.0/clock_limit_hz"
expect 'a driver without clocks' 0 top --root "$folder/clock"
says out 'shows none' '12.3 W         -  16.0 GT'
put "$folder/clock" sys/bus/pci/devices/0000:01:00.0/clock_hz 0
put "$folder/clock" sys/bus/pci/devices/0000:01:00.0/clock_limit_hz 0
expect 'a device that does not tell its clock' 0 top --json --root "$folder/clock"
says out 'has null for it' '"clock_hz": *null'
says out 'and for its limit' '"clock_limit_hz": *null'
expect 'a bus without links, for scripts' 0 top --root "$folder/bus" --json
document 'has none either' '[v["link"] for v in d["devices"]] == [""]'

expect 'for scripts' 0 top --root "$a" --root "$b" --json
document 'a device' '(lambda v: (v["address"], v["node"], v["state"], v["link"], v["firmware"], v["cores"]) == ("0000:01:00.0", "accel0", "running", "16.0 GT/s PCIe x8", "1.2.3.4", 2))(d["devices"][0])'
document 'its rates' '(lambda r: (r["commands"], r["ids"], r["waits_space"], r["resets_engine"]) == (1000, 4000, 12000, 0))(d["devices"][0]["per_second"])'
document 'its counts' '(lambda c: (c["commands"], c["errors_device"]) == (3000, 45000))(d["devices"][0]["counts"])'
document 'its gauges' '(lambda v: (v["temperature_mc"], v["temperature_limit_mc"], v["power_uw"], v["table_memory_used"], v["table_memory_total"]) == (61500, 95000, 12300000, 67108864, 268435456))(d["devices"][0])'
document 'cores that worked 0.2 and 0.6 s of 2 s' 'abs(d["devices"][0]["busy"] - 0.2) < 1e-9'
document 'descriptors of one file are one context' \
	'[(c["pid"], c["program"], c["client"], c["processes"], c["descriptors"]) for c in d["contexts"]] == [(812, "train me", 9, 2, 3), (77, "other", 12, 1, 1)]'
document 'work for a context' '(lambda c: (c["busy"], c["per_second"]["ids"], c["waits_per_second"], c["counts"]["memory"]) == (0.5, 200, 200, 5242880))(d["contexts"][0])'
document 'nobody was asked for hot rows' '[c["hot"] for c in d["contexts"]] == [None, None]'
document 'its queues' '[(q["queue"], q["kind"], q["path"], q["pending"], q["waits_for"], q["step"]) for q in d["contexts"][0]["queue_list"]] == [(5, "input", "mapped", 3, "update", 7), (6, "gradient", "validated", 0, "nothing", 0)]'
expect 'a document for each sample' 0 top --batch --json --root "$a" --root "$b" --root "$b"
python3 -c 'import json, sys
rates = [json.loads(line)["devices"][0]["per_second"]["ids"] for line in open(sys.argv[1])]
sys.exit(rates != [4000, 0])' "$folder/out" 2>>"$folder/err" &&
	report ok 'a document on each line' || report no 'a document on each line'
expect 'no more than asked for' 0 top --batch --json --count 1 --root "$a" --root "$b" --root "$b"
[ "$(wc -l <"$folder/out")" -eq 1 ] && report ok 'one line' || report no 'one line'

# A device that is being reset, then a driver that was bound anew, then a device that has gone.
c=$folder/c d=$folder/d e=$folder/e
device "$c" 0000:01:00.0 accel0 4000
put "$c" sys/bus/pci/devices/0000:01:00.0/readings_age_ms 1500
device "$d" 0000:01:00.0 accel0 10
device "$e" 0000:02:00.0 accel1 10
expect 'a reset' 0 top --root "$b" --root "$c"
says out 'how long it was not read' 'not read for 1.5 s$'
expect 'a reset, document' 0 top --json --root "$b" --root "$c"
document 'no rate during a reset' 'd["devices"][0]["per_second"]["ids"] is None and d["devices"][0]["counts"]["ids"] == 16000'
expect 'bound anew' 0 top --json --root "$c" --root "$d"
document 'no rate of a count that began anew' 'd["devices"][0]["per_second"]["ids"] is None and d["devices"][0]["busy"] is None'
expect 'another device' 0 top --json --root "$d" --root "$e"
document 'no rate of a new device' '[(v["address"], v["per_second"]["ids"]) for v in d["devices"]] == [("0000:02:00.0", None)]'
put "$e" sys/bus/pci/devices/0000:02:00.0/resets/wedged 1
expect 'a wedged device' 0 top --root "$e"
says out 'it is wedged' 'wedged$'

device "$e" 0000:01:00.0 accel0 10
rm -r "$e/sys/bus/pci/devices/0000:02:00.0/driver" "$e/sys/bus/pci/devices/0000:02:00.0/hwmon"
expect 'one of two devices, by its node' 0 top --root "$e" --json -d accel0
document 'this one alone' '[v["address"] for v in d["devices"]] == ["0000:01:00.0"]'
expect 'one of two devices, by its address' 0 top --root "$e" --json -d pci:0000:02:00.0
document 'it has no driver' '(lambda v: (v["state"], v["temperature_mc"], v["counts"]["ids"], v["busy"]) == ("no driver", None, None, None))(d["devices"][0])'
document 'queues are not known' 'd["contexts"] == []'
expect 'no such device' 6 top --root "$e" -d 0000:03:00.0 --json
document 'no such device, document' 'd["schema"] == "embeng.top/1" and d["error"]["code"] == 6'
expect 'no such tree' 2 top --root "$folder/nothing"
mkdir "$folder/empty"
expect 'a machine without devices' 0 top --root "$folder/empty"
says out 'no device is said' 'no engine on the PCI bus'
expect 'an interval that is none' 2 top --interval 0
says err 'intervals are told' 'from 0.1 to 3600'
expect 'no count' 2 top --count 0
expect 'no order' 2 top --sort heat
says err 'orders are told' 'busy, commands, ids, rows, memory, stalls or pid'
expect 'an argument' 2 top x
expect 'hot rows of a recorded tree' 2 top --hot --root "$a"
says err 'nobody can be asked' 'hot asks running programs'
expect 'this machine' 0 top --count 2 --interval 0.1
expect 'this machine with hot rows' 0 top --hot --json

# page NAME PATTERN: what the terminal shows comes to have a line like it
page()
{
	for _ in $(seq 100); do
		tmux -S "$folder/tmux.$server" capture-pane -p >"$folder/out" 2>"$folder/err"
		grep -q -e "$2" "$folder/out" && report ok "$1" && return
		sleep 0.1
	done
	report no "$1"
}

press()
{
	tmux -S "$folder/tmux.$server" send-keys "$@"
}

# start WIDTH HEIGHT ARGUMENT...: top in a terminal of this size, which stays when top ends. A server
# that is told to end takes a while, so that the next one has a name of its own.
start()
{
	width=$1 height=$2 server=$((server + 1))
	shift 2
	tmux -S "$folder/tmux.$server" -f /dev/null new-session -d -x "$width" -y "$height" \
		"TERM=screen $embeng top $*; echo ended with \$?; exec sleep 100"
}

stop()
{
	tmux -S "$folder/tmux.$server" kill-server
}

on_screen()
{
	start 132 40 --root "$a" --root "$b" --root "$b" --interval 3600
	page 'the first page' 'embeng top: 1 device, 2 contexts'
	page 'the devices' '^0000:01:00.0 .* running'
	page 'the keys' 'q quit  h help  s sort: busy'
	press s
	page 'the next order' 'sort: commands'
	press d
	page 'one device' 'd device: 0000:01:00.0'
	press d
	page 'all devices again' 'd device: all'
	press -- -
	page 'a shorter interval' 'every 1.8e+03 s'
	press h
	page 'help' '^keys of embeng top'
	press q
	page 'back from help' 'contexts by commands'
	press Down Enter
	page 'into the first context' '^context of .*, process [0-9]*, on 0000:01:00.0'
	page 'its queues' '^5  *input  *mapped  *3  *update'
	page 'nobody can be asked for its hot rows' '^Only running programs can be asked'
	press q
	page 'back from the context' 'contexts by commands'
	tmux -S "$folder/tmux.$server" resize-window -x 60 -y 14
	page 'a narrow terminal has fewer columns' '^ *PID  PROGRAM  *BUSY  *IDS/S  *ROWS/S  *MEMORY$'
		[ "$(awk '{ if (length($0) > 60) print }' "$folder/out" | wc -l)" -eq 0 ] &&
		report ok 'no line is broken' || report no 'no line is broken'
	press Down Down
	page 'the chosen context is scrolled to' '^ *[0-9]*  *\(other\|train me\)'
	tmux -S "$folder/tmux.$server" resize-window -x 132 -y 40
	page 'a wide terminal has more again' '^DEVICE .* POWER  *CLOCK  STATE$'
	press q
	page 'the end' '^ended with 0'
	stop
	start 80 24 --root "$a" --root "$b" --interval 0.1
	page 'the next sample has rates' 'rates over 0.10 s'
	stop
}

if [ "$screen" = screen ]; then
	on_screen
fi

finish

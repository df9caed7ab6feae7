#!/bin/sh
# SPDX-License-Identifier: MIT
# embeng trace, on a trace that is written here as the kernel writes one, on folders that stand for
# tracefs, and on what the library records. tests/vm/tools.sh traces the driver. Speaks TAP.
# usage: trace.sh EMBENG-COMMAND
set -u

. "$(dirname "$0")/checks.sh"
root=$(cd "$scripts/../.." && pwd)

case $embeng in /*) ;; *) embeng=$PWD/$embeng ;; esac
cd "$folder" || exit 1

# The device's clock is 10 s behind; it notices nothing faster than by 5 us.
cat >trace.txt <<'END'
# tracer: nop
#
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
CPU:0 [LOST 17 EVENTS]
         train-7       [000] d..1.    20.000100: embeng_submit: context=1 queue=2 index=0 count=2
         train-7       [000] d..1.    20.000100: embeng_command: context=1 queue=2 kind=1 index=0 opcode=2 cookie=0x5 step=4 after=0
         train-7       [000] d..1.    20.000101: embeng_command: context=1 queue=2 kind=1 index=1 opcode=2 cookie=0x6 step=5 after=0
         train-7       [000] d..1.    20.000150: embeng_submit_take: context=1 queue=2 index=0 count=2
 x: embeng_y: z-8      [001] d..1.    20.000160: embeng_submit: context=1 queue=3 index=9 count=1
 x: embeng_y: z-8      [001] d..1.    20.000160: embeng_command: context=1 queue=3 kind=3 index=9 opcode=3 cookie=0x7 step=4 after=0
          <idle>-0     [001] d.h1.    20.000205: embeng_complete: context=1 queue=2 cookie=0x5 status=0 flags=1 index=0 step=4 device_ns=10000200000
          <idle>-0     [001] d.h1.    20.000320: embeng_complete: context=1 queue=2 cookie=0x5 status=0 flags=2 index=0 step=4 device_ns=10000300000
          <idle>-0     [001] d.h1.    20.000330: embeng_submit_take: context=1 queue=3 index=9 count=1
          <idle>-0     [001] d.h1.    20.000400: embeng_complete: context=1 queue=2 cookie=0x6 status=0 flags=1 index=1 step=5 device_ns=10000390000
          <idle>-0     [001] d.h1.    20.000500: embeng_complete: context=1 queue=3 cookie=0x7 status=18 flags=2 index=9 step=4 device_ns=10000480000
          <idle>-0     [001] d.h1.    20.000501: embeng_complete: context=1 queue=4 cookie=0x8 status=0 flags=2 index=3 step=1 device_ns=10000480000
          <idle>-0     [001] d.h1.    20.000502: embeng_event: context=1 queue=3 cq_tail=1 report=2
          <idle>-0     [001] d.h1.    20.000503: embeng_complete: context=one
          <idle>-0     [001] d.h1.    20.000504: other_event: context=1
END

expect 'show' 0 trace show trace.txt
says out 'the step and its length' '^context 1, step 4: 400\.0 us, from 20\.000100 s on$'
says out 'a lookup, stage by stage' '^  LOOKUP  *input  *2 #0  *+0\.0  *50\.0  *55\.0  *100\.0  *15\.0  *220\.0  OK$'
says out 'an update has no accept' '^  UPDATE  *gradient  *3 #9  *+60\.0  *170\.0  *-  *155\.0  *15\.0  *340\.0  '
says out 'what is left over' '^12 events, 3 commands, 1 not finished; 1 completions without a command, 17 events lost, 1 lines unreadable$'
expect 'show, for scripts' 0 trace show trace.txt --json
document 'times add up' 'all(c["completed_ns"] - c["submitted_ns"] == sum(v or 0 for v in c["stage_ns"].values()) for s in d["steps"] for c in s["commands"])'
document 'the step' '[(s["context"], s["step"], s["begin_ns"], s["end_ns"], len(s["commands"])) for s in d["steps"]] == [(1, 4, 20000100000, 20000500000, 2)]'
document 'the stages' '[c["stage_ns"] for c in d["steps"][0]["commands"]] == [{"wait": 50000, "accept": 55000, "run": 100000, "notice": 15000}, {"wait": 170000, "accept": None, "run": 155000, "notice": 15000}]'
document 'what is left over, too' '(d["unfinished"], d["strange"], d["lost"], d["unreadable"]) == (1, 1, 17, 1)'
expect 'a step' 0 trace show trace.txt --step 4 --json
document 'is shown alone' '[s["step"] for s in d["steps"]] == [4]'
expect 'a step that is not finished' 0 trace show trace.txt --step 5 --json
document 'has no times' 'd["steps"] == []'

expect 'for Perfetto' 0 trace show trace.txt --chrome steps.json --json
document 'says where' 'd["chrome"] == "steps.json"'
cat >nests.py <<'END'
import json
import sys
document = json.load(open(sys.argv[1]))
assert set(document) == {"displayTimeUnit", "traceEvents"}, document.keys()
spans, open_spans = {}, {}
for e in document["traceEvents"]:
    assert {"ph", "name", "pid", "tid", "ts"} <= set(e), e
    assert e["ph"] in "Mbe", e
    if e["ph"] == "M":
        assert e["name"] in ("process_name", "thread_name") and e["args"]["name"], e
        continue
    stack = open_spans.setdefault((e["cat"], e["id"]), [])
    if e["ph"] == "b":
        assert not stack or stack[-1]["ts"] <= e["ts"], e
        stack.append(e)
    else:
        begin = stack.pop()
        assert begin["name"] == e["name"] and begin["ts"] <= e["ts"], (begin, e)
        spans.setdefault(e["id"], []).append((e["name"], round((e["ts"] - begin["ts"]) * 1000)))
assert not any(open_spans.values()), open_spans
for name, found in spans.items():
    assert found[-1][1] == sum(ns for _, ns in found[:-1]), (name, found)
print(json.dumps(spans))
END
python3 nests.py steps.json >out 2>err && report ok 'spans nest, and stages add up to their command' ||
	report no 'spans nest, and stages add up to their command'
document 'and have the times of the text' 'd == {"1.2.0": [["wait", 50000], ["accept", 55000], ["run", 100000], ["notice", 15000], ["LOOKUP 4", 220000]], "1.3.9": [["wait", 170000], ["run", 155000], ["notice", 15000], ["UPDATE 4", 340000]]}'

expect 'no file' 2 trace show nowhere.txt
says err 'is named' 'nowhere.txt: No such file'
: >empty.txt
expect 'an empty file' 0 trace show empty.txt
says out 'has nothing' '^0 events, 0 commands, 0 not finished$'
says err 'and a person is told what tells of a file' 'empty.txt has no events of commands; .embeng decode. '
sed 's/$/\r/' trace.txt >crlf.txt
"$embeng" trace show trace.txt >plain
expect 'lines that end as on another system' 0 trace show crlf.txt
cmp plain out >&2 && report ok 'and say the same' || report no 'and say the same'
expect 'binary' 0 trace show "$embeng" --json
expect 'no step' 2 trace show trace.txt --step 0
expect 'two files' 2 trace show a b
expect 'a place that is not there' 2 trace show trace.txt --chrome nowhere/x.json
says err 'is named, too' 'nowhere/x.json: No such file'

# -- recording, with folders in place of tracefs --

expect 'a soft device' 3 trace start -d soft
says err 'is not traced' 'in software: no driver sees its commands'
says err 'but can be recorded' 'embeng trace run -- PROGRAM'
mkdir tree
expect 'no tracefs' 3 trace start --root tree
says err 'is said with the remedy' 'mount -t tracefs'
mkdir -p tree/sys/kernel/tracing/events
expect 'no driver' 9 trace start --root tree
says err 'is said, too' 'modprobe embeng'
expect 'nothing was recorded' 2 trace show --root tree
says err 'is said, three' 'nothing was recorded'
at=tree/sys/kernel/tracing/instances/embeng
mkdir -p tree/sys/kernel/tracing/events/embeng $at/events/embeng
cp trace.txt $at/trace
for file in tracing_on trace_clock events/embeng/enable; do
	: >$at/$file
done
expect 'start' 0 trace start --root tree --json
document 'is recording' 'd["recording"] and d["command"] == "start"'
[ "$(cat $at/trace_clock $at/tracing_on $at/events/embeng/enable | tr '\n' ' ')" = 'mono 1 1 ' ] &&
	report ok 'the instance records by the monotonic clock' ||
	report no 'the instance records by the monotonic clock'
[ ! -s $at/trace ] && report ok 'an earlier trace is gone' || report no 'an earlier trace is gone'
cp trace.txt $at/trace
expect 'stop' 0 trace stop --root tree
[ "$(cat $at/events/embeng/enable)" = 0 ] && report ok 'it stops' || report no 'it stops'
expect 'show what was recorded' 0 trace show --root tree --json
document 'is the same' 'd["commands"] == 3'
expect 'an argument too many' 2 trace stop x --root tree

# -- the library's record; two vectors, each of which opens an engine, are the program --

set -- "$embeng" conform -d soft "$root/tests/vectors/train/hot_row_sgd.json" \
	"$root/tests/vectors/train/dynamic_rates.json"

expect 'run' 0 trace run --step 1 -- "$@"
says out 'shows what the program prints' '^ok 1 '
says out 'and its steps' '^context 1, step 1: '
says out 'a lookup' '^  LOOKUP  *input  *[0-9]* #0  *+0\.0 .*  OK$'
says out 'an update' '^  UPDATE  *gradient  *[0-9]* #0 .*  OK$'
expect 'run, for scripts' 0 trace run --json -o kept.trace --chrome steps.json -- "$@"
says err 'leaves stdout to the document' '^ok 1 '
document 'the program' "d['command'] == 'run' and d['program'][1:3] == ['conform', '-d'] and d['exit_status'] == 0"
document 'times add up' 'all(c["completed_ns"] - c["submitted_ns"] == sum(v or 0 for v in c["stage_ns"].values()) for s in d["steps"] for c in s["commands"])'
document 'every command is seen to its end' '(d["unfinished"], d["strange"], d["lost"], d["unreadable"]) == (0, 0, 0, 0)'
document 'each step of each context has one lookup and one update' 'all(sorted(c["command"] for c in s["commands"]) == ["LOOKUP", "UPDATE"] for s in d["steps"] if s["step"]) and [s["context"] for s in d["steps"] if s["step"] == 1] == [1, 2]'
document 'a lookup is accepted, an update is not' 'all((c["stage_ns"]["accept"] is not None) == (c["command"] == "LOOKUP") for s in d["steps"] for c in s["commands"])'
cp out run.json
expect 'a record that was kept' 0 trace show kept.trace --json
document 'is the same' 'd["steps"] == json.load(open("run.json"))["steps"]'
python3 nests.py steps.json >out 2>err && report ok 'its spans nest' || report no 'its spans nest'
expect 'a record is decoded, too' 0 decode kept.trace
says out 'in words' 'LOOKUP'
expect 'a file that is there' 2 trace run -o kept.trace -- true
says err 'is named' 'kept.trace: File exists'
expect 'a program that fails' 7 trace run -- sh -c 'exit 7'
expect 'a program without a device' 2 trace run -- true
says err 'is told' 'true opened no device by libembeng'
expect 'no such program' 2 trace run -- ./nowhere
says err 'is named' './nowhere: No such file'
expect 'no program' 2 trace run
expect 'no dashes' 2 trace run ./train
says err 'are asked for' 'embeng trace run -- ./train'
EMBENG_TRACE=trace.txt "$@" >out 2>err
[ $? -ne 0 ] && grep -q 'EMBENG_TRACE: trace.txt has something else than a trace in it' out err &&
	report ok 'a file of somebody else is refused' || report no 'a file of somebody else is refused'

finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# What list, info, regs, events, reset and conform print and exit with. Speaks TAP.
# usage: cli.sh EMBENG-COMMAND
set -u

. "$(dirname "$0")/checks.sh"

# A vector: $1 file, $2 what one lookup must give, $3 more keys of the file, $4 steps after it
vector()
{
	cat >"$folder/$1" <<END
{"schema": "embeng.vector/1", "name": "v #1", $3
 "tables": [{"name": "t", "vocabulary_size": 4, "dim": 1, "combiner": "sum",
             "initial": {"row_id": 0.5}}],
 "features": [{"name": "f", "table": "t"}],
 "steps": [{"enqueue": {"training": false, "features": {"f": {"dense": [2, 0]}}}},
           {"dequeue": {"expect": {"f": $2}}}$4]}
END
}

expect 'no verb' 2
expect 'help' 0 --help
says out 'help lists conform' '^  conform '
expect 'verbs' 0 --list-cmds
says out 'a verb a line' '^info$'
expect 'version' 0 --version
says out 'version has three numbers' '^embeng [0-9]*\.[0-9]*\.[0-9]*$'
# Prose that is wider than the margin breaks after a word, and again where its line ends.
for call in $("$embeng" --list-cmds) 'checkpoint ls' 'checkpoint verify' 'checkpoint dump' \
	'checkpoint compare' 'checkpoint reshard' 'config show' 'config convert' 'fw pack' \
	'fw inspect' 'fw verify' 'fw sign'; do
	"$embeng" $call --help | awk -v call="$call" '
		/^[^ ]/ && short { print call ": " short }
		{ short = before > 70 && NF && NF < 3 && /^[^ ]/ ? $0 : ""; before = length($0) }'
done >"$folder/out" 2>"$folder/err"
[ ! -s "$folder/out" ] && [ ! -s "$folder/err" ] && report ok 'help keeps to its margin' ||
	report no 'help keeps to its margin'
expect 'misspelt verb' 2 confrom
says err 'misspelt verb is corrected' 'embeng conform'
expect 'a word that is like no verb' 2 d
says err 'nothing is guessed' 'embeng --help lists the verbs'
expect 'an empty verb' 2 ''
says err 'nothing is guessed of nothing' 'embeng --help lists the verbs'
strange=$(printf 'no\377thing\033[2J')
expect 'a name that is not UTF-8, in a failure' 2 decode "$strange" --json
document 'is a document all the same' 'd["error"]["message"].startswith("no\ufffdthing\x1b[2J: ")'
expect 'a verb that is not UTF-8' 2 "$strange" --json
document 'is in a document, too' '"\ufffd" in d["error"]["message"]'
expect 'a name that a terminal takes as a command' 2 decode "$strange"
says err 'is printed without it' 'thing?\[2J: No such file'
expect 'a device that is not UTF-8, in a result' 6 doctor -d "$strange" --json
document 'is a document of its verb' '"\ufffd" in d["checks"][0]["seen"]'
expect 'option before the verb' 2 --json list
document 'option before the verb, document' 'd["schema"] == "embeng.error/1" and "embeng list --json" in d["error"]["hint"]'
expect 'short option before the verb' 2 -j list
document 'short option before the verb, document' 'd["schema"] == "embeng.error/1" and "embeng list --json" in d["error"]["hint"]'
expect 'misspelt verb, short option' 2 lst -j
document 'misspelt verb, document' 'd["error"]["code"] == 2 and "embeng list" in d["error"]["hint"]'
expect 'unknown option' 2 info --frob
says err 'unknown option is named' "'--frob'"
expect 'unknown option, JSON' 2 info --frob --json
document 'unknown option, document' 'd["schema"] == "embeng.info/1" and d["error"]["code"] == 2'

expect 'list' 0 list
says out 'list has the soft device' '^soft'
expect 'list, JSON' 0 list --json
document 'list, document' 'd["schema"] == "embeng.list/1" and d["devices"][-1]["kind"] == "soft" and d["devices"][-1]["problem"] == ""'
expect 'list with an argument' 2 list x
expect 'info' 0 info -d soft:cores=3
says out 'info has the cores' '^cores  *3$'
expect 'info, JSON' 0 info -d soft:cores=3 --json
document 'info, document' 'd["device"]["cores"] == 3 and "pipelining" in d["device"]["capabilities"]'
expect 'no such device' 6 info -d nowhere
says err 'no such device is named' 'nowhere'
expect 'no such device, JSON' 6 info -d nowhere --json
document 'no such device, document' 'd["error"]["code"] == 6 and d["error"]["name"] == "ENODEV"'

for call in info regs 'plan --table t:4x1' 'bench --op limits' \
	"conform $(dirname "$0")/../vectors/train/slots_given.json"; do
	EMBENG_DEVICE=bogus "$embeng" $call >"$folder/out" 2>"$folder/err"
	[ $? -eq 6 ] && report ok "no device in the environment: $call" ||
		report no "no device in the environment: $call"
	says err "the environment is named: $call" 'EMBENG_DEVICE: "bogus" is not known'
done
expect 'no such address' 6 info -d pci:ffff:ff:1f.7
says err 'no such address is named' 'pci:ffff:ff:1f.7'
expect 'short address' 2 info -d pci:01:00.0

expect 'registers' 0 regs -d soft
says out 'a register a line' '^038  STEP_DEPTH  *0x8  device  training steps ahead$'
expect 'some registers' 0 regs -d soft boot_state magic --json
document 'some registers, document' '[(r["name"], r["value"]) for r in d["registers"]] == [("MAGIC", 0x474e424d), ("BOOT_STATE", 3)]'
expect 'event log' 0 regs -d soft --log
says out 'a boot is in the log' '  BOOT  detail 0  value [1-9]'
expect 'event log for scripts' 0 regs -d soft --log --json
document 'events by name' '[e["name"] for e in d["events"]][:2] == ["POWER_ON", "BOOT"] and d["events"][0]["number"] == 1'
expect 'events' 0 events -d soft
says out 'a boot in words' '^ *2  [0-9.]*  BOOT  *the firmware runs, version [0-9.]* build [0-9]*$'
expect 'events, JSON' 0 events -d soft --json
document 'events, document' 'd["schema"] == "embeng.events/1" and [(e["name"], e["words"]) for e in d["events"]][0] == ("POWER_ON", "the engine came up")'
expect 'events of a soft device to follow' 3 events -d soft --follow
says err 'a soft device cannot be followed' 'nothing more happens to it'
expect 'events with an argument' 2 events x
expect 'events of no device' 6 events -d nowhere --json
document 'events of no device, document' 'd["schema"] == "embeng.events/1" and d["error"]["code"] == 6'
expect 'no such register' 2 regs frob
says err 'no such register is named' "'frob'"
expect 'a value without a name' 2 regs --write =3
expect 'a name without a value' 2 regs --write control
expect 'a value that is no number' 2 regs --write control=x
says err 'a value that is no number, said' 'no number'
expect "the device's register" 2 regs -d soft --write magic=3
expect 'the last of two is wrong' 2 regs -d soft --write control=1 --write magic=3
expect 'the first of two is wrong' 2 regs -d soft --write magic=3 --write control=1
says err 'the first of two is named' '--write magic=3'
expect 'the log of a register' 2 regs -d soft --log magic
says err 'the log of a register, said' '--log shows the event log and no registers'
expect 'registers of a soft device' 3 regs -d soft --write control=1
expect 'reset of no device' 2 reset
says err 'reset wants a name' 'with -d'
expect 'reset of a device without a name' 2 reset -d ''
says err 'no name is none, said' 'with -d'
expect 'reset of a soft device' 3 reset -d soft --function
expect 'reset with an argument' 2 reset -d soft x

vector good.json '[[2.5], [0.5]]' '' ''
expect 'vector passes' 0 conform "$folder/good.json"
says out 'TAP version' '^TAP version 14$'
says out 'TAP plan' '^1\.\.1$'
says out 'TAP result' '^ok 1 - v \\#1$'
expect 'vector passes, JSON' 0 conform --json "$folder/good.json"
document 'vector passes, document' \
	'(d["passed"], d["failed"], d["skipped"], d["vectors"][0]["result"]) == (1, 0, 0, "passed")'
expect 'on chosen cores' 0 conform -d soft --cores 3 "$folder/good.json"
expect 'no cores' 2 conform --cores 0 "$folder/good.json"
expect 'fixed cores' 0 conform -d soft:cores=2 --cores 3 "$folder/good.json"
says out 'fixed cores, comment' '^# cores'
expect 'conform without the device' 6 conform -d nowhere "$folder/good.json"

expect 'no path' 2 conform
expect 'path that is not there' 2 conform "$folder/nothing"
mkdir "$folder/empty"
expect 'folder without vectors' 2 conform "$folder/empty"

more=', {"expect_stats": {"table": "t", "ids": 7}}, {"expect_stats": {"table": "u"}}'
vector wrong.json '[[2.5], [0.75]]' '' "$more"
expect 'wrong number' 1 conform "$folder/wrong.json"
says out 'wrong number, not ok' '^not ok 1 - v \\#1$'
says out 'wrong number, feature' 'feature: "f"$'
says out 'wrong number, place' 'at: "\[1\]\[0\]"$'
says out 'wrong number, got' 'got: 0.5$'
says out 'wrong number, expected' 'expected: 0.75$'
says out 'wrong number, largest error' 'largest_error: 0.25$'
says out 'wrong number, step' 'step: 2$'
expect 'stops at the first' 1 conform --json "$folder/wrong.json"
document 'one failure' 'len(d["vectors"][0]["failures"]) == 1'
expect 'keeps going' 1 conform --json --keep-going "$folder/wrong.json"
document 'three failures' '[f["step"] for f in d["vectors"][0]["failures"]] == [2, 3, 4]'

vector shape.json '[[2.5]]' '' ''
expect 'wrong shape' 1 conform "$folder/shape.json"
says out 'wrong shape is said' 'another shape'

error=', {"dequeue": {"expect": {}}, "error": {"errno": "EPROTO", "contains": ["FrOb"]}}'
vector error.json '[[2.5], [0.5]]' '' "$error"
expect 'another error' 1 conform "$folder/error.json"
error=', {"expect_stats": {"table": "t"}, "error": {}}'
vector error.json '[[2.5], [0.5]]' '' "$error"
expect 'an error that does not come' 1 conform "$folder/error.json"
says out 'an error that does not come is said' 'must fail'
error=', {"expect_stats": {"table": "Uu"}, "error": {"errno": "ENOENT", "contains": ["uU"]}}'
vector error.json '[[2.5], [0.5]]' '' "$error"
expect 'an error that comes' 0 conform "$folder/error.json"

vector skip.json '[[1]]' '"requires": ["quantum", "hardware_fault"],' ''
expect 'skipped' 0 conform "$folder/skip.json"
says out 'skipped, by capability' '^ok 1 - v \\#1 # SKIP quantum hardware_fault$'
expect 'skipped, JSON' 0 conform --json "$folder/skip.json"
document 'skipped, document' 'd["vectors"][0]["lacks"] == ["quantum", "hardware_fault"]'

vector bad.json '[[1]]' '"frob": 1, "requires": ["quantum"],' ''
expect 'malformed, though it would be skipped' 2 conform "$folder/bad.json"
says err 'malformed, file and key' "bad.json: unknown key 'frob'"
expect 'malformed, JSON' 2 conform --json "$folder/bad.json"
document 'malformed, document' 'd["error"]["name"] == "EBADMSG" and "frob" in d["error"]["message"]'

# A command whose output cannot be printed exits with 5, whatever its own result is.
for call in --help 'info --help' list 'info --json' 'regs -d soft' 'plan --table t:4x1' \
	"conform $folder/good.json"; do
	"$embeng" $call >/dev/full 2>"$folder/err"
	[ $? -eq 5 ] && report ok "stdout is full: $call" || report no "stdout is full: $call"
	says err "stdout is full, said: $call" 'standard output: No space left'
done
"$embeng" info -d nowhere >/dev/full 2>"$folder/err"
[ $? -eq 6 ] && report ok 'stdout is full, failed before' || report no 'stdout is full, failed before'

finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# embeng regs: registers by name, group and field, fields in words, snapshots and their difference.
# The soft device and snapshots that are made here stand for hardware. Speaks TAP.
# usage: regs.sh EMBENG-COMMAND
set -u

. "$(dirname "$0")/checks.sh"

expect 'a group' 0 regs -d soft counters --json
document 'has the registers of its place' '(lambda n: n[0] == "COUNT_COMMANDS" and n[-1] == "COUNT_WAITS_SPACE" and all(r["offset"] >= 0x180 and r["group"] == "COUNTERS" for r in d["registers"]))([r["name"] for r in d["registers"]])'
expect 'every register is in a group' 0 regs -d soft --json
document 'and there are four groups' '{r["group"] for r in d["registers"]} == {"CAPABILITIES", "STATE", "REQUESTS", "COUNTERS"}'
document 'fields add up to the values that they stand for' 'all(sum(f["value"] << f["bit"] for f in r["fields"]) == r["value"] for r in d["registers"] if r["fields"])'
document 'no two fields share a bit' 'all(sum((1 << f["bits"]) - 1 << f["bit"] for f in r["fields"]) == sum({1 << b: 1 << b for f in r["fields"] for b in range(f["bit"], f["bit"] + f["bits"])}.values()) for r in d["registers"])'

expect 'a register in words' 0 regs -d soft boot_state
says out 'its line' '^080  BOOT_STATE  *0x3  device  enum embeng_boot_state$'
says out 'its field' '^     \.STATE  *RUNNING: the firmware runs$'
expect 'flags' 0 regs -d soft combiners
says out 'those that are set' '^       set: SUM, MEAN, SQRTN, MAX$'
expect 'a field' 0 regs -d soft Features.Quantization --json
document 'is shown alone' '[(r["name"], [(f["name"], f["bit"], f["value"], f["text"]) for f in r["fields"]]) for r in d["registers"]] == [("FEATURES", [("QUANTIZATION", 7, 1, "set")])]'
expect 'two fields' 0 regs -d soft interface.minor interface.major
says out 'the first' '^     \.MINOR  *1$'
says out 'the second' '^     \.MAJOR  *0$'
expect 'a name that is near' 2 regs boot_stat
says err 'is hinted at' "'boot_stat'; did you mean BOOT_STATE?"
expect 'a group that is near' 2 regs counter
says err 'is hinted at, too' 'did you mean COUNTERS?'
expect 'no such field' 2 regs status.ready
says err 'has those that there are' "the register STATUS has no such field; its fields are HEALTH"
expect 'a field of a number' 2 regs cores.low
says err 'is none' 'the register CORES is one number and has no fields'

# -- snapshots --

case $embeng in /*) ;; *) embeng=$PWD/$embeng ;; esac
cd "$folder" || exit 1
expect 'save' 0 regs -d soft --save a.json
says out 'says how many' '^[0-9]* registers of soft:.* are in a.json$'
expect 'save, for scripts' 0 regs -d soft:cores=3 --save b.json --json
document 'says how many, too' 'd["file"] == "b.json" and d["saved"] > 60'
cp a.json out
document 'a snapshot is the document of --json' 'd["schema"] == "embeng.regs/1" and len(d["registers"]) > 60 and d["device"].startswith("soft")'
python_with jsonschema "$scripts/schemas.py" a.json b.json >out 2>err && report ok 'and keeps to its schema' ||
	report no 'and keeps to its schema'
expect 'nothing changed' 0 regs --diff a.json a.json
says out 'is said' '^0 of [0-9]* registers changed$'

# changed NAME=VALUE...: c.json is a.json with other values; "~VALUE" clears the bits of a value
changed()
{
	python3 - "$@" <<'END'
import json, sys
d = json.load(open("a.json"))
for change in sys.argv[1:]:
    name, value = change.split("=")
    for r in d["registers"]:
        if r["name"] == name:
            r["value"] = r["value"] & ~int(value[1:], 0) if value[0] == "~" else int(value, 0)
json.dump(d, open("c.json", "w"))
END
}
changed BOOT_STATE=4 BOOT_ERROR=11 FEATURES=~0x80 COUNT_IDS=18446744073709551615 STATUS=7
expect 'what changed' 0 regs --diff a.json c.json
says out 'an enumeration, by name' '^  BOOT_STATE\.STATE was RUNNING: the firmware runs, is FAILED: the image was refused; BOOT_ERROR says why$'
says out 'the error, by name' '^  BOOT_ERROR\.ERROR was NONE: no error, is SELF_TEST: a self-test failed$'
says out 'a flag' '^  FEATURES\.QUANTIZATION was set, is clear$'
says out 'a number' '^COUNT_IDS was 0, is 0xffffffffffffffff (+18446744073709551615)'
says out 'a value without a name' '^  STATUS\.HEALTH was OK: no fault, is 7, which has no name$'
says out 'how many' '^5 of [0-9]* registers changed$'
expect 'what changed, for scripts' 0 regs --diff a.json c.json --json
document 'by register' '[c["register"] for c in d["changes"]] == ["FEATURES", "BOOT_STATE", "BOOT_ERROR", "STATUS", "COUNT_IDS"]'
document 'by field' '[(f["name"], f["before"], f["after"]) for c in d["changes"] for f in c["fields"]] == [("QUANTIZATION", 1, 0), ("STATE", 3, 4), ("ERROR", 0, 11), ("HEALTH", 0, 7)]'
document 'with both sides' 'd["before"]["file"] == "a.json" and d["after"]["file"] == "c.json"'
expect 'a file against the device' 0 regs -d soft --diff c.json --json
document 'as it is now' 'd["after"]["file"] is None and d["after"]["device"].startswith("soft") and {"BOOT_STATE", "COUNT_IDS"} <= {c["register"] for c in d["changes"]}'

# A snapshot of another version, which knows other registers.
python3 - <<'END'
import json
d = json.load(open("a.json"))
d["registers"] = [r for r in d["registers"] if r["name"] != "MAGIC"]
d["registers"].append({"name": "LATER\u001b", "value": 5})
json.dump(d, open("c.json", "w"))
END
expect 'other registers' 0 regs --diff a.json c.json
says out 'only in the first' '^MAGIC is only in the first: 0x474e424d$'
says out 'only in the second, without its escape' '^LATER? is only in the second: 0x5$'
expect 'other registers, for scripts' 0 regs --diff a.json c.json --json
document 'the other side is null' '[(c["before"], c["after"]) for c in d["changes"]] == [(0x474e424d, None), (None, 5)]'

echo '{"schema": "embeng.regs/1", "device": "d", "registers": [{"name": "MAGIC", "value": -1}]}' >bad.json
expect 'a negative value' 2 regs --diff bad.json a.json
says err 'is said with its place' 'bad.json: registers\[0\] lacks a name, or a value that is a whole number'
echo '{"schema": "embeng.list/1", "devices": []}' >bad.json
expect 'another document' 2 regs --diff a.json bad.json
says err 'is no snapshot' 'bad.json: this is no snapshot of registers'
echo '{' >bad.json
expect 'half a document' 2 regs --diff bad.json a.json --json
document 'is refused as a document' 'd["error"]["name"] == "EBADMSG" and "bad.json" in d["error"]["message"]'
head -c 2000000 /dev/zero >bad.json
expect 'a large file' 2 regs --diff bad.json a.json
says err 'is too large' 'bad.json: File too large'
expect 'no file' 2 regs --diff nowhere.json a.json
says err 'is named' 'nowhere.json: No such file'
expect 'no file at all' 2 regs --diff
expect 'three files' 2 regs --diff a.json a.json a.json
expect 'two files and a device' 2 regs -d soft --diff a.json a.json
expect 'a difference and a write' 2 regs --diff a.json --write control=1
expect 'a name and a snapshot' 2 regs -d soft --save x.json magic
says err 'is refused' '--save writes all registers'
[ ! -e x.json ] && report ok 'and nothing is written' || report no 'and nothing is written'
expect 'a folder that is not there' 2 regs -d soft --save nowhere/x.json
says err 'is named, too' 'nowhere/x.json: No such file'

finish

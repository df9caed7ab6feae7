#!/bin/sh
# SPDX-License-Identifier: MIT
# embeng tune: what it finds, where it writes it, and that a device takes it. Speaks TAP.
# usage: tune.sh EMBENG-COMMAND
set -u

. "$(dirname "$0")/checks.sh"

case $embeng in /*) ;; *) embeng=$PWD/$embeng ;; esac
unset EMBENG_PREFETCH EMBENG_TUNE EMBENG_KERNEL
HOME=$folder/home XDG_CONFIG_HOME=$folder/home/config
export HOME XDG_CONFIG_HOME
user=$XDG_CONFIG_HOME/embeng/tune.json

expect 'dry run' 0 tune --dry-run
says out 'a kind of each' '^lookups, small models  .* default'
says out 'and the last' '^updates, large models  .* default'
[ ! -e "$HOME" ] && report ok 'a dry run writes nothing' || report no 'a dry run writes nothing'

expect 'tune' 0 tune
says out 'the path is told' "^written to $user$"
[ "$(stat -c %a "$XDG_CONFIG_HOME/embeng" "$user" | tr '\n' ' ')" = "700 $(printf %o $((0666 & ~0$(umask)))) " ] &&
	report ok 'for the user alone' || report no 'for the user alone'
[ "$(ls -A "$XDG_CONFIG_HOME/embeng")" = tune.json ] && report ok 'and nothing beside it' ||
	report no 'and nothing beside it'
expect 'a device takes the file' 0 info -d soft --json
document 'and says so' "d['device']['fetch_source'] == '$user' and d['device']['tune_problem'] == ''"
expect 'in words' 0 info -d soft
says out 'where it is from' "^fetch from    $user$"

expect 'as a document' 0 tune --json --output "$folder/other.json"
document 'four kinds, one best of each' '(d["schema"] == "embeng.tune/1" and
	sorted(d["measured"]) == ["far_lookup", "far_update", "near_lookup", "near_update"] and
	all(sum(t["best"] for t in k) == 1 == sum(t["default"] for t in k) and
	    all(t["ns_per_row"] > 0 for t in k) for k in d["measured"].values()))'
python3 - "$folder/out" "$folder/other.json" >"$folder/err" 2>&1 <<'END' &&
import json, sys
said, file = (json.load(open(path)) for path in sys.argv[1:])
best = {kind: next(t["way"] for t in trials if t["best"])
        for kind, trials in said["measured"].items()}
sys.exit(file["schema"] != "embeng.tune-file/1" or said["file"] != sys.argv[2] or
         (file["processor"], file["variant"]) != (said["processor"], said["variant"]) or
         any(file[kind.split("_")[0]][kind.split("_")[1]] != way for kind, way in best.items()))
END
	report ok 'the file has the best ways' || report no 'the file has the best ways'

# A file that cannot be used is ignored, and told of.
sed 's/"processor": "/&another /' "$folder/other.json" >"$folder/bad.json"
EMBENG_TUNE=$folder/bad.json
export EMBENG_TUNE
expect 'a file of another processor' 0 info -d soft
says out 'is ignored with its reason' "^tune file     ignored: $folder/bad.json: it was measured on another processor (another"
says out 'and the caches count' "^fetch from    processor's caches$"
printf '{"schema": "embeng.tune-file/1", "processor": "\\u001b[31m", "variant": "x", "near": {"lookup": "1", "update": "1"}, "far": {"lookup": "1", "update": "1"}}' >"$folder/bad.json"
expect 'a file with an escape' 0 info -d soft
says out 'does not speak to the terminal' 'processor (?\[31m)'
echo nonsense >"$folder/bad.json"
expect 'a broken file' 0 info -d soft --json
document 'is ignored' '"bad.json: " in d["device"]["tune_problem"] and d["device"]["fetch_source"] == "processor\u0027s caches"'
expect 'a broken file, and a vector' 0 conform "$(dirname "$0")/../vectors/train/slots_given.json"
EMBENG_TUNE=$folder/other.json
expect 'a file that is named' 0 info -d soft
says out 'is taken' "^fetch from    $folder/other.json$"
expect 'a file of another variant' 0 info -d soft:variant=portable
[ "$("$embeng" info -d soft | sed -n 's/^variant *//p')" = portable ] ||
	says out 'is ignored' 'measured with the kernel variant .*, and this is portable$'
unset EMBENG_TUNE

# Where the file goes.
expect 'to standard output' 0 tune --variant portable --output -
document 'it is the file' 'd["schema"] == "embeng.tune-file/1" and d["variant"] == "portable"'
expect 'both to standard output' 2 tune --json --output -
expect 'no such folder' 2 tune --output "$folder/none/tune.json"
says err 'is named' "$folder/none/tune.json: cannot be written: No such file"
expect 'no such variant' 2 tune --variant none
says err 'is named' '"none" is not a kernel variant'
expect 'an argument' 2 tune x
(
	unset XDG_CONFIG_HOME
	HOME=relative "$embeng" tune >"$folder/out" 2>"$folder/err"
	[ $? -eq 2 ]
) && report ok 'no folder' || report no 'no folder'
says err 'is told before anything is measured' 'neither XDG_CONFIG_HOME nor HOME'

finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# embeng checkpoint reshard: the same numbers over other hosts. Speaks TAP.
# usage: reshard.sh EMBENG-COMMAND
set -u

. "$(dirname "$0")/checks.sh"

golden=$(cd "$(dirname "$0")/../golden" && pwd)
cd "$folder" || exit 1
case $embeng in /*) ;; *) embeng=$OLDPWD/$embeng ;; esac

# contents DIR: every number of its tables and slots
contents()
{
	for what in users users/accumulators fixed words/é/parameters words/é/momenta \
			words/é/velocities; do
		"$embeng" checkpoint dump "$1" $what
	done
}

contents "$golden/checkpoint" >whole
contents "$golden/checkpoint-mod" >out
cmp -s whole out && report ok 'a checkpoint of three hosts reads as one of one' ||
	report no 'a checkpoint of three hosts reads as one of one'

expect 'help' 0 checkpoint reshard --help
says out 'help names sharding' '--sharding=div|mod'
expect 'to two hosts' 0 checkpoint reshard "$golden/checkpoint" two --hosts 2
says out 'says so' '^two: 3 tables over 2 hosts, div, in 2 files'
expect 'to five hosts, JSON' 0 checkpoint reshard two five --hosts 5 --sharding mod --json
document 'to five hosts, document' '(d["command"] == "reshard" and d["in"] == "two" and
	d["out"] == "five" and d["hosts"] == 5 and d["sharding"] == "mod" and
	d["files"] == 5 and d["bytes"] > 1000)'
expect 'back to one' 0 checkpoint reshard five one
expect 'rows by themselves' 0 checkpoint reshard five rows --shard-bytes 1
expect 'in place' 0 checkpoint reshard five five --hosts 2 --sharding mod
for dir in two five one rows; do
	expect "$dir is whole" 0 checkpoint verify $dir
	contents $dir >out
	cmp -s whole out && report ok "$dir: the same numbers" || report no "$dir: the same numbers"
done
expect 'ls, JSON' 0 checkpoint ls five --json
document 'ls has hosts' 'd["hosts"] == 2 and d["sharding"] == "mod" and d["step"] == 2'
expect 'ls' 0 checkpoint ls five
says out 'ls says hosts' '^sharded over 2 hosts, mod$'
expect 'ls of one' 0 checkpoint ls one --json
document 'one has one host' 'd["hosts"] == 1 and d["files"] == 1'

expect 'no folders' 2 checkpoint reshard
says err 'no folders, said' 'IN and OUT are missing'
expect 'no second folder' 2 checkpoint reshard two
says err 'no second folder, said' 'OUT is missing'
expect 'a third folder' 2 checkpoint reshard two three four
says err 'a third folder is named' "'four' is a third"
expect 'no hosts' 2 checkpoint reshard two none --hosts 0
says err 'no hosts, said' 'hosts'
expect 'too many hosts' 2 checkpoint reshard two none --hosts 2147483648
expect 'unknown sharding' 2 checkpoint reshard two none --sharding shuffle
says err 'unknown sharding is named' "div or mod, not 'shuffle'"
expect 'no bytes' 2 checkpoint reshard two none --shard-bytes 0
expect 'what is not there' 2 checkpoint reshard nowhere none --json
document 'what is not there, document' 'd["error"]["name"] == "ENOENT"'
[ ! -e none ] && report ok 'nothing was made' || report no 'nothing was made'

shard=$(ls two/*.safetensors | head -1)
python3 -c 'import sys
with open(sys.argv[1], "r+b") as f:
    f.seek(-5, 2); byte = f.read(1); f.seek(-5, 2); f.write(bytes([byte[0] ^ 1]))' "$shard"
expect 'corrupt' 11 checkpoint reshard two one
says err 'corrupt: the file is named' "$(basename "$shard")"
contents one >out
cmp -s whole out && report ok 'the old checkpoint stays' || report no 'the old checkpoint stays'

finish

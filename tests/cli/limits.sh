#!/bin/sh
# SPDX-License-Identifier: MIT
# The command promises no more than its process may use, however much the machine has. Speaks TAP.
# Control groups are tried where this machine lets one be made; recorded ones of all kinds are in
# tests/unit/runtime/device/test_host_limits.c.
# usage: limits.sh EMBENG-COMMAND
set -u

. "$(dirname "$0")/checks.sh"

# limited NAME CODE LIMIT ARGUMENT...: as expect, under `ulimit LIMIT`
limited()
{
	name=$1 code=$2 limit=$3
	shift 3
	# shellcheck disable=SC2086
	(ulimit $limit && exec "$embeng" "$@") >"$folder/out" 2>"$folder/err"
	[ $? -eq "$code" ] && report ok "$name" || report no "$name"
}

for limit in '-v 1048576' '-d 1048576'; do
	limited "ulimit $limit" 0 "$limit" info --json
	document "ulimit $limit, 80 % of it" \
		'0.7 * 2**30 < d["device"]["table_memory"] <= 0.8 * 2**30'
	limited "ulimit $limit, plan" 1 "$limit" plan --table t:20Mx16
	says out "ulimit $limit, plan says what there is" \
		'^table memory of the device: 1.2 GiB of 8[0-9]*\.[0-9] MiB, does NOT fit$'
	says out "ulimit $limit, plan says what is left" \
		'^available memory of the machine: .* of 1*[09][0-9]*\.[0-9] MiB, does NOT fit$'
	limited "ulimit $limit, memory that somebody promises" 0 "$limit" \
		info -d soft:memory=100G --json
	document "ulimit $limit, the word is taken" 'd["device"]["table_memory"] == 100 * 2**30'
	limited "ulimit $limit, a bench" 5 "$limit" bench --op limits --runs 5
	says err "ulimit $limit, a bench names what is missing" 'of memory, .* are available'
done
seq 90000 | paste -d ' ' - - - - - >"$folder/many.txt"
for limit in '-v 1048576' '-d 1048576'; do
	limited "ulimit $limit, tables beyond it" 7 "$limit" train "$folder/many.txt" --dim 1024 \
		--min-count 1 --epochs 1 -d soft:memory=100G
	says err "ulimit $limit, tables beyond it, the limit is named" \
		"this process may have [0-9]* more (ulimit ${limit% *} (RLIMIT_"
	says err "ulimit $limit, tables beyond it, the table is named" \
		'the largest is table items_.*dim 1024'
done
limited 'no room for a thread' 7 '-d 5000' info
says err 'no room for a thread, said in words' 'no memory or no thread for its cores; .*ulimit'

cpu=$(taskset -cp $$ | sed 's/.*[: ]//; s/[-,].*//')
taskset -c "$cpu" "$embeng" info --json >"$folder/out" 2>"$folder/err"
document 'one processor is one core' 'd["device"]["cores"] == 1'
taskset -c "$cpu" "$embeng" plan --table t:10x4 --json >"$folder/out" 2>"$folder/err"
document 'plan supposes one core' 'd["cores"] == 1'

# grouped COMMAND...: in the group $group
grouped()
{
	sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" "$@" >"$folder/out" 2>"$folder/err"
}

memory=/sys/fs/cgroup/memory limit=memory.limit_in_bytes
[ -d "$memory" ] || memory=/sys/fs/cgroup limit=memory.max
outer=$memory/embeng-test-$$ group=$outer/inner
if mkdir "$outer" "$group" 2>/dev/null && echo 800M 2>/dev/null >"$outer/$limit"; then
	grouped "$embeng" info --json
	document 'a container' 'd["device"]["table_memory"] in range(600 * 2**20, 640 * 2**20 + 1)'
	echo 400M >"$group/$limit"
	grouped "$embeng" info --json
	document 'a container in one' 'd["device"]["table_memory"] in range(280 * 2**20, 320 * 2**20 + 1)'
	grouped "$embeng" plan --table t:2Mx64
	says out 'a container, plan' '^table memory of the device: 488.3 MiB of 3[0-9]*\.[0-9] MiB, does NOT fit$'
	echo max 2>/dev/null >"$group/$limit" || echo -1 >"$group/$limit"
	grouped "$embeng" train "$folder/many.txt" --dim 1024 --min-count 1 --epochs 1 -d soft:memory=100G
	[ $? -eq 7 ] && report ok 'a container, tables beyond it' ||
		report no 'a container, tables beyond it'
	says err 'a container, tables beyond it, the file is named' \
		'this process may have [78][0-9]* more (/.*/memory\.'
else
	echo '# no control group for memory can be made here'
fi
rmdir "$group" "$outer" 2>/dev/null

cpu=/sys/fs/cgroup/cpu/embeng-test-$$ group=$cpu
if mkdir "$cpu" 2>/dev/null && echo 30000 2>/dev/null >"$cpu/cpu.cfs_quota_us"; then
	grouped "$embeng" info --json
	document 'a part of a processor is a core' 'd["device"]["cores"] == 1'
else
	echo '# no control group for processors can be made here'
fi
rmdir "$cpu" 2>/dev/null

finish

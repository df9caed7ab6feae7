#!/bin/sh
# SPDX-License-Identifier: MIT
# Conformance vectors over hosts, and the exit codes of verbs when hosts do not agree or one is lost.
# usage: conform.sh EMBENG MPI VECTORS [PATH...]: the command, openmpi or mpich, and the folder of vectors, of
# which the PATHs are run; without one, all
set -u

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
embeng=$1
mpi=$2
vectors=$3
shift 3
[ $# -gt 0 ] || set -- .
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
out=$scratch/out
number=0
failed=0

# launch SECONDS RANKS SCRIPT ARGUMENT...: each rank runs the shell script, and its exit code goes to a file. The
# launcher is killed if it hangs. The outputs of the ranks are $out.0 and so on.
launch() {
	most=$1
	ranks=$2
	script=$3
	shift 3
	rm -f "$out".*
	case $mpi in
	openmpi) launcher="mpirun.openmpi --oversubscribe --continuous --mca mpi_yield_when_idle 1" ;;
	mpich) launcher=mpirun.mpich ;;
	esac
	# shellcheck disable=SC2086
	timeout -k 5 "$most" $launcher -n "$ranks" sh -c '
		rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-}} out=$0 script=$1
		shift
		eval "$script" >"$out.$rank" 2>&1
		echo "exit $?" >"$out.exit.$rank"' "$out" "$script" "$@" >"$scratch/launcher" 2>&1 </dev/null
}

# judge NAME: passes if the last command did; else tells what was printed
judge() {
	result=$?
	number=$((number + 1))
	if [ $result -eq 0 ]; then
		echo "ok $number - $mpi: $1"
	else
		failed=1
		echo "not ok $number - $mpi: $1"
		tail -n 25 "$out".* "$scratch/launcher" | sed 's/^/# /; s/SKIP/skip/'
	fi
}

exits() {
	[ "$(cat "$out".exit.* | tr '\n' ' ')" = "$1" ]
}

# Every vector passes, or is refused by the group with a reason, and host 0 alone reports.
passes() {
	count=$(sed -n 's/^1\.\.//p' "$out.0")
	[ "${count:-0}" -gt "$1" ] && [ "$(grep -c '^ok' "$out.0")" -eq "$count" ] &&
		[ "$(grep '# SKIP' "$out.0" | grep -vc '# SKIP over hosts: ')" -eq 0 ] &&
		[ "$(grep -c '# SKIP' "$out.0")" -lt $((count / 2)) ] && [ ! -s "$out.1" ]
}

paths=
for path in "$@"; do
	paths="$paths $vectors/$path"
done
for ranks in 2 3; do
	launch 500 $ranks '"$1" conform -d mpi:soft:deadline=30 $2' "$embeng" "$paths"
	passes 20 && exits "$(yes 'exit 0' | head -n $ranks | tr '\n' ' ')"
	judge "vectors over $ranks hosts"
done
TMPDIR=$scratch launch 60 2 '"$1" conform --json -d mpi:soft:deadline=30 "$2"' "$embeng" "$vectors/checkpoint"
python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); sys.exit(d["failed"] or not d["passed"])' "$out.0" &&
	[ ! -s "$out.1" ]
judge "vectors with checkpoints, as one document"

# The replica of host 1 has another number than the vector expects, and all hosts fail.
python3 - "$vectors/replicas/replicas_2_sum_gradients.json" "$scratch/wrong.json" <<'END'
import json
import sys
vector = json.load(open(sys.argv[1], encoding="utf-8"))
for step in vector["steps"]:
    body = step.get("dequeue", {})
    if body.get("replica") == 1:
        first = body["expect"][sorted(body["expect"])[0]]
        while isinstance(first[0], list):
            first = first[0]
        first[0] += 1
json.dump(vector, open(sys.argv[2], "w", encoding="utf-8"))
END
launch 60 2 '"$1" conform -d mpi:soft:deadline=30 "$2"' "$embeng" "$scratch/wrong.json"
exits "exit 1 exit 1 " && grep -q '^not ok 1 ' "$out.0" && grep -q 'host: "1 (' "$out.0" && [ ! -s "$out.1" ]
judge "a wrong number of one host fails the vector on all"

launch 60 2 'path=$2; [ "$rank" = 1 ] && path=$3; "$1" conform -d mpi:soft:deadline=30 "$path"' "$embeng" \
	"$vectors/replicas" "$vectors/train"
exits "exit 2 exit 2 " && grep -q 'host . (.*) has read .* vectors' "$out.0" "$out.1"
judge "hosts with other files are refused"
launch 60 2 'path=$2; [ "$rank" = 1 ] && path=$3; "$1" conform -d mpi:soft:deadline=30 "$path"' "$embeng" \
	"$vectors/train" "$scratch/none"
exits "exit 2 exit 2 " && grep -q 'host 1 (.*) says: it cannot begin' "$out.0"
judge "a host without the files is told to all"

# Host 0 stops amid the vectors, and is killed later, so that the launcher can end. Host 1 has the only replica, and
# so a deadline in all of its calls.
launch 90 2 '
	if [ "$rank" = 1 ]; then
		"$1" conform -d mpi:soft:deadline=3 "$2"
	else
		"$1" conform -d mpi:soft:deadline=3 "$2" &
		until grep -q "^ok 3 " "$out.$rank"; do sleep 0.1; done
		kill -STOP $!
		for _ in $(seq 45); do [ -e "$out.exit.1" ] || sleep 1; done
		kill -KILL $!
	fi' "$embeng" "$vectors"
grep -q '^exit 8$' "$out.exit.1" && grep -q 'embeng conform: .*host 0 (.*) \(sent nothing for\|did not finish\)' "$out.1"
judge "a host that is silent ends the others with exit status 8"

printf 'a b c d\na b d e\nb c d e\na c d e\n%.0s' 1 2 3 4 5 6 7 8 >"$scratch/baskets"
launch 60 2 '"$1" train -d mpi:soft:deadline=30 --format baskets --min-count 1 "$2"' "$embeng" "$scratch/baskets"
exits "exit 3 exit 3 " && grep -q 'the verb trains in one process' "$out.1"
judge "training by the command over several hosts is refused"
echo "1..$number"
exit $failed

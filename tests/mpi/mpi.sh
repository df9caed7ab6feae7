#!/bin/sh
# SPDX-License-Identifier: MIT
# Groups of hosts over Open MPI and MPICH: bytes, faults, launchers, communicators of a program.
# The programs find the plug-ins where the build has them.
# usage: mpi.sh HOSTS MPI OWN EXAMPLE TRAIN: four programs; MPI is openmpi or mpich
set -u

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
hosts=$1
mpi=$2
own=$3
example=$4
train=$5
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
apart=$(dirname "$0")/apart.sh
out=$scratch/out
number=0
failed=0

# launch MPI RANKS COMMAND...: what the ranks printed is in $out, that of one after that of another. A launcher that
# hangs is killed.
launch() {
	launcher=$1
	ranks=$2
	shift 2
	set -- "$apart" "$scratch/rank" "$@"
	case $launcher in
	openmpi) set -- mpirun.openmpi --oversubscribe --mca mpi_yield_when_idle 1 $more -n "$ranks" "$@" ;;
	mpich) set -- mpirun.mpich $more -n "$ranks" "$@" ;;
	esac
	timeout -k 5 60 "$@" >"$scratch/launcher" 2>&1 </dev/null
	status=$?
	cat "$scratch"/rank.* >"$out" 2>/dev/null
	rm -f "$scratch"/rank.*
	return $status
}

# says NAME COUNT PATTERN: so many lines of the output match
says() {
	number=$((number + 1))
	found=$(grep -cE -- "$3" "$out")
	if [ "$found" -eq "$2" ]; then
		echo "ok $number - $mpi: $1"
	else
		failed=1
		echo "not ok $number - $mpi: $1"
		echo "# $found lines of these match, and not $2: $3"
		sed 's/^/# /' "$out" "$scratch/launcher"
	fi
}

more=
for ranks in 1 2 4; do
	launch "$mpi" "$ranks" "$hosts" "$mpi" 12
	says "all bytes of $ranks ranks" "$ranks" "rank [0-9] of $ranks: all bytes are right"
done
launch "$mpi" 2 "$hosts" mpi 3
says "the launcher tells which MPI it is" 2 "of 2: all bytes are right"
"$hosts" "$mpi" 3 >"$out" 2>&1
says "one rank without a launcher" 1 "rank 0 of 1: all bytes are right"

other=openmpi
[ "$mpi" = openmpi ] && other=mpich
if command -v mpirun.$other >/dev/null; then
	launch $other 2 "$hosts" "$mpi" 3
	says "the other MPI's launcher is refused" 2 \
		"-71 after .*: this process was started as one of 2 by .*mpirun.* sees 1 rank"
fi

# As srun sets it, where --mpi= is not that of this MPI.
srun=pmix
[ "$mpi" = mpich ] && srun=pmi2
SLURM_STEP_NUM_TASKS=2 "$hosts" "$mpi" 3 >"$out" 2>&1
says "srun without the --mpi= of this MPI is refused, with the one to give" 1 \
	"-71 after .*: this process was started as one of 2 by srun .* start it by srun --mpi=$srun or by the mpirun of"

launch "$mpi" 4 "$hosts" "$mpi" 6 slow 2 3
says "a slow rank is no failure" 4 "all bytes are right"
launch "$mpi" 4 "$hosts" "$mpi" 6 skip 2 3
says "a skipped step is named" 4 \
	"-71 after [0-3]\.. s: step [34], rows: .*at step (4, rows; .*at step 3|3, rows; .*at step 4), rows"
launch "$mpi" 4 "$hosts" "$mpi" 6 leave 2 3
says "a host that leaves is named" 3 "-112 after [0-3]\.. s: step 3, rows: host 2 \(.*\) has left"

# mpirun of Open MPI is told not to end the job at the first death. MPICH's ends itself and the job.
if [ "$mpi" = openmpi ]; then
	more=--continuous
	launch "$mpi" 4 "$hosts" "$mpi" 6 kill 2 3
	says "a killed rank is named in time" 3 \
		"-(62 after 3\.[0-9]|112 after [0-3]\..) s: step 3, rows: .*host 2( |$)"
else
	more=-disable-auto-cleanup
	launch "$mpi" 4 "$hosts" "$mpi" 6 kill 2 3
	echo "status $?" >>"$out"
	says "the launcher ends when a rank is killed" 1 "^status ([1-9]|[1-9][0-9]|13[0-9]|255)$"
	says "no rank says that all is right after a kill" 0 "all bytes are right"
fi
launch "$mpi" 4 timeout -s KILL 12 "$hosts" "$mpi" 6 stop 1 3
says "a stopped rank is named in time" 3 \
	"-62 after 3\.[0-9] s: step 3, rows: host 1 \(.*\) sent nothing for 3.0 s; hosts 0, 2, 3 did"

more=
launch "$mpi" 4 "$own" 3
says "communicators of the program, even ranks" 2 "rank [02] of 4: all 30, half 12, own 100[13]$"
says "communicators of the program, odd ranks" 2 "rank [13] of 4: all 30, half 18, own 100[02]$"
launch "$mpi" 2 "$own" 1
says "a level of threads that does not do is named" 2 \
	"-95: .* was initialised with MPI_THREAD_(SINGLE|FUNNELED); .*MPI_THREAD_MULTIPLE"

one=$("$example" threads:1 adam mean weights | sed 's/ on 1 hosts$//')
launch "$mpi" 3 "$example" "$mpi" adam mean weights
says "tables on 3 hosts train to the bits of one" 1 "^${one:-nothing was printed} on 3 hosts$"

# The program does not say a word about hosts: EMBENG_DEVICE does. With 6 ranks two have no replica.
one=$("$train" 20 | sed 's/ on 1 host$//')
for ranks in 1 2 3 6; do
	EMBENG_DEVICE=mpi:soft:cores=1,deadline=30 launch "$mpi" "$ranks" "$train" 20
	says "one handle over $ranks ranks has the bits of one process" 1 \
		"^${one:-nothing was printed} on $ranks hosts?$"
done
# 8 steps on 3 ranks, 6 on 2 and 6 in one process, with a checkpoint between.
rm -rf "$scratch/checkpoint"
EMBENG_DEVICE=mpi:soft:cores=1,deadline=30 launch "$mpi" 3 "$train" 8 "$scratch/checkpoint"
says "3 ranks write a checkpoint" 1 "^rows .* after 8 steps on 3 hosts$"
EMBENG_DEVICE=mpi:soft:cores=1,deadline=30 launch "$mpi" 2 "$train" 6 "$scratch/checkpoint"
says "2 ranks go on from it" 1 "^rows .* after 14 steps on 2 hosts$"
"$train" 6 "$scratch/checkpoint" >"$out"
says "and one process from theirs, with the bits of one that never stopped" 1 \
	"^${one:-nothing was printed} on 1 host$"
EMBENG_DEVICE=mpi:soft,deadline=0 launch "$mpi" 2 "$train" 20
says "a deadline of nothing is refused" 2 "deadline=0 must be whole seconds"
# mpirun of MPICH ends the survivors before they can say anything.
if [ "$mpi" = openmpi ]; then
	more=--continuous
	EMBENG_DEVICE=mpi:soft:cores=1,deadline=3 launch "$mpi" 4 sh -c '
		[ "$OMPI_COMM_WORLD_RANK" = 2 ] && exec timeout -s KILL 4 "$0" 100000000
		"$0" 100000000
		status=$?
		echo "status $status"
		sleep 3
		exit $status' "$train"
	says "a killed host is named by every other host's handle" 3 \
		"^step [0-9]+, (ids|activations|gradients): .*host 2( |$)"
	# The example leaves its handle open, and so the group's thread uses MPI until the end.
	says "and these exit as they mean to" 3 "^status 1$"
fi
echo "1..$number"
exit $failed

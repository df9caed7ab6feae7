# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# Tests in a virtual machine as TAP. Sourced, with the build folder in $build.
number=0 failed=0
within= # a command that programs run under, such as timeout
folder=$(mktemp -d) || exit 1

report()
{
	number=$((number + 1))
	if [ "$1" = ok ]; then
		echo "ok $number - $2"
	else
		failed=1
		echo "not ok $number - $2"
		sed 's/^/# /' "$folder/out"
	fi
}

# check NAME COMMAND...: the command succeeds
check()
{
	name=$1
	shift
	if "$@" >"$folder/out" 2>&1; then report ok "$name"; else report no "$name"; fi
}

# program NAME [ARGUMENT...]: a Check program, each of its tests one line, its remarks too
program()
{
	program=$1
	shift
	: >"$folder/tap"
	CK_TAP_LOG_FILE_NAME="$folder/tap" CK_DEFAULT_TIMEOUT=120 $within "$build/tests/vm/$program" "$@" \
		>"$folder/out" 2>&1
	status=$?
	grep '^#' "$folder/out"
	grep -E '^(ok|not ok)' "$folder/tap" >"$folder/lines"
	[ -s "$folder/lines" ] || report no "$program runs"
	[ $status -eq 0 ] || grep -q '^not ok' "$folder/lines" ||
		report no "$program runs to its end (exit status $status)"
	while read -r line; do
		name=$(echo "$line" | cut -d: -f3)
		echo "$line" >"$folder/out"
		case $line in ok*) report ok "$program: $name" ;; *) report no "$program: $name" ;; esac
	done <"$folder/lines"
}

# alone COMMAND...: with one processor. The kernel patches its own code when events are switched, and
# when the first control group gets a limit or the last one goes. The other processor is off meanwhile,
# for the reason that runtime/vm/machine.sh gives ("Oops: int3").
alone()
{
	other=/sys/devices/system/cpu/cpu1/online
	echo 0 >"$other" || return 1
	"$@"
	set -- $?
	echo 1 >"$other" || return 1
	return "$1"
}

# switch_events 0|1: the driver's tracepoints
switch_events()
{
	echo "$1" >/sys/kernel/tracing/events/embeng/enable
}

# freeze_nobody: an empty control group is frozen from now on. A sleep of the machine has the kernel
# patch its own code if nothing is frozen before, and tests sleep while the other processor works.
freeze_nobody()
{
	mkdir /tmp/freezer && mount -t cgroup -o freezer none /tmp/freezer && mkdir /tmp/freezer/nobody &&
		echo FROZEN >/tmp/freezer/nobody/freezer.state && cat /tmp/freezer/nobody/freezer.state
}

finish()
{
	echo "1..$number"
	rm -rf "$folder"
	exit $failed
}

#!/bin/sh
# SPDX-License-Identifier: MIT
# The emulator's tests, in a virtual machine: tests/vm/run -- tests/vm/emulator.sh BUILD-FOLDER
# Speaks TAP.
set -u

build=$1
here=$(dirname "$0")
number=0 failed=0
folder=$(mktemp -d) || exit 1
pci=/sys/bus/pci
function=0eb0:00:00.0

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

# program NAME: a Check program, each of its tests one line
program()
{
	CK_TAP_LOG_FILE_NAME="$folder/tap" CK_DEFAULT_TIMEOUT=120 "$build/tests/vm/$1" \
		>"$folder/out" 2>&1
	grep -E '^(ok|not ok)' "$folder/tap" >"$folder/lines"
	[ -s "$folder/lines" ] || report no "$1 runs"
	while read -r line; do
		name=$(echo "$line" | cut -d: -f3)
		echo "$line" >"$folder/out"
		case $line in ok*) report ok "$1: $name" ;; *) report no "$1: $name" ;; esac
	done <"$folder/lines"
}

gone()
{
	[ ! -e "$pci/devices/$function" ]
}

program vm-function

check 'rmmod removes the function' sh -c "rmmod embeng_emu && [ ! -e $pci/devices/$function ]"

echo "1..$number"
exit $failed

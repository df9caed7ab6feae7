# SPDX-License-Identifier: MIT
# A line of TAP for each command: sourced. A test ends with: echo "1..$number"; exit $failed

number=0
failed=0

# verdict NAME COMMAND...: the command succeeds
verdict()
{
	name=$1
	shift
	number=$((number + 1))
	if message=$("$@" 2>&1); then
		echo "ok $number - $name"
	else
		failed=1
		echo "not ok $number - $name"
		echo "$message" | tail -n 40 | sed 's/^/# /'
	fi
}

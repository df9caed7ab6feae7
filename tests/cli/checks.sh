# SPDX-License-Identifier: MIT
# What tests of the command have in common: sourced, $1 is the command. Speaks TAP.
# A test ends with: echo "1..$number"; exit $failed

embeng=$1
number=0
failed=0
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
unset EMBENG_DEVICE

report()
{
	number=$((number + 1))
	if [ "$1" = ok ]; then
		echo "ok $number - $2"
	else
		failed=1
		echo "not ok $number - $2"
		sed 's/^/# /' "$folder/out" "$folder/err"
	fi
}

# expect NAME CODE ARGUMENT...: the command exits with the code
expect()
{
	name=$1 code=$2
	shift 2
	"$embeng" "$@" >"$folder/out" 2>"$folder/err"
	[ $? -eq "$code" ] && report ok "$name" || report no "$name"
}

# says FILE NAME PATTERN: out or err of the last call has a line like it
says()
{
	grep -q -e "$3" "$folder/$1" && report ok "$2" || report no "$2"
}

# document NAME EXPRESSION: stdout is one JSON document d, and the expression holds
document()
{
	python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
sys.exit(not eval(sys.argv[2]))' "$folder/out" "$2" 2>>"$folder/err" &&
		report ok "$1" || report no "$1"
}

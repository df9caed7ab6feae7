# SPDX-License-Identifier: MIT
# What tests of the command have in common: sourced, $1 is the command. Speaks TAP.
# A test ends with: finish

embeng=$1
number=0
failed=0
scripts=$(cd "$(dirname "$0")" && pwd) || exit 1
folder=$(mktemp -d) || exit 1
documents=$(mktemp -d) || exit 1
trap 'rm -rf "$folder" "$documents"' EXIT
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

# expect NAME CODE ARGUMENT...: the command exits with the code. Documents are kept for finish.
expect()
{
	name=$1 code=$2
	shift 2
	"$embeng" "$@" >"$folder/out" 2>"$folder/err"
	[ $? -eq "$code" ] && report ok "$name" || report no "$name"
	case " $* " in
	*' --json '* | *' -j '*) cp "$folder/out" "$documents/$number.json" ;;
	esac
}

# says FILE NAME PATTERN: out or err of the last call has a line like it
says()
{
	grep -q -e "$3" "$folder/$1" && report ok "$2" || report no "$2"
}

# python_with MODULE ARGUMENT...: the first Python that has the module, which may be the system's
python_with()
{
	module=$1
	shift
	for python in python3 /usr/bin/python3; do
		"$python" -c "import $module" 2>/dev/null && break
	done
	"$python" "$@"
}

# document NAME EXPRESSION: stdout is one JSON document d, and the expression holds
document()
{
	python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
sys.exit(not eval(sys.argv[2]))' "$folder/out" "$2" 2>>"$folder/err" &&
		report ok "$1" || report no "$1"
}

# Every document that expect saw keeps to its schema. Prints the plan, and ends the test.
finish()
{
	if [ -n "$(ls "$documents")" ]; then
		python_with jsonschema "$scripts/schemas.py" "$documents"/*.json \
			>"$folder/out" 2>"$folder/err" &&
			report ok 'documents keep to their schemas' ||
			report no 'documents keep to their schemas'
	fi
	echo "1..$number"
	exit $failed
}

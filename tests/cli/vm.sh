#!/bin/sh
# SPDX-License-Identifier: MIT
# embeng vm without a machine: what its script is called with, what is made of the script's output and
# end, and what is said where something is missing. tests/kmod/project.sh boots machines. Speaks TAP.
# usage: vm.sh COMMAND SCRIPTS SOURCE-ROOT: SCRIPTS is the folder in which scripts are installed
set -u

installed=$2
source=$3
. "$(dirname "$0")/checks.sh"
EMBENG_VM_ROOT=$folder/stage
export EMBENG_VM_ROOT
mkdir -p "$folder/stage$installed"
script=$folder/stage$installed/run

# plays: the script of the machine is what stands on stdin
plays()
{
	{
		echo '#!/bin/sh'
		cat
	} >"$script"
	chmod +x "$script"
}

# xml NAME EXPRESSION: the report is well-formed; x is its root, s its suite, c its cases
xml()
{
	python3 -c 'import sys, xml.etree.ElementTree as tree
x = tree.parse(sys.argv[1]).getroot()
s = x.find("testsuite")
c = s.findall("testcase")
sys.exit(not eval(sys.argv[2]))' "$folder/junit.xml" "$2" 2>>"$folder/err" &&
		report ok "$1" || report no "$1"
}

# printed NAME TEXT: all of stdout
printed()
{
	[ "$(cat "$folder/out")" = "$2" ] && report ok "$1" || report no "$1"
}

plays <<'EOF'
for word; do echo "[$word]"; done
exit 7
EOF
expect 'the status is the command'"'"'s' 7 vm -- prog 'a b' --help -- "c'd"
printed 'words reach the script as they are' "[--]
[prog]
[a b]
[--help]
[--]
[c'd]"
expect 'every option' 7 vm --kernel 7.3 --memory 2G --cpus 4 --devices 2 --timeout 9 --share "$folder" \
	--log "$folder/log" --accel kvm --kernel newest -- true
printed 'options reach the script, the last of a kind' "[--kernel]
[newest]
[--memory]
[2G]
[--cpus]
[4]
[--devices]
[2]
[--timeout]
[9]
[--share]
[$folder]
[--log]
[$folder/log]
[--accel]
[kvm]
[--]
[true]"

expect 'no command' 2 vm --kernel newest
says err 'is asked for' 'no command is given; put one behind --'
expect 'nothing behind the --' 2 vm --
expect 'a command without a --' 2 vm true
says err 'is told where it goes' 'put -- before the command: embeng vm \[OPTION...\] -- true'
for pair in '--cpus 0' '--cpus 65' '--devices 17' '--devices x' '--timeout 0' '--memory 2T' '--memory G' \
	'--memory 1Gx' '--accel auto' '--share'; do
	# shellcheck disable=SC2086
	expect "$pair" 2 vm $pair -- true
done
says err 'what an option takes is said' "vm --help"
expect 'a number out of range' 2 vm --devices 17 -- true
says err 'the range is said' "takes a number from 1 to 16, not '17'"

plays <<'EOF'
printf 'TAP version 14\nok 1 - first\nnot ok 2 - second <&>\n# why\nok 3 - third # SKIP none\n1..3\n'
echo loud >&2
exit 1
EOF
expect 'a command that speaks TAP' 1 vm --junit "$folder/junit.xml" -- /some/tests
says out 'its output is shown' '^not ok 2 - second <&>$'
says err 'and what it says on stderr' '^loud$'
xml 'counts are in the report' \
	'[s.get(k) for k in ("name", "tests", "failures", "errors", "skipped")] == ["tests", "3", "1", "0", "1"]'
xml 'cases have their names' '[k.get("name") for k in c] == ["first", "second <&>", "third"]'
xml 'a failure has its diagnostics' 'c[1].find("failure").text == "why\n" and c[2].find("skipped").get("message") == "SKIP none"'
expect 'a document' 1 vm --json -- /some/tests arg
document 'has the status and the tests' \
	'd["schema"] == "embeng.vm/1" and d["command"] == ["/some/tests", "arg"] and d["status"] == 1 and d["tests"] == {"passed": 1, "failed": 1, "skipped": 1} and d["seconds"] > 0'
says err 'the output is on stderr then' '^ok 1 - first$'

plays <<'EOF'
head -c 3000000 /dev/urandom
printf '\nnot ok 1 - \033]0;x\007\377<testcase name="y">]]>\n1..1\n'
EOF
expect 'hostile output' 0 vm --junit "$folder/junit.xml" -- prog
xml 'makes a well-formed report' \
	'"]0;x" in c[-1].get("name") and "<testcase" in c[-1].get("name") and int(s.get("failures")) >= 1 and len(c) == int(s.get("tests"))'
xml 'of bounded size' 'len(s.find("system-out").text) <= (1 << 20) + 100'

plays <<'EOF'
echo no tests
exit 124
EOF
expect 'a time limit' 124 vm --junit "$folder/junit.xml" --json -- slow
document 'is a status of the document' 'd["status"] == 124 and d["tests"] is None'
xml 'and an error in the report' 's.get("errors") == "1" and c[0].find("error").get("message") == "exit status 124"'
expect 'a report that cannot be written' 2 vm --junit "$folder/none/junit.xml" -- true
says err 'is told of before the machine starts' 'none/junit.xml: No such file or directory'
[ ! -s "$folder/out" ] && report ok 'which does not start' || report no 'which does not start'

# It waits for the signal that embeng passes on, and ends in order.
plays <<EOF
trap 'echo ended >"$folder/ended"; exit 143' TERM
touch "$folder/started"
for i in \$(seq 300); do sleep 0.1; done
EOF
"$embeng" vm -- true >"$folder/out" 2>"$folder/err" &
child=$!
for _ in $(seq 300); do
	[ ! -e "$folder/started" ] || break
	sleep 0.1
done
kill -TERM $child
wait $child 2>"$folder/out"
status=$?
[ $status -eq 143 ] && report ok 'a signal ends it' || report no "a signal ends it ($status)"
[ -e "$folder/ended" ] && report ok 'and the machine before it' || report no 'and the machine before it'

rm "$script"
expect 'no script' 125 vm -- true
says err 'its place is said' "stage$installed/run, cannot be run: No such file"
says err 'and the variable' 'EMBENG_VM_ROOT names the DESTDIR'
expect 'no script, as a document' 125 vm --json -- true
document 'has the error' 'd["schema"] == "embeng.vm/1" and d["error"]["code"] == 125'

# The real scripts, as far as they come without a virtual machine.
cp "$source"/runtime/vm/*.sh "$source/scripts/suite.sh" "$folder/stage$installed/"
sed -e 's/@VERSION@/9.9/' -e 's|@FIRMWARE_DIR@|/lib/firmware|' -e 's|@[A-Z]*DIR@|/usr/bin|' \
	"$source/runtime/vm/run.in" >"$script"
chmod +x "$script"
mkdir "$folder/bin"
for tool in sh uname dirname; do
	ln -s "$(command -v $tool)" "$folder/bin/$tool"
done
# few NAME CODE ARGUMENT...: as expect, on a system with few programs
few()
{
	name=$1 code=$2
	shift 2
	HOME=$folder PATH=$folder/bin "$embeng" "$@" >"$folder/out" 2>"$folder/err"
	[ $? -eq "$code" ] && report ok "$name" || report no "$name"
}
few 'programs are missing' 125 vm -- true
says err 'they are named' 'missing: qemu-system-x86_64 busybox .*cpio xz flock make gcc; on Debian'
says err 'with the packages that have them' 'apt-get install --no-install-recommends qemu-system-x86 busybox-static .*cpio xz-utils'
few 'a folder that is none' 2 vm --share "$folder/none" -- true
says err 'is named' "share: '$folder/none' is no folder"

finish

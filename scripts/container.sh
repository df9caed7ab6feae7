#!/bin/sh
# SPDX-License-Identifier: MIT
# Does what runtime/examples/ci/Containerfile tells docker to do, in a pristine Debian that debootstrap
# makes: its ARG, ENV and RUN lines, in their order, with embeng as it is committed here. Then the
# project beside it tests itself there. Says how long each line took, and fails with the first that
# fails. No container runtime is needed.
# usage: container.sh
# It takes root, to make the system and to enter it.
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
. "$top/scripts/suite.sh"
example=$top/runtime/examples/ci
[ $# -eq 0 ] || {
	sed -n 's/^# \(usage.*\)/\1/p' "$0" >&2
	exit 2
}
suite_needs_root "a container's test" || exit 1

suite=$(sed -n 's/^FROM debian://p' "$example/Containerfile")
root=$suite_cache/container-$suite
suite_shared=
trap 'rm -rf --one-file-system "$root" "$root.new"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# timed WHAT COMMAND...: runs it and says how long it took
timed()
{
	what=$1
	shift
	began=$(date +%s)
	"$@" >"$root.log" 2>&1 || {
		tail -n 40 "$root.log" >&2
		echo "container.sh: $what failed" >&2
		exit 1
	}
	echo "container.sh: $what took $(($(date +%s) - began)) s"
}

# The tree as it is committed, as a repository with the branch main.
publish()
{
	git -c safe.directory='*' clone -q --bare --no-hardlinks "$top" "$root/embeng.git" &&
		git -C "$root/embeng.git" branch -f main HEAD
}

# in_image COMMAND: as RUN has it, with the ARG and ENV lines of before
in_image()
{
	suite_enter "$root" / sh -c "$settings $1" </dev/null
}

rm -rf --one-file-system "$root"
timed "a pristine system" suite_debootstrap "$suite" "$root"
timed "a repository" publish
settings='export EMBENG=file:///embeng.git;'
grep -E '^[A-Z]+ ' "$example/Containerfile" >"$root/steps"
while read -r word line; do
	case $word:$line in
	FROM:*) ;;
	ARG:*=*) settings="$settings export ${line%%=*}='${line#*=}';" ;;
	ARG:EMBENG) ;;
	ENV:*=*) settings="$settings export $line;" ;;
	RUN:*) timed "RUN $(echo "$line" | cut -c1-60)..." in_image "$line" ;;
	*)
		echo "container.sh: the Containerfile says '$word $line', which this does not know" >&2
		exit 1
		;;
	esac
done <"$root/steps"
cp -r "$example" "$root/work"
timed "make check of the project" in_image "cd /work && make check"
grep -E '^(ok|not ok|1\.\.)' "$root.log"

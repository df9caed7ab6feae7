#!/bin/sh
# SPDX-License-Identifier: MIT
# Does what a newcomer does: makes a pristine Debian system with git, make and sudo added, clones
# the tree as it is committed, and types the README's commands there as an ordinary user. Says how
# long each took, and fails with the first that fails.
# usage: newcomer.sh bookworm|trixie [demo]
# With demo, the first command alone; else "make check", too, cut to its plain stage.
# It takes root, to make the system and to enter it.
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
. "$top/scripts/suite.sh"

suite=${1-} commands=${2-}
case $suite:$commands in
bookworm: | trixie: | bookworm:demo | trixie:demo) ;;
*)
	sed -n 's/^# \(usage.*\)/\1/p' "$0" >&2
	exit 2
	;;
esac
suite_needs_root "a newcomer's test" || exit 1

home=/home/newcomer
root=$suite_cache/newcomer-$suite
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
	"$@" || {
		echo "newcomer.sh: $suite: $what failed" >&2
		exit 1
	}
	echo "newcomer.sh: $suite: $what took $(($(date +%s) - began)) s"
}

make_system()
{
	rm -rf --one-file-system "$root"
	suite_debootstrap "$suite" "$root" || return 1
	suite_tries suite_enter "$root" / sh -euc '
		apt-get -q update
		apt-get -q install -y --no-install-recommends git make sudo' >"$root.log" 2>&1 || {
		tail -n 5 "$root.log" >&2
		return 1
	}
	suite_enter "$root" / sh -euc '
		useradd --create-home --shell /bin/bash newcomer
		echo "newcomer ALL=(ALL) NOPASSWD: ALL" >/etc/sudoers.d/newcomer'
}

clone()
{
	git -c safe.directory='*' clone -q --no-hardlinks "$top" "$root$home/embeng" &&
		suite_enter "$root" / chown -R newcomer: "$home/embeng"
}

# type_command COMMAND: types it as the user, without a terminal
type_command()
{
	echo "newcomer\$ $1"
	suite_enter "$root" / sudo -u newcomer -i sh -c "cd embeng && $1" </dev/null
}

if [ -n "$(git -C "$top" status --porcelain)" ]; then
	echo "newcomer.sh: changes in $top that are not committed are not tried" >&2
fi
timed "a pristine system" make_system
timed "git clone" clone
timed "make demo" type_command "make demo"
if [ -z "$commands" ]; then
	timed "make check" type_command "make check STAGES=plain"
fi

#!/bin/sh
# SPDX-License-Identifier: MIT
# Installs the packages of packages.txt that are missing, saying which first.
# usage: deps.sh [build|check|kernel|bench]: what building needs alone, tests too, virtual machines
# too, the peers of benchmarks too
# Runs before anything else is there: POSIX sh, dpkg and apt-get only.
set -eu

cd "$(dirname "$0")/.."
part=${1:-check}

arch()
{
	if command -v dpkg >/dev/null; then
		dpkg --print-architecture
	elif [ "$(uname -m)" = x86_64 ]; then
		echo amd64
	else
		uname -m
	fi
}

# "package probe purpose" per line, for this architecture, up to the end of the part
wanted()
{
	awk -v arch="$(arch)" -v part="$part" '
		/^# (build|check|kernel|bench)$/ { if (seen) exit; seen = $2 == part }
		/^#/ || NF == 0 { next }
		$2 ~ /^\[/ { if ($2 != "[" arch "]") next; $2 = "" }
		{ $1 = $1; gsub(/  +/, " "); print }' packages.txt
}

installed()
{
	[ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

compiles()
{
	printf '#include <%s>\n' "$2" | $1 -fsyntax-only - 2>/dev/null
}

links_fuzzer()
{
	echo 'int LLVMFuzzerTestOneInput(const char *p, unsigned long n) { return !p && n; }' |
		clang -fsanitize=fuzzer,address -x c - -o /dev/null 2>/dev/null
}

probe()
{
	case $1 in
	cmd:*) command -v "${1#cmd:}" >/dev/null ;;
	pc:*) pkg-config --exists "${1#pc:}" 2>/dev/null ;;
	py:*) python3 -c "import ${1#py:}" 2>/dev/null ;;
	file:*) [ -e "${1#file:}" ] ;;
	hdr:*) compiles "cc -x c" "${1#hdr:}" ;;
	fuzzer:clang) links_fuzzer ;;
	m32:gcc) compiles "gcc -m32 -x c" stdint.h ;;
	*) echo "packages.txt: unknown probe $1" >&2; return 1 ;;
	esac
}

missing_packages()
{
	wanted | while read -r package _; do
		installed "$package" || printf ' %s' "$package"
	done
}

# "purpose (Debian: package)" a line, of what a probe does not find
lacking()
{
	wanted | while read -r package test purpose; do
		probe "$test" || printf '  %-36s (Debian: %s)\n' "$purpose" "$package"
	done
}

# Where there is no dpkg, Debian's names of packages mean little: say what each is for. A package
# that only some tests need is not fatal: those tests fail by name, and all others run.
other_distribution()
{
	lacking=$(lacking)
	[ -z "$lacking" ] && exit 0
	printf 'This is not a Debian system. Please install, by purpose:\n%s\n' "$lacking" >&2
	part=build
	[ -z "$(lacking)" ]
	exit
}

# Prints how to become root ("" when we are), fails when there is no way without asking a person.
elevate()
{
	if [ "$(id -u)" = 0 ]; then
		return 0
	elif ! command -v sudo >/dev/null; then
		return 1
	elif [ -t 0 ] || sudo -n true 2>/dev/null; then
		echo sudo
	else
		return 1
	fi
}

apt()
{
	$root env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 "$@"
}

have_lists()
{
	ls /var/lib/apt/lists/*_Packages* >/dev/null 2>&1
}

# Names each of the missing packages $@ with its purpose, and ends the script without an error. The
# build can do without them: tests that need one fail by name, and all others run.
without()
{
	for package; do
		purpose=$(wanted | awk -v package="$package" '$1 == package { $1 = $2 = ""; print substr($0, 3) }')
		echo "embeng goes on without $package ($purpose): tests that need it will fail" >&2
	done
	exit 0
}

needed_by_build()
{
	part=build
	for package in $(missing_packages); do
		echo "$package"
	done
}

# Ends the script when packages cannot be installed, for the reason $1. It is an error if the build
# needs one of them.
give_up()
{
	echo "$1" >&2
	[ -n "$(needed_by_build)" ] || without $missing
	exit 1
}

command -v dpkg-query >/dev/null && command -v apt-get >/dev/null || other_distribution

missing=$(missing_packages)
[ -z "$missing" ] && exit 0

line="apt-get install -y --no-remove --no-install-recommends$missing"
if ! root=$(elevate); then
	printf 'embeng needs these Debian packages:%s\n' "$missing" >&2
	give_up "Install them as root, then run this again:
  $line"
fi

printf 'embeng needs these Debian packages:%s\n' "$missing"
printf 'Installing them with:\n  %s%s\n' "${root:+$root }" "$line"
have_lists || apt update || :
# Old lists name versions that the mirror no longer has: refresh them once before giving up.
# shellcheck disable=SC2086
apt install -y --no-remove --no-install-recommends $missing || {
	echo "Refreshing the package lists and trying again."
	apt update && apt install -y --no-remove --no-install-recommends $missing
} || give_up "They could not be installed: is there a network? The line above, as root, installs them."

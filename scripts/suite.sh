# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# Debian systems beside the machine's own: one folder for each suite, made by debootstrap and kept
# in the cache, in which the suite's compilers, libraries and kernel tools run by chroot. Making
# and entering one takes root. Sourced, with the tree in $top; suite_root sets $suite_root.

suite_cache=${EMBENG_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/embeng}

# The suite of this machine, empty where it is no Debian.
suite_of_host()
{
	# shellcheck disable=SC1091
	(. /etc/os-release && [ "$ID" = debian ] && echo "${VERSION_CODENAME-}")
}

# The archive that the machine's own package sources name, or EMBENG_MIRROR; its security suite is
# beside it.
suite_mirror()
{
	# shellcheck disable=SC2016 # apt's own $(REPO_URI)
	mirror=${EMBENG_MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' \
		'Created-By: Packages' 2>/dev/null | grep -E '/debian/*$' | head -n 1)}
	if [ -z "$mirror" ]; then
		echo "apt's sources name no archive of Debian: name one by EMBENG_MIRROR=URL/debian" >&2
		return 1
	fi
	echo "${mirror%/}"
}

# suite_sources SUITE [KEYRING]: lines for sources.list
suite_sources()
(
	mirror=$(suite_mirror) || return 1
	signed=${2:+[signed-by=$2] }
	echo "deb $signed$mirror $1 main"
	echo "deb $signed$mirror $1-updates main"
	echo "deb $signed${mirror%/debian}/debian-security $1-security main"
)

# suite_needs_root WHAT: fails with one line where this is not root
suite_needs_root()
{
	[ "$(id -u)" != 0 ] || return 0
	echo "$1 runs in a Debian system of its own, which takes root: run this by sudo" >&2
	return 1
}

# suite_tries COMMAND...: up to three tries, for an archive that fails for a while
suite_tries()
{
	"$@" || { sleep 10 && "$@"; } || { sleep 60 && "$@"; }
}

# suite_unpack SUITE FOLDER: from the start, with what it prints beside the folder
suite_unpack()
{
	rm -rf "$2"
	debootstrap --variant=minbase "$1" "$2" "$(suite_mirror)" >"${2%.new}.log" 2>&1
}

suite_debootstrap()
{
	suite_mirror >/dev/null || return 1
	suite_tries suite_unpack "$1" "$2.new" || {
		tail -n 5 "$2.log" >&2
		return 1
	}
	suite_sources "$1" >"$2.new/etc/apt/sources.list"
	# Nothing starts a service there.
	printf '#!/bin/sh\nexit 101\n' >"$2.new/usr/sbin/policy-rc.d"
	chmod +x "$2.new/usr/sbin/policy-rc.d"
	mv "$2.new" "$2"
}

# suite_root SUITE: makes it where it is not there yet
suite_root()
{
	suite_root=$suite_cache/debian-$1
	suite_needs_root "Debian's $1" || return 1
	[ ! -d "$suite_root" ] || return 0
	command -v debootstrap >/dev/null || {
		echo "Debian's $1 is unpacked by debootstrap, which is missing: apt-get install debootstrap" >&2
		return 1
	}
	mkdir -p "$suite_cache"
	(
		flock 8
		[ -d "$suite_root" ] || {
			echo "Unpacking Debian's $1 into $suite_root" >&2
			suite_debootstrap "$1" "$suite_root"
		}
	) 8>"$suite_root.lock"
}

# suite_enter ROOT FOLDER COMMAND...: runs it in the system below ROOT, in that FOLDER. The folders
# of $suite_shared keep their names there; all that is mounted is gone when the command ends.
suite_enter()
(
	root=$1 folder=$2
	shift 2
	# shellcheck disable=SC2016,SC2086
	unshare --mount --propagation private sh -euc '
		root=$1 folder=$2 count=$3
		shift 3
		mount -t proc proc "$root/proc"
		mount --rbind /dev "$root/dev"
		cp -L /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null || :
		while [ "$count" -gt 0 ]; do
			mkdir -p "$root$1"
			mount --bind "$1" "$root$1"
			shift
			count=$((count - 1))
		done
		exec chroot "$root" sh -c "cd \"\$1\" && shift && exec \"\$@\"" sh "$folder" "$@"
	' sh "$root" "$folder" "$(echo $suite_shared | wc -w)" $suite_shared \
		env -i HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
		PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
)

# suite_run SUITE COMMAND...: runs it in that suite's system, in the folder where this runs, with
# the tree and the cache
suite_run()
{
	suite_root "$1" || return 1
	shift
	suite_shared="$top $suite_cache" suite_enter "$suite_root" "$PWD" "$@"
}

# suite_install SUITE PACKAGE...: those that are missing there
suite_install()
(
	suite=$1
	shift
	suite_tries suite_run "$suite" sh -euc '
		for package; do
			dpkg-query -W -f="\${db:Status-Status}\n" "$package" 2>/dev/null |
				grep -qx installed || echo "$package"
		done >/tmp/missing
		[ -s /tmp/missing ] || exit 0
		apt-get -q update
		xargs apt-get -q install -y --no-install-recommends </tmp/missing
	' sh "$@" >"$suite_cache/debian-$suite.log" 2>&1 || {
		tail -n 10 "$suite_cache/debian-$suite.log" >&2
		return 1
	}
)

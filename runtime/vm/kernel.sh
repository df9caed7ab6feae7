# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# The kernels that virtual machines boot and modules are built for. kernel_named takes a name:
#	stock, 6.12	the long-term kernel of this machine's suite, the oldest that is supported
#	7.3		the newest point release of that version that Debian's suites carry
#	newest		the newest version that they carry
#	7.3.4+deb13-rt-amd64	a release, as a package is named
#	host		the kernel that runs on this machine
#	debug		the instrumented kernel, which embeng's own tree alone has: tests/vm/kernel_debug.sh
#	/PATH		a folder in which a kernel was built, or Debian's packages of one unpacked
# Debian's packages are unpacked into a cache, nothing is installed. Sourced, after suite.sh.
# A function whose body is in parentheses changes no variable of its caller. kernel_named sets
#	kernel_release	as uname -r says it
#	kernel_image	what to boot
#	kernel_headers	where modules are built against
#	kernel_modules	folder with lib/modules/RELEASE in it
#	kernel_cmdline	what it is to be told

kernel_cache=$suite_cache
PATH=$PATH:/usr/sbin:/sbin # depmod, also for those who are not root

kernel_keys=/usr/share/keyrings/debian-archive-keyring.gpg

# apt with package lists of its own below $1, which need no root. The machine's may be old, or
# missing, or without Debian 12's security suite, which is where its 6.12 is.
kernel_apt_in()
(
	folder=$1 tool=$2
	shift 2
	"$tool" -q -o "Dir::State::Lists=$folder/lists" -o "Dir::Cache=$folder/cache" \
		-o Dir::Etc::SourceList=/dev/null -o "Dir::Etc::SourceParts=$folder/sources" \
		-o APT::Sandbox::User=root "$@"
)

kernel_apt()
{
	kernel_apt_in "$kernel_cache/apt" "$@"
}

# kernel_lists FOLDER FILL: fetches package lists into the folder, of the sources that FILL puts
# into the one that it is given. Where no archive can be reached, the lists of before stay.
kernel_lists()
(
	to=$1 fill=$2
	echo "Fetching package lists into $to" >&2
	rm -rf "$to.new"
	mkdir -p "$to.new/lists/partial" "$to.new/cache/archives/partial" "$to.new/sources"
	"$fill" "$to.new/sources" || return 1
	kernel_apt_in "$to.new" apt-get update >"$to.log" 2>&1 || :
	if [ -z "$(find "$to.new/lists" -name '*_Packages*')" ]; then
		echo "no archive of Debian can be reached, $to.log has why: is there a network?" >&2
		return 1
	fi
	rm -rf "$to"
	mv "$to.new" "$to"
)

# The machine's own sources.
kernel_fill_own()
{
	cp /etc/apt/sources.list.d/* "$1/" 2>/dev/null || :
	[ ! -f /etc/apt/sources.list ] || cp /etc/apt/sources.list "$1/machine.list"
}

# The machine's suite as Debian has it, with the security suite.
kernel_fill_suite()
{
	suite_sources "$(suite_of_host)" $kernel_keys >"$1/suite.list"
}

kernel_refresh()
{
	kernel_lists "$kernel_cache/apt" kernel_fill_own || return 1
	[ -n "$(kernel_package kernel_apt)" ] || kernel_lists "$kernel_cache/apt" kernel_fill_suite
}

# kernel_once FOLDER COMMAND...: the command makes the folder, when it is not there, by one process
kernel_once()
(
	to=$1
	shift
	[ ! -d "$to" ] || return 0
	mkdir -p "$kernel_cache"
	(flock 9 && { [ -d "$to" ] || "$@" "$to"; }) 9>"$to.lock"
)

# The driver needs DRM_ACCEL, and 6.12 is the long-term kernel that Debian 12 and 13 share.
kernel_package()
{
	for name in linux-image-6.12-amd64 linux-image-amd64; do
		"$1" apt-cache show "$name" 2>/dev/null |
			sed -n 's/^Depends: \(linux-image-6\.12[^ ]*-amd64\) .*/\1/p' | sort -V | tail -n 1
	done | head -n 1
}

kernel_needs_apt()
{
	command -v apt-get >/dev/null || {
		echo "kernels are fetched by apt-get, which this system has not:" \
			"name a kernel that is here, such as --kernel host" >&2
		return 1
	}
}

# kernel_ask QUESTION: what it answers by the machine's package lists, by ours, by fresh ones
kernel_ask()
{
	answer=$("$1" env)
	[ -n "$answer" ] || answer=$("$1" kernel_apt)
	if [ -z "$answer" ]; then
		kernel_refresh && answer=$("$1" kernel_apt)
	fi
	echo "$answer"
}

kernel_download()
{
	apt-get -q download "$@" 2>/dev/null || kernel_apt apt-get download "$@" 2>/dev/null ||
		{ kernel_refresh && kernel_apt apt-get download "$@"; }
}

# kernel_unpack DOWNLOAD FOLDER PACKAGE...: downloads and unpacks them, whole or not at all
kernel_unpack()
(
	download=$1 to=$2
	shift 2
	rm -rf "$to.new"
	mkdir -p "$to.new/deb"
	(cd "$to.new/deb" && "$download" "$@") >"$to.log" 2>&1 || {
		echo "cannot download $*, $to.log has why: is there a network?" >&2
		return 1
	}
	for package in "$to.new"/deb/*.deb; do
		dpkg -x "$package" "$to.new" || return 1
	done
	rm -r "$to.new/deb"
)

# Modules are below usr in Debian 13, where its tools look for them, and are not in Debian 12.
# From Linux 7.2 on the image is among them.
kernel_merge()
(
	mkdir -p "$1/lib" "$1/usr/lib" "$1/boot"
	if [ -d "$1/usr/lib/modules" ]; then
		mv "$1/usr/lib/modules" "$1/lib/"
	fi
	ln -s ../../lib/modules "$1/usr/lib/modules"
	image=$1/lib/modules/$kernel_release/vmlinuz
	[ ! -e "$image" ] || mv "$image" "$1/boot/vmlinuz-$kernel_release"
)

# Debian's headers lead to each other by absolute names.
kernel_relocate()
(
	sed -i "s|/usr/src/|$2/usr/src/|" "$1/usr/src/linux-headers-$kernel_release/Makefile"
	find "$1/usr/src" "$1/usr/lib" -type l | while read -r link; do
		to=$(readlink "$link")
		case $to in /usr/*) ln -sfn "$2$to" "$link" ;; esac
	done
	[ ! -d "$1/lib/modules/$kernel_release/kernel" ] || depmod -b "$1" "$kernel_release"
)

kernel_settle()
{
	kernel_merge "$1.new" && kernel_relocate "$1.new" "$1" && mv "$1.new" "$1"
}

kernel_fetch()
{
	common=${kernel_release%-amd64}
	echo "Fetching Linux $kernel_release into $1" >&2
	kernel_unpack kernel_download "$1" "linux-image-$kernel_release" \
		"linux-headers-$kernel_release" "linux-headers-$common-common" \
		"linux-kbuild-$common" && kernel_settle "$1"
}

# kernel_of PACKAGE: sets what is known of it by its name
kernel_of()
{
	if [ -z "$1" ]; then
		echo "no package has Linux 6.12: Debian 12 has it in its security suite, 13 in main" >&2
		return 1
	fi
	kernel_release=${1#linux-image-}
	kernel_modules=$kernel_cache/linux-$kernel_release
	kernel_image=$kernel_modules/boot/vmlinuz-$kernel_release
	kernel_headers=$kernel_modules/usr/src/linux-headers-$kernel_release
	kernel_cmdline=
}

kernel_stock()
{
	kernel_needs_apt || return 1
	kernel_of "$(kernel_ask kernel_package)" || return 1
	kernel_once "$kernel_modules" kernel_fetch && return 0
	# An archive may have a newer one only: its lists were fetched before that was given up.
	newer=$(kernel_package kernel_apt)
	[ "${newer:-linux-image-$kernel_release}" != "linux-image-$kernel_release" ] && kernel_of "$newer" &&
		kernel_once "$kernel_modules" kernel_fetch
}

# Package lists of the suites that carry a kernel from 6.12 on, whatever suite this machine is of.
kernel_suites_apt()
{
	kernel_apt_in "$kernel_cache/apt-suites" "$@"
}

kernel_fill_suites()
{
	{
		suite_sources trixie $kernel_keys
		suite_sources trixie $kernel_keys | sed -n 's/ trixie main/ trixie-backports main/p'
		suite_sources bookworm $kernel_keys | grep security
	} >"$1/suites.list"
}

# kernel_suites_age DAYS: prints the lists that are not older
kernel_suites_age()
{
	find "$kernel_cache/apt-suites/lists" -name '*_Packages*' -mtime "-$1" 2>/dev/null
}

# Lists of yesterday name packages that the archive may have dropped. They still tell which kernels
# are in the cache where no archive can be reached.
kernel_suites_lists()
{
	kernel_needs_apt || return 1
	[ -z "$(kernel_suites_age 1)" ] || return 0
	kernel_lists "$kernel_cache/apt-suites" kernel_fill_suites && return 0
	[ -n "$(kernel_suites_age 10000)" ] && echo "The package lists of before are used." >&2
}

kernel_suites_download()
{
	kernel_suites_apt apt-get download "$@"
}

# kernel_carried FLAVOUR: releases with headers from 6.12 on, the newest of each version of each Debian, oldest
# first; FLAVOUR is amd64 or rt-amd64
kernel_carried()
(
	kernel_suites_lists || return 1
	kernel_suites_apt apt-cache pkgnames linux-headers- |
		sed -nE "s/^linux-headers-(([0-9]+\.[0-9]+)\.[0-9.]+\+deb([0-9]+)[0-9.]*-$1)\$/\2+deb\3 \1/p" |
		sort -k 2 -V | awk '{ newest[$1] = $2 } END { for (k in newest) print newest[k] }' |
		sort -V | awk -F. '$1 > 6 || $2 >= 12'
)

# kernel_unpack_release FOLDER KIND...: packages of the release, linux-KIND-..., and what these depend
# on of the same kinds: all that a release is made of has its version in its name
kernel_unpack_release()
(
	to=$1
	shift
	version=$(echo "$kernel_release" | sed 's/+.*//')
	kinds=$(echo "$@" base kbuild | tr ' ' '|')
	# shellcheck disable=SC2046
	kernel_unpack kernel_suites_download "$to" $(kernel_suites_apt apt-cache depends --recurse \
		--no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances \
		$(printf "linux-%s-$kernel_release\n" "$@") |
		grep -xE "linux-($kinds)-$version\+.*" | grep -v -- '-unsigned$' | sort -u)
)

kernel_fetch_release()
{
	echo "Fetching Linux $kernel_release into $1" >&2
	kernel_unpack_release "$1" image headers modules binary && kernel_settle "$1"
}

# kernel_of_version X.Y|newest|RELEASE
kernel_of_version()
{
	case $1 in
	*+deb*) ;;
	*) kernel_suites_lists || return 1 ;;
	esac
	case $1 in
	newest) release=$(kernel_carried amd64 | tail -n 1) ;;
	*+deb*) release=$1 ;;
	*) release=$(kernel_carried amd64 | grep -E "^$(echo "$1" | sed 's/\./\\./g')\." | tail -n 1) ;;
	esac
	if [ -z "$release" ]; then
		echo "Debian's suites carry no Linux $1; they carry $(kernel_carried amd64 | paste -s -d ' ')" >&2
		return 1
	fi
	kernel_of "linux-image-$release"
	[ -d "$kernel_modules" ] || kernel_suites_lists || return 1
	kernel_once "$kernel_modules" kernel_fetch_release
}

# kernel_of_path FOLDER: in which a kernel was built, or Debian's packages of one were unpacked
kernel_of_path()
{
	kernel_headers=$(cd "$1" && pwd -P) || return 1
	kernel_cmdline=
	if [ -d "$kernel_headers/usr/src" ]; then
		kernel_modules=$kernel_headers
		kernel_release=$(basename "$kernel_modules"/boot/vmlinuz-* | sed 's/^vmlinuz-//')
		kernel_image=$kernel_modules/boot/vmlinuz-$kernel_release
		kernel_headers=$kernel_modules/usr/src/linux-headers-$kernel_release
		return
	fi
	kernel_image=$kernel_headers/arch/x86/boot/bzImage
	if [ ! -f "$kernel_image" ] || [ ! -f "$kernel_headers/Module.symvers" ]; then
		echo "$1 is no folder in which a kernel was built:" \
			"it lacks arch/x86/boot/bzImage or Module.symvers" >&2
		return 1
	fi
	kernel_release=$(cat "$kernel_headers/include/config/kernel.release")
	key=$(cat "$kernel_headers/Module.symvers" "$kernel_headers/.config" | sha256sum | cut -c1-12)
	kernel_modules=$kernel_cache/modules-$key
	kernel_once "$kernel_modules" kernel_install_modules
}

# The kernel that this machine runs, where its packages put it.
kernel_host()
{
	kernel_release=$(uname -r)
	kernel_modules=/
	kernel_headers=/lib/modules/$kernel_release/build
	kernel_cmdline=
	for kernel_image in "/boot/vmlinuz-$kernel_release" "/lib/modules/$kernel_release/vmlinuz" ''; do
		[ ! -r "$kernel_image" ] || break
	done
	if [ -z "$kernel_image" ] || [ ! -f "$kernel_headers/Makefile" ]; then
		echo "Linux $kernel_release, which this machine runs, has no image in /boot that may be read," \
			"or no headers in $kernel_headers: leave --kernel out for a kernel of Debian's" >&2
		return 1
	fi
	grep -qs '^CONFIG_DRM_ACCEL=y' "$kernel_headers/.config" \
		"$kernel_headers/include/config/auto.conf" || {
		echo "Linux $kernel_release, which this machine runs, was built without CONFIG_DRM_ACCEL:" \
			"leave --kernel out for a kernel of Debian's" >&2
		return 1
	}
}

kernel_install_modules()
{
	make -C "$kernel_headers" INSTALL_MOD_PATH="$1.new" modules_install >"$1.log" 2>&1 &&
		mv "$1.new" "$1"
}

# kernel_named NAME: as told above
kernel_named()
{
	case $1 in
	stock | 6.12) kernel_stock ;;
	host) kernel_host ;;
	debug)
		command -v kernel_debug >/dev/null || {
			echo "the kernel 'debug' is built in embeng's own tree, by tests/vm/run" >&2
			return 1
		}
		kernel_debug
		;;
	newest | [0-9]*.[0-9]*) kernel_of_version "$1" ;;
	*/*) kernel_of_path "$1" ;;
	*)
		echo "there is no kernel '$1'; there are stock, newest, host, a version as 7.3," \
			"and the folder of a kernel that was built" >&2
		return 1
		;;
	esac
}

# A kernel's own tools want the C library that they were built with, and its headers a compiler
# that is not older than its own.
kernel_builds_here()
(
	compiler=$(sed -n 's/^CONFIG_GCC_VERSION=\(.*\)....$/\1/p' "$1/.config" 2>/dev/null)
	[ "$(gcc -dumpversion | cut -d. -f1)" -ge "${compiler:-0}" ] &&
		{ [ ! -e "$1/scripts/basic/fixdep" ] || ! "$1/scripts/basic/fixdep" 2>&1 | grep -q GLIBC; }
)

# kernel_make HEADERS ARGUMENT...: make against them, here or in the Debian that they are of
kernel_make()
(
	headers=$1
	shift
	if kernel_builds_here "$headers"; then
		make -C "$headers" "$@"
	else
		suite_install trixie make gcc libc6-dev libelf1t64 perl python3 &&
			suite_run trixie make -C "$headers" "$@"
	fi
)

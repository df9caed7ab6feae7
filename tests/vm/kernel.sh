# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# The kernels that virtual machines boot: kernel_stock is Debian's own, kernel_debug is built of
# Debian's source with everything in it that finds mistakes (debug.config). Debian's packages are
# unpacked into a cache, nothing is installed. Sourced, with the tree in $top; sets
#	kernel_release	as uname -r says it
#	kernel_image	what to boot
#	kernel_headers	where modules are built against
#	kernel_modules	folder with lib/modules/RELEASE in it
#	kernel_cmdline	what it is to be told

kernel_cache=${EMBENG_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/embeng}
PATH=$PATH:/usr/sbin:/sbin # depmod, also for those who are not root

# apt with package lists of its own, which need no root. The machine's may be old, or missing,
# or without Debian 12's security suite, which is where its 6.12 is.
kernel_apt()
{
	tool=$1
	shift
	"$tool" -q -o "Dir::State::Lists=$kernel_cache/apt/lists" \
		-o "Dir::Cache=$kernel_cache/apt/cache" \
		-o "Dir::Etc::SourceParts=$kernel_cache/apt/sources" -o APT::Sandbox::User=root "$@"
}

kernel_refresh()
{
	echo "Fetching package lists into $kernel_cache/apt" >&2
	rm -rf "$kernel_cache/apt"
	mkdir -p "$kernel_cache/apt/lists/partial" "$kernel_cache/apt/cache/archives/partial" \
		"$kernel_cache/apt/sources"
	cp /etc/apt/sources.list.d/* "$kernel_cache/apt/sources/" 2>/dev/null || :
	kernel_apt apt-get update >&2 || return 1
	[ -n "$(kernel_package kernel_apt)" ] || kernel_add_security
}

# The security suite is beside the archive that the machine's sources name.
kernel_add_security()
{
	mirror=$(kernel_apt apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' |
		sed -n 's|/debian/*$|/debian-security|p' | head -n 1)
	[ -n "$mirror" ] || return 0
	echo "deb $mirror $(. /etc/os-release && echo "$VERSION_CODENAME")-security main" \
		>"$kernel_cache/apt/sources/embeng-security.list"
	kernel_apt apt-get update >&2
}

# kernel_once FOLDER COMMAND...: the command makes the folder, when it is not there, by one process
kernel_once()
{
	to=$1
	shift
	[ ! -d "$to" ] || return 0
	mkdir -p "$kernel_cache"
	(flock 9 && { [ -d "$to" ] || "$@" "$to"; }) 9>"$to.lock"
}

# The driver needs DRM_ACCEL, and 6.12 is the long-term kernel that Debian 12 and 13 share.
kernel_package()
{
	for name in linux-image-6.12-amd64 linux-image-amd64; do
		"$1" apt-cache show "$name" 2>/dev/null |
			sed -n 's/^Depends: \(linux-image-6\.12[^ ]*-amd64\) .*/\1/p' | sort -V | tail -n 1
	done | head -n 1
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

# Downloads packages and unpacks them to $1, whole or not at all.
kernel_unpack()
{
	to=$1
	shift
	rm -rf "$to.new"
	mkdir -p "$to.new/deb"
	if ! (cd "$to.new/deb" && kernel_download "$@") >&2; then
		echo "cannot download $*, which the tests need" >&2
		return 1
	fi
	for package in "$to.new"/deb/*.deb; do
		dpkg -x "$package" "$to.new" || return 1
	done
	rm -r "$to.new/deb"
}

# Modules are below usr in Debian 13, where its tools look for them, and are not in Debian 12.
kernel_merge()
{
	mkdir -p "$1/lib" "$1/usr/lib"
	if [ -d "$1/usr/lib/modules" ]; then
		mv "$1/usr/lib/modules" "$1/lib/"
	fi
	ln -s ../../lib/modules "$1/usr/lib/modules"
}

# Debian's headers lead to each other by absolute names.
kernel_relocate()
{
	sed -i "s|/usr/src/|$2/usr/src/|" "$1/usr/src/linux-headers-$kernel_release/Makefile"
	depmod -b "$1" "$kernel_release"
}

kernel_fetch()
{
	common=${kernel_release%-amd64}
	echo "Fetching Linux $kernel_release into $1" >&2
	kernel_unpack "$1" "linux-image-$kernel_release" "linux-headers-$kernel_release" \
		"linux-headers-$common-common" "linux-kbuild-$common" &&
		kernel_merge "$1.new" && kernel_relocate "$1.new" "$1" && mv "$1.new" "$1"
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
	kernel_of "$(kernel_ask kernel_package)" || return 1
	kernel_once "$kernel_modules" kernel_fetch && return 0
	# An archive may have a newer one only: its lists were fetched before that was given up.
	kernel_of "$(kernel_package kernel_apt)" && kernel_once "$kernel_modules" kernel_fetch
}

kernel_source_version()
{
	"$1" apt-cache show linux-source-6.12 2>/dev/null | sed -n 's/^Version: //p' | sort -V | tail -n 1
}

kernel_fetch_source()
{
	echo "Fetching the source of Linux $version into $1" >&2
	kernel_unpack "$1" linux-source-6.12 && mkdir "$1.new/tree" &&
		tar -C "$1.new/tree" --strip-components=1 -xJf "$1.new/usr/src/linux-source-6.12.tar.xz" &&
		rm -r "$1.new/usr" && mv "$1.new" "$1"
}

# Sets $source, with the folder tree in it, and its $version.
kernel_source()
{
	version=$(kernel_ask kernel_source_version)
	if [ -z "$version" ]; then
		echo "there is no package linux-source-6.12" >&2
		return 1
	fi
	source=$kernel_cache/linux-source-${version%%-*}
	kernel_once "$source" kernel_fetch_source
}

# A line that the kernel did not take is a mistake that nobody would find.
kernel_configure()
{
	KCONFIG_ALLCONFIG=$config make -C "$source/tree" O="$1" allnoconfig >"$1.log" 2>&1 || {
		tail "$1.log" >&2
		return 1
	}
	if grep -E '^(# )?CONFIG_' "$config" | grep -vxFf "$1/.config" >&2; then
		echo "Linux $version does not take these lines of $config" >&2
		return 1
	fi
}

kernel_build()
{
	out=$1.new/build
	echo "Building the instrumented kernel of Linux $version in $1: ten minutes and more" >&2
	rm -rf "$1.new"
	mkdir -p "$out"
	kernel_configure "$out" || return 1
	nice make -C "$source/tree" O="$out" -j"$(nproc)" bzImage modules >"$out.log" 2>&1 &&
		make -C "$source/tree" O="$out" INSTALL_MOD_PATH="$1.new" modules_install \
			>>"$out.log" 2>&1 || {
		tail -n 30 "$out.log" >&2
		return 1
	}
	mv "$1.new" "$1"
}

# Another configuration, source or compiler makes another kernel.
kernel_debug()
{
	config=$top/tests/vm/debug.config
	kernel_source || return 1
	key=$({ cat "$config" && echo "$version" && gcc --version; } | sha256sum | cut -c1-12)
	kernel_modules=$kernel_cache/linux-debug-$key
	kernel_headers=$kernel_modules/build
	kernel_image=$kernel_headers/arch/x86/boot/bzImage
	kernel_once "$kernel_modules" kernel_build || return 1
	kernel_release=$(cat "$kernel_headers/include/config/kernel.release")
	# All reports, not the first of a kind; all of the log, and to the console too.
	kernel_cmdline="kasan_multi_shot log_buf_len=4M ignore_loglevel"
}

# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# The instrumented kernel, kernel_debug: built of Debian's source with everything in it that finds
# mistakes (debug.config). Sourced by kernel.sh.

kernel_source_version()
{
	"$1" apt-cache show linux-source-6.12 2>/dev/null | sed -n 's/^Version: //p' | sort -V | tail -n 1
}

kernel_fetch_source()
{
	echo "Fetching the source of Linux $version into $1" >&2
	kernel_unpack kernel_download "$1" linux-source-6.12 && mkdir "$1.new/tree" &&
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

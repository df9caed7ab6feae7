# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# What a virtual machine runs: programs and modules, built when stale. Sourced.

# Kernel modules build beside their sources, so that a copy of these is what is built.
build_modules()
{
	work=$1/build/kmod-$2
	mkdir -p "$work"
	for part in Kbuild kmod engine uapi firmware-loader; do
		cp -au "$1/$part" "$work/"
	done
	make -C "$3" M="$work" -j"$(nproc)" modules
}

build_all()
{
	[ -f "$1/build/build.ninja" ] || meson setup "$1/build" "$1" || return 1
	ninja -C "$1/build" || return 1
	[ ! -f "$1/kmod/Kbuild" ] || build_modules "$@"
}

# Shell commands that load the modules in the machine.
build_load()
{
	:
}

# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# What a virtual machine runs: programs and modules, built when stale. Sourced, after kernel.sh.

# build_copy TREE FOLDER: what the modules are built from, and no source that the tree has lost:
# Kbuild takes some by their folder
build_copy()
{
	for part in Kbuild kmod engine uapi firmware-loader; do
		cp -au "$1/$part" "$2/"
		find "$2/$part" \( -name '*.[chS]' -o -name '*.der' -o -name Kbuild \) ! -name '*.mod.c'
	done | while read -r file; do
		[ -e "$1/${file#"$2"/}" ] || rm "$file"
	done
}

# build_modules TREE NAME HEADERS [ARGUMENT...]: to build/kmod-NAME, with arguments for make.
# Kernel modules build beside their sources, so that a copy of these is what is built.
build_modules()
{
	work=$1/build/kmod-$2
	headers=$3
	mkdir -p "$work"
	build_copy "$1" "$work"
	shift 3
	# Type information for tracers wants another tool, and nothing here reads it.
	kernel_make "$headers" M="$work" -j"$(nproc)" CONFIG_DEBUG_INFO_BTF_MODULES= "$@" modules
}

# build_alone TREE NAME COMMAND...: runs it while nobody else builds, copies or looks at
# build/kmod-NAME by this function
build_alone()
(
	lock=$1/build/kmod-$2.lock
	shift 2
	mkdir -p "${lock%/*}"
	(flock 9 && "$@") 9>"$lock"
)

# build_twin TREE NAME OTHER: build/kmod-OTHER is made anew, as a copy of build/kmod-NAME in which make
# finds everything up to date. In what make notes of files, their names are absolute.
build_twin()
{
	from=$1/build/kmod-$2 to=$1/build/kmod-$3
	rm -rf "$to"
	cp -a "$from" "$to" &&
		find "$to" \( -name '*.cmd' -o -name '*.mod' -o -name modules.order \) \
			-exec sed -i "s|$from/|$to/|g" {} +
}

build_programs()
{
	[ -f "$1/build/build.ninja" ] || meson setup "$1/build" "$1" || return 1
	ninja -C "$1/build"
}

# build_loadable TREE NAME HEADERS: the modules as tests/kmod builds them, so that nothing is compiled
# twice; machines of one kernel that start together build them once
build_loadable()
{
	[ ! -f "$1/kmod/Kbuild" ] || build_alone "$1" "$2" build_modules "$@" W=1
}

# Shell commands that load the modules in the machine: the emulator, then the driver.
build_load()
{
	work=$1/build/kmod-$2/kmod
	if [ -f "$work/embeng.ko" ]; then
		echo "mkdir -p /lib/firmware/embeng"
		echo "cp '$1/build/firmware-loader/embeng.fw' /lib/firmware/embeng/"
		echo "modprobe drm"
	fi
	for module in "$work/emulator/embeng_emu.ko" "$work/embeng.ko"; do
		[ ! -f "$module" ] || echo "insmod '$module' $(build_parameters "$module")"
	done
}

# EMBENG_EMU in the environment holds the emulator's parameters.
build_parameters()
{
	case $1 in
	*_emu.ko) echo "${EMBENG_EMU-}" ;;
	esac
}

# Files that stand in the machine once they are loaded.
build_loaded()
{
	work=$1/build/kmod-$2/kmod
	echo "$work/emulator/embeng_emu.ko" "$work/embeng.ko" /lib/firmware/embeng/embeng.fw
}

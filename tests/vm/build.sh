# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# What a virtual machine runs of this tree: programs and modules, built when stale. Sourced, after
# kernel.sh.

. "$top/runtime/vm/build.sh"

# build_modules TREE NAME HEADERS [ARGUMENT...]: to build/kmod-NAME, with arguments for make
build_modules()
(
	tree=$1 name=$2
	shift 2
	build_modules_in "$tree" "$tree/build/kmod-$name" "$@"
)

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
	build_alone "$1" "$2" build_modules "$@" W=1
}

# build_modules_of TREE NAME: the modules, in the order in which they are loaded
build_modules_of()
{
	work=$1/build/kmod-$2/kmod
	echo "$work/emulator/embeng_emu.ko" "$work/embeng.ko"
}

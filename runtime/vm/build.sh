# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# The kernel modules that a virtual machine loads: copied and built from their sources, and the shell
# commands that load them. Sourced, after kernel.sh.

# build_copy SOURCE FOLDER: what the modules are built from, and no source that SOURCE has lost:
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

# build_modules_in SOURCE FOLDER HEADERS [ARGUMENT...]: builds them in a copy, because kernel modules
# build beside their sources; with arguments for make
build_modules_in()
(
	work=$2 headers=$3
	mkdir -p "$work"
	build_copy "$1" "$work"
	shift 3
	# Type information for tracers wants another tool, and nothing here reads it.
	kernel_make "$headers" M="$work" -j"$(nproc)" CONFIG_DEBUG_INFO_BTF_MODULES= "$@" modules
)

# quoted WORD...: as a shell reads them back
quoted()
{
	for word; do
		printf "'%s' " "$(printf %s "$word" | sed "s/'/'\\\\''/g")"
	done
}

# build_load_from FIRMWARE MODULE...: prints shell commands that load the modules in the machine. The
# driver asks for its firmware when it finds the function, so the emulator may come first. The host
# may have firmware installed, and FIRMWARE may be that: the machine has FIRMWARE and no other.
build_load_from()
{
	echo "mkdir -p /lib/firmware"
	echo "cp $(quoted "$1") /lib/firmware/embeng.new"
	echo "rm -rf /lib/firmware/embeng"
	echo "mkdir /lib/firmware/embeng"
	echo "mv /lib/firmware/embeng.new /lib/firmware/embeng/embeng.fw"
	echo "modprobe drm"
	shift
	for module; do
		echo "insmod $(quoted "$module") $(build_parameters "$module")"
	done
}

# EMBENG_EMU in the environment holds the emulator's parameters.
build_parameters()
{
	case $1 in
	*_emu.ko) echo "${EMBENG_EMU-}" ;;
	esac
}

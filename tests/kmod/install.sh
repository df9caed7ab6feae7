#!/bin/sh
# SPDX-License-Identifier: MIT
# The kernel modules as they are installed: found by modprobe with what they need, and as sources
# for DKMS, built as its configuration says. Speaks TAP.
# usage: install.sh KERNEL [dkms]
set -u

kernel=$1
top=$(cd "$(dirname "$0")/../.." && pwd)
. "$top/tests/vm/kernel.sh"
. "$top/tests/vm/build.sh"
. "$top/tests/vm/tap.sh"
trap 'rm -rf "$folder"' EXIT
kernel_named "$kernel" || exit 1
stage=$folder/stage
modules=$stage/lib/modules/$kernel_release

# The kernel as it is installed, without copies of it.
installed_kernel()
{
	mkdir -p "$modules" && cp -rs "$kernel_modules/lib/modules/$kernel_release/kernel" "$modules/" &&
		cp "$kernel_modules/lib/modules/$kernel_release"/modules.order \
			"$kernel_modules/lib/modules/$kernel_release"/modules.builtin* "$modules/"
}

# W=1: what static.sh has built is up to date. Machines that start meanwhile wait, since they look
# for something to build, too.
make_()
{
	build_alone "$top" "$kernel_release" env -u MAKEFLAGS -u MAKELEVEL make -C "$top" W=1 \
		KDIR="$kernel_headers" DESTDIR="$stage" "$@"
}

# From the tree on, wherever the build of the modules goes to.
installs_beside()
{
	make_ modules_install DESTDIR="$(realpath -m --relative-to="$top" "$folder/beside")" || return 1
	find "$folder/beside" -name 'embeng*.ko*' | grep -c . | grep -x 2
}

# says MODULE FIELD PATTERN: modinfo does
says()
{
	modinfo -b "$stage" -k "$kernel_release" -F "$2" "$1" | grep -e "$3"
}

# The emulator alone is asked for; its driver comes first, before that DRM.
loads_all()
{
	modprobe -d "$stage" -S "$kernel_release" -C "$stage/lib/modprobe.d" --show-depends \
		embeng_emu >"$folder/order" || return 1
	cat "$folder/order"
	sed -n 's/^insmod .*\/\([a-z_]*\)\.ko.*/\1/p' "$folder/order" |
		grep -xE 'drm|embeng|embeng_emu' | paste -s -d ' ' | grep -x 'drm embeng embeng_emu'
}

# As dkms does: what dkms.conf tells, from the folder that it copies to.
dkms_builds()
{
	bash -euc '
		kernel_source_dir=$1 dkms_tree=$2/dkms
		. "$2"/stage/usr/src/embeng-*/dkms.conf
		work=$dkms_tree/$PACKAGE_NAME/$PACKAGE_VERSION/build
		mkdir -p "$(dirname "$work")"
		cp -a "$2/stage/usr/src/$PACKAGE_NAME-$PACKAGE_VERSION" "$work"
		eval "${MAKE[0]} -j$(nproc)"
		for i in "${!BUILT_MODULE_NAME[@]}"; do
			cp "$work/${BUILT_MODULE_LOCATION[i]}/${BUILT_MODULE_NAME[i]}.ko" "$2/"
		done
		eval "$CLEAN"' dkms "$kernel_headers" "$folder"
	[ -s "$folder/embeng.ko" ] && [ -s "$folder/embeng_emu.ko" ]
}

# dkms_takes VERDICT RELEASE...: DKMS builds for these kernels (0), or passes over them (1)
dkms_takes()
{
	verdict=$1
	shift
	for release; do
		bash -c '. "$1"/usr/src/embeng-*/dkms.conf; [[ $2 =~ $BUILD_EXCLUSIVE_KERNEL ]]' dkms \
			"$stage" "$release"
		status=$?
		echo "$release: $status"
		[ $status -eq "$verdict" ] || return 1
	done
}

one_version()
{
	version=$(sed -n "s/^  version: '\(.*\)',$/\1/p" "$top/meson.build")
	echo "meson.build: $version"
	[ -n "$version" ] && grep "^PACKAGE_VERSION=\"$version\"$" "$stage/usr/src/embeng-$version/dkms.conf"
}

check 'a root with the kernel' installed_kernel
check 'make kmod' make_ kmod
check 'make modules_install' make_ modules_install
check 'the driver is for the function' says embeng alias '^pci:v'
check 'the driver names its firmware' says embeng firmware '^embeng/embeng\.fw$'
check 'which is where it is looked for' cmp "$stage/lib/firmware/embeng/embeng.fw" \
	"$top/build/firmware-loader/embeng.fw"
check 'and so is the one for recovery' cmp "$stage/lib/firmware/embeng/recovery.fw" \
	"$top/build/firmware-loader/embeng.fw"
check 'modprobe of the emulator loads the driver, and DRM before it' loads_all
check 'udev has a rule' grep -q '^SUBSYSTEM=="accel"' "$stage/lib/udev/rules.d/60-embeng.rules"
check 'a DESTDIR may be relative' installs_beside
check 'make dkms_install' make_ dkms_install
check 'for DKMS it is of the same version' one_version
check 'DKMS builds for kernels that were tried' dkms_takes 0 6.12.0-1-amd64 6.12.117+deb12-amd64 \
	6.19.14+deb13-amd64 7.0.13+deb13-amd64 7.3.4+deb13-rt-amd64 7.3-rc1
check 'DKMS passes over all others' dkms_takes 1 5.10.0-1-amd64 6.1.0-44-amd64 6.11.10-amd64 \
	6.120.1 7.4.0 7.4-rc1 7.30.1 8.0.0 16.12.1
[ "${2-}" != dkms ] || check 'sources for DKMS build as dkms.conf says' dkms_builds
finish

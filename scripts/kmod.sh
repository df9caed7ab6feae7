#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds and installs the kernel modules; make says what with.
# usage: [KDIR=HEADERS] [DESTDIR=ROOT] kmod.sh kmod|modules_install|dkms_install
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
. "$top/tests/vm/kernel.sh"
. "$top/tests/vm/build.sh"
package=$top/kmod/package
DESTDIR=${DESTDIR-}

# Headers with DRM_ACCEL, or the reason why not.
headers()
{
	running=/lib/modules/$(uname -r)/build
	if [ -z "${KDIR-}" ] && [ -f "$running/Makefile" ]; then
		KDIR=$running
	elif [ -z "${KDIR-}" ]; then
		kernel_stock
		KDIR=$kernel_headers
	fi
	grep -qs '^CONFIG_DRM_ACCEL=y' "$KDIR/.config" "$KDIR/include/config/auto.conf" || {
		echo "kmod.sh: $KDIR is no built kernel with CONFIG_DRM_ACCEL, as Debian's 6.12 is;" \
			"name another by KDIR=" >&2
		return 1
	}
	release=$(make -s --no-print-directory -C "$KDIR" kernelrelease)
	tried=$(sed -n 's/^BUILD_EXCLUSIVE_KERNEL="\(.*\)"$/\1/p' "$package/dkms.conf")
	echo "$release" | grep -qE "$tried" ||
		echo "kmod.sh: Linux $release is none of those that the modules were tried on," \
			"which embeng(4) lists; going on" >&2
}

# make goes to another folder.
case ${DESTDIR-} in
'' | /*) ;;
*) DESTDIR=$PWD/$DESTDIR ;;
esac

place()
{
	install -D -m 644 "$1" "$DESTDIR$2"
}

beside_modules()
{
	place "$top/build/firmware-loader/embeng.fw" /lib/firmware/embeng/embeng.fw
	place "$top/build/firmware-loader/embeng.fw" /lib/firmware/embeng/recovery.fw
	place "$package/60-embeng.rules" /lib/udev/rules.d/60-embeng.rules
	place "$package/embeng.conf" /lib/modprobe.d/embeng.conf
}

modules_install()
{
	make -C "$KDIR" M="$top/build/kmod-$release" INSTALL_MOD_PATH="$DESTDIR" \
		INSTALL_MOD_DIR=updates CONFIG_DEBUG_INFO_BTF_MODULES= modules_install
	beside_modules
	# A root without a kernel is one that a package is made of.
	[ ! -f "$DESTDIR/lib/modules/$release/modules.order" ] || depmod -b "$DESTDIR/" "$release"
}

# DKMS takes sources from a folder named for the version.
dkms_install()
{
	version=$(sed -n 's/^PACKAGE_VERSION="\(.*\)"$/\1/p' "$package/dkms.conf")
	to=$DESTDIR/usr/src/embeng-$version
	mkdir -p "$to"
	build_copy "$top" "$to"
	place "$package/dkms.conf" "/usr/src/embeng-$version/dkms.conf"
	beside_modules
	echo "Next: dkms install embeng/$version"
}

case ${1-} in
dkms_install)
	dkms_install
	;;
kmod | modules_install)
	headers
	build_modules "$top" "$release" "$KDIR"
	[ "$1" = kmod ] || modules_install
	;;
*)
	sed -n 's/^# \(usage.*\)/\1/p' "$0" >&2
	exit 2
	;;
esac

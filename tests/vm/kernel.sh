# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# The kernels that virtual machines boot. Debian's packages are unpacked into a cache, nothing
# is installed. Sourced; sets for kernel_stock():
#	kernel_release	as uname -r says it
#	kernel_image	what to boot
#	kernel_headers	where modules are built against
#	kernel_modules	folder with lib/modules/RELEASE in it

kernel_cache=${EMBENG_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/embeng}

# The driver needs DRM_ACCEL, and 6.12 is the long-term kernel that Debian 12 and 13 share.
kernel_package()
{
	for name in linux-image-6.12-amd64 linux-image-amd64; do
		apt-cache show "$name" 2>/dev/null |
			sed -n 's/^Depends: \(linux-image-6\.12[^ ]*-amd64\) .*/\1/p' | sort -V | tail -n 1
	done | head -n 1
}

# Downloads packages and unpacks them to $1, whole or not at all.
kernel_unpack()
{
	to=$1
	shift
	rm -rf "$to.new"
	mkdir -p "$to.new/deb"
	(cd "$to.new/deb" && apt-get -q download "$@") >&2 || return 1
	for package in "$to.new"/deb/*.deb; do
		dpkg -x "$package" "$to.new" || return 1
	done
	rm -r "$to.new/deb"
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
		kernel_relocate "$1.new" "$1" && mv "$1.new" "$1"
}

kernel_stock()
{
	package=$(kernel_package)
	if [ -z "$package" ]; then
		echo "no Linux 6.12 among the known packages; apt-get update fetches their lists" >&2
		return 1
	fi
	kernel_release=${package#linux-image-}
	kernel_modules=$kernel_cache/linux-$kernel_release
	kernel_image=$kernel_modules/boot/vmlinuz-$kernel_release
	kernel_headers=$kernel_modules/usr/src/linux-headers-$kernel_release
	[ -d "$kernel_modules" ] || kernel_fetch "$kernel_modules"
}

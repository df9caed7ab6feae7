#!/bin/sh
# SPDX-License-Identifier: MIT
# The kernel modules build without a word from gcc -W1 for every kernel from 6.12 on that Debian
# carries headers of: the newest release of each version in each Debian, and those of PREEMPT_RT.
# A kernel whose tools and compiler this machine has not is built for in the Debian that it is of.
# usage: builds.sh stock	Speaks TAP.
set -u

top=$(cd "$(dirname "$0")/../.." && pwd)
. "$top/tests/vm/kernel.sh"
. "$top/tests/vm/build.sh"
. "$top/tests/vm/tap.sh"
trap 'rm -rf "$folder"' EXIT

# Leaves the image out, which is the larger part and is not run.
fetch_headers()
{
	echo "Fetching headers of Linux $kernel_release into $1" >&2
	kernel_unpack_release "$1" headers && kernel_settle "$1"
}

# builds RELEASE: all anew, since gcc has nothing to say of what it does not compile
builds()
{
	kernel_release=$1
	unpacked=$kernel_cache/linux-$1
	if [ ! -d "$unpacked" ]; then
		unpacked=$kernel_cache/headers-$1
		kernel_once "$unpacked" fetch_headers || return 1
	fi
	kernel_headers=$unpacked/usr/src/linux-headers-$1
	rm -rf "$top/build/kmod-$1"
	build_modules "$top" "$1" "$kernel_headers" W=1 >"$folder/build" 2>&1 || {
		tail -n 40 "$folder/build"
		return 1
	}
	# make's own warnings do not count: compiler or pahole may differ from those of the kernel.
	! grep -E '\.[chS]:[0-9].*(warning|error):|(WARNING|ERROR): modpost' "$folder/build"
}

# Certificates of those who sign firmware, DER, are in the module; the last kernel's is built again.
holds_certificates()
{
	both=$top/build/kmod-$kernel_release/both.der # a Debian in which a build is entered has it, too
	: >"$both"
	for signer in first second; do
		openssl req -x509 -nodes -subj "/CN=embeng $signer" -newkey rsa:2048 -keyout /dev/null \
			-outform DER -out "$folder/der" 2>/dev/null || return 1
		cat "$folder/der" >>"$both"
	done
	build_modules "$top" "$kernel_release" "$kernel_headers" W=1 \
		EMBENG_FW_CERT="$both" >"$folder/build" 2>&1 || {
		tail -n 40 "$folder/build"
		return 1
	}
	! grep -E '\.[chS]:[0-9].*(warning|error):' "$folder/build" &&
		grep -q 'embeng first' "$top/build/kmod-$kernel_release/kmod/embeng.ko" &&
		grep -q 'embeng second' "$top/build/kmod-$kernel_release/kmod/embeng.ko"
}

# no_certificate FILE: what is not there is named, and nothing is built without it
no_certificate()
{
	! build_modules "$top" "$kernel_release" "$kernel_headers" \
		EMBENG_FW_CERT="$1" >"$folder/build" 2>&1 &&
		grep "EMBENG_FW_CERT=$1: no such file" "$folder/build" || {
		tail -n 40 "$folder/build"
		return 1
	}
}

releases=$(kernel_carried amd64; kernel_carried rt-amd64)
check 'the archive carries kernels from 6.12 on' [ -n "$releases" ]
for release in $releases; do
	check "the modules build for Linux $release" builds "$release"
done
check 'certificates are built in' holds_certificates
check 'a missing one is told' no_certificate /nowhere/cert.der
finish

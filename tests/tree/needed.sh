#!/bin/sh
# SPDX-License-Identifier: MIT
# The library loads no more than what a process of a framework can have beside its own: the C library,
# libdrm, libpci, libudev and the small runtime of protobuf-c. A sanitizer's runtime is the build's.
# usage: needed.sh LIBRARY
set -eu

found=$(readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]$/\1/p')
if [ -z "$found" ]; then
	echo "needed: $1 names no library that it loads, not even the C library" >&2
	exit 1
fi
for name in $found; do
	case $name in
	libc.so.* | libm.so.* | ld-linux*.so.* | libpthread.so.* | libdl.so.*) ;;
	libdrm.so.* | libpci.so.* | libudev.so.* | libprotobuf-c.so.*) ;;
	libasan.so.* | libubsan.so.* | libtsan.so.* | libgcc_s.so.* | libclang_rt.*) ;;
	*)
		echo "needed: $1 loads $name, which every program with the library would load, too" >&2
		exit 1
		;;
	esac
done

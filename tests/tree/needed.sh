#!/bin/sh
# SPDX-License-Identifier: MIT
# The library makes a process load the C library and what its options need, and nothing under the
# GPL: libdrm and libudev reach devices behind the driver, the small runtime of protobuf-c reads
# protobufs. A sanitizer's runtime is the build's.
# usage: needed.sh LIBRARY [accel] [protobuf]: the options that the library was built with
set -eu

library=$1
shift
found=$(readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]$/\1/p')
if [ -z "$found" ]; then
	echo "needed: $library names no library that it loads, not even the C library" >&2
	exit 1
fi
for name in $found; do
	case $name:" $* " in
	libc.so.* | libm.so.* | ld-linux*.so.* | libpthread.so.* | libdl.so.*) ;;
	libdrm.so.*:*" accel "* | libudev.so.*:*" accel "*) ;;
	libprotobuf-c.so.*:*" protobuf "*) ;;
	libasan.so.* | libubsan.so.* | libtsan.so.* | libgcc_s.so.* | libclang_rt.*) ;;
	*)
		echo "needed: $library loads $name, which every program with the library would load, too" >&2
		exit 1
		;;
	esac
done

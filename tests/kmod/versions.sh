#!/bin/sh
# SPDX-License-Identifier: MIT
# The kernel's version is asked for in one header, and in no Kbuild.
# usage: versions.sh SOURCE-ROOT
set -eu

cd "$1"
gates='LINUX_VERSION_CODE|LINUX_VERSION_MAJOR|(^|[^A-Z_])KERNEL_VERSION\(|\$\((VERSION|PATCHLEVEL|KERNELRELEASE)\)'
if ! grep -qE "$gates" kmod/compat.h; then
	echo "versions: nothing in kmod/compat.h asks for the kernel's version" >&2
	exit 1
fi
if grep -rnE "$gates" Kbuild kmod uapi --include='*.[ch]' --include=Kbuild |
		grep -v '^kmod/compat\.h:' >&2; then
	echo "versions: these belong in kmod/compat.h" >&2
	exit 1
fi

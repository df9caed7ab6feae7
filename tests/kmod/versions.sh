#!/bin/sh
# SPDX-License-Identifier: MIT
# The kernel's version is asked for in the headers of kmod/compat/ and nowhere else: one header for
# each change of the kernel's interface, named for the version in which the change came, and
# asking for that version alone.
# usage: versions.sh SOURCE-ROOT
set -eu

cd "$1"
gates='LINUX_VERSION_CODE|LINUX_VERSION_MAJOR|(^|[^A-Z_])KERNEL_VERSION\(|\$\((VERSION|PATCHLEVEL|KERNELRELEASE)\)'
if grep -rnE "$gates" Kbuild kmod uapi --include='*.[ch]' --include=Kbuild |
		grep -v '^kmod/compat/' >&2; then
	echo "versions: these belong in a header of kmod/compat/" >&2
	exit 1
fi
for header in kmod/compat/*; do
	version=$(basename "$header" | sed -n 's/^v\([0-9]*\)\.\([0-9]*\)_[a-z_]*\.h$/\1, \2, 0/p')
	asked=$(grep -oE 'KERNEL_VERSION\([^)]*\)' "$header" | sort -u)
	if [ -z "$version" ] || [ "$asked" != "KERNEL_VERSION($version)" ]; then
		echo "versions: $header must be named vMAJOR.MINOR_CHANGE.h and ask for that version" \
			"alone; it asks for '$asked'" >&2
		exit 1
	fi
done

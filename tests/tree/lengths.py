#!/bin/sh
# SPDX-License-Identifier: MIT
# A file is read in one sitting: 400 lines at the most. Contracts are one file each, all of it.
# usage: lengths.sh SOURCE-ROOT
set -eu

cd "$1"
files=$(find engine firmware-loader kmod runtime scripts tests uapi docs \
	-name '*.[ch]' -o -name '*.sh' -o -name '*.py' | sort |
	grep -vxE 'uapi/embeng_[a-z]*\.h|runtime/include/embeng\.h')
long=$(awk 'FNR == 401 { print FILENAME }' $files)
if [ -n "$long" ]; then
	printf 'more than 400 lines:\n%s\n' "$long" >&2
	exit 1
fi

#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds kernel modules for the stock kernel, each with some source files changed. It keeps a copy of
# the sources, in which only what includes a changed file is compiled again.
# usage: modules.sh SOURCE-ROOT FOLDER
# A line of FOLDER/modules is "ID MODULE FILE...": MODULE is built with the FILEs as they are in
# FOLDER/ID, and is FOLDER/ID.ko then. Where it does not build, FOLDER/ID.log says why.
set -eu

top=$1
folder=$2
. "$top/tests/vm/kernel.sh"
. "$top/tests/vm/build.sh"
kernel_named stock
work=$top/build/kmod-mutated
mkdir -p "$work"
build_copy "$top" "$work"

# restore FILE...: those that differ are as in the tree
restore()
{
	for file; do
		cmp -s "$top/$file" "$work/$file" || cp "$top/$file" "$work/$file"
	done
}

# A run that was interrupted may have left a change.
# shellcheck disable=SC2046
restore $(cd "$top" && find kmod -name '*.[ch]')
while read -r id module files; do
	for file in $files; do
		cp "$folder/$id/$file" "$work/$file"
	done
	if kernel_make "$kernel_headers" M="$work" -j"$(nproc)" CONFIG_DEBUG_INFO_BTF_MODULES= \
		"$module" >"$folder/$id.log" 2>&1 </dev/null; then
		cp "$work/$module" "$folder/$id.ko"
	fi
	# shellcheck disable=SC2086
	restore $files
done <"$folder/modules"

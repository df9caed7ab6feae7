#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds kernel modules for the stock kernel, each with some source files changed. The unchanged
# modules, which machines load too, are built first; in a copy of that build only what includes a
# changed file is compiled again.
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

copy_of_the_build()
{
	build_modules "$top" "$kernel_release" "$kernel_headers" W=1 &&
		build_twin "$top" "$kernel_release" mutated
}

build_alone "$top" "$kernel_release" copy_of_the_build >"$folder/build.log" 2>&1 || {
	tail -n 40 "$folder/build.log"
	exit 1
}
while read -r id module files; do
	for file in $files; do
		cp "$folder/$id/$file" "$work/$file"
	done
	if kernel_make "$kernel_headers" M="$work" -j"$(nproc)" CONFIG_DEBUG_INFO_BTF_MODULES= W=1 \
		"$module" >"$folder/$id.log" 2>&1 </dev/null; then
		cp "$work/$module" "$folder/$id.ko"
	fi
	for file in $files; do
		cp "$top/$file" "$work/$file"
	done
done <"$folder/modules"

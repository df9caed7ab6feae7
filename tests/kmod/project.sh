#!/bin/sh
# SPDX-License-Identifier: MIT
# A project of somebody else's: a copy of runtime/examples/ci, outside of this tree, with embeng as it
# is installed. It builds by pkg-config and tests itself on emulated devices by embeng vm, which builds
# the modules from their installed sources. Speaks TAP.
# usage: project.sh KERNEL
set -u

kernel=$1
top=$(cd "$(dirname "$0")/../.." && pwd)
. "$top/tests/vm/kernel.sh"
. "$top/tests/vm/tap.sh"
trap 'rm -rf "$folder"' EXIT
kernel_named "$kernel" || exit 1
stage=$folder/stage
project=$folder/project

# A cache of its own, with the kernels and package lists of the machine's.
own_cache()
{
	mkdir "$folder/cache" && ln -s "$kernel_cache"/linux-* "$folder/cache/" || return 1
	for lists in apt apt-suites debian-trixie; do
		[ ! -e "$kernel_cache/$lists" ] || ln -s "$kernel_cache/$lists" "$folder/cache/"
	done
}

installs()
{
	DESTDIR="$stage" meson install -C "$top/build" --no-rebuild --quiet &&
		env -u MAKEFLAGS -u MAKELEVEL make -C "$top" dkms_install DESTDIR="$stage"
}

# Sets what is set on a machine on which embeng is installed in its place.
enter_stage()
{
	EMBENG_VM_ROOT=$stage EMBENG_CACHE=$folder/cache PKG_CONFIG_SYSROOT_DIR=$stage
	PKG_CONFIG_PATH=$(dirname "$(find "$stage" -name embeng.pc)")
	LD_LIBRARY_PATH=$(dirname "$(find "$stage" -name libembeng.so.0)")
	PATH=$(dirname "$(find "$stage" -path '*bin/embeng')"):$PATH
	export EMBENG_VM_ROOT EMBENG_CACHE PKG_CONFIG_SYSROOT_DIR PKG_CONFIG_PATH LD_LIBRARY_PATH PATH
	cp -r "$top/runtime/examples/ci" "$project" && cd "$project"
}

own_make()
{
	env -u MAKEFLAGS -u MAKELEVEL make "$@"
}

# says CODE PATTERN ARGUMENT...: embeng vm exits with the code and says a line like it
says()
{
	wanted=$1 pattern=$2
	shift 2
	embeng vm --kernel "$kernel" "$@" >"$folder/said" 2>&1
	status=$?
	cat "$folder/said"
	echo "exit status $status"
	[ $status -eq "$wanted" ] && grep -qe "$pattern" "$folder/said"
}

report_is()
{
	python3 -c 'import sys, xml.etree.ElementTree as tree
suite = tree.parse("junit.xml").getroot().find("testsuite")
print(suite.attrib)
names = [case.get("name") for case in suite.findall("testcase")]
print(names)
sys.exit((suite.get("tests"), suite.get("failures"), suite.get("errors")) != ("2", "0", "0") or
         names != ["a row is what was written", "a step of SGD changed it"])'
}

two_devices()
{
	python3 -c 'import json
names = [d["name"] for d in json.load(open("list.json"))["devices"] if d["driver"] == "embeng"]
print(names)
assert names == ["/dev/accel/accel0", "/dev/accel/accel1"]'
}

refused_parameter()
{
	EMBENG_EMU=cores=99 says 125 'the modules of the device did not load' -- true
}

# modules_kept: those of one kernel, nothing of their build
modules_kept()
{
	(cd "$folder/cache" && echo modules-* && ls modules-*/) | tee "$folder/kept"
	[ "$(ls -d "$folder"/cache/modules-*/ | wc -l)" = 1 ] &&
		[ "$(ls "$folder"/cache/modules-*/ | paste -s -d ' ')" = 'embeng.ko embeng_emu.ko' ]
}

# no_build: the last machine had its modules in the cache
no_build()
{
	! grep 'building the modules' "$folder/said"
}

check 'a cache of its own' own_cache
check 'embeng is installed, with sources of its modules' installs
enter_stage
check 'a project builds by pkg-config' own_make
check 'and passes on a device behind the driver' own_make check
check 'its report has both tests' report_is
check 'the kernel told of the device' grep -q 'embeng.*0eb0:00:00.0' kernel.log
check 'the modules are kept' modules_kept
check 'two devices, a shared folder, the exit status' says 7 'in the machine' --devices 2 --share . -- \
	sh -c 'echo in the machine; embeng list --json >list.json; exit 7'
check 'the list of devices came back' two_devices
check 'without another build' no_build
check 'modules that do not load are told of' refused_parameter
mv "$stage/lib/firmware/embeng/embeng.fw" "$stage/lib/firmware/embeng/other.fw"
check 'so is firmware that is missing' says 125 'embeng.fw is missing: "make dkms_install"' -- true
mv "$stage/usr/src" "$stage/usr/other"
check 'so are sources that are missing' says 125 'no sources of the modules in .*/usr/src/embeng-' -- true
finish

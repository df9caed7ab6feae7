# SPDX-License-Identifier: MIT
# A thin front for meson: the build itself is described in meson.build.

.PHONY: all demo check check-kernel check-kernel-debug kmod modules_install dkms_install deps clean

all: build/build.ninja
	@ninja -C build

build/build.ninja:
	@meson setup build

demo:
	@scripts/deps.sh build
	@$(MAKE) --no-print-directory build/build.ninja
	@ninja -C build runtime/embeng
	@build/runtime/embeng demo

check:
	@scripts/deps.sh kernel
	@/usr/bin/env python3 scripts/check.py

# The kernel modules on every kind of virtual machine.
check-kernel:
	@scripts/deps.sh kernel
	@$(MAKE) --no-print-directory all
	@/usr/bin/env python3 scripts/vm.py

# The same on the instrumented kernel, which is built first, once.
check-kernel-debug:
	@scripts/deps.sh kernel
	@$(MAKE) --no-print-directory all
	@/usr/bin/env python3 scripts/vm.py --kernel debug

# The kernel modules: against KDIR, else the running kernel's headers, else Debian's 6.12. What is
# installed goes below DESTDIR: modules and all that makes them work, or sources for DKMS.
kmod modules_install dkms_install:
	@$(MAKE) --no-print-directory build/build.ninja
	@ninja -C build firmware-loader/embeng.fw
	@KDIR='$(KDIR)' DESTDIR='$(DESTDIR)' scripts/kmod.sh $@

deps:
	@scripts/deps.sh

clean:
	rm -rf build build-asan build-tsan build-fuzz

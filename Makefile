# SPDX-License-Identifier: MIT
# A thin front for meson: the build itself is described in meson.build.

.PHONY: all demo check check-kernel check-kernel-debug deps clean

all: build/build.ninja
	@ninja -C build

build/build.ninja:
	@meson setup build

demo:
	@scripts/deps.sh build
	@$(MAKE) --no-print-directory build/build.ninja
	@ninja -C build runtime/embeng
	@build/runtime/embeng demo

check: deps
	@/usr/bin/env python3 scripts/check.py

# The kernel modules, each test script in a virtual machine of its own.
check-kernel:
	@scripts/deps.sh kernel
	@$(MAKE) --no-print-directory all
	@for part in emulator driver accel; do \
		tests/vm/run --timeout 600 -- tests/vm/$$part.sh $(CURDIR)/build || exit 1; \
	done

# The same on the instrumented kernel, which is built first, once.
check-kernel-debug:
	@scripts/deps.sh kernel
	@$(MAKE) --no-print-directory all
	@for part in emulator driver accel; do \
		tests/vm/run --kernel debug --timeout 600 -- tests/vm/$$part.sh $(CURDIR)/build || exit 1; \
	done

deps:
	@scripts/deps.sh

clean:
	rm -rf build build-asan build-tsan build-fuzz

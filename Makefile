# SPDX-License-Identifier: MIT
# A thin front for meson: the build itself is described in meson.build.

.PHONY: all demo check deps clean

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

deps:
	@scripts/deps.sh

clean:
	rm -rf build build-asan build-tsan build-fuzz

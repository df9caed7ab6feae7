# SPDX-License-Identifier: MIT
# A thin front for meson: the build itself is described in meson.build. README.md names what a user
# types, CONTRIBUTING.md what a change is checked with.

.PHONY: all demo quick check check-sanitizers check-fuzz check-frameworks check-distributed check-mutation \
	check-compilers check-kernel check-kernel-debug check-chaos check-newcomer kmod kmod-debian modules_install dkms_install deps clean

CHECK = /usr/bin/env python3 scripts/check.py
# Stages of "make check", as scripts/check.py --help has them; all of them when there is none.
STAGES =
# With WERROR=true, as CI has it, a compiler's warning is an error.
WERROR ?= false
export WERROR

all: build/build.ninja
	@ninja -C build

build/build.ninja:
	@meson setup build -Dwerror=$(WERROR)

demo:
	@scripts/deps.sh build
	@$(MAKE) --no-print-directory build/build.ninja
	@ninja -C build runtime/embeng
	@build/runtime/embeng demo

# Between two edits: build, unit, tree and conform suites.
quick:
	@scripts/deps.sh check
	@$(CHECK) quick

check:
	@scripts/deps.sh kernel
	@$(CHECK) $(STAGES)

# All of what "make check" runs a sample of.
check-sanitizers:
	@scripts/deps.sh check
	@$(CHECK) --whole asan tsan

check-fuzz:
	@scripts/deps.sh check
	@$(CHECK) --whole fuzz

# The Python package with every test of TensorFlow, Keras and JAX.
check-frameworks:
	@scripts/deps.sh check
	@$(CHECK) --whole python

# Groups of hosts: all combinations, both MPIs, and hosts that fail, also as network namespaces.
check-distributed:
	@scripts/deps.sh check
	@$(CHECK) distributed

check-mutation:
	@scripts/deps.sh check
	@$(CHECK) --whole mutation

# Without a warning by each compiler of Debian 12 and 13.
check-compilers:
	@scripts/deps.sh kernel
	@scripts/compilers.sh

# The kernel modules: built for every kernel that Debian carries, and run on the oldest and the
# newest, on every kind of virtual machine.
check-kernel:
	@scripts/deps.sh kernel
	@$(MAKE) --no-print-directory all
	@/usr/bin/env python3 scripts/vm.py

# The same on the instrumented kernel, which is built first, once.
check-kernel-debug:
	@scripts/deps.sh kernel
	@$(MAKE) --no-print-directory all
	@/usr/bin/env python3 scripts/vm.py --kernel debug

# Everything at once in a virtual machine, for CHAOS_SECONDS, from CHAOS_SEED or a new seed. The
# kernel's messages are kept.
CHAOS_SECONDS ?= 3600
CHAOS = $(CURDIR)/tests/vm/chaos.sh
check-chaos:
	@scripts/deps.sh kernel
	@$(MAKE) --no-print-directory all
	@tests/vm/run --kernel $(or $(KERNEL),stock) --timeout $$(($(CHAOS_SECONDS) + 900)) \
		--log $(CURDIR)/build/chaos.dmesg \
		--carry "$(CHAOS) $(CURDIR)/tests/vm/tap.sh $(CURDIR)/build/tests/vm/vm-hostile_chaos" \
		-- $(CHAOS) $(CURDIR)/build $(CHAOS_SECONDS) $(CHAOS_SEED)

# The README's commands, and the Containerfile that others copy, in pristine systems.
check-newcomer:
	@scripts/deps.sh kernel
	@scripts/newcomer.sh bookworm
	@scripts/newcomer.sh trixie
	@scripts/container.sh

# The kernel modules: against KDIR, else the running kernel's headers, else Debian's 6.12. Files are
# installed below DESTDIR: modules and all that makes them work, or sources for DKMS.
kmod modules_install dkms_install:
	@scripts/deps.sh build
	@$(MAKE) --no-print-directory build/build.ninja
	@ninja -C build firmware-loader/embeng.fw
	@KDIR='$(KDIR)' DESTDIR='$(DESTDIR)' scripts/kmod.sh $@

# For every kernel from 6.12 on that Debian carries, into build/kmod-RELEASE.
kmod-debian:
	@scripts/deps.sh kernel
	@tests/kmod/builds.sh stock

deps:
	@scripts/deps.sh

clean:
	rm -rf build build-asan build-tsan build-fuzz build-python build-compilers

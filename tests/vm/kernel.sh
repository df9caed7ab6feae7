# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# The kernels of runtime/vm/kernel.sh, and the instrumented one. Sourced, with the tree in $top.

. "$top/scripts/suite.sh"
. "$top/runtime/vm/kernel.sh"
. "$top/tests/vm/kernel_debug.sh"

#!/bin/sh
# SPDX-License-Identifier: MIT
# The Python package on a device behind the driver, in a virtual machine, with Debian's Python and
# numpy. Speaks TAP.
# usage: tests/vm/with_python tests/vm/run -- tests/vm/python.sh BUILD-FOLDER
set -eu

build=$1
source=$(cd "$(dirname "$0")/../.." && pwd)
folder=$(mktemp -d)
mkdir "$folder/packages"
cp -r "$source/runtime/python/embeng" "$folder/packages/"
cp "$build"/python/runtime/python/_core.*so "$folder/packages/embeng/"
PYTHONPATH=$folder/packages /usr/bin/python3 "$source/tests/vm/python_device.py" "$folder" \
	"$(ls /dev/accel/accel* | head -n 1)"

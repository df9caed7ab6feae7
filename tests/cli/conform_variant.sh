#!/bin/sh
# SPDX-License-Identifier: MIT
# The vectors on one kernel variant. One that the processor lacks is skipped by name. Speaks TAP.
# usage: conform_variant.sh EMBENG VARIANT VECTORS
set -u

device=soft:variant=$2
message=$("$1" info -d "$device" 2>&1)
# 3: not supported, the exit code of embeng for what a device or processor lacks
if [ $? = 3 ]; then
	echo 1..1
	echo "ok 1 - conform # SKIP $2: this processor lacks it"
	echo "$message" | sed 's/^/# /'
	exit 0
fi
exec "$1" conform -d "$device" --cores 3 "$3"

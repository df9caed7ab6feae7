#!/bin/sh
# SPDX-License-Identifier: MIT
# engine/ is freestanding: outside its port it includes nothing of the host, and outside
# kernels/ it compiles without floating-point registers, as a kernel would have it. Speaks TAP.
# usage: freestanding.sh SOURCE-ROOT
set -u

cd "$1" || exit 1
number=0
failed=0

# verdict NAME COMPLAINTS
verdict()
{
	number=$((number + 1))
	if [ -z "$2" ]; then
		echo "ok $number - $1"
	else
		failed=1
		echo "not ok $number - $1"
		echo "$2" | sed 's/^/# /'
	fi
}

# The headers that C gives without a library, the contracts, and intrinsics.
own='<(std(arg|bool|def|int|atomic)|limits|float|immintrin|linux/[a-z_]+|embeng_[a-z]+)\.h>'
strangers=$(grep -rnE --include='*.[ch]' '^[[:space:]]*#[[:space:]]*include[[:space:]]*<' engine |
	grep -vE '^engine/port[a-z_]*\.[ch]:' | grep -vE "$own")
verdict "engine/ includes no host header outside its port" "$strangers"

upward=$(grep -rnE --include='*.[ch]' '#[[:space:]]*include.*(embeng\.h|runtime/)' engine)
verdict "engine/ includes nothing of runtime/" "$upward"

if [ "$(uname -m)" = x86_64 ]; then
	for source in $(find engine -name '*.c' ! -path 'engine/kernels/*' | sort); do
		case $source in engine/port*) continue ;; esac
		message=$(gcc -std=gnu11 -O1 -ffreestanding -mgeneral-regs-only -Iuapi -Iengine \
			  -S -o /dev/null "$source" 2>&1)
		verdict "$source needs no FP registers" "$message"
	done
fi
echo "1..$number"
exit $failed

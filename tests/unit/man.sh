#!/bin/sh
# SPDX-License-Identifier: MIT
# usage: man.sh SOURCE-ROOT BUILD-ROOT: every manual page is sound, and every public function,
# verb and option has its place in one. Speaks TAP.
root=$1 build=$2
number=0 failed=0
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT

verdict()
{
	number=$((number + 1))
	if [ -s "$scratch/bad" ]; then
		failed=1
		echo "not ok $number - $1"
		sed 's/^/# /' "$scratch/bad"
	else
		echo "ok $number - $1"
	fi
}

for page in "$root"/docs/man/*.[157] "$build"/docs/*.3; do
	head -c 4 "$page" | grep -q '^\.so ' || mandoc -Tlint -W warning "$page"
done >"$scratch/bad" 2>&1
verdict "no page has a fault"

nm -D --defined-only "$build/runtime/libembeng.so" >"$scratch/symbols"
: >"$scratch/bad"
grep -q ' T embeng_open@' "$scratch/symbols" || echo "no symbols" >"$scratch/bad"
sed -n 's/^.* T \(embeng_[a-z0-9_]*\)@.*/\1/p' "$scratch/symbols" |
	while read -r name; do
		[ -f "$build/docs/$name.3" ] || echo "$name(3) is missing"
	done >>"$scratch/bad"
verdict "every exported function has a page"

for page in "$build"/docs/*.3; do
	name=$(sed -n 's/^\.so man3\///p' "$page")
	[ -z "$name" ] || [ -f "$build/docs/$name" ] || echo "$page leads to $name, which is missing"
	sed -n 's/^\.Xr \(embeng_[a-z0-9_]*\) 3.*/\1/p' "$page" | while read -r other; do
		[ -f "$build/docs/$other.3" ] || echo "$page names $other(3), which is missing"
	done
done >"$scratch/bad"
verdict "references lead somewhere"

echo "1..$number"
exit $failed

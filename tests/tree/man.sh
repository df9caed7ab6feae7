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

for page in "$root"/docs/man/*.[0-9] "$build"/docs/*.[37]; do
	head -c 4 "$page" | grep -q '^\.so ' || mandoc -Tlint -W warning "$page"
done 2>&1 | grep -v 'wrong number of cells' >"$scratch/bad" # empty ones at the end may be left out
verdict "no page has a fault"

# A list may have one column more than widths. Where that has no room groff puts it at the right
# edge, a word a line.
awk '/^\.Bl -column/ {
		columns = int(split($0, quoted, "\"") / 2)
		width = 5
		for (i = 2; i <= 2 * columns; i += 2)
			width += length(quoted[i]) + 4
	}
	/^\.It .* Ta / {
		cells = 1 + gsub(/ Ta( |$)/, "&")
		if (cells > columns + 1 || width + (cells > columns ? 12 : -4) > 78)
			print FILENAME ":" FNR ": no room for " cells " cells"
	}' "$root"/docs/man/*.[0-9] >"$scratch/bad" 2>&1
verdict "tables fit the page"

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

# Options that all verbs share stand in the page once, before the verbs.
page_options()
{
	awk -v verb="$1" '/^\.S[sh]/ { on = $1 == ".Ss" && $3 == verb }
		on && /^\.It .*Fl -[a-z]/ { sub(/.*Fl -/, ""); sub(/ .*/, ""); print }' \
		"$root/docs/man/embeng.1" | sort -u
}

help_options()
{
	"$build/runtime/embeng" "$1" --help |
		sed -n 's/^ \{2,6\}\(-[a-z], \)\{0,1\}--\([a-z-]*\).*/\2/p' |
		grep -vxE 'help|json|device' | sort -u
}

: >"$scratch/bad"
"$build/runtime/embeng" --list-cmds >"$scratch/verbs"
[ -s "$scratch/verbs" ] || echo "no verbs" >"$scratch/bad"
while read -r verb; do
	grep -q "^\.Ss embeng $verb\( \|$\)" "$root/docs/man/embeng.1" ||
		echo "embeng(1) does not have the verb $verb"
	page_options "$verb" >"$scratch/page"
	help_options "$verb" >"$scratch/help"
	diff "$scratch/page" "$scratch/help" | sed -n "s/^</$verb, in the page alone:/p
s/^>/$verb, in --help alone:/p"
done <"$scratch/verbs" >>"$scratch/bad"
verdict "embeng(1) and --help name the same verbs and options"

echo "1..$number"
exit $failed

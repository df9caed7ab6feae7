#!/bin/sh
# SPDX-License-Identifier: MIT
# Looks through every order of events of a model: as it is nothing is wrong; with what it claims
# to need taken away, something is found. Speaks TAP.
# usage: check.sh MODEL.pml
set -u

. "$(dirname "$0")/../vm/tap.sh"
model=$(realpath "$1")

# search DEFINE...: complete, and says what it found in $folder/said
search()
{
	(cd "$folder" && rm -f pan ./*.trail && spin "$@" -a "$model" &&
		cc -O1 -w -DSAFETY -o pan pan.c && ./pan -m100000) >"$folder/said" 2>&1
	cat "$folder/said"
	grep -q 'Full statespace search' "$folder/said" && grep -q 'errors: [0-9]' "$folder/said"
}

holds()
{
	search "$@" && grep -q 'errors: 0$' "$folder/said" && ! grep -q 'Search not completed' "$folder/said"
}

# fails_by WHAT DEFINE
fails_by()
{
	search "$2" && grep -q "pan:1: $1" "$folder/said"
}

check 'nothing is lost' holds
check 'nothing is lost of more completions' holds -DCOMPLETIONS=6
sed -n 's/^ \*	\([A-Z_]*\)	.*/\1/p' "$model" >"$folder/needs"
check 'the model says what it needs' [ -s "$folder/needs" ]
while read -r need; do
	check "a wake-up is lost: $need" fails_by 'invalid end state' "-D$need"
done <"$folder/needs"
finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# Every file that is or would be committed says its licence, except licences and pure data.
# usage: spdx.sh SOURCE-ROOT
set -eu

cd "$1"

# safe.directory: the tree may belong to another user than the one who runs the tests.
names=$(git -c safe.directory='*' -c core.quotePath=false ls-files \
	--cached --others --exclude-standard -- . \
	':!LICENSES/' ':!tests/vectors/*.json' ':!tests/fuzz/corpus/' ':!tests/golden/')
[ -n "$names" ] || { echo "spdx: git lists no files in $1" >&2; exit 1; }

# A name that git knows but that is gone from the tree is a deletion in progress.
bad=$(echo "$names" | while read -r name; do
	[ ! -f "$name" ] || head -n 5 "$name" | grep -q 'SPDX-License-Identifier: ' || echo "$name"
done)
if [ -n "$bad" ]; then
	printf 'no SPDX-License-Identifier in the first 5 lines of:\n%s\n' "$bad" >&2
	exit 1
fi

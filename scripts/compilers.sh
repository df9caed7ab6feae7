#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds the tree, its tests included, by each compiler of Debian 12 and 13: gcc 12 and clang 14,
# gcc 14 and clang 19. Each of them builds three times: by -O2 and by -O3, both with
# -D_FORTIFY_SOURCE=3, and by -O2 with link-time optimization. The compiler of the machine's own
# Debian also builds without each part of meson_options.txt, by -O2. Those are 16 builds. One passes
# that succeeds without a warning of meson, of a compiler or of a linker.
# Prints a line for each with its seconds and below it the warnings, then "N passed, N failed".
# The build folder of one that failed stays in build-compilers, with its log.
# usage: compilers.sh [COMPILER...]	those alone, as gcc-14
# It takes root for the Debian that is not the machine's own, as suite.sh says.
set -eu

cd "$(dirname "$0")/.."
top=$PWD
. scripts/suite.sh

own=$(suite_of_host)
passed=0
failed=0

# within SUITE COMMAND...: runs it in that Debian, which may be the machine's own; in a shell of its
# own, since suite.sh has variables
within()
(
	if [ "$1" = "$own" ]; then
		shift
		"$@"
	else
		suite_run "$@"
	fi
)

suite_of()
{
	case $1 in
	gcc-12 | clang-14) echo bookworm ;;
	gcc-14 | clang-19) echo trixie ;;
	*)
		sed -n 's/^# \(usage.*\)/\1/p' "$0" >&2
		return 1
		;;
	esac
}

# The highest level that the compiler and the C library both have; they warn of a higher one.
fortify_level()
{
	if within "$1" "$2" -Werror -O2 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 -include features.h \
		-fsyntax-only -x c /dev/null 2>/dev/null; then
		echo 3
	else
		echo 2
	fi
}

# build SUITE COMPILER FOLDER OPTION...: with a log beside the folder
build()
{
	suite=$1 compiler=$2 built=$3
	shift 3
	rm -rf "$built"
	within "$suite" env CC="$compiler" meson setup "$built" -Dwerror=true "$@" &&
		within "$suite" ninja -C "$built" -k 0
} >"$3.log" 2>&1

# try SUITE COMPILER TITLE OPTION...
try()
{
	title="$2 $3"
	folder=$top/build-compilers/$2$(echo "$3" | tr ' ' '-')
	began=$(date +%s)
	verdict=ok
	suite=$1 compiler=$2
	shift 3
	build "$suite" "$compiler" "$folder" "$@" || verdict=FAILED
	grep -E 'warning: |error: |^(WARNING|DEPRECATION|ERROR)' "$folder.log" >"$folder.said" &&
		verdict=FAILED
	printf '%-16s %5d s  %s\n' "$title" $(($(date +%s) - began)) "$verdict"
	sort "$folder.said" | uniq -c
	if [ $verdict = ok ]; then
		passed=$((passed + 1))
		rm -rf "$folder" "$folder.log" "$folder.said"
	else
		failed=$((failed + 1))
		[ -s "$folder.said" ] || tail -n 5 "$folder.log"
	fi
}

# Builds that run in another shell end with this one.
trap 'trap - INT TERM; kill 0' INT TERM

[ $# -gt 0 ] || set -- gcc-12 clang-14 gcc-14 clang-19
for compiler; do
	suite_of "$compiler" >/dev/null || exit 2
done
mkdir -p build-compilers
for compiler; do
	suite=$(suite_of "$compiler")
	within "$suite" scripts/deps.sh check >"build-compilers/$suite.log" 2>&1 || {
		tail -n 10 "build-compilers/$suite.log" >&2
		exit 1
	}
	fortify="-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=$(fortify_level "$suite" "$compiler")"
	try "$suite" "$compiler" -O2 -Doptimization=2 -Dc_args="$fortify"
	try "$suite" "$compiler" -O3 -Doptimization=3 -Dc_args="$fortify"
	try "$suite" "$compiler" "-O2 LTO" -Doptimization=2 -Db_lto=true
	case $suite:$compiler in
	"$own":gcc-*)
		for part in accel cli protobuf tests; do
			try "$suite" "$compiler" "-O2 no $part" -Doptimization=2 "-D$part=disabled"
		done
		;;
	esac
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]

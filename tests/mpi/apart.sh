#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs a command with its output in a file of its own. A launcher that gathers the outputs of its ranks may put one's
# words within another's line: Open MPI reads a rank's terminal, which can hand a line over without its end.
# usage: apart.sh PREFIX COMMAND...: the file is PREFIX.N, where N is the number of the process
out=$1.$$
shift
exec "$@" >"$out" 2>&1

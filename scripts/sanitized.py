# SPDX-License-Identifier: MIT
"""What every build with sanitizers is configured with, beside the sanitizers themselves."""

# -O1 keeps the reports readable, which have functions and lines by -g1, too: with all that
# debuggers read the build takes a quarter longer. b_lundef must be off for a shared library under
# sanitizers.
OPTIONS = ["-Doptimization=1", "-Ddebug=true", "-Dc_args=-g1", "-Db_lundef=false"]

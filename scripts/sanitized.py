# SPDX-License-Identifier: MIT
"""What builds for tests are configured with: all of them, and those with sanitizers, beside the
sanitizers themselves."""
import os

# WERROR=true in the environment makes a compiler's warning an error.
WERROR = "-Dwerror=" + os.environ.get("WERROR", "false")

# -O1 keeps the reports readable, which have functions and lines by -g1, too: with all that
# debuggers read the build takes a quarter longer. b_lundef must be off for a shared library under
# sanitizers.
OPTIONS = ["-Doptimization=1", "-Ddebug=true", "-Dc_args=-g1", "-Db_lundef=false"]

# SPDX-License-Identifier: MIT
"""Meson's options for builds that run tests: WERROR is for all of them, OPTIONS for those with
sanitizers. The script that makes a build adds its sanitizers."""
import os

# WERROR=true in the environment makes a compiler's warning an error.
WERROR = "-Dwerror=" + os.environ.get("WERROR", "false")

# -O1 keeps the reports readable. -g1 is enough for functions and lines in them; full debug
# information would make the build a quarter longer. b_lundef must be off for a shared library
# under sanitizers.
OPTIONS = ["-Doptimization=1", "-Ddebug=true", "-Dc_args=-g1", "-Db_lundef=false"]

# SPDX-License-Identifier: MIT
"""``python -m embeng.demo``."""
import sys

from . import main

try:
    sys.exit(main())
except KeyboardInterrupt:
    sys.exit(130)

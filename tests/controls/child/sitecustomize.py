"""
Plants the bug in a process that a test has started: Python imports this module at its start.
"""

import os
import sys

if os.environ.get("VIDRELAY_CONTROL") and "pytest" not in sys.orig_argv:
    from controls.bugs import plant

    plant(os.environ["VIDRELAY_CONTROL"])

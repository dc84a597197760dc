"""
A pytest plugin that plants the bug which the environment variable VIDRELAY_CONTROL names, before any test is collected.
"""

import os

from controls.bugs import plant

plant(os.environ["VIDRELAY_CONTROL"])

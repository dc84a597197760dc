"""
`python -m vidrelay`: the command line.
"""

import sys

from vidrelay.cli.main import main

if __name__ == "__main__":
    sys.exit(main())

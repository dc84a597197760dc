"""
The relay's command line with a fuse in it: `python launcher.py POINT NTH -- ARGUMENTS`.

The process kills itself by SIGKILL when it passes the point for the NTH time, after a line on stderr that says so.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from kill.fuses import FUSES, Fuse
from vidrelay.cli.main import main


def run() -> int:
    """Lay the fuse, then run the command line."""
    point, nth, dashes, *arguments = sys.argv[1:]
    if dashes != "--":
        raise SystemExit("usage: launcher.py POINT NTH -- ARGUMENTS")
    FUSES[point](Fuse(point, int(nth)))
    sys.argv = ["vidrelay", *arguments]
    return main()


if __name__ == "__main__":
    sys.exit(run())

"""
The relay's own command line on a disk that makes nothing durable while a file `unsynced` lies beside the database.
"""

import sys
from pathlib import Path

from vidrelay.cli.main import main

from .faulty_sqlite import IOERR_FSYNC, Op, Verdict, disk


def judge(op: Op) -> Verdict:
    """
    Fail every sync while the file is there.
    """
    return IOERR_FSYNC if op.kind == "sync" and Path(op.path).with_name("unsynced").exists() else None


if __name__ == "__main__":
    with disk(judge):
        sys.exit(main())

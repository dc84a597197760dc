"""
What happened in a run, in order; two runs of one seed have the same.
"""

import hashlib
from collections import deque
from collections.abc import Callable

KEPT = 4_000


class Journal:
    """
    Keeps the newest lines and the hash of all.
    """

    def __init__(self, stamp: Callable[[], str]) -> None:
        self._stamp = stamp
        self._hash = hashlib.sha256()
        self.lines: deque[str] = deque(maxlen=KEPT)

    def note(self, what: str, *details: object) -> None:
        """
        Write a line.
        """
        line = " ".join([self._stamp(), what, *map(str, details)])
        self._hash.update(line.encode() + b"\n")
        self.lines.append(line)

    def digest(self) -> str:
        """
        The hash of every line so far.
        """
        return self._hash.hexdigest()

"""
The disk under a relay: what is left of it after a kill or a power cut, and how it fails.

A kill is taken as a picture of the files at that instant, into a new directory, so that whatever the killed code still
does on its way out (SQLite folding its log, a file being cleaned up) happens to files that nobody looks at any more.
Failing writes are real ones: the operating system's own limit on a file's size (RLIMIT_FSIZE) cuts them short. The
moments inside the work of a thread are seen through Python's audit events.
"""

import errno
import os
import random
import resource
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

DATABASE = "relay.db"
PAGE = 4096
WORD = 4
"""What SQLite's log is made of."""

_EVENTS = frozenset({"open", "os.rename", "os.remove"})

Watch = Callable[[str, str, str], None]
"""Is told of an operation before it is done: its name, the path, and the new path of a rename. May raise."""


class Disk:
    """
    One directory for each life of the relay.
    """

    def __init__(self, root: Path, chance: random.Random) -> None:
        self._root = root
        self._chance = chance
        self._lives = 0
        self.state = self._next()

    def _next(self) -> Path:
        self._lives += 1
        path = self._root / f"life-{self._lives}"
        path.mkdir(mode=0o700)
        return path

    def picture(self) -> Path:
        """
        Go over to a copy of what a kill at this instant leaves; returns the old directory.
        """
        old, self.state = self.state, self._next()
        # The picture is ours: what limits the files of the one that dies does not limit it.
        with longest_file(resource.getrlimit(resource.RLIMIT_FSIZE)[1]):
            for path in old.iterdir():
                if path.name == "cache":
                    path.rename(self.state / path.name)
                elif not path.name.endswith("-shm"):
                    shutil.copyfile(path, self.state / path.name)
        return old

    def database(self) -> dict[str, bytes]:
        """
        The database's files as they are.
        """
        names = (DATABASE, f"{DATABASE}-wal")
        return {name: (self.state / name).read_bytes() for name in names if (self.state / name).exists()}

    def tear(self, before: dict[str, bytes]) -> Path:
        """
        Go over to what a power cut during the last commit leaves: of what it wrote, any part may not have arrived.

        `before` is the database as it was when the commit began.
        """
        after = self.database()
        old = self.picture()
        wal = f"{DATABASE}-wal"
        if wal not in after:
            pass  # the last connection closed: the database is synced before its log goes
        elif after[DATABASE] != before[DATABASE]:
            # It was folded into the database, whose pages are not synced yet: the log is.
            (self.state / DATABASE).write_bytes(self._mixed(before[DATABASE], after[DATABASE]))
        else:
            (self.state / wal).write_bytes(self._cut(before.get(wal, b""), after.get(wal, b"")))
        return old

    def _mixed(self, before: bytes, after: bytes) -> bytes:
        pages = [
            (after if self._chance.random() < 0.5 else before)[start : start + PAGE] or after[start : start + PAGE]
            for start in range(0, len(after), PAGE)
        ]
        return b"".join(pages)

    def _cut(self, before: bytes, after: bytes) -> bytes:
        # A salt is one word, of SQLite's own chance, and with it how many of its bytes the next salt has in common.
        first = _first_difference(before, after) // WORD * WORD
        cut = self._chance.randint(min(first, len(after)), len(after))
        match self._chance.choice(("cut", "old", "garbage")):
            case "cut":
                return after[:cut]
            case "old":
                return after[:cut] + before[cut:]
            case _:
                return after[:cut] + self._chance.randbytes(min(len(after) - cut, 2 * PAGE))

    def discard(self, old: Path) -> None:
        """
        Remove the directory of an ended life.
        """
        shutil.rmtree(old, ignore_errors=True)

    def results(self) -> dict[str, str]:
        """
        The path of every file in the cache under a name that a reader looks for, by its relative path.
        """
        return {
            f"{folder.name}/{file.name}": file.path
            for folder in _scan(f"{self.state}/cache")
            if folder.is_dir()
            for file in _scan(folder.path)
            if not file.name.endswith(".part")
        }


def _scan(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except FileNotFoundError:
        return []


def _first_difference(one: bytes, other: bytes) -> int:
    """
    Where they part; page by page first, since logs are long and alike.
    """
    shorter = min(len(one), len(other))
    page = next((at for at in range(0, shorter, PAGE) if one[at : at + PAGE] != other[at : at + PAGE]), shorter)
    return next((at for at in range(page, min(page + PAGE, shorter)) if one[at] != other[at]), shorter)


@contextmanager
def longest_file(size_bytes: int) -> Iterator[None]:
    """
    Let the operating system refuse to write any file beyond so many bytes: writes are short, then fail.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def broken() -> OSError:
    """
    What a failing disk says.
    """
    return OSError(errno.EIO, os.strerror(errno.EIO))


class _Audit:
    """
    Python's audit hook, which cannot be taken away once it is there: so it is one, and idle without a watch.
    """

    def __init__(self) -> None:
        self.watch: Watch | None = None
        self._busy = False
        sys.addaudithook(self._heard)

    def _heard(self, event: str, args: tuple[Any, ...]) -> None:
        watch = self.watch
        if watch is None or self._busy or event not in _EVENTS or not isinstance(args[0], str | Path):
            return
        self._busy = True
        try:
            watch(event, str(args[0]), str(args[1]) if event == "os.rename" else "")
        finally:
            self._busy = False


_audit: list[_Audit] = []


@contextmanager
def watching(watch: Watch) -> Iterator[None]:
    """
    Be told of file operations of this process while the context lasts.
    """
    if not _audit:
        _audit.append(_Audit())
    _audit[0].watch = watch
    try:
        yield
    finally:
        _audit[0].watch = None

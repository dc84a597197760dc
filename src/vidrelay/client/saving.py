"""
Where a result is saved on this side: beside its final name until it is whole and checked.
"""

import contextlib
import hashlib
import os
from pathlib import Path

from vidrelay.client.views import ResultFile
from vidrelay.core.errors import BadMedia


class Saving:
    """
    One result on its way to `target`. What a broken fetch left is gone on with, if the server allows.
    """

    def __init__(self, target: Path, *, task_id: str, file: ResultFile) -> None:
        self._target = target
        self._file = file
        self._part = target.with_name(f".{target.name}.{task_id}-{file.index}.part")

    @property
    def have_bytes(self) -> int:
        """
        How many bytes are there already; a piece that is too long is no piece of this file, and starts anew.
        """
        try:
            size = self._part.lstat().st_size
        except OSError:
            return 0
        return size if size < self._file.size_bytes else 0

    def open(self, *, start: int) -> "contextlib.closing[_Writer]":
        """
        Write from `start` on.

        Raises:
            OSError: It cannot be written there.
        """
        flags = os.O_WRONLY | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
        if start == 0:
            flags |= os.O_TRUNC
        descriptor = os.open(self._part, flags, 0o600)
        os.lseek(descriptor, start, os.SEEK_SET)
        return contextlib.closing(_Writer(descriptor))

    def finish(self) -> None:
        """
        Check the file and give it its name.

        Raises:
            BadMedia: It is not the file that the relay has; it was deleted.
        """
        with self._part.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest != self._file.sha256 or self._part.stat().st_size != self._file.size_bytes:
            self._part.unlink(missing_ok=True)
            raise BadMedia("What came is not the file that the relay has.", maybe_sent=True)
        # The file is private while it grows, and then like any other file the user makes.
        mask = os.umask(0)
        os.umask(mask)
        self._part.chmod(0o666 & ~mask)
        self._part.replace(self._target)


class _Writer:
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def write(self, chunk: bytes) -> None:
        """
        Write all of it.
        """
        view = memoryview(chunk)
        while view:
            view = view[os.write(self._descriptor, view) :]

    def close(self) -> None:
        """
        Make it durable, and close it.
        """
        try:
            os.fsync(self._descriptor)
        finally:
            os.close(self._descriptor)

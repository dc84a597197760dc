"""
What is kept for the moment when the disk is full: room on it, and a journal of what the database did not take.
"""

import json
import logging
import os
import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from vidrelay.core.lifecycle import Accepted, Answered, Failed
from vidrelay.store import rows
from vidrelay.store.migrate import sync_folder

logger = logging.getLogger(__name__)

_CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_TASK = re.compile(rb'\s*\{"task":\s*"([A-Za-z0-9_-]+)"')
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """
    A provider's answer to a create call, as it is written down, and when it came.
    """

    task_id: str
    remote_id: str
    at: datetime
    event: Accepted | Answered | Failed


class Journal:
    """
    A file of answers, one JSON object a line, each durable once `append` returns.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._kept: tuple[bytes, ...] = ()

    def append(self, answer: Written) -> None:
        """
        Add an answer.

        Raises:
            OSError: The disk did not take it.
        """
        told = {"task": answer.task_id, "at": rows.to_number(answer.at), **rows.answer_values(answer.event)}
        # What an earlier try left half written ends at this line's beginning.
        left = memoryview(f"\n{rows.dumps(told)}\n".encode("ascii"))
        descriptor = os.open(self._path, _APPEND, 0o600)
        try:
            while left:
                left = left[os.write(descriptor, left) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        sync_folder(self._path.parent)

    def lines(self) -> list[bytes]:
        """
        What was written, line by line, torn lines too; see `written` and `task_of`.

        Raises:
            OSError: The file is there and cannot be read.
        """
        try:
            with os.fdopen(os.open(self._path, _READ), "rb") as file:
                return [line for line in file.read().split(b"\n") if line.strip()]
        except FileNotFoundError:
            return []

    def keep(self, lines: Sequence[bytes]) -> None:
        """
        Leave only these lines, now and whenever it is cleared: nobody else knows of what they tell.
        """
        self._kept = tuple(lines)
        self.clear()

    def clear(self) -> None:
        """
        Remove the file, or all of it but what is kept. Where that fails its answers are passed over later, for they are
        saved.
        """
        try:
            if not self._kept:
                self._path.unlink(missing_ok=True)
            elif self.lines() != list(self._kept):
                self._write_anew()
        except OSError as failed:
            logger.warning("emergency.not_cleared why=%s", failed.strerror)

    def _write_anew(self) -> None:
        draft = self._path.with_name(f"{self._path.name}.new")
        draft.unlink(missing_ok=True)
        with os.fdopen(os.open(draft, _CREATE, 0o600), "wb") as file:
            file.write(b"\n".join((*self._kept, b"")))
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self._path)
        sync_folder(self._path.parent)


def written(line: bytes) -> Written | None:
    """
    The answer that a line of the journal tells; None where it is torn.
    """
    try:
        told: Mapping[str, object] = json.loads(line)
        fields = dict(told)
        task_id, at = fields.pop("task"), fields.pop("at")
        return Written(
            task_id=str(task_id),
            remote_id=str(fields["remote_id"]),
            at=rows.to_instant(int(str(at))),
            event=rows.answer_of(fields),
        )
    except (ValueError, TypeError, KeyError):
        return None


def task_of(line: bytes) -> str | None:
    """
    The task that a torn line is about, where so much of it is left.
    """
    found = _TASK.match(line)
    return found[1].decode("ascii") if found else None


class Ballast:
    """
    A file that holds so many bytes of the disk, to be given up when nothing else is left.
    """

    def __init__(self, path: Path, size_bytes: int) -> None:
        self._path = path
        self._size = size_bytes
        self.whole = False

    def make(self) -> bool:
        """
        Put it in its place, if there is room; whether it is there.
        """
        if not self.whole:
            try:
                self.whole = self._is_whole() or self._write()
            except OSError as failed:
                logger.warning("emergency.no_ballast why=%s", failed.strerror)
        return self.whole

    def free(self) -> bool:
        """
        Give its room back; whether there was any.
        """
        had, self.whole = self.whole, False
        if had:
            try:
                self._path.unlink(missing_ok=True)
            except OSError as failed:
                logger.warning("emergency.ballast_kept why=%s", failed.strerror)
                return False
        return had

    def _is_whole(self) -> bool:
        try:
            facts = self._path.lstat()
        except FileNotFoundError:
            return False
        # A file can have a length and no room behind it.
        held = getattr(facts, "st_blocks", self._size) * 512
        return stat.S_ISREG(facts.st_mode) and facts.st_size == self._size and held >= self._size

    def _write(self) -> bool:
        self._path.unlink(missing_ok=True)
        descriptor = os.open(self._path, _CREATE, 0o600)
        try:
            # Written, and with what no file system can make smaller: only so the room is surely taken.
            piece = os.urandom(min(self._size, 1024 * 1024))
            left = self._size
            while left:
                left -= os.write(descriptor, piece[:left])
        except OSError:
            self._path.unlink(missing_ok=True)
            raise
        finally:
            os.close(descriptor)
        return True

"""
Results on this machine's disk (fills ports Files and PartFile).

A result's own name exists only for a whole, checked file; until then it lies beside it as `….part`. Names are made of
our own ids and the extension that the content showed, never of what a provider says.

A file is trusted by its stamp (inode, length, times), and read through where that is not known or has changed. A stamp
is believed only once it is older than the grain of file times: of two writes within one grain it tells nothing.
"""

import asyncio
import contextlib
import errno
import hashlib
import logging
import os
import re
import shutil
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, TypeVar

from vidrelay.clock import SystemClock
from vidrelay.core.disk import PartFile, ResultName
from vidrelay.core.errors import DiskFull, RelayUnavailable
from vidrelay.core.task import FileRef

T = TypeVar("T")

logger = logging.getLogger(__name__)

_FINGERPRINT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{7,127}", re.ASCII)
_TASK_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}", re.ASCII)
_EXTENSION = re.compile(r"[a-z0-9]{1,8}", re.ASCII)
_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}-[0-9]{1,4}\.[a-z0-9]{1,8}", re.ASCII)
_MAX_INDEX = 9999
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_REOPEN = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_CREATE = _REOPEN | os.O_CREAT | os.O_EXCL


GRAIN_SECONDS = 2.0
"""The coarsest times that a file system of today keeps (FAT's)."""


def require_folder(path: Path) -> None:
    """
    Refuse what is no directory of ours; one that is not there yet is made when it is first needed.

    Raises:
        RelayUnavailable: A link or a file is in its place, so nothing could ever be saved there.
    """
    if not _may_be_folder(path):
        raise RelayUnavailable(
            f"{path} is a link or a file, not a directory: what is paid for could not be saved.",
            hint="Move it away, and the directory is made anew. To keep everything elsewhere: --state-dir DIR.",
        )


class LocalFiles:
    """
    The cache directory: `<fingerprint>/<task id>-<index>.<extension>`.
    """

    def __init__(self, root: Path, *, now: Callable[[], datetime] | None = None) -> None:
        """
        Keep results under `root`, which is made (0700) when it is first needed.

        `now` is the clock that dates the files; None: the system's, whatever else goes by another.
        """
        self._root = root
        self._now = now or SystemClock().now
        self._parts: set[str] = set()
        self._made: set[str] = set()  # what this life has published: a sweep may know less
        self._trusted: dict[str, _Stamp] = {}
        self._reading = asyncio.Lock()  # one file is read through at a time
        self._tidying = threading.Lock()  # guards a folder from its making to its first file against being tidied away

    async def part(self, name: ResultName) -> PartFile:
        """
        Begin a result; a leftover of the same name is replaced.

        Raises:
            DiskFull: The disk did not take it.
        """
        stem = _stem(name)
        self._parts.add(stem)
        try:
            return await _to_end(lambda: self._create(name, stem), undo=_LocalPart.remove)
        except OSError as exc:
            self._parts.discard(stem)
            raise _disk_trouble(exc) from exc

    async def whole(self, file: FileRef, *, read: bool = False) -> bool:
        """
        Whether the file is there as it was saved, a regular file of ours with the very same bytes.

        It is read through if this life of the relay has not done so, if it seems to have changed since, or to `read`
        it is asked for.
        """
        stamp = self._stamp(file)
        if stamp is None:
            return False
        if not read and self._trusted.get(file.path) == stamp:
            return True
        async with self._reading:
            if not read and self._trusted.get(file.path) == stamp:
                return True
            same = await asyncio.to_thread(_same, self.location(file), file, stamp)
        self._trusted.pop(file.path, None)
        if same and self._now().timestamp() - stamp.changed_at / 1e9 >= GRAIN_SECONDS:
            self._trusted[file.path] = stamp
        return same

    def _stamp(self, file: FileRef) -> "_Stamp | None":
        try:
            status, folder = self.location(file).lstat(), self.location(file).parent.lstat()
        except OSError:
            return None
        ours = stat.S_ISREG(status.st_mode) and stat.S_ISDIR(folder.st_mode)
        return _Stamp.of(status) if ours and status.st_size == file.size_bytes else None

    def location(self, file: FileRef) -> Path:
        """
        Where the file is.

        Raises:
            ValueError: The reference does not name a file in the cache directory.
        """
        folder, _, name = file.path.partition("/")
        if _FINGERPRINT.fullmatch(folder) is None or _FILE.fullmatch(name) is None:
            raise ValueError("The reference does not name a file in the cache.")
        return self._root / folder / name

    async def delete(self, files: Sequence[FileRef]) -> None:
        """
        Delete the files; one that is being served stays readable to its reader.
        """
        for file in files:
            self._made.discard(file.path)
            self._trusted.pop(file.path, None)
        await asyncio.to_thread(self._delete, [self.location(file) for file in files])

    async def sweep(self, known: frozenset[str]) -> int:
        """
        Delete every file of our name pattern that is not known and was not made in this life; returns how many.

        Links are deleted, never followed; what has another name, or lies elsewhere, is left alone.
        """
        return await asyncio.to_thread(self._sweep, known)

    def free_bytes(self) -> int:
        """
        Free room on the disk that holds the cache; none where something else is in the cache's place.
        """
        if not _may_be_folder(self._root):
            logger.error("cache.no_directory path=%s", self._root)
            return 0
        return shutil.disk_usage(self._existing()).free

    def _existing(self) -> Path:
        path = self._root.absolute()
        while not path.exists():
            path = path.parent
        return path

    def _create(self, name: ResultName, stem: str) -> "_LocalPart":
        path = self._root / name.fingerprint / f"{stem}.part"
        with self._tidying:
            self._make_root()
            _make_folder(path.parent, instead_of_link=True)
            _create_file(path)
        return _LocalPart(path, name, made=self._made, writing=self._parts, tidy=self._remove_if_empty)

    def _remove_if_empty(self, folder: Path) -> None:
        with self._tidying, contextlib.suppress(OSError):
            folder.rmdir()

    def _delete(self, paths: list[Path]) -> None:
        for path in paths:
            if path.parent.is_symlink():
                logger.warning("file.not_deleted name=%s why=%s", path.name, "its folder is a link")
                continue
            try:
                path.unlink(missing_ok=True)
            except OSError as exc:
                # Nobody is sent there any more; the next start tries again.
                logger.warning("file.not_deleted name=%s why=%s", path.name, exc.strerror)
            self._remove_if_empty(path.parent)

    def _make_root(self) -> None:
        new = not self._root.exists()
        _make_folder(self._root)
        if new:
            # What is below it is synced when a result is published.
            _sync_folder(self._root.parent)

    def _sweep(self, known: frozenset[str]) -> int:
        deleted = 0
        for folder in _scan(self._root):
            if _FINGERPRINT.fullmatch(folder.name) is None or not folder.is_dir(follow_symlinks=False):
                continue
            orphans, kept = [], 0
            for entry in _scan(Path(folder.path)):
                if self._is_orphan(folder.name, entry, known):
                    orphans.append(entry.path)
                else:
                    kept += 1
            for path in orphans:
                Path(path).unlink(missing_ok=True)
            deleted += len(orphans)
            if not kept:
                self._remove_if_empty(Path(folder.path))
        return deleted

    def _is_orphan(self, folder: str, entry: "os.DirEntry[str]", known: frozenset[str]) -> bool:
        if _FILE.fullmatch(entry.name) is None or entry.is_dir(follow_symlinks=False):
            return False
        # Looked up last, since results are made while this goes on.
        stem, _, extension = entry.name.rpartition(".")
        path = f"{folder}/{entry.name}"
        return not ((extension == "part" and stem in self._parts) or path in self._made or path in known)


def _may_be_folder(path: Path) -> bool:
    """
    Whether a directory of ours is there, or nothing yet.
    """
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except FileNotFoundError:
        return True


def _make_folder(path: Path, *, instead_of_link: bool = False) -> None:
    """
    Make the folder if it is not there; a link in its place is not followed, and replaced where that is told.
    """
    if instead_of_link and path.is_symlink():
        path.unlink(missing_ok=True)
    path.mkdir(mode=0o700, parents=not instead_of_link, exist_ok=True)
    if not stat.S_ISDIR(path.lstat().st_mode):
        raise NotADirectoryError(errno.ENOTDIR, "not a directory of ours", path.name)


def _create_file(path: Path) -> None:
    try:
        os.close(os.open(path, _CREATE, 0o600))
    except FileExistsError:
        path.unlink()
        os.close(os.open(path, _CREATE, 0o600))


@dataclass(frozen=True, slots=True)
class _Stamp:
    """
    By what a file is taken for unchanged; instants are nanoseconds since 1970.
    """

    device: int
    inode: int
    size_bytes: int
    modified_at: int
    changed_at: int

    @classmethod
    def of(cls, status: os.stat_result) -> "_Stamp":
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _same(path: Path, file: FileRef, stamp: _Stamp) -> bool:
    """
    Whether the file with that stamp holds the bytes that were saved.
    """
    try:
        with os.fdopen(os.open(path, _READ), "rb", buffering=0) as opened:
            digest = hashlib.file_digest(opened, "sha256").hexdigest()
            return digest == file.sha256 and _Stamp.of(os.fstat(opened.fileno())) == stamp
    except OSError:
        return False


class _LocalPart:
    """
    A result being written, hashed on its way (fills port PartFile).

    The file is open only while it is worked on, so that a fetch which is never gone on with holds nothing.
    """

    def __init__(
        self, path: Path, name: ResultName, *, made: set[str], writing: set[str], tidy: Callable[[Path], None]
    ) -> None:
        self._path = path
        self._name = name
        self._made = made
        self._writing = writing
        self._tidy = tidy
        self._ended = False
        self._hash = hashlib.sha256()
        self._size = 0

    @property
    def size_bytes(self) -> int:
        return self._size

    async def write(self, chunk: bytes) -> None:
        try:
            await _to_end(lambda: self._append(chunk))
        except OSError as exc:
            await self.discard()
            raise _disk_trouble(exc) from exc

    async def inspect(self, look: Callable[[BinaryIO], T]) -> T:
        try:
            return await _to_end(lambda: self._inspect(look))
        except OSError as exc:
            await self.discard()
            raise _disk_trouble(exc) from exc

    async def commit(self, *, extension: str, media_type: str) -> FileRef:
        if _EXTENSION.fullmatch(extension) is None or extension == "part":
            raise ValueError("That is no extension for a result.")
        path = self._path.with_suffix(f".{extension}")
        name = f"{self._name.fingerprint}/{path.name}"
        self._made.add(name)
        try:
            await _to_end(lambda: self._publish(path))
        except OSError as exc:
            self._made.discard(name)
            await self.discard()
            raise _disk_trouble(exc) from exc
        return FileRef(
            index=self._name.index,
            path=name,
            size_bytes=self._size,
            sha256=self._hash.hexdigest(),
            media_type=media_type,
        )

    async def discard(self) -> None:
        await _to_end(self.remove)

    def remove(self) -> None:
        if not self._ended:
            self._end()
            self._path.unlink(missing_ok=True)
            self._tidy(self._path.parent)

    def _end(self) -> None:
        self._ended = True
        self._writing.discard(self._path.stem)

    def _open(self) -> BinaryIO:
        file = os.fdopen(os.open(self._path, _REOPEN), "r+b", buffering=0)
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_size != self._size:
            file.close()
            raise OSError(errno.EIO, "the part file is not as it was left")
        return file

    def _append(self, chunk: bytes) -> None:
        with self._open() as file:
            file.seek(0, os.SEEK_END)
            left = memoryview(chunk)
            while left:
                left = left[file.write(left) :]
        self._hash.update(chunk)
        self._size += len(chunk)

    def _inspect(self, look: Callable[[BinaryIO], T]) -> T:
        with self._open() as file:
            return look(file)

    def _publish(self, path: Path) -> None:
        with self._open() as file:
            os.fsync(file.fileno())
        self._path.replace(path)
        self._end()
        try:
            _sync_folder(path.parent)
            _sync_folder(path.parent.parent)
        except OSError:
            path.unlink(missing_ok=True)
            raise


async def _to_end(work: Callable[[], T], undo: Callable[[T], None] | None = None) -> T:
    # A thread cannot be cancelled: to leave it writing would let the next step meet it in the same file.
    running = asyncio.get_running_loop().run_in_executor(None, work)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        while not running.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([running])
        if running.exception() is None and undo is not None:
            undo(running.result())
        raise


def _stem(name: ResultName) -> str:
    if _FINGERPRINT.fullmatch(name.fingerprint) is None or _TASK_ID.fullmatch(name.task_id) is None:
        raise ValueError("The result's name would not be a plain file name.")
    if not 0 <= name.index <= _MAX_INDEX:
        raise ValueError("The result's index is out of range.")
    return f"{name.task_id}-{name.index}"


def _disk_trouble(exc: OSError) -> DiskFull:
    if exc.errno in _FULL:
        return DiskFull("The disk is full: the result could not be written.")
    return DiskFull(f"The disk did not take the result: {exc.strerror or type(exc).__name__}.")


def _scan(folder: Path) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            yield from sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return


def _sync_folder(folder: Path) -> None:
    # Windows can neither open nor sync a folder; its renames are in the journal.
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

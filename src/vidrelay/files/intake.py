"""
A file of a stranger's on its way into the asset directory: written, hashed, and judged by its content as it comes.
"""

import contextlib
import errno
import hashlib
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from vidrelay.core.errors import BadMedia, DiskFull, TooLarge, UnsupportedMedia
from vidrelay.core.media import AUDIO, EXTENSIONS, HEAD_BYTES, PICTURES, VIDEO, check_taken, examine, family_of, sniff

PART = ".part"
KINDS = sorted(
    (kind for kind in EXTENSIONS if kind in PICTURES or family_of(kind) in (VIDEO, AUDIO)),
    key=lambda kind: kind not in PICTURES,
)
"""What is kept; pictures, which come oftenest, first."""

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """
    A file that was taken in whole, not yet under its own name.
    """

    path: Path
    sha256: str
    size_bytes: int
    media_type: str

    @property
    def id(self) -> str:
        """
        The asset's.
        """
        return f"sha256:{self.sha256}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """
    What is taken in: pictures up to so many bytes, and for `who` films and sounds (None: for nobody).
    """

    max_bytes: int
    media: Mapping[str, int] | None
    who: str

    def check(self, media_type: str, size_bytes: int) -> None:
        """
        Refuse what is of another kind, or too long.
        """
        if media_type in PICTURES:
            return
        if self.media is None or media_type not in KINDS:
            raise self.unsupported()
        check_taken(media_type, size_bytes, self.media, who=self.who)

    def unsupported(self) -> UnsupportedMedia:
        """
        What is said of a file of no kind that is taken.
        """
        return UnsupportedMedia(None if self.media is None else "It is no picture, film or sound of a known kind.")


class Intake:
    """
    A file being taken in: made exclusively (0600), hashed as it grows, refused as soon as its head or length is wrong.
    """

    def __init__(self, root: Path, wanted: Wanted) -> None:
        handle, name = tempfile.mkstemp(dir=root, suffix=PART)
        self._file = os.fdopen(handle, "wb")
        self._path = Path(name)
        self._wanted = wanted
        self._digest = hashlib.sha256()
        self._head = b""
        self._size = 0

    def write(self, chunk: bytes) -> None:
        """
        Append.

        Raises:
            UnsupportedMedia: It is of no kind that is taken.
            InvalidRequest: It is a film or a sound where none is taken.
            TooLarge: It is over a limit.
            DiskFull: The disk did not take it.
        """
        self._size += len(chunk)
        if self._size > self._wanted.max_bytes:
            raise TooLarge(f"A file may have at most {self._wanted.max_bytes} bytes.")
        self._head = (self._head + chunk[:HEAD_BYTES])[:HEAD_BYTES]
        if len(self._head) == HEAD_BYTES:
            self._require_kind()
        self._digest.update(chunk)
        try:
            self._file.write(chunk)
        except OSError as exc:
            raise trouble(exc) from exc

    def close(self) -> Taken:
        """
        It has come whole: the same errors, for what was too short to be judged before.
        """
        media_type = self._require_kind()
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
        except OSError as exc:
            raise trouble(exc) from exc
        return Taken(path=self._path, sha256=self._digest.hexdigest(), size_bytes=self._size, media_type=media_type)

    def discard(self) -> None:
        """
        Delete it.
        """
        with contextlib.suppress(OSError):
            self._file.close()
        self._path.unlink(missing_ok=True)

    def _require_kind(self) -> str:
        kind = sniff(self._head)
        if kind is None:
            raise self._wanted.unsupported()
        self._wanted.check(kind.media_type, self._size)
        return kind.media_type


def require_whole(taken: Taken) -> None:
    """
    Look through a film's or a sound's structure; nothing is decoded.

    Raises:
        UnsupportedMedia: It begins as one and is none, or is cut short.
    """
    try:
        with taken.path.open("rb") as file:
            examine(file, taken.size_bytes, length_told=True)
    except BadMedia as exc:
        raise UnsupportedMedia(f"It is no whole film or sound: {exc.message}") from exc


def trouble(exc: OSError) -> DiskFull:
    """
    What is said of a disk that does not take a file.
    """
    if exc.errno in _FULL:
        return DiskFull("There is no room on the disk for the file.")
    return DiskFull(f"The disk did not take the file: {exc.strerror or exc}.")

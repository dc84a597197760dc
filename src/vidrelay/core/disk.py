"""
What the scheduler needs of the disk, as protocols: results are port Files', reference images and other media Assets'.

A port says what the scheduler needs, not what a disk can do; `ports.py` has those toward the database.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol, TypeVar

from vidrelay.core.adapter import PictureRule
from vidrelay.core.task import Asset, FileRef

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultName:
    """
    Which file of which task is meant.
    """

    fingerprint: str
    task_id: str
    index: int


class PartFile(Protocol):
    """
    A result on its way to the disk, under a name that no reader looks for (`Files.part`).

    A write or commit that fails has discarded it.
    """

    @property
    def size_bytes(self) -> int:
        """
        How many bytes have been written.
        """
        ...

    async def write(self, chunk: bytes) -> None:
        """
        Append the bytes.

        Raises:
            DiskFull: The disk did not take them.
        """
        ...

    async def inspect(self, look: Callable[[BinaryIO], T]) -> T:
        """
        Let `look` read what has been written, from the start, in a thread.

        Raises:
            DiskFull: The disk did not give it back.
        """
        ...

    async def commit(self, *, extension: str, media_type: str) -> FileRef:
        """
        Give the file its name, durably: from then on it is a result. Call it only when the file is whole and checked.

        Raises:
            DiskFull: The disk did not take it.
        """
        ...

    async def discard(self) -> None:
        """
        Delete what has been written; after a commit, nothing.
        """
        ...


class Files(Protocol):
    """
    Persistence of result bytes (port Files). Names are relative to the cache directory.
    """

    async def part(self, name: ResultName) -> PartFile:
        """
        Begin a result; a leftover of the same name is replaced.

        Raises:
            DiskFull: The disk did not take it.
        """
        ...

    async def whole(self, file: FileRef, *, read: bool = False) -> bool:
        """
        Whether the file is there as it was saved; `read` looks at every byte, even if nothing seems to have changed.
        """
        ...

    def location(self, file: FileRef) -> Path:
        """
        Where the file is.
        """
        ...

    async def delete(self, files: Sequence[FileRef]) -> None:
        """
        Delete the files; one that is being served stays readable to its reader.
        """
        ...

    async def sweep(self, known: frozenset[str]) -> int:
        """
        Delete every file of our name pattern that is neither known nor made since the start; returns how many.
        """
        ...

    def free_bytes(self) -> int:
        """
        Free room on the disk that holds the cache.
        """
        ...


class Assets(Protocol):
    """
    Persistence of reference images, and of the films and sounds that doors take (port Assets).
    """

    async def put(
        self, chunks: AsyncIterator[bytes], *, media: Mapping[str, int] | None = None, who: str = ""
    ) -> Asset:
        """
        Take in a picture, streamed, checked and measured; with `media` (`Traits.media`), a film or a sound too, as the
        provider `who` takes them.

        Raises:
            UnsupportedMedia: It is no PNG, JPEG or WebP picture, nor a film or a sound that is whole.
            InvalidRequest: `who` takes no film or no sound.
            TooLarge: It is over a limit.
            DiskFull: There is no room.
        """
        ...

    async def put_path(self, path: str) -> Asset:
        """
        Take in a picture from a file of the user's.

        Raises:
            InvalidRequest: It is no regular file, one that must not be read, no picture, or over a limit.
            DiskFull: There is no room.
        """
        ...

    async def fitted(self, asset: Asset, rule: PictureRule) -> Asset:
        """
        The picture itself if the rule takes it, else a scaled copy made once and kept; `pixels` stays the original's.

        Raises:
            UnknownAsset: Its file is gone.
            UnsupportedMedia: It is no picture, or the rule allows no type that can be written.
            TooLarge: It cannot be made small enough.
            DiskFull: There is no room for the copy.
        """
        ...

    def location(self, asset_id: str) -> Path:
        """
        Where the asset's bytes are, or would be.

        Raises:
            UnknownAsset: That is no asset's id.
        """
        ...

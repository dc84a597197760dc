"""
Reference images, films and sounds on this machine's disk (fills port Assets).

A picture is streamed into a file of our own, judged by its first bytes, decoded once by a child process (`images`), and
then kept under the hash of its bytes: `assets/<sha256>.<png|jpg|webp>`. Nothing of it is ever decoded in the relay. A
film or a sound is kept likewise, but never decoded: its bytes are what it is known by.
"""

import asyncio
import contextlib
import errno
import hashlib
import json
import os
import re
import stat
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from vidrelay.core.adapter import PictureRule
from vidrelay.core.errors import DiskFull, InvalidRequest, TooLarge, UnknownAsset, UnsupportedMedia
from vidrelay.core.media import EXTENSIONS, MAX_BYTES, PICTURES
from vidrelay.core.ports import AssetBook
from vidrelay.core.task import Asset
from vidrelay.files.intake import KINDS, PART, Intake, Taken, Wanted, require_whole, trouble

CHILD_SECONDS = 30.0
WRITE_BYTES = 1024 * 1024

_ID = re.compile(r"sha256:([0-9a-f]{64})", re.ASCII)
_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
# A path that leads to a terminal must not make it that of a detached relay, which would end with it.
_READ |= getattr(os, "O_NOCTTY", 0)
# What a Python needs to start; keys and everything else in the environment stay here.
_ENVIRONMENT = (
    "PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TEMP", "TMP", "PYTHONPATH", "PYTHONHOME", "SYSTEMROOT", "VIRTUAL_ENV",
    "LD_LIBRARY_PATH",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageLimits:
    """
    What a reference image may be: its file in bytes, its size and its longer edge in pixels.
    """

    max_bytes: int = MAX_BYTES
    max_pixels: int = 40_000_000
    max_edge: int = 16_384


class LocalAssets:
    """
    The asset directory.
    """

    def __init__(
        self,
        root: Path,
        book: AssetBook,
        *,
        limits: ImageLimits | None = None,
        forbidden: Sequence[Path] = (),
        has_room: Callable[[int], bool] = lambda _: True,
    ) -> None:
        """
        Keep pictures under `root`, which is made (0700) when it is first needed, and what is known of them in `book`.

        `forbidden` are files (keys), and directories with all they hold (the state directory), that no path of a
        request may name. `has_room` says whether the disk takes so many bytes.
        """
        self._root, self._book = root, book
        self._limits = limits or ImageLimits()
        self._forbidden = tuple(forbidden)
        self._has_room = has_room
        self._decoder = asyncio.Semaphore(1)  # one child at a time, however many pictures come
        self._ready = False

    async def put(
        self, chunks: AsyncIterator[bytes], *, media: Mapping[str, int] | None = None, who: str = ""
    ) -> Asset:
        """
        Take in a picture, streamed, checked and measured. Bytes that are known already are not decoded again.

        With `media`, a film or a sound too, as `who` takes them.

        Raises:
            UnsupportedMedia: It is no PNG, JPEG or WebP picture that can be read, nor a film or a sound that is whole.
            InvalidRequest: `who` takes no film or no sound.
            TooLarge: It is over a limit.
            DiskFull: There is no room.
        """
        return await self._keep(await self._receive(chunks, media, who))

    async def put_path(self, path: str) -> Asset:
        """
        Take in a picture from a file of the user's; it is opened once, and never followed if it is a link.

        Raises:
            InvalidRequest: It is no regular file, one that must not be read, no picture, or over a limit.
            DiskFull: There is no room.
        """
        descriptor = await asyncio.to_thread(_open_picture, path, self._forbidden)
        try:
            return await self.put(_pieces(descriptor, path))
        except (UnsupportedMedia, TooLarge) as exc:
            raise InvalidRequest(f"{path!r} cannot be used: {exc.message}", field="references") from exc
        finally:
            os.close(descriptor)

    async def fitted(self, asset: Asset, rule: PictureRule) -> Asset:
        """
        The picture itself if the rule takes it, else a scaled copy made once and kept; `pixels` stays the original's.

        Raises:
            UnknownAsset: Its file is gone.
            UnsupportedMedia: It is no picture, or the rule allows no type that can be written.
            TooLarge: It cannot be made small enough.
        """
        path = self.location(asset.id)
        if not await asyncio.to_thread(_is_regular, path):
            raise UnknownAsset("The picture's file is gone; upload it to /assets again.")
        if asset.media_type not in PICTURES:
            raise UnsupportedMedia
        if _fits(asset, rule):
            return asset
        note = self._root / f"{asset.id[7:]}-{_rule_hash(rule)}.fit"
        with contextlib.suppress(OSError, UnknownAsset):
            copy = await self._book.asset(await asyncio.to_thread(note.read_text))
            if await asyncio.to_thread(_is_regular, self.location(copy.id)):
                return copy
        return await self._copy(asset, path, rule, note)

    def location(self, asset_id: str) -> Path:
        """
        Where the asset's bytes are, or would be.

        Raises:
            UnknownAsset: That is no asset's id.
        """
        found = _ID.fullmatch(asset_id)
        if found is None:
            raise UnknownAsset(f"{asset_id!r} is no asset's id.")
        places = [self._root / f"{found[1]}.{EXTENSIONS[kind]}" for kind in KINDS]
        return next((place for place in places if _is_regular(place)), places[0])

    async def _receive(self, chunks: AsyncIterator[bytes], media: Mapping[str, int] | None, who: str) -> Taken:
        """
        Write the stream to a new file, hashing and judging it on the way; on failure nothing is left.
        """
        await self._make_root()
        try:
            wanted = Wanted(max_bytes=self._limits.max_bytes, media=media, who=who)
            intake = await asyncio.to_thread(Intake, self._root, wanted)
        except OSError as exc:
            raise trouble(exc) from exc
        try:
            buffer = bytearray()
            async for chunk in chunks:
                buffer += chunk
                if len(buffer) >= WRITE_BYTES:
                    await self._write(intake, bytes(buffer))
                    buffer.clear()
            await self._write(intake, bytes(buffer))
            return await asyncio.to_thread(intake.close)
        except BaseException:
            await asyncio.shield(asyncio.to_thread(intake.discard))
            raise

    async def _write(self, intake: Intake, chunk: bytes) -> None:
        if not self._has_room(len(chunk)):
            raise DiskFull("There is too little room on the disk for the file.")
        await asyncio.to_thread(intake.write, chunk)

    async def _keep(self, taken: Taken) -> Asset:
        """
        Give a taken file its name, measured where its bytes are new.
        """
        try:
            known = await self._known(taken.id)
            if known is None:
                known = await self._measured(taken)
            await self._publish(taken)
            await self._book.add_asset(known)
            return known
        finally:
            await asyncio.to_thread(taken.path.unlink, missing_ok=True)

    async def _measured(self, taken: Taken) -> Asset:
        if taken.media_type in PICTURES:
            told = await self._child("measure", taken.path, taken.media_type)
        else:
            await asyncio.to_thread(require_whole, taken)
            told = {"pixels": taken.id, "width": 1, "height": 1}
        return Asset(
            id=taken.id,
            pixels=told["pixels"],
            width=told["width"],
            height=told["height"],
            size_bytes=taken.size_bytes,
            media_type=taken.media_type,
        )

    async def _known(self, asset_id: str) -> Asset | None:
        try:
            return await self._book.asset(asset_id)
        except UnknownAsset:
            return None

    async def _publish(self, taken: Taken) -> None:
        name = self._root / f"{taken.sha256}.{EXTENSIONS[taken.media_type]}"
        try:
            await asyncio.to_thread(_rename, taken.path, name)
        except OSError as exc:
            raise trouble(exc) from exc

    async def _copy(self, asset: Asset, path: Path, rule: PictureRule, note: Path) -> Asset:
        handle, name = await asyncio.to_thread(tempfile.mkstemp, dir=self._root, suffix=PART)
        os.close(handle)
        copy = Path(name)
        try:
            told = await self._child(
                "fit",
                path,
                asset.media_type,
                out=name,
                edge=rule.max_edge,
                max_bytes=rule.max_bytes,
                media_types=sorted(rule.media_types),
            )
            digest, size = await asyncio.to_thread(_hash, copy)
            taken = Taken(path=copy, sha256=digest, size_bytes=size, media_type=told["media_type"])
            await self._publish(taken)
        finally:
            await asyncio.to_thread(copy.unlink, missing_ok=True)
        fitted = Asset(
            id=taken.id,
            pixels=asset.pixels,
            width=told["width"],
            height=told["height"],
            size_bytes=size,
            media_type=taken.media_type,
        )
        await self._book.add_asset(fitted)
        await asyncio.to_thread(_write_note, note, fitted.id)
        return fitted

    async def _child(self, order: str, path: Path, media_type: str, **more: Any) -> dict[str, Any]:
        """
        Let a child decode the picture.

        Raises:
            UnsupportedMedia: It could not, or it crashed or took too long over it.
            TooLarge: The picture is over a limit.
        """
        limits = {"max_pixels": self._limits.max_pixels, "max_edge": self._limits.max_edge}
        line = json.dumps({"do": order, "path": str(path), "media_type": media_type, **limits, **more}) + "\n"
        async with self._decoder:
            told = await _run(line.encode())
        match told.get("error"):
            case None:
                return told
            case "too_large":
                raise TooLarge(f"The picture is over its limit: {told['detail']}.")
            case _:
                raise UnsupportedMedia(f"The picture cannot be read: {told['detail']}.")

    async def _make_root(self) -> None:
        if not self._ready:
            try:
                await asyncio.to_thread(_make_root, self._root)
            except OSError as exc:
                raise trouble(exc) from exc
            self._ready = True


async def _run(line: bytes) -> dict[str, Any]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        "-m",
        "vidrelay.files.images",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(CHILD_SECONDS):
            said, _ = await process.communicate(line)
    except TimeoutError:
        return {"error": "unsupported", "detail": f"it was not decoded within {CHILD_SECONDS:g} s"}
    except (OSError, RuntimeError):
        # It was gone before it had been told what to decode: uvloop raises RuntimeError for a pipe that is closed.
        said = b""
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    try:
        told = json.loads(said)
    except ValueError:
        told = None
    return told if isinstance(told, dict) else {"error": "unsupported", "detail": "the decoder broke down over it"}


def _open_picture(path: str, forbidden: Sequence[Path]) -> int:
    """
    Open a file of the user's for reading, once: what is checked is what is read.
    """
    if not Path(path).is_absolute() or "\0" in path:
        raise InvalidRequest("A reference's path must be absolute.", field="references")
    try:
        descriptor = os.open(path, _READ)
    except ValueError as exc:
        raise InvalidRequest("A reference's path cannot be a file's name.", field="references") from exc
    except OSError as exc:
        why = "it is a link" if exc.errno == errno.ELOOP else (exc.strerror or str(exc))
        raise InvalidRequest(f"{path!r} cannot be opened: {why}.", field="references") from exc
    try:
        _require_allowed(path, descriptor, forbidden)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _require_allowed(path: str, descriptor: int, forbidden: Sequence[Path]) -> None:
    opened = os.fstat(descriptor)
    if not stat.S_ISREG(opened.st_mode):
        raise InvalidRequest(f"{path!r} is not a regular file.", field="references")
    if not opened.st_size:  # as are all the system's own tables, which may have no end
        raise InvalidRequest(f"{path!r} is empty.", field="references")
    try:
        real = Path(path).resolve(strict=True)
        named = real.lstat()
    except OSError as exc:
        raise InvalidRequest(f"{path!r} has just been changed.", field="references") from exc
    if (named.st_dev, named.st_ino) != (opened.st_dev, opened.st_ino):
        raise InvalidRequest(f"{path!r} has just been changed.", field="references")
    for place in forbidden:
        with contextlib.suppress(OSError):
            status = place.stat()
            if (status.st_dev, status.st_ino) == (opened.st_dev, opened.st_ino) or real.is_relative_to(place.resolve()):
                raise InvalidRequest(f"{path!r} is one of the relay's own files.", field="references")


async def _pieces(descriptor: int, path: str) -> AsyncIterator[bytes]:
    while chunk := await asyncio.to_thread(_read, descriptor, path):
        yield chunk


def _read(descriptor: int, path: str) -> bytes:
    try:
        return os.read(descriptor, WRITE_BYTES)
    except OSError as exc:
        raise InvalidRequest(f"{path!r} cannot be read: {exc.strerror or exc}.", field="references") from exc


def _fits(asset: Asset, rule: PictureRule) -> bool:
    return (
        asset.media_type in rule.media_types
        and (rule.max_edge is None or max(asset.width, asset.height) <= rule.max_edge)
        and (rule.max_bytes is None or asset.size_bytes <= rule.max_bytes)
    )


def _rule_hash(rule: PictureRule) -> str:
    fields = asdict(rule) | {"media_types": sorted(rule.media_types)}
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()[:16]


def _make_root(root: Path) -> None:
    """
    Make the directory, and delete what an earlier life left half taken in.
    """
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    if root.is_symlink():
        raise NotADirectoryError(errno.ENOTDIR, "the asset directory is a link")
    for leftover in root.glob(f"tmp*{PART}"):
        leftover.unlink(missing_ok=True)


def _is_regular(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def _rename(path: Path, name: Path) -> None:
    path.replace(name)
    if os.name == "posix":
        folder = os.open(name.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _hash(path: Path) -> tuple[str, int]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")
        os.fsync(file.fileno())
        return digest.hexdigest(), file.tell()


def _write_note(note: Path, text: str) -> None:
    handle, name = tempfile.mkstemp(dir=note.parent, suffix=PART)
    with os.fdopen(handle, "w") as file:
        file.write(text)
    Path(name).replace(note)

"""
From an address to a whole, checked file (fills port Downloader).
"""

import asyncio
import re
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass

from vidrelay.core.clock import Clock
from vidrelay.core.disk import Files, PartFile, ResultName
from vidrelay.core.errors import BadMedia, DeadAddress, DiskFull, TransportError
from vidrelay.core.media import HEAD_BYTES, examine, kind_of
from vidrelay.core.messages import CLIP_REPLY_BYTES, LIST_REPLY_BYTES, HttpRequest
from vidrelay.core.network import Reply, Transport
from vidrelay.core.pace import retry_after
from vidrelay.core.task import FileRef

MAX_BYTES = 2 * 1024**3
MAX_REDIRECTS = 3
TOTAL_SECONDS = 30 * 60.0
IDLE_SECONDS = 30.0
SLOW_SECONDS = 60.0
SLOW_BYTES_PER_SECOND = 16 * 1024
TICK_SECONDS = 5.0
WRITE_BYTES = 1024 * 1024
MAX_KEPT = 16
"""So many broken fetches are kept to be gone on with; of more, the oldest begins anew."""
MAX_REMEMBERED = 256

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_DEAD = frozenset({401, 403, 404, 410})
_STRONG_ETAG = re.compile(r'"[\x21\x23-\x7e]*"', re.ASCII)
_RANGE = re.compile(r"bytes ([0-9]{1,18})-([0-9]{1,18})/([0-9]{1,18})", re.ASCII)


@dataclass(slots=True)
class _Attempt:
    """
    What has come of one result so far; `etag` is the strong one that allows going on.
    """

    part: PartFile | None = None
    etag: str | None = None

    @property
    def can_resume(self) -> bool:
        return self.part is not None and self.etag is not None and self.part.size_bytes > 0

    async def discard(self) -> None:
        part, self.part, self.etag = self.part, None, None
        if part is not None:
            await part.discard()


class HttpDownloader:
    """
    Fetches results through one account's transport.
    """

    def __init__(
        self,
        transport: Transport,
        files: Files,
        clock: Clock,
        *,
        slots: asyncio.Semaphore,
        has_room: Callable[[int], bool],
        max_bytes: int = MAX_BYTES,
    ) -> None:
        """
        Fetch through `transport` into `files`.

        `slots` bounds how many fetches run at once in the whole process (2). `has_room` says whether the disk can take
        so many bytes. A longer file than `max_bytes` is refused.
        """
        self._transport = transport
        self._files = files
        self._clock = clock
        self._slots = slots
        self._has_room = has_room
        self._max_bytes = max_bytes
        self._kept: OrderedDict[ResultName, _Attempt] = OrderedDict()
        self._fetched: OrderedDict[ResultName, FileRef] = OrderedDict()

    async def fetch(self, request: HttpRequest, name: ResultName) -> FileRef:
        """
        Fetch the file.

        A broken fetch can be called again, with the same address or a fresh one: it goes on where it was if the server
        vouches (strong ETag) that the file is the same, else it begins anew. Of a task with several files, those that
        are there already are not fetched again.

        Raises:
            DeadAddress: The address answers 401, 403, 404 or 410.
            BadMedia: What came is not a whole file of a known kind; nothing is kept.
            DiskFull: There is no room.
            TransportError: It broke off, was too slow, or the server asks to come back (`retry_after`).
        """
        done = self._fetched.get(name)
        if done is not None and await self._files.whole(done):
            return done
        async with self._slots:
            attempt = self._kept.pop(name, None) or _Attempt()
            try:
                file = await self._watched(request, name, attempt)
            except TransportError as exc:
                if isinstance(exc, BadMedia) or not attempt.can_resume:
                    await attempt.discard()
                else:
                    await self._keep(name, attempt)
                raise
            except BaseException:
                await attempt.discard()
                raise
        self._fetched[name] = file
        while len(self._fetched) > MAX_REMEMBERED:
            self._fetched.popitem(last=False)
        return file

    async def _keep(self, name: ResultName, attempt: _Attempt) -> None:
        self._kept[name] = attempt
        while len(self._kept) > MAX_KEPT:
            _, oldest = self._kept.popitem(last=False)
            await oldest.discard()

    async def _watched(self, request: HttpRequest, name: ResultName, attempt: _Attempt) -> FileRef:
        """
        Fetch beside a watch that ends it when too little comes.
        """
        watch = _Watch(self._clock)
        try:
            async with asyncio.TaskGroup() as group:
                watching = group.create_task(watch.run())
                file = await self._follow(request, name, attempt, watch)
                watching.cancel()
                return file
        except BaseExceptionGroup as failed:
            first = failed.exceptions[0]
            raise first from first.__cause__

    async def _follow(self, request: HttpRequest, name: ResultName, attempt: _Attempt, watch: "_Watch") -> FileRef:
        url, headers = request.url, dict(request.headers)
        for _ in range(MAX_REDIRECTS + 1):
            resuming = attempt.can_resume
            call = HttpRequest(
                method="GET",
                url=url,
                headers=headers | _resume_headers(attempt),
                max_reply_bytes=max(self._max_bytes, LIST_REPLY_BYTES + 1),
            )
            async with self._transport.send(call, timeout=TOTAL_SECONDS) as reply:
                if reply.status == 416 and resuming:
                    await attempt.discard()
                    continue
                if reply.status not in _REDIRECTS and request.unwrap is not None:
                    return await self._take_out(reply, name, attempt, watch, request.unwrap)
                if reply.status not in _REDIRECTS:
                    return await self._take(reply, name, attempt, watch)
                following = _following(url, reply)
            if _origin(following) != _origin(request.url):
                headers = {}
            url = following
        raise TransportError("The result's address was redirected too often.", maybe_sent=True)

    async def _take(self, reply: Reply, name: ResultName, attempt: _Attempt, watch: "_Watch") -> FileRef:
        self._check_status(reply)
        expected = await self._agree(reply, attempt)
        if expected is not None and expected > self._max_bytes:
            raise BadMedia(f"The file is longer than the {self._max_bytes} bytes a result may have.", maybe_sent=True)
        part = attempt.part = attempt.part or await self._files.part(name)
        self._require_room((expected or 0) - part.size_bytes)
        await self._receive(reply, part, expected, watch)
        if expected is not None and part.size_bytes < expected:
            raise TransportError(
                f"The file broke off after {part.size_bytes} of {expected} bytes.",
                maybe_sent=True,
            )
        size = part.size_bytes
        media = await part.inspect(lambda file: examine(file, size, length_told=expected is not None))
        return await part.commit(extension=media.extension, media_type=media.media_type)

    async def _take_out(
        self,
        reply: Reply,
        name: ResultName,
        attempt: _Attempt,
        watch: "_Watch",
        unwrap: Callable[[bytes], bytes | None],
    ) -> FileRef:
        """
        Take the file out of the answer that holds it, which is bounded as any answer that is read is.
        """
        self._check_status(reply)
        await attempt.discard()
        body = bytearray()
        async for chunk in reply.chunks():
            watch.note(len(chunk))
            body += chunk
            if len(body) > CLIP_REPLY_BYTES:
                raise BadMedia(f"The answer that holds the file is over {CLIP_REPLY_BYTES} bytes.", maybe_sent=True)
        content = await asyncio.to_thread(unwrap, bytes(body))
        if content is None:
            # It holds an address now, perhaps: asking for the job again tells.
            raise DeadAddress("The answer holds no file any more where it did.", maybe_sent=True)
        self._require_room(len(content))
        part = attempt.part = await self._files.part(name)
        await part.write(content)
        media = await part.inspect(lambda file: examine(file, len(content), length_told=True))
        return await part.commit(extension=media.extension, media_type=media.media_type)

    def _check_status(self, reply: Reply) -> None:
        if reply.status in (200, 206):
            return
        if reply.status in _DEAD:
            raise DeadAddress(f"The result's address answers {reply.status}.", maybe_sent=True)
        raise TransportError(
            f"The result's server answers {reply.status}.",
            maybe_sent=True,
            retry_after=retry_after(reply.headers.get("retry-after"), now=self._clock.now()),
        )

    async def _agree(self, reply: Reply, attempt: _Attempt) -> int | None:
        """
        Settle whether this goes on with what has come or begins anew; returns the whole file's length if told.
        """
        told = reply.headers.get("content-length", "")
        length = int(told) if re.fullmatch("[0-9]{1,18}", told) else None
        etag = reply.headers.get("etag", "")
        if reply.status == 206:
            start = attempt.part.size_bytes if attempt.can_resume and attempt.part is not None else None
            match = _RANGE.fullmatch(reply.headers.get("content-range", ""))
            first, last, whole = (int(group) for group in match.groups()) if match else (-1, -1, -1)
            agreed = first == start and last == whole - 1 and length in (None, whole - first)
            if not agreed or etag not in ("", attempt.etag):
                await attempt.discard()
                raise TransportError("The server went on with another part of the file than asked.", maybe_sent=True)
            return whole
        await attempt.discard()
        attempt.etag = etag if _STRONG_ETAG.fullmatch(etag) else None
        return length

    async def _receive(self, reply: Reply, part: PartFile, expected: int | None, watch: "_Watch") -> None:
        limit = self._max_bytes if expected is None else expected
        buffer = bytearray()
        try:
            async for chunk in reply.chunks():
                watch.note(len(chunk))
                buffer += chunk
                _refuse_early(buffer, part.size_bytes, came=len(chunk), limit=limit)
                if len(buffer) >= WRITE_BYTES:
                    self._require_room(len(buffer) if expected is None else 0)
                    await part.write(bytes(buffer))
                    buffer.clear()
        except BadMedia:
            raise
        except TransportError:
            # What came before it broke is good to go on from.
            await part.write(bytes(buffer))
            raise
        await part.write(bytes(buffer))

    def _require_room(self, size_bytes: int) -> None:
        if not self._has_room(size_bytes):
            raise DiskFull("There is too little room on the disk for the result.")


class _Watch:
    """
    Ends a fetch that has stalled, creeps, or lasts too long.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began = self._last = clock.monotonic()
        self._received = 0

    def note(self, size_bytes: int) -> None:
        """
        Something came.
        """
        self._received += size_bytes
        self._last = self._clock.monotonic()

    async def run(self) -> None:
        """
        Look now and then, until cancelled.

        Raises:
            TransportError: Too little comes.
        """
        samples: deque[tuple[float, int]] = deque([(self._began, 0)])
        while True:
            await self._clock.sleep(TICK_SECONDS)
            now = self._clock.monotonic()
            samples.append((now, self._received))
            while len(samples) > 1 and samples[1][0] <= now - SLOW_SECONDS:
                samples.popleft()
            since, before = samples[0]
            if now - self._last >= IDLE_SECONDS:
                raise TransportError(f"Nothing came for {IDLE_SECONDS:g} s.", maybe_sent=True)
            if now - since >= SLOW_SECONDS and self._received - before < SLOW_BYTES_PER_SECOND * (now - since):
                raise TransportError(f"The file came too slowly for {SLOW_SECONDS:g} s.", maybe_sent=True)
            if now - self._began >= TOTAL_SECONDS:
                raise TransportError(f"The file was not there after {TOTAL_SECONDS / 60:g} minutes.", maybe_sent=True)


def _refuse_early(buffer: bytearray, written: int, *, came: int, limit: int) -> None:
    if written + len(buffer) > limit:
        raise BadMedia("The file is longer than it said, or than a result may be.", maybe_sent=True)
    if written == 0 and len(buffer) - came < HEAD_BYTES <= len(buffer):
        # A page or a message is not worth waiting for its end.
        kind_of(bytes(buffer[:HEAD_BYTES]))


def _resume_headers(attempt: _Attempt) -> dict[str, str]:
    if not attempt.can_resume or attempt.part is None or attempt.etag is None:
        return {}
    return {"Range": f"bytes={attempt.part.size_bytes}-", "If-Range": attempt.etag}


def _following(url: str, reply: Reply) -> str:
    """
    The address that a redirect leads to. Only joined here, not judged: the gate reads the outcome.
    """
    location = reply.headers.get("location", "")
    scheme, _, rest = url.partition("://")
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if not location:
        raise TransportError("The result's server redirects to nowhere.", maybe_sent=True)
    if location.startswith("//"):
        return f"{scheme}:{location}"
    if location.startswith("/"):
        return f"{scheme}://{authority}{location}"
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", location):
        return location
    path = re.split(r"[?#]", rest, maxsplit=1)[0]
    folder = path.rpartition("/")[0] or authority
    return f"{scheme}://{path}{location}" if location.startswith("?") else f"{scheme}://{folder}/{location}"


def _origin(url: str) -> str:
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{re.split(r'[/?#]', rest, maxsplit=1)[0]}".lower()

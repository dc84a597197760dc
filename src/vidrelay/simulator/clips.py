"""
The pretend provider's files: small real MP4s, made when first asked for and kept in memory.
"""

import asyncio
import hashlib
import re
from dataclasses import dataclass, field

from vidrelay.simulator.engine import Job

_LONG_EDGE = 320
_MAX_SECONDS = 4.0
_MAX_KEPT = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Clip:
    """
    One file and its strong ETag.
    """

    body: bytes = field(repr=False)
    etag: str


@dataclass(slots=True, kw_only=True)
class Clips:
    """
    Makes each clip once. The picture depends on the seed, the prompt and the output's index; `changed` gives another.
    """

    seed: int
    _kept: dict[tuple[int, float, tuple[int, int]], bytes] = field(default_factory=dict)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def clip(self, job: Job, index: int, *, at_least_bytes: int = 0, changed: bool = False) -> Clip:
        """
        The job's clip, small but in its proportions, padded to that size with a box that players skip.
        """
        drawn = hashlib.sha256(f"{self.seed}:{job.fields.get('prompt')}:{index}:{changed}".encode()).digest()
        body = await self._rendered(drawn[0] % 16, _seconds(job), _size(job))
        body = _padded(body, at_least_bytes, mark=drawn + job.id.encode())
        return Clip(body=body, etag=f'"{hashlib.sha256(body).hexdigest()[:32]}"')

    async def _rendered(self, seed: int, seconds: float, size: tuple[int, int]) -> bytes:
        wanted = (seed, seconds, size)
        async with self._lock:
            if wanted not in self._kept:
                if len(self._kept) >= _MAX_KEPT:
                    self._kept.pop(next(iter(self._kept)))
                self._kept[wanted] = await asyncio.to_thread(_render, seed, seconds, size)
            return self._kept[wanted]


def _render(seed: int, seconds: float, size: tuple[int, int]) -> bytes:
    from vidrelay.providers.preview.render import small_clip  # noqa: PLC0415 FFmpeg only when a clip is wanted

    return small_clip(seed, seconds, size)


def _padded(body: bytes, at_least_bytes: int, *, mark: bytes) -> bytes:
    """
    The file with a `free` box at its end, which also makes each job's file its own.
    """
    filling = max(0, at_least_bytes - len(body) - 8 - len(mark))
    box = mark + bytes(filling)
    return body + (len(box) + 8).to_bytes(4, "big") + b"free" + box


def _seconds(job: Job) -> float:
    try:
        asked = float(job.fields.get("seconds", "4"))
    except ValueError:
        asked = _MAX_SECONDS
    return min(_MAX_SECONDS, asked) if asked > 0 else _MAX_SECONDS


def _size(job: Job) -> tuple[int, int]:
    found = re.fullmatch(r"([1-9][0-9]{0,4})x([1-9][0-9]{0,4})", job.fields.get("size", ""))
    width, height = (int(found[1]), int(found[2])) if found else (720, 1280)
    scale = min(1.0, _LONG_EDGE / max(width, height))
    return max(16, int(width * scale) // 2 * 2), max(16, int(height * scale) // 2 * 2)

"""
What the preview provider accepts, and the words of its little API, said once.
"""

import re
from enum import StrEnum
from fractions import Fraction

from vidrelay.providers.facts import Facts

FACTS = Facts(
    title="the built-in renderer",
    takes="text, up to 12 references",
    pictures="files and uploads, no addresses",
    limits="asked: as many as the machine has processors for",
    lost="made again under the same id: nothing is paid",
    cancel="always",
    results="until the relay has them",
    verified="it is in here, and rendered in the tests",
)

MODEL = "animatic-1"
PLACE = "preview://local/"
JOBS = PLACE + "jobs/"
LIMITS = PLACE + "limits"

MIN_SECONDS, MAX_SECONDS, DEFAULT_SECONDS = 0.5, 60, 5
MIN_EDGE, MAX_EDGE = 64, 2560
MAX_PIXELS = 1920 * 1088
MAX_REFERENCES = 12
DEFAULT_ASPECT = "16:9"
DEFAULT_RESOLUTION = "720p"
FPS_CHOICES = (12, 15, 24, 25, 30)
DEFAULT_FPS = 24

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}", re.ASCII)
_ASPECT = re.compile(r"([1-9][0-9]{0,3}):([1-9][0-9]{0,3})")
_LINES = re.compile(r"([1-9][0-9]{2,3})p")
_SIZE = re.compile(r"([1-9][0-9]{1,3})x([1-9][0-9]{1,3})")


class Status(StrEnum):
    """
    Where a job stands.
    """

    QUEUED = "queued"
    RENDERING = "rendering"
    DONE = "done"
    FAILED = "failed"


def is_job_id(text: str) -> bool:
    """
    Whether this can name a job, and so stand in its address and in its file's name.
    """
    return _ID.fullmatch(text) is not None


def shape_of(aspect_ratio: str) -> Fraction | None:
    """
    Width over height of a ratio such as "16:9", from 1:3 to 3:1; None where it is not one.
    """
    found = _ASPECT.fullmatch(aspect_ratio)
    if not found:
        return None
    shape = Fraction(int(found[1]), int(found[2]))
    return shape if Fraction(1, 3) <= shape <= 3 else None


def pixels_of(resolution: str) -> tuple[int, int] | None:
    """
    Width and height of an exact size such as "640x360", both even; None where it is not one.
    """
    found = _SIZE.fullmatch(resolution)
    if not found:
        return None
    width, height = int(found[1]), int(found[2])
    even = width % 2 == 0 and height % 2 == 0
    fits = min(width, height) >= MIN_EDGE and max(width, height) <= MAX_EDGE and width * height <= MAX_PIXELS
    return (width, height) if even and fits else None


def lines_of(resolution: str) -> int | None:
    """
    The short edge in pixels of "144p" to "1080p"; None where it is not one.
    """
    found = _LINES.fullmatch(resolution)
    lines = int(found[1]) if found else 0
    return lines if 144 <= lines <= 1080 else None


def frame_size(aspect_ratio: str, resolution: str) -> tuple[int, int] | None:
    """
    Width and height in even pixels, the short edge as many as `resolution` says; None where they make no picture.
    """
    if exact := pixels_of(resolution):
        return exact
    shape, lines = shape_of(aspect_ratio), lines_of(resolution)
    if shape is None or lines is None:
        return None
    long_edge = min(lines * max(shape, 1 / shape), Fraction(MAX_PIXELS, lines), Fraction(MAX_EDGE))
    long_even, short_even = round(long_edge / 2) * 2, lines // 2 * 2
    return (long_even, short_even) if shape >= 1 else (short_even, long_even)

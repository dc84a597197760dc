"""
Decodes pictures, as a child process with limits: what a stranger's file does to a decoder, it does to this one only.

`python -m vidrelay.files.images` reads one order (JSON, one line) from standard input and answers with one line of JSON
on standard output. May import the standard library and Pillow; the relay runs it and never imports it.

    {"do": "measure", "path", "media_type", "max_pixels", "max_edge"} -> {"width", "height", "pixels"}
    {"do": "fit", …, "out", "edge", "max_bytes", "media_types"} -> {"width", "height", "media_type"}
    what does not work -> {"error": "unsupported" | "too_large", "detail"}
"""

import contextlib
import ctypes
import hashlib
import json
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from PIL import Image, UnidentifiedImageError

VERSION = "p1"
"""The normaliser's version: pixels of two versions are never compared. Count it up when a change alters any pixel."""
LONG_EDGE = 1024

MEMORY_BYTES = 512 * 1024 * 1024
CPU_SECONDS = 10

# linux/sched.h; a network of one's own needs a user space of one's own, for who is not root.
_NEW_USER, _NEW_NETWORK = 0x10000000, 0x40000000

_FORMATS = {"image/png": "PNG", "image/jpeg": "JPEG", "image/webp": "WEBP"}
_ORIENTATION = 0x0112
_TURNED = (5, 6, 7, 8)
_QUALITIES = (90, 80, 65, 50)
_SMALLEST_EDGE = 64


class Unsupported(Exception):
    """
    It is not a whole picture of the kind it should be.
    """


class TooBig(Exception):
    """
    It has too many pixels, or needs too much memory.
    """


def measure(path: Path, media_type: str, *, max_pixels: int, max_edge: int) -> dict[str, Any]:
    """
    A picture's upright size, and the identity of its pixels.

    The identity is that of the first frame, upright, scaled to a long edge of 1024 (never enlarged), as RGB, or RGBA
    where something shows through: so copies that differ only in metadata, or in how they are turned, share it.

    Raises:
        Unsupported: It cannot be decoded.
        TooBig: It is over a limit.
    """
    with _opened(path, media_type, max_pixels, max_edge) as image:
        width, height = _upright_size(image)
        small = _scaled(image, LONG_EDGE, draft=True)
    digest = hashlib.sha256(f"{small.mode}:{small.width}x{small.height}:".encode())
    digest.update(small.tobytes())
    return {"width": width, "height": height, "pixels": f"{VERSION}:{width}x{height}:{digest.hexdigest()}"}


def fit(path: Path, media_type: str, out: Path, rule: Mapping[str, Any]) -> dict[str, Any]:
    """
    Write a copy that the rule takes: upright, scaled to its `edge` (None: any), of a type in `media_types`, at most
    `max_bytes` long (None: any). JPEG where the rule allows, but PNG for what shows through.

    Raises:
        Unsupported: It cannot be decoded, or the rule allows no type that can be written.
        TooBig: It is over a limit, or cannot be made small enough.
    """
    with _opened(path, media_type, rule["max_pixels"], rule["max_edge"]) as image:
        edge = min(max(image.size), rule["edge"] or max(image.size))
        copy = _scaled(image, edge, draft=True)
    kind = _kind(copy, rule["media_types"])
    while True:
        for quality in _QUALITIES if kind != "image/png" else (0,):
            size = _write(copy, out, kind, quality)
            if rule["max_bytes"] is None or size <= rule["max_bytes"]:
                return {"width": copy.width, "height": copy.height, "media_type": kind}
        edge = max(copy.size) * 3 // 4
        if edge < _SMALLEST_EDGE:
            raise TooBig("it cannot be made small enough for the provider")
        copy = _scaled(copy, edge)


def _opened(path: Path, media_type: str, max_pixels: int, max_edge: int) -> Image.Image:
    """
    The picture with its header read and judged, nothing decoded yet.
    """
    Image.MAX_IMAGE_PIXELS = None  # our own limit comes first, and is an error rather than a warning
    try:
        image = Image.open(path, formats=(_FORMATS[media_type],))
    except UnidentifiedImageError as exc:  # which tells the path, and that is ours
        raise Unsupported(f"it begins as {_FORMATS[media_type]} and is none") from exc
    except (OSError, ValueError, SyntaxError) as exc:
        raise Unsupported(str(exc)) from exc
    width, height = image.size
    if width * height > max_pixels or max(width, height) > max_edge:
        image.close()
        raise TooBig(f"{width}x{height} pixels are more than {max_pixels} in all or {max_edge} along one edge")
    return image


def _upright_size(image: Image.Image) -> tuple[int, int]:
    width, height = image.size
    return (height, width) if _orientation(image) in _TURNED else (width, height)


def _orientation(image: Image.Image) -> int:
    try:
        return int(image.getexif().get(_ORIENTATION, 1))
    except Exception:
        return 1  # metadata that cannot be read turns nothing


def _scaled(image: Image.Image, edge: int, *, draft: bool = False) -> Image.Image:
    """
    The picture upright, its long edge at most `edge`, as RGB or RGBA.
    """
    turn = _orientation(image)
    scale = min(1.0, edge / max(image.size))
    target = max(1, round(image.width * scale)), max(1, round(image.height * scale))
    try:
        if draft:
            image.draft(None, target)
        image.load()
        plain = _plain(image)
    except (OSError, ValueError, SyntaxError, IndexError, EOFError) as exc:
        raise Unsupported(str(exc)) from exc
    small = plain if plain.size == target else plain.resize(target, Image.Resampling.LANCZOS, reducing_gap=3.0)
    method = _TURNS.get(turn)
    small = small.transpose(method) if method is not None else small
    if small.mode == "RGBA" and small.getchannel("A").getextrema() == (255, 255):
        return small.convert("RGB")
    return small


_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


def _plain(image: Image.Image) -> Image.Image:
    """
    Whatever the file's own colours are, as 8-bit RGB, or RGBA where it has transparency.
    """
    if image.mode.startswith(("I", "F")):
        return image.convert("I").point(lambda value: value * (1 / 257)).convert("L").convert("RGB")
    wanted = "RGBA" if image.has_transparency_data else "RGB"
    return image if image.mode == wanted else image.convert(wanted)


def _kind(image: Image.Image, allowed: list[str]) -> str:
    opaque = ("image/jpeg", "image/png", "image/webp")
    wanted = ("image/png", "image/webp", "image/jpeg") if image.mode == "RGBA" else opaque
    for kind in wanted:
        if kind in allowed:
            return kind
    raise Unsupported(f"the provider takes none of {', '.join(wanted)}")


def _write(image: Image.Image, out: Path, kind: str, quality: int) -> int:
    if kind == "image/jpeg" and image.mode == "RGBA":
        paper = Image.new("RGB", image.size, "white")
        paper.paste(image, (0, 0), image)
        image = paper
    with out.open("wb") as file:
        if kind == "image/png":
            image.save(file, "PNG")
        else:
            image.save(file, _FORMATS[kind], quality=quality)
        return file.tell()


def main() -> int:
    """
    Carry out the one order that standard input brings.
    """
    order = json.loads(sys.stdin.readline())
    limit_self()
    warnings.simplefilter("ignore")  # a decoder's opinion of a stranger's file
    path, media_type = Path(order["path"]), order["media_type"]
    try:
        if order["do"] == "measure":
            told = measure(path, media_type, max_pixels=order["max_pixels"], max_edge=order["max_edge"])
        else:
            told = fit(path, media_type, Path(order["out"]), order)
    except Unsupported as exc:
        told = {"error": "unsupported", "detail": str(exc)}
    except (TooBig, MemoryError) as exc:
        told = {"error": "too_large", "detail": str(exc) or "it needs too much memory"}
    sys.stdout.write(json.dumps(told) + "\n")
    return 0


def limit_self() -> None:
    """
    Give this process no more memory, time and files than a decoder needs, and no network, where the system can do that.
    """
    try:
        import resource  # noqa: PLC0415 not on Windows
    except ImportError:
        return
    limits = (
        (resource.RLIMIT_AS, MEMORY_BYTES),
        (resource.RLIMIT_CPU, CPU_SECONDS),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 32),
    )
    for kind, most in limits:
        # macOS refuses some of them; the others still hold.
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(kind, (most, most))
    _leave_network()


def _leave_network() -> None:
    """
    Move this process into a network of its own that has nothing in it, where the system lets anybody do that (Linux;
    some distributions and containers do not).
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).unshare(_NEW_USER | _NEW_NETWORK)


if __name__ == "__main__":
    sys.exit(main())

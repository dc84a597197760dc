"""
What kind of file came, told from its content alone, and whether it is all there.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import BinaryIO

from vidrelay.core.errors import BadMedia, InvalidRequest, TooLarge

HEAD_BYTES = 512
TAIL_BYTES = 64 * 1024
MAX_BOXES = 100_000
"""A movie of more is none: each is looked at, and a file may be made of nothing but empty ones."""

VIDEO, AUDIO = "video", "audio"
"""The families of media types that a film and a sound have."""
PICTURES = frozenset({"image/png", "image/jpeg", "image/webp"})
"""The kinds that are taken in as a picture."""

MAX_BYTES = 64 * 1024 * 1024
"""The most that a file may have which is sent in."""
ANY_SIZE: Mapping[str, int] = {VIDEO: MAX_BYTES, AUDIO: MAX_BYTES}
"""`Traits.media` of a provider that takes both and tells no limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Media:
    """
    A kind of file: its extension without the dot, and its media type.
    """

    extension: str
    media_type: str


_MP4 = Media(extension="mp4", media_type="video/mp4")
_MOV = Media(extension="mov", media_type="video/quicktime")
_M4A = Media(extension="m4a", media_type="audio/mp4")
_AVIF = Media(extension="avif", media_type="image/avif")
_HEIC = Media(extension="heic", media_type="image/heic")
_WEBM = Media(extension="webm", media_type="video/webm")
_MKV = Media(extension="mkv", media_type="video/x-matroska")
_PNG = Media(extension="png", media_type="image/png")
_MP3 = Media(extension="mp3", media_type="audio/mpeg")
_AAC = Media(extension="aac", media_type="audio/aac")

_BRANDS = {b"qt  ": _MOV, b"M4A ": _M4A, b"avif": _AVIF, b"avis": _AVIF, b"heic": _HEIC, b"heix": _HEIC, b"mif1": _HEIC}
_OLD_MOVIE_BOXES = frozenset({b"moov", b"mdat", b"wide", b"free", b"skip", b"pnot"})
_RIFFS = {
    b"WEBP": Media(extension="webp", media_type="image/webp"),
    b"AVI ": Media(extension="avi", media_type="video/x-msvideo"),
    b"WAVE": Media(extension="wav", media_type="audio/wav"),
}
_STARTS = (
    (b"\x89PNG\r\n\x1a\n", _PNG),
    (b"\xff\xd8\xff", Media(extension="jpg", media_type="image/jpeg")),
    (b"GIF87a", Media(extension="gif", media_type="image/gif")),
    (b"GIF89a", Media(extension="gif", media_type="image/gif")),
    (b"OggS", Media(extension="ogg", media_type="audio/ogg")),
    (b"fLaC", Media(extension="flac", media_type="audio/flac")),
    (b"ID3", _MP3),
    (b"\xff\xfb", _MP3),
    (b"\xff\xf3", _MP3),
    (b"\xff\xf1", _AAC),
    (b"glTF", Media(extension="glb", media_type="model/gltf-binary")),
)
EXTENSIONS = {
    media.media_type: media.extension
    for media in (*_BRANDS.values(), *_RIFFS.values(), *(media for _, media in _STARTS), _MP4, _WEBM, _MKV, _AAC)
}
"""The extension of each kind, by its media type."""
_EBML = b"\x1a\x45\xdf\xa3"
_SEGMENT = b"\x18\x53\x80\x67"


def sniff(head: bytes) -> Media | None:
    """
    The kind of file that begins with these bytes (512 are enough); None where it is none that a result can be.

    Text of any sort (HTML, JSON, SVG, an error page) is none.
    """
    if head[4:8] == b"ftyp":
        return _BRANDS.get(head[8:12], _MP4)
    if head[4:8] in _OLD_MOVIE_BOXES:
        return _MOV
    if head[:4] == b"RIFF":
        return _RIFFS.get(head[8:12])
    if head[:4] == _EBML:
        return _WEBM if b"webm" in head else _MKV
    return next((media for start, media in _STARTS if head.startswith(start)), None)


def kind_of(head: bytes) -> Media:
    """
    The kind of file that begins with these bytes, which a result must be one of.

    Raises:
        BadMedia: It is text, or of no known kind.
    """
    media = sniff(head)
    if media is not None:
        return media
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:64].lower()
    if text.startswith((b"<", b"{", b"[")):
        raise BadMedia("A page or a message came instead of the file.", maybe_sent=True)
    raise BadMedia("What came is not a video, picture or sound of a known kind.", maybe_sent=True)


def examine(file: BinaryIO, size_bytes: int, *, length_told: bool) -> Media:
    """
    Say what kind a received file is, and check cheaply that it is all there.

    `length_told`: the server said how long it would be, and so long it is; without that a few bytes after the last
    part count as the beginning of one that is missing.

    Raises:
        BadMedia: It is empty, of no known kind, or cut short.
    """
    if size_bytes == 0:
        raise BadMedia("The file that came is empty.", maybe_sent=True)
    media = kind_of(file.read(HEAD_BYTES))
    if media in (_MP4, _MOV, _M4A):
        whole = _movie_is_whole(file, size_bytes, length_told=length_told)
    else:
        check = _CHECKS.get(media)
        whole = check is None or check(file, size_bytes)
    if not whole:
        raise BadMedia(f"The {media.extension} file that came is cut short or damaged.", maybe_sent=True)
    return media


def family_of(media_type: str) -> str:
    """
    `VIDEO`, `AUDIO`, or what else the media type begins with.
    """
    return media_type.partition("/")[0]


def check_taken(media_type: str, size_bytes: int, limits: Mapping[str, int], *, who: str) -> None:
    """
    Refuse a film or a sound that a provider does not take as bytes, or not so many of them.

    Args:
        media_type: What it is by its content.
        size_bytes: How long it is, or is at least.
        limits: The most bytes by `VIDEO` and `AUDIO`; what is not in it is not taken.
        who: The provider's name.

    Raises:
        InvalidRequest: It is not taken.
        TooLarge: It has too many bytes.
    """
    family = family_of(media_type)
    name = "film" if family == VIDEO else "sound"
    most = limits.get(family)
    if most is None:
        told = f"{who} takes no {name} as bytes, and this is one ({media_type}): give its https address."
        raise InvalidRequest(told)
    if size_bytes > most:
        raise TooLarge(f"A {name} for {who} may have at most {most} bytes; give the https address of a longer one.")


def _movie_is_whole(file: BinaryIO, size_bytes: int, *, length_told: bool) -> bool:
    """
    Walk the top-level boxes (ISO 14496-12): each must end within the file, and index and content must be among them.
    """
    seen: set[bytes] = set()
    position = boxes = 0
    while position + 8 <= size_bytes:
        boxes += 1
        file.seek(position)
        header = file.read(16)
        length, kind = int.from_bytes(header[:4]), header[4:8]
        if length == 1:
            length = int.from_bytes(header[8:16])
        elif length == 0:
            # The last box may leave its length open; so may padding, which is no box.
            if kind.strip(b"\0"):
                seen.add(kind)
            position = size_bytes
            break
        if length < 8 or position + length > size_bytes or boxes > MAX_BOXES:
            return False
        seen.add(kind)
        position += length
    has_content = bool(seen & {b"mdat", b"moof"})
    return b"moov" in seen and has_content and (position == size_bytes or length_told)


def _riff_is_whole(file: BinaryIO, size_bytes: int) -> bool:
    file.seek(4)
    return int.from_bytes(file.read(4), "little") + 8 <= size_bytes


def _png_is_whole(file: BinaryIO, size_bytes: int) -> bool:
    file.seek(max(0, size_bytes - TAIL_BYTES))
    return b"IEND\xaeB`\x82" in file.read(TAIL_BYTES)


def _webm_is_whole(file: BinaryIO, size_bytes: int) -> bool:
    """
    The segment after the header says how long it is, or leaves it open.
    """
    position = 0
    for mark in (_EBML, _SEGMENT):
        file.seek(position)
        header = file.read(12)
        if header[:4] != mark or len(header) < 5 or header[4] == 0:
            return False
        width = 9 - header[4].bit_length()
        told = int.from_bytes(header[4 : 4 + width]) & ((1 << 7 * width) - 1)
        if told == (1 << 7 * width) - 1:
            return mark == _SEGMENT
        position += 4 + width + told
    return position <= size_bytes


_CHECKS: dict[Media, Callable[[BinaryIO, int], bool]] = {
    **dict.fromkeys(_RIFFS.values(), _riff_is_whole),
    _PNG: _png_is_whole,
    _WEBM: _webm_is_whole,
    _MKV: _webm_is_whole,
}

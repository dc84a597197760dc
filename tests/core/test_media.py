"""
A file's kind is told from its content, and one that is cut short is noticed.
"""

import io

import pytest

from vidrelay.core.errors import BadMedia
from vidrelay.core.media import examine, sniff
from vidrelay.testing.samples import MP4, PNG, WEBM, box, riff


def look(content: bytes, *, length_told: bool = False) -> str:
    return examine(io.BytesIO(content), len(content), length_told=length_told).media_type


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (MP4, "video/mp4"),
        (box(b"ftyp", b"qt  ") + box(b"moov") + box(b"mdat", b"x"), "video/quicktime"),
        (box(b"wide") + box(b"mdat", b"x") + box(b"moov"), "video/quicktime"),
        (box(b"ftyp", b"iso5") + box(b"moov") + box(b"moof") + box(b"mdat", b"x"), "video/mp4"),
        (box(b"ftyp", b"M4A ") + box(b"moov") + box(b"mdat", b"x"), "audio/mp4"),
        (box(b"ftyp", b"avif") + box(b"meta"), "image/avif"),
        (PNG, "image/png"),
        (WEBM, "video/webm"),
        (b"\xff\xd8\xff\xe0" + b"x" * 20, "image/jpeg"),
        (b"GIF89a" + b"x" * 20, "image/gif"),
        (riff(b"WEBP", b"x" * 20), "image/webp"),
        (riff(b"WAVE", b"x" * 20), "audio/wav"),
    ],
)
def test_a_known_kind_is_recognised(content: bytes, kind: str) -> None:
    """
    Movies, audio and pictures of each kind we take are told by their first bytes and boxes.
    """
    assert look(content) == kind


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"<!DOCTYPE html><html></html>",
        b"  \r\n<html>",
        b'{"error": {"code": "expired"}}',
        b"[]",
        b"<svg xmlns='http://www.w3.org/2000/svg'><script/></svg>",
        b"\xef\xbb\xbf<?xml version='1.0'?>",
        b"Not Found",
        b"%PDF-1.7",
        b"\x7fELF",
        b"PK\x03\x04",
        b"SIMPLE  =                    T",
        b"RIFF\x10\0\0\0EVIL",
        b"\0" * 600,
        bytes(range(256)),
    ],
)
def test_what_no_result_can_be_is_refused(content: bytes) -> None:
    """
    Pages, JSON, markup, programs, archives and plain bytes are no media and refused.
    """
    with pytest.raises(BadMedia):
        look(content, length_told=True)


@pytest.mark.parametrize("end", range(1, len(MP4)))
def test_a_movie_cut_anywhere_is_noticed(end: int) -> None:
    """
    An MP4 that ends at any byte before its last is refused.
    """
    with pytest.raises(BadMedia):
        look(MP4[:end])


@pytest.mark.parametrize("content", [PNG, riff(b"WEBP", b"x" * 20), WEBM])
def test_other_kinds_cut_short_are_noticed(content: bytes) -> None:
    """
    PNG, WebP and WebM files that lack their last byte are refused.
    """
    with pytest.raises(BadMedia):
        look(content[:-1])


def test_a_last_box_may_leave_its_length_open() -> None:
    """
    A last box of length 0 reaches to the end of the file and is taken.
    """
    assert look(box(b"ftyp", b"isom") + box(b"moov") + b"\0\0\0\0mdatxxxx") == "video/mp4"


def test_a_box_may_have_a_long_length() -> None:
    """
    A 64-bit box length is read, and a file that is shorter than it says is refused.
    """
    large = b"\0\0\0\1mdat" + (24).to_bytes(8) + b"12345678"
    assert look(box(b"ftyp", b"isom") + box(b"moov") + large) == "video/mp4"
    with pytest.raises(BadMedia):
        look(box(b"ftyp", b"isom") + box(b"moov") + large[:-1])


def test_padding_after_the_last_box_is_let_pass_where_the_length_was_told() -> None:
    """
    Zero bytes after a whole movie do not make it a broken one.
    """
    assert look(MP4 + b"\0" * 5, length_told=True) == "video/mp4"
    assert look(MP4 + b"\0" * 50) == "video/mp4"


@pytest.mark.parametrize("missing", [box(b"moov"), box(b"mdat", b"x")])
def test_a_movie_without_index_or_content_is_refused(missing: bytes) -> None:
    """
    A movie needs both its index and its content, even where its length is as told.
    """
    with pytest.raises(BadMedia):
        look(box(b"ftyp", b"isom") + missing, length_told=True)


def test_a_page_with_a_media_name_inside_is_still_a_page() -> None:
    """
    The name of a media type inside a page does not make it one.
    """
    assert sniff(b"<html>ftyp mp4") is None

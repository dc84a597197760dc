"""
What a provider sends is read in bounded memory and time, whatever it is.
"""

import json
import time
import tracemalloc

import pytest

from vidrelay.core.messages import API_REPLY_BYTES, LIST_REPLY_BYTES, HttpReply
from vidrelay.providers.replies import (
    MAX_DEPTH,
    MAX_PIECES,
    answered,
    content_at,
    object_of,
    read_object,
    reason,
    rows_of,
    texts_of,
)


def reply(body: bytes) -> HttpReply:
    return HttpReply(status=200, body=body)


def filled(start: bytes, piece: bytes, end: bytes, size: int = API_REPLY_BYTES) -> bytes:
    """
    So many bytes, most of them that piece.
    """
    return start + piece * ((size - len(start) - len(end)) // len(piece)) + end


BOMBS = {
    "lists": lambda: filled(b'{"a":[', b"[],", b"1]}"),
    "objects": lambda: filled(b'{"a":[', b"{},", b"1]}"),
    "objects of objects": lambda: filled(b'{"a":[', b'{"a":{}},', b"1]}"),
    "numbers": lambda: filled(b'{"a":[', b"9,", b"1]}"),
    "large numbers": lambda: filled(b'{"a":[', b"1e1,", b"1]}"),
    "empty texts": lambda: filled(b'{"a":[', b'"",', b"1]}"),
    "names": lambda: b"{" + b",".join(b'"%x":0' % n for n in range(400_000)) + b"}",
    "a text of wide characters": lambda: filled('{"a":"🦊'.encode(), b"x", b'"}'),
    "a text without an end": lambda: filled(b'{"a":"', b'\\"', b""),
    "a text of escapes": lambda: filled(b'{"a":"', b"\\n", b'"}'),
    "a list of jobs without an end": lambda: filled(b'{"data":[', b'{"id":"x"},', b"1]}", LIST_REPLY_BYTES),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_reply_that_would_grow_is_not_unpacked(name: str) -> None:
    """
    Short on the wire and long in memory: reading it takes less than 50 MB more, and no time that anybody notices.
    """
    answer = reply(BOMBS[name]())
    tracemalloc.start()
    try:
        started = time.process_time()
        read_object(answer)
        spent, (_, peak) = time.process_time() - started, tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 50_000_000
    assert spent < 2  # 0.1 when nothing else runs; the list of jobs alone took 9, and blocked everything


def test_a_long_list_of_jobs_is_read() -> None:
    """
    A thousand jobs of twenty fields and a prompt as long as any are no bomb.
    """
    job = {f"field_{number}": number for number in range(20)} | {"prompt": "a, [b] {c} " * 200}
    assert len(read_object(reply(json.dumps({"data": [job] * 1000}).encode()))["data"]) == 1000


def test_commas_in_a_text_are_none() -> None:
    """
    A prompt may have as many of them as it likes, and quotes too.
    """
    said = 'a, "b", [{' * MAX_PIECES
    assert read_object(reply(json.dumps({"prompt": said}).encode())) == {"prompt": said}


@pytest.mark.parametrize(("depth", "is_read"), [(MAX_DEPTH, True), (MAX_DEPTH + 1, False), (50_000, False)])
def test_a_reply_may_be_nested_64_deep(depth: int, is_read: bool) -> None:
    """
    The object that all stands in counts as the first level.
    """
    nested = b'{"a":' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"
    assert (read_object(reply(nested)) is not None) is is_read


def test_only_what_went_through_is_answered() -> None:
    """
    An error's object is none, and neither is a page.
    """
    assert answered(HttpReply(status=201, body=b'{"a": 1}')) == {"a": 1}
    assert answered(HttpReply(status=302, body=b'{"a": 1}')) is None
    assert answered(HttpReply(status=200, body=b"<html>")) is None


@pytest.mark.parametrize(
    ("place", "content"),
    [
        ("/a/1/data", b"\xfb\xff\xfe"),
        ("/a/2/data", b"\xfb\xff\xfe"),
        *((place, None) for place in ("/a/0", "/a/3/data", "/a/9", "/a/-1", "/a/x", "/b", "/b/c", "/n", "/a", "/e")),
    ],
)
def test_a_file_in_an_answer_is_read_from_its_place_alone(place: str, content: bytes | None) -> None:
    """
    In either alphabet of base64; what is none, or is not there, is no file.
    """
    rows = ["x", {"data": "+//+"}, {"data": "-__-"}, {"data": "AAA*"}]
    body = json.dumps({"a": rows, "b": "AAA", "n": 7, "e": ""}).encode()
    assert content_at(body, place) == content
    assert content_at(b"<html>", place) is None


def test_what_is_not_as_told_is_left_out() -> None:
    """
    Rows that are no objects, texts that are none, an object that is a list.
    """
    data = {"none": {}, "rows": [{"id": 1}, 2, None], "texts": ["a", "", 3], "object": {"a": 1}}
    assert rows_of(data, "none", "rows") == [{"id": 1}]
    assert rows_of(data, "none", "nowhere") is None
    assert texts_of(data, "texts") == ["a"]
    assert texts_of(data, "object") == []
    assert (object_of(data, "object"), object_of(data, "rows")) == ({"a": 1}, {})


def test_a_reason_is_always_given() -> None:
    """
    In the provider's words where it has some, without the key; else by its status word.
    """
    assert reason("bad", None, "the key k1 is wrong", secret="k1") == "bad: the key [key] is wrong"
    assert reason(None, "", word="cancelled", secret=None) == "it says cancelled and no more"

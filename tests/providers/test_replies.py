"""
What a provider sends is read in bounded memory and time, whatever it is.
"""

import json
import time
import tracemalloc

import pytest

from vidrelay.core.messages import API_REPLY_BYTES, LIST_REPLY_BYTES, HttpReply
from vidrelay.providers.replies import MAX_DEPTH, MAX_PIECES, read_object


def reply(body: bytes) -> HttpReply:
    return HttpReply(status=200, body=body)


def filled(start: bytes, piece: bytes, end: bytes, size: int = API_REPLY_BYTES) -> bytes:
    """
    So many bytes, most of them that piece.
    """
    return start + piece * ((size - len(start) - len(end)) // len(piece)) + end


BOMBS = {
    "lists": filled(b'{"a":[', b"[],", b"1]}"),
    "objects": filled(b'{"a":[', b"{},", b"1]}"),
    "objects of objects": filled(b'{"a":[', b'{"a":{}},', b"1]}"),
    "numbers": filled(b'{"a":[', b"9,", b"1]}"),
    "large numbers": filled(b'{"a":[', b"1e1,", b"1]}"),
    "empty texts": filled(b'{"a":[', b'"",', b"1]}"),
    "names": b"{" + b",".join(b'"%x":0' % n for n in range(400_000)) + b"}",
    "a text of wide characters": filled('{"a":"🦊'.encode(), b"x", b'"}'),
    "a text without an end": filled(b'{"a":"', b'\\"', b""),
    "a text of escapes": filled(b'{"a":"', b"\\n", b'"}'),
    "a list of jobs without an end": filled(b'{"data":[', b'{"id":"x"},', b"1]}", LIST_REPLY_BYTES),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_reply_that_would_grow_is_not_unpacked(name: str) -> None:
    """
    Short on the wire and long in memory: reading it takes less than 50 MB more, and no time that anybody notices.
    """
    answer = reply(BOMBS[name])
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

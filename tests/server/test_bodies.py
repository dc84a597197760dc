"""
Bodies are bounded and read strictly: what is wrong with them is a 4xx, never a 500, and changes nothing.
"""

import asyncio
import contextlib
import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loopback import Served
from test_gate import endpoints

from vidrelay.server.bodies import MAX_ASSET_BYTES, MAX_JSON_BYTES, parse_json, stream_body
from vidrelay.server.dispatch import Body
from vidrelay.server.errors import Refusal

BAD_JSON = {
    "nothing": b"",
    "blank": b"  ",
    "broken": b'{"prompt": ',
    "two values": b'{"prompt":"x"} {}',
    "single quotes": b"{'prompt':'x'}",
    "trailing comma": b'{"prompt":"x",}',
    "comment": b'{"prompt":"x"/**/}',
    "byte order mark": b'\xef\xbb\xbf{"prompt":"x"}',
    "UTF-16": '{"prompt":"x"}'.encode("utf-16"),
    "UTF-32": '{"prompt":"x"}'.encode("utf-32-le"),
    "invalid UTF-8": b'{"prompt":"\xff"}',
    "overlong UTF-8": b'{"prompt":"\xc0\x80"}',
    "surrogate in UTF-8": b'{"prompt":"\xed\xa0\x80"}',
    "lone surrogate": b'{"prompt":"\\ud800"}',
    "lone low surrogate": b'{"prompt":"x\\uDC00y"}',
    "surrogate in a name": b'{"\\ud800":"x"}',
    "deep surrogate": b'{"prompt":"x","extra":{"a":[["\\ud800"]]}}',
    "NUL": b'{"prompt":"x\x00"}',
    "escaped NUL": b'{"prompt":"x\\u0000"}',
    "line break in a string": b'{"prompt":"x\n"}',
    "NaN": b'{"prompt":"x","duration":NaN}',
    "Infinity": b'{"prompt":"x","duration":-Infinity}',
    "1e999": b'{"prompt":"x","duration":1e999}',
    "-1e999 in extra": b'{"prompt":"x","extra":{"a":-1e999}}',
    "leading zero": b'{"prompt":"x","duration":05}',
    "hexadecimal": b'{"prompt":"x","duration":0x5}',
    "repeated name": b'{"prompt":"x","prompt":"y"}',
    "repeated deep name": b'{"prompt":"x","extra":{"a":1,"a":2}}',
    "5,000 digits": b'{"prompt":"x","seed":' + b"9" * 5000 + b"}",
    "5,000 digits in extra": b'{"prompt":"x","extra":{"n":-' + b"9" * 5000 + b"}}",
    "depth 65": b'{"prompt":"x","extra":' + b'{"a":' * 64 + b"1" + b"}" * 65,
    "depth 1,000": b"[" * 1000 + b"]" * 1000,
    "depth 100,000": b"[" * 100_000,
    "depth 100,000 of objects": b'{"a":' * 100_000,
}


@pytest.mark.parametrize("path", ["/generate", "/task/t1/resolve"])
async def test_what_is_not_strict_json_is_400_on_every_json_route(served, path):
    """
    Broken, badly coded, repeated, endless or too deep JSON is a 400 and makes no task.
    """
    served.relay.make("kept")
    for name, body in BAD_JSON.items():
        answer = await served.client.post(path, content=body)
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid_json"), name
    assert len(served.relay.tasks) == 1


@pytest.mark.parametrize("body", [b"[]", b"5", b'"x"', b"true", b"[{}]"])
@pytest.mark.parametrize("path", ["/generate", "/task/t1/resolve", "/shutdown", "/accounts/main/resume"])
async def test_json_that_is_no_object_is_422(served, path, body):
    """
    A list, number, text or truth value is refused, and has no effect on any route that reads JSON.
    """
    answer = await served.client.post(path, content=body)
    assert answer.status_code == 422
    assert not served.shutdowns


@pytest.mark.parametrize(
    "kind",
    [
        *("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/json", "", "x"),
        *("application/json; charset=utf-16", "application/json, text/plain", "application/jsonx", "application/JSON5"),
    ],
)
async def test_any_other_content_type_is_415_and_makes_nothing(served, kind):
    """
    Whatever type is told other than JSON in UTF-8, no route takes the body (nor a picture), and nothing comes of it.
    """
    taking = [endpoint for endpoint in endpoints() if endpoint.body is not Body.NONE and not endpoint.open]
    assert len(taking) >= 9
    for endpoint in taking:
        path = re.sub(r"\{.*?\}", "t1", endpoint.path)
        answer = await served.client.post(path, content=b'{"prompt":"x"}', headers={"Content-Type": kind})
        assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type"), path
    assert not served.relay.tasks
    assert not served.shutdowns
    assert served.relay.paused


@pytest.mark.parametrize("kind", ["application/json", "Application/JSON", "application/json; charset=UTF-8", None])
async def test_json_is_read_with_its_type_or_with_none(served, kind):
    """
    JSON is taken under its own type, in any case and with UTF-8 named, or under no type.
    """
    headers = {} if kind is None else {"Content-Type": kind}
    answer = await served.client.post("/generate", content=b'{"prompt":"x"}', headers=headers)
    assert answer.status_code == 202


@pytest.mark.parametrize("coding", ["gzip", "identity", "br", ""])
@pytest.mark.parametrize("path", ["/generate", "/assets"])
async def test_a_body_with_a_content_encoding_is_415(served, coding, path):
    """
    A body under any Content-Encoding, even `identity` or an empty one, is refused.
    """
    answer = await served.client.post(path, content=b"{}", headers={"Content-Encoding": coding})
    assert answer.status_code == 415


async def test_a_json_body_of_exactly_the_limit_is_read(served):
    """
    A JSON body as long as the limit allows is taken.
    """
    body = b'{"prompt":"x"}'
    answer = await served.client.post("/generate", content=body + b" " * (MAX_JSON_BYTES - len(body)))
    assert answer.status_code == 202


@pytest.mark.parametrize(("path", "limit"), [("/generate", MAX_JSON_BYTES), ("/assets", MAX_ASSET_BYTES)])
async def test_a_body_declared_over_the_limit_is_413_and_left_unread(served, path, limit):
    """
    A Content-Length a byte over the limit is answered before any of the body has come.
    """
    head = served.head(f"POST {path} HTTP/1.1") + f"Content-Length: {limit + 1}\r\n\r\n"
    answer = await served.raw(head.encode(), seconds=0.3)
    assert answer.startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize(
    ("path", "size"), [("/generate", 2_000_000), ("/assets", MAX_ASSET_BYTES + 1), ("/x", 5_000_000)]
)
async def test_a_client_that_sends_all_before_it_reads_still_sees_the_refusal(served, path, size):
    """
    A client that first sends its whole refused body gets the answer and no reset.
    """
    answer = await served.client.post(path, content=bytes(size))
    assert answer.status_code in (404, 413)


async def test_a_client_that_waits_to_be_asked_for_a_refused_body_is_not_waited_for(served):
    """
    With `Expect: 100-continue` a body over the limit is refused without being asked for.
    """
    head = served.head("POST /generate HTTP/1.1") + "Expect: 100-continue\r\nContent-Length: 2000000\r\n\r\n"
    async with asyncio.timeout(2):
        answer = await served.raw(head.encode())
    assert answer.startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize(
    ("path", "pieces"), [("/generate", MAX_JSON_BYTES // 65536), ("/assets", MAX_ASSET_BYTES // 65536)]
)
async def test_chunks_are_refused_at_the_byte_over_the_limit(served, path, pieces):
    """
    A chunked body as long as the limit is still awaited, and one byte more is a 413.
    """
    head = served.head(f"POST {path} HTTP/1.1") + "Transfer-Encoding: chunked\r\n\r\n"
    piece = b"10000\r\n" + b" " * 65536 + b"\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    writer.write(head.encode())
    for _ in range(pieces):
        writer.write(piece)
        await writer.drain()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(reader.read(1), 0.3)
    writer.write(b"1\r\n \r\n")
    answer = await asyncio.wait_for(reader.read(4096), 5)
    writer.close()
    assert answer.startswith(b"HTTP/1.1 413 ")


async def test_a_prompt_of_a_megabyte_is_refused_quickly(served):
    """
    A prompt that fills a whole body is a 422 within half a second.
    """
    body = b'{"prompt":"' + b"x" * (MAX_JSON_BYTES - 20) + b'"}'
    await served.client.get("/health")
    started = time.perf_counter()
    answer = await served.client.post("/generate", content=body)
    assert answer.status_code == 422
    assert time.perf_counter() - started < 0.5  # 0.05 when nothing else runs


async def test_a_client_that_leaves_in_the_middle_of_its_body_makes_nothing(served):
    """
    A body that breaks off makes no task, and the relay goes on answering.
    """
    head = served.head("POST /generate HTTP/1.1") + "Content-Length: 14\r\n\r\n"
    await served.raw((head + '{"prompt":').encode(), seconds=0.1)
    assert (await served.client.get("/health")).status_code == 200
    assert not served.relay.tasks


async def test_a_body_that_drips_is_cut_at_its_time():
    """
    The time is that of the whole body, so a byte now and then does not lengthen it: 408, and worth another try.
    """
    started = asyncio.get_running_loop().time()

    async def drip():
        await asyncio.sleep(0.02)
        return {"type": "http.request", "body": b" ", "more_body": True}

    with pytest.raises(Refusal) as refused:
        async for _ in stream_body(drip, declared=None, limit=1000, seconds=0.1):
            pass
    assert (refused.value.code, refused.value.retryable) == ("slow_body", True)
    assert asyncio.get_running_loop().time() - started < 1


async def test_invisible_characters_reach_the_relay_as_they_are(served: Served):
    """
    The relay gets the prompt with its joiners, marks and wide letters unchanged.
    """
    prompt = "a\u200b fox \u202e\ufeff 👩\u200d👩\u200d👧 ｆｕｌｌ"
    await served.client.post("/generate", json={"prompt": prompt})
    assert served.relay.submitted[0][0].prompt == prompt


async def test_an_escaped_pair_of_surrogates_is_one_character(served):
    """
    Two JSON escapes that make one emoji are read as that emoji.
    """
    await served.client.post("/generate", content=b'{"prompt":"\\ud83e\\udd8a"}')
    assert served.relay.submitted[0][0].prompt == "🦊"


async def test_a_thousand_digits_in_a_prompt_are_just_text(served):
    """
    The limit on digits is one of numbers: a prompt may have thousands.
    """
    answer = await served.client.post("/generate", json={"prompt": "9" * 5000})
    assert answer.status_code == 202


def test_depth_64_is_read():
    """
    JSON nested as deep as the limit is read.
    """
    assert parse_json(b"[" * 64 + b"]" * 64)


def test_brackets_inside_strings_do_not_count_as_depth():
    """
    Brackets and escaped quotes in a text add nothing to the depth.
    """
    assert parse_json(b'{"prompt": "' + b'[{\\"' * 500 + b'"}')


@pytest.mark.parametrize("tail", [b'"' + b'\\"' * 30_000, b'"' + b"\\" * 1_000_000, b'"a' * 500_000, b'"\\' * 500_000])
def test_very_many_quotes_are_refused_as_quickly_as_any(tail):
    """
    A text that never ends is looked through once, however many escaped quotes stand in it.
    """
    started = time.process_time()
    with pytest.raises(Refusal):
        parse_json(b"[" + b"[]," * 70 + tail)
    assert time.process_time() - started < 1  # 17, were each quote to begin a text of its own


@given(st.binary(max_size=200))
@settings(max_examples=300, deadline=None)
def test_any_bytes_are_read_or_refused(data):
    """
    Nothing but `Refusal` comes out of the reader.
    """
    with contextlib.suppress(Refusal):
        parse_json(data)


@given(st.text(alphabet='{}[]",:\\u0d8eE+-.1 tfnN\x00', max_size=60))
@settings(max_examples=500, deadline=None)
def test_any_json_like_text_is_read_or_refused(text):
    """
    Nothing but `Refusal` comes out of the reader.
    """
    with contextlib.suppress(Refusal):
        parse_json(text.encode())

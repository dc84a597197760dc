"""
Result files: whole and in parts, never another file's bytes, never rendered when they could run.
"""

import asyncio
import hashlib

import pytest

CONTENT = b"0123456789"
TAG = f'"{hashlib.sha256(CONTENT).hexdigest()}"'


@pytest.fixture
def done(served):
    served.relay.make()
    served.relay.finish("t1", CONTENT)
    return served


async def test_a_result_is_served_with_its_type_tag_and_length(done):
    """
    A whole result has its type, hash as tag, length, file name and a sandbox policy.
    """
    answer = await done.client.get("/task/t1/result")
    assert (answer.status_code, answer.content) == (200, CONTENT)
    assert answer.headers["content-type"] == "video/mp4"
    assert answer.headers["etag"] == TAG
    assert answer.headers["content-length"] == "10"
    assert answer.headers["accept-ranges"] == "bytes"
    assert answer.headers["content-disposition"] == 'inline; filename="t1-0.mp4"'
    assert answer.headers["content-security-policy"] == "default-src 'none'; sandbox"


@pytest.mark.parametrize(
    ("asked", "part", "told"),
    [
        ("bytes=0-3", b"0123", "bytes 0-3/10"),
        ("bytes=4-", b"456789", "bytes 4-9/10"),
        ("bytes=-3", b"789", "bytes 7-9/10"),
        ("bytes=-300", CONTENT, "bytes 0-9/10"),
        ("bytes=9-9", b"9", "bytes 9-9/10"),
        ("bytes=5-999999", b"56789", "bytes 5-9/10"),
    ],
)
async def test_a_range_is_served_as_206(done, asked, part, told):
    """
    First, last and open-ended ranges give just their bytes and say which.
    """
    answer = await done.client.get("/task/t1/result", headers={"Range": asked})
    assert (answer.status_code, answer.content, answer.headers["content-range"]) == (206, part, told)


@pytest.mark.parametrize("asked", ["bytes=10-", "bytes=10-11", "bytes=999-1000", "bytes=-0"])
async def test_a_range_outside_is_416_and_tells_the_length(done, asked):
    """
    A range beyond the end is refused with the length of the file.
    """
    answer = await done.client.get("/task/t1/result", headers={"Range": asked})
    assert (answer.status_code, answer.headers["content-range"]) == (416, "bytes */10")
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["code"] == "range_not_satisfiable"


@pytest.mark.parametrize(
    "asked",
    ["bytes=", "bytes=-", "bytes=5-2", "bytes=a-b", "items=0-1", "bytes=0-1,3-4", "bytes=١-٢", "bytes=0--1", "x"],
)
async def test_a_range_that_is_none_or_several_gets_the_whole(done, asked):
    """
    A malformed range, another unit or several ranges get the whole file.
    """
    answer = await done.client.get("/task/t1/result", headers={"Range": asked.encode()})
    assert (answer.status_code, answer.content) == (200, CONTENT)


async def test_a_range_goes_on_only_where_the_file_is_the_same(done):
    """
    If-Range with the file's strong tag gives the part, and any other tag the whole.
    """
    same = await done.client.get("/task/t1/result", headers={"Range": "bytes=5-", "If-Range": TAG})
    other = await done.client.get("/task/t1/result", headers={"Range": "bytes=5-", "If-Range": '"x"'})
    weak = await done.client.get("/task/t1/result", headers={"Range": "bytes=5-", "If-Range": f"W/{TAG}"})
    assert (same.status_code, other.status_code, weak.status_code) == (206, 200, 200)


@pytest.mark.parametrize("known", [TAG, f"W/{TAG}", f'"x", {TAG}', "*"])
async def test_a_client_that_has_the_file_gets_304(done, known):
    """
    If-None-Match with the tag, weak, in a list or as a star, is answered without the bytes.
    """
    answer = await done.client.get("/task/t1/result", headers={"If-None-Match": known})
    assert (answer.status_code, answer.content, answer.headers["etag"]) == (304, b"", TAG)


async def test_head_tells_the_same_without_the_bytes(done):
    """
    HEAD of a range has the status and length of the part, and no body.
    """
    answer = await done.client.head("/task/t1/result", headers={"Range": "bytes=2-5"})
    assert (answer.status_code, answer.headers["content-length"], answer.content) == (206, "4", b"")


async def test_a_task_that_is_not_done_has_no_result_yet(served):
    """
    The result of a live task is a 409, since its state is the wrong one.
    """
    served.relay.make()
    answer = await served.client.get("/task/t1/result")
    assert (answer.status_code, answer.json()["code"]) == (409, "wrong_state")


async def test_an_evicted_result_is_gone(done):
    """
    A done task whose file was deleted answers 410.
    """
    (done.relay.folder / "t1-0.mp4").unlink()
    answer = await done.client.get("/task/t1/result")
    assert (answer.status_code, answer.json()["code"]) == (410, "result_gone")


async def test_a_file_of_another_length_is_gone_and_not_served(done):
    """
    A file whose length is not the recorded one is a 410.
    """
    (done.relay.folder / "t1-0.mp4").write_bytes(b"something else")
    assert (await done.client.get("/task/t1/result")).status_code == 410


async def test_a_link_in_the_files_place_is_not_followed(done, tmp_path):
    """
    A link where the file was is a 410, and nothing of its target comes.
    """
    secret = tmp_path / "secret"
    secret.write_bytes(b"abcdefghij")
    file = done.relay.folder / "t1-0.mp4"
    file.unlink()
    file.symlink_to(secret)
    answer = await done.client.get("/task/t1/result")
    assert answer.status_code == 410
    assert b"abcdefghij" not in answer.content


@pytest.mark.parametrize("kind", ["text/html", "image/svg+xml", "application/xhtml+xml", "text/xml", "application/pdf"])
async def test_what_a_browser_could_run_is_saved_and_never_shown(served, kind):
    """
    Types with scripts are sent as an attachment of plain bytes, not to be sniffed.
    """
    served.relay.make()
    served.relay.finish("t1", b"<script>alert(1)</script>", kind)
    answer = await served.client.get("/task/t1/result")
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"].startswith("attachment;")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-security-policy"] == "default-src 'none'; sandbox"


@pytest.mark.parametrize(
    ("index", "status"), [("0", 200), ("1", 404), ("-1", 422), ("x", 422), ("1000", 422), ("", 422)]
)
async def test_an_index_names_one_of_the_files(done, index, status):
    """
    An index without a file is a 404, and one that is no small number a 422.
    """
    assert (await done.client.get(f"/task/t1/result?index={index}")).status_code == status


async def test_a_file_evicted_while_it_is_served_is_served_to_its_end(served):
    """
    A file deleted after its first bytes went out still comes whole.
    """
    content = bytes(range(256)) * 40_000
    served.relay.make()
    served.relay.finish("t1", content)
    async with served.client.stream("GET", "/task/t1/result") as answer:
        chunks = answer.aiter_bytes()
        first = await anext(chunks)
        (served.relay.folder / "t1-0.mp4").unlink()
        rest = b"".join([chunk async for chunk in chunks])
    assert first + rest == content


async def test_a_client_that_leaves_in_the_middle_harms_nobody(served):
    """
    After a reader left in the middle of a file the relay answers others.
    """
    served.relay.make()
    served.relay.finish("t1", bytes(30_000_000))
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    writer.write((served.head("GET /task/t1/result HTTP/1.1") + "\r\n").encode())
    await reader.read(1000)
    writer.close()
    assert (await served.client.get("/health")).status_code == 200


async def test_an_empty_file_is_served_as_one(served):
    """
    A file of no bytes is served whole, and any range of it is a 416.
    """
    served.relay.make()
    served.relay.finish("t1", b"")
    answer = await served.client.get("/task/t1/result", headers={"Range": "bytes=0-"})
    assert answer.status_code == 416
    assert (await served.client.get("/task/t1/result")).content == b""

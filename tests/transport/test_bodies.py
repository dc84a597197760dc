"""
A body with pictures in it is written as it is sent: its bytes are right, its length is told before, its memory is flat.
"""

import base64
import hashlib
import json
import tracemalloc
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vidrelay.core.errors import TransportError
from vidrelay.core.messages import Blob, Form, FormFile, HttpRequest, Inline, Json
from vidrelay.transport.bodies import PIECE_BYTES, body_hash, open_body

from .servers import Received, Server, http_server, reply, transport_to

URI = "data:image/png;base64,"
SIZES = [
    *range(8),
    *(PIECE_BYTES + step for step in range(-4, 5)),
    *(3 * PIECE_BYTES + step for step in (-1, 0, 1, 2)),
]
"""Around the multiples of three, at which base64 needs no padding, and of the pieces that a file is read in."""


def picture(size: int) -> bytes:
    return (bytes(range(256)) * (size // 256 + 1))[:size]


async def written(body: Json | Blob | Form | bytes, folder: Path) -> tuple[int, bytes, str | None]:
    async with open_body(body, lambda asset: folder / asset.removeprefix("sha256:")) as opened:
        return opened.length, b"".join([piece async for piece in opened.pieces]), opened.content_type


async def sent(tmp_path: Path, **request: Any) -> tuple[Received, Server]:
    """
    The one call that a server saw.
    """
    async with http_server(reply()) as server, transport_to(server, tmp_path) as transport:
        asked = HttpRequest(**{"method": "POST", "url": f"{server.url}/v1/videos", "creates": True, **request})
        async with transport.send(asked, timeout=10) as answer:
            await answer.read()
    return server.requests[0], server


# JSON with pictures in it


@pytest.mark.parametrize("size", SIZES)
async def test_a_picture_of_any_size_is_its_base64(tmp_path: Path, size: int) -> None:
    """
    The text is the base64 of the whole file, padded at its end alone, and the length is told exactly.
    """
    (tmp_path / "aa").write_bytes(picture(size))
    length, body, _ = await written(Json(value={"image": Inline(asset="sha256:aa", prefix=URI)}), tmp_path)
    assert json.loads(body) == {"image": URI + base64.b64encode(picture(size)).decode()}
    assert length == len(body)


async def test_a_body_with_pictures_arrives_as_json(tmp_path: Path) -> None:
    """
    Two pictures, one of them twice, deep in the value, arrive where they were asked for under an exact length.
    """
    (tmp_path / "aa").write_bytes(picture(1_000_001))
    (tmp_path / "bb").write_bytes(b"small")
    first, second = Inline(asset="sha256:aa", prefix=URI), Inline(asset="sha256:bb")
    value = {
        "prompt": 'ein "Löwe"\n\u2028 😀',
        "input": {"frames": (first, second)},
        "again": [{"url": first}],
        "n": None,
    }
    received, _ = await sent(tmp_path, body=Json(value=value), headers={"Content-Type": "application/json"})
    large = URI + base64.b64encode(picture(1_000_001)).decode()
    assert json.loads(received.body) == {
        "prompt": 'ein "Löwe"\n\u2028 😀',
        "input": {"frames": [large, base64.b64encode(b"small").decode()]},
        "again": [{"url": large}],
        "n": None,
    }
    assert received.headers["content-length"] == str(len(received.body))
    assert received.headers["content-type"] == "application/json"
    assert "transfer-encoding" not in received.headers


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner)
    ),
    max_leaves=10,
)


@given(value=VALUES, prefix=st.text(st.characters(exclude_categories=["Cs"])), at=st.integers(0, 2))
async def test_whatever_stands_around_a_picture_stays_as_it_is(
    tmp_path_factory: pytest.TempPathFactory, value: Any, prefix: str, at: int
) -> None:
    """
    The rest of the value and the prefix come through whatever they are, the marks of pictures among them.
    """
    folder = tmp_path_factory.getbasetemp()
    (folder / "around").write_bytes(b"picture")
    wanted = [value, {"prefix": prefix}]
    wanted.insert(at, Inline(asset="sha256:around", prefix=prefix))
    length, body, _ = await written(Json(value=wanted), folder)
    wanted[at] = prefix + base64.b64encode(b"picture").decode()
    assert json.loads(body) == wanted
    assert length == len(body)


async def test_a_body_without_pictures_is_plain_json(tmp_path: Path) -> None:
    """
    Without a picture the body is the JSON text, compact and in UTF-8.
    """
    assert await written(Json(value={"prompt": "獅子", "n": [1, 2]}), tmp_path) == (
        29,
        '{"prompt":"獅子","n":[1,2]}'.encode(),
        None,
    )


async def test_a_large_picture_is_never_held_in_memory(tmp_path: Path) -> None:
    """
    32 MiB in base64 are written with no more than a few pieces in memory at once.
    """
    with (tmp_path / "aa").open("wb") as file:
        file.truncate(32 * 1024 * 1024)
    body = Json(value={"image": Inline(asset="sha256:aa", prefix=URI)})
    seen = 0
    async with open_body(body, lambda _: tmp_path / "aa") as opened:
        tracemalloc.start()
        try:
            async for piece in opened.pieces:
                seen += len(piece)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert seen == opened.length > 42 * 1024 * 1024
    assert peak < 8 * PIECE_BYTES


# A file as it is


@pytest.mark.parametrize("size", [0, 1, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES])
async def test_a_blob_arrives_as_it_is(tmp_path: Path, size: int) -> None:
    """
    The file's own bytes under its own type and length, and nothing around them.
    """
    (tmp_path / "aa").write_bytes(picture(size))
    received, _ = await sent(tmp_path, method="PUT", body=Blob(asset="sha256:aa", media_type="image/webp"))
    assert received.body == picture(size)
    assert received.headers["content-length"] == str(size)
    assert received.headers["content-type"] == "image/webp"


# What is not there


@pytest.mark.parametrize(
    "body",
    [
        Json(value={"here": Inline(asset="sha256:aa"), "not": Inline(asset="sha256:bb")}),
        Blob(asset="sha256:bb", media_type="image/png"),
    ],
    ids=["JSON", "a blob"],
)
async def test_a_missing_picture_lets_nothing_be_sent(tmp_path: Path, body: Json | Blob) -> None:
    """
    A body of which one file is missing fails before anything is dialled, and says so, whether it is signed or not.
    """
    (tmp_path / "aa").write_bytes(b"here")
    async with http_server(reply()) as server, transport_to(server, tmp_path) as transport:
        for signed in (None, lambda made: {"X-Signature": made}):
            request = HttpRequest(method="POST", url=f"{server.url}/", body=body, creates=True, signed=signed)
            with pytest.raises(TransportError) as failed:
                async with transport.send(request, timeout=5):
                    pass
            assert failed.value.maybe_sent is False
            assert "sha256:bb" in failed.value.message
    assert server.connections == 0


async def test_a_folder_in_a_pictures_place_is_not_sent(tmp_path: Path) -> None:
    """
    What is no regular file is refused unsent.
    """
    (tmp_path / "aa").mkdir()
    with pytest.raises(TransportError) as failed:
        await written(Json(value=[Inline(asset="sha256:aa")]), tmp_path)
    assert failed.value.maybe_sent is False


@pytest.mark.parametrize("left", [0, 4, PIECE_BYTES + 1])
async def test_a_picture_cut_short_while_it_is_sent_may_have_been_sent(tmp_path: Path, left: int) -> None:
    """
    The length was told and cannot be kept: the call fails, never ends as if it were whole, and is not known unsent.
    """
    path = tmp_path / "aa"
    path.write_bytes(picture(3 * PIECE_BYTES))

    def cut() -> bool:
        with path.open("r+b") as file:
            file.truncate(left)
        return True

    async with http_server(reply()) as server, transport_to(server, tmp_path) as transport:
        body = Json(value={"image": Inline(asset="sha256:aa")})
        request = HttpRequest(method="POST", url=f"{server.url}/", body=body, creates=True, may_go=cut)
        with pytest.raises(TransportError) as failed:
            async with transport.send(request, timeout=5):
                pass
    assert failed.value.maybe_sent is True
    assert server.requests == []


async def test_its_files_are_closed_however_it_ends(tmp_path: Path) -> None:
    """
    A body that is left in its midst keeps no file open: a warning of one would fail this test.
    """
    (tmp_path / "aa").write_bytes(picture(2 * PIECE_BYTES))
    async with open_body(Json(value=[Inline(asset="sha256:aa")] * 2), lambda _: tmp_path / "aa") as opened:
        assert await anext(opened.pieces) == b'["'
        assert len(await anext(opened.pieces)) == PIECE_BYTES // 3 * 4


# Signatures that cover it

BODIES = {
    "bytes": b'{"prompt":"x"}',
    "JSON": Json(value={"prompt": "ü", "image": Inline(asset="sha256:aa", prefix=URI)}),
    "a blob": Blob(asset="sha256:aa", media_type="image/png"),
    "a form": Form(
        fields=(("prompt", "x"),),
        files=(FormFile(name="i", asset="sha256:aa", filename="i.png", media_type="image/png"),),
    ),
    "none": None,
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
async def test_a_signature_is_of_exactly_what_is_sent(tmp_path: Path, body: bytes | Json | Blob | Form | None) -> None:
    """
    The hash that the signing function is given is that of the bytes which arrive; its headers go out, beside ours.
    """
    (tmp_path / "aa").write_bytes(picture(PIECE_BYTES + 5))
    asked: list[str] = []

    def signed(made: str) -> Mapping[str, str]:
        asked.append(made)
        return {"Authorization": f"HMAC {made}", "X-Date": "20261130T000000Z"}

    received, _ = await sent(tmp_path, body=body, signed=signed, headers={"X-Own": "1"})
    assert asked == [hashlib.sha256(received.body).hexdigest()]
    assert received.headers["authorization"] == f"HMAC {asked[0]}"
    assert (received.headers["x-date"], received.headers["x-own"]) == ("20261130T000000Z", "1")


async def test_the_hash_of_a_body_is_that_of_its_pieces(tmp_path: Path) -> None:
    """
    body_hash reads what open_body writes.
    """
    (tmp_path / "aa").write_bytes(picture(PIECE_BYTES * 2 + 1))
    for body in BODIES.values():
        whole = b"" if body is None else (await written(body, tmp_path))[1]
        assert await body_hash(body, lambda _: tmp_path / "aa") == hashlib.sha256(whole).hexdigest()

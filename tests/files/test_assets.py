"""
Reference images are taken in whole or not at all, decoded once, in a child.
"""

import asyncio
import contextlib
import hashlib
import os
import signal
import stat
import struct
import subprocess
import sys
import threading
import time
import zlib
from pathlib import Path
from typing import Any

import pytest
import uvloop
from PIL import Image

from vidrelay.core.adapter import PictureRule
from vidrelay.core.errors import DiskFull, InvalidRequest, TooLarge, UnknownAsset, UnsupportedMedia
from vidrelay.core.media import EXTENSIONS
from vidrelay.files import assets as room
from vidrelay.files.assets import ImageLimits, LocalAssets
from vidrelay.testing.samples import WEBM, box, film, sound


class Book:
    """What is known of pictures, in memory."""

    def __init__(self):
        self.rows = {}

    async def asset(self, asset_id):
        try:
            return self.rows[asset_id]
        except KeyError:
            raise UnknownAsset from None

    async def add_asset(self, asset):
        self.rows.setdefault(asset.id, asset)


@pytest.fixture
def book():
    return Book()


@pytest.fixture
def state(tmp_path):
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "relay.json").write_text("{}")
    return tmp_path / "state"


@pytest.fixture
def assets(state, book):
    return LocalAssets(state / "assets", book, forbidden=(state,))


def picture(path, size=(60, 40), **how):
    Image.linear_gradient("L").resize(size).convert("RGB").save(path, **how)
    return path


async def pieces(content, size=1000):
    for start in range(0, len(content), size):
        yield content[start : start + size]


def left_in(assets_dir):
    return sorted(entry.name for entry in assets_dir.iterdir()) if assets_dir.exists() else []


async def test_a_picture_is_kept_under_the_hash_of_its_bytes(assets, state, book, tmp_path):
    """
    Id and file name are the hash, size and type are measured, and the record is written.
    """
    content = picture(tmp_path / "a.png").read_bytes()

    asset = await assets.put(pieces(content))

    digest = hashlib.sha256(content).hexdigest()
    assert asset.id == f"sha256:{digest}"
    assert (asset.width, asset.height, asset.size_bytes, asset.media_type) == (60, 40, len(content), "image/png")
    assert left_in(state / "assets") == [f"{digest}.png"]
    assert assets.location(asset.id).read_bytes() == content
    assert book.rows[asset.id] == asset


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
async def test_nobody_else_may_read_it(assets, state, tmp_path):
    """
    Under a umask of 0 the folder is 0700 and the picture 0600.
    """
    before = os.umask(0)
    try:
        asset = await assets.put(pieces(picture(tmp_path / "a.png").read_bytes()))
    finally:
        os.umask(before)

    assert stat.S_IMODE((state / "assets").stat().st_mode) == 0o700
    assert stat.S_IMODE(assets.location(asset.id).stat().st_mode) == 0o600


async def test_the_same_bytes_are_not_decoded_again(assets, state, book, tmp_path):
    """
    A picture that is known keeps the identity it was recorded with.
    """
    content = picture(tmp_path / "a.png").read_bytes()
    first = await assets.put(pieces(content))
    # Were it measured again, its identity would be the true one.
    book.rows[first.id] = marked = type(first)(
        id=first.id, pixels="p1:marked", width=60, height=40, size_bytes=first.size_bytes, media_type="image/png"
    )

    assert await assets.put(pieces(content)) == marked


async def test_a_known_picture_whose_file_is_gone_comes_back_with_its_bytes(assets, tmp_path):
    """
    A record without its file is an unknown asset until the same bytes are put again.
    """
    content = picture(tmp_path / "a.png").read_bytes()
    first = await assets.put(pieces(content))
    assets.location(first.id).unlink()

    with pytest.raises(UnknownAsset):
        await assets.fitted(first, PictureRule())
    await assets.put(pieces(content))

    assert await assets.fitted(first, PictureRule()) == first


async def test_copies_that_differ_in_metadata_only_share_their_pixels(assets, tmp_path):
    """
    Two files of one picture have two ids and one identity of pixels.
    """
    exif = Image.Exif()
    exif[0x010F] = "Camera"
    one = await assets.put(pieces(picture(tmp_path / "a.jpg").read_bytes()))
    other = await assets.put(pieces(picture(tmp_path / "b.jpg", exif=exif).read_bytes()))

    assert one.id != other.id
    assert one.pixels == other.pixels


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x89PNG",
        b"<svg xmlns='svg'><g/></svg>",
        b"SIMPLE  =  T / FITS",
        b"GIF89a" + b"\0" * 40,
        b"{}",
    ],
)
async def test_what_is_no_picture_is_refused_and_nothing_is_left(assets, state, content):
    """
    Empty, foreign and half-begun content is unsupported and leaves no file.
    """
    with pytest.raises(UnsupportedMedia):
        await assets.put(pieces(content))

    assert left_in(state / "assets") == []


async def test_a_stream_of_the_wrong_kind_is_refused_at_its_head(assets):
    """
    An endless stream that is no picture is refused after a few chunks.
    """
    taken = 0

    async def endless():
        nonlocal taken
        while True:
            taken += 1
            yield b"<html>" * 100_000

    with pytest.raises(UnsupportedMedia):
        await assets.put(endless())

    assert taken <= 3


async def test_a_stream_that_is_too_long_is_cut_off_and_nothing_is_left(state, book, tmp_path):
    """
    A picture a byte over the limit is too large and leaves no file.
    """
    content = picture(tmp_path / "a.png").read_bytes()
    assets = LocalAssets(state / "assets", book, limits=ImageLimits(max_bytes=len(content) - 1))

    with pytest.raises(TooLarge):
        await assets.put(pieces(content))

    assert left_in(state / "assets") == []


async def test_a_stream_that_breaks_off_leaves_nothing(assets, state):
    """
    The stream's own error comes out, and no part is left.
    """

    async def broken():
        yield b"\x89PNG\r\n\x1a\n" + b"\0" * 2_000_000
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        await assets.put(broken())

    assert left_in(state / "assets") == []


async def test_a_full_disk_is_said(state, book, tmp_path):
    """
    Without room for a picture DiskFull is raised and nothing is written.
    """
    assets = LocalAssets(state / "assets", book, has_room=lambda _: False)

    with pytest.raises(DiskFull):
        await assets.put(pieces(picture(tmp_path / "a.png").read_bytes()))

    assert left_in(state / "assets") == []


async def test_a_truncated_picture_is_refused(assets, state, tmp_path):
    """
    A picture that lacks its end is unsupported and leaves no file.
    """
    content = picture(tmp_path / "a.png", (300, 300)).read_bytes()

    with pytest.raises(UnsupportedMedia):
        await assets.put(pieces(content[:-200]))

    assert left_in(state / "assets") == []


@pytest.mark.parametrize(
    "content",
    [
        b"\x89PNG\r\n\x1a\n" + bytes(100),
        b"\xff\xd8\xff" + bytes(100),
        b"RIFF" + bytes(4) + b"WEBP" + bytes(100),
    ],
)
async def test_a_refusal_tells_no_path_of_ours(assets, state, content):
    """
    Bytes that only begin as a picture are refused without a word of where they were looked at.
    """
    with pytest.raises(UnsupportedMedia) as refused:
        await assets.put(pieces(content))

    assert "/" not in refused.value.message
    assert left_in(state / "assets") == []


def bomb(width, height, rows=b""):
    """A small PNG of that size; `rows` is its image data, none for a mere claim."""

    def chunk(name, body):
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    header = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


# A process of its own, since the highest memory of this one may have been reached before.
TAKE_IN = """
import asyncio, re, sys
from pathlib import Path
from vidrelay.core.errors import TooLarge, UnknownAsset
from vidrelay.files.assets import LocalAssets

class Book:
    async def asset(self, asset_id):
        raise UnknownAsset

    async def add_asset(self, asset):
        pass

async def pieces(content):
    for start in range(0, len(content), 1000):
        yield content[start : start + 1000]

def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])

async def take_in(content, root):
    before = peak()
    try:
        await LocalAssets(root, Book()).put(pieces(content))
        outcome = "taken"
    except TooLarge:
        outcome = "TooLarge"
    print(outcome, peak() - before)

asyncio.run(take_in(Path(sys.argv[1]).read_bytes(), Path(sys.argv[2])))
"""


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (lambda: bomb(30_000, 30_000), TooLarge),
        (lambda: bomb(6_000, 6_000, zlib.compress(b"\0" * 200_000_000, 9)), None),
    ],
)
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the kernel does not tell")
def test_a_bomb_does_not_grow_the_relay(content, error, tmp_path):
    """
    A huge picture, claimed or real, adds less than 20 MB to the process that takes it in.
    """
    (tmp_path / "bomb.png").write_bytes(content())

    child = subprocess.run(
        [sys.executable, "-c", TAKE_IN, str(tmp_path / "bomb.png"), str(tmp_path / "assets")],
        capture_output=True,
        check=True,
        text=True,
        timeout=60,
    )

    outcome, grown_kib = child.stdout.split()
    assert outcome == (error.__name__ if error else "taken")
    assert int(grown_kib) < 20 * 1024


async def test_the_loop_goes_on_while_a_picture_is_decoded(assets, tmp_path):
    """
    While a large picture is taken in the event loop is hardly ever late.
    """
    content = picture(tmp_path / "a.png", (3000, 2000)).read_bytes()
    loop, lags = asyncio.get_running_loop(), []

    async def watch():
        while True:
            before = loop.time()
            await asyncio.sleep(0.005)
            lags.append(loop.time() - before - 0.005)

    async with asyncio.TaskGroup() as group:
        watching = group.create_task(watch())
        await assets.put(pieces(content, 65536))
        watching.cancel()

    assert sorted(lags)[len(lags) * 9 // 10] < 0.05


async def test_a_file_of_the_users_is_taken_in(assets, tmp_path):
    """
    A file that is named by its absolute path is read into the assets whole.
    """
    path = picture(tmp_path / "a.webp")

    asset = await assets.put_path(str(path))

    assert asset.media_type == "image/webp"
    assert assets.location(asset.id).read_bytes() == path.read_bytes()


def refused_paths(tmp_path, state):
    picture(tmp_path / "true.png")
    (tmp_path / "link.png").symlink_to(tmp_path / "true.png")
    (tmp_path / "dir.png").mkdir()
    (tmp_path / "text.png").write_text("not a picture at all")
    os.mkfifo(tmp_path / "fifo.png")
    picture(state / "inside.png")
    (tmp_path / "way-in").symlink_to(state)
    os.link(state / "relay.json", tmp_path / "hard.png")
    return {
        "link": tmp_path / "link.png",
        "directory": tmp_path / "dir.png",
        "text": tmp_path / "text.png",
        "fifo": tmp_path / "fifo.png",
        "device": "/dev/zero",
        "missing": tmp_path / "missing.png",
        "relative": "true.png",
        "nul": f"{tmp_path}/tr\0ue.png",
        "surrogate": f"{tmp_path}/\ud800.png",
        "empty": "",
        "own": state / "inside.png",
        "own, by a linked directory": tmp_path / "way-in" / "inside.png",
        "own, by dots": f"{state}/../state/relay.json",
        "own, by a hard link": tmp_path / "hard.png",
        "the system's, without an end": "/proc/self/mem",
        "the system's, that waits": "/proc/kmsg",
        "the system's, unreadable": "/sys/class/net/lo/speed",
    }


@pytest.mark.skipif(os.name != "posix", reason="links and pipes are POSIX")
@pytest.mark.parametrize(
    "which",
    [
        "link", "directory", "text", "fifo", "device", "missing", "relative", "nul", "surrogate", "empty", "own",
        "own, by a linked directory", "own, by dots", "own, by a hard link", "the system's, without an end",
        "the system's, that waits", "the system's, unreadable",
    ],
)  # fmt: skip
async def test_a_path_that_must_not_be_read_is_refused(assets, tmp_path, state, book, which):
    """
    Links, devices, missing or odd paths and the relay's own files are refused as references.
    """
    path = refused_paths(tmp_path, state)[which]

    with pytest.raises(InvalidRequest) as refused:
        await assets.put_path(str(path))

    assert refused.value.field == "references"
    assert book.rows == {}
    assert left_in(state / "assets") == []


OPEN_A_TERMINAL = """
import asyncio, os, sys
from pathlib import Path
from vidrelay.core.errors import InvalidRequest
from vidrelay.files.assets import LocalAssets

_, terminal = os.openpty()
try:
    asyncio.run(LocalAssets(Path(sys.argv[1]), None).put_path(os.ttyname(terminal)))
except InvalidRequest:
    os.open("/dev/tty", os.O_RDWR)
"""


@pytest.mark.skipif(os.name != "posix", reason="terminals are POSIX")
def test_a_terminal_that_is_named_does_not_become_the_relays(tmp_path):
    """
    A detached relay leads its session, and would end with the terminal it got.
    """
    child = subprocess.run(
        [sys.executable, "-c", OPEN_A_TERMINAL, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
        start_new_session=True,
        check=False,
    )

    assert "OSError: [Errno 6]" in child.stderr, child.stderr


async def test_a_key_file_is_refused(state, book, tmp_path):
    """
    A file that was named as forbidden is not taken in, though it be a picture.
    """
    key = picture(tmp_path / "key.png")
    assets = LocalAssets(state / "assets", book, forbidden=(state, key))

    with pytest.raises(InvalidRequest):
        await assets.put_path(str(key))


async def test_a_picture_that_the_rule_takes_is_sent_as_it_is(assets, tmp_path):
    """
    A picture within the provider's rule is used itself, and no copy is made.
    """
    asset = await assets.put_path(str(picture(tmp_path / "a.png")))

    assert await assets.fitted(asset, PictureRule(max_edge=60)) is asset


async def test_one_that_is_too_large_is_sent_as_a_copy_with_its_own_pixels(assets, tmp_path):
    """
    A smaller copy has an id of its own and the original's identity.
    """
    asset = await assets.put_path(str(picture(tmp_path / "a.png")))

    copy = await assets.fitted(asset, PictureRule(max_edge=30))

    assert copy.id != asset.id
    assert copy.pixels == asset.pixels
    assert (copy.width, copy.height, copy.media_type) == (30, 20, "image/jpeg")
    with Image.open(assets.location(copy.id)) as shown:
        assert shown.size == (30, 20)


async def test_a_copy_is_made_once_and_found_again_after_a_restart(assets, state, book, tmp_path):
    """
    The same rule gives the same copy in a later life, and its file is not written again.
    """
    rule = PictureRule(max_edge=30)
    asset = await assets.put_path(str(picture(tmp_path / "a.png")))
    copy = await assets.fitted(asset, rule)
    written = assets.location(copy.id).stat().st_mtime_ns

    again = await LocalAssets(state / "assets", book).fitted(asset, rule)

    assert again == copy
    assert assets.location(copy.id).stat().st_mtime_ns == written


async def test_what_an_earlier_life_left_half_taken_in_is_deleted(assets, state, tmp_path):
    """
    A part left by a killed relay is gone after the first picture is taken in.
    """
    (state / "assets").mkdir()
    (state / "assets" / "tmpabc.part").write_bytes(b"half")

    asset = await assets.put_path(str(picture(tmp_path / "a.png")))

    assert left_in(state / "assets") == [assets.location(asset.id).name]


@pytest.mark.parametrize("asset_id", ["", "sha256:", "sha256:../../etc/passwd", "sha256:" + "A" * 64, "x" * 71])
def test_an_id_that_is_none_names_no_file(assets, asset_id):
    """
    An id that is not our prefix and 64 small hexadecimal digits is an unknown asset.
    """
    with pytest.raises(UnknownAsset):
        assets.location(asset_id)


TAKES = {"video": 10_000_000, "audio": 10_000_000}


@pytest.mark.parametrize(
    ("content", "media_type"),
    [
        (film(), "video/mp4"),
        (sound(), "audio/wav"),
        (WEBM, "video/webm"),
        (b"ID3" + bytes(600), "audio/mpeg"),
    ],
    ids=["mp4", "wav", "webm", "mp3"],
)
async def test_a_film_or_a_sound_is_kept_by_its_bytes(assets, state, book, content, media_type):
    """
    Nothing decodes it: its identity is the hash of its bytes, and its kind is what they show.
    """
    asset = await assets.put(pieces(content), media=TAKES, who="acme")

    digest = hashlib.sha256(content).hexdigest()
    assert (asset.id, asset.pixels) == (f"sha256:{digest}", f"sha256:{digest}")
    assert (asset.media_type, asset.size_bytes) == (media_type, len(content))
    assert left_in(state / "assets") == [f"{digest}.{EXTENSIONS[media_type]}"]
    assert assets.location(asset.id).read_bytes() == content
    assert book.rows[asset.id] == asset


async def test_where_pictures_are_asked_for_a_film_is_none(assets, state, tmp_path):
    """
    Neither an upload to `/assets` nor a path of a reference takes one, and one that is kept is no picture to fit.
    """
    path = tmp_path / "a.mp4"
    path.write_bytes(film())
    with pytest.raises(UnsupportedMedia):
        await assets.put(pieces(film()))
    with pytest.raises(InvalidRequest):
        await assets.put_path(str(path))
    assert left_in(state / "assets") == []

    asset = await assets.put(pieces(film()), media=TAKES, who="acme")
    with pytest.raises(UnsupportedMedia):
        await assets.fitted(asset, PictureRule())


@pytest.mark.parametrize(
    ("takes", "error", "told"),
    [
        ({}, InvalidRequest, "acme takes no film as bytes"),
        ({"audio": 10_000_000}, InvalidRequest, "acme takes no film as bytes"),
        ({"video": 1000}, TooLarge, "A film for acme may have at most 1000 bytes"),
    ],
    ids=["nothing", "sounds alone", "short ones"],
)
async def test_what_a_provider_does_not_take_is_refused_at_its_head(assets, state, takes, error, told):
    """
    It is told by name, before the whole of it has come, and nothing is left.
    """
    taken = 0

    async def endless():
        nonlocal taken
        yield film()
        while True:
            taken += 1
            yield bytes(1_000_000)

    with pytest.raises(error, match=told):
        await assets.put(endless(), media=takes, who="acme")

    assert taken <= 3
    assert left_in(state / "assets") == []


@pytest.mark.parametrize(
    "content",
    [
        film()[:-1],
        sound()[:-1],
        film()[:32] + os.urandom(5000),
        b"RIFF" + bytes(4) + b"EVIL" + bytes(600),
        b"<html>ftyp</html>" + bytes(600),
        b"GIF89a" + bytes(600),
        b"glTF" + bytes(600),
    ],
    ids=["cut film", "cut sound", "film's head alone", "foreign riff", "page", "gif", "model"],
)
async def test_what_only_begins_as_a_film_is_refused(assets, state, content):
    """
    It must be whole as far as its structure tells, and of a kind that is taken.
    """
    with pytest.raises(UnsupportedMedia):
        await assets.put(pieces(content, 100_000), media=TAKES, who="acme")

    assert left_in(state / "assets") == []


async def test_a_film_of_nothing_but_boxes_costs_no_time(assets):
    """
    However many empty boxes it is made of, looking through them ends soon.
    """
    content = box(b"ftyp", b"isom") + box(b"free") * 1_200_000 + box(b"moov") + box(b"mdat")
    began = time.monotonic()

    with pytest.raises(UnsupportedMedia):
        await assets.put(pieces(content, 1_000_000), media=TAKES, who="acme")

    assert time.monotonic() - began < 5


@pytest.mark.skipif(not Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").exists(), reason="needs Linux's /proc")
def test_a_decoder_that_is_killed_at_once_costs_one_picture() -> None:
    """Whenever it dies, also before it was told what to decode, the picture is refused and nothing else happens."""
    over = threading.Event()

    def kill() -> None:
        while not over.is_set():
            for pid in Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split():
                with contextlib.suppress(OSError):
                    os.kill(int(pid), signal.SIGKILL)

    async def decode() -> list[dict[str, Any]]:
        return [await room._run(b'{"x": 1}\n') for _ in range(60)]

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        told = uvloop.run(decode())
    finally:
        over.set()
        killer.join()
    assert all(one["error"] == "unsupported" for one in told)

"""
Whatever is uploaded as a picture, the relay stays small and quick: a child with limits reads it, or nobody.
"""

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from PIL import Image

from .bombs import bombs, saved, throw
from .lives import Life, children

pytestmark = pytest.mark.process
TRIES = 3
MAX_LAG_SECONDS = 0.05
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    """
    One relay for all of them.
    """
    with Life(tmp_path_factory.mktemp("bombs")) as life:
        yield life


@on_linux
def test_bombs_grow_the_relay_by_less_than_20_mb_and_hold_nobody_up(life: Life) -> None:
    """
    Each is answered with a picture's facts or a refusal; whoever calls meanwhile does not notice.
    """
    for _ in range(TRIES):
        felt = throw(life, bombs())
        if felt.lag(0.99) < MAX_LAG_SECONDS:
            break  # what a busy machine held up once was not the relay
    taken = {name for name, status in felt.answers.items() if status == 200}
    assert set(felt.answers.values()) <= {200, 413, 415, 422}, felt.answers
    assert taken <= {
        "is 40 megapixels of nothing",
        "is a JPEG of very many scans",
        "is a JPEG that claims more than it has",
        "has a text that unpacks to 64 MB",
        "has a profile that unpacks to 64 MB",
        "has ten thousand chunks",
        "has more data than its size",
    }
    assert felt.grown_bytes < 20 * 1024 * 1024
    assert felt.lag(0.99) < MAX_LAG_SECONDS
    assert not list((life.state / "assets").glob("*.part"))


@on_linux
def test_a_picture_that_goes_on_is_never_in_the_relays_memory(life: Life) -> None:
    """
    It is cut at its byte over 64 MiB, told or not, and written to the disk on the way; nothing is left there.
    """
    piece = b"\x89PNG\r\n\x1a\n".ljust(64 * 1024)

    def pieces(count: int) -> Iterator[bytes]:
        for _ in range(count):
            yield piece
        yield b"x"

    before = life.peak_bytes()
    assert life.http.post("/assets", content=pieces(1024)).status_code == 413
    assert life.peak_bytes() - before < 20 * 1024 * 1024
    assert life.http.post("/assets", content=pieces(1023)).status_code == 415
    assert life.peak_bytes() - before < 20 * 1024 * 1024
    assert not list((life.state / "assets").glob("*.part"))


def decoders(life: Life) -> list[int]:
    """
    The children that read pictures at this moment.
    """
    found = []
    for pid in children(life.pid):
        with contextlib.suppress(OSError):
            if b"vidrelay.files.images" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
    return found


def large(colour: str) -> bytes:
    """
    A picture that takes a while to read.
    """
    return saved(Image.new("RGB", (4000, 3000), colour), "PNG", compress_level=1)


@on_linux
def test_the_decoder_is_limited_and_works_alone(life: Life) -> None:
    """
    512 MB, 10 seconds of processor time, no network, and never two of them.
    """
    limits: list[str] = []
    networks: set[str] = set()
    most, over = 0, threading.Event()

    def watch() -> None:
        nonlocal most
        while not over.wait(0.02):
            found = decoders(life)
            most = max(most, len(found))
            for pid in found:
                with contextlib.suppress(OSError):
                    limits.append(Path(f"/proc/{pid}/limits").read_text())
                    networks.add(str(Path(f"/proc/{pid}/ns/net").readlink()))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        with ThreadPoolExecutor(4) as pool:
            sent = [
                pool.submit(life.http.post, "/assets", content=large(name)) for name in ("red", "blue", "navy", "tan")
            ]
            assert [one.result().status_code for one in sent] == [200] * 4
    finally:
        over.set()
        thread.join()
    assert most == 1
    told = " ".join(limits[-1].split())
    assert "address space 536870912 536870912" in told
    assert "cpu time 10 10" in told
    if may_unshare():
        assert networks - {str(Path("/proc/self/ns/net").readlink())}


def may_unshare() -> bool:
    """
    Whether the system lets anybody leave its network.
    """
    child = os.fork()
    if not child:
        import ctypes

        os._exit(bool(ctypes.CDLL(None).unshare(0x50000000)))
    return os.waitpid(child, 0)[1] == 0


@on_linux
def test_a_decoder_that_dies_costs_one_picture(life: Life) -> None:
    """
    That one is refused; the next is read.
    """
    with ThreadPoolExecutor(1) as pool:
        sent = pool.submit(life.http.post, "/assets", content=large("green"))
        for _ in range(2000):
            for pid in decoders(life):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if sent.done():
                break
            time.sleep(0.005)
    assert sent.result().status_code == 415
    assert life.http.post("/assets", content=large("green")).status_code == 200

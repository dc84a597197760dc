"""
Pictures that are none, that lie about themselves, or that grow a thousandfold when they are read; and what a relay
feels of them.
"""

import io
import json
import socket
import struct
import threading
import time
import zlib
from dataclasses import dataclass, field

from PIL import Image

from .lives import Life


def png(width: int, height: int, rows: bytes = b"", *extra: tuple[bytes, bytes], colour: int = 2) -> bytes:
    """
    A PNG of that size with that image data (packed already; that of 10 by 10 pixels) and further chunks before it.
    """
    header = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    chunks = [(b"IHDR", header), *extra, (b"IDAT", rows or zlib.compress(bytes(310))), (b"IEND", b"")]
    packed = (
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(packed)


def zeros(count: int) -> bytes:
    """
    So many zero bytes, packed a thousand to one.
    """
    packer = zlib.compressobj(9)
    return b"".join(packer.compress(bytes(1_000_000)) for _ in range(count // 1_000_000)) + packer.flush()


def saved(image: Image.Image, kind: str, **how: object) -> bytes:
    """
    A picture as bytes.
    """
    out = io.BytesIO()
    image.save(out, kind, **how)
    return out.getvalue()


def patched_jpeg(width: int, height: int) -> bytes:
    """
    A small JPEG whose header claims another size.
    """
    data = saved(Image.new("RGB", (16, 16), "red"), "JPEG")
    at = data.index(b"\xff\xc0") + 5
    return data[:at] + struct.pack(">HH", height, width) + data[at + 4 :]


def many_scans(edge: int, scans: int) -> bytes:
    """
    A progressive JPEG of that size whose last scan, a few bytes long, comes so often.
    """
    data = saved(Image.new("RGB", (edge, edge), "red"), "JPEG", progressive=True, quality=20)
    last = data.rindex(b"\xff\xda")
    return data[:-2] + data[last:-2] * scans + data[-2:]


def bombs(*, scans: int = 500) -> dict[str, bytes]:
    """
    The set, by what each does; one takes the longer to read, the more `scans` it has.
    """
    nothing = zeros(121_000_000)
    text = zlib.compress(bytes(64_000_000), 9)
    whole = saved(Image.effect_noise((900, 700), 60).convert("RGB"), "PNG")
    huge_webp = bytearray(saved(Image.new("RGB", (16, 16)), "WEBP", lossless=True))
    huge_webp[21:25] = struct.pack("<I", 16_382 | 16_382 << 14)
    return {
        "claims 900 megapixels": png(30_000, 30_000),
        "claims 4 billion pixels a side": png(2**31 - 1, 2**31 - 1),
        "is 40 megapixels of nothing": png(8_000, 5_000, nothing),
        "is 40 megapixels with less data than that": png(8_000, 5_000, nothing, colour=6),
        "has more data than its size": png(10, 10, nothing),
        "has a text that unpacks to 64 MB": png(10, 10, b"", (b"zTXt", b"a\0\0" + text)),
        "has a profile that unpacks to 64 MB": png(10, 10, b"", (b"iCCP", b"a\0\0" + text)),
        "has ten thousand chunks": png(10, 10, b"", *[(b"tEXt", b"a\0b")] * 10_000),
        "has no image data": png(10, 10, b"\0"),
        "has a chunk that claims 2 GB": b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 2**31 - 1) + b"IHDR" + bytes(1000),
        "is a JPEG that claims 4 gigapixels": patched_jpeg(65_500, 65_500),
        "is a JPEG that claims more than it has": patched_jpeg(6_000, 6_000),
        "is a JPEG of very many scans": many_scans(1000, scans),
        "is a WebP that claims 268 megapixels": bytes(huge_webp),
        "breaks off": whole[: len(whole) // 2],
        "is a PNG's head alone": whole[:40],
        "is noise under a PNG's name": b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 400,
        "is noise under a JPEG's name": b"\xff\xd8\xff\xe0" + bytes(range(256)) * 400,
        "is noise under a WebP's name": b"RIFF\xff\xff\xff\xffWEBPVP8X" + bytes(range(256)) * 400,
        "is SVG": b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>',
        "is SVG with entities": b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaa">]><svg>&a;</svg>',
        "is FITS": b"SIMPLE  =                    T / conforms to FITS".ljust(2880) + bytes(5760),
        "is GIF": saved(Image.new("P", (9, 9)), "GIF"),
        "is TIFF": saved(Image.new("RGB", (9, 9)), "TIFF"),
        "is BMP": saved(Image.new("RGB", (9, 9)), "BMP"),
        "is PostScript": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n(/etc/passwd) (r) file\n",
        "is a page": b"<!doctype html><img src=x onerror=1>",
        "is one byte": b"\x89",
    }


@dataclass
class Felt:
    """
    What the relay felt: answers by bomb, memory that it grew by at most, and how long a short call took meanwhile.
    """

    answers: dict[str, int] = field(default_factory=dict)
    grown_bytes: int = 0
    lags: list[float] = field(default_factory=list)

    def lag(self, share: float) -> float:
        """
        What so large a share of the short calls did not exceed, in seconds.
        """
        return sorted(self.lags or [0.0])[min(max(0, len(self.lags) - 1), int(len(self.lags) * share))]


def throw(life: Life, these: dict[str, bytes]) -> Felt:
    """
    Upload each of them, and watch the relay's memory and its answers to short calls all the while.
    """
    felt, over = Felt(), threading.Event()
    life.http.post("/assets", content=saved(Image.new("RGB", (64, 64), "red"), "PNG"))
    before = life.rss_bytes()

    def watch() -> None:
        call = f"GET /health HTTP/1.1\r\nHost: 127.0.0.1:{life.port}\r\nX-Local-Token: {life.token}\r\n\r\n".encode()
        with socket.create_connection(("127.0.0.1", life.port)) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while not over.wait(0.01):
                started = time.perf_counter()
                connection.sendall(call)
                answer = b""
                while not answer.endswith(b"}"):
                    answer += connection.recv(65536)
                felt.lags.append(time.perf_counter() - started)
                felt.grown_bytes = max(felt.grown_bytes, life.rss_bytes() - before)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        for name, content in these.items():
            answer = life.http.post("/assets", content=content, timeout=60)
            felt.answers[name] = answer.status_code
            json.loads(answer.content)
    finally:
        over.set()
        thread.join()
    return felt

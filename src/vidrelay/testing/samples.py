"""
The smallest files of some kinds: by their structure alone, and a film and a sound that play.
"""

import functools
import io
import wave


def box(kind: bytes, content: bytes = b"") -> bytes:
    """
    One box of an MP4 file.
    """
    return (8 + len(content)).to_bytes(4) + kind + content


def riff(kind: bytes, content: bytes) -> bytes:
    """
    A RIFF file.
    """
    return b"RIFF" + (4 + len(content)).to_bytes(4, "little") + kind + content


def movie(size_bytes: int) -> bytes:
    """
    An MP4 of that length, as far as its structure goes.
    """
    start = box(b"ftyp", b"isom\0\0\2\0") + box(b"moov", b"index")
    filling = bytes(index * 7 % 251 for index in range(1000))
    rest = size_bytes - len(start) - 8
    return start + box(b"mdat", (filling * (rest // 1000 + 1))[:rest])


@functools.cache
def film(edge: int = 64) -> bytes:
    """
    An MP4 that plays: two frames in one grey.
    """
    import av  # noqa: PLC0415 FFmpeg only when a film is wanted

    made = io.BytesIO()
    with av.open(made, "w", format="mp4") as container:
        stream = container.add_stream("mpeg4", rate=24)
        stream.width = stream.height = edge
        stream.pix_fmt = "yuv420p"
        for _ in range(2):
            container.mux(stream.encode(av.VideoFrame(edge, edge, "yuv420p")))
        container.mux(stream.encode())
    return made.getvalue()


@functools.cache
def sound(seconds: float = 0.1) -> bytes:
    """
    A WAV that plays: silence.
    """
    made = io.BytesIO()
    with wave.open(made, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(bytes(2 * int(8000 * seconds)))
    return made.getvalue()


MP4 = box(b"ftyp", b"isom\0\0\2\0") + box(b"moov", b"index") + box(b"mdat", b"content")
PNG = b"\x89PNG\r\n\x1a\n" + b"x" * 30 + b"\0\0\0\0IEND\xaeB`\x82"
WEBM = b"\x1a\x45\xdf\xa3\x84webm" + b"\x18\x53\x80\x67\x85hello"

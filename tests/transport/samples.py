"""
The smallest files of some kinds.
"""


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


MP4 = box(b"ftyp", b"isom\0\0\2\0") + box(b"moov", b"index") + box(b"mdat", b"content")
PNG = b"\x89PNG\r\n\x1a\n" + b"x" * 30 + b"\0\0\0\0IEND\xaeB`\x82"
WEBM = b"\x1a\x45\xdf\xa3\x84webm" + b"\x18\x53\x80\x67\x85hello"

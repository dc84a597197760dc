"""
Pictures in, a whole H.264 MP4 out.
"""

from collections.abc import Callable, Iterable
from fractions import Fraction
from pathlib import Path
from typing import cast

import av
from av.video.reformatter import ColorRange, Colorspace
from av.video.stream import VideoStream
from PIL import Image

# The first that this FFmpeg has. Hardware encoders are left out: they do not give the same bytes each time.
_ENCODERS = ("libx264", "libopenh264", "h264")
_BT709 = 1


class NoEncoder(RuntimeError):
    """
    The installed PyAV has no H.264 encoder.
    """


def write_film(
    frames: Iterable[Image.Image],
    out: Path,
    *,
    size: tuple[int, int],
    fps: int,
    preset: str = "veryfast",
    on_frame: Callable[[int], None] | None = None,
) -> None:
    """
    Encode RGB pictures of `size` (even pixels) into an MP4 that players can start before they have all of it.

    One thread and no date or version in the metadata: the same pictures give the same bytes on the same libraries.
    `on_frame` is told the count of frames encoded so far.

    Raises:
        NoEncoder: There is none for H.264.
    """
    with av.open(str(out), "w", format="mp4", options={"movflags": "+faststart", "fflags": "+bitexact"}) as film:
        options = {"preset": preset, "crf": "21", "threads": "1"}
        stream = cast("VideoStream", film.add_stream(_encoder(), rate=fps, options=options))
        stream.width, stream.height = size
        stream.pix_fmt = "yuv420p"
        context = stream.codec_context
        context.thread_count = 1
        context.colorspace = context.color_primaries = context.color_trc = _BT709
        for index, picture in enumerate(frames):
            frame = _frame_of(picture).reformat(
                format="yuv420p", dst_colorspace=Colorspace.ITU709, dst_color_range=ColorRange.MPEG
            )
            frame.pts, frame.time_base = index, Fraction(1, fps)
            film.mux(stream.encode(frame))
            if on_frame:
                on_frame(index + 1)
        film.mux(stream.encode(None))


def _frame_of(picture: Image.Image) -> av.VideoFrame:
    frame: av.VideoFrame = av.VideoFrame.from_image(picture)  # type: ignore[no-untyped-call]
    return frame


def _encoder() -> str:
    for name in _ENCODERS:
        try:
            av.codec.Codec(name, "w")
        except av.codec.codec.UnknownCodecError:
            continue
        return name
    raise NoEncoder("this PyAV has no H.264 encoder")

"""
What stands around the picture: a strip of facts above, the prompt and a running line below.
"""

from collections.abc import Callable
from dataclasses import dataclass

from PIL import Image, ImageDraw

from vidrelay.providers.preview.job import RenderJob
from vidrelay.providers.preview.lettering import Lettering
from vidrelay.providers.preview.palette import Colour

PAPER: Colour = (13, 14, 18)
INK: Colour = (240, 238, 230)
FAINT: Colour = (142, 146, 156)
_SMALLEST_PRINT = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """
    Where things are in a frame, in pixels: the picture fills its width from `top` to `bottom`.
    """

    width: int
    height: int
    top: int
    bottom: int
    margin: int
    print_size: int
    caption_size: int

    @property
    def picture(self) -> tuple[int, int]:
        """
        The picture's width and height.
        """
        return self.width, self.bottom - self.top


def lay_out(width: int, height: int) -> Layout:
    """
    Divide a frame; a tall one gets a larger share of caption.
    """
    short, tall = min(width, height), height > width
    top = round(max(8, short * 0.058))
    below = round(short * (0.305 if tall else 0.2))
    return Layout(
        width=width,
        height=height,
        top=top,
        bottom=height - below,
        margin=round(width * 0.03),
        print_size=max(6, round(short * 0.024)),
        caption_size=max(8, round(short * 0.041)),
    )


class Slate:
    """
    The frame around the picture; most of it is drawn once, the timecode and the running line per frame.
    """

    def __init__(
        self, job: RenderJob, accent: Colour, *, letters: Callable[[int], Lettering] = Lettering, facts: str = ""
    ) -> None:
        """
        `accent` colours the running line; `facts` is added to the small print.
        """
        self.layout = lay_out(job.width, job.height)
        self._job, self._accent = job, accent
        self._print, self._caption = letters(self.layout.print_size), letters(self.layout.caption_size)
        self._still = Image.new("RGB", (job.width, job.height), PAPER)
        self._write(ImageDraw.Draw(self._still), facts)

    def frame(self, picture: Image.Image, index: int) -> Image.Image:
        """
        The whole frame with the picture in it, as it is at that frame of the clip.
        """
        frame = self._still.copy()
        frame.paste(picture, (0, self.layout.top))
        draw = ImageDraw.Draw(frame)
        self._run(draw, (index + 1) / self._job.frames)
        if self._legible:
            code = self._timecode(index)
            x = self.layout.width - self.layout.margin - self._print.width("00:00:00")
            self._print.draw(draw, (x, self._print_base), code, INK)
        return frame

    @property
    def _legible(self) -> bool:
        return self.layout.print_size >= _SMALLEST_PRINT

    @property
    def _print_base(self) -> float:
        return self.layout.top / 2 + self.layout.print_size * 0.36

    def _write(self, draw: ImageDraw.ImageDraw, facts: str) -> None:
        layout, job = self.layout, self._job
        if not self._legible:
            return
        room = layout.width - 2 * layout.margin
        size = layout.caption_size
        shown = " ".join(job.prompt.split()) or "(no prompt)"
        space = layout.height - layout.bottom
        lines = self._caption.wrap(
            shown, room, max(1, int((space - layout.print_size * 2.4 - size / 2) / (size * 1.35)))
        )
        base = layout.bottom + size * 1.5
        for line in lines:
            self._caption.draw(draw, (layout.margin, base), line, INK)
            base += size * 1.35
        self._fine_print(draw, facts, room)
        self._print.draw(draw, (layout.margin, self._print_base), "PREVIEW", INK)
        x = layout.margin + self._print.width("PREVIEW  ")
        self._print.draw(draw, (x, self._print_base), "local animatic", FAINT)

    def _fine_print(self, draw: ImageDraw.ImageDraw, facts: str, room: float) -> None:
        layout, job = self.layout, self._job
        parts = [
            f"seed {job.seed}",
            job.aspect_ratio,
            f"{job.width}×{job.height}",
            f"{job.seconds:g} s",
            f"{job.fps} fps",
        ]
        parts += [part for part in (job.style, facts) if part]
        if lost := self._caption.missing("".join(job.prompt.split())):
            parts.append(f"{lost} characters have no font here")
        line = self._print.wrap("   ·   ".join(parts), room, 1)[0]
        self._print.draw(draw, (layout.margin, layout.height - layout.print_size * 1.1), line, FAINT)

    def _run(self, draw: ImageDraw.ImageDraw, share: float) -> None:
        layout = self.layout
        thick = max(2, round(layout.height * 0.004))
        draw.rectangle((0, layout.bottom, layout.width, layout.bottom + thick - 1), fill=(44, 46, 54))
        draw.rectangle((0, layout.bottom, round(layout.width * share), layout.bottom + thick - 1), fill=self._accent)

    def _timecode(self, index: int) -> str:
        seconds, frame = divmod(index, self._job.fps)
        return f"{seconds // 60:02}:{seconds % 60:02}:{frame:02}"

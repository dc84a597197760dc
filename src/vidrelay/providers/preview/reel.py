"""
Reference images as a film: a slow pan and zoom over each, one fading into the next.
"""

from collections.abc import Sequence
from pathlib import Path

from PIL import Image, ImageOps

from vidrelay.providers.preview.chance import Dice

MAX_IMAGE_PIXELS = 40_000_000
_FORMATS = ("PNG", "JPEG", "WEBP")
_ROOM = 1.22
_PAPER = (18, 19, 24)


class Reel:
    """
    The references in order, sharing the clip's time evenly.
    """

    def __init__(self, paths: Sequence[Path], size: tuple[int, int], seconds: float, *, seed: int) -> None:
        """
        `size` is the picture's in pixels, `seconds` the clip's length.

        Raises:
            OSError: One of them cannot be read as a picture.
        """
        self._size = size
        self._shots = [_Shot(path, size, Dice("shot", seed, number)) for number, path in enumerate(paths)]
        self._turn = seconds / len(self._shots)
        self._fade = min(0.8, self._turn / 3)

    def picture(self, seconds: float) -> Image.Image:
        """
        What is seen at that time.
        """
        current = min(int(seconds / self._turn), len(self._shots) - 1)
        into = seconds - current * self._turn
        picture = self._shots[current].at(self._share(into))
        left = self._turn - into
        if left < self._fade and current + 1 < len(self._shots):
            following = self._shots[current + 1].at(self._share(-left))
            picture = Image.blend(picture, following, 1 - left / self._fade)
        return picture

    def _share(self, into: float) -> float:
        """
        How far a shot has gone, from 0 when it begins to fade in to 1 when it is gone.
        """
        return (into + self._fade) / (self._turn + self._fade)


class _Shot:
    """
    One picture and the camera's way over it.
    """

    def __init__(self, path: Path, size: tuple[int, int], dice: Dice) -> None:
        self._size = size
        self._image = _covering(path, size)
        inward = dice.number() < 0.6
        corners = [(dice.number(), dice.number()), (dice.number(), dice.number())]
        wide, close = 1.0, 1 / _ROOM
        self._from, self._to = (wide, close) if inward else (close, wide)
        self._corners = corners

    def at(self, share: float) -> Image.Image:
        """
        The part that the camera sees, at a share of its way.
        """
        eased = share * share * (3 - 2 * share) * 0.6 + share * 0.4
        zoom = self._from + (self._to - self._from) * eased
        image, (width, height) = self._image, self._size
        fit = min(image.width / width, image.height / height) * zoom
        across, down = width * fit, height * fit
        (x0, y0), (x1, y1) = self._corners
        left = (image.width - across) * (x0 + (x1 - x0) * eased)
        top = (image.height - down) * (y0 + (y1 - y0) * eased)
        box = (left, top, min(left + across, image.width), min(top + down, image.height))
        return image.resize(self._size, Image.Resampling.BILINEAR, box=box)


def _covering(path: Path, size: tuple[int, int]) -> Image.Image:
    """
    The picture upright, on plain paper where it is clear, large enough to cover the frame with room to move.
    """
    Image.MAX_IMAGE_PIXELS = MAX_IMAGE_PIXELS
    with Image.open(path, formats=_FORMATS) as opened:
        opened.draft("RGB", (round(size[0] * _ROOM * 1.5), round(size[1] * _ROOM * 1.5)))
        upright = ImageOps.exif_transpose(opened).convert("RGBA")
    scale = max(size[0] / upright.width, size[1] / upright.height) * _ROOM
    fitted = upright.resize(
        (max(1, round(upright.width * scale)), max(1, round(upright.height * scale))), reducing_gap=2.0
    )
    paper = Image.new("RGB", fitted.size, _PAPER)
    paper.paste(fitted, (0, 0), fitted)
    return paper

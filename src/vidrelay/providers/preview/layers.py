"""
The pieces a scene is stacked from: strips that repeat sideways, and how they are drawn smooth.

Shapes are drawn once, at twice their size, and only cut and pasted per frame: that is what makes a frame cheap.
"""

import math
from collections.abc import Callable, Sequence
from typing import Protocol

from PIL import Image, ImageDraw

from vidrelay.providers.preview.chance import Dice
from vidrelay.providers.preview.palette import Colour, gradient

_FINE = 2
_PHASES = 4

Point = tuple[float, float]


class Drawn(Protocol):
    """
    Something that is put on each frame's canvas.
    """

    def draw(self, canvas: Image.Image, seconds: float) -> None:
        """
        Draw it as it is at that time of the clip.
        """
        ...


class Strip:
    """
    A picture with transparency that repeats sideways and slides by quarters of a pixel.
    """

    def __init__(
        self, image: Image.Image, top: float, *, speed: float, bob: float = 0, bob_seconds: float = 4, shift: float = 0
    ) -> None:
        """
        `top` is its upper edge in canvas pixels, `speed` in pixels a second to the left, `bob` how far it rises and
        sinks in pixels, `shift` where its repeat begins.
        """
        box = image.getbbox() or (0, 0, 1, 1)
        cut = image.crop((0, box[1], image.width, box[3]))
        self._phases = [_slid(cut, phase / _PHASES) for phase in range(_PHASES)]
        self._top, self._speed, self._shift = top + box[1], speed, shift
        self._bob, self._bob_seconds = bob, bob_seconds

    def draw(self, canvas: Image.Image, seconds: float) -> None:
        """
        Paste what is seen of it now.
        """
        steps = round((self._shift + self._speed * seconds) * _PHASES)
        image = self._phases[steps % _PHASES]
        left = -(steps // _PHASES % image.width)
        top = round(self._top + self._bob * math.sin(seconds / self._bob_seconds * math.tau + self._shift))
        while left < canvas.width:
            canvas.paste(image, (left, top), image)
            left += image.width


def _slid(image: Image.Image, by: float) -> Image.Image:
    """
    The picture moved left by a part of a pixel; its right edge takes up its own left one.
    """
    if not by:
        return image
    wide = Image.new(image.mode, (image.width + 1, image.height))
    wide.paste(image)
    wide.paste(image.crop((0, 0, 1, image.height)), (image.width, 0))
    matrix = (1, 0, by, 0, 1, 0)
    return wide.transform(image.size, Image.Transform.AFFINE, matrix, resample=Image.Resampling.BILINEAR)


class Pen:
    """
    Draws a strip's shapes in canvas pixels; what leaves it on one side comes back on the other.
    """

    def __init__(self, size: tuple[int, int]) -> None:
        self.width, self.height = size
        self._mask = Image.new("L", (self.width * _FINE, self.height * _FINE))
        self._draw = ImageDraw.Draw(self._mask)

    def polygon(self, points: Sequence[Point], ink: int = 255) -> None:
        """
        Fill a polygon; `ink` is its opacity, 0 to 255.
        """
        for turn in self._turns(points):
            self._draw.polygon([(round((x + turn) * _FINE), round(y * _FINE)) for x, y in points], fill=ink)

    def ellipse(self, x: float, y: float, across: float, down: float, ink: int = 255) -> None:
        """
        Fill an ellipse around a point, by its two radii.
        """
        for turn in self._turns([(x - across, y), (x + across, y)]):
            box = (x + turn - across, y - down, x + turn + across, y + down)
            self._draw.ellipse([round(edge * _FINE) for edge in box], fill=ink)

    def mask(self) -> Image.Image:
        """
        What was drawn, smoothed down to its true size.
        """
        return self._mask.reduce(_FINE)

    def filled(self, *stops: Colour) -> Image.Image:
        """
        What was drawn, in a gradient from the top of the strip to its bottom.
        """
        image = gradient((self.width, self.height), stops if len(stops) > 1 else (stops[0], stops[0]))
        image.putalpha(self.mask())
        return image

    def _turns(self, points: Sequence[Point]) -> list[float]:
        left, right = min(x for x, _ in points), max(x for x, _ in points)
        return [turn for turn in (-self.width, 0, self.width) if right + turn >= 0 and left + turn <= self.width]


def ground(pen: Pen, line: Callable[[float], float], *, step: int = 3) -> None:
    """
    Fill everything under a line, given as its height in pixels from the strip's top at each x.
    """
    points: list[Point] = [(x, line(x)) for x in range(0, pen.width, step)]
    pen.polygon([(0, pen.height), *points, (pen.width, line(pen.width)), (pen.width, pen.height)])


def soft_line(dice: Dice, width: int, low: float, high: float, waves: int = 3) -> Callable[[float], float]:
    """
    A smooth line between two heights (pixels from the top) that meets itself after `width`.
    """
    parts = [(dice.whole(1 + part, 3 + 2 * part), dice.number() * math.tau, 0.6**part) for part in range(waves)]
    most = sum(size for _, _, size in parts)

    def line(x: float) -> float:
        wave = sum(size * math.sin(x / width * math.tau * count + phase) for count, phase, size in parts)
        return low + (high - low) * (0.5 - 0.5 * wave / most)

    return line


def sharp_line(dice: Dice, width: int, low: float, high: float, peaks: int = 5) -> Callable[[float], float]:
    """
    A jagged line between two heights, as of mountains, that meets itself after `width`.
    """
    heights = [dice.between(0.45, 1) if peak % 2 else dice.between(0, 0.4) for peak in range(2 * peaks)]
    rough = 0.16
    while len(heights) < 2 * peaks * 32:
        following = [*heights[1:], heights[0]]
        between = [(a + b) / 2 + dice.between(-rough, rough) for a, b in zip(heights, following, strict=True)]
        heights = [height for pair in zip(heights, between, strict=True) for height in pair]
        rough *= 0.55
    least, most = min(heights), max(heights)

    def line(x: float) -> float:
        place = (x / width % 1) * len(heights)
        step = int(place) % len(heights)
        height = heights[step] + (heights[(step + 1) % len(heights)] - heights[step]) * (place - int(place))
        return low + (high - low) * (height - least) / (most - least)

    return line

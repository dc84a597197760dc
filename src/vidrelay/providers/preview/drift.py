"""
What is in the air: snow, rain, petals, leaves, fireflies, fog.
"""

import math
from typing import cast

from PIL import Image, ImageDraw, ImageFilter

from vidrelay.providers.preview.layers import Drawn
from vidrelay.providers.preview.palette import Colour, mix
from vidrelay.providers.preview.scenery import WHITE, Stage

_COUNTS = {"snow": 150, "rain": 130, "petals": 46, "leaves": 34, "fireflies": 38}


def air(stage: Stage) -> list[Drawn]:
    """
    What the scene's weather puts before everything else; nothing when it is clear.
    """
    weather = stage.scene.weather
    if weather == "fog":
        return [_Fog(stage)]
    return [_Drift(stage, weather)] if weather in _COUNTS else []


class _Drift:
    """
    Flakes, drops, petals or lights, each on its own way round and round.
    """

    def __init__(self, stage: Stage, kind: str) -> None:
        dice = stage.dice("air", kind)
        self._kind, self._unit = kind, stage.unit
        crowd = max(1.0, stage.width * stage.height / stage.unit**2 / 1.8)
        self._bits = [
            (dice.number(), dice.number(), dice.between(0.35, 1), dice.number() * math.tau)
            for _ in range(int(_COUNTS[kind] * crowd))
        ]
        tints: dict[str, Colour] = {
            "snow": mix(WHITE, stage.palette.middle, 0.12),
            "rain": mix(stage.palette.horizon, WHITE, 0.35),
            "petals": (250, 190, 205),
            "leaves": (214, 112, 40),
            "fireflies": (255, 232, 140),
        }
        self._tint = tints[kind]
        self._stamps = [_stamp(stage.unit * size) for size in (0.004, 0.006, 0.009)]

    def draw(self, canvas: Image.Image, seconds: float) -> None:
        """
        Draw every bit where it is now.
        """
        if self._kind == "rain":
            self._rain(canvas, seconds)
            return
        fall = {"snow": 0.1, "petals": 0.09, "leaves": 0.12, "fireflies": -0.015}[self._kind]
        draw = ImageDraw.Draw(canvas)
        for x, y, near, phase in self._bits:
            sway = 0.02 * math.sin(seconds * (0.8 + near) + phase)
            left = (x + sway + 0.03 * near * seconds) % 1.04 * canvas.width
            top = ((y + fall * near * seconds) % 1.06 - 0.03) * canvas.height
            if self._kind in ("petals", "leaves"):
                self._leaf(draw, left, top, near, seconds * 2 * near + phase)
                continue
            stamp = self._stamps[min(2, int(near * 3))]
            if self._kind == "fireflies":
                glow = max(0.0, math.sin(seconds * (1 + near) + phase))
                stamp = self._stamps[2].point([round(ink * glow) for ink in range(256)])
            canvas.paste(self._tint, (round(left), round(top)), stamp)

    def _rain(self, canvas: Image.Image, seconds: float) -> None:
        draw = ImageDraw.Draw(canvas)
        for x, y, near, phase in self._bits:
            left = (x - 0.12 * seconds * near + phase) % 1 * canvas.width * 1.1
            top = ((y + 1.5 * near * seconds) % 1.2 - 0.1) * canvas.height
            long = self._unit * 0.05 * near
            spot = min(max(0, int(left)), canvas.width - 1), min(max(0, int(top)), canvas.height - 1)
            behind = cast("Colour", canvas.getpixel(spot))
            ink = mix(behind, self._tint, 0.2 + 0.3 * near)
            draw.line((left, top, left - long * 0.16, top + long), fill=ink, width=max(1, round(self._unit * 0.0022)))

    def _leaf(self, draw: ImageDraw.ImageDraw, x: float, y: float, near: float, turn: float) -> None:
        long, wide = self._unit * 0.013 * near, self._unit * 0.006 * near * abs(math.cos(turn * 0.7)) + 1
        along, across = (math.cos(turn), math.sin(turn)), (-math.sin(turn), math.cos(turn))
        spots = ((long, 0.0), (0.0, wide), (-long, 0.0), (0.0, -wide))
        points = [(x + along[0] * a + across[0] * b, y + along[1] * a + across[1] * b) for a, b in spots]
        draw.polygon(points, fill=mix(self._tint, WHITE, 0.25 * near))


class _Fog:
    """
    Two veils that pass over each other.
    """

    def __init__(self, stage: Stage) -> None:
        dice = stage.dice("fog")
        wide, tall = stage.width // 8 * 2, max(8, stage.height // 8)
        veil = Image.new("L", (wide, tall))
        draw = ImageDraw.Draw(veil)
        for _ in range(26):
            x, y = dice.between(0, wide), tall * dice.between(0.4, 1)
            across, down = wide * dice.between(0.06, 0.2), tall * dice.between(0.05, 0.14)
            for turn in (-wide, 0, wide):
                box = (x + turn - across, y - down, x + turn + across, y + down)
                draw.ellipse(box, fill=round(dice.between(60, 140)))
        veil = veil.filter(ImageFilter.GaussianBlur(tall * 0.08))
        self._veil = veil.resize((wide * 8, stage.height), Image.Resampling.BICUBIC)
        self._tint, self._speed = mix(stage.palette.horizon, WHITE, 0.2), stage.unit * 0.03

    def draw(self, canvas: Image.Image, seconds: float) -> None:
        """
        Lay the veils over the canvas.
        """
        left = -(round(seconds * self._speed) % self._veil.width)
        while left < canvas.width:
            canvas.paste(self._tint, (left, 0), self._veil)
            left += self._veil.width


def _stamp(radius: float) -> Image.Image:
    """
    A small soft disc.
    """
    edge = max(2, math.ceil(radius * 2))
    disc = Image.new("L", (edge * 4, edge * 4))
    ImageDraw.Draw(disc).ellipse((edge, edge, edge * 3, edge * 3), fill=255)
    return disc.filter(ImageFilter.GaussianBlur(edge * 0.35)).reduce(2)

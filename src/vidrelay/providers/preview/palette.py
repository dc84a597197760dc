"""
The colours of a scene: by hour and place, turned a little by the seed.
"""

import colorsys
import re
from dataclasses import dataclass

from PIL import Image

from vidrelay.providers.preview.chance import Dice
from vidrelay.providers.preview.scene import Scene

Colour = tuple[int, int, int]

_SKIES: dict[str, tuple[str, str, str, str]] = {  # top, middle, horizon, the sun's or moon's light
    "day": ("2f6fb5", "79b4e0", "dff0f5", "fff6d8"),
    "dawn": ("4a5a96", "d893a8", "ffd9a8", "fff0cf"),
    "dusk": ("2b2a5c", "b8486b", "ffa65a", "ffe3a0"),
    "night": ("070b1f", "15224a", "35508a", "f3f0dc"),
}
_GROUNDS: dict[str, tuple[str, str]] = {  # the nearest ground by day, its tint far away
    "sea": ("0d3b5c", "3b83a3"),
    "city": ("20242f", "6b7488"),
    "forest": ("12301f", "4e8060"),
    "desert": ("7a3f22", "d99a5b"),
    "mountains": ("1f2d3d", "6d87a3"),
    "meadow": ("2c4a1e", "86a858"),
    "space": ("1a1033", "5b3b86"),
}
_NAMED: dict[str, str] = {  # a colour that the prompt names goes to whoever is in the scene
    "red 红": "d8352a",
    "orange 橙": "ea7a2c",
    "yellow 黄": "f2bf3c",
    "green 绿": "3f9a58",
    "blue 蓝": "3574c4",
    "purple violet 紫": "7c4fb0",
    "pink 粉": "ee8fae",
    "white 白": "f2f1ea",
    "black 黑": "1c1d22",
}
_STYLES: dict[str, float] = {"noir": 0.0, "mono": 0.0, "black": 0.0, "watercolor": 0.7, "vintage": 0.55, "pastel": 0.6}


@dataclass(frozen=True, slots=True, kw_only=True)
class Palette:
    """
    Sky from top to horizon, ground from far to near, the light, and a colour that stands out.
    """

    top: Colour
    middle: Colour
    horizon: Colour
    light: Colour
    far: Colour
    near: Colour
    accent: Colour
    dark: bool


def paint(scene: Scene, *, seed: int, prompt: str, style: str = "") -> Palette:
    """
    Choose the colours; a style such as "noir" or "pastel" takes saturation away.
    """
    dice = Dice("palette", prompt, seed)
    turn = dice.between(-0.035, 0.035)
    fade = min([1.0, *(keep for name, keep in _STYLES.items() if name in style.lower())])
    sky = [_shift(_hex(text), turn, fade) for text in _SKIES[scene.hour]]
    near, far = (_shift(_hex(text), turn, fade) for text in _GROUNDS[scene.place])
    if scene.weather == "snow" and scene.place != "sea":
        near, far = mix(near, (214, 224, 236), 0.55), mix(far, (236, 241, 247), 0.7)
    if scene.weather in ("rain", "fog", "snow"):
        grey = mix(sky[1], (128, 136, 150), 0.5)
        sky[:3] = [mix(colour, grey, 0.45) for colour in sky[:3]]
    shade = {"day": 0.0, "dawn": 0.18, "dusk": 0.38, "night": 0.62}[scene.hour]
    near = mix(near, mix(sky[0], (0, 0, 0), 0.55), shade)
    far = mix(mix(far, sky[2], 0.35), sky[1], shade)
    usual = dice.pick(("e24a33", "f4b03a", "f0f0e8", "409c91"))
    accent = _shift(_hex(_named(prompt) or usual), 0, fade)
    return Palette(
        top=sky[0],
        middle=sky[1],
        horizon=sky[2],
        light=sky[3],
        far=far,
        near=near,
        accent=mix(accent, near, shade * 0.35),
        dark=scene.hour == "night",
    )


def mix(one: Colour, other: Colour, share: float) -> Colour:
    """
    `one` with a share (0 to 1) of `other` in it.
    """
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(one, other, strict=True))
    return red, green, blue


def gradient(size: tuple[int, int], stops: tuple[Colour, ...]) -> Image.Image:
    """
    An RGB picture that runs evenly from the first colour at the top to the last at the bottom.
    """
    height = max(2, size[1])
    column = Image.new("RGB", (1, height))
    for row in range(height):
        place = row / (height - 1) * (len(stops) - 1)
        step = min(int(place), len(stops) - 2)
        column.putpixel((0, row), mix(stops[step], stops[step + 1], place - step))
    return column.resize(size)


def _named(prompt: str) -> str | None:
    """
    The first colour of `_NAMED` that the prompt says, if any.
    """
    spoken = set(re.findall(r"[a-z]+", prompt.lower()))
    for names, colour in _NAMED.items():
        if any(name in (spoken if name.isascii() else prompt) for name in names.split()):
            return colour
    return None


def _hex(text: str) -> Colour:
    red, green, blue = bytes.fromhex(text)
    return red, green, blue


def _shift(colour: Colour, turn: float, fade: float) -> Colour:
    hue, light, strength = colorsys.rgb_to_hls(*(part / 255 for part in colour))
    red, green, blue = (round(part * 255) for part in colorsys.hls_to_rgb((hue + turn) % 1, light, strength * fade))
    return red, green, blue

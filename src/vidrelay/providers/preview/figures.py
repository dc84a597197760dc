"""
Who is in the scene: small silhouettes that move across it.

A silhouette is a table of shapes in a square of side 1 (x to the right, y down, feet at y = 1): polygons as points,
ellipses as (x, y, across, down); the first word of each says its ink.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from PIL import Image, ImageDraw

from vidrelay.providers.preview.layers import Drawn
from vidrelay.providers.preview.palette import Colour, mix
from vidrelay.providers.preview.scenery import WHITE, Stage

_FINE = 4

Shape = tuple[str, tuple[tuple[float, float], ...]] | tuple[str, float, float, float, float]
Path = Callable[[float, float], tuple[float, float]]
"""Where a figure stands (0 to 1 of the canvas, by its feet's middle) at a share of the clip and a time in seconds."""

_SHAPES: dict[str, tuple[Shape, ...]] = {
    "boat": (
        ("accent", ((0.52, 0.1), (0.52, 0.72), (0.92, 0.72))),
        ("pale", ((0.48, 0.02), (0.48, 0.72), (0.12, 0.72))),
        ("dark", ((0.49, 0.0), (0.52, 0.0), (0.52, 0.8), (0.49, 0.8))),
        ("dark", ((0.06, 0.78), (0.96, 0.78), (0.84, 0.97), (0.2, 0.97))),
    ),
    "lighthouse": (
        ("dark", ((0.0, 1.0), (0.12, 0.88), (0.3, 0.8), (0.7, 0.8), (0.9, 0.9), (1.0, 1.0))),
        ("pale", ((0.4, 0.84), (0.44, 0.24), (0.56, 0.24), (0.6, 0.84))),
        ("accent", ((0.415, 0.62), (0.425, 0.48), (0.575, 0.48), (0.585, 0.62))),
        ("accent", ((0.435, 0.35), (0.44, 0.24), (0.56, 0.24), (0.565, 0.35))),
        ("light", ((0.455, 0.23), (0.455, 0.15), (0.545, 0.15), (0.545, 0.23))),
        ("dark", ((0.43, 0.15), (0.5, 0.06), (0.57, 0.15))),
        ("dark", ((0.42, 0.25), (0.42, 0.225), (0.58, 0.225), (0.58, 0.25))),
    ),
    "whale": (
        ("dark", 0.5, 0.62, 0.4, 0.2),
        ("dark", ((0.82, 0.6), (1.0, 0.34), (0.97, 0.56), (1.0, 0.7), (0.84, 0.7))),
        ("pale", ((0.16, 0.72), (0.5, 0.8), (0.36, 0.81), (0.22, 0.78))),
        ("pale", 0.24, 0.58, 0.014, 0.014),
    ),
    "balloon": (
        ("accent", 0.5, 0.34, 0.32, 0.34),
        ("pale", 0.5, 0.34, 0.12, 0.34),
        ("accent", ((0.22, 0.5), (0.78, 0.5), (0.58, 0.78), (0.42, 0.78))),
        ("pale", ((0.4, 0.55), (0.6, 0.55), (0.55, 0.78), (0.45, 0.78))),
        ("dark", ((0.43, 0.86), (0.57, 0.86), (0.55, 0.98), (0.45, 0.98))),
        ("dark", ((0.43, 0.78), (0.44, 0.78), (0.455, 0.86), (0.445, 0.86))),
        ("dark", ((0.56, 0.78), (0.57, 0.78), (0.555, 0.86), (0.545, 0.86))),
    ),
    "rocket": (
        ("light", ((0.44, 0.82), (0.56, 0.82), (0.5, 1.0))),
        ("accent", ((0.4, 0.58), (0.26, 0.84), (0.42, 0.78))),
        ("accent", ((0.6, 0.58), (0.74, 0.84), (0.58, 0.78))),
        ("pale", ((0.5, 0.04), (0.58, 0.18), (0.62, 0.38), (0.6, 0.82), (0.4, 0.82), (0.38, 0.38), (0.42, 0.18))),
        ("dark", 0.5, 0.36, 0.055, 0.055),
    ),
    "car": (
        (
            "accent",
            (
                (0.04, 0.9),
                (0.04, 0.7),
                (0.24, 0.64),
                (0.36, 0.46),
                (0.68, 0.46),
                (0.82, 0.64),
                (0.97, 0.7),
                (0.97, 0.9),
            ),
        ),
        ("pale", ((0.29, 0.64), (0.38, 0.51), (0.51, 0.51), (0.51, 0.64))),
        ("pale", ((0.55, 0.64), (0.55, 0.51), (0.66, 0.51), (0.75, 0.64))),
        ("dark", 0.24, 0.9, 0.09, 0.09),
        ("dark", 0.76, 0.9, 0.09, 0.09),
        ("light", 0.955, 0.755, 0.022, 0.022),
    ),
    "house": (
        ("dark", ((0.12, 1.0), (0.12, 0.52), (0.88, 0.52), (0.88, 1.0))),
        ("accent", ((0.02, 0.54), (0.5, 0.16), (0.98, 0.54))),
        ("dark", ((0.68, 0.34), (0.68, 0.14), (0.78, 0.14), (0.78, 0.42))),
        ("light", ((0.24, 0.84), (0.24, 0.64), (0.42, 0.64), (0.42, 0.84))),
        ("pale", ((0.58, 1.0), (0.58, 0.66), (0.74, 0.66), (0.74, 1.0))),
    ),
    "animal": (
        ("dark", 0.44, 0.6, 0.26, 0.135),
        ("dark", ((0.6, 0.62), (0.66, 0.34), (0.8, 0.36), (0.7, 0.66))),
        ("dark", 0.76, 0.34, 0.12, 0.09),
        ("dark", ((0.66, 0.3), (0.67, 0.14), (0.76, 0.27))),
        ("dark", ((0.76, 0.27), (0.81, 0.14), (0.84, 0.3))),
        ("dark", ((0.22, 0.6), (0.03, 0.36), (0.06, 0.32), (0.28, 0.52))),
        ("dark", ((0.22, 0.6), (0.34, 0.62), (0.29, 1.0), (0.23, 1.0))),
        ("dark", ((0.33, 0.64), (0.4, 0.64), (0.38, 1.0), (0.33, 1.0))),
        ("dark", ((0.54, 0.64), (0.61, 0.64), (0.58, 1.0), (0.53, 1.0))),
        ("dark", ((0.6, 0.6), (0.69, 0.6), (0.67, 1.0), (0.62, 1.0))),
    ),
    "figure": (
        ("dark", 0.5, 0.13, 0.085, 0.095),
        ("accent", ((0.42, 0.24), (0.58, 0.24), (0.68, 0.68), (0.34, 0.68))),
        ("pale", ((0.58, 0.26), (0.7, 0.28), (0.74, 0.5), (0.6, 0.52))),
        ("dark", ((0.44, 0.27), (0.5, 0.29), (0.4, 0.52), (0.34, 0.5))),
        ("dark", ((0.41, 0.66), (0.5, 0.66), (0.42, 1.0), (0.34, 1.0))),
        ("dark", ((0.51, 0.66), (0.6, 0.66), (0.66, 1.0), (0.58, 1.0))),
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Role:
    """
    How large a figure is (units of the stage), whether it goes before the nearest land, and how it moves.
    """

    size: float
    front: bool
    path: Path


_ROLES: dict[str, _Role] = {
    "boat": _Role(size=0.24, front=False, path=lambda s, t: (0.26 + 0.34 * s, 0.765 + 0.006 * math.sin(t * 1.7))),
    "lighthouse": _Role(size=0.5, front=False, path=lambda s, _: (0.86 - 0.02 * s, 0.7)),
    "whale": _Role(size=0.3, front=False, path=lambda s, _: (0.72 - 0.34 * s, 0.86 - 0.1 * math.sin(s * math.pi))),
    "balloon": _Role(size=0.3, front=False, path=lambda s, t: (0.3 + 0.22 * s, 0.56 - 0.14 * s + 0.004 * math.sin(t))),
    "rocket": _Role(size=0.34, front=False, path=lambda s, _: (0.6, 0.78 - 0.62 * s * s)),
    "car": _Role(size=0.2, front=True, path=lambda s, _: (-0.08 + 1.0 * s, 0.965)),
    "house": _Role(size=0.26, front=True, path=lambda s, _: (0.3 - 0.05 * s, 0.935)),
    "animal": _Role(size=0.19, front=True, path=lambda s, t: (0.3 + 0.2 * s, 0.935 - 0.006 * abs(math.sin(t * 4)))),
    "figure": _Role(size=0.23, front=True, path=lambda s, t: (0.62 - 0.12 * s, 0.94 - 0.005 * abs(math.sin(t * 4)))),
}


class _Figure:
    """
    One silhouette on its way.
    """

    def __init__(self, stage: Stage, name: str, seconds: float, shift: float) -> None:
        role = _ROLES[name]
        self._image = _silhouette(stage, name, role.size)
        self._path, self._length, self._shift = role.path, max(seconds, 0.1), shift
        self._stage = stage

    def draw(self, canvas: Image.Image, seconds: float) -> None:
        """
        Draw it where it is now.
        """
        x, y = self._path(min(1.0, seconds / self._length), seconds)
        left = round((x + self._shift) * canvas.width - self._image.width / 2)
        canvas.paste(self._image, (left, round(y * canvas.height - self._image.height)), self._image)


class _Flock:
    """
    Birds that beat their wings.
    """

    def __init__(self, stage: Stage, seconds: float) -> None:
        dice = stage.dice("flock")
        self._birds = [
            (dice.between(-0.14, 0.14), dice.between(-0.07, 0.07), dice.between(0.6, 1.2), dice.number() * math.tau)
            for _ in range(7)
        ]
        self._ink = mix(stage.palette.near, stage.palette.middle, 0.15 if not stage.palette.dark else 0.7)
        self._unit, self._length = stage.unit, max(seconds, 0.1)

    def draw(self, canvas: Image.Image, seconds: float) -> None:
        """
        Draw each bird with its wings as they are now.
        """
        draw, share = ImageDraw.Draw(canvas), seconds / self._length
        for away, up, size, phase in self._birds:
            x = canvas.width * (0.25 + 0.4 * share + away)
            y = canvas.height * (0.3 - 0.06 * share + up + 0.006 * math.sin(seconds * 1.3 + phase))
            wing = self._unit * 0.022 * size
            lift = wing * 0.75 * math.sin(seconds * 6 + phase)
            points = (
                (x - wing, y - lift),
                (x - wing * 0.4, y - wing * 0.18),
                (x, y),
                (x + wing * 0.4, y - wing * 0.18),
            )
            draw.line(
                (*points, (x + wing, y - lift)), fill=self._ink, width=max(1, round(self._unit * 0.004)), joint="curve"
            )


def cast(stage: Stage, seconds: float) -> tuple[list[Drawn], list[Drawn]]:
    """
    The scene's figures: those behind the nearest land, and those before it.
    """
    behind: list[Drawn] = []
    front: list[Drawn] = []
    for count, name in enumerate(stage.scene.subjects):
        if name == "birds":
            behind.append(_Flock(stage, seconds))
            continue
        shift = stage.dice("place", name).between(-0.06, 0.06) + 0.1 * (count // 2)
        (front if _ROLES[name].front else behind).append(_Figure(stage, name, seconds, shift))
    return behind, front


def _silhouette(stage: Stage, name: str, size: float) -> Image.Image:
    palette = stage.palette
    night = palette.dark
    dark = mix(palette.near, (0, 0, 0), 0.55)
    inks: dict[str, Colour] = {
        "dark": dark,
        "pale": mix(WHITE, palette.middle, 0.55 if night else 0.15),
        "accent": mix(palette.accent, dark, 0.35 if night else 0.0),
        "light": (255, 214, 130),
    }
    edge = max(6, round(stage.unit * size))
    image = Image.new("RGBA", (edge * _FINE, edge * _FINE), (*dark, 0))
    draw = ImageDraw.Draw(image)
    scale = edge * _FINE
    for shape in _SHAPES[name]:
        if len(shape) == 2:
            draw.polygon([(round(x * scale), round(y * scale)) for x, y in shape[1]], fill=inks[shape[0]])
        else:
            ink, x, y, across, down = shape
            box = ((x - across) * scale, (y - down) * scale, (x + across) * scale, (y + down) * scale)
            draw.ellipse(box, fill=inks[ink])
    return image.reduce(_FINE)

"""
Where a scene takes place: sky and light, then strips of land or water from far to near.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from PIL import Image, ImageDraw, ImageFilter

from vidrelay.providers.preview.chance import Dice
from vidrelay.providers.preview.layers import Drawn, Pen, Strip, ground, sharp_line, soft_line
from vidrelay.providers.preview.palette import Colour, Palette, gradient, mix
from vidrelay.providers.preview.scene import Scene

WHITE: Colour = (255, 255, 255)
_ASHORE = {"figure", "animal", "house", "car"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """
    The room there is to draw in: the canvas in pixels, the camera's speed in pixels a second at the nearest strip.
    """

    width: int
    height: int
    pan: float
    scene: Scene
    palette: Palette
    seed: int

    @property
    def unit(self) -> float:
        """
        The length that shapes are measured by, so that wide and tall frames look alike.
        """
        return min(self.height, self.width * 0.8)

    @property
    def horizon(self) -> float:
        """
        How far down the horizon is, in pixels.
        """
        return self.height * 0.62

    def dice(self, *words: object) -> Dice:
        """
        Numbers for one purpose.
        """
        return Dice(self.seed, self.scene.place, *words)

    def pen(self, height: float) -> Pen:
        """
        A pen for a strip of that height; strips repeat after one and a half canvases.
        """
        return Pen((max(8, int(self.width * 1.5)), max(4, math.ceil(height))))

    def strip(self, image: Image.Image, depth: float, *, own: float = 0, bob: float = 0, down: float = 0) -> Strip:
        """
        Stand an image on the canvas's lower edge (`down` pixels lower); `depth` is 0 far away, 1 nearest.
        """
        dice = self.dice("strip", depth)
        top = self.height - image.height + down
        speed = self.pan * depth + own
        return Strip(image, top, speed=speed, bob=bob, bob_seconds=3 + 3 * dice.number(), shift=dice.number() * 40)

    def colour(self, depth: float) -> Colour:
        """
        The ground's colour at a depth: farther is nearer to the air's.
        """
        far = mix(self.palette.far, self.palette.horizon, max(0.0, 0.75 - 1.2 * depth))
        return mix(far, self.palette.near, min(1.0, depth))


def sky(stage: Stage) -> Image.Image:
    """
    The still background: the sky's gradient, stars, and the sun or moon with its glow.
    """
    palette, scene = stage.palette, stage.scene
    picture = gradient((stage.width, stage.height), (palette.top, palette.top, palette.middle, palette.horizon))
    if scene.place != "space":
        upper = gradient((stage.width, max(2, round(stage.horizon))), (palette.top, palette.middle, palette.horizon))
        picture.paste(palette.horizon, (0, 0, *picture.size))
        picture.paste(upper)
    if palette.dark and scene.weather not in ("rain", "fog", "snow"):
        _stars(stage, picture)
    _light(stage, picture)
    return picture


def light_at(stage: Stage) -> tuple[float, float, float]:
    """
    Where the sun or moon stands, and its radius, in pixels.
    """
    dice = stage.dice("light")
    x = stage.width * dice.pick((dice.between(0.18, 0.36), dice.between(0.62, 0.82)))
    height = {"day": 0.2, "night": 0.24, "dawn": 0.5, "dusk": 0.53}[stage.scene.hour]
    size = {"day": 0.055, "night": 0.06, "dawn": 0.085, "dusk": 0.1}[stage.scene.hour]
    return x, stage.height * height, stage.unit * size


def _stars(stage: Stage, picture: Image.Image) -> None:
    dice, draw = stage.dice("stars"), ImageDraw.Draw(picture)
    lowest = stage.height if stage.scene.place == "space" else stage.horizon
    for _ in range(int(stage.width * stage.height / 4500) + 20):
        x, y = dice.between(0, stage.width), lowest * dice.number() ** 1.4
        glow = dice.between(0.25, 1) * (1 - 0.7 * y / stage.height)
        size = stage.unit * dice.pick((0.0008, 0.001, 0.0016, 0.0024))
        draw.ellipse((x - size, y - size, x + size, y + size), fill=mix(stage.palette.top, (235, 240, 255), glow))


def _light(stage: Stage, picture: Image.Image) -> None:
    if stage.scene.place == "space":
        return
    x, y, radius = light_at(stage)
    hidden = stage.scene.weather in ("rain", "fog")
    reach = round(radius * (9 if stage.scene.hour in ("dawn", "dusk") else 6))
    halo = Image.radial_gradient("L").point(lambda ink: round(max(0, 1 - ink / 181) ** 2.2 * (110 if hidden else 190)))
    halo = halo.resize((2 * reach, 2 * reach), Image.Resampling.BICUBIC)
    picture.paste(stage.palette.light, (round(x) - reach, round(y) - reach), halo)
    if hidden:
        return
    edge = math.ceil(radius * 1.1)
    disc = Image.new("L", (edge * 8, edge * 8))
    draw = ImageDraw.Draw(disc)
    middle, wide = edge * 4, radius * 4
    draw.ellipse((middle - wide, middle - wide, middle + wide, middle + wide), fill=255)
    if stage.palette.dark and stage.dice("crescent").number() < 0.5:
        shade = wide * 0.45
        draw.ellipse(
            (middle - wide + shade, middle - wide - shade, middle + wide + shade, middle + wide - shade), fill=0
        )
    picture.paste(stage.palette.light, (round(x) - edge, round(y) - edge), disc.reduce(4))


def clouds(stage: Stage) -> list[Drawn]:
    """
    Two soft banks that drift by themselves; none in space.
    """
    if stage.scene.place == "space":
        return []
    banks: list[Drawn] = []
    for depth, count, ink in ((0.06, 5, 120), (0.14, 4, 150)):
        dice, pen = stage.dice("clouds", depth), stage.pen(stage.horizon)
        for _ in range(count):
            x, y = dice.between(0, pen.width), stage.horizon * dice.between(0.12, 0.7)
            size = stage.unit * dice.between(0.05, 0.11) * (1 + depth * 3)
            for puff in range(7):
                lie = (puff - 3) / 3
                tall = size * (0.5 - 0.32 * lie * lie) * dice.between(0.7, 1.15)
                pen.ellipse(x + lie * size * 2.2, y - tall * 0.4, size * dice.between(0.6, 0.9), tall, ink)
        mask = pen.mask().filter(ImageFilter.GaussianBlur(stage.unit * 0.012))
        if stage.palette.dark:
            mask = mask.point(lambda value: value // 3)
        tint = mix(stage.palette.horizon, WHITE if not stage.palette.dark else stage.palette.middle, 0.55)
        image = Image.new("RGB", mask.size, tint)
        image.putalpha(mask)
        banks.append(Strip(image, 0, speed=stage.pan * depth + stage.unit * 0.012, shift=dice.between(0, pen.width)))
    return banks


def land(stage: Stage) -> tuple[list[Drawn], list[Drawn]]:
    """
    The strips behind and before the place where figures stand, from far to near.
    """
    return _PLACES[stage.scene.place](stage)


def _ridge(
    stage: Stage,
    depth: float,
    tall: float,
    *,
    sharp: bool = False,
    growth: float = 0.3,
    grow: Callable[[Pen, Dice, Callable[[float], float]], None] | None = None,
) -> Strip:
    """
    One line of hills or mountains, `tall` (a share of the canvas) at its highest, and what grows on it, at most
    `growth` units higher.
    """
    dice = stage.dice("ridge", depth)
    room = stage.unit * growth
    pen = stage.pen(stage.height * tall + room)
    high, low = room, room + stage.height * tall * (0.55 if sharp else 0.3)
    line = (sharp_line if sharp else soft_line)(dice, pen.width, low, high)
    ground(pen, line)
    if grow:
        grow(pen, dice, line)
    foot = mix(stage.colour(depth), stage.palette.horizon, 0.45 * (1 - depth))
    return stage.strip(pen.filled(stage.colour(depth), stage.colour(depth), foot), depth)


def _pines(stage: Stage, size: float, count: int) -> Callable[[Pen, Dice, Callable[[float], float]], None]:
    def grow(pen: Pen, dice: Dice, line: Callable[[float], float]) -> None:
        for _ in range(count):
            x, tall = dice.between(0, pen.width), stage.unit * size * dice.between(0.6, 1.25)
            foot = line(x % pen.width) + tall * 0.05
            for tier in range(4):
                top, wide = foot - tall * (1 - tier * 0.2), tall * (0.09 + 0.055 * tier)
                pen.polygon([(x, top), (x + wide, top + tall * 0.32), (x - wide, top + tall * 0.32)])
            trunk, stem = tall * 0.025, foot - tall * 0.2
            pen.polygon([(x - trunk, stem), (x + trunk, stem), (x + trunk, foot), (x - trunk, foot)])

    return grow


def _rounds(stage: Stage, size: float, count: int) -> Callable[[Pen, Dice, Callable[[float], float]], None]:
    def grow(pen: Pen, dice: Dice, line: Callable[[float], float]) -> None:
        for _ in range(count):
            x, tall = dice.between(0, pen.width), stage.unit * size * dice.between(0.6, 1.3)
            foot = line(x % pen.width) + 2
            trunk = tall * 0.035
            pen.polygon(
                [(x - trunk, foot), (x - trunk, foot - tall * 0.5), (x + trunk, foot - tall * 0.5), (x + trunk, foot)]
            )
            for _ in range(6):
                away, up = dice.between(-0.22, 0.22) * tall, dice.between(0.5, 0.85) * tall
                pen.ellipse(x + away, foot - up, tall * dice.between(0.14, 0.22), tall * dice.between(0.12, 0.18))

    return grow


def _mountains(stage: Stage) -> tuple[list[Drawn], list[Drawn]]:
    far = _ridge(stage, 0.08, 0.72, sharp=True)
    middle = _ridge(stage, 0.25, 0.54, sharp=True)
    wooded = _ridge(stage, 0.5, 0.3, grow=_pines(stage, 0.09, 90))
    return [far, middle, wooded], [_ridge(stage, 1.0, 0.13, grow=_pines(stage, 0.24, 14))]


def _forest(stage: Stage) -> tuple[list[Drawn], list[Drawn]]:
    hills = _ridge(stage, 0.08, 0.58, sharp=True)
    far = _ridge(stage, 0.25, 0.44, grow=_pines(stage, 0.14, 110))
    middle = _ridge(stage, 0.5, 0.27, grow=_pines(stage, 0.25, 60))
    return [hills, far, middle], [_ridge(stage, 1.0, 0.1, growth=0.65, grow=_pines(stage, 0.5, 9))]


def _meadow(stage: Stage) -> tuple[list[Drawn], list[Drawn]]:
    far = _ridge(stage, 0.1, 0.5)
    middle = _ridge(stage, 0.3, 0.4, grow=_rounds(stage, 0.09, 16))
    field = _ridge(stage, 0.55, 0.27, grow=_rounds(stage, 0.17, 7))
    near = _ridge(stage, 1.0, 0.13, grow=_flowers(stage))
    return [far, middle, field], [near]


def _flowers(stage: Stage) -> Callable[[Pen, Dice, Callable[[float], float]], None]:
    def grow(pen: Pen, dice: Dice, line: Callable[[float], float]) -> None:
        for _ in range(260):
            x, tall = dice.between(0, pen.width), stage.unit * dice.between(0.015, 0.05)
            foot, lean = line(x % pen.width) + 3, dice.between(-0.5, 0.5) * tall
            pen.polygon([(x - 1.2, foot), (x + lean, foot - tall), (x + 1.2, foot)])
            if dice.number() < 0.25:
                pen.ellipse(x + lean, foot - tall, tall * 0.14, tall * 0.14)

    return grow


def _desert(stage: Stage) -> tuple[list[Drawn], list[Drawn]]:
    mesas = _ridge(stage, 0.06, 0.46, sharp=True)
    dunes: list[Drawn] = [
        mesas,
        *(_ridge(stage, depth, tall) for depth, tall in ((0.2, 0.4), (0.4, 0.31), (0.62, 0.22))),
    ]
    return dunes, [_ridge(stage, 1.0, 0.12)]


def _city(stage: Stage) -> tuple[list[Drawn], list[Drawn]]:
    rows: list[Drawn] = [_skyline(stage, depth, tall) for depth, tall in ((0.1, 0.66), (0.28, 0.54), (0.55, 0.36))]
    street = stage.pen(stage.height * 0.09)
    ground(street, lambda _: 2)
    return rows, [stage.strip(street.filled(stage.colour(0.9), stage.palette.near), 1.0)]


def _skyline(stage: Stage, depth: float, tall: float) -> Strip:
    """
    A row of houses with windows; lit ones when it is dark.
    """
    dice, pen = stage.dice("skyline", depth), stage.pen(stage.height * tall)
    lit, panes = stage.pen(stage.height * tall), stage.unit * (0.008 + 0.012 * depth)
    share = {"night": 0.42, "dusk": 0.3, "dawn": 0.15, "day": 0.0}[stage.scene.hour]
    x = 0.0
    while x < pen.width - 4:
        wide = stage.unit * dice.between(0.06, 0.14) * (0.7 + depth)
        wide = pen.width - x if pen.width - x < wide * 1.5 else wide
        top = pen.height * (1 - dice.between(0.42, 1) ** 1.3)
        pen.polygon([(x, pen.height), (x, top), (x + wide - 1, top), (x + wide - 1, pen.height)])
        if dice.number() < 0.35:
            mast = x + wide / 2
            pen.polygon([(mast - 1, top), (mast, max(0, top - stage.unit * 0.05)), (mast + 1, top)])
        for row in range(int((pen.height - top) / (panes * 1.9))):
            for column in range(int((wide - panes) / (panes * 1.6))):
                if dice.number() < share:
                    left, upper = x + panes * (0.7 + 1.6 * column), top + panes * (0.8 + 1.9 * row)
                    box = [(left, upper), (left + panes, upper), (left + panes, upper + panes), (left, upper + panes)]
                    lit.polygon(box, round(255 * dice.between(0.35, 1)))
        x += wide
    foot = mix(stage.colour(depth), stage.palette.horizon, 0.5 * (1 - depth))
    houses = pen.filled(stage.colour(depth), foot)
    glow = Image.new("RGB", houses.size, mix(stage.palette.light, (255, 190, 90), 0.5))
    glow.putalpha(lit.mask().point(lambda ink: round(ink * (0.45 + 0.5 * depth))))
    houses.alpha_composite(glow)
    return stage.strip(houses, depth)


class _Glints:
    """
    The light's broken mirror image on the water.
    """

    def __init__(self, stage: Stage, deep: Colour, shallow: Colour) -> None:
        dice = stage.dice("glints")
        x, _, radius = light_at(stage)
        reach = stage.height - stage.horizon
        self._light = stage.palette.light
        self._lines: list[tuple[float, float, float, float, float, Colour]] = []
        for _ in range(220):
            down = dice.number() ** 1.3
            spread = radius * (0.7 + 2.4 * down)
            water = mix(shallow, deep, down)
            wide = stage.unit * dice.between(0.006, 0.03) * (0.35 + down)
            spot = x + spread * (dice.number() + dice.number() - 1)
            self._lines.append(
                (spot, stage.horizon + 2 + down * reach, wide, dice.number() * math.tau, dice.between(1.5, 4), water)
            )
        self._thick = max(1, round(stage.unit * 0.0035))
        self._strength = 0.35 if stage.scene.weather in ("rain", "fog") else 0.85

    def draw(self, canvas: Image.Image, seconds: float) -> None:
        """
        Draw each glint as bright as it is now.
        """
        draw = ImageDraw.Draw(canvas)
        for x, y, wide, phase, pace, water in self._lines:
            glow = math.sin(seconds * pace + phase)
            if glow > 0:
                colour = mix(water, self._light, glow * self._strength)
                draw.line((x - wide * glow, y, x + wide * glow, y), fill=colour, width=self._thick)


def _sea(stage: Stage) -> tuple[list[Drawn], list[Drawn]]:
    shallow, deep = mix(stage.palette.far, stage.palette.horizon, 0.55), stage.palette.near
    water = stage.pen(stage.height - stage.horizon)
    ground(water, lambda _: 0)
    islands = _island(stage)
    surface = stage.strip(water.filled(shallow, mix(shallow, deep, 0.6), deep), 0.0)
    waves = [_wave(stage, depth) for depth in (0.3, 0.5, 0.75, 1.0)]
    front: list[Drawn] = list(waves[2:])
    if _ASHORE & set(stage.scene.subjects):
        front.append(_ridge(stage, 1.0, 0.12, grow=_flowers(stage)))
    return [islands, surface, *waves[:2], _Glints(stage, deep, shallow)], front


def _island(stage: Stage) -> Strip:
    dice, pen = stage.dice("islands"), stage.pen(stage.height * 0.1)
    line = sharp_line(dice, pen.width, pen.height * 1.5, 0, peaks=3)
    ground(pen, line)
    return stage.strip(pen.filled(stage.colour(0.1)), 0.05, down=stage.horizon - stage.height + 1)


def _wave(stage: Stage, depth: float) -> Strip:
    dice, tall = stage.dice("wave", depth), (stage.height - stage.horizon) * (1 - depth * 0.8)
    swell = stage.unit * 0.018 * (0.4 + depth)
    pen = stage.pen(tall + swell * 2)
    waves = [(dice.whole(3, 5), 1.0), (dice.whole(7, 11), 0.45), (dice.whole(17, 23), 0.2)]
    phase = dice.number() * math.tau

    def line(x: float) -> float:
        turn = x / pen.width * math.tau
        return swell * (1 + 0.6 * sum(size * math.sin(turn * count + phase) for count, size in waves))

    ground(pen, line)
    crest, body = mix(stage.palette.far, stage.palette.horizon, 0.5 - 0.35 * depth), stage.palette.near
    image = pen.filled(mix(crest, body, 0.25 + 0.5 * depth), mix(crest, body, 0.6 + 0.4 * depth), body)
    image.putalpha(image.getchannel("A").point(lambda ink: round(ink * (0.55 + 0.35 * depth))))
    own = stage.unit * 0.05 * (0.3 + depth) * (1 if dice.number() < 0.5 else -0.6)
    return stage.strip(image, depth, own=own, bob=swell * 0.6, down=swell)


def _space(stage: Stage) -> tuple[list[Drawn], list[Drawn]]:
    stars: list[Drawn] = [_Nebula(stage), _star_field(stage, 0.1), _Planet(stage), _star_field(stage, 0.3)]
    return stars, [_ridge(stage, 1.0, 0.12, sharp=True)]


def _star_field(stage: Stage, depth: float) -> Strip:
    dice, pen = stage.dice("field", depth), stage.pen(stage.height)
    for _ in range(90):
        size = stage.unit * dice.between(0.0008, 0.0022) * (1 + depth)
        pen.ellipse(dice.between(0, pen.width), dice.between(0, pen.height), size, size, round(dice.between(90, 255)))
    return stage.strip(pen.filled((240, 244, 255)), depth)


class _Nebula:
    """
    Clouds of coloured gas, drawn once.
    """

    def __init__(self, stage: Stage) -> None:
        dice = stage.dice("nebula")
        small = (max(8, stage.width // 8), max(8, stage.height // 8))
        tints = (stage.palette.far, (170, 60, 120), (40, 110, 170))
        self._clouds: list[tuple[Colour, Image.Image]] = []
        for tint in tints:
            mask = Image.new("L", small)
            draw = ImageDraw.Draw(mask)
            for step in range(16):
                x = small[0] * (step / 15 + dice.between(-0.15, 0.15))
                y = small[1] * (0.75 - 0.45 * step / 15 + dice.between(-0.2, 0.2))
                size = small[1] * dice.between(0.06, 0.2)
                draw.ellipse((x - size, y - size, x + size, y + size), fill=round(dice.between(40, 130)))
            mask = mask.filter(ImageFilter.GaussianBlur(small[1] * 0.09)).resize((stage.width, stage.height))
            self._clouds.append((tint, mask))

    def draw(self, canvas: Image.Image, seconds: float) -> None:
        """
        Lay the clouds over the sky.
        """
        for tint, mask in self._clouds:
            canvas.paste(tint, (0, 0), mask)


class _Planet:
    """
    A planet lit from one side, with bands, rising slowly.
    """

    def __init__(self, stage: Stage) -> None:
        dice = stage.dice("planet")
        radius = stage.unit * dice.between(0.14, 0.24)
        edge = math.ceil(radius) * 2
        tints = (mix(stage.palette.far, WHITE, 0.35), stage.palette.accent, stage.palette.far)
        bands = tuple(dice.pick(tints) for _ in range(dice.whole(7, 11)))
        ball = gradient((edge, edge), bands).rotate(dice.between(-25, 25), Image.Resampling.BICUBIC)
        lit = round(edge * 0.7)
        shade = Image.radial_gradient("L").resize((edge * 2, edge * 2)).crop((lit, lit, lit + edge, lit + edge))
        shadow = shade.point(lambda ink: min(250, max(0, round((ink - 70) * 1.7))))
        ball.paste(mix(stage.palette.top, (0, 0, 0), 0.5), (0, 0), shadow)
        mask = Image.new("L", (edge * 3, edge * 3))
        ImageDraw.Draw(mask).ellipse((0, 0, edge * 3 - 1, edge * 3 - 1), fill=255)
        self._ball, self._mask = ball, mask.reduce(3)
        self._x, self._y = stage.width * dice.between(0.15, 0.65), stage.height * dice.between(0.18, 0.4)
        self._speed = stage.unit * 0.008

    def draw(self, canvas: Image.Image, seconds: float) -> None:
        """
        Draw it where it has risen to.
        """
        spot = round(self._x - seconds * self._speed), round(self._y - seconds * self._speed * 0.3)
        canvas.paste(self._ball, spot, self._mask)


_PLACES: dict[str, Callable[[Stage], tuple[list[Drawn], list[Drawn]]]] = {
    "sea": _sea,
    "city": _city,
    "forest": _forest,
    "desert": _desert,
    "mountains": _mountains,
    "meadow": _meadow,
    "space": _space,
}

"""
Reads the uniform `resolution` and `aspectRatio` as pixels, for providers that want width and height.
"""

import re
from fractions import Fraction

from vidrelay.core.errors import InvalidRequest

_PIXELS = re.compile(r"([1-9][0-9]{1,4})\s*[xX×*]\s*([1-9][0-9]{1,4})")
_LINES = re.compile(r"([1-9][0-9]{1,3})p", re.IGNORECASE)
_NAMED_LINES = {"2k": 1440, "4k": 2160}
_RATIO = re.compile(r"([1-9][0-9]{0,3}):([1-9][0-9]{0,3})")


def pixel_size(
    aspect_ratio: str | None, resolution: str | None, *, step: int = 2, slack: Fraction = Fraction(2, 100)
) -> tuple[int, int] | None:
    """
    Width and height: `720p` is the shorter edge, `848x480` is taken as it is. One of the two alone takes 720p or 16:9
    for the other; None without both.

    Args:
        aspect_ratio: As in `16:9`, or None.
        resolution: As in `720p`, `4k` or `1280x720`, or None.
        step: What the longer edge is a multiple of, where it is counted out.
        slack: How far a size in pixels may be from the ratio, as a share of it.

    Raises:
        InvalidRequest: One cannot be read, or they do not fit each other; names the field.
    """
    if aspect_ratio is None and resolution is None:
        return None
    ratio = None if aspect_ratio is None else _ratio(aspect_ratio)
    pixels = _PIXELS.fullmatch((resolution or "").strip())
    if pixels:
        width, height = int(pixels[1]), int(pixels[2])
        if ratio is not None and abs(Fraction(width, height) / ratio - 1) > slack:
            raise InvalidRequest(f"aspectRatio {aspect_ratio} does not fit {width}x{height}.", field="aspectRatio")
        return width, height
    edge, ratio = _lines(resolution), ratio or Fraction(16, 9)
    longer = step * max(1, round(edge * max(ratio, 1 / ratio) / step))
    return (longer, edge) if ratio >= 1 else (edge, longer)


def _ratio(text: str) -> Fraction:
    found = _RATIO.fullmatch(text.strip())
    ratio = Fraction(int(found[1]), int(found[2])) if found else Fraction(0)
    if not Fraction(1, 10) <= ratio <= 10:
        raise InvalidRequest(f'aspectRatio must be like "16:9", at most 10:1, not {text!r}.', field="aspectRatio")
    return ratio


def _lines(resolution: str | None) -> int:
    if resolution is None:
        return 720
    text = resolution.strip().lower()
    found = _LINES.fullmatch(text)
    edge = int(found[1]) if found else _NAMED_LINES.get(text, 0)
    if edge < 16:
        raise InvalidRequest(
            f'resolution must be like "720p", "4k" or "1280x720", not {resolution!r}.', field="resolution"
        )
    return 2 * round(edge / 2)

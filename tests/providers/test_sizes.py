"""
Width and height, read out of a resolution and a ratio.
"""

from fractions import Fraction

import pytest

from vidrelay.core.errors import InvalidRequest
from vidrelay.providers.sizes import pixel_size


@pytest.mark.parametrize(
    ("ratio", "resolution", "size"),
    [
        (None, None, None),
        ("16:9", None, (1280, 720)),
        (None, "480p", (854, 480)),
        ("9:16", "1080P", (1080, 1920)),
        ("1:1", "4k", (2160, 2160)),
        (None, "848 x 480", (848, 480)),
        ("16:9", "1920×1080", (1920, 1080)),
    ],
)
def test_a_size_is_counted_out(ratio: str | None, resolution: str | None, size: tuple[int, int] | None) -> None:
    """The shorter edge is what 720p says; pixels are taken as they are."""
    assert pixel_size(ratio, resolution) == size


def test_the_longer_edge_is_a_multiple_of_the_step() -> None:
    """As models want it that work in blocks."""
    assert pixel_size(None, "480p", step=16) == (848, 480)


@pytest.mark.parametrize(
    ("ratio", "resolution", "field"),
    [
        ("wide", None, "aspectRatio"),
        ("0:9", None, "aspectRatio"),
        ("11:1", None, "aspectRatio"),
        (None, "big", "resolution"),
        (None, "10p", "resolution"),
        ("1:1", "1280x720", "aspectRatio"),
    ],
)
def test_what_cannot_be_is_refused_by_its_field(ratio: str | None, resolution: str | None, field: str) -> None:
    """Before anything is sent."""
    with pytest.raises(InvalidRequest) as refusal:
        pixel_size(ratio, resolution)
    assert refusal.value.field == field


def test_a_size_may_be_a_little_off_its_ratio() -> None:
    """As far as the provider's own steps go."""
    assert pixel_size("16:9", "832x480", slack=Fraction(5, 100)) == (832, 480)

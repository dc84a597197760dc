"""
What each of Runway's models takes. A model that is not here takes what it is given.
"""

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """
    What one of the two calls takes of a model: pixel ratios or names (`needed`: one must be sent), resolutions where
    those are a field of their own, and how many references.
    """

    ratios: tuple[str, ...] = ()
    needed: bool = False
    resolutions: tuple[str, ...] = ()
    references: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """
    One model. `text` and `image` are None where it has no such call; `seconds` is every length that is known to be
    taken, None where that is not known, `usual` the one that is sent where it must be; `units` bounds the prompt, in
    UTF-16 units.
    """

    text: Kind | None
    image: Kind | None
    seconds: Collection[int] | None = None
    usual: int | None = None
    seed: bool = False
    negative: bool = False
    last: bool = False
    units: int | None = None


_GEN = ("1280:720", "720:1280", "1104:832", "960:960", "832:1104", "1584:672")
_VEO = Kind(ratios=("1280:720", "720:1280", "1080:1920", "1920:1080"), needed=True)
_AUTO = ("auto_720p", "auto_480p", "auto_1080p")
_SEEDANCE_480 = ("992:432", "864:496", "752:560", "640:640", "560:752", "496:864")
_SEEDANCE_720 = ("1470:630", "1280:720", "1112:834", "960:960", "834:1112", "720:1280")
_SEEDANCE_1080 = ("2206:946", "1920:1080", "1664:1248", "1440:1440", "1248:1664", "1080:1920")
_SEEDANCE_4K = ("3840:1646", "3840:2160", "3840:2880", "3840:3840", "2880:3840", "2160:3840")
_SEEDANCE_25 = ("992:432", "854:480", "752:560", "640:640", "560:752", "480:854", *_SEEDANCE_720, *_SEEDANCE_1080)
_HAILUO = ("16:9", "21:9", "4:3", "1:1", "3:4", "9:16")
_HAPPY_720 = ("1280:720", "720:1280", "960:960", "1108:832", "832:1108")
_HAPPY_1080 = ("1920:1080", "1080:1920", "1440:1440", "1662:1248", "1248:1662")
_WAN = (
    *("832:480", "720:544", "624:624", "544:720", "480:832"),
    *("1280:720", "1104:832", "960:960", "832:1104", "720:1280"),
    *("1920:1080", "1648:1248", "1440:1440", "1248:1648", "1080:1920"),
)
_OMNI = ("640:360", "360:640", "1280:720", "720:1280", "1920:1080", "1080:1920", "3840:2160", "2160:3840")
_LITE = (
    *("848:480", "480:848", "480:480", "640:480", "480:640", "720:480", "480:720"),
    *("1280:720", "720:1280", "720:720", "960:720", "720:960", "1088:720", "720:1088"),
    *("1904:1072", "1072:1904", "1424:1424", "1648:1232", "1232:1648", "1744:1152", "1152:1744"),
)
_KLING = {
    "standard": ("1280:720", "720:1280", "960:960"),
    "pro": ("1920:1080", "1080:1920", "1440:1440"),
    "4k": ("3840:2160", "2160:3840", "2880:2880"),
}


def _seedance(ratios: tuple[str, ...], longest: int, references: int, units: int) -> Model:
    return Model(
        text=Kind(ratios=ratios, references=references),
        image=Kind(ratios=ratios),
        seconds=range(4, longest + 1),
        seed=True,
        last=True,
        units=units,
    )


def _kling(ratios: tuple[str, ...], references: int) -> Model:
    return Model(text=Kind(ratios=ratios, needed=True), image=Kind(ratios=ratios, references=references), last=True)


_WAN_3 = Model(
    text=Kind(ratios=(*_WAN, "auto_480p", "auto_720p", "auto_1080p"), references=10),
    image=Kind(ratios=_AUTO),
    last=True,
)
_VEO_3_1 = Model(text=_VEO, image=_VEO, seconds=(4, 6, 8), seed=True, negative=True, last=True, units=1000)

MODELS = {
    "gen4.5": Model(
        text=Kind(ratios=_GEN[:2], needed=True),
        image=Kind(ratios=_GEN, needed=True),
        seconds=range(2, 11),
        usual=5,
        seed=True,
        units=1000,
    ),
    "gen4_turbo": Model(text=None, image=Kind(ratios=_GEN, needed=True), seconds=range(2, 11), seed=True, units=1000),
    "veo3.1": _VEO_3_1,
    "veo3.1_fast": _VEO_3_1,
    "kling2.5_turbo_pro": Model(
        text=Kind(ratios=("1920:1080", "1440:1440", "1080:1920", "1280:720", "720:720", "720:1280")),
        image=Kind(),
        seconds=(5, 10),
        last=True,
    ),
    **{f"kling3.0_{grade}": _kling(ratios, 0) for grade, ratios in _KLING.items()},
    **{f"klingO3_{grade}": _kling(ratios, 7) for grade, ratios in _KLING.items()},
    "kling_4": Model(
        text=Kind(
            ratios=(
                *("1280:720", "720:1280", "940:940", "1460:624", "1920:1080", "1080:1920", "1440:1440", "2200:940"),
                *("auto_720p", "auto_1080p"),
            ),
            references=10,
        ),
        image=Kind(ratios=("auto_720p", "auto_1080p"), references=9),
        last=True,
    ),
    "seedance2": _seedance((*_SEEDANCE_480, *_SEEDANCE_720, *_SEEDANCE_1080, *_SEEDANCE_4K), 15, 9, 3500),
    "seedance2_fast": _seedance((*_SEEDANCE_480, *_SEEDANCE_720), 15, 9, 3500),
    "seedance2_mini": _seedance((*_SEEDANCE_480, *_SEEDANCE_720), 15, 9, 3500),
    "seedance2_5": _seedance(_SEEDANCE_25, 30, 30, 15_000),
    "hailuo3": Model(
        text=Kind(ratios=(*_HAILUO, "adaptive"), resolutions=("768p", "2k"), references=9),
        image=Kind(ratios=(*_HAILUO, "adaptive"), resolutions=("768p", "2k")),
        seconds=range(5, 16),
        last=True,
    ),
    "h3_max": Model(
        text=Kind(resolutions=("480p", "768p")), image=Kind(resolutions=("480p", "768p")), seed=True, last=True
    ),
    "happyhorse_1_0": Model(
        text=Kind(ratios=(*_HAPPY_720, *_HAPPY_1080)),
        image=Kind(resolutions=("720p", "1080p")),
        seconds=range(3, 16),
        units=2500,
    ),
    "wan3": _WAN_3,
    "wan3_prime": _WAN_3,
    "gemini_omni_flash": Model(
        text=Kind(ratios=("1280:720", "720:1280")), image=Kind(ratios=("1280:720", "720:1280")), seconds=range(3, 11)
    ),
    "gemini_omni_flash_1.1": Model(
        text=Kind(ratios=_OMNI, references=10), image=Kind(ratios=_OMNI), seconds=range(3, 11), last=True
    ),
    "grok_imagine_1_5": Model(
        text=Kind(
            ratios=("16:9", "1:1", "9:16", "4:3", "3:4", "3:2", "2:3"),
            resolutions=("480p", "720p", "1080p"),
            references=10,
        ),
        image=Kind(resolutions=("480p", "720p", "1080p")),
    ),
    "grok_imagine_1_5_lite": Model(text=Kind(ratios=_LITE), image=Kind(ratios=_AUTO)),
}
DEFAULT_MODEL = "gen4.5"

"""
When two requests are the same: the canonical form of a request, and its hash (contract section 4).

Both are taken of what would be sent, so every door that leads to the same remote job leads to the same fingerprint.
Whatever nobody has classified counts. The hash has a version in front of it; a change of any rule here needs a new one,
so that no old result is taken for the answer to a question it was never asked.

A parameter is named by its path: `prompt`, or `input.prompt` for one inside another; an item of a list goes by the name
of its list.
"""

import json
import math
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from vidrelay.core.errors import InvalidRequest
from vidrelay.core.task import JsonObject

VERSION = "vidrelay-1"
MAX_DEPTH = 64
MAX_DIGITS = 4300
"""Python itself refuses to spell a longer integer in decimal digits."""
_TOO_LARGE = 10**MAX_DIGITS


def fingerprint(
    *,
    account: str,
    provider: str,
    parameters: JsonObject,
    pictures: Mapping[str, str],
    irrelevant: frozenset[str],
    prompts: frozenset[str],
) -> str:
    """
    Return the SHA-256 of the canonical form, as 64 hexadecimal digits. Arguments and errors are those of `canonical`.
    """
    text = canonical(
        account=account,
        provider=provider,
        parameters=parameters,
        pictures=pictures,
        irrelevant=irrelevant,
        prompts=prompts,
    )
    return sha256(f"{VERSION}\n{text}".encode()).hexdigest()


def canonical(
    *,
    account: str,
    provider: str,
    parameters: JsonObject,
    pictures: Mapping[str, str],
    irrelevant: frozenset[str],
    prompts: frozenset[str],
) -> str:
    """
    Return the one spelling, as JSON text, of every request that wants the same clip.

    Args:
        account: The account's name; another account is another request.
        provider: The provider's name.
        parameters: The provider's own parameters as they would be sent, defaults filled in.
        pictures: The pixel identity of each picture by its asset id. An object whose `$asset` is none of them counts
            literally.
        irrelevant: Paths of parameters that are left out.
        prompts: Paths of parameters whose text is normalised (`normalise_prompt`).

    Raises:
        InvalidRequest: A value is not JSON, not a finite number, not valid Unicode, or nested more than 64 deep; names
            the parameter.
    """
    form = _Form(pictures=pictures, irrelevant=irrelevant, prompts=prompts)
    request = {
        "account": _text(account, "account"),
        "provider": _text(provider, "provider"),
        "parameters": form.value(parameters, "", 0),
    }
    return json.dumps(request, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    """
    What decides how a value counts.
    """

    pictures: Mapping[str, str]
    irrelevant: frozenset[str]
    prompts: frozenset[str]

    def value(self, value: Any, path: str, depth: int) -> Any:
        """
        The value in the one form that all its spellings share.
        """
        if depth > MAX_DEPTH:
            raise InvalidRequest(f"{path} is nested more than {MAX_DEPTH} deep", field=path)
        match value:
            case None | bool():
                return value
            case int() | float():
                return _number(value, path)
            case str():
                text = _text(value, path)
                return normalise_prompt(text) if path in self.prompts else text
            case Mapping():
                return self._object(value, path, depth)
            case list() | tuple():
                return [self.value(item, path, depth + 1) for item in value]
            case _:
                raise InvalidRequest(f"{path} holds a {type(value).__name__}, which JSON cannot", field=path)

    def _object(self, members: Mapping[Any, Any], path: str, depth: int) -> dict[str, Any]:
        counted: dict[str, Any] = {}
        picture = self._picture(members)
        if picture is not None:
            counted["$picture"] = picture
            members = {name: value for name, value in members.items() if name not in ("$asset", "mediaType")}
        for name, value in members.items():
            if not isinstance(name, str):
                raise InvalidRequest(f"{path} has a name that is not text", field=path)
            inner = f"{path}.{name}" if path else name
            _text(name, path)
            if value is not None and inner not in self.irrelevant:
                counted[_literal(name)] = self.value(value, inner, depth + 1)
        return counted

    def _picture(self, members: Mapping[Any, Any]) -> str | None:
        asset = members.get("$asset")
        return self.pictures.get(asset) if isinstance(asset, str) else None


def _literal(name: str) -> str:
    """
    The name itself, with one more `$` where it would read as a picture of ours, so that nobody can pass for one.
    """
    return f"${name}" if re.fullmatch(r"\$+picture", name) else name


def _number(value: float, path: str) -> int | float:
    """
    The number in its one spelling: an integer wherever it is whole, so 5, 5.0 and 5e0 agree, and 0 has no sign.
    """
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidRequest(f"{path} is not a finite number", field=path)
        return int(value) if value.is_integer() else value
    if abs(value) >= _TOO_LARGE:
        raise InvalidRequest(f"{path} is a number of more than {MAX_DIGITS} digits", field=path)
    return value


def _text(text: str, path: str) -> str:
    """
    The text, which must be Unicode that can be written down: JSON's escapes let half a surrogate pair through.
    """
    try:
        text.encode()
    except UnicodeEncodeError as exc:
        raise InvalidRequest(f"{path or 'a name'} holds half of a surrogate pair", field=path or None) from exc
    return text


# Typed text -----------------------------------------------------------------------------------------------------------
#
# Two passes over the invisible characters. The first drops those that never mean anything in a prompt. The second looks
# at the rest where they stand: a joiner, selector or tag is kept where it changes what is read, and only there. What
# the second pass keeps depends on neighbours that it never drops, so a second run changes nothing.

_WIDTH = {
    code: int(unicodedata.decomposition(chr(code)).split()[1], 16)
    for code in (0x3000, *range(0xFF01, 0xFFEF))
    if unicodedata.decomposition(chr(code)).startswith(("<wide>", "<narrow>"))
}
"""
Full-width signs to their plain ones, and half-width kana and Hangul to their usual ones: one step of Unicode's own
`<wide>` and `<narrow>` mappings. Not NFKC, which would also make ① a 1 and ² a 2.
"""

_INVISIBLE = dict.fromkeys(
    (  # of no width, and of no meaning in a prompt
        0x00AD,  # soft hyphen
        0x034F,  # combining grapheme joiner
        0x061C,  # Arabic letter mark
        0x200B,  # zero width space
        0x200E,  # left-to-right mark
        0x200F,  # right-to-left mark
        *range(0x202A, 0x202F),  # embeddings and overrides
        *range(0x2060, 0x2070),  # word joiner, invisible operators, isolates, deprecated format controls
        0xFEFF,  # zero width no-break space, the byte order mark
        *range(0xFFF9, 0xFFFC),  # interlinear annotation
        0xE0001,  # language tag
    )
)
_PLAIN = {**_WIDTH, **_INVISIBLE}

# `unicodedata` knows neither scripts nor emoji, so these are blocks. They are wider than the properties they stand for
# (Joining_Type, Indic_Syllabic_Category, Extended_Pictographic): at worst a joiner counts where it shows nothing.
_JOINING = (
    r"\u0600-\u0dff"  # Arabic, Syriac, Thaana, NKo, Mandaic, and the Indic scripts up to Sinhala
    r"\u1000-\u109f\u1700-\u180d\u180f-\u18af\u1900-\u1cff"  # Myanmar, Khmer, Mongolian, Balinese …
    r"\ua800-\ua8ff\ua980-\ua9ff\uaa00-\uaaff\uabc0-\uabff"  # Syloti Nagri, Devanagari extended, Javanese, Meetei …
    r"\ufb50-\ufdff\ufe70-\ufefc"  # Arabic presentation forms
    r"\U00010a00-\U00010a5f\U00010ac0-\U00010aff\U00010b80-\U00010baf\U00010d00-\U00010d3f\U00010ec0-\U00010fdf"
    r"\U00011000-\U00011fff\U0001e900-\U0001e95f"  # Brahmi to Kawi; Adlam
)
_VARYING = (
    r"\u2200-\u22ff\u2a00-\u2aff"  # mathematical operators
    r"\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # ideographs
    r"\U00013000-\U0001345f" + _JOINING  # Egyptian hieroglyphs
)
_PICTOGRAPH = (
    r"\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf\u2900-\u297f\u2b00-\u2bff"
    r"\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
_IN_CONTEXT = re.compile(
    "("
    # An emoji: its selector, the tags of a flag, and the joiner if another emoji follows (UTS 51, ED-16).
    rf"[{_PICTOGRAPH}][\ufe0e\ufe0f]?(?:[\U000e0020-\U000e007e]+\U000e007f)?(?:\u200d(?=[{_PICTOGRAPH}]))?"
    # A keycap.
    r"|[0-9#*]\ufe0f?\u20e3"
    # A joiner between two letters of a script that has them, or Mongolian's vowel separator.
    rf"|(?<=[{_JOINING}])[\u200c\u200d\u180e]+(?=[{_JOINING}])"
    # The chosen form of an ideograph, letter or operator.
    rf"|(?<=[{_VARYING}])[\ufe00-\ufe0d\U000e0100-\U000e01ef]"
    ")"
    r"|[\u200c\u200d\u180e\ufe00-\ufe0f\U000e0020-\U000e007f\U000e0100-\U000e01ef]"
)
_REPEATED = re.compile(r"([\u200c\u200d\u180e])\1+")


def normalise_prompt(text: str) -> str:
    """
    Return the text that all prompts share which a person would read as this one.

    NFC, full-width forms as half-width ones, no zero-width characters but those inside emoji sequences and between
    letters of a script that needs them, each run of white space as one space, none at the ends. Applying it twice
    changes nothing more.
    """
    text = unicodedata.normalize("NFC", text.translate(_PLAIN))
    text = _IN_CONTEXT.sub(r"\1", _REPEATED.sub(r"\1", text))
    # What a dropped joiner had kept apart (an accent from its letter) composes only now.
    return " ".join(unicodedata.normalize("NFC", text).split())

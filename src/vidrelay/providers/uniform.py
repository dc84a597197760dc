"""
Reads the contract's uniform request for a provider: what it accepts is checked before anything is paid, and a refusal
names the parameter and what would be taken.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from vidrelay.core.errors import InvalidRequest
from vidrelay.core.task import JsonObject, Request
from vidrelay.providers.pictures import FIRST, LAST, REFERENCE, Pictures

_FIELDS = {
    "aspectRatio": "aspect_ratio",
    "duration": "duration",
    "resolution": "resolution",
    "seed": "seed",
    "stylePreset": "style_preset",
    "negativePrompt": "negative_prompt",
    "references": "references",
}


def only(request: Request, *fields: str, who: str) -> None:
    """
    Refuse every optional field but these (in the contract's spelling: `aspectRatio`).

    Raises:
        InvalidRequest: Another is given; names it, and the ones that `who` takes.
    """
    for name, attribute in _FIELDS.items():
        if name not in fields and getattr(request, attribute) not in (None, ()):
            raise InvalidRequest(
                f"{who} has no {name}; it takes {', '.join(fields) or 'none of the optional fields'}.",
                field=name,
                hint="What only this provider knows goes under extra, in its own words.",
            )


def one_of(value: Any, accepted: Sequence[Any], *, field: str, known: bool = True) -> Any:
    """
    The value as the provider writes it; text is compared without regard to case.

    `known` is false where the model is one that nobody has told us of: then what it takes is its own matter.

    Raises:
        InvalidRequest: It is none of these; names them.
    """
    for one in accepted:
        if value == one or (isinstance(value, str) and isinstance(one, str) and value.lower() == one.lower()):
            return one
    if not known:
        return value
    told = ", ".join(str(one) for one in accepted)
    raise InvalidRequest(f"{field} must be one of {told}, not {value}.", field=field)


def whole(value: float, low: int, high: int, *, field: str) -> int:
    """
    The value as a whole number in that range, both ends included.

    Raises:
        InvalidRequest: It is none.
    """
    if float(value).is_integer() and low <= value <= high:
        return int(value)
    told = int(value) if float(value).is_integer() else value
    raise InvalidRequest(f"{field} must be a whole number from {low} to {high}, not {told}.", field=field)


def length(duration: float, accepted: Sequence[int], *, known: bool) -> int:
    """
    A clip's length in seconds, one of those; of a model that nobody has told us of, any whole one up to a minute.

    Raises:
        InvalidRequest: It is none; names what is taken.
    """
    if not known:
        return whole(duration, 1, 60, field="duration")
    seconds: int = one_of(duration, accepted, field="duration")
    return seconds


def plain(value: float | None) -> float | None:
    """
    The number, without a point where it is whole: 5.0 and 5 are one request, and not everybody takes 5.0 for 5.
    """
    return int(value) if value is not None and float(value).is_integer() else value


def at_most(text: str, characters: int, *, field: str = "prompt") -> str:
    """
    The text, if it is no longer.

    Raises:
        InvalidRequest: It is.
    """
    if len(text) > characters:
        raise InvalidRequest(f"{field} has {len(text)} characters; at most {characters} are taken.", field=field)
    return text


def with_extra(parameters: Mapping[str, Any], extra: JsonObject) -> dict[str, Any]:
    """
    The provider's own parameters beside ours, objects merged; they must not say again what another field says.

    Raises:
        InvalidRequest: One does, or it holds a picture.
    """
    return merged(parameters, _without_pictures(extra))


def placed(extra: JsonObject, given: Pictures) -> tuple[dict[str, Any], Pictures]:
    """
    Put pictures where `extra` wants them, for providers whose models each name that field in another way:
    `{"$reference": "first_frame"}` becomes the picture of that role, `{"$reference": "reference"}` the list of those.

    Returns `extra` with them, for `merged`, and the pictures that it did not name.

    Raises:
        InvalidRequest: It names a role that no reference has, or holds a picture itself.
    """
    by_role: dict[str, Any] = {FIRST: given.first, LAST: given.last, REFERENCE: list(given.others)}
    left = dict(by_role)

    def put(value: Any) -> Any:
        if isinstance(value, Mapping):
            if set(value) != {"$reference"}:
                return {name: put(inner) for name, inner in value.items()}
            role = value["$reference"]
            if not isinstance(role, str) or not by_role.get(role):
                raise InvalidRequest(f"extra wants a picture of role {role!r}, and references has none.", field="extra")
            left[role] = None
            return by_role[role]
        return [put(inner) for inner in value] if isinstance(value, list | tuple) else value

    filled_in = put(_without_pictures(extra))
    return filled_in, Pictures(first=left[FIRST], last=left[LAST], others=tuple(left[REFERENCE] or ()))


def merged(parameters: Mapping[str, Any], extra: JsonObject) -> dict[str, Any]:
    """
    As `with_extra`, for what `placed` has put pictures into.

    Raises:
        InvalidRequest: A field is said twice.
    """
    return _merged(parameters, extra, "extra")


def _without_pictures(extra: JsonObject) -> JsonObject:
    if "$asset" in json.dumps(extra):
        raise InvalidRequest("Pictures are given in references, not in extra.", field="extra")
    return extra


def apart(extra: JsonObject, *path: str) -> tuple[list[Any], dict[str, Any]]:
    """
    Take the list at that place out of `extra`, for what is put behind a list of ours; returns it and the rest.

    Raises:
        InvalidRequest: It holds a picture.
    """
    name, *rest = path
    inner = extra.get(name)
    if rest and isinstance(inner, Mapping):
        more, left = apart(inner, *rest)
        return more, {**extra, name: left}
    if rest or not isinstance(inner, list | tuple):
        return [], dict(extra)
    return list(_without_pictures({name: inner})[name]), {one: value for one, value in extra.items() if one != name}


def _merged(ours: Mapping[str, Any], theirs: Mapping[str, Any], where: str) -> dict[str, Any]:
    merged = dict(ours)
    for name, value in theirs.items():
        inner = merged.get(name)
        if isinstance(inner, Mapping) and isinstance(value, Mapping) and "$asset" not in inner:
            merged[name] = _merged(inner, value, f"{where}.{name}")
        elif inner is not None:
            raise InvalidRequest(f"{where}.{name} says again what another field says.", field=f"{where}.{name}")
        else:
            merged[name] = value
    return merged

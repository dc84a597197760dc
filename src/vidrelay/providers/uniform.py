"""
Reads the contract's uniform request for a provider: what it accepts is checked before anything is paid, and a refusal
names the parameter and what would be taken.
"""

import json
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vidrelay.core.errors import InvalidRequest
from vidrelay.core.hosts import web_address_fault
from vidrelay.core.messages import FormFile, Inline
from vidrelay.core.ports import asset_parameter
from vidrelay.core.task import Asset, JsonObject, Request

FIRST, LAST, REFERENCE = "first_frame", "last_frame", "reference"

_FIELDS = {
    "aspectRatio": "aspect_ratio",
    "duration": "duration",
    "resolution": "resolution",
    "seed": "seed",
    "stylePreset": "style_preset",
    "negativePrompt": "negative_prompt",
    "references": "references",
}

Picture = Mapping[str, str] | str
"""A picture as a parameter: `asset_parameter`, or an address."""


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


def one_of(value: Any, accepted: Sequence[Any], *, field: str) -> Any:
    """
    The value as the provider writes it; text is compared without regard to case.

    Raises:
        InvalidRequest: It is none of these; names them.
    """
    for one in accepted:
        if value == one or (isinstance(value, str) and isinstance(one, str) and value.lower() == one.lower()):
            return one
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
    raise InvalidRequest(f"{field} must be a whole number from {low} to {high}, not {value:g}.", field=field)


def at_most(text: str, characters: int, *, field: str = "prompt") -> str:
    """
    The text, if it is no longer.

    Raises:
        InvalidRequest: It is.
    """
    if len(text) > characters:
        raise InvalidRequest(f"{field} has {len(text)} characters; at most {characters} are taken.", field=field)
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class Pictures:
    """
    A request's references by role.
    """

    first: Picture | None = None
    last: Picture | None = None
    others: tuple[Picture, ...] = field(default=())

    @property
    def frames(self) -> tuple[Picture, ...]:
        """
        The frames that there are, in their order.
        """
        return tuple(one for one in (self.first, self.last) if one is not None)

    def __bool__(self) -> bool:
        """
        Whether there is any.
        """
        return self.first is not None or self.last is not None or bool(self.others)


def pictures(
    request: Request,
    assets: Mapping[str, Asset],
    *,
    who: str,
    roles: Collection[str] = (FIRST,),
    max_others: int = 0,
    addresses: bool = True,
    files: bool = True,
    last_alone: bool = True,
    mixed: bool = True,
) -> Pictures:
    """
    Sort the references by role. One without a role is the first frame if it is the only one, else a reference.

    Args:
        request: The request.
        assets: The picture to send for each asset id.
        who: The provider's name as a person knows it.
        roles: The roles that it takes, of `first_frame`, `last_frame` and `reference`.
        max_others: How many of role `reference` it takes.
        addresses: Whether it fetches a picture from an address.
        files: Whether a picture's bytes can be given to it.
        last_alone: Whether it takes a last frame without a first one.
        mixed: Whether it takes frames and references together.

    Raises:
        InvalidRequest: A role or a kind that it does not take, two first or last frames, too many references, or
            pictures that it does not take together.
    """
    sorted_: dict[str, list[Picture]] = {FIRST: [], LAST: [], REFERENCE: []}
    for number, one in enumerate(request.references):
        usual = FIRST if len(request.references) == 1 and FIRST in roles else REFERENCE
        role, where = one.role or usual, f"references[{number}]"
        if role not in roles:
            told = f"{who} takes {', '.join(roles)}" if roles else f"{who} takes no pictures"
            raise InvalidRequest(f"A reference cannot be a {role!r} here: {told}.", field=f"{where}.role")
        if one.asset is not None:
            if not files:
                raise InvalidRequest(f"{who} takes pictures by their https address only.", field=where)
            sorted_[role].append(asset_parameter(assets[one.asset]))
        else:
            fault = web_address_fault(one.url or "") if addresses else f"cannot be used: {who} fetches none"
            if fault:
                raise InvalidRequest(f"The address {fault}.", field=f"{where}.url")
            sorted_[role].append(one.url or "")
    for role, limit in ((FIRST, 1), (LAST, 1), (REFERENCE, max_others)):
        if len(sorted_[role]) > limit:
            raise InvalidRequest(f"{who} takes at most {limit} of role {role}.", field="references")
    first, last = (next(iter(sorted_[role]), None) for role in (FIRST, LAST))
    given = Pictures(first=first, last=last, others=tuple(sorted_[REFERENCE]))
    if given.others and given.frames and not mixed:
        raise InvalidRequest(f"{who} takes frames or references, not both.", field="references")
    if given.last is not None and given.first is None and not last_alone:
        raise InvalidRequest(f"{who} takes a last frame only with a first one.", field="references")
    return given


def measured(
    request: Request, assets: Mapping[str, Asset], *, min_edge: int = 1, max_ratio: float = math.inf, who: str
) -> None:
    """
    Refuse a picture whose shorter edge is under `min_edge` pixels, or whose longer is over `max_ratio` times that.

    Raises:
        InvalidRequest: One is so; names it, and what `who` takes.
    """
    for number, one in enumerate(request.references):
        asset = assets.get(one.asset or "")
        if asset is None:
            continue
        short, long = sorted((asset.width, asset.height))
        if short < min_edge or long > short * max_ratio:
            takes = f"at least {min_edge} pixels a side"
            takes += f", and no side over {max_ratio:g} times the other" if math.isfinite(max_ratio) else ""
            raise InvalidRequest(
                f"A picture of {asset.width}x{asset.height} is not taken: {who} takes {takes}.",
                field=f"references[{number}]",
            )


def together(request: Request, assets: Mapping[str, Asset], *, max_bytes: int, who: str) -> None:
    """
    Refuse pictures that go along in one body and have more than `max_bytes` together.

    Raises:
        InvalidRequest: They have; names what `who` takes.
    """
    size = sum(assets[one.asset].size_bytes for one in request.references if one.asset in assets)
    if size > max_bytes:
        told = f"{who} takes {max_bytes / 1e6:g} MB of pictures in one request, and these have {size / 1e6:.1f} MB."
        raise InvalidRequest(told, field="references", hint="Give smaller ones, or their https addresses.")


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


def filled(parameters: Any, written: Callable[[Mapping[str, str]], Any]) -> Any:
    """
    The parameters as they are sent: each picture as `written` writes it, but for one that was uploaded, which is named
    by the provider's own reference.
    """
    if isinstance(parameters, Mapping):
        if "$asset" in parameters:
            return parameters.get("$copy") or written(parameters)
        return {name: filled(value, written) for name, value in parameters.items()}
    if isinstance(parameters, list | tuple):
        return [filled(value, written) for value in parameters]
    return parameters


def data_uri(picture: Mapping[str, str]) -> Inline:
    """
    A picture as `data:image/png;base64,…`.
    """
    return Inline(asset=picture["$asset"], prefix=f"data:{picture.get('mediaType', 'image/png')};base64,")


def bare(picture: Mapping[str, str]) -> Inline:
    """
    A picture as base64 alone.
    """
    return Inline(asset=picture["$asset"])


def form_file(picture: Mapping[str, str], *, name: str) -> FormFile:
    """
    A picture as the file of that name in a form, for an upload.
    """
    kind = picture.get("mediaType", "image/png")
    return FormFile(name=name, asset=picture["$asset"], filename=f"picture.{kind.rpartition('/')[2]}", media_type=kind)

"""
A request's pictures for a provider: by role, as parameters, and as its create call or its upload writes them.
"""

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from vidrelay.core.adapter import asset_parameter
from vidrelay.core.errors import InvalidRequest
from vidrelay.core.hosts import web_address_fault
from vidrelay.core.media import AUDIO, EXTENSIONS, VIDEO, family_of
from vidrelay.core.messages import FormFile, Inline
from vidrelay.core.task import Asset, Request

FIRST, LAST, REFERENCE = "first_frame", "last_frame", "reference"
_STEMS = {VIDEO: "film", AUDIO: "sound"}

Picture = Mapping[str, str] | str
"""A picture as a parameter: `asset_parameter`, or an address."""


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
    given = (assets.get(one.asset or "") for one in request.references)
    size = sum(asset.size_bytes for asset in given if asset is not None)
    if size > max_bytes:
        told = f"{who} takes {max_bytes / 1e6:g} MB of pictures in one request, and these have {size / 1e6:.1f} MB."
        raise InvalidRequest(told, field="references", hint="Give smaller ones, or their https addresses.")


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
    A picture as `data:image/png;base64,…`, a film or a sound likewise.
    """
    return Inline(asset=picture["$asset"], prefix=f"data:{picture.get('mediaType', 'image/png')};base64,")


def bare(picture: Mapping[str, str]) -> Inline:
    """
    A picture as base64 alone.
    """
    return Inline(asset=picture["$asset"])


def form_file(picture: Mapping[str, str], *, name: str, filename: str | None = None) -> FormFile:
    """
    A picture, film or sound as the file of that name in a form, for an upload.
    """
    kind = picture.get("mediaType", "image/png")
    return FormFile(name=name, asset=picture["$asset"], filename=filename or filename_of(picture), media_type=kind)


def filename_of(picture: Mapping[str, str], *, stem: str | None = None) -> str:
    """
    A name for the file, whose ending tells its kind.
    """
    kind = picture.get("mediaType", "image/png")
    return f"{stem or _STEMS.get(family_of(kind), 'picture')}.{EXTENSIONS.get(kind, 'bin')}"

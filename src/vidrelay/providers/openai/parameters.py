"""
Says a uniform request in the OpenAI Videos words, and writes those words as a body.
"""

import json
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, TypeGuard

from vidrelay.core.adapter import Prepared, asset_parameter
from vidrelay.core.errors import InvalidRequest
from vidrelay.core.messages import Form, FormFile, Json
from vidrelay.core.task import Asset, JsonObject, Reference, Request
from vidrelay.providers.openai.words import (
    IMAGE_URL,
    REFERENCE,
    REFERENCES,
    SORA,
    SORA_PRO_SIZES,
    SORA_SECONDS,
    SORA_SIZES,
    URL_FIELDS,
    Dialect,
)
from vidrelay.providers.pictures import filename_of, form_file
from vidrelay.providers.sizes import pixel_size
from vidrelay.providers.spelling import in_form, spelled
from vidrelay.providers.uniform import at_most, one_of

_ROLES = {None, "reference", "first_frame"}
_MAX_PROMPT = 32_000


def prepare(request: Request, assets: Mapping[str, Asset], dialect: Dialect) -> Prepared:
    """
    Say the request in the provider's words; what is not given is left to the server, whose own default then counts.

    Raises:
        InvalidRequest: The dialect has no words for a field; names it.
    """
    if request.style_preset is not None:
        raise InvalidRequest(
            "This provider has no style presets.",
            field="stylePreset",
            hint="Describe the style in the prompt, or pass the server's own parameter in extra.",
        )
    parameters: dict[str, Any] = {"prompt": at_most(request.prompt, _MAX_PROMPT)}
    if request.model_version is not None:
        parameters["model"] = request.model_version
    if request.duration is not None:
        parameters["seconds"] = _seconds(request, dialect)
    size = pixel_size(request.aspect_ratio, request.resolution)
    if size is not None:
        parameters["size"] = _size(request, dialect, *size)
    more = {"seed": ("seed", request.seed), "negativePrompt": ("negative_prompt", request.negative_prompt)}
    for field, (name, value) in more.items():
        if value is not None and dialect is Dialect.OPENAI:
            raise InvalidRequest(f"{field} is not in the dialect openai.", field=field, hint=_OTHER_DIALECTS)
        if value is not None:
            parameters[name] = value
    if request.references:
        parameters |= _references(request.references, assets, dialect)
    parameters |= _extra(request.extra, parameters)
    return Prepared(model=_model(parameters), parameters=parameters, seconds=_length(parameters))


def as_sent(parameters: Mapping[str, Any]) -> Prepared:
    """
    What came in the provider's own words already.
    """
    return Prepared(model=_model(parameters), parameters=parameters, seconds=_length(parameters))


_OTHER_DIALECTS = 'Say dialect = "vllm-omni" or "sglang" in the account\'s settings if the server is one of those.'


def body(parameters: JsonObject, dialect: Dialect) -> Json | Form:
    """
    The create call's body.

    The words go as a form where a picture comes along and where the server reads nothing else; `auto` takes the form
    too, which every dialect reads.
    """
    files = _files(parameters)
    if not _is_form(parameters, dialect):
        return Json(value={name: value for name, value in parameters.items() if value is not None})
    fields: list[tuple[str, str]] = []
    for name, value in parameters.items():
        if value is None or any(name == file.name for file in files):
            continue
        if name == REFERENCE and isinstance(value, Mapping):
            fields += [(f"{name}[{inner}]", spelled(part)) for inner, part in value.items() if part is not None]
        else:
            fields.append((name, spelled(value)))
    return Form(fields=tuple(fields), files=files)


def typed(parameters: JsonObject, dialect: Dialect) -> JsonObject:
    """
    The words with the types that they are sent as: a form knows nothing but texts.
    """
    return in_form(parameters) if _is_form(parameters, dialect) else parameters


def _is_form(parameters: JsonObject, dialect: Dialect) -> bool:
    return bool(_files(parameters)) or dialect not in (Dialect.OPENAI, Dialect.SGLANG)


def _files(parameters: JsonObject) -> tuple[FormFile, ...]:
    several = parameters.get(REFERENCES)
    pictures = [one for one in several if _is_picture(one)] if isinstance(several, list | tuple) else []
    return (
        *(_file(name, one, 1) for name, one in parameters.items() if _is_picture(one)),
        *(_file(REFERENCES, picture, number) for number, picture in enumerate(pictures, start=1)),
    )


def _is_picture(value: Any) -> TypeGuard[Mapping[str, str]]:
    return isinstance(value, Mapping) and isinstance(value.get("$asset"), str)


def _file(name: str, picture: Mapping[str, str], number: int) -> FormFile:
    return form_file(picture, name=name, filename=filename_of(picture, stem=f"reference-{number}"))


def _size(request: Request, dialect: Dialect, width: int, height: int) -> str:
    model, size = request.model_version or "", f"{width}x{height}"
    if not model.startswith(SORA) or dialect not in (Dialect.OPENAI, Dialect.AUTO):
        return size
    sizes = SORA_PRO_SIZES if model.startswith(f"{SORA}-pro") else SORA_SIZES
    if size not in sizes and request.aspect_ratio is not None:
        one_of(request.aspect_ratio, list(dict.fromkeys(map(_ratio, sizes))), field="aspectRatio")
    accepted: str = one_of(size, sizes, field="resolution")
    return accepted


def _ratio(size: str) -> str:
    width, height = map(int, size.split("x"))
    shape = Fraction(width, height)
    return f"{shape.numerator}:{shape.denominator}"


def _seconds(request: Request, dialect: Dialect) -> str:
    duration = request.duration or 0
    if dialect is Dialect.OPENAI and (request.model_version or "").startswith(SORA):
        one_of(duration, SORA_SECONDS, field="duration")
    if not 0 < duration < 1e6:
        raise InvalidRequest("duration must be more than 0.", field="duration")
    if float(duration).is_integer():
        return str(int(duration))
    if dialect in (Dialect.OPENAI, Dialect.VLLM_OMNI):
        raise InvalidRequest(f"duration must be whole seconds in the dialect {dialect}.", field="duration")
    return repr(float(duration))


def _references(references: tuple[Reference, ...], assets: Mapping[str, Asset], dialect: Dialect) -> dict[str, Any]:
    for number, reference in enumerate(references):
        if reference.role not in _ROLES:
            raise InvalidRequest(
                f"A reference cannot be a {reference.role!r} here, only a reference or first_frame.",
                field=f"references[{number}].role",
            )
    urls = [reference.url for reference in references if reference.asset is None and reference.url is not None]
    if len(references) == 1 and urls:
        name = URL_FIELDS.get(dialect)
        if name is None:
            return {REFERENCE: {IMAGE_URL: urls[0]}}
        return {name: urls[0] if dialect is Dialect.SGLANG else {IMAGE_URL: urls[0]}}
    pictures = [asset_parameter(assets[one.asset]) for one in references if one.asset is not None]
    if len(references) == 1 and pictures:
        return {REFERENCE: pictures[0]}
    if dialect is not Dialect.VLLM_OMNI:
        raise InvalidRequest(
            "Only one reference is taken.",
            field="references",
            hint='vLLM-Omni takes several: say dialect = "vllm-omni" in the account\'s settings if it is one.',
        )
    if urls:
        raise InvalidRequest("Several references must all be pictures, not addresses.", field="references")
    return {REFERENCES: pictures}


def _extra(extra: JsonObject, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """
    The server's own parameters as they are; they must not say a second time what another field says.
    """
    for name, value in extra.items():
        if name in parameters:
            raise InvalidRequest(f"extra.{name} says again what another field says.", field=f"extra.{name}")
        if name in (REFERENCE, REFERENCES) and "$asset" in json.dumps(value):
            raise InvalidRequest("Pictures are given in references, not in extra.", field=f"extra.{name}")
    return dict(extra)


def _model(parameters: Mapping[str, Any]) -> str | None:
    model = parameters.get("model")
    return model if isinstance(model, str) else None


def _length(parameters: Mapping[str, Any]) -> float | None:
    try:
        return float(parameters["seconds"])
    except (KeyError, TypeError, ValueError, OverflowError):
        return None

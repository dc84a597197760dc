"""
Says a uniform request as a graph and the values for its marks, and writes the two as the body of a create call.
"""

import uuid
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from vidrelay.core.adapter import Prepared, asset_parameter
from vidrelay.core.errors import InvalidRequest
from vidrelay.core.media import EXTENSIONS
from vidrelay.core.task import Asset, JsonObject, Request
from vidrelay.providers.comfyui import graph as graphs
from vidrelay.providers.comfyui.graph import FIELD, FRAMES, PICTURE, Mark
from vidrelay.providers.pictures import REFERENCE
from vidrelay.providers.sizes import pixel_size
from vidrelay.providers.uniform import only, plain, whole, with_extra

MAX_SEED = 2**64 - 1
TAG = "vidrelay"
"""The name under `extra_data` that our id stands under, and what our files' names begin with."""

_STEP = 16
"""Video models want edges that are multiples of it."""
_OURS = ("prompt", "prompt_id", "values")
_SECRETS = ("api_key_comfy_org", "auth_token_comfy_org")
_FIELDS = {
    "negative": "negativePrompt",
    "seed": "seed",
    "width": "resolution",
    "height": "resolution",
    "seconds": "duration",
    "frames": "duration",
    "model": "modelVersion",
}


def prepare(request: Request, assets: Mapping[str, Asset]) -> Prepared:
    """
    The graph as it was given, and beside it the values for its marks.

    Raises:
        InvalidRequest: There is no graph, a field has no place in it, or a mark gets no value; names the field.
    """
    only(
        request,
        *("aspectRatio", "duration", "resolution", "seed", "negativePrompt", "references"),
        who="ComfyUI, whose styles are in the graph,",
    )
    graph = graphs.checked(request.extra.get("graph"))
    with_extra({}, {"graph": graph})  # refuses pictures in it
    found = graphs.marks(graph)
    names = {mark.name for mark in found}
    values: dict[str, Any] = {"prompt": request.prompt}
    for name, value, field, places in (
        ("negative", request.negative_prompt, "negativePrompt", {"negative"}),
        ("model", request.model_version, "modelVersion", {"model"}),
        ("seconds", plain(request.duration), "duration", {"seconds", "frames"}),
        ("seed", request.seed, "seed", {"seed"}),
    ):
        if value is None:
            continue
        if not places & names:
            raise _no_place(field, places)
        values[name] = value
    if "seed" in values:
        values["seed"] = whole(values["seed"], 0, MAX_SEED, field="seed")
    if "seconds" in values and not 0 < values["seconds"] <= 86_400:
        raise InvalidRequest("duration must be more than 0.", field="duration")
    values |= _size(request, names)
    pictures = _pictures(request, assets, names)
    for mark in found:
        _must_have(mark, {**values, **pictures})
    graph = graphs.with_media(graph, pictures)
    left = {mark.name for mark in graphs.marks(graph)}
    values |= {name: picture for name, picture in pictures.items() if name in left}
    extra = {name: value for name, value in request.extra.items() if name != "graph"}
    parameters = as_sent(graph, extra, values=values if left else None, where="extra.")
    return Prepared(model=request.model_version, parameters=parameters, seconds=values.get("seconds"))


def as_sent(
    graph: JsonObject, beside: JsonObject, *, values: JsonObject | None = None, where: str = ""
) -> dict[str, Any]:
    """
    The parameters of a task: a graph with pictures in their places, and what else a create call says; `values` None:
    nothing in the graph is a mark. `where` is what that stood in, for errors.

    Raises:
        InvalidRequest: It says what is the relay's own to say, or holds a key.
    """
    for name in _OURS:
        if name in beside:
            raise InvalidRequest(f"{where}{name} is the relay's own to say.", field=f"{where}{name}")
    data = beside.get("extra_data")
    if data is not None and (not isinstance(data, Mapping) or TAG in data):
        told = f'{where}extra_data must be an object, in which "{TAG}" is the relay\'s own to say.'
        raise InvalidRequest(told, field=f"{where}extra_data")
    for name in _SECRETS:
        if data and data.get(name):
            field = f"{where}extra_data.{name}"
            raise InvalidRequest(f"{field} is a key, which would be kept with the task in the clear.", field=field)
    given = {name: value for name, value in beside.items() if name != "extra_data" or value}
    return with_extra({"graph": graph} if values is None else {"graph": graph, "values": values}, given)


def body(parameters: JsonObject, key: str) -> dict[str, Any]:
    """
    What `POST /prompt` is sent.
    """
    values: Mapping[str, Any] = parameters.get("values") or {}
    prompt_id = id_of(key)

    def value_of(mark: Mark) -> Any:
        if mark.name == "frames" and "seconds" in values:
            return max(1, round(values["seconds"] * (mark.rate or 1.0)))
        value = values.get(mark.name)
        if isinstance(value, Mapping):
            return file_of(value)
        if value is None:
            value = mark.preset
        if value is None and mark.name == "seed":
            # Nobody chose one, so each job has its own, and a job that is sent again has the same.
            return uuid.UUID(prompt_id).int % 2**32
        return "" if value is None else value

    told = {name: value for name, value in parameters.items() if name not in ("graph", "values")}
    return {
        # Not the relay's name: a websocket is told only of the jobs of its own client, and two clients of one name
        # would take each other's events away.
        "client_id": prompt_id,
        **told,
        "prompt": graphs.filled(
            parameters["graph"], value_of if "values" in parameters else None, name=prompt_id, file_of=file_of
        ),
        "prompt_id": prompt_id,
        "extra_data": {**(told.get("extra_data") or {}), TAG: prompt_id},
    }


def id_of(key: str) -> str:
    """
    The job's id at the server, which is the submission's own key as the lower-case UUID that newer servers want.
    """
    try:
        return str(uuid.UUID(key))
    except ValueError:
        return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{TAG}:{key}"))


def file_of(picture: Mapping[str, Any]) -> str:
    """
    What stands for a picture in the graph: its name in the server's input folder.
    """
    return str(picture.get("$copy") or filename_of(picture))


def filename_of(picture: Mapping[str, str]) -> str:
    """
    The name under which a picture, film or sound is uploaded: of its content, so that it is the same each time.
    """
    digest = picture["$asset"].rpartition(":")[2]
    return f"{TAG}-{digest[:32]}.{EXTENSIONS.get(picture.get('mediaType', ''), 'png')}"


def _no_place(field: str, places: set[str]) -> InvalidRequest:
    told = " or ".join(f"{{{name}}}" for name in sorted(places))
    return InvalidRequest(
        f"The graph has no place for {field}: none of its inputs is marked {told}.",
        field=field,
        hint="Write the mark as the input's value in extra.graph, or leave the field out.",
    )


def _must_have(mark: Mark, values: Mapping[str, Any]) -> None:
    """
    Refuse a mark that nothing can be put in place of. A seed is drawn, and a negative prompt may be empty.
    """
    preset = mark.preset
    if mark.name == "frames" and not mark.rate:
        raise InvalidRequest("Write {frames@16}, with the clip's frames per second.", field=FIELD)
    given = "seconds" if mark.name == "frames" else mark.name
    if given in values or preset is not None or mark.name in ("seed", "negative"):
        return
    field = _FIELDS.get(mark.name, "references")
    raise InvalidRequest(
        f"The graph asks for {{{mark.name}}}: {field} must say it.",
        field=field,
        hint=None if field == "references" else f"Or give a default in the graph: {{{mark.name}=…}}.",
    )


def _size(request: Request, names: set[str]) -> dict[str, int]:
    size = pixel_size(request.aspect_ratio, request.resolution, step=_STEP, slack=Fraction(5, 100))
    if size is None:
        return {}
    if not {"width", "height"} <= names:
        raise _no_place("resolution" if request.resolution is not None else "aspectRatio", {"width", "height"})
    return {"width": size[0], "height": size[1]}


def _pictures(request: Request, assets: Mapping[str, Asset], names: set[str]) -> dict[str, Any]:
    """
    A frame goes where the graph marks one, every other picture to the next of `{picture1}`, `{picture2}` and so on. One
    that stands alone without a role is the first frame where the graph marks that and no other picture.
    """
    placed: dict[str, Any] = {}
    number = 0
    is_frame = len(request.references) == 1 and FRAMES[0] in names and f"{PICTURE}1" not in names
    for index, given in enumerate(request.references):
        where = f"references[{index}]"
        one = replace(given, role=FRAMES[0]) if given.role is None and is_frame else given
        if one.role not in (None, REFERENCE, *FRAMES):
            told = ", ".join((*FRAMES, REFERENCE))
            raise InvalidRequest(f"A reference cannot be a {one.role!r} here, only {told}.", field=f"{where}.role")
        if one.asset is None:
            raise InvalidRequest("ComfyUI fetches no addresses: give the picture itself.", field=f"{where}.url")
        if one.role in FRAMES and one.role in names and one.role not in placed:
            placed[one.role] = asset_parameter(assets[one.asset])
            continue
        number += 1
        if f"{PICTURE}{number}" not in names:
            raise _no_place("references", {f"{PICTURE}{number}"})
        placed[f"{PICTURE}{number}"] = asset_parameter(assets[one.asset])
    return placed

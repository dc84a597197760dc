"""
What Omni is asked and what its interactions say.
"""

from collections.abc import Mapping
from typing import Any

from vidrelay.core.adapter import PollOutcome, Prepared
from vidrelay.core.errors import InvalidRequest
from vidrelay.core.lifecycle import Failed, Ready, StillRunning
from vidrelay.core.media import family_of
from vidrelay.core.task import Asset, RemoteFile, RemoteTimes, Request
from vidrelay.providers.google import words
from vidrelay.providers.pictures import FIRST, REFERENCE, Picture, bare, pictures
from vidrelay.providers.replies import reason, rows_of, text_of, time_of, told
from vidrelay.providers.uniform import one_of, only, whole, with_extra
from vidrelay.providers.verdicts import NO_FILE, Meaning, Standing, failed

RATIOS = ("16:9", "9:16")
RESOLUTIONS = ("360p", "720p", "1080p", "4k")
MAX_REFERENCES = 16


def prepare(request: Request, assets: Mapping[str, Asset], model: str) -> Prepared:
    """
    Say the request in the words of interactions.

    `background` lets the create be answered at once; `delivery` asks for an address, which is fetched in pieces, while
    a clip inside an answer comes whole or not at all.

    Raises:
        InvalidRequest: Omni cannot do it; names the field and what it accepts.
    """
    only(request, "aspectRatio", "duration", "resolution", "references", who="Omni")
    given = pictures(request, assets, who="Omni", roles=(FIRST, REFERENCE), max_others=MAX_REFERENCES)
    shown = [*given.frames, *given.others]
    wanted: dict[str, Any] = {"type": "video", "delivery": "uri"}
    seconds = None
    if request.duration is not None:
        seconds = whole(request.duration, 1, 60, field="duration")
        wanted["duration"] = f"{seconds}s"
    if request.aspect_ratio is not None:
        wanted["aspect_ratio"] = one_of(request.aspect_ratio, RATIOS, field="aspectRatio")
    if request.resolution is not None:
        wanted["resolution"] = one_of(request.resolution, RESOLUTIONS, field="resolution")
    body: dict[str, Any] = {
        "model": model,
        "input": [{"type": "user_input", "content": [{"type": "text", "text": request.prompt}, *map(_image, shown)]}],
        "background": True,
        "response_format": wanted,
    }
    # With both kinds of pictures the model finds out by itself what is meant.
    if not (given.first is not None and given.others):
        task = "reference_to_video" if given.others else "image_to_video" if shown else "text_to_video"
        body["generation_config"] = {"video_config": {"task": task}}
    parameters = with_extra(body, request.extra)
    refuse_unheard(parameters)
    return Prepared(model=model, parameters=parameters, seconds=seconds)


def refuse_unheard(body: Mapping[str, Any]) -> None:
    """
    Refuse a create whose clip could not be asked for afterwards: it is answered before the clip is made.

    Raises:
        InvalidRequest: It is to be streamed, or not to be kept by Google.
    """
    if body.get("stream"):
        raise InvalidRequest("An interaction cannot be streamed through vidrelay.", field="stream")
    if body.get("store") in (False, "false", 0):
        raise InvalidRequest(
            "store cannot be false: a clip is asked for afterwards, and Google answers for what it keeps.",
            field="store",
        )


def written(content: Mapping[str, Any]) -> dict[str, Any]:
    """
    A picture, film or sound as an input holds it.
    """
    return {"type": family_of(content["mediaType"]), "data": bare(content), "mime_type": content["mediaType"]}


def seen(data: dict[str, Any], *, secret: str | None) -> PollOutcome:
    """
    What an interaction says.
    """
    standing = words.STATES.read(text_of(data, "status"))
    match standing:
        case Standing.DONE:
            return _done(data, secret=secret)
        case Standing.FAILED | Standing.CANCELLED:
            return ended(data, standing, secret=secret)
        case _:
            return StillRunning(remote_state=standing.remote_state, times=times(data))


def ended(data: dict[str, Any], standing: Standing, *, secret: str | None, remote_id: str | None = None) -> Failed:
    """
    An interaction that came to nothing.
    """
    errors = rows_of(data, "errors") or []
    code = next(map(words.code_of, errors), None)
    message = "; ".join(text_of(row, "message") or "" for row in errors)
    meaning = words.meaning_of_failure(code, message) if standing is Standing.FAILED else standing.meaning
    return failed(meaning, reason(text_of(data, "status"), code, message, secret=secret), remote_id=remote_id)


def times(data: Mapping[str, Any]) -> RemoteTimes:
    """
    When it was made; `updated` is when it ended only once it has.
    """
    return RemoteTimes(created_at=time_of(data, "created"))


def _image(picture: Picture) -> Any:
    return {"type": "image", "uri": picture} if isinstance(picture, str) else picture


def _done(data: dict[str, Any], *, secret: str | None) -> PollOutcome:
    contents = _contents(data)
    files = [_file(one, place) for place, one in contents.items() if text_of(one, "type") == "video"]
    outputs = tuple(one for one in files if one is not None)
    if outputs:
        ended_at = time_of(data, "updated")
        return Ready(outputs=outputs, times=RemoteTimes(created_at=time_of(data, "created"), completed_at=ended_at))
    words_alone = " ".join(text_of(one, "text") or "" for one in contents.values()).strip()
    if words_alone:
        return failed(Meaning.REJECTED, told(f"it made no clip, and says: {words_alone}", secret=secret))
    return NO_FILE


def _file(video: Mapping[str, Any], place: str) -> RemoteFile | None:
    """
    The clip's address, or its place inside the answer: Google may send it there although an address was asked for.
    """
    uri = text_of(video, "uri")
    if uri:
        return RemoteFile(url=uri)
    return RemoteFile(url="", inside=f"{place}/data") if text_of(video, "data") else None


def _contents(data: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """
    What the model put out, in the order of its steps, by its place in the answer (a JSON pointer).
    """
    outputs = _listed(data, "steps", "")
    return {
        place: content
        for before, output in outputs.items()
        if text_of(output, "type") == "model_output"
        for place, content in _listed(output, "content", before).items()
    }


def _listed(data: Mapping[str, Any], name: str, before: str) -> dict[str, dict[str, Any]]:
    listed = data.get(name)
    rows = enumerate(listed) if isinstance(listed, list) else ()
    return {f"{before}/{name}/{number}": row for number, row in rows if isinstance(row, dict)}

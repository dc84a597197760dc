"""
What Omni is asked and what its interactions say.
"""

from collections.abc import Mapping
from typing import Any

from vidrelay.core.adapter import PollOutcome, Prepared
from vidrelay.core.lifecycle import Failed, Ready, StillRunning
from vidrelay.core.task import Asset, Problem, RemoteFile, RemoteTimes, Request
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

    `background` lets the create be answered at once; `delivery` asks for an address, since the relay takes no clip out
    of a status answer.

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
    return Prepared(model=model, parameters=with_extra(body, request.extra), seconds=seconds)


def written(content: Mapping[str, Any]) -> dict[str, Any]:
    """
    A picture as an input holds it.
    """
    return {"type": "image", "data": bare(content), "mime_type": content["mediaType"]}


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
    videos = [one for one in contents if text_of(one, "type") == "video"]
    uris = [uri for uri in (text_of(one, "uri") for one in videos) if uri]
    if uris:
        ended_at = time_of(data, "updated")
        when = RemoteTimes(created_at=time_of(data, "created"), completed_at=ended_at)
        return Ready(outputs=tuple(RemoteFile(url=uri) for uri in uris), times=when)
    if any(text_of(one, "data") for one in videos):
        told_id = told(text_of(data, "id") or "this one", secret=secret)
        detail = (
            f"Google sent the clip inside its answer, although an address was asked for, and the relay cannot take it "
            f"from there. It was made and paid for: read it at Google as interaction {told_id}, or import it later."
        )
        return Failed(problem=Problem(code="remote_failed", title="The clip came without an address", detail=detail))
    words_alone = " ".join(text_of(one, "text") or "" for one in contents).strip()
    if words_alone:
        return failed(Meaning.REJECTED, told(f"it made no clip, and says: {words_alone}", secret=secret))
    return NO_FILE


def _contents(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    """
    What the model put out, in the order of its steps.
    """
    outputs = [step for step in rows_of(data, "steps") or [] if text_of(step, "type") == "model_output"]
    return [one for output in outputs for one in rows_of(output, "content") or []]

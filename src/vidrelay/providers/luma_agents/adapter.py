"""
Toward Luma's Agents API (fills port Adapter).
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from vidrelay.core.adapter import (
    Checked,
    CheckOutcome,
    Conversation,
    PictureRule,
    PollOutcome,
    Prepared,
    SubmitOutcome,
    Traits,
)
from vidrelay.core.lifecycle import Accepted, Failed, StillRunning
from vidrelay.core.media import MAX_BYTES, VIDEO
from vidrelay.core.task import Asset, RemoteTimes, Request, Task
from vidrelay.providers.json_api import AdapterSettings, JsonAdapter
from vidrelay.providers.luma_agents import words
from vidrelay.providers.luma_agents.parameters import as_sent
from vidrelay.providers.pictures import FIRST, LAST, Picture, Pictures, bare, filled, pictures
from vidrelay.providers.replies import answered, reason, rows_of, text_of, time_of
from vidrelay.providers.uniform import length, one_of, only, with_extra
from vidrelay.providers.verdicts import (
    NOT_OURS,
    Meaning,
    Standing,
    failed,
    of_call,
    of_create,
    of_poll,
    ready,
    without_id,
)


class LumaAgentsAdapter(JsonAdapter):
    """
    One account at the Agents API.
    """

    def __init__(self, settings: AdapterSettings) -> None:
        super().__init__(settings, base_url=words.HOST)
        self.traits = Traits(
            poll_floor=2.0,
            longest_run=timedelta(hours=1),
            hosts=words.HOSTS,
            irrelevant=frozenset({"user_id"}),
            pictures=PictureRule(),
            media={VIDEO: MAX_BYTES},
            can_check=True,
        )

    def prepare(self, request: Request, assets: Mapping[str, Asset]) -> Prepared:
        """
        Say the request in Luma's words.

        Raises:
            InvalidRequest: Luma cannot do it; names the field and what it accepts.
        """
        only(request, "aspectRatio", "duration", "resolution", "references", who="Luma Agents")
        model = request.model_version or words.MODEL
        known = model == words.MODEL
        body: dict[str, Any] = {"type": "video", "model": model, "prompt": request.prompt}
        video: dict[str, Any] = {}
        seconds = None
        if request.duration is not None:
            seconds = length(request.duration, words.DURATIONS, known=known)
            video["duration"] = f"{seconds}s"
        if request.aspect_ratio is not None:
            body["aspect_ratio"] = one_of(request.aspect_ratio, words.RATIOS, field="aspectRatio", known=known)
        if request.resolution is not None:
            video["resolution"] = one_of(request.resolution, words.RESOLUTIONS, field="resolution", known=known)
        given = pictures(request, assets, who="Luma Agents", roles=(FIRST, LAST))
        video |= _frames(given, seconds)
        if video:
            body["video"] = video
        return as_sent(with_extra(body, request.extra))

    def submit(self, task: Task) -> Conversation[SubmitOutcome]:
        """
        One POST; our own key goes along for tracing only, which Luma does not look at twice.
        """
        body = filled(task.parameters, _media)
        reply = yield self.post(
            "/generations", body, creates=True, headers={"X-Request-Id": task.submission_key or task.id}
        )
        data = answered(reply)
        if data is None:
            return of_create(words.error(reply, key=self.key))
        remote_id = self.usable(text_of(data, "id"))
        if remote_id is None:
            return without_id(reply)
        standing = words.STATES.read(text_of(data, "state"))
        if standing is Standing.FAILED:
            return self._ended(data, remote_id)
        return Accepted(remote_id=remote_id, remote_state=standing.remote_state, times=_times(data))

    def poll(self, task: Task) -> Conversation[PollOutcome]:
        """
        One GET, which signs the addresses anew.
        """
        remote_id = self.usable(task.remote_id)
        if remote_id is None:
            return NOT_OURS
        reply = yield self.get(f"/generations/{remote_id}")
        data = answered(reply)
        return of_poll(words.error(reply, key=self.key)) if data is None else self._seen(data)

    def check(self) -> Conversation[CheckOutcome]:
        """
        Ask for one row of the list of uploaded files, which costs nothing.
        """
        reply = yield self.get("/files", limit=1)
        return of_call(words.error(reply, key=self.key)) if answered(reply) is None else Checked()

    def _seen(self, data: dict[str, Any]) -> PollOutcome:
        match words.STATES.read(text_of(data, "state")):
            case Standing.DONE:
                files = rows_of(data, "output") or []
                videos = [one for one in files if text_of(one, "type") == "video"] or files
                return ready(*(text_of(one, "url") for one in videos), times=_times(data))
            case Standing.FAILED:
                return self._ended(data)
            case standing:
                return StillRunning(remote_state=standing.remote_state, times=_times(data))

    def _ended(self, data: dict[str, Any], remote_id: str | None = None) -> Failed:
        code = text_of(data, "failure_code")
        why = reason(code, text_of(data, "failure_reason"), secret=self.key)
        return failed(words.CODES.get(code or "", Meaning.AGAIN), why, remote_id=remote_id)


def make(settings: AdapterSettings) -> LumaAgentsAdapter:
    """
    The adapter of an account.

    Raises:
        ConfigError: Its base URL is none.
    """
    return LumaAgentsAdapter(settings)


def _frames(given: Pictures, seconds: int | None) -> dict[str, Any]:
    """
    The frames by name; a clip of 10 seconds takes them by their place in the film alone.
    """
    if seconds != words.DURATIONS[-1] or not given:
        frames = {"start_frame": given.first, "end_frame": given.last}
        return {name: _reference(one) for name, one in frames.items() if one is not None}
    places = {0: given.first, words.LAST_FRAME_OF_10_SECONDS: given.last}
    held = {place: one for place, one in places.items() if one is not None}
    return {"keyframes": [_reference(one) for one in held.values()], "keyframe_indexes": list(held)}


def _reference(picture: Picture) -> Any:
    return {"url": picture} if isinstance(picture, str) else picture


def _media(picture: Mapping[str, str]) -> dict[str, Any]:
    return {"data": bare(picture), "media_type": picture["mediaType"]}


def _times(data: Mapping[str, Any]) -> RemoteTimes:
    return RemoteTimes(created_at=time_of(data, "created_at"))

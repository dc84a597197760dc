"""
Toward xAI's Grok Imagine (fills port Adapter).
"""

from collections.abc import Mapping
from typing import Any

from vidrelay.core.adapter import (
    Checked,
    CheckOutcome,
    Conversation,
    PictureRule,
    PollOutcome,
    Prepared,
    Refused,
    Scope,
    SubmitOutcome,
    Traits,
)
from vidrelay.core.lifecycle import Accepted, StillRunning
from vidrelay.core.task import Asset, BlockReason, Request, Task
from vidrelay.providers.json_api import AdapterSettings, JsonAdapter
from vidrelay.providers.pictures import FIRST, LAST, REFERENCE, data_uri, filled, pictures
from vidrelay.providers.replies import answered, object_of, percent_of, reason, text_of
from vidrelay.providers.uniform import one_of, only, whole, with_extra
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
from vidrelay.providers.xai import parameters, words


class XaiAdapter(JsonAdapter):
    """
    One account at xAI.
    """

    def __init__(self, settings: AdapterSettings) -> None:
        super().__init__(settings, base_url=words.HOST)
        self.traits = Traits(
            poll_floor=2.0,
            hosts=words.HOSTS,
            irrelevant=frozenset({"user"}),
            pictures=PictureRule(),
            can_check=True,
        )

    def prepare(self, request: Request, assets: Mapping[str, Asset]) -> Prepared:
        """
        Say the request in xAI's words.

        Raises:
            InvalidRequest: xAI cannot do it; names the field and what it accepts.
        """
        only(request, "aspectRatio", "duration", "resolution", "references", who="Grok Imagine")
        model = request.model_version or words.BASIC
        known = model in words.MODELS
        body: dict[str, Any] = {"model": model, "prompt": request.prompt}
        if request.duration is not None:
            body["duration"] = whole(request.duration, 1, words.MAX_SECONDS if known else 60, field="duration")
        if request.aspect_ratio is not None:
            body["aspect_ratio"] = one_of(request.aspect_ratio, words.RATIOS, field="aspectRatio", known=known)
        if request.resolution is not None:
            takes = words.RESOLUTIONS[:-1] if model == words.BASIC else words.RESOLUTIONS
            body["resolution"] = one_of(request.resolution, takes, field="resolution", known=known)
        roles = (FIRST, LAST, REFERENCE)
        given = pictures(request, assets, who="Grok Imagine", roles=roles, max_others=words.MAX_REFERENCES)
        if given.first is not None:
            body["image"] = {"url": given.first}
        if given.last is not None:
            body["last_frame"] = {"url": given.last}
        if given.others:
            body["reference_images"] = [{"url": one} for one in given.others]
        return parameters.as_sent(with_extra(body, request.extra))

    def submit(self, task: Task) -> Conversation[SubmitOutcome]:
        """
        One POST; the answer is an id and no more.
        """
        reply = yield self.post("/videos/generations", filled(task.parameters, data_uri), creates=True)
        data = answered(reply)
        if data is None:
            return of_create(words.error(reply, key=self.key))
        remote_id = self.usable(text_of(data, "request_id"))
        return without_id(reply) if remote_id is None else Accepted(remote_id=remote_id)

    def poll(self, task: Task) -> Conversation[PollOutcome]:
        """
        One GET; 202 without a body is a job that has not ended.
        """
        remote_id = self.usable(task.remote_id)
        if remote_id is None:
            return NOT_OURS
        reply = yield self.get(f"/videos/{remote_id}")
        data = answered(reply)
        if data is not None:
            return self._seen(data)
        if reply.status == 202:
            return StillRunning()
        error = words.error(reply, key=self.key)
        # So moderation has been seen to end a job, however often that is asked for; any other 400 passes.
        if error.meaning is Meaning.MODERATED and reply.status in (400, 422):
            return failed(error.meaning, error.detail)
        return of_poll(error)

    def check(self) -> Conversation[CheckOutcome]:
        """
        Ask what state the key is in.
        """
        reply = yield self.get("/api-key")
        data = answered(reply)
        if data is None:
            return of_call(words.error(reply, key=self.key))
        shut = [name for name in ("api_key_blocked", "api_key_disabled", "team_blocked") if data.get(name) is True]
        if shut:
            return Refused(scope=Scope.CALLS, reason=BlockReason.AUTH, detail=f"xAI says {', '.join(shut)}")
        return Checked()

    def _seen(self, data: dict[str, Any]) -> PollOutcome:
        video = object_of(data, "video")
        # Where the file is kept in xAI's own store as well, that may have the only address.
        url = text_of(video, "url") or text_of(object_of(video, "file_output"), "public_url")
        standing = words.STATES.read(text_of(data, "status"))
        # Clips have been seen to be told without a status, which only a pending job has then.
        is_told = bool(url) or video.get("respect_moderation") is False
        match Standing.DONE if is_told and data.get("status") is None else standing:
            case Standing.DONE:
                if not url and video.get("respect_moderation") is False:
                    return failed(Meaning.MODERATED, "xAI's moderation kept the clip back, and billed it")
                return ready(url)
            case Standing.EXPIRED:
                return failed(standing.meaning, "xAI says expired: too old, or never finished")
            case Standing.FAILED:
                code, message = words.spoken(data.get("error"))
                meaning = words.meaning_of_failure(code or "", message or "")
                return failed(meaning, reason(code, message, secret=self.key))
            case _:
                return StillRunning(progress=percent_of(data, "progress"))


def make(settings: AdapterSettings) -> XaiAdapter:
    """
    The adapter of an account.

    Raises:
        ConfigError: Its base URL is none.
    """
    return XaiAdapter(settings)

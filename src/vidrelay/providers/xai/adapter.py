"""
Toward xAI's Grok Imagine (fills port Adapter).
"""

from collections.abc import Mapping
from typing import Any

from vidrelay.core.errors import InvalidRequest
from vidrelay.core.lifecycle import Accepted, Failed, Ready, StillRunning
from vidrelay.core.ports import (
    Checked,
    CheckOutcome,
    Conversation,
    NotThere,
    PictureRule,
    PollOutcome,
    Prepared,
    Refused,
    Scope,
    SubmitOutcome,
    Traits,
    Trouble,
    Unknown,
)
from vidrelay.core.task import Asset, BlockReason, RemoteFile, Request, Task
from vidrelay.providers.json_api import AdapterSettings, JsonAdapter
from vidrelay.providers.replies import number_of, read_object, text_of, told
from vidrelay.providers.uniform import (
    FIRST,
    LAST,
    REFERENCE,
    data_uri,
    filled,
    one_of,
    only,
    pictures,
    with_extra,
)
from vidrelay.providers.uniform import whole as whole_number
from vidrelay.providers.verdicts import Meaning, Standing, failed, of_call, of_create, of_poll
from vidrelay.providers.xai import words


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
        body: dict[str, Any] = {"model": model, "prompt": request.prompt}
        if request.duration is not None:
            body["duration"] = whole_number(request.duration, 1, words.MAX_SECONDS, field="duration")
        if request.aspect_ratio is not None:
            body["aspect_ratio"] = one_of(request.aspect_ratio, words.RATIOS, field="aspectRatio")
        if request.resolution is not None:
            takes = words.RESOLUTIONS[:-1] if model == words.BASIC else words.RESOLUTIONS
            body["resolution"] = one_of(request.resolution, takes, field="resolution")
        roles = (FIRST, LAST, REFERENCE)
        given = pictures(request, assets, who="Grok Imagine", roles=roles, max_others=words.MAX_REFERENCES)
        if given.last is not None and given.first is None:
            raise InvalidRequest("Grok Imagine takes a last frame only with a first one.", field="references")
        if given.first is not None:
            body["image"] = {"url": given.first}
        if given.last is not None:
            body["last_frame"] = {"url": given.last}
        if given.others:
            body["reference_images"] = [{"url": one} for one in given.others]
        return Prepared(model=model, parameters=with_extra(body, request.extra), seconds=body.get("duration"))

    def submit(self, task: Task) -> Conversation[SubmitOutcome]:
        """
        One POST; the answer is an id and no more.
        """
        reply = yield self.post("/videos/generations", filled(task.parameters, data_uri), creates=True)
        data = read_object(reply)
        if not 200 <= reply.status < 300:
            return of_create(words.error(reply, key=self.key))
        remote_id = None if data is None else text_of(data, "request_id")
        if remote_id is None or not self.valid_id(remote_id):
            return Unknown(detail=f"the provider answered {reply.status} without an id that can be used")
        return Accepted(remote_id=remote_id)

    def poll(self, task: Task) -> Conversation[PollOutcome]:
        """
        One GET; 202 without a body is a job that has not ended.
        """
        remote_id = task.remote_id or ""
        if not self.valid_id(remote_id):
            return NotThere(detail="its id is none of this provider's")
        reply = yield self.get(f"/videos/{remote_id}")
        data = read_object(reply)
        if not 200 <= reply.status < 300:
            return of_poll(words.error(reply, key=self.key))
        if data is None:
            return StillRunning() if reply.status == 202 else Trouble(detail="the provider's answer cannot be read")
        return self._seen(data)

    def check(self) -> Conversation[CheckOutcome]:
        """
        Ask what state the key is in.
        """
        reply = yield self.get("/api-key")
        data = read_object(reply)
        if data is None or not 200 <= reply.status < 300:
            return of_call(words.error(reply, key=self.key))
        shut = [name for name in ("api_key_blocked", "api_key_disabled", "team_blocked") if data.get(name) is True]
        if shut:
            return Refused(scope=Scope.CALLS, reason=BlockReason.AUTH, detail=f"xAI says {', '.join(shut)}")
        return Checked()

    def _seen(self, data: dict[str, Any]) -> PollOutcome:
        standing = words.STATES.read(text_of(data, "status"))
        match standing:
            case Standing.DONE:
                told_of = data.get("video")
                video: dict[str, Any] = told_of if isinstance(told_of, dict) else {}
                url = text_of(video, "url")
                if url:
                    return Ready(outputs=(RemoteFile(url=url),))
                if video.get("respect_moderation") is False:
                    return failed(Meaning.MODERATED, "xAI's moderation kept the clip back, and billed it")
                return Trouble(detail="the provider says that it is done, and names no file")
            case Standing.EXPIRED:
                return failed(standing.meaning, "xAI says expired: too old, or never finished")
            case Standing.FAILED:
                return self._ended(data)
            case _:
                progress = number_of(data, "progress")
                share = None if progress is None else min(1.0, max(0.0, progress / 100))
                return StillRunning(progress=share)

    def _ended(self, data: dict[str, Any]) -> Failed:
        code, message = words.spoken(data.get("error"))
        detail = ": ".join(one for one in (code, message) if one) or "it says failed and no more"
        return failed(words.meaning_of_failure(code or "", message or ""), told(detail, secret=self.key))


def make(settings: AdapterSettings) -> XaiAdapter:
    """
    The adapter of an account.

    Raises:
        ConfigError: Its base URL is none.
    """
    return XaiAdapter(settings)

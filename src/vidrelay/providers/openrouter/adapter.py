"""
Toward OpenRouter's videos (fills port Adapter).
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import urljoin

from vidrelay.core.adapter import (
    CheckOutcome,
    Conversation,
    PictureRule,
    PollOutcome,
    Prepared,
    SubmitOutcome,
    Traits,
)
from vidrelay.core.errors import InvalidRequest
from vidrelay.core.lifecycle import Accepted, Ready, StillRunning
from vidrelay.core.media import ANY_SIZE
from vidrelay.core.task import Asset, RemoteFile, Request, Task
from vidrelay.providers.json_api import AdapterSettings, JsonAdapter
from vidrelay.providers.openrouter import words
from vidrelay.providers.openrouter.parameters import as_sent
from vidrelay.providers.pictures import FIRST, LAST, REFERENCE, Picture, data_uri, filled, pictures
from vidrelay.providers.replies import answered, number_of, object_of, reason, text_of, texts_of
from vidrelay.providers.uniform import one_of, only, whole, with_extra
from vidrelay.providers.verdicts import NOT_OURS, Standing, failed, left_of, of_call, of_create, of_poll, without_id


class OpenRouterAdapter(JsonAdapter):
    """
    One account at OpenRouter.
    """

    def __init__(self, settings: AdapterSettings) -> None:
        super().__init__(settings, base_url=words.HOST)
        self.traits = Traits(
            poll_floor=10.0,
            longest_run=timedelta(hours=1),
            hosts=words.HOSTS,
            irrelevant=frozenset({"callback_url", "session_id", "user", "trace"}),
            pictures=PictureRule(),
            media=ANY_SIZE,
            can_check=True,
            tells_quota=True,
        )

    def prepare(self, request: Request, assets: Mapping[str, Asset]) -> Prepared:
        """
        Say the request in OpenRouter's words; what a model of the many takes is its vendor's matter.

        Raises:
            InvalidRequest: OpenRouter cannot do it; names the field and what it accepts.
        """
        only(request, "aspectRatio", "duration", "resolution", "seed", "references", who="OpenRouter")
        model = request.model_version
        if not model:
            raise InvalidRequest("OpenRouter needs a model, as vendor/name.", field="modelVersion")
        body: dict[str, Any] = {"model": model, "prompt": request.prompt}
        if request.duration is not None:
            body["duration"] = whole(request.duration, 1, words.MAX_SECONDS, field="duration")
        if request.aspect_ratio is not None:
            body["aspect_ratio"] = one_of(request.aspect_ratio, words.RATIOS, field="aspectRatio")
        if request.resolution is not None:
            body["resolution"] = one_of(request.resolution, words.RESOLUTIONS, field="resolution")
        if request.seed is not None:
            body["seed"] = request.seed
        roles = (FIRST, LAST, REFERENCE)
        given = pictures(request, assets, who="OpenRouter", roles=roles, max_others=words.MAX_REFERENCES)
        frames = {"first_frame": given.first, "last_frame": given.last}
        shown = [{**_image(one), "frame_type": name} for name, one in frames.items() if one is not None]
        if shown:
            body["frame_images"] = shown
        if given.others:
            body["input_references"] = [_image(one) for one in given.others]
        return as_sent(with_extra(body, request.extra))

    def submit(self, task: Task) -> Conversation[SubmitOutcome]:
        """
        One POST, which is answered with 202.
        """
        reply = yield self.post("/videos", filled(task.parameters, data_uri), creates=True)
        data = answered(reply)
        if data is None or ("error" in data and text_of(data, "id") is None):
            return of_create(words.error(reply, key=self.key), trusted=reply.status < 500)
        remote_id = self.usable(text_of(data, "id"))
        if remote_id is None:
            return without_id(reply)
        standing = words.STATES.read(text_of(data, "status"))
        if standing in (Standing.FAILED, Standing.CANCELLED, Standing.EXPIRED):
            return failed(standing.meaning, self._why(data), remote_id=remote_id)
        return Accepted(remote_id=remote_id, remote_state=standing.remote_state)

    def poll(self, task: Task) -> Conversation[PollOutcome]:
        """
        One GET.
        """
        remote_id = self.usable(task.remote_id)
        if remote_id is None:
            return NOT_OURS
        reply = yield self.get(f"/videos/{remote_id}")
        data = answered(reply)
        if data is None or ("error" in data and "status" not in data):
            return of_poll(words.error(reply, key=self.key))
        standing = words.STATES.read(text_of(data, "status"))
        match standing:
            case Standing.DONE:
                return Ready(outputs=self._outputs(data, remote_id))
            case Standing.CANCELLED | Standing.EXPIRED:
                return failed(standing.meaning, self._why(data))
            case Standing.FAILED:
                return failed(words.meaning_of_failure(text_of(data, "error") or ""), self._why(data))
            case _:
                return StillRunning(remote_state=standing.remote_state)

    def check(self) -> Conversation[CheckOutcome]:
        """
        Ask what the key may still spend; where it has no limit of its own, what the account has, which not every key
        may see.
        """
        reply = yield self.get("/key")
        data = answered(reply)
        if data is None:
            return of_call(words.error(reply, key=self.key))
        left = number_of(object_of(data, "data"), "limit_remaining")
        if left is not None:
            return left_of(left, "USD", note=" of the key's limit")
        account = object_of(answered((yield self.get("/credits"))) or {}, "data")
        bought, used = number_of(account, "total_credits"), number_of(account, "total_usage")
        return left_of(None if bought is None or used is None else bought - used, "USD")

    def _why(self, data: dict[str, Any]) -> str:
        return reason(text_of(data, "error"), word=text_of(data, "status") or "failed", secret=self.key)

    def _outputs(self, data: dict[str, Any], remote_id: str) -> tuple[RemoteFile, ...]:
        """
        OpenRouter's own addresses, which want the key; the signed ones of its store only where it names no others, or
        where they stand for the same files and its own do not give them.
        """
        own, signed = texts_of(data, "unsigned_urls"), texts_of(data, "urls")
        if not own and signed:
            return tuple(RemoteFile(url=url) for url in signed)
        content = f"{self.base}/videos/{remote_id}/content?index="
        addresses = [_absolute(url, self.base) for url in own] or [f"{content}0"]
        # The key goes to no other host, so what stands there is asked for here.
        kept = [url if url.startswith(self.base + "/") else f"{content}{n}" for n, url in enumerate(addresses)]
        others = signed if len(signed) == len(kept) else [None] * len(kept)
        return tuple(
            RemoteFile(url=url, needs_key=True, otherwise=other) for url, other in zip(kept, others, strict=True)
        )


def make(settings: AdapterSettings) -> OpenRouterAdapter:
    """
    The adapter of an account.

    Raises:
        ConfigError: Its base URL is none.
    """
    return OpenRouterAdapter(settings)


def _absolute(url: str, base: str) -> str:
    try:
        return urljoin(base + "/", url)
    except ValueError:
        return ""


def _image(picture: Picture) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": picture}}

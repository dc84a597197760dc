"""
Toward Runway (fills port Adapter).
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from vidrelay.core.adapter import (
    CancelResult,
    CheckOutcome,
    Conversation,
    Dedupe,
    NotThere,
    PictureRule,
    PollOutcome,
    Prepared,
    Refused,
    SubmitOutcome,
    Traits,
    Trouble,
)
from vidrelay.core.lifecycle import Accepted, Cancelled, CancelTooLate, Failed, Ready, StillRunning
from vidrelay.core.media import AUDIO, VIDEO
from vidrelay.core.task import Asset, CancelOutcome, RemoteState, RemoteTimes, Request, Task
from vidrelay.providers.json_api import AdapterSettings, JsonAdapter
from vidrelay.providers.pictures import data_uri, filled
from vidrelay.providers.replies import answered, number_of, object_of, reason, text_of, texts_of, time_of
from vidrelay.providers.runway import words
from vidrelay.providers.runway.parameters import CALL, TEXT, prepare
from vidrelay.providers.verdicts import (
    NOT_OURS,
    Standing,
    failed,
    left_of,
    of_call,
    of_create,
    of_poll,
    ready,
    without_id,
)

UNLIMITED = 100
"""What a limit of null is taken for: so many at once are as good as any number."""


class RunwayAdapter(JsonAdapter):
    """
    One account at Runway.
    """

    def __init__(self, settings: AdapterSettings) -> None:
        super().__init__(settings, base_url=words.HOST, versions=("/v1",))
        self.traits = Traits(
            dedupe=Dedupe.NONE,
            can_cancel=True,
            poll_floor=5.0,
            longest_run=timedelta(hours=1),
            hosts=words.HOSTS,
            prompts=frozenset({"promptText", "negativePrompt"}),
            pictures=PictureRule(max_bytes=words.PICTURE_BYTES),
            media={VIDEO: words.MEDIA_BYTES, AUDIO: words.MEDIA_BYTES},
            can_check=True,
            tells_quota=True,
        )

    def authorization(self) -> dict[str, str]:
        """
        The bearer, and the version that every call must name.
        """
        return {**super().authorization(), **words.VERSION}

    def prepare(self, request: Request, assets: Mapping[str, Asset]) -> Prepared:
        """
        Say the request in Runway's words.

        Raises:
            InvalidRequest: The model cannot do it; names the field and what it accepts.
        """
        return prepare(request, assets)

    def submit(self, task: Task) -> Conversation[SubmitOutcome]:
        """
        One POST; its answer is an id and says nothing of the status.
        """
        body = filled(task.parameters, data_uri)
        call = body.pop(CALL, TEXT)
        reply = yield self.post(f"/v1/{call}", body, creates=True)
        data = answered(reply)
        if data is None:
            return of_create(words.error(reply, key=self.key))
        remote_id = self.usable(text_of(data, "id"))
        if remote_id is None:
            return without_id(reply)
        return Accepted(remote_id=remote_id, remote_state=RemoteState.WAITING)

    def poll(self, task: Task) -> Conversation[PollOutcome]:
        """
        One GET.
        """
        remote_id = self.usable(task.remote_id)
        if remote_id is None:
            return NOT_OURS
        reply = yield self.get(f"/v1/tasks/{remote_id}")
        data = answered(reply)
        return of_poll(words.error(reply, key=self.key)) if data is None else self._seen(data)

    def cancel(self, task: Task) -> Conversation[CancelResult]:
        """
        One DELETE, which erases what has ended: so it is asked first, and only what waits or runs is deleted.
        """
        seen = yield from self.poll(task)
        match seen:
            case StillRunning(remote_state=None):
                return Trouble(detail="the provider does not say in words that are known whether it still runs")
            case StillRunning():
                pass
            case Failed(problem=problem) if problem.code == "remote_cancelled":
                return Cancelled(outcome=CancelOutcome.STOPPED)
            case Ready() | Failed():
                return CancelTooLate()
            case NotThere(detail=detail):
                return Trouble(detail=detail)
            case Refused() | Trouble():
                return seen
        reply = yield self.call("DELETE", f"/v1/tasks/{task.remote_id}")
        error = words.error(reply, key=self.key)
        if 200 <= reply.status < 300 or (reply.status == 404 and error.readable):
            return Cancelled(outcome=CancelOutcome.STOPPED)
        return of_call(error)

    def limits(self) -> Conversation[Mapping[str, int] | None]:
        """
        How many of each model may run at once.
        """
        reply = yield self.get("/v1/organization")
        models = object_of(object_of(answered(reply) or {}, "tier"), "models")
        limits = {name: _places(one) for name, one in models.items() if isinstance(one, dict)}
        return {name: places for name, places in limits.items() if places is not None} or None

    def check(self) -> Conversation[CheckOutcome]:
        """
        Ask for the credits.
        """
        reply = yield self.get("/v1/organization")
        data = answered(reply)
        if data is None:
            return of_call(words.error(reply, key=self.key))
        return left_of(number_of(data, "creditBalance"), "credits")

    def _seen(self, data: Mapping[str, Any]) -> StillRunning | Ready | Failed | Trouble:
        times = RemoteTimes(created_at=time_of(data, "createdAt"))
        standing = words.STATES.read(text_of(data, "status"))
        match standing:
            case Standing.DONE:
                return ready(*texts_of(data, "output"), times=times)
            case Standing.FAILED:
                code = text_of(data, "failureCode")
                return failed(words.failure(code), reason(code, text_of(data, "failure"), secret=self.key))
            case Standing.CANCELLED:
                return failed(standing.meaning, "it was cancelled")
            case _:
                progress = number_of(data, "progress")
                return StillRunning(
                    remote_state=standing.remote_state,
                    progress=progress if progress is not None and 0 <= progress <= 1 else None,
                    times=times,
                )


def make(settings: AdapterSettings) -> RunwayAdapter:
    """
    The adapter of an account.

    Raises:
        ConfigError: Its base URL is none.
    """
    return RunwayAdapter(settings)


def _places(model: Mapping[str, Any]) -> int | None:
    if "maxConcurrentGenerations" in model and model["maxConcurrentGenerations"] is None:
        return UNLIMITED
    places = number_of(model, "maxConcurrentGenerations")
    return int(places) if places is not None and places >= 1 else None

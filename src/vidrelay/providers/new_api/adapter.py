"""
Toward a gateway of the new-api kind (fills port Adapter).

A gateway asks the providers behind by itself, and tries a create on several of its channels: a lost one may have been
carried out more than once there, and nothing that a user's key may ask tells of it. So it is always left to a person.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from vidrelay.core.adapter import (
    Checked,
    CheckOutcome,
    Conversation,
    Dedupe,
    PictureRule,
    PollOutcome,
    Prepared,
    SubmitOutcome,
    Traits,
    Trouble,
)
from vidrelay.core.hosts import is_loopback_host
from vidrelay.core.lifecycle import Accepted, Failed, Ready, StillRunning
from vidrelay.core.messages import HttpRequest
from vidrelay.core.task import Asset, JsonObject, RemoteFile, RemoteTimes, Request, Task
from vidrelay.providers.json_api import AdapterSettings, JsonAdapter
from vidrelay.providers.new_api import parameters, words
from vidrelay.providers.new_api.parameters import typed
from vidrelay.providers.pictures import data_uri, filled
from vidrelay.providers.replies import answered, instant_of, object_of, reason, text_of
from vidrelay.providers.verdicts import NOT_OURS, Meaning, Standing, failed, of_call, of_create, of_poll, without_id

NOBODY = "task_00000000000000000000000000000000"
"""An id that no task has: asking for it tells whether the key is taken."""


class NewApiAdapter(JsonAdapter):
    """
    One account at a gateway.
    """

    def __init__(self, settings: AdapterSettings) -> None:
        super().__init__(settings, base_url=words.HERE)
        near = is_loopback_host(urlsplit(self.base).hostname or "")
        self.traits = Traits(
            dedupe=Dedupe.NONE,
            poll_floor=0.0 if near else 5.0,
            poll_spacing=0.0 if near else 0.5,
            longest_run=timedelta(hours=2),
            irrelevant=frozenset({"user", "callback_url", "metadata.callback_url", "metadata.external_task_id"}),
            prompts=frozenset({"prompt", "metadata.negative_prompt"}),
            pictures=PictureRule(),
            can_check=True,
        )

    def prepare(self, request: Request, assets: Mapping[str, Asset]) -> Prepared:
        """
        Say the request in the gateway's words.

        Raises:
            InvalidRequest: It has none for it; names the field and what is accepted.
        """
        return parameters.prepare(request, assets)

    def typed(self, parameters: JsonObject) -> JsonObject:
        """
        Texts, where they go as a form.
        """
        return typed(parameters)

    def submit(self, task: Task) -> Conversation[SubmitOutcome]:
        """
        One POST.
        """
        form = parameters.form(task.parameters)
        if form is None:
            reply = yield self.post("/videos", filled(task.parameters, data_uri), creates=True)
        else:
            headers = {"Accept": "application/json", **self.authorization()}
            reply = yield HttpRequest(
                method="POST", url=f"{self.base}/videos", headers=headers, body=form, creates=True
            )
        if not 200 <= reply.status < 300:
            return of_create(words.error(reply, key=self.key))
        job = _job(answered(reply))
        remote_id = self.usable(text_of(job, "id") or text_of(job, "task_id"))
        if remote_id is None:
            return without_id(reply)
        standing = words.STATUSES.read(text_of(job, "status"))
        if standing is Standing.FAILED:
            return self._ended(job, remote_id)
        return Accepted(remote_id=remote_id, remote_state=standing.remote_state, times=_times(job))

    def poll(self, task: Task) -> Conversation[PollOutcome]:
        """
        One GET.
        """
        remote_id = self.usable(task.remote_id)
        if remote_id is None:
            return NOT_OURS
        reply = yield self.get(f"/videos/{remote_id}")
        if not 200 <= reply.status < 300:
            return of_poll(words.error(reply, key=self.key))
        job = _job(answered(reply))
        if text_of(job, "status") is None:
            return Trouble(detail="the gateway's answer cannot be read")
        match words.STATUSES.read(text_of(job, "status")):
            case Standing.DONE:
                # What metadata.url names lies at the provider behind, and dies when that wants; the gateway knows
                # where it is, and gets it.
                url = f"{self.base}/videos/{remote_id}/content"
                return Ready(outputs=(RemoteFile(url=url, needs_key=True),), times=_times(job, ended=True))
            case Standing.FAILED:
                return self._ended(job)
            case standing:
                # Its progress is made up in steps, and so it is not told.
                return StillRunning(remote_state=standing.remote_state, times=_times(job))

    def check(self) -> Conversation[CheckOutcome]:
        """
        Ask for a task that does not exist: whoever hears that it does not is let in.
        """
        reply = yield self.get(f"/videos/{NOBODY}")
        error = words.error(reply, key=self.key)
        if 200 <= reply.status < 300 or (error.meaning is Meaning.MISSING and error.readable):
            return Checked()
        return of_call(error)

    def _ended(self, job: Mapping[str, Any], remote_id: str | None = None) -> Failed:
        error = object_of(job, "error")
        parts = [text_of(error, "code"), text_of(error, "message"), text_of(job, "fail_reason")]
        meaning = Meaning.MODERATED if any(part and words.policy(part) for part in parts) else Meaning.AGAIN
        return failed(meaning, reason(*parts, secret=self.key), remote_id=remote_id)


def make(settings: AdapterSettings) -> NewApiAdapter:
    """
    The adapter of an account.

    Raises:
        ConfigError: Its base URL is none.
    """
    return NewApiAdapter(settings)


def _job(data: Mapping[str, Any] | None) -> dict[str, Any]:
    """
    The job itself, which some wrap as `{"code": "success", "message", "data"}`.
    """
    whole = dict(data or {})
    inner = whole.get("data")
    return inner if isinstance(inner, dict) and "status" not in whole else whole


def _times(job: Mapping[str, Any], *, ended: bool = False) -> RemoteTimes:
    completed_at = instant_of(job, "completed_at") or instant_of(job, "finish_time")
    return RemoteTimes(
        created_at=instant_of(job, "created_at") or instant_of(job, "submit_time"),
        started_at=instant_of(job, "start_time"),
        completed_at=completed_at if ended else None,
    )

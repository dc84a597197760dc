"""
Toward any server of the OpenAI Videos shape (fills port Adapter).

Where the dialects differ (western.md 1.9), the difference stands here: vLLM-Omni answers a failed job's status with an
error code and the job as body, aborts on DELETE, and lists from its memory alone; SGLang numbers its outputs and may
keep them elsewhere, and its DELETE only forgets.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from vidrelay.core.adapter import (
    CancelResult,
    Conversation,
    Dedupe,
    FindOutcome,
    NotThere,
    PictureRule,
    PollManyOutcome,
    PollOutcome,
    Prepared,
    Refused,
    Search,
    SubmitOutcome,
    Traits,
    Trouble,
    Unknown,
)
from vidrelay.core.errors import ConfigError
from vidrelay.core.hosts import is_loopback_host
from vidrelay.core.lifecycle import Accepted, Answered, Cancelled, CancelTooLate, Found, Ready, StillRunning
from vidrelay.core.media import ANY_SIZE
from vidrelay.core.messages import LIST_REPLY_BYTES, HttpReply
from vidrelay.core.task import Asset, CancelOutcome, JsonObject, RemoteFile, Request, Task
from vidrelay.providers.json_api import AdapterSettings, JsonAdapter
from vidrelay.providers.listing import Between, between, settled
from vidrelay.providers.openai import parameters, words
from vidrelay.providers.openai.parameters import typed
from vidrelay.providers.openai.reading import ended, is_alike, reason, refusal, rejected, times
from vidrelay.providers.openai.words import Dialect
from vidrelay.providers.replies import (
    answered,
    instant_of,
    number_of,
    percent_of,
    read_object,
    rows_of,
    text_of,
    told,
    wait_of,
)
from vidrelay.providers.verdicts import NOT_OURS, Standing, without_id

MAX_PAGES = 5
PAGE = 100


class OpenAiAdapter(JsonAdapter):
    """
    One account at one server.
    """

    def __init__(self, settings: AdapterSettings) -> None:
        """
        Speak to its base URL, which ends before `/videos` (as in `https://host/v1`), with its key or none.

        Raises:
            ConfigError: There is no base URL or it has no host, or there is no such dialect.
        """
        if not settings.base_url:
            raise ConfigError("The provider openai needs a base_url.")
        super().__init__(settings, base_url="https://host/v1")
        dialect = settings.dialect or Dialect.AUTO
        if dialect not in tuple(Dialect):
            raise ConfigError(f"dialect must be one of {', '.join(Dialect)}, not {dialect!r}.")
        self._dialect = Dialect(dialect)
        is_here = is_loopback_host(urlsplit(self.base).hostname or "")
        self.traits = Traits(
            dedupe=Dedupe.LIST,
            can_cancel=self._dialect in (Dialect.AUTO, Dialect.VLLM_OMNI),
            poll_floor=0.0 if is_here else 1.0,
            poll_spacing=0.0 if is_here else 0.5,
            hosts=_hosts(self.base),
            irrelevant=words.IRRELEVANT,
            pictures=PictureRule(),
            media=ANY_SIZE,
            # A gateway that nobody has named may have no list, and a list that fails costs a call before each poll.
            lists=self._dialect is not Dialect.AUTO,
        )

    def prepare(self, request: Request, assets: Mapping[str, Asset]) -> Prepared:
        """
        Say the request in the dialect's words.

        Raises:
            InvalidRequest: The dialect has no words for a field; names it.
        """
        return parameters.prepare(request, assets, self._dialect)

    def typed(self, parameters: JsonObject) -> JsonObject:
        """
        Texts, where they go as a form.
        """
        return typed(parameters, self._dialect)

    def submit(self, task: Task) -> Conversation[SubmitOutcome]:
        """
        One POST.
        """
        reply = yield self.call("POST", "/videos", body=parameters.body(task.parameters, self._dialect), creates=True)
        job = read_object(reply)
        if 200 <= reply.status < 300:
            return self._created(reply, job)
        refused = refusal(reply, job, key=self.key, creating=True)
        if refused is not None:
            return refused
        why = reason(job, key=self.key)
        if reply.status in words.REJECTED and why is not None:
            return rejected(reply.status, why)
        return Unknown(detail=f"the provider answered {reply.status}: {why or 'nothing that can be read'}")

    def poll(self, task: Task) -> Conversation[PollOutcome]:
        """
        One GET.
        """
        remote_id = self.usable(task.remote_id)
        if remote_id is None:
            return NOT_OURS
        reply = yield self.get(f"/videos/{remote_id}")
        job = read_object(reply)
        status = None if job is None else text_of(job, "status")
        if 200 <= reply.status < 300:
            if job is None or status is None:
                return Trouble(detail=f"the provider's answer ({reply.status}) cannot be read")
            return self._seen(job, status, remote_id)
        # vLLM-Omni tells of a failed job with an error code, and the whole job as the body.
        if job is not None and words.STATES.read(status) is Standing.FAILED and job.get("id") == remote_id:
            return ended(job, key=self.key)
        why = reason(job, key=self.key)
        if reply.status in (404, 410) and not words.NO_WAY.search(reply.body):
            return NotThere(detail=why or f"it answered {reply.status}")
        detail = f"the provider answered {reply.status}: {why or 'nothing that can be read'}"
        return refusal(reply, job, key=self.key) or Trouble(detail=detail, retry_after=wait_of(reply))

    def poll_many(self, tasks: Sequence[Task]) -> Conversation[PollManyOutcome]:
        """
        The newest hundred of the list; what is further down, or not there, is asked for by itself.
        """
        reply = yield self.get("/videos", max_reply_bytes=LIST_REPLY_BYTES, order="desc", limit=PAGE)
        rows = rows_of(answered(reply) or {}, "data")
        if rows is None:
            detail = f"the provider's list cannot be read (it answered {reply.status})"
            refused = refusal(reply, read_object(reply), key=self.key)
            return refused or Trouble(detail=detail, retry_after=wait_of(reply))
        listed = {text_of(row, "id"): (row, status) for row in rows if (status := text_of(row, "status")) is not None}
        return {
            task.id: self._seen(*listed[task.remote_id], task.remote_id)
            for task in tasks
            if task.remote_id is not None and task.remote_id in listed
        }

    def find(self, task: Task, search: Search) -> Conversation[FindOutcome]:
        """
        Read the list, newest first, back to when the create was sent.

        Absence is never proved: local servers forget their jobs when they start again, and no lag is documented.
        """
        alike: dict[str, Found] = {}
        when: Between | None = None
        after = None
        for _ in range(MAX_PAGES):
            reply = yield self.get("/videos", max_reply_bytes=LIST_REPLY_BYTES, order="desc", limit=PAGE, after=after)
            listed = answered(reply) or {}
            jobs = listed.get("data")
            if not isinstance(jobs, list):
                detail = f"the provider's list cannot be read (it answered {reply.status})"
                refused = refusal(reply, read_object(reply), key=self.key)
                return refused or Trouble(detail=detail, retry_after=wait_of(reply))
            # By the first page's clock: the search was told how late it is just before that was asked for.
            when = when or between(search, reply)
            page = [job for job in jobs if isinstance(job, dict) and self.valid_id(text_of(job, "id") or "")]
            alike |= {
                job["id"]: _found(job) for job in page if job["id"] not in search.owned and is_alike(job, task, when)
            }
            oldest = instant_of(page[-1], "created_at") if page else None
            more = listed.get("has_more") is True or len(jobs) >= PAGE
            if not more or oldest is None or oldest < when.earliest:
                return settled(alike)
            after = page[-1]["id"]
        return settled(alike, whole=False)

    def cancel(self, task: Task) -> Conversation[CancelResult]:
        """
        Stop it where DELETE stops (vLLM-Omni); elsewhere nothing is sent, since DELETE would only lose the result.

        It is asked for first, because the same DELETE throws the result of a finished job away.
        """
        remote_id = task.remote_id or ""
        if words.spoken(self._dialect, remote_id) is not Dialect.VLLM_OMNI or not self.valid_id(remote_id):
            return Cancelled(outcome=CancelOutcome.UNSUPPORTED)
        seen = yield from self.poll(task)
        if isinstance(seen, NotThere):
            # Stopped by a DELETE whose answer we never heard, or not there yet: which of them, the polls will show.
            return Trouble(detail=seen.detail)
        if not isinstance(seen, StillRunning):
            return seen if isinstance(seen, Refused | Trouble) else CancelTooLate()
        reply = yield self.call("DELETE", f"/videos/{remote_id}")
        if 200 <= reply.status < 300 or reply.status == 409:  # 409: the abort is already under way
            return Cancelled(outcome=CancelOutcome.STOPPED)
        refused = refusal(reply, read_object(reply), key=self.key)
        return refused or Trouble(detail=f"the provider answered {reply.status}", retry_after=wait_of(reply))

    def _created(self, reply: HttpReply, job: dict[str, Any] | None) -> SubmitOutcome:
        job = job or {}
        named = text_of(job, "id")
        remote_id, standing = self.usable(named), words.STATES.read(text_of(job, "status"))
        if standing is Standing.FAILED:
            return ended(job, key=self.key, remote_id=remote_id)
        if remote_id is None:
            unknown = without_id(reply)
            shown = "" if named is None else f": {told(named, secret=self.key)}"
            return replace(unknown, detail=unknown.detail + shown)
        if standing is Standing.DONE:
            return Answered(remote_id=remote_id, outputs=self._outputs(job, remote_id), times=times(job))
        return Accepted(remote_id=remote_id, remote_state=standing.remote_state, times=times(job))

    def _seen(self, job: dict[str, Any], status: str, remote_id: str) -> PollOutcome:
        standing = words.STATES.read(status)
        match standing:
            case Standing.DONE:
                return Ready(outputs=self._outputs(job, remote_id), times=times(job))
            case Standing.FAILED | Standing.CANCELLED | Standing.EXPIRED:
                return ended(job, key=self.key)
        progress = percent_of(job, "progress")
        # vLLM-Omni says 0 until it says 100, which tells nothing.
        if progress == 0 and words.spoken(self._dialect, remote_id) is Dialect.VLLM_OMNI:
            progress = None
        so_far = replace(times(job), completed_at=None)
        return StillRunning(remote_state=standing.remote_state, progress=progress, times=so_far)

    def _outputs(self, job: dict[str, Any], remote_id: str) -> tuple[RemoteFile, ...]:
        content = f"{self.base}/videos/{remote_id}/content"
        if words.spoken(self._dialect, remote_id) is not Dialect.SGLANG:
            return (RemoteFile(url=content, needs_key=True),)
        several = job.get("urls")
        named = several if isinstance(several, list) and several else [job.get("url")]
        urls = [url for url in named if isinstance(url, str) and url.startswith(("https://", "http://"))]
        if len(urls) == len(named):
            return tuple(RemoteFile(url=url) for url in urls)
        count = int(min(16, max(1, number_of(job, "num_outputs") or 1)))
        if count == 1:
            return (RemoteFile(url=content, needs_key=True),)
        return tuple(RemoteFile(url=f"{content}?variant={index}", needs_key=True) for index in range(count))


def make(settings: AdapterSettings) -> OpenAiAdapter:
    """
    The adapter of an account.

    Raises:
        ConfigError: Its base URL or its dialect is none.
    """
    return OpenAiAdapter(settings)


def _found(job: Mapping[str, Any]) -> Found:
    standing = words.STATES.read(text_of(job, "status"))
    return Found(remote_id=job["id"], remote_state=standing.remote_state, times=times(job))


def _hosts(base_url: str) -> tuple[str, ...]:
    """
    The server's own name where it is one on the usual port; any other base_url is let through as itself.
    """
    parts = urlsplit(base_url)
    host = parts.hostname or ""
    named = not host.replace(".", "").isdigit() and ":" not in host and host != "localhost"
    return (host,) if parts.scheme == "https" and parts.port in (None, 443) and named else ()

"""
Toward any server of the OpenAI Videos shape (fills port Adapter).

Where the dialects differ (western.md 1.9), the difference stands here: vLLM-Omni answers a failed job's status with an
error code and the job as body, aborts on DELETE, and lists from its memory alone; SGLang numbers its outputs and may
keep them elsewhere, and its DELETE only forgets.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import quote, urlsplit

from vidrelay.core.errors import ConfigError
from vidrelay.core.hosts import is_loopback_host
from vidrelay.core.lifecycle import Accepted, Answered, Cancelled, CancelTooLate, Failed, Found, Ready, StillRunning
from vidrelay.core.messages import LIST_REPLY_BYTES, HttpReply, HttpRequest
from vidrelay.core.ports import (
    CancelResult,
    Conversation,
    Dedupe,
    FindOutcome,
    NotThere,
    PictureRule,
    PollOutcome,
    Prepared,
    Refused,
    Search,
    SubmitOutcome,
    Traits,
    Trouble,
    Unknown,
)
from vidrelay.core.task import (
    Asset,
    CancelOutcome,
    RemoteFile,
    Request,
    Task,
)
from vidrelay.providers.json_api import BaseAdapter
from vidrelay.providers.listing import Between, between, settled
from vidrelay.providers.openai import parameters, words
from vidrelay.providers.openai.reading import ended, is_alike, reason, refusal, rejected, times
from vidrelay.providers.openai.words import Dialect
from vidrelay.providers.replies import instant_of, number_of, read_object, text_of, told, wait_of

_MAX_PAGES = 5
_PAGE = 100


class OpenAiAdapter(BaseAdapter):
    """
    One account at one server.
    """

    def __init__(self, *, key: str | None, base_url: str, dialect: str = Dialect.AUTO) -> None:
        """
        Speak to `base_url`, which ends before `/videos` (as in `https://host/v1`), with that key or none.

        Raises:
            ConfigError: The base URL has no host, or there is no such dialect.
        """
        parts = urlsplit(base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(f"base_url must be an address such as https://host/v1, not {base_url!r}.")
        if dialect not in tuple(Dialect):
            raise ConfigError(f"dialect must be one of {', '.join(Dialect)}, not {dialect!r}.")
        self._key = key
        self._base = base_url.rstrip("/")
        self._dialect = Dialect(dialect)
        self.traits = Traits(
            dedupe=Dedupe.LIST,
            can_cancel=self._dialect in (Dialect.AUTO, Dialect.VLLM_OMNI),
            poll_floor=0.0 if is_loopback_host(parts.hostname) else 1.0,
            poll_spacing=0.0 if is_loopback_host(parts.hostname) else 0.5,
            hosts=_hosts(base_url),
            irrelevant=words.IRRELEVANT,
            pictures=PictureRule(),
        )

    def prepare(self, request: Request, assets: Mapping[str, Asset]) -> Prepared:
        """
        Say the request in the dialect's words.

        Raises:
            InvalidRequest: The dialect has no words for a field; names it.
        """
        return parameters.prepare(request, assets, self._dialect)

    def submit(self, task: Task) -> Conversation[SubmitOutcome]:
        """
        One POST.
        """
        body, content_type = parameters.body(task.parameters, self._dialect)
        headers = self._headers() | ({"Content-Type": content_type} if content_type else {})
        reply = yield HttpRequest(method="POST", url=f"{self._base}/videos", headers=headers, body=body, creates=True)
        job = read_object(reply)
        if 200 <= reply.status < 300:
            return self._created(reply, job)
        refused = refusal(reply, job, key=self._key, creating=True)
        if refused is not None:
            return refused
        why = reason(job, key=self._key)
        if reply.status in words.REJECTED and why is not None:
            return Failed(problem=rejected(reply.status, why))
        return Unknown(detail=f"the provider answered {reply.status}: {why or 'nothing that can be read'}")

    def poll(self, task: Task) -> Conversation[PollOutcome]:
        """
        One GET.
        """
        remote_id = task.remote_id or ""
        if not self.valid_id(remote_id):
            return NotThere(detail="its id is none of this provider's")
        reply = yield HttpRequest(method="GET", url=self._address(remote_id), headers=self._headers())
        job = read_object(reply)
        status = None if job is None else text_of(job, "status")
        if 200 <= reply.status < 300:
            if job is None or status is None:
                return Trouble(detail=f"the provider's answer ({reply.status}) cannot be read")
            return self._seen(job, status, remote_id)
        # vLLM-Omni tells of a failed job with an error code, and the whole job as the body.
        if job is not None and status in words.FAILED and job.get("id") == remote_id:
            return ended(job, key=self._key)
        why = reason(job, key=self._key)
        # A page that some proxy made says nothing of the job.
        if reply.status in (404, 410) and not reply.body.lstrip().startswith(b"<"):
            return NotThere(detail=why or f"it answered {reply.status}")
        detail = f"the provider answered {reply.status}: {why or 'nothing that can be read'}"
        return refusal(reply, job, key=self._key) or Trouble(detail=detail, retry_after=wait_of(reply))

    def find(self, task: Task, search: Search) -> Conversation[FindOutcome]:
        """
        Read the list, newest first, back to when the create was sent.

        Absence is never proved: local servers forget their jobs when they start again, and no lag is documented.
        """
        alike: dict[str, Found] = {}
        when: Between | None = None
        after = ""
        for _ in range(_MAX_PAGES):
            url = f"{self._base}/videos?order=desc&limit={_PAGE}{after}"
            reply = yield HttpRequest(method="GET", url=url, headers=self._headers(), max_reply_bytes=LIST_REPLY_BYTES)
            listed = read_object(reply)
            jobs = None if listed is None else listed.get("data")
            if listed is None or not 200 <= reply.status < 300 or not isinstance(jobs, list):
                detail = f"the provider's list cannot be read (it answered {reply.status})"
                return refusal(reply, listed, key=self._key) or Trouble(detail=detail, retry_after=wait_of(reply))
            # By the first page's clock: the search was told how late it is just before that was asked for.
            when = when or between(search, reply)
            page = [job for job in jobs if isinstance(job, dict) and self.valid_id(text_of(job, "id") or "")]
            alike |= {
                job["id"]: _found(job) for job in page if job["id"] not in search.owned and is_alike(job, task, when)
            }
            oldest = instant_of(page[-1], "created_at") if page else None
            more = listed.get("has_more") is True or len(jobs) >= _PAGE
            if not more or oldest is None or oldest < when.earliest:
                return settled(alike)
            after = f"&after={quote(page[-1]['id'], safe='')}"
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
        reply = yield HttpRequest(method="DELETE", url=self._address(remote_id), headers=self._headers())
        if 200 <= reply.status < 300 or reply.status == 409:  # 409: the abort is already under way
            return Cancelled(outcome=CancelOutcome.STOPPED)
        refused = refusal(reply, read_object(reply), key=self._key)
        return refused or Trouble(detail=f"the provider answered {reply.status}", retry_after=wait_of(reply))

    def download(self, task: Task, output: RemoteFile) -> HttpRequest:
        """
        The address as it is; the key goes to the server itself alone.
        """
        own = output.needs_key and output.url.startswith(self._base + "/")
        return HttpRequest(method="GET", url=output.url, headers=self._authorization() if own else {})

    def _headers(self) -> dict[str, str]:
        return {"Accept": "application/json", **self._authorization()}

    def _authorization(self) -> dict[str, str]:
        return {} if self._key is None else {"Authorization": f"Bearer {self._key}"}

    def _address(self, remote_id: str) -> str:
        return f"{self._base}/videos/{remote_id}"

    def _created(self, reply: HttpReply, job: dict[str, Any] | None) -> SubmitOutcome:
        remote_id = None if job is None else text_of(job, "id")
        status = None if job is None else text_of(job, "status")
        if job is not None and status in words.FAILED:
            known = remote_id is not None and self.valid_id(remote_id)
            return replace(ended(job, key=self._key), remote_id=remote_id if known else None)
        if job is None or remote_id is None or not self.valid_id(remote_id):
            said = "" if remote_id is None else f": {told(remote_id, secret=self._key)}"
            return Unknown(detail=f"the provider answered {reply.status} without an id that can be used{said}")
        if status in words.COMPLETED:
            outputs = self._outputs(job, remote_id)
            return Answered(remote_id=remote_id, outputs=outputs, times=times(job))
        return Accepted(remote_id=remote_id, remote_state=words.remote_state(status), times=times(job))

    def _seen(self, job: dict[str, Any], status: str, remote_id: str) -> PollOutcome:
        if status in words.COMPLETED:
            return Ready(outputs=self._outputs(job, remote_id), times=times(job))
        if status in words.FAILED | words.CANCELLED | words.EXPIRED:
            return ended(job, key=self._key)
        progress = number_of(job, "progress")
        if progress is not None:
            progress = min(1.0, max(0.0, progress / 100))
            # vLLM-Omni says 0 until it says 100, which tells nothing.
            if progress == 0 and words.spoken(self._dialect, remote_id) is Dialect.VLLM_OMNI:
                progress = None
        told = replace(times(job), completed_at=None)
        return StillRunning(remote_state=words.remote_state(status), progress=progress, times=told)

    def _outputs(self, job: dict[str, Any], remote_id: str) -> tuple[RemoteFile, ...]:
        content = f"{self._address(remote_id)}/content"
        if words.spoken(self._dialect, remote_id) is not Dialect.SGLANG:
            return (RemoteFile(url=content, needs_key=True),)
        several = job.get("urls")
        told = several if isinstance(several, list) and several else [job.get("url")]
        urls = [url for url in told if isinstance(url, str) and url.startswith(("https://", "http://"))]
        if len(urls) == len(told):
            return tuple(RemoteFile(url=url) for url in urls)
        count = int(min(16, max(1, number_of(job, "num_outputs") or 1)))
        if count == 1:
            return (RemoteFile(url=content, needs_key=True),)
        return tuple(RemoteFile(url=f"{content}?variant={index}", needs_key=True) for index in range(count))


def _found(job: Mapping[str, Any]) -> Found:
    return Found(remote_id=job["id"], remote_state=words.remote_state(text_of(dict(job), "status")), times=times(job))


def _hosts(base_url: str) -> tuple[str, ...]:
    """
    The server's own name where it is one on the usual port; any other base_url is let through as itself.
    """
    parts = urlsplit(base_url)
    host = parts.hostname or ""
    named = not host.replace(".", "").isdigit() and ":" not in host and host != "localhost"
    return (host,) if parts.scheme == "https" and parts.port in (None, 443) and named else ()

"""
Toward fal's queue (fills port Adapter).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from vidrelay.core.adapter import (
    CancelResult,
    CheckOutcome,
    Conversation,
    Dedupe,
    FindOutcome,
    NotThere,
    PollManyOutcome,
    PollOutcome,
    Prepared,
    Search,
    SubmitOutcome,
    Traits,
    Trouble,
    UploadOutcome,
)
from vidrelay.core.lifecycle import CancelTooLate, StillRunning
from vidrelay.core.media import ANY_SIZE
from vidrelay.core.messages import API_REPLY_BYTES, LIST_REPLY_BYTES, HttpRequest, Json
from vidrelay.core.task import Asset, RemoteFile, Request, Task
from vidrelay.providers.fal import listed, reading, words
from vidrelay.providers.fal.parameters import (
    ENDPOINT,
    HEADERS,
    WEBHOOK,
    app_of,
    headers_of,
    input_of,
    is_endpoint,
    prepare,
)
from vidrelay.providers.fal.uploads import KEPT_SECONDS, copied, upload_of
from vidrelay.providers.json_api import AdapterSettings, JsonAdapter
from vidrelay.providers.pictures import data_uri, filled
from vidrelay.providers.replies import answered, number_of, object_of, read_object, reason, text_of
from vidrelay.providers.streams import last_event
from vidrelay.providers.verdicts import (
    failed,
    of_call,
    of_create,
    of_poll,
    of_upload,
    without_id,
)


class FalAdapter(JsonAdapter):
    """
    One account at fal.
    """

    def __init__(self, settings: AdapterSettings) -> None:
        super().__init__(settings, base_url=words.QUEUE)
        self.base, self._platform, self._rest, self._cdn = words.hosts_of(self.base)
        self.traits = Traits(
            dedupe=Dedupe.LIST,
            can_cancel=True,
            poll_floor=2.0,
            longest_run=timedelta(hours=1),
            hosts=words.HOSTS,
            irrelevant=frozenset({WEBHOOK, HEADERS}),
            media=ANY_SIZE,
            copies=timedelta(seconds=KEPT_SECONDS) - timedelta(hours=1),
            follows=True,
            can_check=True,
            tells_quota=True,
        )

    def authorization(self) -> dict[str, str]:
        """
        The word is Key, not Bearer.
        """
        return {} if self.key is None else {"Authorization": f"Key {self.key}"}

    def valid_id(self, remote_id: str) -> bool:
        """
        A request's id, or with its app before it: `owner/app/id`.
        """
        app, slash, request_id = remote_id.rpartition("/")
        return super().valid_id(request_id) and (is_endpoint(app) if slash else True)

    def prepare(self, request: Request, assets: Mapping[str, Asset]) -> Prepared:
        """
        Say the request in the words that most video models share.

        Raises:
            InvalidRequest: No model is named, or a picture's field cannot be known.
        """
        return prepare(request, assets)

    def submit(self, task: Task) -> Conversation[SubmitOutcome]:
        """
        One POST to the model's own address.
        """
        sent = task.parameters
        endpoint = str(sent[ENDPOINT])
        reply = yield self.call(
            "POST",
            f"/{endpoint}",
            query={words.WEBHOOK_QUERY: sent.get(WEBHOOK)},
            body=Json(value=filled(input_of(sent), data_uri)),
            creates=True,
            headers=headers_of(sent),
        )
        data = answered(reply)
        if data is None:
            return of_create(words.error(reply, key=self.key), trusted=reply.status < 500)
        request_id = text_of(data, "request_id")
        if request_id is None or not super().valid_id(request_id):
            return without_id(reply)
        return reading.accepted(data, request_id, endpoint)

    def poll(self, task: Task) -> Conversation[PollOutcome]:
        """
        One GET, and one more for the result, which alone says whether it is one.
        """
        path = self._path(task)
        if path is None:
            return NotThere(detail="its id, or its model, is none of this provider's")
        reply = yield self.get(f"{path}/status")
        data = answered(reply)
        if data is None:
            return of_poll(words.error(reply, key=self.key))
        return (yield from self._told(data, path))

    def follow(self, tasks: Sequence[Task], known: Mapping[str, StillRunning]) -> Conversation[PollManyOutcome]:
        """
        The status as a stream of events, and one GET more for the result.
        """
        task = tasks[0]
        path = self._path(task)
        if path is None:
            return Trouble(detail="its id, or its model, is none of this provider's")
        reply = yield replace(
            self.call("GET", f"{path}/status/stream", headers={"Accept": "text/event-stream"}),
            held=reading.until_news(known.get(task.id)),
        )
        if not 200 <= reply.status < 300:
            return of_call(words.error(reply, key=self.key))
        data = last_event(reply.body)
        if data is None or text_of(data, "status") is None:
            return Trouble(detail="the stream tells nothing that can be read")
        return {task.id: (yield from self._told(data, path))}

    def _told(self, data: Mapping[str, Any], path: str) -> Conversation[PollOutcome]:
        """
        What a status says, and the result where it is done.
        """
        running = words.standing(data)
        if running is not None:
            return running
        if data.get("error"):
            code = text_of(data, "error_type")
            return failed(words.job_meaning(code), reason(code, text_of(data, "error"), secret=self.key))
        reply = yield self.get(path)
        return reading.result(reply, number_of(object_of(data, "metrics"), "inference_time"), key=self.key)

    def find(self, task: Task, search: Search) -> Conversation[FindOutcome]:
        """
        Read the list of the model's requests. It may show finished ones only, so absence proves nothing.
        """
        endpoint = str(task.parameters.get(ENDPOINT) or "")

        def page(query: Mapping[str, Any]) -> HttpRequest:
            asked = {"endpoint_id": endpoint, **query}
            return self._away(
                self._platform, "/v1/models/requests/by-endpoint", query=asked, max_reply_bytes=LIST_REPLY_BYTES
            )

        return listed.found_in(page, task, search, is_id=super().valid_id, key=self.key)

    def cancel(self, task: Task) -> Conversation[CancelResult]:
        """
        Takes it out of the queue; a running app is told, and may go on. What came of it, the status shows.
        """
        path = self._path(task)
        if path is None:
            return CancelTooLate()
        reply = yield self.call("PUT", f"{path}/cancel")
        if text_of(read_object(reply) or {}, "status") == words.ENDED:
            return CancelTooLate()
        if not 200 <= reply.status < 300:
            return of_call(words.error(reply, key=self.key))
        return reading.stopped((yield from self.poll(task)))

    def upload(self, picture: Mapping[str, str]) -> Conversation[UploadOutcome]:
        """
        A token from fal's own host, then the bytes to its media host, which sees no key.
        """
        asked = {"storage_type": "fal-cdn-v3"}
        reply = yield self._away(self._rest, "/storage/auth/token", query=asked, body=Json(value={}))
        if not 200 <= reply.status < 300:
            return of_upload(words.error(reply, key=self.key))
        sending = upload_of(picture, reply, self._cdn)
        if sending is None:
            return Trouble(detail="the provider gives no token for its media host")
        reply = yield sending
        return copied(reply, key=self.key)

    def check(self) -> Conversation[CheckOutcome]:
        """
        Ask for the balance.
        """
        reply = yield self._away(self._platform, "/v1/account/billing", query={"expand": "credits"})
        data = answered(reply)
        if data is None:
            return of_call(words.error(reply, key=self.key))
        return reading.left(data)

    def download(self, task: Task, output: RemoteFile) -> HttpRequest:
        """
        Results are public: the key is never sent.
        """
        return HttpRequest(method="GET", url=output.url)

    def pass_on(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> HttpRequest:
        """
        The same call at the host that has such paths: an upload's are none of the queue's.
        """
        request = super().pass_on(method, path, query, headers, body)
        hosts = {"/storage/": self._rest, "/files/": self._cdn}
        base = next((host for start, host in hosts.items() if path.startswith(start)), self.base)
        return replace(request, url=base + request.url.removeprefix(self.base))

    def _away(
        self,
        base: str,
        path: str,
        *,
        query: Mapping[str, Any],
        body: Json | None = None,
        max_reply_bytes: int = API_REPLY_BYTES,
    ) -> HttpRequest:
        """
        A call to another host of fal's.
        """
        method = "GET" if body is None else "POST"
        request = self.call(method, path, query=query, body=body, max_reply_bytes=max_reply_bytes)
        return replace(request, url=base + request.url.removeprefix(self.base))

    def _path(self, task: Task) -> str | None:
        """
        Where the task's request stands, None where that cannot be known.
        """
        app, _, request_id = (task.remote_id or "").rpartition("/")
        app = app or app_of(str(task.parameters.get(ENDPOINT) or ""))
        known = is_endpoint(app) and super().valid_id(request_id)
        return f"/{app}/requests/{request_id}" if known else None


def make(settings: AdapterSettings) -> FalAdapter:
    """
    The adapter of an account.

    Raises:
        ConfigError: Its base URL is none.
    """
    return FalAdapter(settings)

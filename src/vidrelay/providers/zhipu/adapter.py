"""
Toward Zhipu and Z.ai (fills port Adapter).
"""

from collections.abc import Mapping
from datetime import timedelta

from vidrelay.core.adapter import (
    Conversation,
    Dedupe,
    FindOutcome,
    NotThere,
    PictureRule,
    PollOutcome,
    Prepared,
    Search,
    SubmitOutcome,
    Traits,
    Undecided,
)
from vidrelay.core.lifecycle import Accepted, StillRunning
from vidrelay.core.task import Asset, Request, Task
from vidrelay.providers.json_api import AdapterSettings, JsonAdapter
from vidrelay.providers.pictures import data_uri, filled
from vidrelay.providers.replies import identity, read_object, rows_of, text_of
from vidrelay.providers.verdicts import NOT_OURS, Meaning, Standing, failed, of_create, of_poll, ready, without_id
from vidrelay.providers.zhipu import words
from vidrelay.providers.zhipu.parameters import prepare


class ZhipuAdapter(JsonAdapter):
    """
    One account at Zhipu, or at Z.ai. Its key is sent as it is.
    """

    def __init__(self, settings: AdapterSettings) -> None:
        super().__init__(settings, base_url=words.BASES[settings.dialect or "zhipu"])
        self.traits = Traits(
            # Our request_id is on every create, and a repeat would be told by 1231; but that it holds for videos was
            # never seen, and the job's id could not be had by it: so a lost create is never sent again by itself.
            dedupe=Dedupe.NONE,
            poll_floor=5.0,
            longest_run=timedelta(hours=1),
            hosts=words.HOSTS,
            irrelevant=frozenset({"request_id", "user_id"}),
            prompts=frozenset({"prompt"}),
            pictures=PictureRule(max_bytes=5 * 1024 * 1024, media_types=frozenset({"image/jpeg", "image/png"})),
        )

    def prepare(self, request: Request, assets: Mapping[str, Asset]) -> Prepared:
        """
        Say the request in Zhipu's words (`parameters.prepare`).

        Raises:
            InvalidRequest: The model cannot do it; names the field and what it accepts.
        """
        return prepare(request, assets)

    def submit(self, task: Task) -> Conversation[SubmitOutcome]:
        """
        One POST, with our own key as the request_id that must be unique.
        """
        body = filled(task.parameters, data_uri)
        body["request_id"] = body.get("request_id") or task.submission_key
        reply = yield self.post("/videos/generations", body, creates=True)
        data = read_object(reply)
        code, error = words.code_of(data), words.error(reply, key=self.key)
        if code == words.EXISTS and task.parameters.get("request_id") and task.attempts <= 1:
            # An id of the user's own, which an older request had: this one was never tried before.
            return failed(Meaning.REJECTED, error.detail)
        if not 200 <= reply.status < 300 or code is not None:
            return of_create(error)
        remote_id = self.usable(identity(data or {}, "id"))
        return without_id(reply) if remote_id is None else Accepted(remote_id=remote_id)

    def poll(self, task: Task) -> Conversation[PollOutcome]:
        """
        One GET, which knows the provider's id alone.
        """
        remote_id = self.usable(task.remote_id)
        if remote_id is None:
            return NOT_OURS
        reply = yield self.get(f"/async-result/{remote_id}")
        data, error = read_object(reply), words.error(reply, key=self.key)
        word, code = text_of(data or {}, "task_status"), words.code_of(data)
        standing = words.STATES.read(word)
        if standing is Standing.FAILED:
            why = "it says FAIL and no more" if code is None else error.detail
            return failed(words.CODES.get(code or "", standing.meaning), why)
        if word is None and words.CODES.get(code or "") is Meaning.MODERATED:
            # Nothing but the job's own content can be meant.
            return failed(Meaning.MODERATED, error.detail)
        if code in words.WRONG:
            return NotThere(detail=error.detail)
        if data is None or not 200 <= reply.status < 300 or code is not None:
            return of_poll(error)
        if standing is not Standing.DONE:
            return StillRunning()
        return ready(*(text_of(clip, "url") for clip in rows_of(data, "video_result") or []))

    def find(self, task: Task, search: Search) -> Conversation[FindOutcome]:
        """
        Nothing is sent: there is no list, and the query does not know a request_id.
        """
        return Undecided(
            detail="Zhipu has no list, and tells no task by its request_id; sent again under the same one it should be "
            "refused with 1231 where it exists"
        )
        yield  # makes this a conversation


def make(settings: AdapterSettings) -> ZhipuAdapter:
    """
    The adapter of an account at the house that its dialect names: `zhipu` unless it says `zai`.

    Raises:
        ConfigError: Its base URL is none.
    """
    return ZhipuAdapter(settings)

"""
Toward Google's Gemini API (fills port Adapter).
"""

from collections.abc import Mapping
from dataclasses import replace

from vidrelay.core.adapter import (
    CancelResult,
    Checked,
    CheckOutcome,
    Conversation,
    NotThere,
    PictureRule,
    PollOutcome,
    Prepared,
    Refused,
    SubmitOutcome,
    Traits,
    Trouble,
)
from vidrelay.core.lifecycle import Accepted, Cancelled, CancelTooLate, Ready, StillRunning
from vidrelay.core.media import AUDIO, VIDEO
from vidrelay.core.messages import CLIP_REPLY_BYTES
from vidrelay.core.task import Asset, CancelOutcome, RemoteFile, Request, Task
from vidrelay.providers.google import interactions, veo, words
from vidrelay.providers.json_api import AdapterSettings, JsonAdapter
from vidrelay.providers.pictures import filled
from vidrelay.providers.replies import answered, text_of
from vidrelay.providers.verdicts import NOT_OURS, Standing, of_call, of_create, of_poll, without_id


class GoogleAdapter(JsonAdapter):
    """
    One account at the Gemini API: models of Omni are asked by interactions, all others as Veo is.
    """

    def __init__(self, settings: AdapterSettings) -> None:
        super().__init__(settings, base_url=words.HOST)
        self.traits = Traits(
            can_cancel=True,
            poll_floor=10.0,
            hosts=words.HOSTS,
            irrelevant=frozenset({"webhookConfig", "webhook_config", "labels"}),
            prompts=frozenset({"instances.prompt", "parameters.negativePrompt", "input.content.text"}),
            pictures=PictureRule(max_bytes=words.MEDIA_BYTES),
            media={VIDEO: words.MEDIA_BYTES, AUDIO: words.MEDIA_BYTES},
            can_check=True,
        )

    def authorization(self) -> dict[str, str]:
        """
        A header of Google's own.
        """
        return {} if self.key is None else {"x-goog-api-key": self.key}

    def valid_id(self, remote_id: str) -> bool:
        """
        An operation's whole name, or an interaction's id.
        """
        return veo.ID.fullmatch(remote_id) is not None or super().valid_id(remote_id)

    def prepare(self, request: Request, assets: Mapping[str, Asset]) -> Prepared:
        """
        Say the request in the words of its model.

        Raises:
            InvalidRequest: The model cannot do it; names the field and what it accepts.
        """
        model = words.model(request.model_version or words.VEO)
        if model.startswith(words.OMNI):
            return interactions.prepare(request, assets, model)
        return veo.prepare(request, assets, model)

    def submit(self, task: Task) -> Conversation[SubmitOutcome]:
        """
        One POST.
        """
        if "instances" in task.parameters:
            body = filled(task.parameters, veo.written)
            path, name = f"/models/{body.pop('model')}:predictLongRunning", "name"
        else:
            body = filled(task.parameters, interactions.written)
            path, name = "/interactions", "id"
        reply = yield self.post(path, body, creates=True)
        data = answered(reply)
        if data is None:
            return of_create(words.error(reply, key=self.key), trusted=reply.status < 500)
        remote_id = self.usable(text_of(data, name))
        # An operation is told from an interaction by its name alone, later on.
        if remote_id is None or _is_veo(remote_id) != (name == "name"):
            return without_id(reply)
        if name == "name":
            return Accepted(remote_id=remote_id)
        standing = words.STATES.read(text_of(data, "status"))
        if standing in (Standing.FAILED, Standing.CANCELLED):
            return interactions.ended(data, standing, secret=self.key, remote_id=remote_id)
        return Accepted(remote_id=remote_id, remote_state=standing.remote_state, times=interactions.times(data))

    def poll(self, task: Task) -> Conversation[PollOutcome]:
        """
        One GET. It may hold a whole clip, so its answer may be long.
        """
        remote_id = self.usable(task.remote_id)
        if remote_id is None:
            return NOT_OURS
        is_veo = _is_veo(remote_id)
        path = f"/{remote_id}" if is_veo else f"/interactions/{remote_id}"
        reply = yield self.get(path, max_reply_bytes=CLIP_REPLY_BYTES)
        data = answered(reply)
        if data is None:
            return of_poll(words.error(reply, key=self.key))
        seen = veo.seen if is_veo else interactions.seen
        outcome = seen(data, secret=self.key)
        if isinstance(outcome, Ready):
            return replace(outcome, outputs=tuple(self._file(one, path) for one in outcome.outputs))
        return outcome

    def cancel(self, task: Task) -> Conversation[CancelResult]:
        """
        Stops an interaction. Nothing stops an operation of Veo's: it is asked for, and so told whether it runs on.
        """
        remote_id = task.remote_id or ""
        if _is_veo(remote_id):
            seen = yield from self.poll(task)
            return _settled(seen)
        reply = yield self.post(f"/interactions/{remote_id}/cancel", {})
        data = answered(reply)
        if data is not None:
            match words.STATES.read(text_of(data, "status")):
                case Standing.CANCELLED:
                    return Cancelled(outcome=CancelOutcome.STOPPED)
                case Standing.DONE | Standing.FAILED:
                    return CancelTooLate()
                case _:
                    return Trouble(detail="the provider was asked to stop it, and has not said yet that it did")
        error = words.error(reply, key=self.key)
        refused = of_call(error)
        if isinstance(refused, Refused) or reply.status not in (400, 404, 409) or not error.readable:
            return refused
        seen = yield from self.poll(task)
        return _settled(seen)

    def check(self) -> Conversation[CheckOutcome]:
        """
        Ask for one row of the list of models, which costs nothing.
        """
        reply = yield self.get("/models", pageSize=1)
        return of_call(words.error(reply, key=self.key)) if answered(reply) is None else Checked()

    def _file(self, output: RemoteFile, path: str) -> RemoteFile:
        """
        A file of Google's own is asked for at the account's address, with the key, which no other address gets; one
        inside the answer, where that came from.
        """
        if output.inside is not None:
            return replace(output, url=f"{self.base}{path}", needs_key=True)
        named = words.file_id(output.url)
        if named is None:
            return output
        return RemoteFile(url=f"{self.base}/files/{named}:download?alt=media", needs_key=True)


def make(settings: AdapterSettings) -> GoogleAdapter:
    """
    The adapter of an account.

    Raises:
        ConfigError: Its base URL is none.
    """
    return GoogleAdapter(settings)


def _is_veo(remote_id: str) -> bool:
    return veo.ID.fullmatch(remote_id) is not None


def _settled(seen: PollOutcome) -> CancelResult:
    """
    What a poll says of a job that could not be stopped.
    """
    match seen:
        case Refused() | Trouble():
            return seen
        case StillRunning():
            return Cancelled(outcome=CancelOutcome.UNSUPPORTED)
        case NotThere():
            return Trouble(detail=seen.detail)
        case _:
            return CancelTooLate()

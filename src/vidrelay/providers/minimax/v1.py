"""
Toward MiniMax's V1 (fills port Adapter): Hailuo 2.3 and 02, and the 01 models.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from vidrelay.core.adapter import (
    Conversation,
    Dedupe,
    NotThere,
    PictureRule,
    PollOutcome,
    Prepared,
    SubmitOutcome,
    Traits,
    Trouble,
)
from vidrelay.core.errors import InvalidRequest
from vidrelay.core.lifecycle import Accepted, StillRunning
from vidrelay.core.messages import HttpReply
from vidrelay.core.task import Asset, Request, Task
from vidrelay.providers.json_api import AdapterSettings, JsonAdapter
from vidrelay.providers.minimax import words
from vidrelay.providers.minimax.sent import as_sent
from vidrelay.providers.pictures import FIRST, LAST, REFERENCE, data_uri, filled, pictures
from vidrelay.providers.replies import identity, object_of, read_object, text_of
from vidrelay.providers.uniform import at_most, one_of, only, whole, with_extra
from vidrelay.providers.verdicts import (
    NO_FILE,
    NOT_OURS,
    Meaning,
    Standing,
    failed,
    of_create,
    of_poll,
    ready,
    without_id,
)

DEFAULT_MODEL, SUBJECT_MODEL = "MiniMax-Hailuo-2.3", "S2V-01"
SUBJECT = "subject_reference"
TEXT_MODELS = "T2V-"
"""With this begin the names of the models that look at no picture."""
MAX_PROMPT = 2000
DURATIONS = (6, 10)
RESOLUTIONS = {"MiniMax-Hailuo-": ("768P", "1080P", "512P"), "T2V-01": ("720P",), "I2V-01": ("720P",)}
"""By the beginning of the model's name; of 512P it is not known which takes it."""
ANY_RESOLUTION = ("768P", "1080P", "720P", "512P")
SHORT, LONG = "1080P", 10
"""A resolution, and the seconds that a clip in it cannot have."""


class V1Adapter(JsonAdapter):
    """
    One account at MiniMax's V1, where nothing can be listed, looked up or stopped.
    """

    def __init__(self, settings: AdapterSettings) -> None:
        super().__init__(settings, base_url=words.HOST, versions=words.VERSIONS)
        self.traits = Traits(
            dedupe=Dedupe.NONE,
            poll_floor=10.0,
            longest_run=timedelta(hours=1),
            hosts=words.HOSTS,
            irrelevant=frozenset({"callback_url"}),
            pictures=PictureRule(max_bytes=20 * 1024 * 1024),
        )

    def prepare(self, request: Request, assets: Mapping[str, Asset]) -> Prepared:
        """
        Say the request in V1's words.

        Raises:
            InvalidRequest: V1 cannot do it; names the field and what it accepts.
        """
        only(request, "duration", "resolution", "references", who="MiniMax V1")
        wants_subject = any(one.role == REFERENCE for one in request.references) or SUBJECT in request.extra
        model = request.model_version or (SUBJECT_MODEL if wants_subject else DEFAULT_MODEL)
        if model.startswith(words.V2_MODELS):
            raise InvalidRequest(
                f"{model} is a model of MiniMax's V2, and this account speaks V1.",
                field="modelVersion",
                hint='Use an account with dialect = "v2".',
            )
        body: dict[str, Any] = {"model": model, "prompt": at_most(request.prompt, MAX_PROMPT)}
        if request.duration is not None:
            known = model.startswith((*RESOLUTIONS, SUBJECT_MODEL))
            seconds = whole(request.duration, 1, 3600, field="duration")
            body["duration"] = one_of(seconds, DURATIONS, field="duration", known=known)
        if request.resolution is not None:
            body["resolution"] = _resolution(model, request.resolution, body.get("duration"))
        roles = (REFERENCE,) if model == SUBJECT_MODEL else () if model.startswith(TEXT_MODELS) else (FIRST, LAST)
        # Beside extra's own first frame a last one does not stand alone; of other models nobody has told us.
        alone = bool(request.extra.get("first_frame_image")) or not model.startswith(tuple(RESOLUTIONS))
        given = pictures(request, assets, who=model, roles=roles, max_others=1, last_alone=alone)
        if given.first is not None:
            body["first_frame_image"] = given.first
        if given.last is not None:
            body["last_frame_image"] = given.last
        if given.others:
            body[SUBJECT] = [{"type": "character", "image": list(given.others)}]
        return as_sent(with_extra(body, request.extra))

    def submit(self, task: Task) -> Conversation[SubmitOutcome]:
        """
        One POST; an error may come with HTTP 200, and some regions wrap the answer in `data`.
        """
        reply = yield self.post("/v1/video_generation", filled(task.parameters, data_uri), creates=True)
        data = read_object(reply)
        if not _is_fine(reply, data):
            return of_create(words.error(reply, key=self.key))
        whole = data or {}
        remote_id = self.usable(identity(object_of(whole, "data"), "task_id") or identity(whole, "task_id"))
        return without_id(reply) if remote_id is None else Accepted(remote_id=remote_id)

    def poll(self, task: Task) -> Conversation[PollOutcome]:
        """
        One GET, and a second one for the file's address where the clip is done.
        """
        remote_id = self.usable(task.remote_id)
        if remote_id is None:
            return NOT_OURS
        reply = yield self.get("/v1/query/video_generation", task_id=remote_id)
        data = read_object(reply)
        inner = object_of(data or {}, "data")
        seen = inner if "status" in inner else data or {}
        standing = words.STATES_V1.read(text_of(seen, "status") or None)
        if standing is Standing.FAILED:
            code = words.code_of(data) or ""
            why = words.error(reply, key=self.key).detail if code else "it says Fail and no more"
            return failed(words.CODES.get(code, Standing.FAILED.meaning), why)
        if not _is_fine(reply, data):
            return self._not_seen(reply)
        if data is None or not seen:
            return Trouble(detail="the provider's answer cannot be read")
        if standing is not Standing.DONE:
            return StillRunning(remote_state=standing.remote_state)
        file_id = identity(seen, "file_id")
        return NO_FILE if file_id is None else (yield from self._file(file_id))

    def _file(self, file_id: str) -> Conversation[PollOutcome]:
        reply = yield self.get("/v1/files/retrieve", file_id=file_id)
        data = read_object(reply)
        if not _is_fine(reply, data):
            return self._not_seen(reply)
        file = object_of(data or {}, "file") or object_of(object_of(data or {}, "data"), "file")
        return ready(text_of(file, "download_url"))

    def _not_seen(self, reply: HttpReply) -> PollOutcome:
        """
        Read an error of a call that names nothing but an id: wrong parameters are an id that is not known.
        """
        error = words.error(reply, key=self.key)
        if words.code_of(read_object(reply)) == words.INVALID:
            return NotThere(detail=error.detail)
        if error.meaning is Meaning.MODERATED:
            return failed(error.meaning, error.detail)
        return of_poll(error)


def _resolution(model: str, asked: str, seconds: int | None) -> str:
    """
    The resolution, if the model makes clips of that length in it.

    Raises:
        InvalidRequest: It does not; names what it takes.
    """
    taken = next((taken for name, taken in RESOLUTIONS.items() if model.startswith(name)), None)
    resolution: str = one_of(asked, taken or ANY_RESOLUTION, field="resolution", known=taken is not None)
    if taken is not None and (resolution, seconds) == (SHORT, LONG):
        others = " or ".join(one for one in taken if one != SHORT)
        raise InvalidRequest(
            f"At {LONG} seconds the resolution of {model} must be {others}, not {SHORT}.", field="resolution"
        )
    return resolution


def _is_fine(reply: HttpReply, data: Mapping[str, Any] | None) -> bool:
    return 200 <= reply.status < 300 and words.code_of(data) is None

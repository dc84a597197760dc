"""
MiniMax's V1 as its clients know it (fills port Door): create, status, and the address of the file.
"""

from collections.abc import Mapping
from typing import Any

from vidrelay.core.door import Answering, DoorCall, DoorRoute, JsonReply, Phase, View
from vidrelay.core.errors import UnknownTask
from vidrelay.core.task import Problem
from vidrelay.providers.doorway import create_in, look, media_in, submit, text_in, unix
from vidrelay.providers.minimax.sent import as_sent

FINE: Mapping[str, Any] = {"status_code": 0, "status_msg": "success"}
INVALID, NO_KEY, TOO_MANY, TROUBLE = 2013, 1004, 1002, 1000
BAD_INPUT, BAD_OUTPUT = 1026, 1027

_STATUS = {
    Phase.WAITING: "Queueing",
    Phase.WORKING: "Processing",
    Phase.DONE: "Success",
    Phase.FAILED: "Fail",
    Phase.CANCELLED: "Fail",
    Phase.EXPIRED: "Fail",
}
_FRAMES = ("first_frame_image", "last_frame_image")
_SUBJECTS = "subject_reference"


class V1Door:
    """
    `/v1/video_generation`, `/v1/query/video_generation`, `/v1/files/retrieve`.
    """

    def __init__(self) -> None:
        self.routes = (
            DoorRoute(method="POST", path="/v1/video_generation", handler=self.create),
            DoorRoute(method="GET", path="/v1/query/video_generation", handler=self.query),
            DoorRoute(method="GET", path="/v1/files/retrieve", handler=self.file),
        )

    def create(self, call: DoorCall) -> Answering:
        """
        Pictures are data URIs, or addresses.
        """
        body, force = create_in(call)
        for name in _FRAMES:
            if name in body:
                body[name] = media_in(body[name])
        if isinstance(body.get(_SUBJECTS), list):
            body[_SUBJECTS] = [_subject(one) for one in body[_SUBJECTS]]
        view = yield from submit(as_sent(body), prompt=text_in(body, "prompt"), force=force)
        return JsonReply(value={"task_id": view.task.id, "base_resp": FINE})

    def query(self, call: DoorCall) -> Answering:
        """
        How a clip stands; why it failed stands in `base_resp`, as with MiniMax.
        """
        view = yield from look(call.query.get("task_id", ""))
        status = _STATUS[view.phase]
        return JsonReply(
            value={
                "task_id": view.task.id,
                "status": status,
                # A task has one clip, so its id does for the file's too.
                "file_id": view.task.id if view.phase is Phase.DONE else "",
                "base_resp": _why(view) if status == "Fail" else FINE,
            }
        )

    def file(self, call: DoorCall) -> Answering:
        """
        Where the clip is: at this relay.
        """
        view = yield from look(call.query.get("file_id", ""))
        if not view.files or view.gone:
            raise UnknownTask("There is no such file.")
        # MiniMax repeats the file's id here, as a number of 64 bits, which ours is not: typed clients fail over a text.
        file = {
            "bytes": view.task.files[0].size_bytes,
            "created_at": unix(view.task.finished_at),
            "filename": "output_aigc.mp4",
            "purpose": "video_generation",
            "download_url": view.files[0],
        }
        return JsonReply(value={"file": file, "base_resp": FINE})

    def write_error(self, problem: Problem, call: DoorCall) -> JsonReply:
        """
        `{"base_resp": {"status_code", "status_msg"}}`.
        """
        return base_error(problem)


def base_error(problem: Problem) -> JsonReply:
    """
    An error in V1's shape.

    MiniMax sends most of them with HTTP 200. Here they keep their status: a client that looks at nothing else must not
    take a refusal for a task, and one that reads the code finds it all the same.
    """
    codes = {401: NO_KEY, 403: NO_KEY, 429: TOO_MANY}
    code = codes.get(problem.status, INVALID if problem.status < 500 else TROUBLE)
    return JsonReply(status=problem.status, value={"base_resp": {"status_code": code, "status_msg": problem.detail}})


def _subject(group: Any) -> Any:
    pictures = group.get("image") if isinstance(group, Mapping) else None
    return {**group, "image": [media_in(one) for one in pictures]} if isinstance(pictures, list) else group


def _why(view: View) -> dict[str, Any]:
    moderated = BAD_INPUT if view.task.remote_id is None else BAD_OUTPUT
    code = {"moderated": moderated, "rejected": INVALID}.get(view.problem.code, TROUBLE)
    return {"status_code": code, "status_msg": view.problem.detail}

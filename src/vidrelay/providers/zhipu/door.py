"""
Zhipu's and Z.ai's videos as their SDKs know them (fills port Door): `/api/paas/v4`.
"""

from typing import Any

from vidrelay.core.door import Answering, DoorCall, DoorRoute, JsonReply, Phase, View
from vidrelay.core.task import Problem
from vidrelay.providers.doorway import create_in, media_in, submit, text_in, there, with_media
from vidrelay.providers.zhipu import parameters

ROOT = "/api/paas/v4"

_STATUS = {Phase.DONE: "SUCCESS", **dict.fromkeys((Phase.FAILED, Phase.CANCELLED, Phase.EXPIRED), "FAIL")}
UNDER_WAY = "PROCESSING"
"""One word for waiting and for work."""
_CODES = {401: "1002", 403: "1220", 404: "1214", 410: "1214", 429: "1302"}
_FAILURES = {"moderated": "1301", "rejected": "1210"}


class ZhipuDoor:
    """
    `videos/generations` and `async-result`: there is no list, and nothing can be stopped.
    """

    def __init__(self) -> None:
        self.routes = (
            DoorRoute(method="POST", path=f"{ROOT}/videos/generations", handler=self.create),
            DoorRoute(method="GET", path=f"{ROOT}/async-result/{{id}}", handler=self.result),
        )

    def create(self, call: DoorCall) -> Answering:
        """
        The SDKs send what was not given as null, and so is it sent on.
        """
        body, force = create_in(call)
        if body.get("image_url") is not None:
            body["image_url"] = _pictures(body["image_url"])
        view = yield from submit(parameters.as_sent(body), prompt=text_in(body, "prompt"), force=force)
        told = {"id": view.task.id, "model": text_in(body, "model"), "task_status": UNDER_WAY}
        return JsonReply(value={**told, "request_id": text_in(body, "request_id") or view.task.id})

    def result(self, call: DoorCall) -> Answering:
        """
        How a task stands, and its clip.
        """
        view = yield from there(call.params["id"])
        return JsonReply(value=_told(view))

    def write_error(self, problem: Problem, call: DoorCall) -> JsonReply:
        """
        `{"error": {"code", "message"}}`, the code as text.
        """
        code = _CODES.get(problem.status, "1210" if problem.status < 500 else "1200")
        return JsonReply(status=problem.status, value={"error": {"code": code, "message": problem.detail}})


def make(_dialect: str | None) -> ZhipuDoor:
    """
    The door of an account: both houses have the same words.
    """
    return ZhipuDoor()


def _pictures(value: Any) -> Any:
    """
    One picture, two frames, or an object of which nobody has told what is in it.
    """
    if isinstance(value, list):
        return [media_in(one) for one in value]
    return media_in(value) if isinstance(value, str) else with_media(value)


def _told(view: View) -> dict[str, Any]:
    sent, status = view.task.parameters, _STATUS.get(view.phase, UNDER_WAY)
    told: dict[str, Any] = {
        "id": view.task.id,
        "model": sent.get("model") or "",
        "task_status": status,
        "request_id": sent.get("request_id") or view.task.id,
        # The relay fetches clips alone, and the SDKs want a cover's address to be text.
        "video_result": [{"url": url, "cover_image_url": ""} for url in view.files],
    }
    if status == "FAIL":
        told["error"] = {"code": _FAILURES.get(view.problem.code, "1200"), "message": view.problem.detail}
    return told

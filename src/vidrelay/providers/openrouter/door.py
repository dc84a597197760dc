"""
OpenRouter's videos as its SDK knows them (fills port Door): `/api/v1/videos`.
"""

from typing import Any

from vidrelay.core.door import Answering, DoorCall, DoorRoute, FileReply, JsonReply, Phase, View, elsewhere
from vidrelay.core.task import Problem
from vidrelay.providers.doorway import create_in, look, submit, text_in, theirs, with_media
from vidrelay.providers.openrouter.parameters import as_sent

ROOT = "/api/v1/videos"
PREVIOUS = "previous_job_id"

_STATUS = {
    Phase.WAITING: "pending",
    Phase.WORKING: "in_progress",
    Phase.DONE: "completed",
    Phase.FAILED: "failed",
    Phase.CANCELLED: "cancelled",
    Phase.EXPIRED: "expired",
}


class OpenRouterDoor:
    """
    Creates jobs, tells how they stand, and gives their clips.
    """

    def __init__(self) -> None:
        self.routes = (
            DoorRoute(method="POST", path=ROOT, handler=self.create),
            # What the models can do, not a job of that name.
            DoorRoute(method="GET", path=f"{ROOT}/models", handler=elsewhere),
            DoorRoute(method="GET", path=f"{ROOT}/{{id}}", handler=self.retrieve),
            DoorRoute(method="GET", path=f"{ROOT}/{{id}}/content", handler=self.content),
        )

    def create(self, call: DoorCall) -> Answering:
        """
        A job; its SDK takes 202 and nothing else for an answer.
        """
        body, force = create_in(call)
        if PREVIOUS in body:
            body[PREVIOUS] = yield from theirs(body[PREVIOUS])
        prepared = as_sent(with_media(body))
        view = yield from submit(prepared, prompt=text_in(body, "prompt"), force=force)
        return JsonReply(status=202, value=_job(view, call))

    def retrieve(self, call: DoorCall) -> Answering:
        """
        How a job stands.
        """
        view = yield from look(call.params["id"])
        return JsonReply(value=_job(view, call))

    def content(self, call: DoorCall) -> Answering:
        """
        A clip's bytes; 409 before it is done, 410 once it is gone.
        """
        index = call.query.get("index", "")
        yield from look(call.params["id"])
        return FileReply(task_id=call.params["id"], index=int(index) if index in map(str, range(100)) else 0)

    def write_error(self, problem: Problem, call: DoorCall) -> JsonReply:
        """
        `{"error": {"code", "message", "metadata"}}`, where the code is the status.
        """
        error = {"code": problem.status, "message": problem.detail, "metadata": {"code": problem.code}}
        return JsonReply(status=problem.status, value={"error": error})


def make(_dialect: str | None) -> OpenRouterDoor:
    """
    The door of an account; there are no dialects.
    """
    return OpenRouterDoor()


def _job(view: View, call: DoorCall) -> dict[str, Any]:
    phase, address = view.phase, f"{call.base}{ROOT}/{view.task.id}"
    job: dict[str, Any] = {"id": view.task.id, "polling_url": address, "status": _STATUS[phase]}
    match phase:
        case Phase.DONE:
            job["unsigned_urls"] = [f"{address}/content?index={number}" for number in range(len(view.files))]
            job["urls"] = list(view.files)
            job["usage"] = {"cost": _cost(view)}
        case Phase.FAILED | Phase.CANCELLED | Phase.EXPIRED:
            job["error"] = view.problem.detail
    return job


def _cost(view: View) -> float | None:
    """
    In USD as everywhere at OpenRouter, where the account's own price list tells it.
    """
    cost = view.task.cost
    return float(cost.amount) if cost is not None and cost.currency == "USD" else None

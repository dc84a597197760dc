"""
What a ComfyUI server says on its websocket: that its queue changes, and how far the job of the client is that listens.

Events are not told again to who comes late, so they only say when to look; what is true is in the queue and in the
history.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeGuard

from vidrelay.core.adapter import PollOutcome
from vidrelay.core.lifecycle import StillRunning
from vidrelay.core.messages import Held, HttpRequest
from vidrelay.core.task import RemoteState, Task
from vidrelay.providers.replies import number_of, object_of, text_of
from vidrelay.providers.streams import Lines

FOLLOWED_SECONDS = 30.0


def is_news(seen: PollOutcome | None, known: StillRunning | None) -> bool:
    """
    Whether a job is doing otherwise than was known; its progress, which the queue does not tell, left out.
    """
    if not isinstance(seen, StillRunning) or known is None:
        return True
    return (seen.remote_state, seen.queue_position) != (known.remote_state, known.queue_position)


def works(seen: PollOutcome | None) -> TypeGuard[StillRunning]:
    """
    Whether the job is at work.
    """
    return isinstance(seen, StillRunning) and seen.remote_state is RemoteState.WORKING


class Listener:
    """
    Listens until the queue has changed since it was read, for `length` jobs then, and notes how far `task` is.

    `progress` is 0 to 1, None where nothing was told.
    """

    def __init__(self, *, length: int, task: Task | None) -> None:
        self._length = length
        self._lines = Lines()
        self._heard = False
        self._remote_id = None if task is None else task.remote_id
        self._nodes = 0 if task is None else len(object_of(task.parameters, "graph"))
        self.progress: float | None = None

    def on(self, opening: HttpRequest) -> HttpRequest:
        """
        The call that listens, made of one that asks for the websocket's address.
        """
        held = Held(seconds=FOLLOWED_SECONDS, enough=self.enough)
        return replace(opening, url=opening.url.replace("http", "ws", 1), held=held)

    def enough(self, body: bytearray) -> bool:
        """
        Whether something has happened. Whoever connects is told how long the queue is; from then on, everybody is told
        when it changes.
        """
        news = [message for message in self._lines.more(body) if self._is_news(message)]
        return bool(news)

    def _is_news(self, message: Mapping[str, Any]) -> bool:
        data = object_of(message, "data")
        match text_of(message, "type"):
            case "status":
                left = number_of(object_of(object_of(data, "status"), "exec_info"), "queue_remaining")
                first, self._heard = not self._heard, True
                return not first or left != self._length
            case "executing":
                return "node" in data and data["node"] is None and text_of(data, "prompt_id") == self._remote_id
            case "progress_state" if text_of(data, "prompt_id") == self._remote_id and self._nodes:
                done = sum(_share(node) for node in object_of(data, "nodes").values())
                self.progress = min(1.0, done / self._nodes)
        return False


def _share(node: Any) -> float:
    """
    How much of one node is done.
    """
    if not isinstance(node, dict):
        return 0.0
    value, most = number_of(node, "value") or 0.0, number_of(node, "max") or 0.0
    return min(1.0, max(0.0, value / most)) if most > 0 else 0.0

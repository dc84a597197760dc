"""
How a ComfyUI server is asked for its jobs: those in its queue, and those of its history.

Both live in its memory and are gone with a restart. Whatever is looked up is looked up in the queue first and in the
history then: the other way round, a job that ends in between is in neither.
"""

from collections.abc import Generator, Sequence
from typing import Any

from vidrelay.core.adapter import Conversation, NotThere, PollManyOutcome, PollOutcome, Refused, Trouble
from vidrelay.core.messages import LIST_REPLY_BYTES, HttpReply, HttpRequest
from vidrelay.core.task import Task
from vidrelay.providers.comfyui import reading, words
from vidrelay.providers.comfyui.reading import Queued
from vidrelay.providers.json_api import JsonAdapter
from vidrelay.providers.replies import answered
from vidrelay.providers.verdicts import Said, of_call, of_poll

LATEST = 20
"""So many of the newest jobs are asked for: each comes with its whole graph."""

UNREAD = Trouble(detail="the server's queue cannot be read, and the job may be in it")
"""A queue may be too long: each job in it comes with its whole graph. The history shows what has ended all the same."""


class Jobs:
    """
    The jobs of the server that an adapter speaks to.
    """

    def __init__(self, adapter: JsonAdapter) -> None:
        self._adapter = adapter

    def one(self, remote_id: str) -> Conversation[PollOutcome]:
        """
        How one job stands: by the queue, and where it is not seen in there, by its entry in the history.
        """
        queued = yield from self.queue()
        if isinstance(queued, Refused | Trouble):
            return queued
        found = next((job for job in queued or () if job.id == remote_id), None)
        if found:
            return reading.waiting(found)
        seen = yield from self._ended(remote_id)
        return UNREAD if queued is None and isinstance(seen, NotThere) else seen

    def several(self, tasks: Sequence[Task], queued: Sequence[Queued]) -> Conversation[PollManyOutcome]:
        """
        How several jobs stand: those of that queue, and the rest as far as the newest of the history tell.
        """
        listed = {one.id: one for one in queued}
        seen: dict[str, PollOutcome] = {
            task.id: reading.waiting(listed[task.remote_id]) for task in tasks if task.remote_id in listed
        }
        if len(seen) < len(tasks):
            reply = yield self.history()
            data = answered(reply)
            if data is None:
                # Each is asked for by itself, which says whether it is the list or the server.
                refusal = of_call(self.error(reply))
                return refusal if isinstance(refusal, Refused) else seen
            for task in tasks:
                entry = data.get(task.remote_id or "")
                if task.id not in seen and entry is not None:
                    seen[task.id] = self._seen(entry)
        return seen

    def history(self) -> HttpRequest:
        """
        The call for the newest jobs of the history.
        """
        return self._adapter.get("/history", max_reply_bytes=LIST_REPLY_BYTES, max_items=LATEST)

    def entry(self, remote_id: str) -> HttpRequest:
        """
        The call for one job of the history.
        """
        return self._adapter.get(f"/history/{remote_id}", max_reply_bytes=LIST_REPLY_BYTES)

    def queue(self) -> Generator[HttpRequest, HttpReply, list[Queued] | Refused | Trouble | None]:
        """
        What is in the queue; None where it cannot be read, so that what is not seen in it may be there all the same.
        """
        reply = yield self._adapter.get("/queue", max_reply_bytes=LIST_REPLY_BYTES)
        if not 200 <= reply.status < 300:
            return of_call(self.error(reply))
        return reading.queue(answered(reply))

    def _ended(self, remote_id: str) -> Conversation[PollOutcome]:
        reply = yield self.entry(remote_id)
        data = answered(reply)
        if data is None:
            return of_poll(self.error(reply))
        if remote_id not in data:
            return NotThere(detail="it is neither in the queue nor in the history")
        return self._seen(data[remote_id])

    def error(self, reply: HttpReply) -> Said:
        """
        What an answer that is no good one says.
        """
        return words.error(reply, key=self._adapter.key)

    def _seen(self, entry: Any) -> PollOutcome:
        return reading.outcome(entry, base=self._adapter.base, key=self._adapter.key)

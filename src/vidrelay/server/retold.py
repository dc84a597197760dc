"""
Answers that tell how a task stands, for when the same is asked again and nothing has changed: an SDK asks up to ten
times a second, for each of its tasks.
"""

from starlette.types import Scope

from vidrelay.core.door import View
from vidrelay.core.errors import UnknownTask
from vidrelay.core.task import State
from vidrelay.scheduler.face import RelayFace
from vidrelay.server.answers import Answer

MAX_ANSWERS = 1000
"""So many answers are held; then the oldest is forgotten."""

MAX_ANSWER_BYTES = 16 * 1024
"""A longer one is written anew each time: some tell all that was asked for, and some clients ask nothing twice."""

_Key = tuple[str, str, bytes, bytes, tuple[tuple[bytes, bytes], ...]]


class Retold:
    """
    The answers, by all that a door sees of a call without a body.
    """

    def __init__(self, relay: RelayFace) -> None:
        self._relay = relay
        self._answers: dict[_Key, tuple[View, Answer]] = {}

    async def find(self, scope: Scope) -> Answer | None:
        """
        The answer that the same call had, if its task still stands as it stood then.
        """
        known = self._answers.get(_key(scope))
        if known is None:
            return None
        view, answer = known
        try:
            unchanged = await self._relay.get(view.task.id) is view.task
        except UnknownTask:
            return None
        return answer if unchanged and self._relay.place(view.task) == view.standing else None

    def keep(self, scope: Scope, view: View, answer: Answer) -> None:
        """
        Hold an answer that was made of this view and the call alone.

        Of a task that has ended its files may go, and one that is uncertain grows stale with time: those are told anew.
        """
        if view.task.ended or view.task.state is State.UNCERTAIN or len(answer.body) > MAX_ANSWER_BYTES:
            return
        self._answers[_key(scope)] = (view, answer)
        if len(self._answers) > MAX_ANSWERS:
            del self._answers[next(iter(self._answers))]


def _key(scope: Scope) -> _Key:
    return scope["scheme"], scope["method"], scope["raw_path"], scope["query_string"], tuple(scope["headers"])

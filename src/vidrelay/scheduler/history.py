"""
What earlier tasks of a model took, for the time left and for the learned pace.
"""

from vidrelay.core.pace import Law
from vidrelay.core.policy import PollPolicy
from vidrelay.core.ports import Store
from vidrelay.core.task import State, Task

KEPT = 200
"""How many of the newest durations of a model count."""

ModelKey = tuple[str, str | None]


class History:
    """
    Durations in seconds from acceptance to remote completion, by account and model, newest first.
    """

    def __init__(self, store: Store, policy: PollPolicy) -> None:
        self._store = store
        self._policy = policy
        self._durations: dict[ModelKey, list[float]] = {}
        self._laws: dict[ModelKey, Law | None] = {}

    async def load(self, account: str, model: str | None) -> None:
        """
        Read a model's past once.
        """
        key = account, model
        if key not in self._durations:
            self._durations[key] = await self._store.durations(account=account, model=model, limit=KEPT)

    def note(self, task: Task) -> None:
        """
        Add a task that has just been done.
        """
        key = task.account, task.model_version
        if task.state is not State.DONE or key not in self._durations:
            return
        took = task.remote_seconds()
        if took is not None:
            self._durations[key] = [took, *self._durations[key]][:KEPT]
            self._laws.pop(key, None)

    def durations(self, task: Task) -> list[float]:
        """
        What tasks like this one took; empty if nothing is known.
        """
        return self._durations.get((task.account, task.model_version), [])

    def law(self, task: Task) -> Law | None:
        """
        The law fitted on them, once there are enough.
        """
        key = task.account, task.model_version
        if key not in self._laws:
            self._laws[key] = Law.fit(self._durations.get(key, []), against=self._policy)
        return self._laws[key]

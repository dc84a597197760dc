"""
Who is next: the queued tasks of each window in order, mirrored from the store so that a place in line costs no query.
"""

from bisect import bisect_left, insort
from collections import defaultdict

from vidrelay.core.task import Priority, State, Task

WindowKey = tuple[str, str]
"""An account and the name of one of its windows."""


def window_key(task: Task) -> WindowKey:
    """
    The window a task belongs to.
    """
    return task.account, task.window


class Line:
    """
    Queued tasks by window, interactive ones first, each kind first in, first out; the store keeps the same order.
    """

    def __init__(self) -> None:
        self._queues: defaultdict[WindowKey, list[tuple[bool, int, str]]] = defaultdict(list)
        self._places: dict[str, tuple[WindowKey, tuple[bool, int, str]]] = {}

    def note(self, task: Task) -> None:
        """
        Bring the line up to date with a task that has just been read or saved.
        """
        known = self._places.get(task.id)
        if task.state is State.QUEUED and known is None:
            key, entry = window_key(task), (task.request.priority is Priority.BATCH, task.seq, task.id)
            insort(self._queues[key], entry)
            self._places[task.id] = key, entry
        elif task.state is not State.QUEUED and known is not None:
            key, entry = known
            queue = self._queues[key]
            del queue[bisect_left(queue, entry)]
            del self._places[task.id]

    def ahead(self, task_id: str) -> int | None:
        """
        How many queued tasks stand before this one; None if it does not queue.
        """
        known = self._places.get(task_id)
        return None if known is None else bisect_left(self._queues[known[0]], known[1])

    def waiting(self, key: WindowKey) -> int:
        """
        How many tasks queue for that window.
        """
        return len(self._queues.get(key, ()))

    def windows(self) -> list[WindowKey]:
        """
        The windows that have somebody waiting.
        """
        return [key for key, queue in self._queues.items() if queue]

    def first(self, key: WindowKey, count: int) -> list[str]:
        """
        The ids of the first so many in that window.
        """
        return [task_id for _, _, task_id in self._queues.get(key, [])[:count]]

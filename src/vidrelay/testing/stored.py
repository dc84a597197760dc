"""
Short words for tests that put tasks into a store (port Store).
"""

import asyncio
from typing import Any

from vidrelay.core.ports import Store, TwinRule
from vidrelay.core.task import State, Task
from vidrelay.testing.clock import START
from vidrelay.testing.records import events_to, moved


def rule(**overrides: Any) -> TwinRule:
    """
    A rule under which tasks made at START or later are twins, and results of then or later are fresh.
    """
    fields: dict[str, Any] = {"twins_since": START, "cached_since": START}
    return TwinRule(**(fields | overrides))


async def add(store: Store, *tasks: Task) -> list[Task]:
    """
    Insert tasks, in that order.
    """
    return [admission.task for admission in await asyncio.gather(*(store.add(task, rule()) for task in tasks))]


async def bring(store: Store, task: Task, state: State, **words: Any) -> Task:
    """
    Insert a task and save its shortest way to that state; `words` are those of `events_to`.
    """
    (task,) = await add(store, task)
    for event in events_to(state, task, **words):
        task = await store.save(moved(task, event), event, expected_version=task.version)
    return task

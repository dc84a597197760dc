"""
Who listens to a task's changes.
"""

import asyncio

from vidrelay.scheduler.roster import Roster
from vidrelay.testing.records import make_task

MANY = 300


async def test_who_waits_for_a_task_is_told_in_the_order_of_coming():
    """Neither in that of their places in memory, which differs from run to run, nor in any other."""
    roster, task, woken = Roster(), make_task(), []

    async def wait(number):
        with roster.waiting(task.id) as committed:
            await committed.wait()
            woken.append(number)

    async with asyncio.TaskGroup() as group:
        for number in range(MANY):
            group.create_task(wait(number))
        await asyncio.sleep(0)
        roster.note(task)
    assert woken == list(range(MANY))


async def test_who_listens_to_all_tasks_is_told_in_the_order_of_coming():
    """The first to listen is the first to hear."""
    roster, task, told = Roster(), make_task(), []

    async def listen(number):
        with roster.watch() as news:
            await news.get()
            told.append(number)

    async with asyncio.TaskGroup() as group:
        for number in range(MANY):
            group.create_task(listen(number))
        await asyncio.sleep(0)
        roster.note(task)
    assert told == list(range(MANY))

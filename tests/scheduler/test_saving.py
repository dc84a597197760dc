"""
What has happened gets onto the disk, whatever the disk does meanwhile.
"""

import asyncio

import pytest

from vidrelay.core.errors import DiskFull, DuplicateRemote, StaleTask, StoreBusy, StoreError
from vidrelay.core.lifecycle import Accepted, Started
from vidrelay.core.task import State
from vidrelay.scheduler.saving import Saver
from vidrelay.testing.clock import FakeClock
from vidrelay.testing.records import make_task, moved


class TroubledStore:
    """
    Keeps one task; its calls first raise these errors, one each.
    """

    def __init__(self, task, *troubles):
        self.task = task
        self.troubles = list(troubles)

    async def save(self, task, event, *, expected_version):
        if self.troubles:
            raise self.troubles.pop(0)
        self.task = task
        return task

    async def get(self, task_id):
        if self.troubles:
            raise self.troubles.pop(0)
        return self.task


@pytest.mark.parametrize("trouble", [DiskFull(), StoreBusy(), StoreError("disk I/O error")])
async def test_a_remote_id_outlives_a_disk_that_fails(trouble):
    """A create's answer is tried to be saved until it is, also where reading the task again fails in between."""
    submitting = moved(make_task(), Started(submission_key="key"))
    store, clock = TroubledStore(submitting, trouble, StaleTask(), trouble, trouble), FakeClock()
    async with asyncio.TaskGroup() as group:
        saving = group.create_task(Saver(store, clock, lambda: 0.5).save(submitting, Accepted(remote_id="job-1")))
        await clock.advance(300)
    assert saving.result().state is State.RUNNING
    assert store.task.remote_id == "job-1"


async def test_a_remote_id_of_another_task_is_not_tried_again():
    """What cannot come right by waiting is raised."""
    submitting = moved(make_task(), Started(submission_key="key"))
    saver = Saver(TroubledStore(submitting, DuplicateRemote()), FakeClock(), lambda: 0.5)
    with pytest.raises(DuplicateRemote):
        await saver.save(submitting, Accepted(remote_id="job-1"))

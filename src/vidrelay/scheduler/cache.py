"""
The result cache: is an earlier result still whole, and which results go when there are too many or they are too old.
"""

import asyncio
import logging
from datetime import UTC, datetime
from pathlib import Path

from vidrelay.core.clock import Clock
from vidrelay.core.disk import Files
from vidrelay.core.errors import ResultGone, UnknownTask, WrongState
from vidrelay.core.policy import CachePolicy
from vidrelay.core.ports import CachedResult, ResultIndex
from vidrelay.core.task import FileRef, State, Task

logger = logging.getLogger(__name__)

BATCH = 50
BEGINNING = datetime.fromtimestamp(0, UTC)
JUMP_SECONDS = 3600.0
"""A wall clock that moved by more than this against the other one, in a sleep or because it was set, is not believed at
once: no result is too old by it for so long, in which a wrong one is set right."""


class Cache:
    """
    Results on disk and their index, kept in step.
    """

    def __init__(self, index: ResultIndex, files: Files, policy: CachePolicy, clock: Clock) -> None:
        self._index = index
        self._files = files
        self._policy = policy
        self._clock = clock
        self._seen = clock.now(), clock.monotonic()
        self._believed_from = float("-inf")
        # Held from the saving of a result to the end of the trimming it calls for, so that one is over at the most.
        self.entering = asyncio.Lock()

    async def whole(self, task: Task) -> bool:
        """
        Whether every file of a done task is still there as it was saved.
        """
        return bool(task.files) and await self._all_whole(task.files)

    async def _all_whole(self, files: tuple[FileRef, ...], *, read: bool = False) -> bool:
        for file in files:
            if not await self._files.whole(file, read=read):
                return False
        return True

    async def file_of(self, task: Task, index: int) -> tuple[Path, FileRef]:
        """
        Where one file of a done task is.

        Raises:
            UnknownTask: The task has no such file.
            WrongState: It is not done.
            ResultGone: The file was evicted.
        """
        if task.state is not State.DONE:
            raise WrongState(f"the task is {task.state}, so it has no result")
        file = next((file for file in task.files if file.index == index), None)
        if file is None:
            raise UnknownTask(f"the task has {len(task.files)} files, and none with index {index}")
        if not await self._files.whole(file):
            raise ResultGone
        return self._files.location(file), file

    def location(self, file: FileRef) -> Path:
        """
        Where a file is, or was.
        """
        return self._files.location(file)

    async def coldest(self, limit: int) -> tuple[list[CachedResult], int]:
        """
        The results used longest ago, and the bytes of all.
        """
        return await self._index.results(coldest=limit)

    async def forget(self, task: Task) -> None:
        """
        Take a result that is not whole out of the index, and what is left of it off the disk.
        """
        await self._index.forget(task.id)
        await self._files.delete(task.files)

    async def discard(self, files: tuple[FileRef, ...]) -> None:
        """
        Delete files that no task took: it was cancelled while they came.
        """
        await self._files.delete(files)

    async def sweep(self) -> None:
        """
        At start: delete what the index does not know, then trim.
        """
        deleted = await self._files.sweep(await self._index.known())
        if deleted:
            logger.info("cache.swept orphans=%d", deleted)
        await self.trim()

    async def trim(self) -> None:
        """
        Evict what is older than the policy allows, then the results used longest ago until the rest fits.

        The result used last stays, however large it is: it has just been paid for, or asked for. What is too old stays
        once more where the wall clock has jumped.
        """
        oldest = self.oldest()
        while stale := await self._index.older_than(oldest, limit=BATCH):
            for result in stale:
                await self._evict(result, "age")
        while True:
            coldest, total = await self._index.results(coldest=BATCH)
            if total <= self._policy.max_bytes or len(coldest) < 2:
                return
            for result in coldest[:-1]:
                if total <= self._policy.max_bytes:
                    return
                await self._evict(result, "size")
                total -= result.size_bytes

    def oldest(self) -> datetime:
        """
        Results saved before that instant are too old; none is for an hour after the wall clock has jumped.
        """
        (wall, before), now, monotonic = self._seen, self._clock.now(), self._clock.monotonic()
        self._seen = now, monotonic
        if abs((now - wall).total_seconds() - (monotonic - before)) > JUMP_SECONDS:
            logger.warning("cache.age_waits from=%s to=%s", wall, now)
            self._believed_from = monotonic + JUMP_SECONDS
        return now - self._policy.max_age if monotonic >= self._believed_from else BEGINNING

    async def verify(self) -> list[str]:
        """
        Read every result through, and forget those that are not whole; returns their tasks' ids.
        """
        results, _ = await self._index.results()
        broken = [result for result in results if not await self._all_whole(result.files, read=True)]
        for result in broken:
            await self._evict(result, "broken")
        return [result.task_id for result in broken]

    async def clear(self) -> int:
        """
        Evict every result; returns how many there were.
        """
        results, _ = await self._index.results()
        for result in results:
            await self._evict(result, "cleared")
        return len(results)

    async def _evict(self, result: CachedResult, why: str) -> None:
        # Index first: a row without a file would be served; a file without a row is deleted at the next start.
        await self._index.forget(result.task_id)
        await self._files.delete(result.files)
        logger.info("cache.evicted task=%s bytes=%d why=%s", result.task_id, result.size_bytes, why)

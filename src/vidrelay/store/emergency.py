"""
What a provider has answered to a create call is kept, even where the database cannot take it: it is paid for.

`EmergencyStore` stands before a store (a decorator of port Store) and steps in when the answer cannot be saved. It
frees the ballast, a file that keeps room for this moment, and tries again. Where that does not help, it writes the
answer down in a journal beside the database; `recover` puts it into the database at the next start, before anything
else looks at the task. Where not even that can be written, standard error is told. The caller gets the store's error
and is expected to go on trying, and no create call begins until everything is saved and the ballast is back.
"""

import asyncio
import contextlib
import logging
import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from vidrelay.core.errors import (
    DatabaseUnusable,
    DiskFull,
    DuplicateRemote,
    IllegalTransition,
    StaleTask,
    StoreBusy,
    StoreError,
    UnknownTask,
    VidrelayError,
)
from vidrelay.core.lifecycle import Accepted, Answered, Event, Failed, Found, advance
from vidrelay.core.ports import Admission, Store, TwinRule
from vidrelay.core.task import State, Task
from vidrelay.store.reserve import Ballast, Journal, Written, task_of, written

logger = logging.getLogger(__name__)

BALLAST_BYTES = 16 * 1024 * 1024
JOURNAL_NAME = "emergency.jsonl"


class EmergencyStore:
    """
    A store that never loses what a provider has answered to a create call (fills port Store).
    """

    def __init__(self, store: Store, folder: Path, *, ballast_bytes: int = BALLAST_BYTES) -> None:
        """
        Stand before `store`, with the ballast (of so many bytes) and the journal in `folder`; call `recover` first.
        """
        self._store = store
        self._ballast = Ballast(folder / "ballast", ballast_bytes)
        self._journal = Journal(folder / JOURNAL_NAME)
        self._unsaved: dict[str, bool] = {}  # by task: whether the journal has its answer
        self._writing = asyncio.Lock()  # guards the journal's file, and what `_unsaved` says of it

    async def recover(self) -> None:
        """
        Take over what an earlier life of the relay could only write down, and put the ballast in its place.

        What the database knows nothing of stays written down, and is told at each start: it may be paid for.

        Raises:
            DiskFull: The database still does not take it; it stays written down.
            StoreError: The same.
        """
        lines = await asyncio.to_thread(self._journal.lines)
        answers = [(line, written(line)) for line in lines]
        claimed = {line for line, answer in answers if answer is not None and await self._take_over(answer)}
        # Of a torn line the whole one may stand elsewhere, so they are looked at when all others are in.
        claimed |= {line for line, answer in answers if answer is None and await self._is_settled(line)}
        left = [line for line in lines if line not in claimed]
        await asyncio.to_thread(self._journal.keep, left)
        if left:
            _tell_left(left)
        await asyncio.to_thread(self._ballast.make)

    async def _take_over(self, answer: Written) -> bool:
        """
        Put an answer into the database; whether its job is known there now.
        """
        event: Event = answer.event
        try:
            task = await self._store.get(answer.task_id)
            if task.remote_id == answer.remote_id:
                return True  # it was saved after all
            if task.state is State.UNCERTAIN and isinstance(event, Accepted | Answered):
                event = Found(remote_id=event.remote_id, times=event.times)
            await self._store.save(advance(task, event, answer.at), event, expected_version=task.version)
        except (UnknownTask, IllegalTransition, DuplicateRemote) as refused:
            logger.error(  # noqa: TRY400 what matters is what it says, not where
                "emergency.unclaimed task=%s remote=%s why=%s", answer.task_id, answer.remote_id, refused.message
            )
            return isinstance(refused, DuplicateRemote)
        logger.warning("emergency.recovered task=%s remote=%s", answer.task_id, answer.remote_id)
        return True

    async def _is_settled(self, torn: bytes) -> bool:
        """
        Whether the database knows the job of the task that a torn line is about.
        """
        task_id = task_of(torn)
        logger.warning("emergency.torn bytes=%d task=%s", len(torn), task_id)
        try:
            return task_id is not None and (await self._store.get(task_id)).remote_id is not None
        except UnknownTask:
            return False

    # What is looked after ---------------------------------------------------------------------------------------------

    async def save(self, task: Task, event: Event, *, expected_version: int) -> Task:
        """
        Save the task; a create call's answer is kept whatever happens.

        Raises:
            DiskFull: It could not be saved now. An answer is written down, and is to be saved later.
            DatabaseUnusable: It cannot be saved in this life of the relay. An answer is written down.
        """
        if not isinstance(event, Accepted | Answered | Failed) or event.remote_id is None:
            return await self._store.save(task, event, expected_version=expected_version)
        answer = Written(task_id=task.id, remote_id=event.remote_id, at=task.updated_at, event=event)
        try:
            saved = await self._save_answer(task, answer, expected_version)
        except DuplicateRemote:
            await self._settled(task.id)
            raise
        await self._settled(task.id)
        return saved

    async def _save_answer(self, task: Task, answer: Written, expected_version: int) -> Task:
        try:
            try:
                return await self._store.save(task, answer.event, expected_version=expected_version)
            except DiskFull:
                if not await asyncio.to_thread(self._ballast.free):
                    raise
                logger.warning("emergency.ballast_freed task=%s", task.id)
                return await self._store.save(task, answer.event, expected_version=expected_version)
        except (StaleTask, DuplicateRemote):
            raise
        except (DiskFull, StoreError) as trouble:
            await self._write_down(answer, trouble)
            if isinstance(trouble, DiskFull | StoreBusy | DatabaseUnusable):
                raise
            raise DiskFull(trouble.message) from trouble

    async def _write_down(self, answer: Written, trouble: VidrelayError) -> None:
        async with self._writing:
            if self._unsaved.get(answer.task_id):
                return
            told, self._unsaved[answer.task_id] = answer.task_id in self._unsaved, False
            try:
                await asyncio.to_thread(self._journal.append, answer)
            except OSError as failed:
                if not told:
                    _cry(answer, failed)
                return
            self._unsaved[answer.task_id] = True
            logger.error(
                "emergency.written task=%s remote=%s why=%s", answer.task_id, answer.remote_id, trouble.message
            )

    async def _settled(self, task_id: str) -> None:
        if task_id not in self._unsaved:
            return
        async with self._writing:
            self._unsaved.pop(task_id, None)
            # An entry of a saved task is passed over by `recover`, so the file goes when it has no other.
            if not self._unsaved:
                await asyncio.to_thread(self._journal.clear)

    async def take_place(
        self, *, account: str, window: str, limit: int, submission_key: str, now: datetime
    ) -> Task | None:
        """
        Give the next queued task a place, if what would come of it can be kept.

        Raises:
            DiskFull: An earlier answer is not saved yet, or there is no room for the ballast.
        """
        if self._unsaved:
            raise DiskFull("what a provider has answered is not saved yet")
        if not self._ballast.whole and not await asyncio.to_thread(self._ballast.make):
            raise DiskFull("there is too little room on the disk to begin anything that is paid for")
        return await self._store.take_place(
            account=account, window=window, limit=limit, submission_key=submission_key, now=now
        )

    # What is passed on ------------------------------------------------------------------------------------------------

    @property
    def on_commit(self) -> Callable[[Task], None]:
        return self._store.on_commit

    @on_commit.setter
    def on_commit(self, listener: Callable[[Task], None]) -> None:
        self._store.on_commit = listener

    async def add(self, task: Task, rule: TwinRule) -> Admission:
        return await self._store.add(task, rule)

    async def get(self, task_id: str) -> Task:
        return await self._store.get(task_id)

    async def page(
        self, *, states: frozenset[State] | None, account: str | None, before: int | None, limit: int
    ) -> list[Task]:
        return await self._store.page(states=states, account=account, before=before, limit=limit)

    async def live(self) -> list[Task]:
        return await self._store.live()

    async def outlived(self) -> list[Task]:
        return await self._store.outlived()

    async def hold(self, task_id: str, until: datetime | None) -> None:
        await self._store.hold(task_id, until)

    async def places(self, *, account: str, window: str, now: datetime) -> tuple[int, datetime | None]:
        return await self._store.places(account=account, window=window, now=now)

    async def remote_ids(self, *, account: str, since: datetime) -> frozenset[str]:
        return await self._store.remote_ids(account=account, since=since)

    async def durations(self, *, account: str, model: str | None, limit: int) -> list[float]:
        return await self._store.durations(account=account, model=model, limit=limit)

    async def log(self, *, after: int, limit: int, task_id: str | None = None) -> list[Task] | None:
        return await self._store.log(after=after, limit=limit, task_id=task_id)

    def count(self, **counters: int) -> None:
        self._store.count(**counters)

    async def counters(self) -> dict[str, int]:
        return await self._store.counters()

    async def aclose(self) -> None:
        await self._store.aclose()


def _cry(answer: Written, failed: OSError) -> None:
    """
    The last resort: whoever reads standard error can put it right.
    """
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(
            f"vidrelay: task {answer.task_id} was accepted by its provider as {answer.remote_id}, and the disk does "
            f"not take that down ({failed.strerror}). If it is uncertain later: "
            f"vidrelay resolve {answer.task_id} --adopt {answer.remote_id}\n"
        )
        sys.stderr.flush()


def _tell_left(lines: Sequence[bytes]) -> None:
    """
    Say what stays in the journal, to whoever starts the relay.
    """
    with contextlib.suppress(OSError, ValueError):
        for line in lines:
            answer = written(line)
            what = (
                f"task {answer.task_id} was accepted by its provider as {answer.remote_id}"
                if answer
                else f"a line that was cut short, of task {task_of(line) or 'unknown'}"
            )
            sys.stderr.write(f"vidrelay: {JOURNAL_NAME} tells what the database does not take: {what}\n")
        sys.stderr.write(
            "  It may be paid for. Put back the relay.db that it belongs to; or look for the job at the provider, and "
            f"then delete {JOURNAL_NAME}.\n"
        )
        sys.stderr.flush()

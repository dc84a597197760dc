"""
The files of a task whose remote work is done: fetched at once, from a fresh address where the first is dead.
"""

import logging
from dataclasses import replace
from datetime import timedelta

from vidrelay.core.disk import ResultName
from vidrelay.core.errors import BadMedia, DeadAddress, DiskFull, OutboundRefused, TransportError
from vidrelay.core.lifecycle import Deferred, Saved, Vanished
from vidrelay.core.task import Blocked, BlockReason, FileRef, Problem, RemoteFile, Task
from vidrelay.scheduler.account import Account
from vidrelay.scheduler.tools import FULL_DISK_SECONDS, NO_ROOM, Delay, Tools
from vidrelay.scheduler.track import Track

logger = logging.getLogger(__name__)

RENEWAL_SECONDS = (1.0, 20.0, 120.0)
"""After so long at least is each fresh address asked for: a first one is dead of age, more of them are new, and a new
file shows late on some hosts."""
BAD_FILE_SECONDS = 1800.0
TRIES_AT_ONE_ADDRESS = 3
BLOCKED_HOST_SECONDS = 60.0


class Fetcher:
    """
    Fetches results.
    """

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    async def download(self, task: Task, track: Track, account: Account) -> Delay:
        """
        Fetch every file of the task; returns when to look at it again. Trouble on the way never fails a paid task.
        """
        early = self._early(task, track, account)
        if early > 0:
            return early
        try:
            files = await self._fetch(task, account)
        except DeadAddress as dead:
            self._tell(task, track, Blocked(reason=BlockReason.NETWORK, detail=dead.message))
            return await self._renew(task, track, dead.message)
        except BadMedia as bad:
            self._tools.store.count(retries=1)
            self._tell(task, track, Blocked(reason=BlockReason.NETWORK, detail=bad.message))
            return await self._bad(task, track, bad.message)
        except OutboundRefused as refused:
            await self._hold(task, refused)
            return BLOCKED_HOST_SECONDS
        except DiskFull:
            self._tools.rest_for_disk(account)
            until = self._tools.clock.now() + timedelta(seconds=FULL_DISK_SECONDS)
            self._tell(task, track, Blocked(reason=BlockReason.DISK, until=until, detail=NO_ROOM))
            return FULL_DISK_SECONDS
        except TransportError as trouble:
            track.troubles += 1
            self._tools.store.count(retries=1)
            self._tell(task, track, Blocked(reason=BlockReason.NETWORK, detail=trouble.message))
            logger.info("download.trouble task=%s why=%s", task.id, trouble.message)
            return max(self._tools.backoff(track.troubles), self._tools.leave_alone(track, trouble.retry_after), 0.5)
        async with self._tools.cache.entering:
            saved = await self._tools.saver.try_save(task, Saved(files=files))
            if saved is None:
                await self._tools.cache.discard(files)
                return None
            self._tools.history.note(saved)
            await self._tools.cache.trim()
        return None

    def _tell(self, task: Task, track: Track, trouble: Blocked) -> None:
        """
        Show what keeps the result away; what is shown already is not announced again, only until when it is.
        """
        shown, track.unfetched = track.unfetched, trouble
        if shown is None or replace(shown, until=trouble.until) != trouble:
            self._tools.roster.progress(task)

    def _early(self, task: Task, track: Track, account: Account) -> float:
        """
        Seconds until the files may be asked for. A rest of all calls holds those that lie with the provider itself, not
        those on other hosts, which may be gone when it is over.
        """
        now = self._tools.clock.monotonic()
        own = any(output.needs_key for output in task.outputs)
        return max(track.held_until - now, account.held(creates=False, monotonic=now) if own else 0.0)

    async def _fetch(self, task: Task, account: Account) -> tuple[FileRef, ...]:
        files = []
        for index, output in enumerate(task.outputs):
            name = ResultName(fingerprint=task.fingerprint, task_id=task.id, index=index)
            files.append(await self._fetch_one(task, output, account, name))
        return tuple(files)

    async def _fetch_one(self, task: Task, output: RemoteFile, account: Account, name: ResultName) -> FileRef:
        """
        Fetch from the file's other address, where it has one, what the first does not give; should that fail as well,
        the first one's error counts.
        """
        adapter, downloader = account.plan.adapter, account.plan.downloader
        try:
            return await downloader.fetch(adapter.download(task, output), name)
        except (BadMedia, OutboundRefused):
            raise
        except TransportError as first:
            if output.otherwise is None:
                raise
            try:
                return await downloader.fetch(adapter.download(task, RemoteFile(url=output.otherwise)), name)
            except TransportError as second:
                logger.info("download.otherwise task=%s why=%s", task.id, second.message)
                if isinstance(first, DeadAddress):
                    told = f"{first.message} Its other address does not give it either: {second.message}"
                    raise DeadAddress(told, maybe_sent=True) from second
                raise first from second

    async def _renew(self, task: Task, track: Track, detail: str) -> Delay:
        """
        Ask for a fresh address; after a few of them the paid result cannot be had.
        """
        track.renewals += 1
        track.address_dead = True
        if track.renewals <= len(RENEWAL_SECONDS):
            return self._tools.backoff(track.renewals, least=RENEWAL_SECONDS[track.renewals - 1])
        return await self._lose(task, f"could not be fetched from {len(RENEWAL_SECONDS)} fresh addresses: {detail}")

    async def _bad(self, task: Task, track: Track, detail: str) -> Delay:
        """
        What came is no whole file: some server's page of apology, perhaps, which is gone in a while. It is asked for
        again, now and then at a fresh address; what never becomes a file ends the task.
        """
        now = self._tools.clock.monotonic()
        track.bad_since = now if track.bad == 0 else track.bad_since
        track.bad += 1
        if now - track.bad_since >= BAD_FILE_SECONDS:
            return await self._lose(task, f"was no whole file for {BAD_FILE_SECONDS / 60:.0f} minutes: {detail}")
        track.address_dead = track.bad % TRIES_AT_ONE_ADDRESS == 0
        return self._tools.backoff(track.bad, least=1.0)

    async def _lose(self, task: Task, detail: str) -> Delay:
        problem = Problem(
            code="result_lost",
            title="The result could not be fetched",
            detail=f"The provider finished the task ({task.remote_id}), so it was probably charged, but its file "
            f"{detail}",
        )
        await self._tools.saver.try_save(task, Vanished(problem=problem))
        return None

    async def _hold(self, task: Task, refused: OutboundRefused) -> None:
        """
        The result lies on a host that is not allowed: it is paid for, so the task waits for a person and says why.
        """
        if task.error is not None:
            return
        problem = Problem(
            code=refused.code,
            title="The result's host is not allowed",
            detail=f"{refused.message} Add the host to allow_hosts of the account and start the relay again.",
            retryable=True,
        )
        await self._tools.saver.try_save(task, Deferred(detail=refused.message, problem=problem))

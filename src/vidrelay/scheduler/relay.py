"""
The relay: what doors, the server and embedding programs call.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from pathlib import Path

from vidrelay.core.adapter import Prepared
from vidrelay.core.clock import Clock
from vidrelay.core.disk import Assets, Files
from vidrelay.core.errors import DatabaseUnusable, UnknownAccount
from vidrelay.core.network import Reply
from vidrelay.core.plan import AccountPlan
from vidrelay.core.policy import Policy
from vidrelay.core.ports import AccountBook, Admission, CachedResult, How, ResultIndex, Store
from vidrelay.core.task import (
    Asset,
    CancelOutcome,
    FileRef,
    Request,
    Resolution,
    Standing,
    State,
    Task,
)
from vidrelay.scheduler.account import Account
from vidrelay.scheduler.admission import Admitter
from vidrelay.scheduler.cache import Cache
from vidrelay.scheduler.checking import check, keep_quotas_fresh
from vidrelay.scheduler.converse import Caller
from vidrelay.scheduler.copies import Copies
from vidrelay.scheduler.face import ANYONE, AccountCheck, AccountStatus, Announcement, DoorWay, Sender, Stats
from vidrelay.scheduler.figures import figures
from vidrelay.scheduler.following import Follower
from vidrelay.scheduler.held import HeldPlaces
from vidrelay.scheduler.history import History
from vidrelay.scheduler.limits import Limits
from vidrelay.scheduler.looking import Looker
from vidrelay.scheduler.loop import Loop, at_start
from vidrelay.scheduler.outlook import Outlook
from vidrelay.scheduler.overview import doors_of, status_of
from vidrelay.scheduler.passing import pass_on
from vidrelay.scheduler.quotas import Quotas
from vidrelay.scheduler.roster import Roster
from vidrelay.scheduler.saving import Saver
from vidrelay.scheduler.steering import Steering
from vidrelay.scheduler.tools import Tools
from vidrelay.scheduler.waiting import either

logger = logging.getLogger(__name__)


class Relay:
    """
    Takes requests, moves their tasks along, and tells how they stand. Live from `run` until `stop`.
    """

    def __init__(
        self,
        *,
        store: Store,
        book: AccountBook,
        index: ResultIndex,
        files: Files,
        assets: Assets,
        clock: Clock,
        chance: Callable[[], float],
        new_id: Callable[[], str],
        plans: Sequence[AccountPlan],
        policy: Policy,
    ) -> None:
        self._store = store
        self._book = book
        self._assets = assets
        self._clock = clock
        self._chance = chance
        self._policy = policy
        self._accounts = {plan.name: Account(plan) for plan in plans}
        self._roster = Roster()
        self._history = History(store, policy.poll)
        self._cache = Cache(index, files, policy.cache, clock)
        self._saver = Saver(store, clock, chance)
        self._held = HeldPlaces(store, clock, {plan.name: plan.adapter.traits.longest_run for plan in plans})
        self._outlook = Outlook(self._roster, self._accounts, self._history, clock)
        self._stopped = asyncio.Event()
        store.on_commit = self._committed
        caller = Caller(clock)
        self._tools = tools = Tools(
            store=store,
            book=book,
            clock=clock,
            chance=chance,
            policy=policy,
            roster=self._roster,
            history=self._history,
            cache=self._cache,
            saver=self._saver,
            held=self._held,
            caller=caller,
            copies=Copies(book, clock, caller),
            limits=Limits(book, clock, chance, caller, self._accounts),
            quotas=Quotas(book, clock, self._accounts),
            follower=Follower(clock, chance),
            accounts=self._accounts,
        )
        self._loop = Loop(
            tools=tools,
            files=files,
            new_id=new_id,
            accounts=self._accounts,
        )
        self._looker = Looker(store, self._roster, clock)
        self._steering = Steering(tools, self._loop, self._looker)
        self._admitter = Admitter(
            store=store,
            book=book,
            assets=assets,
            cache=self._cache,
            clock=clock,
            new_id=new_id,
            policy=policy,
            accounts=self._accounts,
        )

    # Life

    async def load(self) -> None:
        """
        Take up what an earlier life of the relay left: pauses, limits, and every unended task. Answers are right after
        this.
        """
        now, monotonic = self._clock.now(), self._clock.monotonic()
        for name, pause in await self._book.pauses():
            if name in self._accounts:
                self._accounts[name].restore(pause, now=now, monotonic=monotonic)
        await self._tools.limits.load()
        await self._tools.quotas.load()
        models, last_sign = set(), None
        for task in await self._store.outlived():
            self._load(task)
        for task in await self._store.live():
            self._load(task)
            models.add((task.account, task.model_version))
            last_sign = max(task.updated_at, last_sign or task.updated_at)
            track = self._roster.track(task.id)
            if track is not None:
                at_start(task, track, monotonic=monotonic, chance=self._chance())
            if task.account not in self._accounts:
                logger.warning("task.orphaned task=%s account=%s", task.id, task.account)
        self._admitter.begin(last_sign)
        for account, model in models:
            await self._history.load(account, model)

    def _load(self, task: Task) -> None:
        self._roster.load(task)
        self._held.load(task)

    async def run(self) -> None:
        """
        Drive the tasks until `stop`. `load` comes first.

        Raises:
            DatabaseUnusable: Nothing can be saved any more; create calls under way have been waited for.
        """
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._sweep())
                limits = group.create_task(self._tools.limits.keep_fresh(self._loop.wake))
                quotas = group.create_task(keep_quotas_fresh(self._tools))
                await self._loop.run()
                limits.cancel()
                quotas.cancel()
        finally:
            self._stopped.set()
        if self._loop.unusable is not None:
            raise self._loop.unusable

    async def stop(self, *, grace: float) -> None:
        """
        Take nothing new, wait for create calls under way up to `grace` seconds, then end them as uncertain.
        """
        self._loop.stop()
        self._saver.stop()
        if not await either(self._stopped, grace, self._clock):
            self.abandon()
            await self._stopped.wait()

    def abandon(self) -> None:
        """
        End even the create calls that are under way; their tasks become uncertain.
        """
        self._loop.abandon()

    def _committed(self, task: Task) -> None:
        self._held.note(task)
        self._roster.note(task)
        # Whoever asked for this may be gone by now (a client that hung up); the task must move all the same.
        self._loop.note(task)

    async def _sweep(self) -> None:
        try:
            await self._cache.sweep()
        except Exception:
            # Whatever it was: an unswept cache costs room, not tasks.
            logger.exception("cache.sweep_failed")

    # Submitting

    async def submit(self, request: Request, sender: Sender = ANYONE) -> Admission:
        """
        Make a task, or give the earlier one that answers the request; what is returned is on disk.

        Raises:
            RequestError: It cannot be done as asked; nothing was made.
            DiskFull: There is no room to keep it; nothing was made.
        """
        return await self._admitted(self._admitter.admit(request, sender))

    async def submit_prepared(
        self,
        request: Request,
        prepared: Prepared,
        pictures: Mapping[str, Asset],
        sender: Sender = ANYONE,
    ) -> Admission:
        """
        As `submit`, for what came through a door in the provider's own words; `pictures` are those in its parameters.

        Raises:
            RequestError: It cannot be done as asked; nothing was made.
            DiskFull: There is no room to keep it; nothing was made.
        """
        return await self._admitted(self._admitter.admit_prepared(request, prepared, pictures, sender))

    async def _admitted(self, admitting: Awaitable[Admission]) -> Admission:
        try:
            admission = await admitting
        except DatabaseUnusable as problem:
            self._loop.fail(problem)
            raise
        if admission.how is How.CREATED:
            await self._history.load(admission.task.account, admission.task.model_version)
        return admission

    async def add_asset(self, chunks: AsyncIterator[bytes], *, account: str | None = None) -> Asset:
        """
        Keep a reference image; for an account that is named, a film or a sound too, where its provider takes that.

        Raises:
            UnsupportedMedia: It is no picture that can be read, nor such a film or sound.
            InvalidRequest: The account's provider takes no film or no sound.
            TooLarge: It is over a limit.
            DiskFull: There is no room.
        """
        return await (self._assets.put(chunks) if account is None else self._admitter.take_in(chunks, account))

    async def asset(self, asset_id: str) -> Asset:
        """
        What is known of a reference image.

        Raises:
            UnknownAsset: There is none.
        """
        return await self._book.asset(asset_id)

    async def fitted(self, asset: Asset, *, account: str) -> Asset:
        """
        What was kept before as that account's provider takes it.

        Raises:
            UnknownAsset: Its file is gone.
            InvalidRequest: It is a film or a sound, and the provider takes none.
            UnsupportedMedia: It cannot be written as a type that is taken.
            TooLarge: It cannot be made small enough.
        """
        return await self._admitter.fitted(asset, account)

    # Looking

    async def get(self, task_id: str) -> Task:
        """
        The task as it is on disk.

        Raises:
            UnknownTask: There is none.
        """
        return await self._looker.get(task_id)

    def live(self) -> list[Task]:
        """
        Every unended task, oldest first.
        """
        return self._roster.live()

    async def page(
        self, *, states: frozenset[State] | None, account: str | None, limit: int, before: int | None
    ) -> list[Task]:
        """
        Tasks, newest first, made before the one with place `before`.
        """
        return await self._store.page(states=states, account=account, before=before, limit=limit)

    async def wait(self, task_id: str, *, seconds: float, seen: State | None = None) -> Task:
        """
        The task once its state differs from `seen` (None: from what it is now), it has ended, or so long has passed.
        """
        task = await self.get(task_id)
        known = seen or task.state
        return await self._looker.once(task, lambda now: now.state is not known or now.ended, seconds=seconds)

    def watch(self) -> AbstractContextManager[asyncio.Queue[Announcement | None]]:
        """
        Everything that happens from now on; None in the queue means that the listener fell behind.
        """
        return self._roster.watch()

    async def log(self, *, after: int, limit: int, task_id: str | None = None) -> list[Task] | None:
        """
        The tasks as they stood at each event above `after`; None if that event is unknown.
        """
        return await self._store.log(after=after, limit=limit, task_id=task_id)

    def place(self, task: Task) -> Standing:
        """
        As `standing`, without the time that is left and why it waits: for those who ask many times a second.
        """
        return self._outlook.place(task)

    def standing(self, task: Task) -> Standing:
        """
        What is known of the task beside its record.
        """
        return self._outlook.standing(task)

    def doors(self) -> dict[str, DoorWay]:
        """
        The doors that there are, by the first segment of their addresses: an account's name, or that of a provider for
        the first of its accounts.
        """
        return doors_of(self._accounts.values())

    def pass_on(
        self, name: str, *, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes
    ) -> AbstractAsyncContextManager[Reply]:
        """
        Send a call that no door answers to the account's provider, once, with the account's key.

        Raises:
            InvalidRequest: Its path cannot be passed on.
            TransportError: It failed, or nothing was sent since the account rests.
        """
        return pass_on(
            self._accounts[name], self._clock, method=method, path=path, query=query, headers=headers, body=body
        )

    def is_stale(self, task: Task) -> bool:
        """
        Whether it has been uncertain for so long that doors show it as failed.
        """
        waited = self._clock.now() - task.updated_at
        return task.state is State.UNCERTAIN and waited >= self._policy.stale_after

    # Steering

    async def cancel(self, task_id: str, *, unless_begun: bool = False) -> tuple[Task, CancelOutcome]:
        """
        End the task here and, where the provider can, there; returns it with what can be said of the wish by then.

        With `unless_begun` it goes on where its provider cannot stop it any more; a restart of the relay forgets that.

        Raises:
            UnknownTask: There is none.
        """
        return await self._steering.cancel(task_id, unless_begun=unless_begun)

    async def forget(self, task_id: str) -> Task:
        """
        Let a task's result go: what has not ended is cancelled, and the files of what is done are deleted.

        Raises:
            UnknownTask: There is none.
        """
        return await self._steering.forget(task_id)

    async def resolve(self, task_id: str, action: Resolution, *, remote_id: str | None = None) -> Task:
        """
        Settle an uncertain task as a person says.

        Raises:
            UnknownTask: There is none.
            WrongState: It is not uncertain.
            InvalidRequest: `adopt` names no remote id, one that the provider's ids do not look like, or one that the
                provider says it does not know.
            DuplicateRemote: That remote job belongs to another task.
        """
        return await self._steering.resolve(task_id, action, remote_id=remote_id)

    # Results

    async def result_file(self, task_id: str, index: int) -> tuple[Path, FileRef]:
        """
        Where one file of a done task is.

        Raises:
            UnknownTask: There is no such task, or it has no such file.
            WrongState: It is not done.
            ResultGone: The file was evicted.
        """
        return await self._cache.file_of(await self.get(task_id), index)

    def file_path(self, file: FileRef) -> Path:
        """
        Where a file of the cache is, or was.
        """
        return self._cache.location(file)

    async def cached(self, *, limit: int) -> tuple[list[CachedResult], int]:
        """
        The cached results used longest ago, and the bytes of all.
        """
        return await self._cache.coldest(limit)

    async def verify_cache(self) -> list[str]:
        """
        Forget every cached result that is not whole; returns their tasks' ids.
        """
        return await self._cache.verify()

    async def clear_cache(self) -> int:
        """
        Delete every cached result; returns how many there were.
        """
        return await self._cache.clear()

    # Accounts and figures

    def accounts(self) -> list[AccountStatus]:
        """
        How every account stands.
        """
        return [status_of(account, self._tools) for account in self._accounts.values()]

    async def resume(self, name: str) -> AccountStatus:
        """
        Lift an account's pause, and whatever holds single tasks of it.

        Raises:
            UnknownAccount: There is none of that name.
        """
        account = self._named(name)
        await self._steering.resume(account)
        return status_of(account, self._tools)

    async def check(self, name: str) -> AccountCheck:
        """
        Find out whether an account's key is taken, without paying; it makes no task.

        Raises:
            UnknownAccount: There is none of that name.
        """
        return await check(self._named(name), self._tools)

    def _named(self, name: str) -> Account:
        account = self._accounts.get(name)
        if account is None:
            raise UnknownAccount(f"no account is named {name!r}")
        return account

    async def stats(self) -> Stats:
        """
        The lifetime counters, what was saved, and where the time of the newest done tasks went.
        """
        return await figures(self._store)

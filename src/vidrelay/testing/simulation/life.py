"""
One life of the relay: real parts on a directory, from opening the database to a good end, a kill, or a power cut.
"""

import asyncio
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol, cast

from vidrelay.core.disk import Assets, Files
from vidrelay.core.plan import AccountPlan, WindowSetting
from vidrelay.core.policy import Policy
from vidrelay.core.ports import AccountBook, ResultIndex, Store
from vidrelay.core.task import Task
from vidrelay.files.local import LocalFiles
from vidrelay.scheduler.relay import Relay
from vidrelay.store.emergency import EmergencyStore
from vidrelay.store.sqlite import SqliteStore
from vidrelay.store.writer import Writer
from vidrelay.testing.simulation.clock import WorldClock
from vidrelay.testing.simulation.disk import DATABASE, Disk, broken, longest_file, watching
from vidrelay.testing.simulation.faults import Dice, Faults
from vidrelay.testing.simulation.journal import Journal
from vidrelay.testing.simulation.ledger import Create, Key
from vidrelay.testing.simulation.loop import Killed, Process, VirtualLoop
from vidrelay.testing.simulation.network import Network
from vidrelay.testing.simulation.watched import WatchedFiles, WatchedStore
from vidrelay.testing.simulation.words import WORDS
from vidrelay.transport.download import HttpDownloader

DOWNLOADS_AT_ONCE = 2
BALLAST_BYTES = 8 * 1024
LONG_BEFORE = datetime(1970, 1, 1, tzinfo=UTC)
LONG_AFTER = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """
    What every life of a relay stands on.
    """

    loop: VirtualLoop
    clock: WorldClock
    disk: Disk
    network: Network
    faults: Faults
    dice: Dice
    journal: Journal
    policy: Policy
    accounts: tuple["AccountSetup", ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountSetup:
    """
    One account: its key at the provider, and the window that is configured; None asks, and None untold is one.
    """

    key: Key
    configured: int | None
    can_cancel: bool

    @property
    def window(self) -> int:
        """
        How many places it may have at the most.
        """
        if self.configured is not None:
            return self.configured
        return self.key.limit if self.key.tells_limit else 1


class Observer(Protocol):
    """
    Who looks at what a life does.
    """

    def opened(self, life: int) -> None:
        """
        A life has its database.
        """
        ...

    def closes(self) -> None:
        """
        A life lets go of its database.
        """
        ...

    def committed(self, task: Task) -> None:
        """
        The relay is about to hear of a commit.
        """
        ...

    def calls(self, life: int, kind: str, key: str) -> None:
        """
        A call begins.
        """
        ...

    def sends(self, create: Create) -> None:
        """
        The first byte of a create call leaves.
        """
        ...

    def lasts(self, life: int, key: str, began: float, tasks: list[str]) -> None:
        """
        A call under that key for these tasks, begun in that second, is still under way.
        """
        ...

    def rested(self, life: int, key: str, body: bytes, wait: str | None) -> None:
        """
        A customer was told to come back later.
        """
        ...

    def passed(self, point: str) -> None:
        """
        A point was passed.
        """
        ...


class Life:
    """
    A relay that runs until it ends.

    `relay` is None until it can be spoken to. It is `stopping` once it was told to end, and `ended` once it is over by
    itself, with `error` if it failed.
    """

    def __init__(self, ground: Ground, number: int, observer: Observer) -> None:
        self.number = number
        self.faults = ground.faults
        self.committing: list[str] = []
        self.process = Process(f"life-{number}")
        self.relay: Relay | None = None
        self.ended = self.stopping = False
        self.error: Exception | None = None
        self.died_at: str | None = None
        self._ground = ground
        self._observer = observer
        self._store: SqliteStore | None = None
        self._old: Path | None = None
        self._armed: tuple[str, int] | None = None
        self._tearing = False
        self._limit: int | None = None
        self._renamed = False
        self._chance = ground.dice.stream(f"life-{number}")
        self._ids = 0
        self._writing = ground.dice.stream(f"writing-{number}")
        self._dates = ground.dice.stream(f"dates-{number}")
        ground.loop.work = self._work
        ground.loop.start(self.process, self._live())

    @property
    def alive(self) -> bool:
        """
        Whether it can still do anything.
        """
        return self.process.alive and not self.ended

    # The relay

    async def _live(self) -> None:
        try:
            await self._run()
        except Exception as error:
            self.error = error
        finally:
            self.relay, self.ended = None, True

    async def _run(self) -> None:
        ground = self._ground
        store = self._store = await SqliteStore.open(ground.disk.state / DATABASE)
        self._observer.opened(self.number)
        if self._armed is not None:
            self._listen_for_commits(store)
        try:
            watched = WatchedStore(store, self)
            careful = EmergencyStore(cast("Store", watched), ground.disk.state, ballast_bytes=BALLAST_BYTES)
            await careful.recover()
            relay = self._assembled(watched, careful)
            await relay.load()
            self.relay = relay
            await relay.run()
        finally:
            self._observer.closes()
            await store.aclose()
            self._store = None

    def _assembled(self, watched: WatchedStore, careful: EmergencyStore) -> Relay:
        ground = self._ground
        files = cast("Files", WatchedFiles(LocalFiles(ground.disk.state / "cache", now=self._file_clock), self))
        slots = asyncio.Semaphore(DOWNLOADS_AT_ONCE)
        return Relay(
            store=careful,
            book=cast("AccountBook", watched),
            index=cast("ResultIndex", watched),
            files=files,
            assets=cast("Assets", None),  # no request has a picture
            clock=ground.clock,
            chance=self._chance.random,
            new_id=self._new_id,
            plans=[self._plan(account, files, slots) for account in ground.accounts],
            policy=ground.policy,
        )

    def _plan(self, account: AccountSetup, files: Files, slots: asyncio.Semaphore) -> AccountPlan:
        ground = self._ground
        wire = ground.network.wire(self)
        words = WORDS[account.key.protection]
        return AccountPlan(
            name=account.key.name,
            provider="model",
            adapter=words(account.key, can_cancel=account.can_cancel),
            transport=wire,
            downloader=HttpDownloader(wire, files, ground.clock, slots=slots, has_room=self._has_room),
            window=WindowSetting(limits=None if account.configured is None else {"*": account.configured}),
        )

    def _has_room(self, _: int) -> bool:
        return not self.faults.hit("disk.no_room")

    def _file_clock(self) -> datetime:
        """
        What time it is beside the dates of the files. Those are given by the system, in real time; so whether a file
        was changed just now is drawn.
        """
        return LONG_BEFORE if self._dates.random() < 0.5 else LONG_AFTER

    def _new_id(self) -> str:
        self._ids += 1
        return f"id-{self.number}-{self._ids}"

    async def stop(self, grace: float) -> None:
        """
        End it well, as a signal does.
        """
        self.stopping = True
        await self.reach("stop.enter")
        if self.relay is not None:
            await self.relay.stop(grace=grace)

    # Points

    def arm(self, point: str, times: int) -> None:
        """
        Let it die when it passes that point for the n-th time from now.
        """
        self._armed = point, times
        if self._store is not None:
            self._listen_for_commits(self._store)

    def spare(self) -> None:
        """
        Let it live on, whatever death was meant for it.
        """
        self._armed, self._tearing = None, False

    async def reach(self, point: str) -> None:
        """
        Pass a point; where it is to die there, nothing comes after.
        """
        if self._dies_at(point):
            self.kill(point)
            await self._ground.loop.create_future()

    def _reach_in_work(self, point: str) -> None:
        if self._dies_at(point):
            self.kill(point)
            raise Killed

    def _dies_at(self, point: str) -> bool:
        self._observer.passed(point)
        if self._armed is None or self._armed[0] != point:
            return False
        self._armed = point, self._armed[1] - 1
        return self._armed[1] <= 0

    def _listen_for_commits(self, store: SqliteStore) -> None:
        """
        Learn of each COMMIT before SQLite does it; costly, so only where a death waits for one.
        """
        store._writer._connection.set_trace_callback(self._traced)

    def _traced(self, statement: str) -> None:
        if statement == "COMMIT" and self.process.alive:
            for name in self.committing:
                if self._dies_at(f"{name}.commit"):
                    # What SQLite does from here on, it does to the old files.
                    self.kill(f"{name}.commit")

    # Ends

    def kill(self, why: str) -> None:
        """
        SIGKILL: nothing of it runs any more, and the files stay as they are at this instant.
        """
        self._die(why)
        self._old = self._ground.disk.picture()

    def cut_power(self) -> None:
        """
        Let the power go during its next commit.
        """
        self._tearing = True

    def _die(self, why: str) -> None:
        self.died_at = why
        self._ground.loop.kill(self.process)
        self.relay = None

    def bury(self) -> None:
        """
        Clear away what is left of it in memory and on disk.
        """
        self._ground.loop.bury(self.process)
        if self._store is not None:
            for connection in (self._store._reader._connection, self._store._writer._connection):
                connection.close()
            self._store = None
        if self._old is not None:
            self._ground.disk.discard(self._old)

    # What the observer, the ports and the network tell

    def committed(self, task: Task) -> None:
        """
        A commit has changed this task.
        """
        self._observer.committed(task)

    def sends(self, create: Create) -> None:
        """
        The first byte of a create call leaves.
        """
        self._observer.sends(create)

    def calls(self, kind: str, key: str) -> None:
        """
        A call begins.
        """
        self._observer.calls(self.number, kind, key)

    def lasts(self, key: str, began: float, tasks: list[str]) -> None:
        """
        A call for these tasks is still under way.
        """
        self._observer.lasts(self.number, key, began, tasks)

    def rested(self, key: str, body: bytes, wait: str | None) -> None:
        """
        A customer was told to come back later.
        """
        self._observer.rested(self.number, key, body, wait)

    # Work that real loops give to threads

    def limit_next_work(self, size_bytes: int) -> None:
        """
        Let the next piece of work write no file beyond so many bytes.
        """
        self._limit = size_bytes

    def _work(self, call: Callable[[], Any]) -> Any:
        if not self.process.alive:
            raise Killed
        limit, self._limit = self._limit, None
        commits = isinstance(getattr(getattr(call, "func", None), "__self__", None), Writer)
        if commits and self.faults.hit("disk.limit_store"):
            limit = self._writing.randint(0, 40_000)
        before = self._ground.disk.database() if commits and self._tearing else None
        with watching(self._operates), nullcontext() if limit is None else longest_file(limit):
            result = call()
        if before is not None and self.process.alive and self._ground.disk.database() != before:
            self._die("power")
            self._old = self._ground.disk.tear(before)
            raise Killed
        if not self.process.alive:
            raise Killed
        return result

    def _operates(self, event: str, path: str, target: str) -> None:
        """
        A file operation is about to be done.
        """
        if event == "os.rename" and path.endswith(".part"):
            self._reach_in_work("part.rename")
            self._renamed = True
        elif event == "os.rename" and path.endswith(f"{DATABASE}.new"):
            self._reach_in_work("database.rename")
        elif event == "open" and self._renamed:
            self._renamed = False
            self._reach_in_work("part.renamed")
        elif path.endswith(".part") and self.faults.hit("disk.error_file"):
            raise broken()

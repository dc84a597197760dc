"""
Lives of a relay on one directory: the real store, the real files and the real downloader, assembled as in production;
only the clock and the far end are fakes.
"""

import asyncio
import itertools
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from vidrelay.core.disk import Assets
from vidrelay.core.errors import DatabaseUnusable
from vidrelay.core.plan import AccountPlan, WindowSetting
from vidrelay.core.policy import CachePolicy, Policy, PollPolicy
from vidrelay.core.task import Request, State, Task
from vidrelay.files.local import LocalFiles
from vidrelay.scheduler.face import Sender
from vidrelay.scheduler.relay import Relay
from vidrelay.store.emergency import EmergencyStore
from vidrelay.store.sqlite import SqliteStore
from vidrelay.testing.clock import FakeClock
from vidrelay.testing.inflight import InFlight
from vidrelay.testing.toy.adapter import ToyAdapter
from vidrelay.testing.toy.provider import ToyProvider
from vidrelay.transport.download import HttpDownloader

BALLAST_BYTES = 64 * 1024


class NoAssets(Assets):
    """
    A relay without pictures.
    """


@dataclass
class Ground:
    """
    What every life stands on; `folder` is the state directory of the next one.
    """

    folder: Path
    clock: FakeClock = field(default_factory=FakeClock)
    provider: ToyProvider = field(init=False)
    adapter: ToyAdapter = field(default_factory=ToyAdapter)
    window: int = 2
    cache: CachePolicy = CachePolicy(min_free_bytes=1)
    _ids: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))
    _kills: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    def __post_init__(self) -> None:
        self.provider = ToyProvider(self.clock)

    @asynccontextmanager
    async def life(self) -> AsyncIterator["Life"]:
        """
        A relay from opening its database to its end.

        Raises:
            DatabaseUnusable: It ended by itself, since nothing could be saved any more.
        """
        in_flight = InFlight()
        self.clock.busy = in_flight.busy
        sqlite = await SqliteStore.open(self.folder / "relay.db")
        try:
            careful = EmergencyStore(sqlite, self.folder, ballast_bytes=BALLAST_BYTES)
            await careful.recover()
            files = LocalFiles(self.folder / "cache")
            life = Life(self, self._relay(in_flight, careful, sqlite, files), sqlite, files)
            await life.relay.load()
            async with life.running():
                yield life
        finally:
            await sqlite.aclose()
        if life.ended_by is not None:
            raise life.ended_by

    def _relay(self, in_flight: InFlight, careful: EmergencyStore, sqlite: SqliteStore, files: LocalFiles) -> Relay:
        store, book, cache = in_flight.watch(careful), in_flight.watch(sqlite), in_flight.watch(files)
        downloader = HttpDownloader(
            self.provider, cache, self.clock, slots=asyncio.Semaphore(2), has_room=lambda _: True
        )
        plan = AccountPlan(
            name="toy",
            provider="toy",
            adapter=self.adapter,
            transport=self.provider,
            downloader=downloader,
            window=WindowSetting(limits={"*": self.window}),
        )
        return Relay(
            store=store,
            book=book,
            index=book,
            files=cache,
            assets=NoAssets(),
            clock=self.clock,
            chance=lambda: 0.5,
            new_id=lambda: f"id-{next(self._ids)}",
            plans=[plan],
            policy=Policy(default_account="toy", poll=PollPolicy(learned=False), cache=self.cache),
        )

    def kill(self) -> None:
        """
        Take the files as they are now for the next life, as SIGKILL leaves them; what this one still does is nobody's.
        """
        old = self.folder
        self.folder = old.with_name(f"{old.name}-{next(self._kills)}")
        self.folder.mkdir()
        for path in old.iterdir():
            if path.is_dir():
                shutil.copytree(path, self.folder / path.name)
            elif not path.name.endswith("-shm"):
                shutil.copy2(path, self.folder / path.name)


@dataclass
class Life:
    """
    A relay that runs; `ended_by` is why it ended by itself.
    """

    ground: Ground
    relay: Relay
    store: SqliteStore
    files: LocalFiles
    ended_by: DatabaseUnusable | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """
        Let it run until the block ends.
        """
        async with asyncio.TaskGroup() as group:
            group.create_task(self._run())
            await self.ground.clock.settle()
            try:
                yield
            finally:
                await self.relay.stop(grace=0)

    async def _run(self) -> None:
        try:
            await self.relay.run()
        except DatabaseUnusable as unusable:
            self.ended_by = unusable

    async def submit(self, prompt: str) -> Task:
        """
        Submit under the prompt as its own client key, and let the relay go as far as it can without time passing.
        """
        admission = await self.relay.submit(Request(prompt=prompt), Sender(client_key=prompt))
        await self.ground.clock.settle()
        return admission.task

    async def until(self, *states: State, prompts: int, within: float = 900.0) -> bool:
        """
        Let time pass until so many tasks are in one of these states; False if the relay ends before.
        """
        passed = 0.0
        while self.ended_by is None:
            tasks = await self.tasks()
            if sum(task.state in states for task in tasks) >= prompts:
                return True
            told = [(task.id, task.state, task.error) for task in tasks]
            assert passed < within, f"after {passed} s: {told}"
            await self.ground.clock.advance(1.0)
            passed += 1.0
        return False

    async def tasks(self) -> list[Task]:
        """
        Every task, newest first.
        """
        return await self.store.page(states=None, account=None, before=None, limit=10_000)

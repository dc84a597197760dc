"""
A relay on real SQLite, real files and the real downloader; only the clock and the far end are fakes.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from vidrelay.core.adapter import PictureRule
from vidrelay.core.disk import Assets
from vidrelay.core.plan import AccountPlan, WindowSetting
from vidrelay.core.policy import CachePolicy, Policy, PollPolicy
from vidrelay.core.task import Asset, Request, State, Task
from vidrelay.files.local import LocalFiles
from vidrelay.scheduler.relay import Relay
from vidrelay.store.sqlite import SqliteStore
from vidrelay.testing.clock import FakeClock
from vidrelay.testing.inflight import InFlight
from vidrelay.testing.toy.adapter import ToyAdapter
from vidrelay.testing.toy.provider import ToyProvider
from vidrelay.transport.download import HttpDownloader

POLICY = Policy(default_account="toy", poll=PollPolicy(learned=False), cache=CachePolicy(min_free_bytes=1))


@dataclass
class Bench:
    """
    Everything a scheduler test holds on to.
    """

    folder: Path
    clock: FakeClock
    provider: ToyProvider
    adapter: ToyAdapter = field(default_factory=ToyAdapter)
    others: dict[str, ToyProvider] = field(default_factory=dict)
    window: int | None = 2
    room: bool = True
    policy: Policy = POLICY
    chance: Callable[[], float] = lambda: 0.5
    wrap: Callable[[Any], Any] = lambda port: port
    relay: Relay = field(init=False)
    store: SqliteStore = field(init=False)
    ids: Any = field(default_factory=lambda: itertools.count(1))

    @asynccontextmanager
    async def running(self, *, kill: bool = False) -> AsyncIterator["Bench"]:
        """
        A life of the relay. `kill` ends it as SIGKILL does, as far as a test in one process can: nothing is drained.
        """
        self.store = await SqliteStore.open(self.folder / "relay.db")
        in_flight = InFlight()
        self.clock.busy = in_flight.busy
        store = self.wrap(in_flight.watch(self.store))
        files = self.wrap(in_flight.watch(LocalFiles(self.folder / "cache")))
        plans = [
            AccountPlan(
                name=name,
                provider="toy",
                adapter=self.adapter,
                transport=provider,
                downloader=HttpDownloader(
                    provider, files, self.clock, slots=asyncio.Semaphore(2), has_room=lambda _: self.room
                ),
                window=WindowSetting(limits={"*": self.window} if self.window is not None else None),
                drop_idle=provider.drop_idle,
            )
            for name, provider in {"toy": self.provider, **self.others}.items()
        ]
        self.relay = Relay(
            store=store,
            book=store,
            index=store,
            files=files,
            assets=AsTheyAre(),
            clock=self.clock,
            chance=self.chance,
            new_id=lambda: f"id-{next(self.ids)}",
            plans=plans,
            policy=self.policy,
        )
        await self.relay.load()
        async with asyncio.TaskGroup() as group:
            life = group.create_task(self.relay.run())
            await self.clock.settle()
            try:
                yield self
            finally:
                if kill:
                    life.cancel()
                else:
                    await self.relay.stop(grace=0)
        await self.store.aclose()

    async def drain(self, *, grace: float, passing: float) -> None:
        """
        Stop with some grace while so much time passes.
        """
        async with asyncio.TaskGroup() as group:
            group.create_task(self.relay.stop(grace=grace))
            await self.clock.advance(passing)

    async def submit(self, prompt: str = "a boat", **changes: Any) -> Task:
        """
        Submit and let the relay go as far as it can without time passing.
        """
        admission = await self.relay.submit(Request(prompt=prompt, **changes))
        await self.clock.settle()
        return admission.task

    async def until(self, task_id: str, state: State, *, within: float = 600.0) -> Task:
        """
        Let time pass until the task is in that state.
        """
        passed = 0.0
        while (task := await self.relay.get(task_id)).state is not state:
            assert passed < within, f"still {task.state} after {passed} s: {task.error}"
            assert not task.ended, f"ended as {task.state}: {task.error}"
            await self.clock.advance(0.5)
            passed += 0.5
        return task


class AsTheyAre(Assets):
    """
    Pictures that fit every provider; of their bytes a bench knows nothing.
    """

    async def fitted(self, asset: Asset, rule: PictureRule) -> Asset:
        """
        The picture itself.
        """
        return asset


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """
    A bench with a toy provider that works each job for ten seconds.
    """
    clock = FakeClock()
    return Bench(folder=tmp_path, clock=clock, provider=ToyProvider(clock))

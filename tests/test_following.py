"""
From end to end over loopback: what following a provider saves, and how much sooner an end is known.

Time runs ten times as fast for the relay and the pretend provider alike.
"""
# ruff: noqa: ASYNC110 a ledger has no event

import asyncio
import itertools
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from vidrelay.assemble import transport_for
from vidrelay.config import AccountSettings, NetworkSettings
from vidrelay.core.adapter import Adapter
from vidrelay.core.plan import AccountPlan, WindowSetting
from vidrelay.core.policy import CachePolicy, Policy, PollPolicy
from vidrelay.core.task import CancelOutcome, Request, State, Task
from vidrelay.files.assets import LocalAssets
from vidrelay.files.local import LocalFiles
from vidrelay.providers.json_api import AdapterSettings
from vidrelay.providers.registry import make_adapter
from vidrelay.scheduler.relay import Relay
from vidrelay.store.sqlite import SqliteStore
from vidrelay.testing.simulator import RunningSimulator, running_simulator
from vidrelay.transport.download import HttpDownloader

SPEED = 10.0
POLICY = Policy(default_account="main", poll=PollPolicy(learned=False), cache=CachePolicy(min_free_bytes=1))
GRAPH = {
    "1": {"class_type": "EmptyImage", "inputs": {"width": 64, "height": 48, "batch_size": 8, "color": 255}},
    "2": {"class_type": "CreateVideo", "inputs": {"images": ["1", 0], "fps": 8}},
    "3": {"class_type": "SaveVideo", "inputs": {"video": ["2", 0], "filename_prefix": "relay/{prompt}"}},
}


class QuickClock:
    """
    Fills port Clock: a minute is over in six seconds.
    """

    def __init__(self) -> None:
        self._began, self._began_at = time.monotonic(), datetime.now(UTC)

    def now(self) -> datetime:
        return self._began_at + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        return (time.monotonic() - self._began) * SPEED

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(0.0, seconds) / SPEED)


@dataclass
class Side:
    """
    A relay and the pretend provider that it speaks to.
    """

    relay: Relay
    simulator: RunningSimulator
    store: SqliteStore

    async def submit(self, prompt: str, **fields: Any) -> Task:
        return (await self.relay.submit(Request(prompt=prompt, **fields))).task

    async def reach(self, task: Task, state: State) -> Task:
        """
        Wait for that state.
        """
        async with asyncio.timeout(30):
            while (now := await self.relay.get(task.id)).state is not state:
                assert not now.ended, now.error
                await asyncio.sleep(0.02)
        return now

    async def polls(self) -> int:
        return (await self.store.counters())["polls"]


@asynccontextmanager
async def running(folder: Path, provider: str, *, follows: bool, **options: Any) -> AsyncIterator[Side]:
    """
    Both, in this process.
    """
    clock, ids = QuickClock(), itertools.count(1)
    folder.mkdir()  # noqa: ASYNC240 before anything runs
    async with running_simulator(clock=clock, dialect=provider, **options) as simulator:
        base = f"http://127.0.0.1:{simulator.port}"
        account = AccountSettings(name="main", provider=provider, base_url=base)
        adapter: Adapter = make_adapter(provider, AdapterSettings(now=clock.now, key="key", base_url=base))
        adapter.traits = replace(adapter.traits, follows=follows)
        store, files = await SqliteStore.open(folder / "relay.db"), LocalFiles(folder / "cache")
        transport = transport_for(account, NetworkSettings(), adapter, asset_path=Path)
        slots = asyncio.Semaphore(4)
        plan = AccountPlan(
            name="main",
            provider=provider,
            adapter=adapter,
            transport=transport,
            downloader=HttpDownloader(transport, files, clock, slots=slots, has_room=lambda _: True),
            window=WindowSetting(limits={"*": 50}),
            drop_idle=transport.drop_idle,
        )
        relay = Relay(
            store=store,
            book=store,
            index=store,
            files=files,
            assets=LocalAssets(folder / "assets", store, forbidden=[], has_room=lambda _: True),
            clock=clock,
            chance=lambda: 0.5,
            new_id=lambda: f"5f0c1c1e-7d3a-4d0e-9b1a-{next(ids):012d}",
            plans=[plan],
            policy=POLICY,
        )
        await relay.load()
        async with asyncio.TaskGroup() as group:
            group.create_task(relay.run())
            try:
                yield Side(relay=relay, simulator=simulator, store=store)
            finally:
                await relay.stop(grace=0)
        await transport.aclose()
        await store.aclose()


def fields_of(provider: str) -> dict[str, Any]:
    return {"extra": {"graph": GRAPH}} if provider == "comfyui" else {"model_version": "fal-ai/kling-video/v2"}


async def made(side: Side, provider: str, count: int) -> tuple[float, float, float]:
    """
    Let so many clips be made; returns polls and calls that asked for a clip, and the seconds that each was known later
    than it was done, by the far end's own clock.
    """
    tasks = [await side.submit(f"boat{number}", **fields_of(provider)) for number in range(count)]
    known = {}
    for task in tasks:
        done = await side.reach(task, State.DONE)
        assert done.ready_at is not None
        known[done.remote_id] = done.ready_at
    ledger = side.simulator.ledger()
    began = side.simulator.engine.wall(0.0)
    late = [known[job].timestamp() - began - line["ended"] for job, line in ledger_jobs(ledger).items()]
    asked = [one for one in ledger["requests"] if one["place"] in ("poll", "list")]
    return await side.polls() / count, len(asked) / count, sum(late) / count


def ledger_jobs(ledger: dict[str, Any]) -> dict[str, Any]:
    return {line["id"]: line for line in ledger["jobs"]}


@pytest.mark.parametrize(("provider", "count", "workers", "share"), [("fal", 4, 2, 0.8), ("comfyui", 3, 1, 1.0)])
async def test_following_asks_less_and_knows_sooner(
    tmp_path: Path, *, provider: str, count: int, workers: int, share: float, record_property: Any
) -> None:
    """
    The same clips with and without: fewer polls by the relay's own count (at a ComfyUI server, whose list is for all
    its jobs, no more), and each end known in a fraction of the time.
    """
    found = {}
    for follows in (False, True):
        options = {"run_seconds": 25.0, "queue_seconds": 3.0, "workers": workers}
        async with running(tmp_path / str(follows), provider, follows=follows, **options) as side:
            found[follows] = await made(side, provider, count)
    record_property("found", found)
    (polls, _, late), (fewer, _, sooner) = found[False], found[True]
    assert fewer <= share * polls
    assert sooner <= 0.4 * late


@pytest.mark.parametrize("provider", ["fal", "comfyui"])
async def test_a_wish_to_cancel_does_not_wait_for_the_stream(tmp_path: Path, provider: str) -> None:
    """
    A waiting job is followed, and stopped within a moment.
    """
    async with running(tmp_path / "here", provider, follows=True, queue_seconds=300.0) as side:
        task = await side.submit("boat", **fields_of(provider))
        await side.reach(task, State.RUNNING)
        async with asyncio.timeout(10):
            while not any(
                "stream" in one["path"] or one["path"] == "/ws" for one in side.simulator.ledger()["requests"]
            ):
                await asyncio.sleep(0.02)
        await asyncio.sleep(0.1)
        began = time.monotonic()
        _, outcome = await side.relay.cancel(task.id)
        assert outcome is CancelOutcome.STOPPED
        assert time.monotonic() - began < 1.0


@pytest.mark.parametrize("provider", ["fal", "comfyui"])
async def test_a_server_that_goes_away_while_it_is_followed(tmp_path: Path, provider: str) -> None:
    """
    The stream breaks, nobody answers for a while, and the clip is made all the same.
    """
    async with running(tmp_path / "here", provider, follows=True, run_seconds=40.0) as side:
        task = await side.submit("boat", **fields_of(provider))
        await side.reach(task, State.RUNNING)
        await asyncio.sleep(0.4)
        side.simulator.restart(forget=False, down=20.0)
        await side.reach(task, State.DONE)

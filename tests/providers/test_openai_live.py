"""
The adapter of the OpenAI Videos shape in conversation with the pretend provider, in each dialect.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from vidrelay.clock import SystemClock
from vidrelay.core.adapter import NotThere, Refused, Search, Trouble, Undecided, Unknown
from vidrelay.core.lifecycle import Accepted, Cancelled, Failed, Found, Ready, StillRunning
from vidrelay.core.task import Asset, CancelOutcome, Reference, Request, Task
from vidrelay.providers.json_api import AdapterSettings
from vidrelay.providers.openai.adapter import OpenAiAdapter
from vidrelay.testing.conversing import converse_with, send
from vidrelay.testing.records import make_task
from vidrelay.testing.simulator import RunningSimulator, running_simulator

DIALECTS = ["openai", "vllm-omni", "sglang"]


class Talk:
    """
    One adapter, one simulator and the client between them.
    """

    def __init__(self, simulator: RunningSimulator, client: httpx2.AsyncClient, adapter: OpenAiAdapter) -> None:
        self.simulator = simulator
        self.client = client
        self.adapter = adapter

    def task(self, prompt: str = "a boat", **fields: Any) -> Task:
        request = Request(prompt=prompt, duration=2, resolution="480p", **fields)
        now = SystemClock().now()
        return make_task(parameters=self.adapter.prepare(request, {}).parameters, created_at=now, updated_at=now)

    async def submit(self, task: Task, pictures: dict[str, Path] | None = None) -> Any:
        return await converse_with(self.client, self.adapter.submit(task), pictures=pictures)

    async def accepted(self, task: Task) -> Task:
        outcome = await self.submit(task)
        assert isinstance(outcome, Accepted)
        return replace(task, remote_id=outcome.remote_id)

    async def poll(self, task: Task) -> Any:
        return await converse_with(self.client, self.adapter.poll(task))

    async def find(self, task: Task, owned: frozenset[str] = frozenset()) -> Any:
        now = SystemClock().now()
        search = Search(
            sent_at=task.created_at, lost_at=now + timedelta(seconds=1), elapsed=0.0, lost_ago=0.0, owned=owned
        )
        return await converse_with(self.client, self.adapter.find(task, search))


@asynccontextmanager
async def talk(said: str = "auto", **options: Any) -> AsyncIterator[Talk]:
    async with running_simulator(key="sk-live", **options) as simulator, httpx2.AsyncClient(verify=False) as client:
        settings = AdapterSettings(now=SystemClock().now, key="sk-live", base_url=simulator.base_url, dialect=said)
        adapter = OpenAiAdapter(settings)
        yield Talk(simulator, client, adapter)


@pytest.mark.parametrize("spoken", DIALECTS)
@pytest.mark.parametrize("named", [False, True])
async def test_a_clip_from_prompt_to_file(spoken: str, named: bool) -> None:
    """Every dialect is spoken, whether the account names it or leaves it open."""
    async with talk(spoken if named else "auto", dialect=spoken, run_seconds=60) as it:
        task = await it.accepted(it.task())
        assert isinstance(await it.poll(task), StillRunning)
        it.simulator.finish()
        ready = await it.poll(task)
        assert isinstance(ready, Ready)
        file = await send(it.client, it.adapter.download(task, ready.outputs[0]))
        assert (file.status, file.body[4:8]) == (200, b"ftyp")
        assert it.simulator.ledger()["jobs"][0]["prompt"] == "a boat"


@pytest.mark.parametrize("spoken", DIALECTS)
async def test_a_failed_job_fails_in_every_dialect(spoken: str) -> None:
    """A failed job is told apart from a server's trouble, vLLM-Omni's 500 included."""
    async with talk(dialect=spoken) as it:
        task = await it.accepted(it.task("a [fail]"))
        it.simulator.finish()
        assert isinstance(await it.poll(task), Failed)


@pytest.mark.parametrize("spoken", DIALECTS)
async def test_above_the_window_is_a_refusal(spoken: str) -> None:
    """The gate's 429 is about the window, not about the rate."""
    async with talk(dialect=spoken, window=1, run_seconds=60) as it:
        await it.accepted(it.task())
        refused = await it.submit(it.task())
        assert isinstance(refused, Refused)
        assert refused.reason == "window"


async def test_above_the_rate_waits_as_told() -> None:
    """The rate's 429 carries its Retry-After."""
    async with talk(rate=1) as it:
        task = await it.accepted(it.task())
        refused = await it.poll(task)
        assert isinstance(refused, Refused)
        assert refused.reason == "rate"
        assert refused.retry_after is not None
        assert 50 < refused.retry_after <= 60


@pytest.mark.parametrize("spoken", DIALECTS)
@pytest.mark.parametrize("fault", ["create-error-after", "create-no-id", "create-truncated", "create-html"])
async def test_a_lost_answer_is_found_in_the_list(spoken: str, fault: str) -> None:
    """A create whose answer said nothing is found again by what was asked for."""
    async with talk(dialect=spoken, run_seconds=60) as it:
        it.simulator.arm(fault)
        task = it.task()
        assert isinstance(await it.submit(task), Unknown)
        found = await it.find(task)
        assert isinstance(found, Found)
        assert found.remote_id == it.simulator.ledger()["jobs"][0]["id"]
        assert isinstance(await it.find(task, frozenset({found.remote_id})), Undecided)


async def test_twins_stay_undecided() -> None:
    """Two equal jobs cannot be told apart."""
    async with talk(run_seconds=60) as it:
        task = it.task()
        await it.accepted(task)
        await it.accepted(task)
        found = await it.find(task)
        assert isinstance(found, Undecided)
        assert len(found.candidates) == 2


async def test_a_server_that_forgot_says_not_there() -> None:
    """After a restart of a server that keeps jobs in memory, the job is not there."""
    async with talk(dialect="vllm-omni") as it:
        task = await it.accepted(it.task())
        it.simulator.restart()
        assert isinstance(await it.poll(task), NotThere)


@pytest.mark.parametrize("fault", ["poll-error=502", "poll-html", "poll-truncated", "poll-types", "poll-error=409"])
async def test_a_spoiled_poll_is_trouble(fault: str) -> None:
    """No spoiled answer ends a task."""
    async with talk(run_seconds=60) as it:
        task = await it.accepted(it.task())
        it.simulator.arm(fault)
        assert isinstance(await it.poll(task), Trouble)
        assert isinstance(await it.poll(task), StillRunning)


async def test_a_cancel_stops_vllm_omnis_job() -> None:
    """The job ends there too."""
    async with talk(dialect="vllm-omni", run_seconds=60) as it:
        task = await it.accepted(it.task())
        stopped = await converse_with(it.client, it.adapter.cancel(task))
        assert stopped == Cancelled(outcome=CancelOutcome.STOPPED)
        assert it.simulator.ledger()["jobs"][0]["state"] == "stopped"


async def test_a_picture_goes_as_a_file(tmp_path: Path) -> None:
    """A reference image is sent as a file part, beside the words."""
    picture = tmp_path / "a.png"
    picture.write_bytes(b"\x89PNG\r\n\x1a\n--not a boundary\r\n")
    asset = Asset(id="sha256:a", pixels="p1:1", width=1, height=1, size_bytes=9, media_type="image/png")
    async with talk() as it:
        request = Request(prompt="ein Boot ☔", references=(Reference(asset="sha256:a"),))
        task = replace(it.task(), parameters=it.adapter.prepare(request, {"sha256:a": asset}).parameters)
        assert isinstance(await it.submit(task, {"sha256:a": picture}), Accepted)
        (job,) = it.simulator.engine.jobs.values()
        assert (job.pictures, job.fields["prompt"]) == (1, "ein Boot ☔")


async def test_a_dead_address_is_renewed_by_asking_again() -> None:
    """SGLang's signed addresses go without the key, and each status has fresh ones."""
    async with talk(dialect="sglang", url_seconds=0.0) as it:
        task = await it.accepted(it.task())
        it.simulator.finish()
        dead = (await it.poll(task)).outputs[0]
        it.simulator.change(url_seconds=60.0)
        fresh = (await it.poll(task)).outputs[0]
        requests = [it.adapter.download(task, output) for output in (dead, fresh)]
        assert [(await send(it.client, request)).status for request in requests] == [403, 200]
        assert all("Authorization" not in request.headers for request in requests)


@pytest.mark.parametrize("spoken", DIALECTS)
async def test_one_list_tells_of_all_that_run(spoken: str) -> None:
    """Where the account names its dialect, one call says of each task what a poll of it says."""
    async with talk(spoken, dialect=spoken, run_seconds=60, workers=1) as it:
        tasks = [await it.accepted(it.task(prompt)) for prompt in ("one", "[run=0] two", "[fail] three")]
        it.simulator.finish()
        tasks.append(await it.accepted(it.task("four")))
        assert it.adapter.traits.lists
        told = await converse_with(it.client, it.adapter.poll_many(tasks))
        assert isinstance(told, Mapping)
        assert {type(told[task.id]) for task in tasks} == {Ready, Failed, StillRunning}
        for task in tasks:
            assert type(told[task.id]) is type(await it.poll(task))
        it.simulator.arm("list-error=503")
        assert isinstance(await converse_with(it.client, it.adapter.poll_many(tasks)), Trouble)


def test_an_unnamed_dialect_is_polled_one_by_one() -> None:
    """A gateway that nobody has named may have no list."""
    settings = AdapterSettings(now=SystemClock().now, base_url="https://host.example/v1")
    assert not OpenAiAdapter(settings).traits.lists

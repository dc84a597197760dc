"""
The official `openai` SDK, unmodified, against the pretend provider: what holds for it holds for the simulator.
"""

import asyncio
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import openai

from vidrelay.testing.simulator import RunningSimulator, running_simulator

pytestmark = pytest.mark.filterwarnings("ignore:The Sora API:DeprecationWarning")


@asynccontextmanager
async def sdk(
    *, key: str = "sk-test", retries: int = 0, **options: Any
) -> AsyncIterator[tuple[openai.AsyncOpenAI, RunningSimulator]]:
    async with running_simulator(**options) as simulator:
        client = openai.AsyncOpenAI(base_url=simulator.base_url, api_key=key, max_retries=retries)
        try:
            yield client, simulator
        finally:
            await client.close()


async def until(client: openai.AsyncOpenAI, video_id: str, state: str) -> Any:
    for _ in range(200):
        video = await client.videos.retrieve(video_id)
        if video.status == state:
            return video
        await asyncio.sleep(0.02)
    raise AssertionError(f"{video_id} is {video.status}, not {state}")


async def test_a_clip_is_made_watched_and_fetched() -> None:
    """create, retrieve until completed, download: the bytes are an MP4."""
    async with sdk(key="sk-right", run_seconds=0.2) as (client, simulator):
        video = await client.videos.create(prompt="a paper boat", model="sora-2", seconds="4", size="1280x720")
        assert (video.status, video.prompt, video.seconds, video.size) == ("queued", "a paper boat", "4", "1280x720")
        video = await until(client, video.id, "completed")
        assert video.progress == 100
        assert video.completed_at is not None
        content = (await client.videos.download_content(video.id)).content
        assert content[4:8] == b"ftyp"
        assert simulator.ledger()["jobs"][0]["downloads"] == 1


async def test_create_and_poll_waits_to_the_end() -> None:
    """The SDK's own waiting works."""
    async with sdk() as (client, _):
        assert (await client.videos.create_and_poll(prompt="a", poll_interval_ms=20)).status == "completed"


async def test_a_picture_goes_along() -> None:
    """A picture is sent as a file part."""
    async with sdk() as (client, simulator):
        await client.videos.create(prompt="a", input_reference=("a.png", b"\x89PNG\r\n\x1a\n", "image/png"))
        assert [job.pictures for job in simulator.engine.jobs.values()] == [1]


async def test_the_list_is_newest_first_and_pages() -> None:
    """list gives pages that the SDK walks by itself."""
    async with sdk() as (client, _):
        made = [(await client.videos.create(prompt=str(number))).id for number in range(5)]
        seen = [video.id async for video in client.videos.list(limit=2)]
        assert seen == made[::-1]


async def test_a_finished_job_can_be_deleted() -> None:
    """delete removes a finished job."""
    async with sdk() as (client, _):
        video = await client.videos.create(prompt="a")
        await until(client, video.id, "completed")
        assert (await client.videos.delete(video.id)).deleted
        with pytest.raises(openai.NotFoundError):
            await client.videos.retrieve(video.id)


async def test_a_failed_job_says_why() -> None:
    """A failed job has a code and a message."""
    async with sdk() as (client, _):
        video = await client.videos.create(prompt="a [moderated]")
        failed = await until(client, video.id, "failed")
        assert failed.error.code == "moderation_blocked"


async def test_above_the_window_is_429() -> None:
    """One create too many raises the SDK's RateLimitError."""
    async with sdk(window=1, run_seconds=60) as (client, simulator):
        await client.videos.create(prompt="a")
        with pytest.raises(openai.RateLimitError) as refused:
            await client.videos.create(prompt="b")
        assert refused.value.code == "concurrency_limit_exceeded"
        assert simulator.ledger()["creates"]["accepted"] == 1


async def test_a_wrong_key_is_401() -> None:
    """With a key set, any other is refused."""
    async with sdk(key="sk-wrong") as (client, simulator):
        simulator.change(key="sk-right")
        with pytest.raises(openai.AuthenticationError):
            await client.videos.create(prompt="a")


async def test_the_sdk_pays_twice_for_a_lost_answer() -> None:
    """A dropped answer makes the SDK send the create again: the trouble vidrelay is there for."""
    async with sdk(retries=2) as (client, simulator):
        simulator.arm("create-drop-after")
        await client.videos.create(prompt="a")
        assert simulator.ledger()["creates"] == {"received": 2, "accepted": 2, "answered": 1, "refused": 0, "lost": 1}


async def test_a_failed_job_of_vllm_omni_raises() -> None:
    """vLLM-Omni answers a failed job's status with 500, and the SDK takes it for a fault of the server."""
    async with sdk(dialect="vllm-omni") as (client, simulator):
        video = await client.videos.create(prompt="a [fail]")
        simulator.finish()
        with pytest.raises(openai.InternalServerError) as raised:
            await client.videos.retrieve(video.id)
        assert raised.value.response.json()["status"] == "failed"

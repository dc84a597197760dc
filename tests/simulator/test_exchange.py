"""
What goes over the wire: faults, ranges, dialects, and the simulator's own paths.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import httpx2
import pytest

from vidrelay.testing.clock import FakeClock
from vidrelay.testing.simulator import RunningSimulator, running_simulator


@asynccontextmanager
async def talking(**options: Any) -> AsyncIterator[tuple[httpx2.AsyncClient, RunningSimulator]]:
    async with (
        running_simulator(**options) as simulator,
        httpx2.AsyncClient(base_url=simulator.base_url, verify=False) as client,
    ):
        yield client, simulator


async def create(client: httpx2.AsyncClient, prompt: str = "a boat", **fields: Any) -> dict[str, Any]:
    reply = await client.post("/videos", json={"prompt": prompt, **fields})
    reply.raise_for_status()
    return dict(reply.json())


async def done(client: httpx2.AsyncClient, simulator: RunningSimulator, **fields: Any) -> str:
    job = await create(client, **fields)
    simulator.finish()
    return str(job["id"])


async def fetch_into(came: bytearray, client: httpx2.AsyncClient, path: str) -> None:
    async with client.stream("GET", path) as reply:
        async for chunk in reply.aiter_raw():
            came += chunk


async def film_of(size: int) -> AsyncIterator[bytes]:
    """
    A create of OpenRouter's with a film of so many bytes of base64 in it, piece by piece.
    """
    yield b'{"model": "google/veo-3.1", "prompt": "a boat", "input_references": [{"type": "video_url", "video_url": '
    yield b'{"url": "data:video/mp4;base64,'
    for _ in range(size // 2**20):
        yield b"A" * 2**20
    yield b'"}}]}'


@pytest.mark.parametrize(("mebibytes", "status", "made"), [(96, 202, 1), (129, 413, 0)])
async def test_a_body_is_taken_up_to_its_bound_and_refused_beyond(mebibytes: int, status: int, made: int) -> None:
    """A film of 64 MiB in base64 is taken; what is over 128 MiB is told so in the provider's words, and read."""
    async with (
        running_simulator(dialect="openrouter") as simulator,
        httpx2.AsyncClient(verify=False, timeout=60) as client,
    ):
        address = f"http://127.0.0.1:{simulator.port}/api/v1/videos"
        reply = await client.post(
            address, content=film_of(mebibytes * 2**20), headers={"content-type": "application/json"}
        )
        ledger = simulator.ledger()
        assert (reply.status_code, ledger["creates"]["accepted"]) == (status, made)
        assert ledger["requests"][-1]["size_bytes"] > mebibytes * 2**20
        assert made or reply.json()["error"] == {"code": 413, "message": "The request is too large."}


async def test_drop_before_makes_no_job() -> None:
    """The connection ends without a reply and nothing was made."""
    async with talking() as (client, simulator):
        simulator.arm("create-drop")
        with pytest.raises(httpx2.RemoteProtocolError):
            await create(client)
        assert simulator.ledger()["creates"] == {"received": 1, "accepted": 0, "answered": 0, "refused": 0, "lost": 1}


async def test_drop_after_makes_the_job() -> None:
    """The connection ends without a reply, and the job is in the list."""
    async with talking() as (client, simulator):
        simulator.arm("create-drop-after")
        with pytest.raises(httpx2.RemoteProtocolError):
            await create(client)
        assert len((await client.get("/videos")).json()["data"]) == 1


@pytest.mark.parametrize(("effect", "made"), [("error=503", 0), ("error-after=503", 1)])
async def test_an_error_before_or_after(effect: str, made: int) -> None:
    """A 5xx does not tell whether the job was made; the ledger does."""
    async with talking() as (client, simulator):
        simulator.arm(f"create-{effect}")
        assert (await client.post("/videos", json={"prompt": "a"})).status_code == 503
        assert simulator.ledger()["creates"]["accepted"] == made


@pytest.mark.parametrize(
    ("fault", "status"),
    [("auth", 401), ("balance", 429), ("busy", 429), ("moderation", 400), ("redirect", 307), ("rate=7", 429)],
)
async def test_a_refusal_in_place_of_the_answer(fault: str, status: int) -> None:
    """Each refusal has its status, and nothing is made."""
    async with talking() as (client, simulator):
        simulator.arm(f"create-{fault}")
        reply = await client.post("/videos", json={"prompt": "a"})
        assert reply.status_code == status
        assert reply.headers.get("retry-after") == ("7" if fault == "rate=7" else None)
        assert simulator.ledger()["creates"]["accepted"] == 0


async def test_spoiled_replies() -> None:
    """HTML, half a JSON, other types, another word, no id: each is what it says."""
    async with talking() as (client, simulator):
        job = await create(client)
        path = f"/videos/{job['id']}"
        simulator.arm("poll-html", "poll-truncated", "poll-types", "poll-word=dreaming", "poll-no-id")
        assert (await client.get(path)).text.startswith("<!doctype html>")
        with pytest.raises(ValueError):
            (await client.get(path)).json()
        assert isinstance((await client.get(path)).json()["status"], list)
        assert (await client.get(path)).json()["status"] == "dreaming"
        assert "id" not in (await client.get(path)).json()


async def test_the_rate_is_told_as_a_date_where_wished() -> None:
    """Retry-After can be an HTTP-date."""
    async with talking(rate=1, retry_after="date") as (client, _):
        await client.get("/videos")
        reply = await client.get("/videos")
        assert reply.status_code == 429
        wait = (parsedate_to_datetime(reply.headers["retry-after"]) - datetime.now(UTC)).total_seconds()
        assert 50 < wait <= 61


async def test_a_part_of_the_file_can_be_asked_for() -> None:
    """Range answers 206 with that part, under the same strong ETag."""
    async with talking() as (client, simulator):
        path = f"/videos/{await done(client, simulator)}/content"
        whole = await client.get(path)
        part = await client.get(path, headers={"Range": "bytes=100-", "If-Range": whole.headers["etag"]})
        assert (part.status_code, part.content) == (206, whole.content[100:])
        changed = await client.get(path, headers={"Range": "bytes=100-", "If-Range": '"other"'})
        assert (changed.status_code, changed.content) == (200, whole.content)


@pytest.mark.parametrize("effect", ["cut", "cut-chunked"])
async def test_a_file_breaks_off(effect: str) -> None:
    """The connection ends in the middle of the file, with or without a Content-Length."""
    async with talking(clip_bytes=200_000) as (client, simulator):
        path = f"/videos/{await done(client, simulator)}/content"
        simulator.arm(f"content-{effect}")
        came = bytearray()
        with pytest.raises(httpx2.RemoteProtocolError):
            await fetch_into(came, client, path)
        assert len(came) == 100_000


async def test_a_short_file_looks_whole() -> None:
    """Half the file comes with a Content-Length that fits it."""
    async with talking() as (client, simulator):
        path = f"/videos/{await done(client, simulator)}/content"
        whole = len((await client.get(path)).content)
        simulator.arm("content-short", "content-empty", "content-gone", "content-changed")
        assert len((await client.get(path)).content) == whole // 2
        assert (await client.get(path)).content == b""
        assert (await client.get(path)).status_code == 410
        assert (await client.get(path)).status_code == 200


async def test_a_signed_address_dies_and_is_renewed() -> None:
    """SGLang's cloud storage: the address needs no key, expires, and asking again gives a fresh one."""
    clock = FakeClock()
    async with talking(dialect="sglang", url_seconds=60, clock=clock) as (client, simulator):
        job_id = await done(client, simulator)
        first = (await client.get(f"/videos/{job_id}")).json()["url"]
        assert (await client.get(first)).status_code == 200
        await clock.advance(61)
        assert (await client.get(first)).status_code == 403
        fresh = (await client.get(f"/videos/{job_id}")).json()["url"]
        assert (await client.get(fresh)).status_code == 200
        assert (await client.get(f"/videos/{job_id}/content")).status_code == 400


async def test_sglang_gives_several_outputs() -> None:
    """`variant` is the output's number there; the word `video` is none."""
    async with talking(dialect="sglang") as (client, simulator):
        path = f"/videos/{await done(client, simulator, num_outputs_per_prompt=2)}/content"
        replies = [await client.get(path, params={"variant": variant}) for variant in ("0", "1", "2", "video")]
        assert [reply.status_code for reply in replies] == [200, 200, 404, 404]
        assert replies[0].content != replies[1].content


async def test_sglang_forgets_without_stopping() -> None:
    """DELETE answers with the job as deleted, and the work goes on."""
    async with talking(dialect="sglang", run_seconds=60) as (client, simulator):
        job = await create(client)
        assert (await client.delete(f"/videos/{job['id']}")).json()["status"] == "deleted"
        assert (await client.get(f"/videos/{job['id']}")).status_code == 404
        assert simulator.engine.unended(None) == 1


async def test_vllm_omni_aborts_on_delete() -> None:
    """DELETE ends a running job there."""
    async with talking(dialect="vllm-omni", run_seconds=60) as (client, simulator):
        job = await create(client)
        assert (await client.delete(f"/videos/{job['id']}")).json()["object"] == "video.deleted"
        assert simulator.ledger()["jobs"][0]["state"] == "stopped"


async def test_it_is_scripted_over_http() -> None:
    """A test in another process sets options, arms faults, and reads the ledger."""
    async with talking(run_seconds=60) as (client, _):
        root = str(client.base_url).removesuffix("/v1/")
        told = await client.post(f"{root}/_control", json={"window": 1, "faults": ["poll-drop"]})
        assert told.json() == {"armed": ["poll-drop:1"]}
        job = await create(client)
        assert (await client.post("/videos", json={"prompt": "b"})).status_code == 429
        await client.post(f"{root}/_control", json={"finish": True, "clearFaults": True})
        assert (await client.get(f"/videos/{job['id']}")).json()["status"] == "completed"
        assert (await client.post(f"{root}/_control", json={"window": "x"})).status_code == 422
        await client.post(f"{root}/_restart", json={})
        assert (await client.get(f"/videos/{job['id']}")).status_code == 404
        assert (await client.get(f"{root}/_ledger")).json()["creates"]["accepted"] == 1


async def test_a_restart_may_take_a_while() -> None:
    """While it is down, every connection ends without a reply."""
    clock = FakeClock()
    async with talking(clock=clock) as (client, simulator):
        simulator.restart(down=60)
        with pytest.raises(httpx2.RemoteProtocolError):
            await client.get("/videos")
        await clock.advance(61)
        assert (await client.get("/videos")).status_code == 200


async def test_no_key_is_in_the_ledger() -> None:
    """The ledger names keys by a hash."""
    async with talking() as (client, simulator):
        await client.get("/videos", headers={"Authorization": "Bearer sk-canary"})
        assert "sk-canary" not in str(simulator.ledger())
        assert simulator.ledger()["requests"][0]["key"]

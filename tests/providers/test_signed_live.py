"""
Signed calls over a real connection: what the signature says of host, type and body is what is sent.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest

from vidrelay.clock import SystemClock
from vidrelay.core.adapter import Adapter, Checked, Conversation, Refused, Search
from vidrelay.core.lifecycle import Accepted, Found, StillRunning
from vidrelay.core.messages import HttpReply
from vidrelay.core.task import Asset, Reference, Request
from vidrelay.providers.json_api import AdapterSettings
from vidrelay.providers.registry import make_adapter
from vidrelay.testing.records import make_task
from vidrelay.testing.simulator import running_simulator
from vidrelay.transport.gate import Gate
from vidrelay.transport.http import HttpTransport

T = TypeVar("T")

KEY = "access-canary:secret-canary-of-32-characters-and-more"
PICTURE = Asset(id="sha256:" + "ab" * 32, pixels="px", width=640, height=480, size_bytes=1, media_type="image/png")
PROVIDERS = [("kling", None), ("jimeng", None), ("tencent", "hunyuan"), ("tencent", "kling")]


async def held(transport: HttpTransport, conversation: Conversation[T]) -> T:
    """Send each request through the transport that the relay itself uses."""
    try:
        request = next(conversation)
        while True:
            async with transport.send(request, timeout=10) as answer:
                whole = HttpReply(status=answer.status, headers=answer.headers, body=await answer.read())
            request = conversation.send(whole)
    except StopIteration as ended:
        outcome: T = ended.value
        return outcome


def adapter_of(name: str, dialect: str | None, port: int, key: str = KEY) -> Adapter:
    """The provider's adapter, at the pretend provider."""
    base = f"http://127.0.0.1:{port}"
    return make_adapter(name, AdapterSettings(now=SystemClock().now, key=key, base_url=base, dialect=dialect))


@pytest.mark.parametrize(("name", "dialect"), PROVIDERS)
async def test_a_signed_job_with_a_large_picture(name: str, dialect: str | None, tmp_path: Path) -> None:
    """A picture of 3 MB is read from its file for the signature and again for the body; a wrong secret is refused."""
    file = tmp_path / "picture"
    file.write_bytes(bytes(range(256)) * 12_000)
    async with running_simulator(dialect=name, key=KEY, run_seconds=100.0) as simulator:
        gate = Gate(base_url=f"http://127.0.0.1:{simulator.port}")
        transport = HttpTransport(gate, asset_path=lambda _: file, user_agent="vidrelay/test")
        try:
            adapter = adapter_of(name, dialect, simulator.port)
            request = Request(prompt="ein Boot, 一只船", references=(Reference(asset=PICTURE.id),))
            task = make_task(
                parameters=adapter.prepare(request, {PICTURE.id: PICTURE}).parameters,
                submission_key="5f0c1c1e-7d3a-4d0e-9b1a-0123456789ab",
            )
            wrong: Any = await held(transport, adapter_of(name, dialect, simulator.port, f"{KEY}x").submit(task))
            assert isinstance(wrong, Refused)
            made: Any = await held(transport, adapter.submit(task))
            assert isinstance(made, Accepted), made
            assert isinstance(
                await held(transport, adapter.poll(replace(task, remote_id=made.remote_id))), StillRunning
            )
            assert isinstance(await held(transport, adapter.check()), Checked)
            now = SystemClock().now()
            search = Search(sent_at=now, lost_at=now, elapsed=0.0, lost_ago=0.0, owned=frozenset())
            found = await held(transport, adapter.find(task, search))
            assert isinstance(found, Found) == (adapter.traits.dedupe == "client_id")
        finally:
            await transport.aclose()
        assert [job.pictures for job in simulator.engine.jobs.values()] == [1]
        assert next(iter(simulator.engine.jobs.values())).fields["prompt"] == "ein Boot, 一只船"

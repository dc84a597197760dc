"""
The ComfyUI adapter over a real transport: against the pretend server, or against the real one whose address
VIDRELAY_COMFYUI holds (docs/howto/use-comfyui.md says how to run one without a graphics card).
"""

import asyncio
import os
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from PIL import Image

from vidrelay.clock import SystemClock
from vidrelay.core.adapter import Checked, Copied, Search
from vidrelay.core.lifecycle import Accepted, Cancelled, Found, Ready, StillRunning
from vidrelay.core.messages import HttpReply
from vidrelay.core.task import Asset, CancelOutcome, Reference, Request, Task
from vidrelay.providers.comfyui.adapter import ComfyUiAdapter, make
from vidrelay.providers.json_api import AdapterSettings
from vidrelay.testing.records import make_task
from vidrelay.testing.simulator import running_simulator
from vidrelay.transport.gate import Gate
from vidrelay.transport.http import HttpTransport

SAVE = {"class_type": "SaveVideo", "inputs": {"video": ["2", 0], "filename_prefix": "relay/live"}}
SAVE["inputs"] |= {"format": "auto", "codec": "auto"}
FILM = {"class_type": "CreateVideo", "inputs": {"images": ["1", 0], "fps": 8}}
EMPTY = {"width": "{width=64}", "height": "{height=48}", "batch_size": "{frames@8=8}", "color": "{seed}"}
GRAPH = {"1": {"class_type": "EmptyImage", "inputs": EMPTY}, "2": FILM, "3": SAVE}
PICTURED = {"1": {"class_type": "LoadImage", "inputs": {"image": "{first_frame}"}}, "2": FILM, "3": SAVE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """
    The adapter and a way to its server.
    """

    adapter: ComfyUiAdapter
    transport: HttpTransport

    async def run(self, conversation: Any) -> Any:
        """
        Hold the conversation to its end.
        """
        try:
            request = next(conversation)
            while True:
                async with self.transport.send(request, timeout=30) as reply:
                    whole = HttpReply(status=reply.status, headers=reply.headers, body=await reply.read())
                request = conversation.send(whole)
        except StopIteration as ended:
            return ended.value

    def task(self, assets: dict[str, Asset] | None = None, **fields: Any) -> Task:
        """
        A task of that request.
        """
        request, now = Request(prompt="a boat", **fields), SystemClock().now()
        parameters = self.adapter.prepare(request, assets or {}).parameters
        key = str(uuid.uuid4())
        return make_task(request=request, parameters=parameters, created_at=now, updated_at=now, submission_key=key)

    async def accepted(self, task: Task) -> Task:
        """
        The task with the id that the server gave it.
        """
        outcome = await self.run(self.adapter.submit(task))
        assert isinstance(outcome, Accepted), outcome
        return replace(task, remote_id=outcome.remote_id)

    async def ready(self, task: Task) -> Ready:
        """
        What the task ends with.
        """
        for _ in range(1500):
            seen = await self.run(self.adapter.poll(task))
            if not isinstance(seen, StillRunning):
                assert isinstance(seen, Ready), seen
                return seen
            await asyncio.sleep(0.02)
        raise AssertionError("it is never ready")

    async def film(self, task: Task, ready: Ready) -> bytes:
        """
        The bytes of its first file.
        """
        async with self.transport.send(self.adapter.download(task, ready.outputs[0]), timeout=30) as reply:
            return b"".join([chunk async for chunk in reply.chunks()])


@asynccontextmanager
async def talk(folder: Path) -> AsyncIterator[Talk]:
    """
    Speak to the real server where there is one, else to the pretend one.
    """
    async with running_simulator(dialect="comfyui", run_seconds=0.2) as simulator:
        base = os.environ.get("VIDRELAY_COMFYUI") or f"http://127.0.0.1:{simulator.port}"
        transport = HttpTransport(
            Gate(base_url=base, private_network=True),
            asset_path=lambda asset: folder / asset.removeprefix("sha256:"),
            user_agent="vidrelay/test",
        )
        try:
            yield Talk(adapter=make(AdapterSettings(now=SystemClock().now, base_url=base)), transport=transport)
        finally:
            await transport.aclose()


async def test_a_clip_is_made_of_a_graph(tmp_path: Path) -> None:
    """From the graph to the film, and the server says how much it has to do."""
    async with talk(tmp_path) as it:
        assert isinstance(await it.run(it.adapter.check()), Checked)
        task = await it.accepted(it.task(duration=1, seed=7, extra={"graph": GRAPH}))
        ready = await it.ready(task)
        assert ready.times.started_at is not None
        assert (await it.film(task, ready))[4:8] == b"ftyp"


async def test_the_same_graph_twice_makes_two_files(tmp_path: Path) -> None:
    """Where the server by itself would point at the first one."""
    async with talk(tmp_path) as it:
        tasks = [await it.accepted(it.task(seed=7, extra={"graph": GRAPH})) for _ in range(2)]
        first, second = [await it.ready(task) for task in tasks]
        assert first.outputs != second.outputs


async def test_a_picture_is_uploaded_and_used(tmp_path: Path) -> None:
    """Under a name of its content, and by the name that the server answers with."""
    digest = "ab" * 32
    Image.new("RGB", (64, 48), (0, 0, 255)).save(tmp_path / digest, "PNG")
    asset = Asset(
        id=f"sha256:{digest}",
        pixels="p",
        width=64,
        height=48,
        size_bytes=(tmp_path / digest).stat().st_size,
        media_type="image/png",
    )
    async with talk(tmp_path) as it:
        reference = Reference(asset=asset.id, role="first_frame")
        task = it.task({asset.id: asset}, references=(reference,), extra={"graph": PICTURED})
        for _ in range(2):
            copied = await it.run(it.adapter.upload({"$asset": asset.id, "mediaType": "image/png"}))
            assert isinstance(copied, Copied)
        graph = deepcopy(dict(task.parameters["graph"]))
        for node in graph.values():
            if isinstance(picture := node["inputs"].get("image"), dict):
                picture["$copy"] = copied.reference
        task = await it.accepted(replace(task, parameters={**task.parameters, "graph": graph}))
        assert (await it.film(task, await it.ready(task)))[4:8] == b"ftyp"


async def test_a_job_is_found_by_our_own_id_and_stopped_while_it_waits(tmp_path: Path) -> None:
    """Whether its create was answered or not."""
    async with talk(tmp_path) as it:
        first = await it.accepted(it.task(duration=40, seed=8, extra={"graph": GRAPH}))
        waiting = it.task(duration=40, seed=9, extra={"graph": GRAPH})
        await it.accepted(waiting)
        now = SystemClock().now()
        search = Search(sent_at=now - timedelta(seconds=1), lost_at=now, elapsed=0.0, lost_ago=0.0, owned=frozenset())
        found = await it.run(it.adapter.find(waiting, search))
        assert isinstance(found, Found)
        outcome = await it.run(it.adapter.cancel(replace(waiting, remote_id=found.remote_id)))
        assert outcome == Cancelled(outcome=CancelOutcome.STOPPED)
        await it.ready(first)

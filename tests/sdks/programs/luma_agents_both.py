"""
The official `luma-agents` SDK, blocking and asynchronous: what the program saw is printed as one JSON object.
"""

import asyncio
import json
import sys
import time
import urllib.request
from typing import Any

import luma_agents

BASE = sys.argv[1]


def blocking() -> dict[str, Any]:
    """
    Make a clip with a first frame, fetch it; a job that fails, an unknown one, a key that is refused.
    """
    seen: dict[str, Any] = {}
    with luma_agents.Luma(base_url=BASE, auth_token="right", max_retries=0) as client:
        made = client.generations.create(
            prompt="a paper boat",
            model="ray-3.2",
            type="video",
            aspect_ratio="16:9",
            video={"duration": "5s", "start_frame": {"data": "aGVsbG8=", "media_type": "image/png"}},
        )
        seen["created"] = {"state": made.state, "model": made.model, "output": made.output}
        while made.state in ("queued", "processing"):
            time.sleep(0.05)
            made = client.generations.get(made.id)
        seen["ended"] = [made.state, made.output[0].type]
        with urllib.request.urlopen(made.output[0].url) as clip:
            seen["is_mp4"] = clip.read()[4:8] == b"ftyp"
        failed = client.generations.create(prompt="a [moderated] boat", type="video")
        while failed.state in ("queued", "processing"):
            time.sleep(0.05)
            failed = client.generations.get(failed.id)
        seen["failed"] = [failed.state, failed.failure_code]
        seen["files"] = client.files.list(limit=1).data
        try:
            client.generations.get("gen_unknown")
        except luma_agents.NotFoundError as error:
            seen["gone"] = error.status_code
    with luma_agents.Luma(base_url=BASE, auth_token="wrong", max_retries=0) as client:
        try:
            client.generations.create(prompt="a", type="video")
        except luma_agents.AuthenticationError as error:
            seen["refused"] = error.status_code
    return seen


async def at_once() -> list[str]:
    """
    Make three clips at once.
    """
    async with luma_agents.AsyncLuma(base_url=BASE, auth_token="right", max_retries=0) as client:

        async def one(number: int) -> str:
            made = await client.generations.create(prompt=f"boat {number}", type="video")
            while made.state in ("queued", "processing"):
                await asyncio.sleep(0.05)
                made = await client.generations.get(made.id)
            return str(made.state)

        return list(await asyncio.gather(*map(one, range(3))))


print(json.dumps({**blocking(), "at_once": asyncio.run(at_once())}))

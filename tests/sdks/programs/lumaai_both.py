"""
The official `lumaai` SDK, blocking and asynchronous: what the program saw is printed as one JSON object.
"""

import asyncio
import json
import sys
import time
import urllib.request
from typing import Any

import lumaai

BASE = sys.argv[1]
ASKED: dict[str, Any] = {"model": "ray-2", "prompt": "a paper boat", "duration": "5s", "resolution": "720p"}


def blocking() -> dict[str, Any]:
    """
    Make a clip, fetch it, list, ask for credits, delete; a job that fails, and a key that is refused.
    """
    seen: dict[str, Any] = {}
    with lumaai.LumaAI(base_url=BASE, auth_token="right", max_retries=0) as client:
        made = client.generations.video.create(**ASKED, aspect_ratio="16:9")
        seen["created"] = {"state": made.state, "model": made.model, "prompt": made.request.prompt}
        while made.state in ("queued", "dreaming"):
            time.sleep(0.05)
            made = client.generations.get(made.id)
        seen["ended"] = made.state
        with urllib.request.urlopen(made.assets.video) as clip:
            seen["is_mp4"] = clip.read()[4:8] == b"ftyp"
        listed = client.generations.list(limit=10, offset=0)
        seen["listed"] = [listed.count, listed.has_more, listed.generations[0].id == made.id]
        seen["credits"] = client.credits.get().credit_balance
        seen["ping"] = client.ping.check().message
        failed = client.generations.video.create(**{**ASKED, "prompt": "a [moderated] boat"})
        while failed.state in ("queued", "dreaming"):
            time.sleep(0.05)
            failed = client.generations.get(failed.id)
        seen["failed"] = [failed.state, failed.failure_reason]
        client.generations.delete(made.id)
        try:
            client.generations.get(made.id)
        except lumaai.NotFoundError as error:
            seen["gone"] = error.status_code
    with lumaai.LumaAI(base_url=BASE, auth_token="wrong", max_retries=0) as client:
        try:
            client.generations.video.create(**ASKED)
        except lumaai.PermissionDeniedError as error:
            seen["refused"] = error.status_code
    return seen


async def at_once() -> list[str]:
    """
    Make three clips at once.
    """
    async with lumaai.AsyncLumaAI(base_url=BASE, auth_token="right", max_retries=0) as client:

        async def one(number: int) -> str:
            made = await client.generations.video.create(**{**ASKED, "prompt": f"boat {number}"})
            while made.state in ("queued", "dreaming"):
                await asyncio.sleep(0.05)
                made = await client.generations.get(made.id)
            return str(made.state)

        return list(await asyncio.gather(*map(one, range(3))))


print(json.dumps({**blocking(), "at_once": asyncio.run(at_once())}))

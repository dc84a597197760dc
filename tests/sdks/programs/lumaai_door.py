"""
The official `lumaai` SDK through a relay's door: what the program saw is printed as one JSON object.
"""

import asyncio
import json
import os
import sys
import time
import urllib.request
from typing import Any

import lumaai

BASE, KEY = sys.argv[1], os.environ.get("SDK_KEY", "right")
ASKED: dict[str, Any] = {"model": "ray-2", "prompt": "a paper boat", "duration": "5s", "resolution": "720p"}


def blocking() -> dict[str, Any]:
    """
    Make a clip, fetch it, go on from it, list, delete; a job that fails, and bad calls.
    """
    seen: dict[str, Any] = {"reads": 0}
    client = lumaai.LumaAI(base_url=BASE, auth_token=KEY)

    def until_ended(made: Any) -> Any:
        while made.state in ("queued", "dreaming"):
            time.sleep(0.05)
            seen["reads"] += 1
            made = client.generations.get(made.id)
        return made

    made = client.generations.video.create(**ASKED, aspect_ratio="16:9")
    seen["created"] = {"state": made.state, "model": made.model, "prompt": made.request.prompt}
    made = until_ended(made)
    seen["ended"] = [made.state, made.created_at.tzinfo is not None]
    with urllib.request.urlopen(made.assets.video) as clip:
        seen["is_mp4"] = clip.read()[4:8] == b"ftyp"
    image = {"frame0": {"type": "image", "url": "https://pictures.example/a.png"}}
    seen["with_picture"] = until_ended(client.generations.video.create(**ASKED, keyframes=image)).state
    further = {"frame0": {"type": "generation", "id": made.id}}
    seen["further"] = until_ended(client.generations.video.create(**ASKED, keyframes=further)).state
    forced = client.generations.video.create(**ASKED, aspect_ratio="16:9", extra_body={"vidrelay_force": True})
    seen["forced"] = forced.id != made.id
    until_ended(forced)
    listed = client.generations.list(limit=10, offset=0)
    seen["listed"] = [listed.count, listed.has_more, listed.generations[-1].id == made.id]
    seen["ping"] = client.ping.check().message
    failed = until_ended(client.generations.video.create(**{**ASKED, "prompt": "a [moderated] boat"}))
    seen["failed"] = [failed.state, failed.failure_reason]
    client.generations.delete(made.id)
    for name, call in {
        "gone": lambda: client.generations.get(made.id),
        "unknown": lambda: client.generations.get("d1968551"),
        "balance": client.credits.get,
        "bad_key": lambda: lumaai.LumaAI(base_url=BASE, auth_token="bad").generations.video.create(**ASKED),
    }.items():
        try:
            call()
        except lumaai.APIStatusError as error:
            seen[name] = [error.status_code, type(error).__name__]
    seen["left"] = client.generations.list(limit=10).count
    return seen


async def at_once() -> dict[str, Any]:
    """
    Ask for the same clip three times at once.
    """
    async with lumaai.AsyncLumaAI(base_url=BASE, auth_token=KEY) as client:

        async def one() -> tuple[str, str]:
            made = await client.generations.video.create(**{**ASKED, "prompt": "a kite"})
            while made.state in ("queued", "dreaming"):
                await asyncio.sleep(0.05)
                made = await client.generations.get(made.id)
            return made.id, str(made.state)

        ended = await asyncio.gather(one(), one(), one())
    return {"at_once": [state for _, state in ended], "tasks": len({task_id for task_id, _ in ended})}


print(json.dumps({**blocking(), **asyncio.run(at_once())}))

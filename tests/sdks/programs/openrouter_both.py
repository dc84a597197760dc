"""
The official `openrouter` SDK, blocking and asynchronous: what the program saw is printed as one JSON object.
"""

import asyncio
import json
import sys
import time
from typing import Any

import openrouter
from openrouter import errors

BASE = sys.argv[1]
MODEL = "google/veo-3.1"


def blocking() -> dict[str, Any]:
    """
    Make a clip with a first frame, fetch it; a job that fails, an unknown one, a key that is refused.
    """
    seen: dict[str, Any] = {}
    with openrouter.OpenRouter(api_key="right", server_url=BASE) as client:
        frame = {
            "type": "image_url",
            "image_url": {"url": "data:image/png;base64,aGVsbG8="},
            "frame_type": "first_frame",
        }
        made = client.video_generation.generate(
            model=MODEL, prompt="a paper boat", duration=8, aspect_ratio="16:9", frame_images=[frame]
        )
        seen["created"] = [made.status, made.id.startswith("gen-vid-")]
        while made.status in ("pending", "in_progress"):
            time.sleep(0.05)
            made = client.video_generation.get_generation(job_id=made.id)
        seen["ended"] = [made.status, made.usage.cost, len(made.unsigned_urls)]
        clip = client.video_generation.get_video_content(job_id=made.id, index=0)
        seen["is_mp4"] = clip.read()[4:8] == b"ftyp"
        failed = client.video_generation.generate(model=MODEL, prompt="a [moderated] boat")
        while failed.status in ("pending", "in_progress"):
            time.sleep(0.05)
            failed = client.video_generation.get_generation(job_id=failed.id)
        seen["failed"] = [failed.status, failed.error]
        try:
            client.video_generation.get_generation(job_id="gen-vid-1-unknown")
        except errors.NotFoundResponseError as error:
            seen["gone"] = error.data.error.code
    with openrouter.OpenRouter(api_key="wrong", server_url=BASE) as client:
        try:
            client.video_generation.generate(model=MODEL, prompt="a")
        except errors.UnauthorizedResponseError as error:
            seen["refused"] = error.data.error.code
    return seen


async def at_once() -> list[str]:
    """
    Make three clips at once.
    """
    async with openrouter.OpenRouter(api_key="right", server_url=BASE) as client:

        async def one(number: int) -> str:
            made = await client.video_generation.generate_async(model=MODEL, prompt=f"boat {number}")
            while made.status in ("pending", "in_progress"):
                await asyncio.sleep(0.05)
                made = await client.video_generation.get_generation_async(job_id=made.id)
            return str(made.status)

        return list(await asyncio.gather(*map(one, range(3))))


print(json.dumps({**blocking(), "at_once": asyncio.run(at_once())}))

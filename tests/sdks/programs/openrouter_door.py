"""
The official `openrouter` SDK through a relay's door: what the program saw is printed as one JSON object.
"""

import asyncio
import json
import os
import sys
import time
import urllib.request
from typing import Any

import openrouter
from openrouter import errors

BASE, KEY = sys.argv[1], os.environ.get("SDK_KEY", "right")
MODEL = "google/veo-3.1"
BASE64 = (
    "iVBORw0KGgoAAAANSUhEUgAAAEAAAAAwCAIAAAAuKetIAAAATklEQVR42u3PwQkAIAwAserTd+d1FofogE5RQcgNcJCReaKzWrv1"
    "P+PzAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAN51AWezAmSwdh2OAAAAAElFTkSuQmCC"
)
FRAME: dict[str, Any] = {
    "type": "image_url",
    "image_url": {"url": f"data:image/png;base64,{BASE64}"},
    "frame_type": "first_frame",
}


def blocking() -> dict[str, Any]:
    """
    Make clips from a text and from a picture, fetch one by its number and by its address; go on from it; bad calls.
    """
    seen: dict[str, Any] = {"reads": 0}
    client = openrouter.OpenRouter(api_key=KEY, server_url=BASE)
    videos = client.video_generation

    def until_ended(made: Any) -> Any:
        while made.status in ("pending", "in_progress"):
            time.sleep(0.05)
            seen["reads"] += 1
            made = videos.get_generation(job_id=made.id)
        return made

    asked: dict[str, Any] = {"model": MODEL, "prompt": "a paper boat", "duration": 8, "aspect_ratio": "16:9"}
    made = videos.generate(**asked)
    seen["created"] = [made.status, made.polling_url.endswith(f"/api/v1/videos/{made.id}")]
    made = until_ended(made)
    seen["ended"] = [made.status, len(made.unsigned_urls), made.usage.cost]
    seen["is_mp4"] = videos.get_video_content(job_id=made.id, index=0).read()[4:8] == b"ftyp"
    with urllib.request.urlopen(made.urls[0]) as clip:
        seen["by_address"] = clip.read()[4:8] == b"ftyp"
    first = videos.generate(**asked, frame_images=[FRAME])
    further = videos.generate(**asked, previous_job_id=made.id)
    failed = videos.generate(model=MODEL, prompt="a [moderated] boat")
    seen["again"] = videos.generate(**asked).id == made.id
    forced = videos.generate(**asked, http_headers={"X-Vidrelay-Force": "1"})
    seen["forced"] = forced.id != made.id
    seen["more"] = [until_ended(one).status for one in (first, further, forced)]
    failed = until_ended(failed)
    seen["failed"] = [failed.status, failed.error]
    endless = videos.generate(model=MODEL, prompt="a [forever] boat")
    try:
        videos.get_video_content(job_id=endless.id)
    except errors.ConflictResponseError as error:
        seen["not_done"] = error.data.error.code
    try:
        videos.get_generation(job_id="gen-vid-1-unknown")
    except errors.NotFoundResponseError as error:
        seen["unknown"] = error.data.error.code
    seen["models"] = [model.id for model in videos.list_videos_models().data]
    try:
        openrouter.OpenRouter(api_key="bad", server_url=BASE).video_generation.generate(model=MODEL, prompt="a")
    except errors.OpenRouterError as error:
        seen["bad_key"] = error.status_code
    return seen


async def at_once() -> dict[str, Any]:
    """
    Ask for the same clip three times at once.
    """
    async with openrouter.OpenRouter(api_key=KEY, server_url=BASE) as client:

        async def one() -> tuple[str, str]:
            made = await client.video_generation.generate_async(model=MODEL, prompt="a kite")
            while made.status in ("pending", "in_progress"):
                await asyncio.sleep(0.05)
                made = await client.video_generation.get_generation_async(job_id=made.id)
            return made.id, str(made.status)

        ended = await asyncio.gather(one(), one(), one())
    return {"at_once": [status for _, status in ended], "tasks": len({task_id for task_id, _ in ended})}


print(json.dumps({**blocking(), **asyncio.run(at_once())}))

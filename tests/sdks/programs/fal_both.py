"""
The official `fal-client` SDK, blocking and asynchronous: what the program saw is printed as one JSON object.

It has no base address to set, only host names with https before them: so the module's own constants are replaced.
"""

import asyncio
import json
import sys
import urllib.request
from typing import Any

import fal_client
import fal_client.client

BASE = sys.argv[1]
MODEL = "fal-ai/kling-video/v2/master/text-to-video"

fal_client.client.QUEUE_URL_FORMAT = f"{BASE}/"
fal_client.client.REST_URL = BASE
fal_client.client.CDN_URL = BASE


def blocking() -> dict[str, Any]:
    """
    Make a clip, with its place in the queue; one with a picture; a failed, a refused and a cancelled one; a bad key.
    """
    seen: dict[str, Any] = {}
    client = fal_client.SyncClient(key="right")
    made = client.submit(MODEL, {"prompt": "a paper boat", "duration": 5})
    first = made.status()
    seen["queued"] = [type(first).__name__, first.position]
    seen["words"] = sorted({type(one).__name__ for one in made.iter_events(interval=0.05)})
    video = made.get(interval=0.05)["video"]
    with urllib.request.urlopen(video["url"]) as clip:
        seen["is_mp4"] = clip.read()[4:8] == b"ftyp"
    again = client.status(MODEL, made.request_id, with_logs=True)
    seen["again"] = [again.error, again.metrics["inference_time"] > 0]
    seen["by_id"] = client.result(MODEL, made.request_id)["video"]["content_type"]
    picture = client.upload(b"\x89PNG\r\n\x1a\n", "image/png", "a.png")
    other = client.subscribe(MODEL, {"prompt": "a kite", "image_url": picture})
    seen["with_picture"] = [picture.startswith(f"{BASE}/media/"), other["video"]["content_type"]]
    refused = client.submit(MODEL, {"prompt": "a [moderated] boat"})
    failed = client.submit(MODEL, {"prompt": "a [fail=startup_timeout] boat"})
    for name, handle in (("moderated", refused), ("failed", failed)):
        try:
            handle.get(interval=0.05)
        except fal_client.client.FalClientHTTPError as error:
            seen[name] = [error.status_code, error.error_type, handle.status().error_type]
    waiting = client.submit(MODEL, {"prompt": "a [queue=60] boat"})
    waiting.cancel()
    seen["cancelled"] = waiting.status().error_type
    for name, call in {
        "too_late": made.cancel,
        "gone": lambda: client.status(MODEL, "nobody"),
        "wrong": lambda: client.submit(MODEL, {}),
        "bad_key": lambda: fal_client.SyncClient(key="bad").submit(MODEL, {"prompt": "a boat"}),
    }.items():
        try:
            call()
        except fal_client.client.FalClientHTTPError as error:
            seen[name] = error.status_code
    return seen


async def at_once() -> list[str]:
    """
    Make three clips at once.
    """
    client = fal_client.AsyncClient(key="right")

    async def one(number: int) -> str:
        handle = await client.submit(MODEL, {"prompt": f"boat {number}"})
        made = await handle.get(interval=0.05)
        return str(made["video"]["file_name"])

    return list(await asyncio.gather(*map(one, range(3))))


print(json.dumps({**blocking(), "at_once": asyncio.run(at_once())}))

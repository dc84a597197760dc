"""
The official `fal-client` SDK against a relay's door: what the program saw is printed as one JSON object.

It has no base address to set, only host names with https before them: so the module's own constants are replaced.
"""

import asyncio
import json
import os
import sys
import urllib.request
from typing import Any

import fal_client
import fal_client.client

BASE, KEY = sys.argv[1], os.environ["SDK_KEY"]
MODEL = "fal-ai/kling-video/v2/master/text-to-video"

fal_client.client.QUEUE_URL_FORMAT = f"{BASE}/"
fal_client.client.RUN_URL_FORMAT = f"{BASE}/run/"
fal_client.client.REST_URL = BASE
fal_client.client.CDN_URL = BASE

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000040000000400802000000250be6890000007a49444154789cedcf5109002014"
    "c0c017cd6846339a21fc3884c102dc66edf375c3050d6841035ad0801634a0050d6841035ad0801634a0050d6841035ad080"
    "1634a0050d6841035ad0801634a0050d6841035ad0801634a0050d6841035ad0801634a0050d6841035ad0801634a0050d68"
    "41035ad080163c76011ec60169fc92d3cb0000000049454e44ae426082"
)


def is_clip(result: dict[str, Any]) -> bool:
    """
    Whether a result's address, fetched without a key, is a whole clip of the size that is told.
    """
    with urllib.request.urlopen(result["video"]["url"]) as clip:
        data = clip.read()
    return bool(data[4:8] == b"ftyp" and len(data) == result["video"]["file_size"])


def blocking() -> dict[str, Any]:
    """
    Make a clip, with its place in the queue; run one; two with one picture; a failed, a refused and a cancelled one.
    """
    seen: dict[str, Any] = {}
    client = fal_client.SyncClient(key=KEY)
    made = client.submit(MODEL, {"prompt": "a paper boat", "duration": 5}, priority="low", start_timeout=90)
    seen["at_home"] = [one.startswith(f"{BASE}/fal-ai/kling-video/") for one in (made.status_url, made.response_url)]
    first = made.status()
    seen["queued"] = [type(first).__name__, first.position]
    seen["words"] = sorted({type(one).__name__ for one in made.iter_events(interval=0.02)})
    seen["made"] = is_clip(made.get(interval=0.02))
    again = client.status(MODEL, made.request_id, with_logs=True)
    seen["again"] = [again.error, again.logs, again.metrics["inference_time"] > 0]
    seen["by_id"] = is_clip(client.result(MODEL, made.request_id))
    seen["ran"] = is_clip(client.run(MODEL, {"prompt": "a swan"}))
    picture = client.upload(PNG, "image/png", "a.png")
    other = client.submit(MODEL, {"prompt": "a kite", "image_url": picture})
    same = client.submit(MODEL, {"prompt": "a kite", "image_url": fal_client.encode(PNG, "image/png")})
    seen["with_picture"] = [
        picture.startswith(f"{BASE}/files/"),
        is_clip(other.get()),
        same.request_id == other.request_id,
    ]
    forced = client.submit(MODEL, {"prompt": "a paper boat", "duration": 5, "vidrelay_force": True})
    by_header = client.submit(MODEL, {"prompt": "a paper boat", "duration": 5}, headers={"X-Vidrelay-Force": "1"})
    seen["forced"] = len({made.request_id, forced.request_id, by_header.request_id})
    refused = client.submit(MODEL, {"prompt": "a [moderated] boat"})
    failed = client.submit(MODEL, {"prompt": "a [fail=startup_timeout] boat"})
    for name, handle in (("moderated", refused), ("failed", failed)):
        try:
            handle.get(interval=0.02)
        except fal_client.client.FalClientHTTPError as error:
            seen[name] = [error.status_code, error.error_type, handle.status().error_type]
    waiting = client.submit(MODEL, {"prompt": "a [queue=60] boat"})
    waiting.cancel()
    for status in waiting.iter_events(interval=0.05):
        seen["cancelled"] = getattr(status, "error_type", None)
    for name, call in {
        "too_late": made.cancel,
        "gone": lambda: client.status(MODEL, "nobody"),
        "streamed": lambda: list(client.stream(MODEL, {"prompt": "a boat"})),
        "bad_key": lambda: fal_client.SyncClient(key="bad").submit(MODEL, {"prompt": "a boat"}),
    }.items():
        try:
            seen[name] = call()
        except fal_client.client.FalClientHTTPError as error:
            seen[name] = error.status_code
        except Exception as error:
            seen[name] = type(error).__name__
    return seen


async def at_once() -> list[Any]:
    """
    Ask for one clip three times at once.
    """
    client = fal_client.AsyncClient(key=KEY)

    async def one() -> str:
        handle = await client.submit(MODEL, {"prompt": "a ferry"})
        made = await handle.get(interval=0.02)
        return str(made["video"]["url"])

    return [
        len(set(await asyncio.gather(one(), one(), one()))),
        len(await client.subscribe(MODEL, {"prompt": "a raft"})),
    ]


print(json.dumps({**blocking(), "at_once": asyncio.run(at_once())}))

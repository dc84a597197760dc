"""
The official `google-genai` SDK 3.x, blocking and asynchronous, making clips by interactions: what the program saw is
printed as one JSON object.
"""

import asyncio
import json
import sys
import time
import warnings
from typing import Any

warnings.simplefilter("ignore")

from google import genai
from google.genai import types

BASE = sys.argv[1]
ASKED: dict[str, Any] = {
    "model": "gemini-omni-1.2-flash",
    "background": True,
    "response_format": {"type": "video", "delivery": "uri", "duration": "3s", "aspect_ratio": "16:9"},
}
OPEN = ("queued", "in_progress")


def client_of(key: str) -> genai.Client:
    """
    A client of that key at the address that was given.
    """
    return genai.Client(api_key=key, http_options=types.HttpOptions(base_url=BASE))


def blocking() -> dict[str, Any]:
    """
    Make a clip with a first frame, fetch it; a job that fails, one that is cancelled, one that is deleted, a key that
    is refused.
    """
    seen: dict[str, Any] = {}
    client = client_of("right")
    shown = [{"type": "text", "text": "a paper boat"}, {"type": "image", "data": "aGVsbG8=", "mime_type": "image/png"}]
    task = {"video_config": {"task": "image_to_video"}}
    made = client.interactions.create(**ASKED, input=shown, labels={"a": "b"}, generation_config=task)
    seen["created"] = [made.status, made.id.startswith("v1_"), made.labels]
    while made.status in OPEN:
        time.sleep(0.05)
        made = client.interactions.get(made.id)
    content = made.steps[0].content[0]
    seen["ended"] = [made.status, made.steps[0].type, content.type, content.mime_type]
    seen["is_mp4"] = client.files.download(file=types.Video(uri=content.uri))[4:8] == b"ftyp"
    failed = client.interactions.create(**ASKED, input="a [fail] boat")
    while failed.status in OPEN:
        time.sleep(0.05)
        failed = client.interactions.get(failed.id)
    seen["failed"] = [failed.status, failed.errors[0].code]
    endless = client.interactions.create(**ASKED, input="a [forever] boat")
    seen["cancelled"] = client.interactions.cancel(endless.id).status
    client.interactions.delete(made.id)
    try:
        client.interactions.get(made.id)
    except Exception as error:
        seen["gone"] = getattr(error, "status_code", None) or getattr(error, "code", None)
    other = client_of("wrong")
    try:
        other.interactions.create(**ASKED, input="a")
    except Exception as error:
        seen["refused"] = getattr(error, "status_code", None) or getattr(error, "code", None)
    return seen


async def at_once() -> list[str]:
    """
    Make three clips at once.
    """
    client = client_of("right")

    async def one(number: int) -> str:
        made = await client.aio.interactions.create(**ASKED, input=f"boat {number}")
        while made.status in OPEN:
            await asyncio.sleep(0.05)
            made = await client.aio.interactions.get(made.id)
        return str(made.status)

    return list(await asyncio.gather(*map(one, range(3))))


print(json.dumps({**blocking(), "at_once": asyncio.run(at_once())}))

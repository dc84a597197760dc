"""
The official `google-genai` SDK 3.x, blocking and asynchronous, making clips by interactions: what the program saw is
printed as one JSON object.
"""

import asyncio
import base64
import json
import os
import sys
import time
import warnings
from typing import Any

warnings.simplefilter("ignore")

from google import genai
from google.genai import types
from picture import BASE64

BASE = sys.argv[1]
KEY = os.environ.get("SDK_KEY", "right")
ASKED: dict[str, Any] = {
    "model": "gemini-omni-1.2-flash",
    "background": True,
    "response_format": {"type": "video", "delivery": "uri", "duration": "3s", "aspect_ratio": "16:9"},
}
THROUGH_A_DOOR = "same" in sys.argv
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
    client = client_of(KEY)
    shown = [{"type": "text", "text": "a paper boat"}, {"type": "image", "data": BASE64, "mime_type": "image/png"}]
    task = {"video_config": {"task": "image_to_video"}}
    made = client.interactions.create(**ASKED, input=shown, labels={"a": "b"}, generation_config=task)
    seen["created"] = [made.status, made.id.startswith("v1_"), made.labels]
    # Both are made before the first is waited for, since a relay asks the provider for each after ten seconds only.
    failed = client.interactions.create(**ASKED, input="a [fail] boat")
    while made.status in OPEN:
        time.sleep(0.05)
        made = client.interactions.get(made.id)
    content = made.steps[0].content[0]
    seen["ended"] = [made.status, made.steps[0].type, content.type, content.mime_type]
    seen["is_mp4"] = client.files.download(file=types.Video(uri=content.uri))[4:8] == b"ftyp"
    while failed.status in OPEN:
        time.sleep(0.05)
        failed = client.interactions.get(failed.id)
    seen["failed"] = [failed.status, failed.errors[0].code]
    endless = client.interactions.create(**ASKED, input="a [forever] boat")
    if THROUGH_A_DOOR:
        # A relay answers before it has asked the provider, and what it has not asked for is cancelled there alone.
        time.sleep(1)
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


async def at_once(*prompts: str) -> list[str]:
    """
    Make those clips at once.
    """
    client = client_of(KEY)

    async def one(prompt: str) -> str:
        made = await client.aio.interactions.create(**ASKED, input=prompt)
        while made.status in OPEN:
            await asyncio.sleep(0.05)
            made = await client.aio.interactions.get(made.id)
        return str(made.status)

    return list(await asyncio.gather(*map(one, prompts)))


def in_the_answer() -> list[Any]:
    """
    Make a clip that the create call itself waits for, and that stands in its answer.
    """
    client = client_of(KEY)
    made = client.interactions.create(
        model=ASKED["model"], input="a boat at once", response_format={"type": "video", "duration": "3s"}
    )
    content = made.steps[0].content[0]
    return [made.status, base64.b64decode(content.data)[4:8] == b"ftyp"]


def again() -> list[bool]:
    """
    Whether the same wish is answered with the clip that is there, in two versions of which the second is asked for.
    """
    client, forcing = client_of(KEY), {"vidrelay_force": True}
    clips = [client.interactions.create(**ASKED, input="boat 0", extra_body=more) for more in (None, None, forcing)]
    return [clips[1].id == clips[0].id, clips[2].id == clips[0].id]


SAME = ["the same boat"] * 3 if THROUGH_A_DOOR else []
told = {**blocking(), "at_once": asyncio.run(at_once("boat 0", "boat 1", "boat 2", *SAME))}
if THROUGH_A_DOOR:
    told |= {"in_the_answer": in_the_answer(), "again": again()}
print(json.dumps(told))

"""
A client of Grok Imagine's HTTP interface, written from its document, blocking and asynchronous: what it saw is printed
as one JSON object. xAI's own SDK speaks gRPC.
"""

import asyncio
import json
import os
import sys
import time
from typing import Any

import httpx
from picture import BASE64

BASE = sys.argv[1]
KEY = os.environ.get("SDK_KEY", "right")
MODEL = "grok-imagine-video-1.5"


def of_key(key: str) -> dict[str, Any]:
    """
    What a client of that key is made with.
    """
    return {"base_url": BASE, "headers": {"Authorization": f"Bearer {key}"}, "timeout": 10}


def blocking() -> dict[str, Any]:
    """
    Make a clip of a picture, fetch it; one that fails, one that is kept back, a key that is refused.
    """
    seen: dict[str, Any] = {}
    with httpx.Client(**of_key(KEY)) as client:

        def made(prompt: str, **more: Any) -> str:
            answer = client.post("videos/generations", json={"model": MODEL, "prompt": prompt, **more})
            return str(answer.raise_for_status().json()["request_id"])

        def waited(request_id: str) -> dict[str, Any]:
            while True:
                answer = client.get(f"videos/{request_id}").raise_for_status()
                told: dict[str, Any] = {} if answer.status_code == 202 else answer.json()
                if told.get("status") not in (None, "pending"):
                    return told
                time.sleep(0.05)

        picture = {"url": f"data:image/png;base64,{BASE64}"}
        boat = made("a paper boat", duration=5, aspect_ratio="16:9", resolution="720p", image=picture)
        failed, kept_back = made("a [fail] boat"), made("a [moderated] boat")
        ended = waited(boat)
        video = ended["video"]
        seen["ended"] = [ended["status"], ended["model"] == MODEL, video["duration"], video["respect_moderation"]]
        seen["is_mp4"] = httpx.get(video["url"]).raise_for_status().content[4:8] == b"ftyp"
        seen["part"] = len(httpx.get(video["url"], headers={"Range": "bytes=4-7"}).content)
        seen["failed"] = waited(failed)["status"]
        ended = waited(kept_back)
        seen["kept_back"] = [ended["status"], ended["video"]["url"], ended["video"]["respect_moderation"]]
        seen["unknown"] = client.get("videos/nobody").status_code
    with httpx.Client(**of_key("wrong")) as client:
        seen["refused"] = client.post("videos/generations", json={"model": MODEL, "prompt": "a"}).status_code
    return seen


async def at_once() -> list[str]:
    """
    Make the same clip three times at once.
    """
    async with httpx.AsyncClient(**of_key(KEY)) as client:

        async def one() -> str:
            made = await client.post("videos/generations", json={"model": MODEL, "prompt": "the same boat"})
            while True:
                answer = await client.get(f"videos/{made.raise_for_status().json()['request_id']}")
                if answer.status_code != 202 and answer.json()["status"] != "pending":
                    return str(answer.json()["status"])
                await asyncio.sleep(0.05)

        return list(await asyncio.gather(*(one() for _ in range(3))))


print(json.dumps({**blocking(), "at_once": asyncio.run(at_once())}))

"""
The official `luma-agents` SDK through a relay's door: what the program saw is printed as one JSON object.
"""

import asyncio
import base64
import json
import os
import sys
import time
import urllib.request
from typing import Any

import luma_agents

BASE, KEY = sys.argv[1], os.environ.get("SDK_KEY", "right")
BASE64 = (
    "iVBORw0KGgoAAAANSUhEUgAAAEAAAAAwCAIAAAAuKetIAAAATklEQVR42u3PwQkAIAwAserTd+d1FofogE5RQcgNcJCReaKzWrv1"
    "P+PzAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAN51AWezAmSwdh2OAAAAAElFTkSuQmCC"
)
PNG = base64.b64decode(BASE64)
ASKED: dict[str, Any] = {"model": "ray-3.2", "type": "video", "aspect_ratio": "16:9"}
FRAME = {"data": BASE64, "media_type": "image/png"}


def blocking() -> dict[str, Any]:
    """
    Make clips from a text and from a picture, sent in three ways; a job that fails, and bad calls.
    """
    seen: dict[str, Any] = {"reads": 0}
    client = luma_agents.Luma(base_url=BASE, auth_token=KEY)

    def until_ended(made: Any) -> Any:
        while made.state in ("queued", "processing"):
            time.sleep(0.05)
            seen["reads"] += 1
            made = client.generations.get(made.id)
        return made

    made = client.generations.create(prompt="a paper boat", **ASKED)
    seen["created"] = {"state": made.state, "model": made.model, "output": made.output}
    made = until_ended(made)
    seen["ended"] = [made.state, made.output[0].type]
    with urllib.request.urlopen(made.output[0].url) as clip:
        seen["is_mp4"] = clip.read()[4:8] == b"ftyp"
    shown: dict[str, Any] = {"prompt": "a paper boat", **ASKED}
    first = until_ended(client.generations.create(**shown, video={"duration": "5s", "start_frame": FRAME}))
    seen["with_picture"] = first.state
    file = client.files.create(mime_type="image/png", size_bytes=len(PNG), filename="a.png")
    request = urllib.request.Request(
        file.upload.url, data=PNG, method=file.upload.method, headers=dict(file.upload.headers or {})
    )
    with urllib.request.urlopen(request) as answer:
        seen["put"] = answer.status
    completed = client.files.complete(file.id)
    seen["uploaded"] = [file.state, completed.state, completed.size_bytes, client.files.get(file.id).mime_type]
    seen["created_at"] = file.file.created_at == completed.created_at
    named = {"duration": "5s", "start_frame": {"file_id": file.id}}
    seen["same_picture"] = client.generations.create(**shown, video=named).id == first.id
    further = {"duration": "5s", "start_frame": {"generation_id": made.id}}
    seen["further"] = until_ended(client.generations.create(**shown, video=further)).state
    forced = client.generations.create(**shown, extra_body={"vidrelay_force": True})
    seen["forced"] = forced.id != made.id
    failed = until_ended(client.generations.create(prompt="a [moderated] boat", type="video"))
    seen["failed"] = [failed.state, failed.failure_code]
    bad = luma_agents.Luma(base_url=BASE, auth_token="bad")
    for name, call in {
        "unknown": lambda: client.generations.get("gen_unknown"),
        "no_file": lambda: client.files.get("019308e6-4f80-abab-abab-abababababab"),
        "bad_key": lambda: bad.generations.create(prompt="a", type="video"),
    }.items():
        try:
            call()
        except luma_agents.APIStatusError as error:
            seen[name] = [error.status_code, type(error).__name__]
    return seen


async def at_once() -> dict[str, Any]:
    """
    Ask for the same clip three times at once.
    """
    async with luma_agents.AsyncLuma(base_url=BASE, auth_token=KEY) as client:

        async def one() -> tuple[str, str]:
            made = await client.generations.create(prompt="a kite", type="video")
            while made.state in ("queued", "processing"):
                await asyncio.sleep(0.05)
                made = await client.generations.get(made.id)
            return made.id, str(made.state)

        ended = await asyncio.gather(one(), one(), one())
    return {"at_once": [state for _, state in ended], "tasks": len({task_id for task_id, _ in ended})}


print(json.dumps({**blocking(), **asyncio.run(at_once())}))

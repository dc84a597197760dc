"""
A client of MiniMax's V2, written from its own words, blocking and asynchronous: what it saw is printed as one JSON
object.
"""

import asyncio
import json
import sys
from typing import Any

import httpx
from doorstep import LOOKS, data_uri, headers, is_clip, png, said, until

BASE = sys.argv[1]
CREATE, QUERY = "/v2/video_generation", "/v2/query/video_generation"


def asked(text: str, *pictures: str) -> dict[str, Any]:
    """
    A create's body; the pictures are the first frame and the last.
    """
    frames = [
        {"type": "image_url", "image_url": {"url": url}, "role": role}
        for url, role in zip(pictures, ("first_frame", "last_frame"), strict=False)
    ]
    shape = {} if frames else {"ratio": "16:9"}
    content = [{"type": "text", "text": text}, *frames]
    return {"model": "MiniMax-H3", "content": content, "resolution": "768P", "duration": 5, **shape}


async def three() -> list[str]:
    """
    Three creates of the same wish at once.
    """
    async with httpx.AsyncClient(base_url=BASE, headers=headers()) as client:
        answers = await asyncio.gather(*(client.post(CREATE, json=asked("a twin")) for _ in range(3)))
    return [said(answer)["task_id"] for answer in answers]


def blocking(twin: str) -> dict[str, Any]:
    """
    A clip of a text and one of two pictures, one that fails, one that is stopped while it waits, lists and deletes.
    """
    seen: dict[str, Any] = {}
    with httpx.Client(base_url=BASE, headers=headers()) as client:

        def make(*words: str) -> str:
            return said(client.post(CREATE, json=asked(*words)))["task_id"]

        def status(name: str) -> dict[str, Any]:
            return said(client.get(f"{QUERY}/{name}"))["task"]

        def ended(name: str) -> dict[str, Any]:
            return until(lambda: status(name), lambda task: task["status"], "succeeded", "failed")

        form = {"data": {"purpose": "video_generation_input"}, "files": {"file": ("a.png", png(), "image/png")}}
        file_id = said(client.post("/v1/files/upload", **form))["file"]["file_id"]
        text = make("a paper boat")
        image = make("a paper boat", f"mm_file://{file_id}", data_uri())
        bad = make("a [moderated] boat")
        # Four are all that the relay lets run at once, so this one waits.
        held = make("a boat that waits")
        seen["held"] = status(held)["status"]
        seen["stopped"] = [said(client.delete(f"{CREATE}/{held}"))["action"], status(held)["status"]]
        task = ended(text)
        seen["ended"] = [task["status"], task["resolution"], is_clip(task["content"]["url"])]
        seen["of_pictures"] = ended(image)["status"]
        failed = ended(bad)
        seen["failed"] = [failed["status"], bool(failed["error"]["message"])]
        seen["twin"] = ended(twin)["status"]
        seen["listed"] = [row["id"] for row in said(client.get(QUERY))["tasks"]] == [held, bad, image, text, twin]
        found = said(client.get(QUERY, params={"filter.status": "succeeded", "page_size": 2}))["tasks"]
        seen["filtered"] = [row["id"] for row in found] == [image, text]
        seen["again"] = make("a paper boat") == text
        seen["deleted"] = said(client.delete(f"{CREATE}/{image}"))["action"]
        missing = client.get(f"{QUERY}/{image}")
        seen["missing"] = [missing.status_code, missing.json()["error"]["http_code"]]
    seen["refused"] = httpx.post(f"{BASE}{CREATE}", headers=headers("wrong"), json=asked("a")).status_code
    return seen


ids = asyncio.run(three())
print(json.dumps({"twins": len(set(ids)), **blocking(ids[0]), "looks": len(LOOKS)}))

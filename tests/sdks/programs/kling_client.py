"""
A client of Kling's API, written from its own words, blocking and asynchronous: what it saw is printed as JSON.
"""

import asyncio
import json
import sys
from typing import Any

import httpx
from doorstep import LOOKS, bare, headers, is_clip, said, until

BASE = sys.argv[1]
TEXT, IMAGE = "/v1/videos/text2video", "/v1/videos/image2video"
ENDS = ("succeed", "failed")


async def three() -> list[str]:
    """
    Three creates of the same wish at once.
    """
    async with httpx.AsyncClient(base_url=BASE, headers=headers()) as client:
        answers = await asyncio.gather(*(client.post(TEXT, json={"prompt": "a twin"}) for _ in range(3)))
    return [said(answer)["data"]["task_id"] for answer in answers]


def blocking(twin: str) -> dict[str, Any]:
    """
    A clip of a text and one of a picture, one that fails, the list, and the same wish once more.
    """
    seen: dict[str, Any] = {}
    with httpx.Client(base_url=BASE, headers=headers()) as client:
        asked = {"model_name": "kling-v2-5-turbo", "prompt": "a paper boat", "duration": "5", "mode": "std"}

        def make(kind: str, body: dict[str, Any]) -> str:
            told = said(client.post(kind, json=body))
            seen.setdefault("first", [told["code"], told["message"], told["data"]["task_status"]])
            return told["data"]["task_id"]

        def ended(kind: str, name: str) -> dict[str, Any]:
            return until(lambda: said(client.get(f"{kind}/{name}"))["data"], lambda data: data["task_status"], *ENDS)

        text = make(TEXT, {**asked, "external_task_id": "mine-1"})
        image = make(IMAGE, {**asked, "image": bare()})
        bad = make(TEXT, {**asked, "prompt": "a [moderated] boat"})
        task = ended(TEXT, text)
        clip = task["task_result"]["videos"][0]
        seen["ended"] = [task["task_status"], clip["duration"], is_clip(clip["url"])]
        seen["by_external_id"] = ended(TEXT, "mine-1")["task_id"] == text
        seen["of_a_picture"] = ended(IMAGE, image)["task_status"]
        failed = ended(TEXT, bad)
        seen["failed"] = [failed["task_status"], bool(failed["task_status_msg"])]
        seen["twin"] = ended(TEXT, twin)["task_status"]
        rows = said(client.get(TEXT, params={"pageNum": 1, "pageSize": 30}))["data"]
        seen["listed"] = [row["task_id"] for row in rows] == [bad, text, twin]
        seen["again"] = make(TEXT, asked) == text
        missing = client.get(f"{TEXT}/867283741759111202")
        seen["missing"] = [missing.status_code, missing.json()["code"]]
    seen["refused"] = httpx.post(f"{BASE}{TEXT}", headers=headers("wrong"), json={"prompt": "a"}).status_code
    return seen


ids = asyncio.run(three())
print(json.dumps({"twins": len(set(ids)), **blocking(ids[0]), "looks": len(LOOKS)}))

"""
A client of MiniMax's V1, written from its own words, blocking and asynchronous: what it saw is printed as one JSON
object.
"""

import asyncio
import json
import sys
from typing import Any

import httpx
from doorstep import LOOKS, data_uri, headers, is_clip, said, until

BASE = sys.argv[1]
CREATE = "/v1/video_generation"
ASKED = {"model": "MiniMax-Hailuo-2.3", "prompt": "a paper boat", "duration": 6, "resolution": "768P"}


async def three() -> list[str]:
    """
    Three creates of the same wish at once.
    """
    async with httpx.AsyncClient(base_url=BASE, headers=headers()) as client:
        answers = await asyncio.gather(*(client.post(CREATE, json={**ASKED, "prompt": "a twin"}) for _ in range(3)))
    return [said(answer)["task_id"] for answer in answers]


def blocking(twin: str) -> dict[str, Any]:
    """
    A clip of a text and one of a picture, one that fails, and the same wish once more.
    """
    seen: dict[str, Any] = {}
    with httpx.Client(base_url=BASE, headers=headers()) as client:

        def make(**more: Any) -> str:
            told = said(client.post(CREATE, json={**ASKED, **more}))
            assert told["base_resp"] == {"status_code": 0, "status_msg": "success"}
            return told["task_id"]

        def ended(name: str) -> dict[str, Any]:
            return until(
                lambda: said(client.get("/v1/query/video_generation", params={"task_id": name})),
                lambda told: told["status"],
                "Success",
                "Fail",
            )

        text, image = make(), make(first_frame_image=data_uri())
        bad = make(prompt="a [moderated] boat")
        task = ended(text)
        file = said(client.get("/v1/files/retrieve", params={"file_id": task["file_id"]}))
        seen["ended"] = [task["status"], file["file"]["bytes"] > 0, is_clip(file["file"]["download_url"])]
        seen["of_a_picture"] = ended(image)["status"]
        failed = ended(bad)
        seen["failed"] = [failed["status"], failed["base_resp"]["status_code"], failed["file_id"]]
        seen["twin"] = ended(twin)["status"]
        seen["again"] = make() == text
        missing = client.get("/v1/files/retrieve", params={"file_id": "205258526306433"})
        seen["missing"] = [missing.status_code, missing.json()["base_resp"]["status_code"]]
    seen["refused"] = httpx.post(f"{BASE}{CREATE}", headers=headers("wrong"), json=ASKED).status_code
    return seen


ids = asyncio.run(three())
print(json.dumps({"twins": len(set(ids)), **blocking(ids[0]), "looks": len(LOOKS)}))

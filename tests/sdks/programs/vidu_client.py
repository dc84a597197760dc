"""
A client of Vidu's API, written from its own words, blocking and asynchronous: what it saw is printed as JSON.
"""

import asyncio
import json
import sys
from typing import Any

import httpx
from doorstep import KEY, LOOKS, data_uri, headers, is_clip, png, said, until

BASE = sys.argv[1]
API, UPLOADS = "/ent/v2", "/tools/v2/files/uploads"
ASKED = {"model": "viduq3-turbo", "prompt": "a paper boat", "duration": 5, "resolution": "720p"}
TOKEN = headers(KEY, scheme="Token")


async def three() -> list[str]:
    """
    Three creates of the same wish at once, each with a payload of its own.
    """
    async with httpx.AsyncClient(base_url=BASE, headers=TOKEN) as client:
        bodies = [{**ASKED, "prompt": "a twin", "payload": f"mine-{number}"} for number in range(3)]
        answers = await asyncio.gather(*(client.post(f"{API}/text2video", json=body) for body in bodies))
    assert [said(answer)["payload"] for answer in answers] == [body["payload"] for body in bodies]
    return [said(answer)["task_id"] for answer in answers]


def upload(client: httpx.Client) -> str:
    """
    A picture in three calls, of which the second has no key.
    """
    begun = said(client.post(UPLOADS, json={"scene": "vidu"}))
    sent = httpx.put(begun["put_url"], content=png(), headers={"Content-Type": "image/png"}).raise_for_status()
    etag = sent.headers["etag"].strip('"')
    return said(client.put(f"{UPLOADS}/{begun['id']}/finish", json={"id": begun["id"], "etag": etag}))["uri"]


def blocking(twin: str) -> dict[str, Any]:
    """
    A clip of a text and one of two pictures, one that fails, one that is stopped while it waits, and the list.
    """
    seen: dict[str, Any] = {}
    with httpx.Client(base_url=BASE, headers=TOKEN) as client:

        def make(kind: str, **more: Any) -> dict[str, Any]:
            return said(client.post(f"{API}/{kind}", json={**ASKED, **more}))

        def status(name: str) -> dict[str, Any]:
            return said(client.get(f"{API}/tasks/{name}/creations"))

        def ended(name: str) -> dict[str, Any]:
            return until(lambda: status(name), lambda told: told["state"], "success", "failed")

        created = make("text2video", payload="mine")
        seen["created"] = [created["state"], created["model"], created["duration"], created["payload"]]
        text = created["task_id"]
        image = make("start-end2video", images=[upload(client), data_uri()])["task_id"]
        bad = make("text2video", prompt="a [moderated] boat")["task_id"]
        # Four are all that the relay lets run at once, so this one waits.
        held = make("text2video", prompt="a boat that waits")["task_id"]
        seen["stopped"] = said(client.post(f"{API}/tasks/{held}/cancel", json={"id": held}))
        stopped = status(held)
        seen["held"] = [stopped["state"], stopped["err_code"]]
        told = ended(text)
        seen["ended"] = [told["state"], told["payload"], is_clip(told["creations"][0]["url"])]
        seen["of_pictures"] = ended(image)["state"]
        failed = ended(bad)
        seen["failed"] = [failed["state"], failed["err_code"]]
        seen["twin"] = ended(twin)["state"]
        late = client.post(f"{API}/tasks/{text}/cancel", json={"id": text})
        seen["late"] = [late.status_code, late.json()["reason"]]
        first = said(client.get(f"{API}/tasks", params={"pager.pagesz": 3}))
        second = said(client.get(f"{API}/tasks", params={"pager.page_token": first["next_page_token"]}))
        listed = [row["id"] for row in (*first["tasks"], *second["tasks"])]
        seen["listed"] = [listed == [held, bad, image, text, twin], second["next_page_token"]]
        seen["again"] = make("text2video")["task_id"] == text
        missing = client.get(f"{API}/tasks/949913121705701376/creations")
        seen["missing"] = [missing.status_code, missing.json()["reason"]]
    wrong = headers("wrong", scheme="Token")
    seen["refused"] = httpx.post(f"{BASE}{API}/text2video", headers=wrong, json=ASKED).status_code
    return seen


ids = asyncio.run(three())
print(json.dumps({"twins": len(set(ids)), **blocking(ids[0]), "looks": len(LOOKS)}))

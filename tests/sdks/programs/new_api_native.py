"""
A gateway's own path, `/v1/video/generations`, for which there is no SDK: what the program saw is printed as one JSON
object.
"""

import json
import os
import sys
import time
from typing import Any

import httpx

BASE = sys.argv[1]
KEY = os.environ.get("SDK_KEY", "right")
PICTURE = (
    "data:image/png;base64,"
    "iVBORw0KGgoAAAANSUhEUgAAAEAAAABACAIAAAAlC+aJAAAAT0lEQVR42u3PQQkAAAgEsItiVKMZzQi+hcEKLNXzWgQEBAQEBAQE"
    "BAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQELgtKuwFL1RdEugAAAABJRU5ErkJggg=="
)


def create(client: httpx.Client, prompt: str, **more: Any) -> httpx.Response:
    """
    Ask for a clip.
    """
    body = {"model": "kling-v2-6", "prompt": prompt, "duration": 5, "size": "1280x720", **more}
    return client.post("/v1/video/generations", json=body)


def ended(client: httpx.Client, task_id: str) -> dict[str, Any]:
    """
    The task when it has ended.
    """
    while True:
        said: dict[str, Any] = client.get(f"/v1/video/generations/{task_id}").json()
        if said["data"]["status"] in ("SUCCESS", "FAILURE"):
            return said
        time.sleep(0.05)


def main() -> None:
    """
    Make a clip from a picture and fetch it, see one fail, ask for one that is not there, and with a wrong key.
    """
    seen: dict[str, Any] = {}
    with httpx.Client(base_url=BASE, headers={"Authorization": f"Bearer {KEY}"}, trust_env=False) as client:
        made = create(client, "a paper boat", image=PICTURE, metadata={"negative_prompt": "rain"})
        seen["created"] = [made.status_code, made.json()["id"] == made.json()["task_id"], made.json()["status"]]
        done = ended(client, made.json()["task_id"])
        seen["ended"] = [done["code"], done["data"]["status"], done["data"]["progress"]]
        content = client.get(f"/v1/videos/{made.json()['task_id']}/content")
        seen["clip"] = content.content[4:8] == b"ftyp"
        address = done["data"].get("result_url")
        seen["address"] = bool(address) and httpx.get(address, trust_env=False).content == content.content
        part = client.get(f"/v1/videos/{made.json()['task_id']}/content", headers={"Range": "bytes=4-7"})
        seen["part"] = [part.status_code, part.text]
        failed = ended(client, create(client, "a [fail] boat").json()["task_id"])
        seen["failed"] = [failed["data"]["status"], bool(failed["data"]["fail_reason"])]
        gone = client.get("/v1/video/generations/task_nobody")
        seen["gone"] = [gone.status_code, gone.json()["code"]]
    wrong = create(httpx.Client(base_url=BASE, headers={"Authorization": "Bearer wrong"}, trust_env=False), "a")
    seen["refused"] = wrong.status_code
    print(json.dumps(seen))


main()

"""
The official `replicate` SDK, blocking and asynchronous: what the program saw is printed as one JSON object.
"""

import asyncio
import io
import json
import sys
import time
import urllib.request
from typing import Any

import replicate
from replicate.exceptions import ReplicateError

BASE = sys.argv[1]
MODEL = "minimax/video-01"
VERSION = "5c7d5dc6dd8bf75c1acaa8565735e7986bc5b66206b55cca93cb72c9bf15ccaa"


def blocking() -> dict[str, Any]:
    """
    Make a clip by model, by version and by deployment, with a picture; list; a job that fails; cancel; a bad key.
    """
    seen: dict[str, Any] = {}
    client = replicate.Client(api_token="right", base_url=BASE)
    made = client.models.predictions.create(model=MODEL, input={"prompt": "a paper boat", "duration": 5})
    seen["created"] = {"status": made.status, "model": made.model, "version": made.version, "input": made.input}
    made.wait()
    seen["ended"] = [made.status, made.error, made.metrics["predict_time"] > 0, made.progress.percentage]
    with urllib.request.urlopen(made.output) as clip:
        seen["is_mp4"] = clip.read()[4:8] == b"ftyp"
    picture = io.BytesIO(b"\x89PNG\r\n\x1a\n")
    other = client.predictions.create(version=VERSION, input={"prompt": "a kite", "image": picture})
    other.wait()
    seen["by_version"] = [other.status, other.version == VERSION, other.input["image"].startswith(f"{BASE}/v1/files/")]
    deployed = client.deployments.predictions.create(("acme", "clips"), {"prompt": "a train"})
    deployed.wait()
    seen["by_deployment"] = deployed.status
    seen["ran"] = str(client.run(MODEL, input={"prompt": "a swan"})).startswith(f"{BASE}/files/")
    failed = client.models.predictions.create(model=MODEL, input={"prompt": "a [moderated] boat"})
    failed.wait()
    seen["failed"] = [failed.status, "sensitive" in failed.error, failed.output]
    endless = client.models.predictions.create(model=MODEL, input={"prompt": "a [forever] boat"})
    while endless.status == "starting":
        time.sleep(0.05)
        endless.reload()
    endless.cancel()
    seen["cancelled"] = endless.status
    page = client.predictions.list()
    seen["listed"] = [len(page), page.results[-1].id == made.id, page.next]
    seen["account"] = client.accounts.current().username
    for name, call in {
        "gone": lambda: client.predictions.get("nobody"),
        "wrong": lambda: client.models.predictions.create(model=MODEL, input={}),
        "refused": replicate.Client(api_token="bad", base_url=BASE).predictions.list,
    }.items():
        try:
            call()
        except ReplicateError as error:
            seen[name] = error.status
    return seen


async def at_once() -> list[str]:
    """
    Make three clips at once.
    """
    client = replicate.Client(api_token="right", base_url=BASE)

    async def one(number: int) -> str:
        made = await client.models.predictions.async_create(model=MODEL, input={"prompt": f"boat {number}"})
        await made.async_wait()
        return str(made.status)

    return list(await asyncio.gather(*map(one, range(3))))


print(json.dumps({**blocking(), "at_once": asyncio.run(at_once())}))

"""
The official `replicate` SDK against a relay's door: what a provider alone would not show. One JSON object is printed.
"""

import asyncio
import io
import json
import os
import sys
import time
from typing import Any

import replicate
from replicate.exceptions import ModelError, ReplicateError

BASE, KEY = sys.argv[1], os.environ["SDK_KEY"]
MODEL = "minimax/video-01"
VERSION = "5c7d5dc6dd8bf75c1acaa8565735e7986bc5b66206b55cca93cb72c9bf15ccaa"
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000040000000400802000000250be6890000007a49444154789cedcf5109002014"
    "c0c017cd6846339a21fc3884c102dc66edf375c3050d6841035ad0801634a0050d6841035ad0801634a0050d6841035ad080"
    "1634a0050d6841035ad0801634a0050d6841035ad0801634a0050d6841035ad0801634a0050d6841035ad0801634a0050d68"
    "41035ad080163c76011ec60169fc92d3cb0000000049454e44ae426082"
)


def is_clip(file: Any) -> bool:
    """
    Whether it is a whole clip, read through the SDK's own file object.
    """
    return type(file).__name__ == "FileOutput" and file.read()[4:8] == b"ftyp"


def blocking() -> dict[str, Any]:
    """
    Make a clip, run one with the answer held, by version, with a picture; list; fail; cancel; force; a bad key.
    """
    seen: dict[str, Any] = {}
    client = replicate.Client(api_token=KEY, base_url=BASE)
    made = client.models.predictions.create(model=MODEL, input={"prompt": "a paper boat", "duration": 5})
    seen["created"] = {"status": made.status, "model": made.model, "version": made.version, "input": made.input}
    made.wait()
    seen["ended"] = [made.status, made.error, made.progress.percentage, made.output[:22]]
    seen["at_home"] = [made.urls[name].startswith(f"{BASE}/v1/predictions/") for name in ("get", "cancel")]
    seen["ran"] = is_clip(client.run(MODEL, input={"prompt": "a swan"}))
    seen["ran_version"] = is_clip(client.run(f"{MODEL}:{VERSION}", input={"prompt": "a swan by version"}))
    began = time.monotonic()
    held = client.models.predictions.create(model=MODEL, input={"prompt": "a [forever] swan"}, wait=1)
    seen["held"] = [held.status, 0.5 < time.monotonic() - began < 1.5]
    other = client.predictions.create(version=VERSION, input={"prompt": "a kite", "image": io.BytesIO(PNG)})
    other.wait()
    seen["with_picture"] = [
        other.status,
        other.version == VERSION,
        other.input["image"].startswith(f"{BASE}/v1/files/"),
    ]
    same = client.predictions.create(
        version=VERSION, input={"prompt": "a kite", "image": io.BytesIO(PNG)}, file_encoding_strategy="base64"
    )
    seen["same_picture"] = same.id == other.id
    file = client.files.create(io.BytesIO(PNG), filename="a.png", metadata={"a": 1})
    seen["file"] = [file.name, file.size == len(PNG), file.metadata, client.files.get(file.id).urls == file.urls]
    deployed = client.deployments.predictions.create(("acme", "clips"), {"prompt": "a train"})
    deployed.wait()
    seen["by_deployment"] = deployed.status
    forced = client.models.predictions.create(
        model=MODEL, input={"prompt": "a paper boat", "duration": 5, "vidrelay_force": True}
    )
    seen["forced"] = [forced.id != made.id, "vidrelay_force" in forced.input]
    failed = client.models.predictions.create(model=MODEL, input={"prompt": "a [moderated] boat"})
    failed.wait()
    seen["failed"] = [failed.status, "sensitive" in failed.error, failed.output]
    try:
        client.run(MODEL, input={"prompt": "a second [moderated] boat"})
    except ModelError as error:
        seen["model_error"] = "sensitive" in str(error)
    held.cancel()
    held.wait()
    seen["cancelled"] = held.status
    page = client.predictions.list()
    seen["listed"] = [len(page), page.results[-1].id == made.id, page.next, page.results[-1].output[:5]]
    for name, call in {
        "gone": lambda: client.predictions.get("nobody"),
        "wrong": lambda: client.predictions.create(version="", input={}),
        "refused": replicate.Client(api_token="bad", base_url=BASE).predictions.list,
    }.items():
        try:
            call()
        except (ReplicateError, ValueError) as error:
            seen[name] = getattr(error, "status", None)
    return seen


async def at_once() -> list[Any]:
    """
    Ask for one clip three times at once, and for another with the answer held.
    """
    client = replicate.Client(api_token=KEY, base_url=BASE)

    async def one() -> str:
        made = await client.models.predictions.async_create(model=MODEL, input={"prompt": "a ferry"})
        await made.async_wait()
        assert made.status == "succeeded"
        return str(made.id)

    ids = await asyncio.gather(one(), one(), one())
    file = await client.async_run(MODEL, input={"prompt": "a raft"})
    return [len(set(ids)), (await file.aread())[4:8] == b"ftyp"]


print(json.dumps({**blocking(), "at_once": asyncio.run(at_once())}))

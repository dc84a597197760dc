"""
The official `runwayml` SDK through a relay's door: what the program saw is printed as one JSON object.
"""

import asyncio
import base64
import json
import os
import struct
import sys
import time
import urllib.request
import zlib
from typing import Any

import runwayml
from runwayml.lib.polling import TaskFailedError

BASE, KEY = sys.argv[1], os.environ.get("SDK_KEY", "right")
BASE64 = (
    "iVBORw0KGgoAAAANSUhEUgAAAEAAAAAwCAIAAAAuKetIAAAATklEQVR42u3PwQkAIAwAserTd+d1FofogE5RQcgNcJCReaKzWrv1"
    "P+PzAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAN51AWezAmSwdh2OAAAAAElFTkSuQmCC"
)
PNG = base64.b64decode(BASE64)
ASKED: dict[str, Any] = {"model": "gen4.5", "prompt_text": "a paper boat", "ratio": "1280:720", "duration": 5}


def large_png() -> bytes:
    """
    Noise of 5.4 MB, which is more than a data URI may have at Runway.
    """

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    width, height = 1500, 1200
    rows = b"".join(b"\0" + os.urandom(3 * width) for _ in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows, 0)) + chunk(b"IEND", b"")


def blocking() -> dict[str, Any]:
    """
    Make clips from a text and from a picture that is sent in two ways; a failed, cancelled and deleted one; bad calls.
    """
    seen: dict[str, Any] = {"reads": 0}
    client = runwayml.RunwayML(api_key=KEY, base_url=BASE)

    def until(task_id: str, *states: str) -> Any:
        for _ in range(400):
            seen["reads"] += 1
            task = client.tasks.retrieve(task_id)
            if task.status in states:
                return task
            time.sleep(0.05)
        raise SystemExit(f"{task_id} is {task.status}")

    made = client.text_to_video.create(**ASKED, seed=7)
    seen["first"] = type(client.tasks.retrieve(made.id)).__name__
    task = until(made.id, "SUCCEEDED")
    seen["ended"] = [type(task).__name__, len(task.output), task.created_at.tzinfo is not None]
    with urllib.request.urlopen(task.output[0]) as clip:
        seen["is_mp4"] = clip.read()[4:8] == b"ftyp"
    uploaded = client.uploads.create_ephemeral(file=("a.png", PNG))
    other = client.image_to_video.create(**ASKED, prompt_image=uploaded.uri)
    again = client.image_to_video.create(**ASKED, prompt_image=f"data:image/png;base64,{BASE64}")
    seen["same_picture"] = again.id == other.id
    forced = client.image_to_video.create(**ASKED, prompt_image=uploaded.uri, extra_headers={"X-Vidrelay-Force": "1"})
    seen["forced"] = forced.id != other.id
    failing = client.text_to_video.create(**{**ASKED, "prompt_text": "a [moderated] boat"})
    endless = client.text_to_video.create(**{**ASKED, "prompt_text": "a [forever] boat"})
    large = client.uploads.create_ephemeral(file=("large.png", large_png()))
    scaled = client.image_to_video.create(**ASKED, prompt_image=[{"uri": large.uri, "position": "first"}])
    seen["scaled"] = until(scaled.id, "SUCCEEDED").status
    seen["with_picture"] = until(other.id, "SUCCEEDED").status
    failed = until(failing.id, "FAILED")
    seen["failed"] = [failed.failure_code, bool(failed.failure)]
    running = until(endless.id, "RUNNING")
    seen["running"] = [type(running).__name__, 0 <= running.progress <= 1]
    client.tasks.delete(endless.id)
    seen["cancelled"] = until(endless.id, "CANCELLED").status
    client.tasks.delete(made.id)
    for name, call in {
        "gone": lambda: client.tasks.retrieve(made.id),
        "unknown": lambda: client.tasks.retrieve("17f20503-6c24-4c16-946b-35dbbce2af2f"),
        "no_upload": lambda: client.image_to_video.create(**ASKED, prompt_image="runway://vidrelay/" + "0" * 32),
        "balance": client.organization.retrieve,
        "bad_key": lambda: runwayml.RunwayML(api_key="bad", base_url=BASE).text_to_video.create(**ASKED),
    }.items():
        try:
            call()
        except runwayml.APIStatusError as error:
            seen[name] = [error.status_code, type(error).__name__]
    return seen


async def waiting() -> dict[str, Any]:
    """
    Let the SDK do the waiting, for three equal clips and for a failed task, all at once.
    """
    async with runwayml.AsyncRunwayML(api_key=KEY, base_url=BASE) as client:

        async def one(prompt: str) -> tuple[str, str]:
            made = await client.text_to_video.create(**{**ASKED, "prompt_text": prompt})
            try:
                return made.id, str((await made.wait_for_task_output()).status)
            except TaskFailedError as error:
                return made.id, str(error.task_details.failure_code)

        ended = await asyncio.gather(*map(one, ["a kite"] * 3), one("a [fail=INTERNAL.BAD_OUTPUT.CODE01] kite"))
        uploaded = await client.uploads.create_ephemeral(file=("b.png", PNG))
    return {
        "waited": [word for _, word in ended],
        "tasks": len({task_id for task_id, _ in ended[:3]}),
        "uploaded": uploaded.uri.startswith("runway://"),
    }


print(json.dumps({**blocking(), **asyncio.run(waiting())}))

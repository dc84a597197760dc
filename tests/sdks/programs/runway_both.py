"""
The official `runwayml` SDK, blocking and asynchronous: what the program saw is printed as one JSON object.
"""

import asyncio
import json
import sys
import time
import urllib.request
from typing import Any

import runwayml
from runwayml.lib.polling import TaskFailedError

BASE = sys.argv[1]
ASKED: dict[str, Any] = {"model": "gen4.5", "prompt_text": "a paper boat", "ratio": "1280:720", "duration": 5}


def blocking() -> dict[str, Any]:
    """
    Make a clip from a text and one from a picture; a failed, a cancelled and a deleted one; limits; bad calls.
    """
    seen: dict[str, Any] = {}
    client = runwayml.RunwayML(api_key="right", base_url=BASE, max_retries=0)

    def until(task_id: str, *states: str) -> Any:
        for _ in range(400):
            task = client.tasks.retrieve(task_id)
            if task.status in states:
                return task
            time.sleep(0.05)
        raise SystemExit(f"{task_id} is {task.status}")

    made = client.text_to_video.create(**ASKED, seed=7)
    seen["first"] = client.tasks.retrieve(made.id).status
    task = until(made.id, "SUCCEEDED")
    seen["ended"] = [type(task).__name__, len(task.output), task.cost.credits]
    with urllib.request.urlopen(task.output[0]) as clip:
        seen["is_mp4"] = clip.read()[4:8] == b"ftyp"
    uploaded = client.uploads.create_ephemeral(file=("a.png", b"\x89PNG\r\n\x1a\n"))
    seen["uploaded"] = uploaded.uri.startswith("runway://")
    other = client.image_to_video.create(**ASKED, prompt_image=[{"uri": uploaded.uri, "position": "first"}])
    seen["with_picture"] = until(other.id, "SUCCEEDED").status
    failed = client.text_to_video.create(**{**ASKED, "prompt_text": "a [moderated] boat"})
    failed = until(failed.id, "FAILED")
    seen["failed"] = [failed.failure_code, failed.cost.credits]
    endless = client.text_to_video.create(**{**ASKED, "prompt_text": "a [forever] boat"})
    seen["running"] = type(until(endless.id, "RUNNING")).__name__
    held = client.text_to_video.create(**ASKED)
    seen["held"] = client.tasks.retrieve(held.id).status
    client.tasks.delete(endless.id)
    seen["cancelled"] = client.tasks.retrieve(endless.id).status
    until(held.id, "SUCCEEDED")
    client.tasks.delete(made.id)
    told = client.organization.retrieve()
    seen["limits"] = [
        told.tier.models["gen4.5"].max_concurrent_generations,
        told.usage.models["gen4.5"].daily_generations,
    ]
    for name, call in {
        "gone": lambda: client.tasks.retrieve(made.id),
        "wrong": lambda: client.text_to_video.create(**{**ASKED, "duration": 60}),
        "bad_key": runwayml.RunwayML(api_key="bad", base_url=BASE, max_retries=0).organization.retrieve,
    }.items():
        try:
            call()
        except runwayml.APIStatusError as error:
            seen[name] = [error.status_code, type(error).__name__]
    return seen


async def waiting() -> list[str]:
    """
    Let the SDK do the waiting, for a clip and for a failed task, at once.
    """
    async with runwayml.AsyncRunwayML(api_key="right", base_url=BASE, max_retries=0) as client:

        async def one(prompt: str) -> str:
            made = await client.text_to_video.create(**{**ASKED, "prompt_text": prompt})
            try:
                return str((await made.wait_for_task_output()).status)
            except TaskFailedError as error:
                return str(error.task_details.failure_code)

        return list(await asyncio.gather(one("a kite"), one("a [fail=INTERNAL.BAD_OUTPUT.CODE01] kite")))


print(json.dumps({**blocking(), "waited": asyncio.run(waiting())}))

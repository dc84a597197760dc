"""
The official `dashscope` SDK's new surface, `Client` and `AsyncClient`: what the program saw is printed as one JSON
object.
"""

import asyncio
import json
import os
import pathlib
import sys
import time
import urllib.request

from dashscope import AsyncClient, Client
from dashscope.v2 import errors
from picture import PNG

KEY = os.environ.get("SDK_KEY", "right")
THROUGH_A_DOOR = "same" in sys.argv


def clip(url: str) -> bool:
    """
    Fetch the clip, and tell whether it is one.
    """
    with urllib.request.urlopen(url) as reply:
        return reply.read()[4:8] == b"ftyp"


async def at_once(base: str, *prompts: str) -> list[bool]:
    """
    Make those clips with the asynchronous client.
    """
    client = AsyncClient(base_url=base, api_key=KEY, max_retries=0)
    calls = (client.videos.jobs.create(model="wan3.0-video", prompt=one) for one in prompts)
    made = await asyncio.gather(*calls) if THROUGH_A_DOOR else [await one for one in calls]
    ended = await asyncio.gather(*(client.videos.jobs.wait(one, poll_interval=0.05) for one in made))
    return [one.succeeded for one in ended]


def main(base: str) -> None:
    """
    Make a clip of a local picture, see one fail, stop one, list them, and be refused with a wrong key.
    """
    seen = {}
    pathlib.Path("boat.png").write_bytes(PNG)
    client = Client(base_url=base, api_key=KEY, max_retries=0)
    jobs = client.videos.jobs
    made = jobs.create(model="wan2.7-i2v", prompt="a boat", image_url="boat.png", resolution="720P", duration=5)
    seen["created"] = made.status
    # All are made before the first is waited for, since a relay asks the provider every fifteen seconds only.
    failing = jobs.create(model="wan3.0-video", prompt="a [moderated] boat")
    if THROUGH_A_DOOR:
        seen["async"] = asyncio.run(at_once(base, "boat 0", *["the same boat"] * 3))
    ended = jobs.wait(made, poll_interval=0.05)
    seen["ended"] = [ended.succeeded, bool(ended.submitted_at and ended.scheduled_at and ended.finished_at)]
    seen["clip"] = clip(ended.video_url)
    try:
        jobs.wait(failing, poll_interval=0.05)
    except errors.DashScopeError as error:
        seen["failed"] = error.code
    waits = jobs.create(model="wan3.0-video", prompt="a [queue=60] boat")
    if THROUGH_A_DOOR:
        # A relay answers before it has asked the provider, and what it has not asked for is cancelled there alone.
        time.sleep(1)
    jobs.cancel(waits.task_id)
    seen["cancelled"] = jobs.fetch(waits.task_id).status
    seen["unknown"] = jobs.fetch("nobody").status
    listed = jobs.list(model_name="wan3.0-video")
    seen["listed"] = [listed.total, sorted(one.status for one in listed.tasks)]
    if THROUGH_A_DOOR:
        asked = {"model": "wan3.0-video", "prompt": "boat 0"}
        ids = [jobs.create(**asked).task_id for _ in range(2)]
        seen["again"] = [len(set(ids)), jobs.create(**asked, parameters={"vidrelay_force": True}).task_id in ids]
    else:
        seen["async"] = asyncio.run(at_once(base, "boat 0", "boat 1"))
    try:
        Client(base_url=base, api_key="wrong", max_retries=0).videos.jobs.create(model="wan3.0-video", prompt="a")
    except errors.DashScopeError as error:
        seen["refused"] = [error.status_code, error.code]
    print(json.dumps(seen))


main(sys.argv[1])

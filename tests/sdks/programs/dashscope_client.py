"""
The official `dashscope` SDK's new surface, `Client` and `AsyncClient`: what the program saw is printed as one JSON
object.
"""

import asyncio
import json
import pathlib
import sys
import urllib.request

from dashscope import AsyncClient, Client
from dashscope.v2 import errors


def clip(url: str) -> bool:
    """
    Fetch the clip, and tell whether it is one.
    """
    with urllib.request.urlopen(url) as reply:
        return reply.read()[4:8] == b"ftyp"


async def at_once(base: str) -> list[bool]:
    """
    Make two clips with the asynchronous client.
    """
    client = AsyncClient(base_url=base, api_key="right", max_retries=0)
    made = [await client.videos.jobs.create(model="wan3.0-video", prompt=f"boat {one}") for one in range(2)]
    ended = await asyncio.gather(*(client.videos.jobs.wait(one, poll_interval=0.05) for one in made))
    return [one.succeeded for one in ended]


def main(base: str) -> None:
    """
    Make a clip of a local picture, see one fail, stop one, list them, and be refused with a wrong key.
    """
    seen = {}
    pathlib.Path("boat.png").write_bytes(b"\x89PNG!")
    client = Client(base_url=base, api_key="right", max_retries=0)
    jobs = client.videos.jobs
    made = jobs.create(model="wan2.7-i2v", prompt="a boat", image_url="boat.png", resolution="720P", duration=5)
    seen["created"] = made.status
    ended = jobs.wait(made, poll_interval=0.05)
    seen["ended"] = [ended.succeeded, bool(ended.submitted_at and ended.scheduled_at and ended.finished_at)]
    seen["clip"] = clip(ended.video_url)
    try:
        jobs.wait(jobs.create(model="wan3.0-video", prompt="a [moderated] boat"), poll_interval=0.05)
    except errors.DashScopeError as error:
        seen["failed"] = error.code
    waits = jobs.create(model="wan3.0-video", prompt="a [queue=60] boat")
    jobs.cancel(waits.task_id)
    seen["cancelled"] = jobs.fetch(waits.task_id).status
    seen["unknown"] = jobs.fetch("nobody").status
    listed = jobs.list(model_name="wan3.0-video")
    seen["listed"] = [listed.total, sorted(one.status for one in listed.tasks)]
    seen["async"] = asyncio.run(at_once(base))
    try:
        Client(base_url=base, api_key="wrong", max_retries=0).videos.jobs.create(model="wan3.0-video", prompt="a")
    except errors.DashScopeError as error:
        seen["refused"] = [error.status_code, error.code]
    print(json.dumps(seen))


main(sys.argv[1])

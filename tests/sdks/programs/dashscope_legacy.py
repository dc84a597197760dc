"""
The official `dashscope` SDK's old surface, `VideoSynthesis`: what the program saw is printed as one JSON object.
"""

import asyncio
import json
import os
import pathlib
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import dashscope
from dashscope import VideoSynthesis
from dashscope.aigc.video_synthesis import AioVideoSynthesis
from picture import PNG

KEY = os.environ.get("SDK_KEY", "right")
THROUGH_A_DOOR = "same" in sys.argv


def clip(url: str) -> bool:
    """
    Fetch the clip, and tell whether it is one.
    """
    with urllib.request.urlopen(url) as reply:
        return reply.read()[4:8] == b"ftyp"


async def at_once(*prompts: str) -> list[str]:
    """
    Make those clips with the asynchronous class.
    """
    calls = (AioVideoSynthesis.async_call(model="wan2.6-t2v", prompt=one) for one in prompts)
    made = await asyncio.gather(*calls) if THROUGH_A_DOOR else [await one for one in calls]
    ended = await asyncio.gather(*(AioVideoSynthesis.wait(one) for one in made))
    return [one.output.task_status for one in ended]


def main(base: str) -> None:
    """
    Make a clip of a local picture, see one fail, stop one, list them, and be refused with a wrong key.
    """
    seen = {}
    dashscope.base_http_api_url = base
    dashscope.api_key = KEY
    pathlib.Path("boat.png").write_bytes(PNG)
    made = VideoSynthesis.async_call(
        model="wan2.6-i2v", prompt="a boat", img_url="file://boat.png", resolution="720P", duration=5
    )
    seen["created"] = [made.status_code, made.output.task_status]
    # All are made before the first is waited for, since a relay asks the provider every fifteen seconds only.
    with ThreadPoolExecutor() as pool:
        failed = pool.submit(VideoSynthesis.call, model="wan2.6-t2v", prompt="a [moderated] boat")
        if THROUGH_A_DOOR:
            seen["aio"] = pool.submit(asyncio.run, at_once("boat 0", *["the same boat"] * 3)).result()
        ended = VideoSynthesis.wait(made)
        failed = failed.result()
    seen["ended"] = [ended.output.task_status, ended.output.orig_prompt, ended.usage.video_count]
    seen["clip"] = clip(ended.output.video_url)
    seen["failed"] = [failed.output.task_status, failed.output.code]
    waits = VideoSynthesis.async_call(model="wan2.6-t2v", prompt="a [queue=60] boat")
    if THROUGH_A_DOOR:
        # A relay answers before it has asked the provider, and what it has not asked for is cancelled there alone.
        time.sleep(1)
    seen["cancelled"] = VideoSynthesis.cancel(waits).status_code
    seen["then"] = VideoSynthesis.fetch(waits).output.task_status
    late = VideoSynthesis.cancel(ended)
    seen["late"] = [late.status_code, late.code]
    seen["unknown"] = VideoSynthesis.fetch("nobody").output.task_status
    seen["listed"] = len(VideoSynthesis.list(page_size=10, model_name="wan2.6-t2v").output["data"])
    if THROUGH_A_DOOR:
        asked = {"model": "wan2.6-t2v", "prompt": "boat 0"}
        forced = VideoSynthesis.async_call(**asked, headers={"X-Vidrelay-Force": "1"})
        ids = [VideoSynthesis.async_call(**asked).output.task_id for _ in range(2)]
        seen["again"] = [len(set(ids)), forced.output.task_id in ids]
    else:
        seen["aio"] = asyncio.run(at_once("boat 0", "boat 1"))
    refused = VideoSynthesis.async_call(model="wan2.6-t2v", prompt="a boat", api_key="wrong")
    seen["refused"] = [refused.status_code, refused.code]
    print(json.dumps(seen))


main(sys.argv[1])

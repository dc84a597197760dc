"""
The official `dashscope` SDK's old surface, `VideoSynthesis`: what the program saw is printed as one JSON object.
"""

import asyncio
import json
import pathlib
import sys
import urllib.request

import dashscope
from dashscope import VideoSynthesis
from dashscope.aigc.video_synthesis import AioVideoSynthesis


def clip(url: str) -> bool:
    """
    Fetch the clip, and tell whether it is one.
    """
    with urllib.request.urlopen(url) as reply:
        return reply.read()[4:8] == b"ftyp"


async def at_once() -> list[str]:
    """
    Make two clips with the asynchronous class.
    """
    made = [await AioVideoSynthesis.async_call(model="wan2.6-t2v", prompt=f"boat {one}") for one in range(2)]
    ended = await asyncio.gather(*(AioVideoSynthesis.wait(one) for one in made))
    return [one.output.task_status for one in ended]


def main(base: str) -> None:
    """
    Make a clip of a local picture, see one fail, stop one, list them, and be refused with a wrong key.
    """
    seen = {}
    dashscope.base_http_api_url = base
    dashscope.api_key = "right"
    pathlib.Path("boat.png").write_bytes(b"\x89PNG!")
    made = VideoSynthesis.async_call(
        model="wan2.6-i2v", prompt="a boat", img_url="file://boat.png", resolution="720P", duration=5
    )
    seen["created"] = [made.status_code, made.output.task_status]
    ended = VideoSynthesis.wait(made)
    seen["ended"] = [ended.output.task_status, ended.output.orig_prompt, ended.usage.video_count]
    seen["clip"] = clip(ended.output.video_url)
    failed = VideoSynthesis.call(model="wan2.6-t2v", prompt="a [moderated] boat")
    seen["failed"] = [failed.output.task_status, failed.output.code]
    waits = VideoSynthesis.async_call(model="wan2.6-t2v", prompt="a [queue=60] boat")
    seen["cancelled"] = VideoSynthesis.cancel(waits).status_code
    seen["then"] = VideoSynthesis.fetch(waits).output.task_status
    late = VideoSynthesis.cancel(ended)
    seen["late"] = [late.status_code, late.code]
    seen["unknown"] = VideoSynthesis.fetch("nobody").output.task_status
    seen["listed"] = len(VideoSynthesis.list(page_size=10, model_name="wan2.6-t2v").output["data"])
    seen["aio"] = asyncio.run(at_once())
    refused = VideoSynthesis.async_call(model="wan2.6-t2v", prompt="a boat", api_key="wrong")
    seen["refused"] = [refused.status_code, refused.code]
    print(json.dumps(seen))


main(sys.argv[1])

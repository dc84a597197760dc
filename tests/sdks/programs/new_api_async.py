"""
The official `openai` SDK, asynchronous, with a new-api gateway as its base: what the program saw is printed as one JSON
object.
"""

import asyncio
import json
import os
import sys
import warnings

warnings.simplefilter("ignore")

import openai

KEY = os.environ.get("SDK_KEY", "right")


async def main(base: str) -> None:
    """
    Make three clips at once, fetch them, see one fail, ask three times for the same one at once, and be refused with a
    wrong key.
    """
    seen = {}
    async with openai.AsyncOpenAI(base_url=base, api_key=KEY, max_retries=0) as client:
        made = await asyncio.gather(
            *(
                client.videos.create_and_poll(prompt=f"boat {one}", model="kling-v2-6", poll_interval_ms=20)
                for one in range(3)
            )
        )
        seen["ended"] = [video.status for video in made]
        clips = [await client.videos.download_content(video.id) for video in made]
        seen["clips"] = [clip.content[4:8] == b"ftyp" for clip in clips]
        failed = await client.videos.create_and_poll(prompt="a [fail]", model="kling-v2-6", poll_interval_ms=20)
        seen["failed"] = {"status": failed.status, "code": failed.error.code}
        same = await asyncio.gather(
            *(client.videos.create(prompt="the same boat", model="kling-v2-6") for _ in range(3))
        )
        seen["same"] = len({video.id for video in same})
    async with openai.AsyncOpenAI(base_url=base, api_key="wrong", max_retries=0) as client:
        try:
            await client.videos.create(prompt="a", model="kling-v2-6")
        except openai.APIStatusError as error:
            seen["refused"] = {"status": error.status_code, "kind": error.type}
    print(json.dumps(seen))


asyncio.run(main(sys.argv[1]))

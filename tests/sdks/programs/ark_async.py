"""
The official runtime SDK of Ark, Volcengine's or BytePlus's, asynchronous: what the program saw is printed as one JSON
object.
"""

import asyncio
import json
import os
import sys
import warnings
from importlib import import_module

warnings.simplefilter("ignore")

sdk = import_module(sys.argv[2])
MODEL = "doubao-seedance-1-5-pro-251215"
THROUGH_DOOR = "SDK_KEY" in os.environ
KEY = os.environ.get("SDK_KEY", "right")


async def made(tasks, prompt):
    """
    The task of that prompt, when it has ended.
    """
    task = await tasks.create(model=MODEL, content=[{"type": "text", "text": prompt}])
    while (seen := await tasks.get(task_id=task.id)).status in ("queued", "running"):
        pass
    return seen


async def main(base):
    """
    Make three clips at once and one that fails, list them, ask for one clip three times at once and for other versions
    of it, and be refused with a wrong key.
    """
    seen = {}
    tasks = sdk.AsyncArk(base_url=base, api_key=KEY, max_retries=0).content_generation.tasks
    ended = await asyncio.gather(*(made(tasks, f"boat {number}") for number in range(3)))
    seen["ended"] = [task.status for task in ended]
    seen["addresses"] = len({task.content.video_url for task in ended})
    failed = await made(tasks, "a [fail] boat")
    seen["failed"] = {"status": failed.status, "code": failed.error.code}
    seen["listed"] = (await tasks.list(status="succeeded")).total
    same = {"model": MODEL, "content": [{"type": "text", "text": "the same boat"}]}
    seen["same"] = len({task.id for task in await asyncio.gather(*(tasks.create(**same) for _ in range(3)))})
    if THROUGH_DOOR:
        forced = [
            await tasks.create(**same, extra_body={"vidrelay_force": True}),
            await tasks.create(**same, extra_headers={"X-Vidrelay-Force": "1"}),
        ]
        seen["forced"] = len({task.id for task in forced})
    try:
        await sdk.AsyncArk(base_url=base, api_key="wrong", max_retries=0).content_generation.tasks.list()
    except Exception as error:
        seen["refused"] = {"status": error.status_code, "code": error.code}
    print(json.dumps(seen))


asyncio.run(main(sys.argv[1]))

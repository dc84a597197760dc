"""
The official SDKs of Zhipu and Z.ai through a relay's door, each in an environment that it can live in: what the program
saw is printed as one JSON object.

Its arguments are the base address, and the package and class of the client.
"""

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import Any

from picture import BASE64
from zhipu_steps import clip, ended

BASE, PACKAGE, CLIENT = sys.argv[1:4]
KEY = os.environ["SDK_KEY"]
SDK = import_module(PACKAGE)
MODEL = "cogvideox-3"


def refused(call: Any, **asked: Any) -> list[Any]:
    """
    The class, the status and the code of a call that is refused.
    """
    try:
        call(**asked)
    except SDK.core.APIStatusError as error:
        told = error.response.json().get("error", {})
        return [type(error).__name__, error.status_code, told.get("code")]
    return []


def main() -> None:
    """
    Make a clip from text and two from the same picture, see one fail, ask three times at once, and be refused.
    """
    client = getattr(SDK, CLIENT)(base_url=BASE, api_key=KEY)
    videos = client.videos
    made = videos.generations(model=MODEL, prompt="a boat", request_id="once", duration=5)
    failing = videos.generations(model=MODEL, prompt="a [fail] boat")
    with ThreadPoolExecutor(3) as threads:
        same = list(threads.map(lambda _: videos.generations(model=MODEL, prompt="the same boat"), range(3)))
    forced = videos.generations(model=MODEL, prompt="the same boat", extra_body={"vidrelay_force": True})
    bare, uri = (
        videos.generations(model=MODEL, prompt="a still", image_url=picture)
        for picture in (BASE64, f"data:image/png;base64,{BASE64}")
    )
    seen: dict[str, Any] = {
        "created": [made.task_status, made.request_id, made.model],
        "same": len({one.id for one in same}),
        "forced": forced.id not in {one.id for one in same},
        "one_picture": bare.id == uri.id,
    }
    done = ended(client, made)
    seen["ended"] = [done.task_status, done.request_id, clip(done.video_result[0].url)]
    seen["pictured"] = ended(client, uri).task_status
    seen["failed"] = ended(client, failing).task_status
    seen["unknown"] = refused(videos.retrieve_videos_result, id="nobody")
    wrong = getattr(SDK, CLIENT)(base_url=BASE, api_key="id.wrong")
    seen["refused"] = refused(wrong.videos.generations, model=MODEL, prompt="a boat")[:2]
    print(json.dumps(seen))


main()

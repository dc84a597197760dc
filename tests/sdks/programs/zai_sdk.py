"""
The official `zai-sdk`, clients of both houses: what the program saw is printed as one JSON object.
"""

import json
import sys
from typing import Any

from zai import ZaiClient, ZhipuAiClient, core
from zhipu_steps import clip, ended


def refused(client: Any, **asked: Any) -> list[Any]:
    """
    The status and the code of a create that is refused.
    """
    try:
        client.videos.generations(model="cogvideox-3", **asked)
    except core.APIStatusError as error:
        return [type(error).__name__, error.status_code, error.response.json()["error"]["code"]]
    return []


def main(base: str) -> None:
    """
    Make a clip of two frames at each house, see one fail, say a request_id twice, and be refused with a wrong key.
    """
    seen: dict[str, Any] = {}
    for house, of in (("zai", ZaiClient), ("zhipu", ZhipuAiClient)):
        client = of(base_url=base, api_key="id.right", max_retries=0)
        frames = ["https://x.example/a.png", "https://x.example/b.png"]
        made = client.videos.generations(model="cogvideox-3", prompt="a boat", image_url=frames, request_id=house)
        seen[house] = {"created": [made.task_status, made.request_id, made.id.isdigit()]}
        done = ended(client, made)
        seen[house] |= {"ended": done.task_status, "clip": clip(done.video_result[0].url)}
    seen["twice"] = refused(client, prompt="a boat", request_id="zai")
    seen["failed"] = ended(client, client.videos.generations(model="cogvideox-3", prompt="a [fail] boat")).task_status
    client.videos.generations(model="cogvideox-3", prompt="a [queue=60] boat")
    seen["busy"] = refused(client, prompt="a boat")
    seen["refused"] = refused(ZaiClient(base_url=base, api_key="id.wrong", max_retries=0), prompt="a boat")
    print(json.dumps(seen))


main(sys.argv[1])

"""
The official `zhipuai` SDK, in an environment of its own: what the program saw is printed as one JSON object.
"""

import json
import sys
from typing import Any

from zhipu_steps import clip, ended
from zhipuai import ZhipuAI, core


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
    Make a clip, see one fail, say a request_id twice, and be refused with a wrong key.
    """
    client = ZhipuAI(base_url=base, api_key="id.right", max_retries=0)
    made = client.videos.generations(model="cogvideox-3", prompt="a boat", request_id="once")
    seen: dict[str, Any] = {"created": [made.task_status, made.request_id, made.id.isdigit()]}
    done = ended(client, made)
    seen |= {"ended": done.task_status, "clip": clip(done.video_result[0].url)}
    seen["twice"] = refused(client, prompt="a boat", request_id="once")
    seen["failed"] = ended(client, client.videos.generations(model="cogvideox-3", prompt="a [fail] boat")).task_status
    seen["refused"] = refused(ZhipuAI(base_url=base, api_key="id.wrong", max_retries=0), prompt="a boat")
    print(json.dumps(seen))


main(sys.argv[1])

"""
The official `volcengine` SDK's VisualService: what the program saw is printed as one JSON object.
"""

import json
import sys
import time
import urllib.request
from typing import Any
from urllib.parse import urlsplit

from volcengine.visual.VisualService import VisualService

ASKED: dict[str, Any] = {"req_key": "jimeng_ti2v_v30_pro", "prompt": "a paper boat", "frames": 121, "seed": -1}


def service(secret: str) -> Any:
    """
    The SDK's one object, with these keys and the pretend provider's address.
    """
    visual = VisualService()
    visual.set_ak("AKLTright")
    visual.set_sk(secret)
    visual.set_scheme("http")
    visual.set_host(urlsplit(sys.argv[1]).netloc)
    return visual


def ended(visual: Any, task_id: str) -> dict[str, Any]:
    """
    Ask until it is done.
    """
    while True:
        seen: dict[str, Any] = visual.cv_sync2async_get_result({"req_key": ASKED["req_key"], "task_id": task_id})
        if seen["data"]["status"] not in ("in_queue", "generating"):
            return seen
        time.sleep(0.05)


def refused(call: Any, form: dict[str, Any]) -> str:
    """
    What the SDK raises.
    """
    try:
        call(form)
    except Exception as error:
        return str(error)
    return "not refused"


visual = service("right-secret")
made = visual.cv_sync2async_submit_task(ASKED)
told: dict[str, Any] = {"made": [made["code"], made["message"], made["data"]["task_id"]]}
told["full"] = refused(visual.cv_sync2async_submit_task, {**ASKED, "prompt": "another"})
done = ended(visual, made["data"]["task_id"])
told["ended"] = done["data"]["status"]
with urllib.request.urlopen(done["data"]["video_url"]) as clip:
    told["is_mp4"] = clip.read()[4:8] == b"ftyp"
picture = {"binary_data_base64": ["iVBORw0KGgo=" * 1000], "prompt": "a [moderated] 猫"}
failed = visual.cv_sync2async_submit_task({**ASKED, **picture})
try:
    ended(visual, failed["data"]["task_id"])
except Exception as error:
    told["failed"] = str(error)
stopped = visual.cv_sync2async_submit_task({**ASKED, "prompt": "a [forever] boat"})
named = {"req_key": ASKED["req_key"], "task_id": stopped["data"]["task_id"]}
told["cancelled"] = visual.cv_cancel_task(named)["code"]
told["after"] = visual.cv_sync2async_get_result(named)["data"]["status"]
told["wrong"] = refused(service("wrong-secret").cv_sync2async_submit_task, ASKED)
print(json.dumps(told))

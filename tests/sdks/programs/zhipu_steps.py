"""
What the programs of Zhipu's and Z.ai's SDKs do alike, whichever environment they run in.
"""

import time
import urllib.request
from typing import Any


def clip(url: str) -> bool:
    """
    Fetch the clip, and tell whether it is one.
    """
    with urllib.request.urlopen(url) as reply:
        return reply.read()[4:8] == b"ftyp"


def ended(client: Any, made: Any) -> Any:
    """
    Ask until the clip is made, or failed.
    """
    while True:
        seen = client.videos.retrieve_videos_result(id=made.id)
        if seen.task_status != "PROCESSING":
            return seen
        time.sleep(0.05)

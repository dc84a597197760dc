"""
The official `openai` SDK, blocking: what the program saw is printed as one JSON object.
"""

import json
import os
import sys
import warnings

warnings.simplefilter("ignore")

import openai

KEY = os.environ.get("SDK_KEY", "right")

base = sys.argv[1]
seen = {}
with openai.OpenAI(base_url=base, api_key=KEY, max_retries=0) as client:
    video = client.videos.create(prompt="a paper boat", model="sora-2", seconds="4", size="1280x720")
    seen["created"] = {"status": video.status, "seconds": video.seconds, "size": video.size, "model": video.model}
    while video.status in ("queued", "in_progress"):
        video = client.videos.retrieve(video.id)
    seen["ended"] = {"status": video.status, "progress": video.progress, "completed": video.completed_at is not None}
    content = client.videos.download_content(video.id).read()
    seen["clip"] = {"bytes": len(content), "is_mp4": content[4:8] == b"ftyp"}
    seen["listed"] = [one.id for one in client.videos.list()] == [video.id]
    failed = client.videos.create_and_poll(prompt="a [moderated]", poll_interval_ms=20)
    seen["failed"] = {"status": failed.status, "code": failed.error.code}
    seen["deleted"] = client.videos.delete(video.id).deleted
    try:
        client.videos.retrieve(video.id)
    except openai.NotFoundError as error:
        seen["gone"] = error.status_code
with openai.OpenAI(base_url=base, api_key="wrong", max_retries=0) as client:
    try:
        client.videos.create(prompt="a")
    except openai.APIStatusError as error:
        seen["refused"] = {"status": error.status_code, "code": error.code}
print(json.dumps(seen))

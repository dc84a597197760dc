"""
The official `openai` SDK, blocking, with a new-api gateway as its base: what the program saw is printed as one JSON
object.
"""

import base64
import json
import os
import sys
import warnings

warnings.simplefilter("ignore")

import openai

KEY = os.environ.get("SDK_KEY", "right")
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAEAAAABACAIAAAAlC+aJAAAAT0lEQVR42u3PQQkAAAgEsItiVKMZzQi+hcEKLNXzWgQEBAQEBAQE"
    "BAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQELgtKuwFL1RdEugAAAABJRU5ErkJggg=="
)

base = sys.argv[1]
seen = {}
with openai.OpenAI(base_url=base, api_key=KEY, max_retries=0) as client:
    picture = ("a.png", PNG, "image/png")
    video = client.videos.create(
        prompt="a paper boat", model="sora-2", seconds="4", size="1280x720", input_reference=picture
    )
    seen["created"] = {"id": video.id[:5], "status": video.status, "seconds": video.seconds, "size": video.size}
    try:
        client.videos.download_content(f"{client.videos.create(prompt='[run=60] a boat', model='kling-v2-6').id}")
    except openai.BadRequestError as error:
        seen["early"] = {"status": error.status_code, "kind": error.type}
    while video.status in ("queued", "in_progress"):
        video = client.videos.retrieve(video.id)
    seen["ended"] = {"status": video.status, "progress": video.progress, "completed": video.completed_at is not None}
    seen["address"] = video.metadata["url"].startswith("http://")
    content = client.videos.download_content(video.id).read()
    seen["clip"] = content[4:8] == b"ftyp"
    failed = client.videos.create_and_poll(prompt="a [moderated]", model="kling-v2-6", poll_interval_ms=20)
    seen["failed"] = {"status": failed.status, "code": failed.error.code}
    try:
        client.videos.retrieve("task_nobody")
    except openai.BadRequestError as error:
        seen["gone"] = {"status": error.status_code, "code": error.code}
    try:
        client.videos.delete(video.id)
    except openai.APIStatusError as error:
        seen["deleted"] = error.status_code
with openai.OpenAI(base_url=base, api_key="wrong", max_retries=0) as client:
    try:
        client.videos.create(prompt="a", model="kling-v2-6")
    except openai.APIStatusError as error:
        seen["refused"] = {"status": error.status_code, "kind": error.type}
print(json.dumps(seen))

"""
The official runtime SDK of Ark, Volcengine's or BytePlus's, blocking: what the program saw is printed as one JSON
object.
"""

import json
import os
import sys
import urllib.request
import warnings
from importlib import import_module

warnings.simplefilter("ignore")

base, package = sys.argv[1:3]
sdk = import_module(package)
MODEL = "doubao-seedance-1-5-pro-251215"
KEY = os.environ.get("SDK_KEY", "right")
PICTURE = (
    "data:image/png;base64,"
    "iVBORw0KGgoAAAANSUhEUgAAAEAAAABACAIAAAAlC+aJAAAAT0lEQVR42u3PQQkAAAgEsItiVKMZzQi+hcEKLNXzWgQEBAQEBAQE"
    "BAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQELgtKuwFL1RdEugAAAABJRU5ErkJggg=="
)


def text(prompt):
    """
    What a create call takes as its content.
    """
    return [{"type": "text", "text": prompt}]


def waited(tasks, task_id):
    """
    The task when it has ended.
    """
    while (task := tasks.get(task_id=task_id)).status in ("queued", "running"):
        pass
    return task


seen = {}
tasks = sdk.Ark(base_url=base, api_key=KEY, max_retries=0).content_generation.tasks
picture = {"type": "image_url", "image_url": {"url": PICTURE}, "role": "first_frame"}
made = tasks.create(
    model=MODEL, content=[*text("a paper boat"), picture], ratio="16:9", duration=5, seed=7, safety_identifier="tag-1"
)
seen["created"] = {"id": made.id[:4], "tag": made.safety_identifier}
task = waited(tasks, made.id)
seen["ended"] = {
    "status": task.status,
    "seed": task.seed,
    "ratio": task.ratio,
    "duration": task.duration,
    "tag": task.safety_identifier,
    "tokens": task.usage.completion_tokens,
    "ordered": task.created_at <= task.updated_at,
}
with urllib.request.urlopen(task.content.video_url, timeout=10) as reply:
    clip = reply.read()
seen["clip"] = clip[4:8] == b"ftyp"

failed = waited(tasks, tasks.create(model=MODEL, content=text("a [moderated] boat")).id)
seen["failed"] = {"status": failed.status, "code": failed.error.code}

waiting = tasks.create(model=MODEL, content=text("a [queue=60] boat"))
listed = tasks.list(page_num=1, page_size=10, status="queued")
seen["queued"] = [one.id for one in listed.items] == [waiting.id]
tasks.delete(task_id=waiting.id)
seen["cancelled"] = tasks.get(task_id=waiting.id).status

running = tasks.create(model=MODEL, content=text("a [run=60] boat"))
while tasks.get(task_id=running.id).status != "running":
    pass
try:
    tasks.delete(task_id=running.id)
except Exception as error:
    seen["running"] = {"status": error.status_code, "state": tasks.get(task_id=running.id).status}

listed = tasks.list(task_ids=[made.id, running.id])
seen["listed"] = [listed.total, [one.id for one in listed.items] == [running.id, made.id]]
tasks.delete(task_id=made.id)
try:
    tasks.get(task_id=made.id)
except Exception as error:
    seen["erased"] = error.status_code
try:
    sdk.Ark(base_url=base, api_key="wrong", max_retries=0).content_generation.tasks.create(
        model=MODEL, content=text("a")
    )
except Exception as error:
    seen["refused"] = {"kind": type(error).__name__, "status": error.status_code, "code": error.code}
print(json.dumps(seen))

"""
`make demo`: one prompt, clicked three times, becomes one clip, and the second time comes from the cache.

It runs a relay of its own in `demo-state/` and names the built-in `preview` account, so that no key is spent whatever
stands in the environment or in the user's configuration. It speaks plain HTTP, as any app would. Each thing it shows
it also checks: where one is not so, it says which and exits with 1. Its last line is the path of the MP4.
"""

import asyncio
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import av
import httpx2

HOME = Path(__file__).resolve().parent.parent / "demo-state"
STATE = HOME / "state"
CLIP = HOME / "clip.mp4"

WANTED = {
    "account": "preview",
    "prompt": "A paper boat leaves the harbour at dawn, gulls overhead",
    "aspectRatio": "16:9",
    "resolution": "720p",
    "duration": 4,
    "seed": 7,
}
# The built-in renderer may be asked often, so that there is something to watch; a provider is asked every 2 to 15 s.
SETTINGS = """\
[poll]
first = "0.5s"
factor = 1.0
"""
PATIENCE_SECONDS = 120.0
BAR = 20


class NotSo(Exception):
    """
    Something that the demo claims did not hold.
    """


def claim(holds: bool, what: str) -> None:
    """
    Go on only where it is so.
    """
    if not holds:
        raise NotSo(what)


@contextmanager
def relay() -> Iterator[dict[str, Any]]:
    """
    A relay process of its own, ready; what its relay.json says. Stopped, and seen to exit with 0, at the end.
    """
    shutil.rmtree(HOME, ignore_errors=True)
    HOME.mkdir()
    settings = HOME / "vidrelay.toml"
    settings.touch(mode=0o600)
    settings.write_text(SETTINGS)
    environment = os.environ | {"VIDRELAY_STATE_DIR": str(STATE), "VIDRELAY_CONFIG": str(settings)}
    with (HOME / "relay.log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "vidrelay", "serve"], env=environment, stdout=subprocess.PIPE, stderr=log, text=True
        )
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            claim("listening on http://127.0.0.1:" in line, f"the relay did not start; see {log.name}")
            told = json.loads((STATE / "relay.json").read_text())
            yield told
            httpx2.post(address(told) + "/shutdown", headers={"X-Local-Token": told["token"]}, trust_env=False)
            claim(process.wait(timeout=20) == 0, f"the relay did not stop cleanly; see {log.name}")
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()


def address(told: dict[str, Any]) -> str:
    """
    Where that relay listens.
    """
    return f"http://127.0.0.1:{told['port']}"


async def click_three_times(app: httpx2.AsyncClient) -> str:
    """
    Send the same request three times at once; the id of the one task they made.
    """
    print(f'\n"{WANTED["prompt"]}"\nclicked three times at once:')
    answers = await asyncio.gather(*(app.post("/generate", json=WANTED) for _ in range(3)))
    for answer in answers:
        claim(answer.status_code in (200, 202), f"POST /generate answered {answer.status_code}: {answer.text}")
        task = answer.json()
        print(f"  {answer.status_code}  {task['taskId']}  {'joined it' if task['deduped'] else 'a new task'}")
    tasks = [answer.json() for answer in answers]
    claim(len({task["taskId"] for task in tasks}) == 1, "the three answers name different tasks")
    claim([task["deduped"] for task in tasks].count(True) == 2, "not exactly two answers are deduped")
    listed = (await app.get("/tasks")).json()["tasks"]
    claim(len(listed) == 1, f"the relay holds {len(listed)} tasks instead of one")
    print("  one task was made, two answers were deduped")
    return str(tasks[0]["taskId"])


async def events(app: httpx2.AsyncClient, task_id: str) -> AsyncIterator[dict[str, Any]]:
    """
    The task, each time that it moves.
    """
    async with app.stream("GET", f"/task/{task_id}/events") as answer:
        claim(answer.status_code == 200, f"GET /task/{task_id}/events answered {answer.status_code}")
        async for line in answer.aiter_lines():
            if line.startswith("data:"):
                yield json.loads(line.removeprefix("data:"))


def stage(task: dict[str, Any]) -> str:
    """
    One line on where the task stands.
    """
    words = [f"{task['state']:<11}"]
    if task["ahead"] is not None:
        words.append("next in line" if task["ahead"] == 0 else f"{task['ahead']} ahead")
    if task["state"] == "running":
        words.append(f"{task['remoteState'] or '':<7}")
    if task["progress"] is not None:
        words.append(f"{bar(task['progress'])} {task['progress']:4.0%}")
    if task["eta"] is not None:
        words.append(f" about {task['eta']['seconds']:.0f} s left")
    if task["blocked"] is not None:
        words.append(f"waits for {task['blocked']['reason']}")
    return " ".join(words).rstrip()


def bar(share: float) -> str:
    """
    A bar that is filled so far.
    """
    filled = round(share * BAR)
    return "█" * filled + "░" * (BAR - filled)


async def follow(app: httpx2.AsyncClient, task_id: str) -> dict[str, Any]:
    """
    Show the task's stages as they come; the task once it is done.
    """
    print("\nIts stages:")
    start = time.perf_counter()
    seen: list[str] = []
    shown = ""
    async with asyncio.timeout(PATIENCE_SECONDS):
        async for task in events(app, task_id):
            line = stage(task)
            if line != shown:
                print(f"  {time.perf_counter() - start:5.1f} s  {line}", flush=True)
            shown = line
            seen.append(task["state"])
            if task["state"] in ("done", "failed", "cancelled", "expired"):
                break
    claim(seen[-1] == "done", f"the task ended {seen[-1]}: {task['error']}")
    claim("running" in seen, "the task was never seen running")
    return task


async def fetch(app: httpx2.AsyncClient, task: dict[str, Any]) -> None:
    """
    Save the file and look into it.
    """
    told = task["result"]["files"][0]
    data = (await app.get(told["url"])).content
    claim(hashlib.sha256(data).hexdigest() == told["sha256"], "the file is not the one that the task tells of")
    CLIP.write_bytes(data)
    with av.open(CLIP) as clip:
        video = clip.streams.video[0]
        frames = sum(1 for _ in clip.decode(video))
        codec, width, height = video.codec_context.name, video.width, video.height
        seconds = (clip.duration or 0) / av.time_base
    print(f"\nThe file: {codec} in MP4, {width}x{height}, {seconds:.1f} s, {frames} frames, {len(data) / 1000:.0f} kB")
    claim(codec == "h264", f"the file holds {codec} instead of h264")
    claim((width, height) == (1280, 720), f"the file is {width}x{height} instead of 1280x720")
    claim(abs(seconds - WANTED["duration"]) < 0.2, f"the file lasts {seconds} s")  # type: ignore[operator]
    claim(frames > seconds, "the file is a still picture")


async def ask_again(app: httpx2.AsyncClient, task: dict[str, Any]) -> None:
    """
    The same request, later: the result is here already.
    """
    start = time.perf_counter()
    answer = await app.post("/generate", json=WANTED)
    took = time.perf_counter() - start
    again = answer.json()
    claim(answer.status_code == 200 and again["taskId"] == task["taskId"], "asked again, another task came")
    claim(again["fromCache"] is True, "asked again, the answer did not come from the cache")
    stats = (await app.get("/stats")).json()
    claim(stats["remoteCreates"] == 1, f"{stats['remoteCreates']} remote creates were made instead of one")
    print(f"\nAsked again: answered from the cache in {1000 * took:.0f} ms")
    print(
        f"In all: {stats['submits']} submits, {stats['deduped']} deduped, {stats['cacheHits']} from the cache, ", end=""
    )
    print(f"{stats['remoteCreates']} create call")


def segments(timings: dict[str, float | None]) -> None:
    """
    Where the time went, as bars on one scale.
    """
    print("\nWhere the time went:")
    total = timings["total"] or 0.0
    claim(total > 0, "the task does not tell its total time")
    for name in ("wait", "submit", "queue", "execute", "return", "download", "total"):
        seconds = timings[name]
        if seconds is None:
            print(f"  {name:<9}    not told")
        else:
            print(f"  {name:<9} {seconds:8.3f} s  {'█' * round(seconds / total * BAR) or '▏'}")


async def show(told: dict[str, Any]) -> None:
    """
    The whole walk, as an app would go it.
    """
    async with httpx2.AsyncClient(
        base_url=address(told), headers={"X-Local-Token": told["token"]}, timeout=30, trust_env=False
    ) as app:
        task_id = await click_three_times(app)
        task = await follow(app, task_id)
        await fetch(app, task)
        await ask_again(app, task)
        segments(task["timings"])


def main() -> int:
    """
    Show it; 0 where all of it was so.
    """
    try:
        with relay() as told:
            print(f"vidrelay {told['version']} listens on {address(told)}; its state is in {HOME.name}/")
            asyncio.run(show(told))
    except NotSo as error:
        print(f"\nnot so: {error}", file=sys.stderr)
        return 1
    print("\nThe relay has stopped. The clip:")
    print(CLIP)
    return 0


if __name__ == "__main__":
    sys.exit(main())

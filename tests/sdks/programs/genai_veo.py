"""
The official `google-genai` SDK 2.x, blocking and asynchronous, making clips with Veo: what the program saw is printed
as one JSON object.
"""

import asyncio
import json
import os
import sys
import time
import warnings
from typing import Any

warnings.simplefilter("ignore")

from google import genai
from google.genai import errors, types
from picture import PNG

BASE = sys.argv[1]
KEY = os.environ.get("SDK_KEY", "right")
MODEL = "veo-3.1-generate-preview"


def client_of(key: str, **headers: str) -> genai.Client:
    """
    A client of that key at the address that was given.
    """
    return genai.Client(api_key=key, http_options=types.HttpOptions(base_url=BASE, headers=headers))


def blocking() -> dict[str, Any]:
    """
    Make a clip with both frames, fetch it; a job that is filtered, one that fails, a key that is refused.
    """
    seen: dict[str, Any] = {}
    client = client_of(KEY)
    picture = types.Image(image_bytes=PNG, mime_type="image/png")
    made = client.models.generate_videos(
        model=MODEL,
        prompt="a paper boat",
        image=picture,
        config=types.GenerateVideosConfig(
            duration_seconds=8, aspect_ratio="16:9", resolution="720p", negative_prompt="rain", last_frame=picture
        ),
    )
    seen["created"] = [made.name.startswith(f"models/{MODEL}/operations/"), made.done]

    def waited(operation: types.GenerateVideosOperation) -> types.GenerateVideosOperation:
        while not operation.done:
            time.sleep(0.05)
            operation = client.operations.get(operation)
        return operation

    # All are made before the first is waited for, since a relay asks the provider for each after ten seconds only.
    filtered = client.models.generate_videos(model=MODEL, prompt="a [moderated] boat")
    failed = client.models.generate_videos(model=MODEL, prompt="a [fail] boat")
    made = waited(made)
    video = made.response.generated_videos[0].video
    seen["ended"] = [made.done, made.error, video.uri.startswith("https://generativelanguage.googleapis.com/")]
    seen["is_mp4"] = client.files.download(file=video)[4:8] == b"ftyp"
    filtered = waited(filtered)
    seen["filtered"] = [
        filtered.response.generated_videos,
        filtered.response.rai_media_filtered_count,
        len(filtered.response.rai_media_filtered_reasons),
    ]
    seen["failed"] = waited(failed).error["code"]
    other = client_of("wrong")
    try:
        other.models.generate_videos(model=MODEL, prompt="a")
    except errors.ClientError as error:
        seen["refused"] = [error.code, error.status]
    return seen


async def at_once(*prompts: str) -> list[bool | None]:
    """
    Make those clips at once.
    """
    client = client_of(KEY)

    async def one(prompt: str) -> bool | None:
        made = await client.aio.models.generate_videos(model=MODEL, prompt=prompt)
        while not made.done:
            await asyncio.sleep(0.05)
            made = await client.aio.operations.get(made)
        return bool(made.response.generated_videos)

    return list(await asyncio.gather(*map(one, prompts)))


def again() -> list[bool]:
    """
    Whether the same wish is answered with the clip that is there, in two versions of which the second is asked for.
    """
    ordinary, forcing = client_of(KEY), client_of(KEY, **{"X-Vidrelay-Force": "1"})
    clips = [one.models.generate_videos(model=MODEL, prompt="boat 0") for one in (ordinary, ordinary, forcing)]
    return [clips[1].name == clips[0].name, clips[2].name == clips[0].name]


THROUGH_A_DOOR = "same" in sys.argv
SAME = ["the same boat"] * 3 if THROUGH_A_DOOR else []
told = {**blocking(), "at_once": asyncio.run(at_once("boat 0", "boat 1", "boat 2", *SAME))}
if THROUGH_A_DOOR:
    told["again"] = again()
print(json.dumps(told))

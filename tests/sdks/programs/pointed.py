"""
Official SDKs as they come: each is made with no argument, so that address and key are what its environment says. What
the program saw is printed as one JSON object.
"""

import json
import sys
import time
import urllib.request
import warnings
from collections.abc import Callable
from typing import Any

warnings.simplefilter("ignore")

PROMPT = "a paper boat"


def is_clip(url: str) -> bool:
    """
    Whether that address, fetched without a key, is a clip.
    """
    with urllib.request.urlopen(url) as clip:
        return bool(clip.read()[4:8] == b"ftyp")


def until(look: Callable[[], Any], *ended: str) -> Any:
    """
    Look until what is seen has one of those states.
    """
    while True:
        seen = look()
        if getattr(seen, "status", None) in ended or getattr(seen, "state", None) in ended:
            return seen
        time.sleep(0.05)


def openai() -> bool:
    """
    The bytes of the clip come through the SDK.
    """
    from openai import OpenAI

    client = OpenAI()
    made = client.videos.create_and_poll(model="sora-2", prompt=PROMPT, poll_interval_ms=50)
    return client.videos.download_content(made.id).read()[4:8] == b"ftyp"


def replicate() -> bool:
    """
    The module's own client.
    """
    import replicate

    made = replicate.models.predictions.create(model="minimax/video-01", input={"prompt": PROMPT})
    made.wait()
    return is_clip(made.output)


def fal() -> bool:
    """
    The module's own functions, over https; with a picture in line, which is sent as it came.
    """
    import fal_client
    from picture import PNG

    model = "fal-ai/kling-video/v2/master/image-to-video"
    asked = {"prompt": PROMPT, "image_url": fal_client.encode(PNG, "image/png")}
    made = fal_client.subscribe(model, asked)
    again = fal_client.run(model, asked)
    url = made["video"]["url"]
    # Good for a client that trusts nothing of the relay's, as most that fetch a file are.
    return bool(made == again) and url.startswith("http://127.0.0.1:") and is_clip(url)


def runway() -> bool:
    """
    With the SDK's own waiting.
    """
    import runwayml

    client = runwayml.RunwayML()
    made = client.text_to_video.create(model="gen4.5", prompt_text=PROMPT, ratio="1280:720", duration=5)
    return is_clip(until(lambda: client.tasks.retrieve(made.id), "SUCCEEDED").output[0])


def luma() -> bool:
    """
    Dream Machine.
    """
    import lumaai

    client = lumaai.LumaAI()
    made = client.generations.video.create(model="ray-2", prompt=PROMPT, duration="5s", resolution="720p")
    return is_clip(until(lambda: client.generations.get(made.id), "completed").assets.video)


def luma_agents() -> bool:
    """
    The Agents API.
    """
    import luma_agents

    client = luma_agents.Luma()
    made = client.generations.create(prompt=PROMPT, model="ray-3.2", type="video")
    return is_clip(until(lambda: client.generations.get(made.id), "completed").output[0].url)


def google() -> bool:
    """
    Veo; the clip is fetched through the SDK.
    """
    from google import genai

    client = genai.Client()
    made = client.models.generate_videos(model="veo-3.1-generate-preview", prompt=PROMPT)
    while not made.done:
        time.sleep(0.05)
        made = client.operations.get(made)
    return client.files.download(file=made.response.generated_videos[0].video)[4:8] == b"ftyp"


def dashscope() -> bool:
    """
    The old surface, with its own waiting.
    """
    from dashscope import VideoSynthesis

    made = VideoSynthesis.async_call(model="wan2.6-t2v", prompt=PROMPT)
    return is_clip(VideoSynthesis.wait(made).output.video_url)


def zai() -> bool:
    """
    Z.ai's own package.
    """
    from zai import ZaiClient

    client = ZaiClient()
    made = client.videos.generations(model="cogvideox-3", prompt=PROMPT)
    while (seen := client.videos.retrieve_videos_result(id=made.id)).task_status == "PROCESSING":
        time.sleep(0.05)
    return is_clip(seen.video_result[0].url)


def zhipuai() -> bool:
    """
    Zhipu's older package.
    """
    from zhipuai import ZhipuAI

    client = ZhipuAI()
    made = client.videos.generations(model="cogvideox-3", prompt=PROMPT)
    while (seen := client.videos.retrieve_videos_result(id=made.id)).task_status == "PROCESSING":
        time.sleep(0.05)
    return is_clip(seen.video_result[0].url)


SDKS = {
    "openai": openai,
    "replicate": replicate,
    "fal": fal,
    "runway": runway,
    "luma": luma,
    "luma-agents": luma_agents,
    "google": google,
    "dashscope": dashscope,
    "zai": zai,
    "zhipuai": zhipuai,
}

print(json.dumps({"is_clip": SDKS[sys.argv[1]]()}))

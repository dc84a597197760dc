"""
Run by an SDK's own Python: one create call, or several equal ones at once, with the SDK's own defaults.

Arguments: the SDK's name, the base address, how many. The key is in `SDK_KEY`. Prints what each call came to.
"""

import json
import os
import sys
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

warnings.simplefilter("ignore")

KEY = os.environ["SDK_KEY"]
PROMPT = "a paper boat"
Create = Callable[[], Any]


def of_openai(base: str) -> Create:
    """The create call of openai."""
    import openai

    client = openai.OpenAI(base_url=base, api_key=KEY)
    return lambda: client.videos.create(prompt=PROMPT, model="sora-2", seconds="4", size="1280x720")


def of_replicate(base: str) -> Create:
    """The create call of replicate."""
    import replicate

    client = replicate.Client(base_url=base, api_token=KEY)
    return lambda: client.models.predictions.create(model="acme/video", input={"prompt": PROMPT})


def of_fal(base: str) -> Create:
    """The create call of fal-client, whose addresses are constants with https in them."""
    import fal_client
    import fal_client.client

    fal_client.client.QUEUE_URL_FORMAT = base + "/"
    client = fal_client.SyncClient(key=KEY)
    return lambda: client.submit("fal-ai/wan-t2v", {"prompt": PROMPT})


def of_runway(base: str) -> Create:
    """The create call of runwayml."""
    import runwayml

    client = runwayml.RunwayML(base_url=base, api_key=KEY)
    asked = {"model": "gen4.5", "prompt_text": PROMPT, "ratio": "1280:720", "duration": 5}
    return lambda: client.text_to_video.create(**asked)


def of_luma(base: str) -> Create:
    """The create call of lumaai."""
    import lumaai

    client = lumaai.LumaAI(base_url=base, auth_token=KEY)
    return lambda: client.generations.video.create(prompt=PROMPT, model="ray-2")


def of_luma_agents(base: str) -> Create:
    """The create call of luma-agents."""
    import luma_agents

    client = luma_agents.Luma(base_url=base, auth_token=KEY)
    return lambda: client.generations.create(prompt=PROMPT, type="video")


def of_veo(base: str) -> Create:
    """The create call of google-genai 2.x, Veo."""
    from google import genai
    from google.genai import types

    client = genai.Client(api_key=KEY, http_options=types.HttpOptions(base_url=base))
    return lambda: client.models.generate_videos(model="veo-3.1-generate-preview", prompt=PROMPT)


def of_interactions(base: str) -> Create:
    """The create call of google-genai 3.x, Interactions."""
    from google import genai
    from google.genai import types

    client = genai.Client(api_key=KEY, http_options=types.HttpOptions(base_url=base))
    asked = {"background": True, "response_format": {"type": "video", "delivery": "uri"}}
    return lambda: client.interactions.create(model="gemini-omni-1.2-flash", input=PROMPT, **asked)


def of_openrouter(base: str) -> Create:
    """The create call of openrouter."""
    import openrouter

    client = openrouter.OpenRouter(api_key=KEY, server_url=base)
    return lambda: client.video_generation.generate(model="google/veo-3.1", prompt=PROMPT)


def of_dashscope(base: str) -> Create:
    """The create call of dashscope, the new surface."""
    from dashscope import Client

    client = Client(base_url=base, api_key=KEY)
    return lambda: client.videos.jobs.create(model="wan3.0-video", prompt=PROMPT)


def of_dashscope_legacy(base: str) -> Create:
    """The create call of dashscope, the old surface."""
    import dashscope
    from dashscope import VideoSynthesis

    dashscope.base_http_api_url, dashscope.api_key = base, KEY

    def create() -> Any:
        made = VideoSynthesis.async_call(model="wan2.6-t2v", prompt=PROMPT)
        if made.status_code != 200:
            raise RuntimeError(made.code)
        return made

    return create


def of_ark(base: str, package: str = "volcenginesdkarkruntime") -> Create:
    """The create call of volcengine-ark-runtime."""
    from importlib import import_module

    client = import_module(package).Ark(base_url=base, api_key=KEY)
    text = [{"type": "text", "text": PROMPT}]
    return lambda: client.content_generation.tasks.create(model="doubao-seedance-1-5-pro-251215", content=text)


def of_byteplus(base: str) -> Create:
    """The create call of byteplus."""
    return of_ark(base, "byteplussdkarkruntime")


def of_zai(base: str) -> Create:
    """The create call of zai-sdk."""
    from zai import ZaiClient

    client = ZaiClient(base_url=base, api_key=KEY)
    return lambda: client.videos.generations(model="cogvideox-3", prompt=PROMPT)


def of_zhipuai(base: str) -> Create:
    """The create call of zhipuai."""
    from zhipuai import ZhipuAI

    client = ZhipuAI(base_url=base, api_key=KEY)
    return lambda: client.videos.generations(model="cogvideox-3", prompt=PROMPT)


def tried(create: Create) -> str:
    """
    What a call came to.
    """
    try:
        create()
    except Exception as error:
        return type(error).__name__
    return "made"


def main(name: str, base: str, count: int) -> None:
    """
    Make the calls.
    """
    create = globals()[f"of_{name}"](base)
    with ThreadPoolExecutor(count) as pool:
        print(json.dumps({"calls": list(pool.map(tried, [create] * count))}))


main(sys.argv[1], sys.argv[2], int(sys.argv[3]))

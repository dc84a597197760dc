"""
The official `tencentcloud` SDK for VCLM, blocking and asynchronous: what the program saw is printed as one JSON object.
"""

import asyncio
import json
import sys
import time
import urllib.request
from typing import Any
from urllib.parse import urlsplit

from tencentcloud.common.credential import Credential
from tencentcloud.common.exception import TencentCloudSDKException
from tencentcloud.common.profile.client_profile import ClientProfile
from tencentcloud.common.profile.http_profile import HttpProfile
from tencentcloud.vclm.v20240523 import models, vclm_client, vclm_client_async

PROFILE = ClientProfile(httpProfile=HttpProfile(protocol="http", endpoint=urlsplit(sys.argv[1]).netloc))
ENDED = ("DONE", "FAIL")


def filled(request: Any, **fields: Any) -> Any:
    """
    A request of the SDK's with these fields.
    """
    request.from_json_string(json.dumps(fields))
    return request


def refused(call: Any, request: Any) -> str:
    """
    The code of the error that the SDK raises.
    """
    try:
        call(request)
    except TencentCloudSDKException as error:
        return str(error.get_code())
    return "not refused"


def blocking() -> dict[str, Any]:
    """
    Hunyuan's jobs: one that is fetched, one too many, one that fails, one that nobody knows, a wrong secret.
    """
    client = vclm_client.VclmClient(Credential("AKIDright", "right-secret"), "ap-guangzhou", PROFILE)

    def ended(job_id: str) -> Any:
        while True:
            seen = client.DescribeHunyuanToVideoJob(filled(models.DescribeHunyuanToVideoJobRequest(), JobId=job_id))
            if seen.Status in ENDED:
                return seen
            time.sleep(0.05)

    asked = filled(models.SubmitHunyuanToVideoJobRequest(), Prompt="a paper boat", Resolution="720p", LogoAdd=0)
    made = client.SubmitHunyuanToVideoJob(asked)
    told: dict[str, Any] = {"made": made.JobId}
    told["full"] = refused(client.SubmitHunyuanToVideoJob, asked)
    done = ended(made.JobId)
    told["ended"] = done.Status
    with urllib.request.urlopen(done.ResultVideoUrl) as clip:
        told["is_mp4"] = clip.read()[4:8] == b"ftyp"
    picture = {"Image": {"Base64": "iVBORw0KGgo=" * 1000}, "Prompt": "[moderated] 猫"}
    failed = ended(client.SubmitHunyuanToVideoJob(filled(models.SubmitHunyuanToVideoJobRequest(), **picture)).JobId)
    told["failed"] = [failed.Status, failed.ErrorCode, failed.ErrorMessage]
    unknown = filled(models.DescribeHunyuanToVideoJobRequest(), JobId="1")
    told["unknown"] = refused(client.DescribeHunyuanToVideoJob, unknown)
    wrong = vclm_client.VclmClient(Credential("AKIDright", "wrong-secret"), "ap-guangzhou", PROFILE)
    told["wrong"] = refused(wrong.SubmitHunyuanToVideoJob, asked)
    return told


async def by_its_own_name() -> dict[str, Any]:
    """
    A job of one of Kling's models, asked for by the id that the client gave it.
    """
    client = vclm_client_async.VclmClient(Credential("AKIDright", "right-secret"), "ap-guangzhou", PROFILE)
    asked = {"Model": "v2.6", "Prompt": "a boat", "Duration": "5", "AspectRatio": "16:9", "ExternalTaskId": "mine-1"}
    made = await client.SubmitTextToVideoJob(filled(models.SubmitTextToVideoJobRequest(), **asked))
    while True:
        named = filled(models.DescribeTextToVideoJobRequest(), ExternalTaskId="mine-1")
        seen = await client.DescribeTextToVideoJob(named)
        if seen.Status in ENDED:
            break
        await asyncio.sleep(0.05)
    by_id = await client.DescribeTextToVideoJob(filled(models.DescribeTextToVideoJobRequest(), JobId=made.JobId))
    return {"made": made.ExternalTaskId, "ended": seen.Status, "echoed": [by_id.ExternalTaskId, by_id.Duration]}


print(json.dumps({**blocking(), "named": asyncio.run(by_its_own_name())}))

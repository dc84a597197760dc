"""
Tencent's words, said once.
"""

from typing import Any

from vidrelay.core.messages import HttpReply
from vidrelay.providers.facts import Facts
from vidrelay.providers.replies import object_of, read_object, text_of
from vidrelay.providers.verdicts import Codes, Meaning, Said, Standing, StatusWords, said

FACTS = Facts(
    title="Tencent VCLM (Hunyuan; Kling's models)",
    takes="text, first frame; with Kling's models a last frame too",
    pictures="https address, or bare base64 in the body; 8 MB of base64 (Kling's models: 10 MB, 300 pixels a side)",
    limits="not told (Hunyuan: 1); a task too many is refused (RequestLimitExceeded.JobNumExceed)",
    lost="Kling's models: looked up by our own ExternalTaskId; Hunyuan: cannot be found, a person decides",
    cancel="never",
    results="24 hours",
    verified="SDK tencentcloud-sdk-python-vclm 3.1.127 run against the pretend provider, 30 November 2026",
)

HOST = "https://vclm.tencentcloudapi.com"
HOSTS = ("vclm.tencentcloudapi.com", "vclm.intl.tencentcloudapi.com", "*.myqcloud.com")
VERSION, REGION = "2024-05-23", "ap-guangzhou"

HUNYUAN, TEXT, IMAGE = "HunyuanToVideo", "TextToVideo", "ImageToVideo"
"""What stands between Submit or Describe and Job in an action's name; the latter two are Kling's models."""
DIALECTS = {"hunyuan": (HUNYUAN,), "kling": (TEXT, IMAGE)}

DEFAULT_MODEL = "v2.5"
"""Of Kling's models; one that makes clips of text and of pictures."""
FIVE_OR_TEN, THREE_TO_FIFTEEN = ("v1", "v2"), ("v3",)
RATIOS = ("16:9", "9:16", "1:1")
MAX_PROMPT, MAX_HUNYUAN_PROMPT = 2500, 200
HUNYUAN_PICTURE_BYTES, HUNYUAN_MAX_EDGE, HUNYUAN_MIN_EDGE, HUNYUAN_MAX_RATIO = 6_000_000, 5000, 50, 4.0
"""8 MB of base64 hold 6 MB of a picture."""
PICTURE_BYTES, MIN_EDGE, MAX_RATIO = 7_500_000, 300, 2.5
"""A signed call has 10 MB at most, so both frames together have no more than one alone."""

STATES = StatusWords(
    "tencent",
    {"WAIT": Standing.WAITING, "RUN": Standing.WORKING, "DONE": Standing.DONE, "FAIL": Standing.FAILED},
)

CODES: Codes = {
    "RequestLimitExceeded*": Meaning.RATE,
    "RequestLimitExceeded.JobNumExceed": Meaning.WINDOW,
    **dict.fromkeys(
        ("FailedOperation.InnerError", "FailedOperation.RequestTimeout", "FailedOperation.ServerError"), Meaning.AGAIN
    ),
    "InternalError*": Meaning.AGAIN,
    **dict.fromkeys(("FailedOperation.ModerationFailed", "FailedOperation.ModerationAudioFailed"), Meaning.MODERATED),
    # InvalidParameterValue begins so too.
    **dict.fromkeys(("InvalidParameter*", "MissingParameter*", "FailedOperation.Image*"), Meaning.REJECTED),
    **dict.fromkeys(("ResourcesSoldOut*", "ResourceInsufficient*", "ResourceUnavailable*"), Meaning.BALANCE),
    **dict.fromkeys(("FailedOperation.JobNotExist", "FailedOperation.JobNotFound"), Meaning.MISSING),
    **dict.fromkeys(("AuthFailure*", "UnauthorizedOperation*", "IpInBlacklist", "IpNotInWhitelist"), Meaning.AUTH),
    # What every service of Tencent Cloud may say of a call that it does not carry out.
    **dict.fromkeys(("UnknownParameter*", "UnsupportedOperation*", "OperationDenied*"), Meaning.REJECTED),
    **dict.fromkeys(("InvalidAction", "InvalidRequest", "ActionOffline", "RequestSizeLimitExceeded"), Meaning.REJECTED),
    **dict.fromkeys(("NoSuchProduct", "NoSuchVersion", "UnsupportedProtocol", "UnsupportedRegion"), Meaning.REJECTED),
    "LimitExceeded*": Meaning.BALANCE,
}


def taken(reply: HttpReply) -> dict[str, Any] | None:
    """
    The response of a call that went through: its status alone does not say so, an error has the same.
    """
    response = _response(reply)
    return None if not 200 <= reply.status < 300 or response is None or response.get("Error") is not None else response


def error(reply: HttpReply, *, secret: str | None) -> Said:
    """
    Read `{"Response": {"Error": {"Code", "Message"}}}`.
    """
    inner = object_of(_response(reply) or {}, "Error")
    return said(reply, CODES, code=text_of(inner, "Code"), detail=text_of(inner, "Message"), secret=secret)


def _response(reply: HttpReply) -> dict[str, Any] | None:
    response = (read_object(reply) or {}).get("Response")
    return response if isinstance(response, dict) else None

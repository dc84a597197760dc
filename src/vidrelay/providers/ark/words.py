"""
Ark's words, said once.
"""

import re
from datetime import timedelta

from vidrelay.core.messages import HttpReply
from vidrelay.providers.facts import Facts
from vidrelay.providers.replies import object_of, read_object, text_of
from vidrelay.providers.verdicts import Codes, Meaning, Said, Standing, StatusWords, meaning_of, said

FACTS = Facts(
    title="Seedance (Volcengine Ark, BytePlus ModelArk)",
    takes="text, first frame, first and last frame, references; video and audio by address, in extra.content",
    pictures="https address, or data URI in the body; 30 MB each, the body 64 MB at most",
    limits="not told; more tasks than run are taken and wait, up to a cap of the account's",
    lost="found in the list of 7 days by its safety_identifier, which is the relay's own tag unless extra gives one",
    cancel="while it waits; a running job cannot be stopped",
    results="24 hours",
    verified="SDKs volcengine-ark-runtime 5.0.54 and byteplus-python-sdk-v2 3.0.63 run against the pretend provider, "
    "30 November 2026",
)

VOLCENGINE, BYTEPLUS = "volcengine", "byteplus"
BASES = {
    VOLCENGINE: "https://ark.cn-beijing.volces.com/api/v3",
    BYTEPLUS: "https://ark.ap-southeast.bytepluses.com/api/v3",
}
HOSTS = {
    VOLCENGINE: ("ark.cn-beijing.volces.com", "ark-content-generation-cn-beijing.tos-cn-beijing.volces.com"),
    # Where BytePlus keeps its results is told by nobody for sure: it is one of these two, or allow_hosts names it.
    BYTEPLUS: (
        "ark.ap-southeast.bytepluses.com",
        "ark-content-generation-ap-southeast-1.tos-ap-southeast-1.volces.com",
        "ark-content-generation-ap-southeast-1.tos-ap-southeast-1.bytepluses.com",
    ),
}
TASKS = "/contents/generations/tasks"
FILES = ("video_url", "file_url", "last_frame_url")
"""What a finished task's `content` names, the clip first."""
DEFAULT_MODEL = "doubao-seedance-1-5-pro-251215"
"""Volcengine's; BytePlus spells its models in another way."""
DURATIONS = {"seedance-2-5": (4, 30), "seedance-2-0": (4, 15), "seedance-1-5": (4, 12), "seedance-1-0": (2, 12)}
"""The seconds that a model's clips may have, by what its name contains."""
ANY_DURATION = (1, 3600)
UNSEEDED = ("seedance-2-",)
"""Models of these names have no seed."""
RATIOS = ("16:9", "4:3", "1:1", "3:4", "9:16", "21:9", "adaptive")
RESOLUTIONS = ("480p", "720p", "1080p", "4k")
NO_4K = ("seedance-1-",)
"""Models of these names go to 1080p."""
RANDOM_SEED, MAX_SEED = -1, 2**32 - 1
MAX_REFERENCES = 30
"""No number is told; what is too many for a model it refuses by itself."""
PICTURE_BYTES = 30_000_000
SOUND_BYTES = 15_000_000
PICTURES_BYTES = 48_000_000
"""All pictures of a request together: a body may be 64 MB, and base64 makes four bytes of three."""
KEPT = timedelta(days=7)
"""So far back goes the list."""

STATUSES = StatusWords(
    "ark",
    {
        "queued": Standing.WAITING,
        "running": Standing.WORKING,
        "succeeded": Standing.DONE,
        "failed": Standing.FAILED,
        "cancelled": Standing.CANCELLED,
        "expired": Standing.EXPIRED,
    },
)

CODES: Codes = {
    **dict.fromkeys(
        (
            *("MissingParameter*", "InvalidParameter*", "InvalidEndpoint.ClosedEndpoint", "ModelNotOpen"),
            *("InvalidEndpointOrModel.NotFound", "InvalidEndpointOrModel.ModelIDAccessDisabled"),
        ),
        Meaning.REJECTED,
    ),
    "AuthenticationError": Meaning.AUTH,
    # Of one model, endpoint or kind of call, which the account may not use: the key is good for all the others, and for
    # the jobs that are under way, whose clips are kept for a day alone.
    **dict.fromkeys(("AccessDenied*", "OperationDenied*"), Meaning.REJECTED),
    # SetLimitExceeded comes with 429, and yet no waiting helps: a person has set that cap.
    **dict.fromkeys(("AccountOverdueError", "OperationDenied.ServiceOverdue", "SetLimitExceeded"), Meaning.BALANCE),
    **dict.fromkeys(
        (
            *("RateLimitExceeded*", "ModelAccountRpmRateLimitExceeded", "ModelAccountTpmRateLimitExceeded"),
            *("APIAccountRpmRateLimitExceeded", "AccountRateLimitExceeded", "RequestBurstTooFast", "ServerOverloaded"),
        ),
        Meaning.RATE,
    ),
    **dict.fromkeys(("QuotaExceeded", "InflightBatchsizeExceeded"), Meaning.WINDOW),
    "InternalServiceError": Meaning.AGAIN,
}
_POLICY = re.compile(r"SensitiveContentDetected|RiskDetection")
_TRIAL = re.compile(r"trial|免费|试用", re.IGNORECASE)


def error(reply: HttpReply, *, key: str | None) -> Said:
    """
    Read `{"error": {"code", "message", "param", "type"}}`.
    """
    inner = object_of(read_object(reply) or {}, "error")
    code, message = text_of(inner, "code"), text_of(inner, "message")
    meaning = of_code(code, message)
    codes = {} if code is None or meaning is None else {code: meaning}
    return said(reply, codes, code=code, detail=message, secret=key)


def of_code(code: str | None, message: str | None) -> Meaning | None:
    """
    What a code means, or None. Those of policy have many beginnings, and a quota that is used up is told apart from one
    that is full for now by its message alone.
    """
    if code is not None and _POLICY.search(code):
        return Meaning.MODERATED
    if code == "QuotaExceeded" and _TRIAL.search(message or ""):
        return Meaning.BALANCE
    return meaning_of(code, CODES)
